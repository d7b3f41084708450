
/*
 * Copyright (C) The nginx-dsa authors
 *
 * dsa usage: the tokens of tenants or of one key, and their cost, from the
 * ledger in Redis.
 */


#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/dsa.h"
#include "tools/key_options.h"
#include "tools/key_store.h"
#include "tools/options.h"
#include "tools/usage_print.h"
#include "tools/usage_sum.h"


#define DSA_USAGE_ARENA  (256 * 1024)               /* of one key entry */
#define DSA_USAGE_NAMES  (1024UL * 1024 * 1024)     /* of tenants, models */
#define DSA_USAGE_DAYS   3660                       /* of one report */


static const char  dsa_usage_text[] =
    "usage: dsa usage --redis ADDRESS [--key ID] [--tenant NAME]\n"
    "                 [--from DATE] [--to DATE] [--json | --csv]\n"
    "\n"
    "Prints the tokens and the cost of each model for each tenant that has a\n"
    "key, from the ledger.\n"
    "\n"
    DSA_CLIENT_USAGE
    "  --file PATH            the file with the keys, if they are in a file\n"
    "  --key ID               one key\n"
    "  --tenant NAME          one tenant; its name, or the 32 hexadecimal\n"
    "                         digits of its keys in Redis\n"
    "  --from DATE            2026-11-01; the first day of this month by\n"
    "                         default\n"
    "  --to DATE              the last day, of UTC; today by default\n"
    "  --json, --csv          for programs\n";


enum {
    DSA_USAGE_OPT_FILE = DSA_OPTIONS_FIRST,
    DSA_USAGE_OPT_KEY,
    DSA_USAGE_OPT_TENANT,
    DSA_USAGE_OPT_FROM,
    DSA_USAGE_OPT_TO,
    DSA_USAGE_OPT_JSON,
    DSA_USAGE_OPT_CSV
};


typedef struct {
    dsa_key_store_conf_t      keys;
    const char               *key;          /* NULL: all */
    const char               *tenant;       /* NULL: all */
    const char               *from;         /* NULL: the default */
    const char               *to;
    dsa_usage_format_e        format;
    dsa_usage_range_t         range;
    dsa_client_t             *client;
    dsa_arena_t              *arena;        /* names */
    dsa_str_t                *tenants;      /* names, each once */
    size_t                    n_tenants;
} dsa_usage_run_t;


static int dsa_usage_option(void *data, int opt, const char *value,
    dsa_err_t *err);
static int dsa_usage_complete(void *data, int n, char **args, dsa_err_t *err);
static int dsa_usage_range(dsa_usage_run_t *run, dsa_err_t *err);
static int dsa_usage_date(int64_t *day, const char *option, const char *text,
    dsa_err_t *err);
static int dsa_usage_report(dsa_usage_run_t *run, dsa_err_t *err);
static int dsa_usage_print_sum(dsa_usage_run_t *run, dsa_err_t *err);
static int dsa_usage_tenants(dsa_usage_run_t *run, dsa_err_t *err);
static int dsa_usage_tenant_of_key(dsa_usage_run_t *run,
    dsa_key_store_t *store, dsa_err_t *err);
static int dsa_usage_all_tenants(dsa_usage_run_t *run, dsa_key_store_t *store,
    dsa_err_t *err);
static int dsa_usage_add_name(dsa_usage_run_t *run, dsa_str_t entry,
    dsa_str_t *name, dsa_err_t *err);
static int dsa_usage_compare(const void *one, const void *two);


static const struct option  dsa_usage_table[] = {
    DSA_CLIENT_OPTIONS,
    { "file", required_argument, NULL, DSA_USAGE_OPT_FILE },
    { "key", required_argument, NULL, DSA_USAGE_OPT_KEY },
    { "tenant", required_argument, NULL, DSA_USAGE_OPT_TENANT },
    { "from", required_argument, NULL, DSA_USAGE_OPT_FROM },
    { "to", required_argument, NULL, DSA_USAGE_OPT_TO },
    { "json", no_argument, NULL, DSA_USAGE_OPT_JSON },
    { "csv", no_argument, NULL, DSA_USAGE_OPT_CSV },
    DSA_OPTIONS_END
};

static const dsa_options_t  dsa_usage_options = {
    "usage", dsa_usage_text, dsa_usage_table, dsa_usage_option,
    dsa_usage_complete
};


int
dsa_cmd_usage(int argc, char **argv)
{
    int              rc;
    dsa_err_t        err;
    dsa_usage_run_t  run;

    memset(&run, 0, sizeof(dsa_usage_run_t));

    rc = dsa_options_read(&dsa_usage_options, &run, argc, argv);

    if (rc != -1) {
        return rc;
    }

    run.arena = dsa_arena_create(DSA_USAGE_NAMES);

    rc = run.arena != NULL ? dsa_usage_report(&run, &err)
                           : dsa_error(&err, "out of memory");

    free(run.tenants);
    dsa_arena_destroy(run.arena);

    if (rc != DSA_OK) {
        (void) fprintf(stderr, "dsa usage: %s\n", err.text);
        return 1;
    }

    return 0;
}


