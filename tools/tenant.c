
/*
 * Copyright (C) The nginx-dsa authors
 *
 * dsa tenant: deletes what a tenant has in Redis.
 */


#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis_schema/resp.h"
#include "redis_schema/tenant.h"
#include "tools/dsa.h"
#include "tools/options.h"
#include "tools/redis.h"


#define DSA_TENANT_ARENA   (4 * 1024 * 1024)    /* of one reply of SCAN */
#define DSA_TENANT_PASSES  5                    /* while a cluster moves it */


static const char  dsa_tenant_usage[] =
    "usage: dsa tenant delete TENANT [--ledger] [--dry-run] [--yes]\n"
    "\n"
    "Deletes what a tenant has in Redis: conversations, responses, retained\n"
    "answers with tool calls, idempotency keys with their answers, and cuts\n"
    "and summaries of long histories.  TENANT is its name, or the 32\n"
    "hexadecimal digits of its keys in Redis ($dsa_tenant).\n"
    "\n"
    DSA_CLIENT_USAGE
    "  --ledger               also deletes usage, costs, and the amounts that\n"
    "                         the tenant's keys have spent, so that their\n"
    "                         budgets begin anew\n"
    "  --dry-run              only counts\n"
    "  --yes                  deletes without a question\n"
    "\n"
    "The command can be repeated, also after it was interrupted.  Requests\n"
    "that are served meanwhile can store something again, so disable the keys\n"
    "of the tenant before (\"dsa key set ID --state disabled\").\n"
    "\n"
    "What remains:\n"
    "\n"
    "  the records of API keys, which \"dsa key\" handles;\n"
    "  markers, which prevent that an entry of the ledger is written twice;\n"
    "  they have numbers only, and expire within a day;\n"
    "  pages of the KV cache, which do not name their tenant; they expire\n"
    "  in Redis (ttl= of redis_cache), and others take their place in the\n"
    "  memory of engines;\n"
    "  log files, and backups.\n";


enum {
    DSA_TENANT_OPT_LEDGER = DSA_OPTIONS_FIRST,
    DSA_TENANT_OPT_DRY,
    DSA_TENANT_OPT_YES
};


typedef struct {
    dsa_client_conf_t         redis;
    int                       ledger;
    int                       dry;
    int                       yes;
    const char               *given;        /* TENANT */
    char                      digits[DSA_KEY_TENANT_LEN + 1];
    dsa_str_t                 tenant;       /* the digits */
    dsa_client_t             *client;
    int                       remove;       /* 0: the pass only counts */
    uint64_t                  found[DSA_TENANT_KINDS];
    uint64_t                  deleted[DSA_TENANT_KINDS];
} dsa_tenant_run_t;


static int dsa_tenant_option(void *data, int opt, const char *value,
    dsa_err_t *err);
static int dsa_tenant_complete(void *data, int n, char **args, dsa_err_t *err);
static int dsa_tenant_delete(dsa_tenant_run_t *run, dsa_err_t *err);
static int dsa_tenant_agreed(const dsa_tenant_run_t *run);
static int dsa_tenant_deletes(const dsa_tenant_run_t *run,
    dsa_tenant_kind_e kind);
static int dsa_tenant_pass(dsa_tenant_run_t *run, dsa_err_t *err);
static int dsa_tenant_page(dsa_tenant_run_t *run, char *cursor, size_t size,
    dsa_err_t *err);
static int dsa_tenant_sort(dsa_tenant_run_t *run, dsa_arena_t *arena,
    const redisReply *keys, dsa_err_t *err);
static int dsa_tenant_remove(dsa_tenant_run_t *run, dsa_arena_t *arena,
    dsa_tenant_kind_e kind, const dsa_str_t *keys, uint32_t n,
    dsa_err_t *err);
static int dsa_tenant_node(dsa_tenant_run_t *run, char *node, size_t size,
    dsa_err_t *err);