static int
dsa_usage_option(void *data, int opt, const char *value, dsa_err_t *err)
{
    int               rc;
    dsa_usage_run_t  *run = data;

    rc = dsa_client_option(&run->keys.redis, opt, value, err);

    if (rc != DSA_AGAIN) {
        return rc;
    }

    switch (opt) {

    case DSA_USAGE_OPT_FILE:
        run->keys.file = value;
        break;

    case DSA_USAGE_OPT_KEY:

        /* it may be the text of a key, so the error does not repeat it */

        if (!dsa_key_id_ok(dsa_strz(value))) {
            return dsa_error(err, "--key is not the id of a key; expected key_ "
                             "and 16 hexadecimal digits");
        }

        run->key = value;
        break;

    case DSA_USAGE_OPT_TENANT:
        if (value[0] == '\0' || strlen(value) > DSA_KEY_MAX_NAME) {
            return dsa_error(err, "--tenant is not a name of a tenant; "
                             "expected 1 to %d bytes", DSA_KEY_MAX_NAME);
        }

        run->tenant = value;
        break;

    case DSA_USAGE_OPT_FROM:
        run->from = value;
        break;

    case DSA_USAGE_OPT_TO:
        run->to = value;
        break;

    default: /* DSA_USAGE_OPT_JSON, DSA_USAGE_OPT_CSV */
        if (run->format != DSA_USAGE_TABLE) {
            return dsa_error(err, "there is more than one format; expected "
                             "--json or --csv");
        }

        run->format = opt == DSA_USAGE_OPT_JSON ? DSA_USAGE_JSON
                                                : DSA_USAGE_CSV;
    }

    return DSA_OK;
}


static int
dsa_usage_complete(void *data, int n, char **args, dsa_err_t *err)
{
    dsa_usage_run_t  *run = data;

    if (n != 0) {
        return dsa_error(err, "there is an argument that is not an option; "
                         "\"dsa usage --help\" prints the options");
    }

    dsa_client_default(&run->keys.redis);

    if (run->keys.redis.address == NULL) {
        return dsa_error(err, "expected --redis ADDRESS, where the ledger is");
    }

    if (run->key != NULL) {
        run->range.key = dsa_strz(run->key);
    }

    return dsa_usage_range(run, err);
}