static int dsa_tenant_number(dsa_tenant_run_t *run,
    const dsa_schema_command_t *cmd, int64_t *n, dsa_err_t *err);
static int dsa_tenant_report(const dsa_tenant_run_t *run, dsa_err_t *err);


static const struct option  dsa_tenant_table[] = {
    DSA_CLIENT_OPTIONS,
    { "ledger", no_argument, NULL, DSA_TENANT_OPT_LEDGER },
    { "dry-run", no_argument, NULL, DSA_TENANT_OPT_DRY },
    { "yes", no_argument, NULL, DSA_TENANT_OPT_YES },
    DSA_OPTIONS_END
};

static const dsa_options_t  dsa_tenant_options = {
    "tenant delete", dsa_tenant_usage, dsa_tenant_table, dsa_tenant_option,
    dsa_tenant_complete
};


int
dsa_cmd_tenant(int argc, char **argv)
{
    int               rc;
    dsa_err_t         err;
    dsa_tenant_run_t  run;

    memset(&run, 0, sizeof(dsa_tenant_run_t));

    rc = dsa_options_read(&dsa_tenant_options, &run, argc, argv);

    if (rc != -1) {
        return rc;
    }

    run.client = dsa_client_open(&run.redis, &err);

    rc = run.client != NULL ? dsa_tenant_delete(&run, &err) : DSA_ERROR;

    dsa_client_close(run.client);

    if (rc != DSA_OK) {
        (void) fprintf(stderr, "dsa tenant delete: %s\n", err.text);
        return 1;
    }

    return 0;
}


static int
dsa_tenant_option(void *data, int opt, const char *value, dsa_err_t *err)
{
    int                rc;
    dsa_tenant_run_t  *run = data;

    rc = dsa_client_option(&run->redis, opt, value, err);

    if (rc != DSA_AGAIN) {
        return rc;
    }

    switch (opt) {

    case DSA_TENANT_OPT_LEDGER:
        run->ledger = 1;
        break;

    case DSA_TENANT_OPT_DRY:
        run->dry = 1;
        break;

    default: /* DSA_TENANT_OPT_YES */
        run->yes = 1;
    }

    return DSA_OK;
}


static int
dsa_tenant_complete(void *data, int n, char **args, dsa_err_t *err)
{
    dsa_tenant_run_t  *run = data;

    if (n != 1) {
        return dsa_error(err, "there are %d names of tenants; expected one", n);
    }

    if (args[0][0] == '\0' || strlen(args[0]) > DSA_KEY_MAX_NAME) {
        return dsa_error(err, "the argument is not a name of a tenant; "
                         "expected 1 to %d bytes, or its 32 hexadecimal digits",
                         DSA_KEY_MAX_NAME);
    }

    dsa_client_default(&run->redis);

    if (run->redis.address == NULL) {
        return dsa_error(err, "expected --redis ADDRESS, where the data is");
    }

    run->given = args[0];
    dsa_key_tenant_given(run->digits, dsa_strz(run->given));
    run->tenant = dsa_strz(run->digits);

    return DSA_OK;
}


static int
dsa_tenant_delete(dsa_tenant_run_t *run, dsa_err_t *err)
{
    if (run->dry || !run->yes) {

        if (dsa_tenant_pass(run, err) != DSA_OK
            || dsa_tenant_report(run, err) != DSA_OK)
        {
            return DSA_ERROR;
        }

        if (run->dry) {
            return DSA_OK;
        }

        if (!dsa_tenant_agreed(run)) {
            return dsa_error(err, "the answer is not \"yes\"; nothing was "
                             "deleted");
        }

        memset(run->found, 0, sizeof(run->found));
    }

    run->remove = 1;

    if (dsa_tenant_pass(run, err) != DSA_OK
        || dsa_tenant_report(run, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (run->found[DSA_TENANT_OTHER] != 0) {
        return dsa_error(err, "%" PRIu64 " keys of the tenant are of a kind "
                         "that this version does not have, and were not "
                         "deleted; expected a version of dsa that is not older "
                         "than nginx-dsa", run->found[DSA_TENANT_OTHER]);
    }

    return DSA_OK;
}


static int
dsa_tenant_agreed(const dsa_tenant_run_t *run)
{
    char  answer[8];

    (void) fprintf(stderr, "Delete all of it%s (yes or no)? ",
                   run->ledger ? "" : " but the ledger and what was spent");

    return fgets(answer, sizeof(answer), stdin) != NULL
           && strcmp(answer, "yes\n") == 0;
}


/*
 * Markers remain: nginx sends an entry of the ledger until it is confirmed, and
 * an entry without its marker would be written again.
 */

static int
dsa_tenant_deletes(const dsa_tenant_run_t *run, dsa_tenant_kind_e kind)
{
    return kind < DSA_TENANT_LEDGER
           || (run->ledger && kind <= DSA_TENANT_SPEND);
}


/*
 * Looks at each key of the node that has the tenant.  SCAN returns all keys
 * that exist from its beginning to its end, some of them twice.  If a cluster
 * gives the tenant to another node, the scan begins there again.
 */

static int
dsa_tenant_pass(dsa_tenant_run_t *run, dsa_err_t *err)
{
    int       rc;
    char      cursor[32], node[DSA_CLIENT_ADDRESS], last[DSA_CLIENT_ADDRESS];
    uint32_t  n;

    if (dsa_tenant_node(run, node, sizeof(node), err) != DSA_OK) {
        return DSA_ERROR;
    }

    for (n = 0; n < DSA_TENANT_PASSES; n++) {
        (void) snprintf(cursor, sizeof(cursor), "0");

        do {
            rc = dsa_tenant_page(run, cursor, sizeof(cursor), err);

            if (rc != DSA_OK) {
                return DSA_ERROR;
            }
        } while (strcmp(cursor, "0") != 0);

        (void) strcpy(last, node);

        if (dsa_tenant_node(run, node, sizeof(node), err) != DSA_OK) {
            return DSA_ERROR;
        }

        if (strcmp(node, last) == 0) {
            return DSA_OK;
        }
    }

    return dsa_error(err, "the cluster has moved the tenant %d times; repeat "
                     "the command", DSA_TENANT_PASSES);
}


/* cursor: the position of the page, and then that of the next one. */

static int
dsa_tenant_page(dsa_tenant_run_t *run, char *cursor, size_t size,
    dsa_err_t *err)
{
    int                    rc;
    dsa_str_t              next;
    redisReply            *reply;
    dsa_arena_t           *arena;
    const redisReply      *keys;
    dsa_schema_command_t   cmd;

    arena = dsa_arena_create(DSA_TENANT_ARENA);

    if (arena == NULL
        || dsa_tenant_scan(&cmd, arena, run->tenant, dsa_strz(cursor))
           != DSA_OK)
    {
        dsa_arena_destroy(arena);
        return dsa_error(err, "out of memory");
    }

    reply = dsa_client_call(run->client, &cmd, err);
    rc = DSA_ERROR;

    if (reply != NULL
        && dsa_tenant_scan_reply(&next, &keys, reply, err) == DSA_OK)
    {
        rc = dsa_tenant_sort(run, arena, keys, err);
    }

    if (rc == DSA_OK) {
        (void) snprintf(cursor, size, "%.*s", (int) next.len, next.data);
    }

    if (reply != NULL) {
        freeReplyObject(reply);
    }

    dsa_arena_destroy(arena);

    return rc;
}


/* Counts the keys of a page by their kinds, and deletes them. */

static int
dsa_tenant_sort(dsa_tenant_run_t *run, dsa_arena_t *arena,
    const redisReply *keys, dsa_err_t *err)
{
    int                 kind;
    size_t              i;
    uint32_t            n;
    dsa_str_t           key, *of_kind;
    dsa_tenant_kind_e   is;

    of_kind = dsa_arena_alloc(arena, (keys->elements + 1) * sizeof(dsa_str_t));

    if (of_kind == NULL) {
        return dsa_error(err, "out of memory");
    }

    for (kind = 0; kind < DSA_TENANT_KINDS; kind++) {
        n = 0;

        for (i = 0; i < keys->elements; i++) {
            key = dsa_str(keys->element[i]->str, keys->element[i]->len);

            if (dsa_tenant_kind(&is, run->tenant, key) == DSA_OK
                && (int) is == kind)
            {
                of_kind[n++] = key;
            }
        }

        run->found[kind] += n;

        if (n != 0 && run->remove
            && dsa_tenant_deletes(run, (dsa_tenant_kind_e) kind)
            && dsa_tenant_remove(run, arena, (dsa_tenant_kind_e) kind, of_kind,
                                 n, err)
               != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static int
dsa_tenant_remove(dsa_tenant_run_t *run, dsa_arena_t *arena,
    dsa_tenant_kind_e kind, const dsa_str_t *keys, uint32_t n,
    dsa_err_t *err)
{
    int64_t               deleted;
    dsa_schema_command_t  cmd;

    if (dsa_tenant_unlink(&cmd, arena, keys, n) != DSA_OK) {
        return dsa_error(err, "out of memory");
    }

    if (dsa_tenant_number(run, &cmd, &deleted, err) != DSA_OK) {
        return DSA_ERROR;
    }

    run->deleted[kind] += (uint64_t) deleted;

    return DSA_OK;
}


/* Connects to the node of a cluster that has the tenant; node: its address. */

static int
dsa_tenant_node(dsa_tenant_run_t *run, char *node, size_t size,
    dsa_err_t *err)
{
    int                    rc;
    int64_t                n;
    dsa_arena_t           *arena;
    dsa_schema_command_t   cmd;

    arena = dsa_arena_create(DSA_TENANT_ARENA);

    if (arena == NULL
        || dsa_tenant_probe(&cmd, arena, run->tenant) != DSA_OK)
    {
        dsa_arena_destroy(arena);
        return dsa_error(err, "out of memory");
    }

    rc = dsa_tenant_number(run, &cmd, &n, err);

    dsa_arena_destroy(arena);

    (void) snprintf(node, size, "%s", dsa_client_address(run->client));

    return rc;
}


static int
dsa_tenant_number(dsa_tenant_run_t *run, const dsa_schema_command_t *cmd,
    int64_t *n, dsa_err_t *err)
{
    int          rc;
    redisReply  *reply;

    reply = dsa_client_call(run->client, cmd, err);

    if (reply == NULL) {
        return DSA_ERROR;
    }

    if (dsa_resp_is_error(reply, "ASK")) {
        rc = dsa_error(err, "the cluster is moving the tenant to another node; "
                       "repeat the command when that is done");

    } else {
        rc = dsa_schema_integer(reply, n, err);
    }

    freeReplyObject(reply);

    return rc;
}


static int
dsa_tenant_report(const dsa_tenant_run_t *run, dsa_err_t *err)
{
    int  kind;

    (void) printf("tenant %s (%s)\n\n%-20s %10s %10s\n", run->given,
                  run->digits, "KIND", "FOUND", "DELETED");

    for (kind = 0; kind < DSA_TENANT_KINDS; kind++) {
        (void) printf("%-20s %10" PRIu64 " %10" PRIu64 "\n",
                      dsa_tenant_name((dsa_tenant_kind_e) kind),
                      run->found[kind], run->deleted[kind]);
    }

    if (fflush(stdout) != 0 || ferror(stdout)) {
        return dsa_error(err, "the report could not be written");
    }

    return DSA_OK;
}