static int
dsa_usage_range(dsa_usage_run_t *run, dsa_err_t *err)
{
    char     text[DSA_USAGE_DAY];
    int64_t  today;

    today = time(NULL) / (24 * 3600);
    run->range.to = today;

    if (run->to != NULL
        && dsa_usage_date(&run->range.to, "to", run->to, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_usage_day(text, today);
    run->range.from = today - (atoi(text + 8) - 1);

    if (run->from != NULL
        && dsa_usage_date(&run->range.from, "from", run->from, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (run->range.from > run->range.to
        || run->range.to - run->range.from >= DSA_USAGE_DAYS)
    {
        return dsa_error(err, "the range of days is empty or too long; "
                         "expected --from at most --to, and at most %d days",
                         DSA_USAGE_DAYS);
    }

    return DSA_OK;
}


static int
dsa_usage_date(int64_t *day, const char *option, const char *text,
    dsa_err_t *err)
{
    int64_t  seconds;

    if (strlen(text) != sizeof("2026-11-01") - 1
        || dsa_key_date(&seconds, text) != DSA_OK)
    {
        return dsa_error(err, "--%s \"%.64s\" is not a date; expected a day "
                         "of UTC, for example 2026-11-01", option, text);
    }

    *day = seconds / (24 * 3600);

    return DSA_OK;
}


static int
dsa_usage_report(dsa_usage_run_t *run, dsa_err_t *err)
{
    int  rc;

    if (dsa_usage_tenants(run, err) != DSA_OK) {
        return DSA_ERROR;
    }

    run->client = dsa_client_open(&run->keys.redis, err);

    if (run->client == NULL) {
        return DSA_ERROR;
    }

    rc = dsa_usage_print_sum(run, err);

    dsa_client_close(run->client);

    return rc;
}


static int
dsa_usage_print_sum(dsa_usage_run_t *run, dsa_err_t *err)
{
    int               rc;
    char              digits[DSA_KEY_TENANT_LEN + 1];
    size_t            i;
    dsa_usage_sum_t   sum;

    memset(&sum, 0, sizeof(dsa_usage_sum_t));
    rc = DSA_OK;

    for (i = 0; i < run->n_tenants && rc == DSA_OK; i++) {
        if (run->tenant != NULL) {
            dsa_key_tenant_given(digits, run->tenants[i]);

        } else {
            dsa_key_tenant_digits(digits, run->tenants[i]);
        }

        rc = dsa_usage_add(&sum, run->arena, run->client, run->tenants[i],
                           digits, &run->range, err);
    }

    if (rc == DSA_OK) {
        rc = dsa_usage_print(&sum, &run->range, run->format, err);
    }

    dsa_usage_free(&sum);

    return rc;
}


/* Sets the tenants of the report. */

static int
dsa_usage_tenants(dsa_usage_run_t *run, dsa_err_t *err)
{
    int               rc;
    dsa_key_store_t  *store;

    if (run->tenant != NULL) {
        run->tenants = malloc(sizeof(dsa_str_t));

        if (run->tenants == NULL) {
            return dsa_error(err, "out of memory");
        }

        run->tenants[run->n_tenants++] = dsa_strz(run->tenant);

        return DSA_OK;
    }

    store = dsa_key_store_open(&run->keys, DSA_KEY_STORE_READ, err);

    if (store == NULL) {
        return DSA_ERROR;
    }

    rc = run->key != NULL ? dsa_usage_tenant_of_key(run, store, err)
                          : dsa_usage_all_tenants(run, store, err);

    dsa_key_store_close(store);

    return rc;
}


static int
dsa_usage_tenant_of_key(dsa_usage_run_t *run, dsa_key_store_t *store,
    dsa_err_t *err)
{
    int        rc;
    dsa_key_t  key;
    dsa_str_t  entry;

    rc = dsa_key_store_get(store, run->arena, run->range.key, &key, &entry,
                           err);

    if (rc == DSA_AGAIN) {
        return dsa_error(err, "there is no key %s; its use can be found with "
                         "--tenant", run->key);
    }

    if (rc != DSA_OK) {
        return DSA_ERROR;
    }

    run->tenants = malloc(sizeof(dsa_str_t));

    if (run->tenants == NULL) {
        return dsa_error(err, "out of memory");
    }

    /* a copy, because the entry can be in the store, which is closed soon */

    return dsa_usage_add_name(run, entry, &run->tenants[run->n_tenants++],
                              err);
}


static int
dsa_usage_all_tenants(dsa_usage_run_t *run, dsa_key_store_t *store,
    dsa_err_t *err)
{
    int              rc;
    size_t           i, n;
    dsa_arena_t     *arena;
    dsa_key_list_t   list;

    memset(&list, 0, sizeof(dsa_key_list_t));

    arena = dsa_arena_create(DSA_USAGE_NAMES);

    if (arena == NULL) {
        return dsa_error(err, "out of memory");
    }

    rc = dsa_key_store_list(store, arena, &list, err);

    if (rc == DSA_OK) {
        run->tenants = calloc(list.n + 1, sizeof(dsa_str_t));

        if (run->tenants == NULL) {
            rc = dsa_error(err, "out of memory");
        }
    }

    for (i = 0; i < list.n && rc == DSA_OK; i++) {
        rc = dsa_usage_add_name(run, list.entries[i].text, &run->tenants[i],
                                err);
    }

    if (rc == DSA_OK) {
        qsort(run->tenants, list.n, sizeof(dsa_str_t), dsa_usage_compare);

        for (i = 0, n = 0; i < list.n; i++) {
            if (n == 0 || !dsa_str_eq(run->tenants[i], run->tenants[n - 1])) {
                run->tenants[n++] = run->tenants[i];
            }
        }

        run->n_tenants = n;
    }

    dsa_key_list_free(&list);
    dsa_arena_destroy(arena);

    return rc;
}


/* Sets *name to the tenant of a key entry, in run->arena. */

static int
dsa_usage_add_name(dsa_usage_run_t *run, dsa_str_t entry, dsa_str_t *name,
    dsa_err_t *err)
{
    int           rc;
    char         *copy;
    dsa_key_t     key;
    dsa_arena_t  *arena;

    arena = dsa_arena_create(DSA_USAGE_ARENA);

    if (arena == NULL) {
        return dsa_error(err, "out of memory");
    }

    rc = dsa_key_read(&key, arena, entry, err);

    if (rc == DSA_OK) {
        copy = dsa_arena_dup(run->arena, key.tenant);

        if (copy != NULL) {
            *name = dsa_str(copy, key.tenant.len);

        } else {
            rc = dsa_error(err, "out of memory");
        }
    }

    dsa_arena_destroy(arena);

    return rc;
}


static int
dsa_usage_compare(const void *one, const void *two)
{
    int               rc;
    const dsa_str_t  *a = one;
    const dsa_str_t  *b = two;

    rc = memcmp(a->data, b->data, a->len < b->len ? a->len : b->len);

    return rc != 0 ? rc : (a->len > b->len) - (a->len < b->len);
}
