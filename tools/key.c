
/*
 * Copyright (C) The nginx-dsa authors
 *
 * dsa key: creates, lists and changes API keys.  The text of a key is printed
 * once, when it is made.  Only its hash is stored.
 */


#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tools/dsa.h"
#include "tools/key_options.h"
#include "tools/key_print.h"
#include "tools/key_store.h"
#include "tools/key_text.h"
#include "tools/options.h"


#define DSA_KEY_ARENA       (256 * 1024)            /* of one key entry */
#define DSA_KEY_LIST_ARENA  (1024UL * 1024 * 1024)  /* of all key entries */
#define DSA_KEY_ATTEMPTS    100
#define DSA_KEY_GRACE       "1d"


static const char  dsa_key_usage[] =
    "usage: dsa key create --name NAME [OPTION ...]\n"
    "       dsa key list [--json]\n"
    "       dsa key show ID [--json]\n"
    "       dsa key set ID OPTION ...\n"
    "       dsa key revoke ID\n"
    "       dsa key rotate ID [--grace DURATION]\n"
    "\n"
    "Manages API keys in Redis or in a file, as in dsa_keys.  create and\n"
    "rotate print the text of a key once; only its hash is stored.\n"
    "\n"
    "Location of the keys, for each command:\n"
    "\n"
    DSA_CLIENT_USAGE
    "  --file PATH            a file with one key entry in each line\n"
    "\n"
    "Options of create and set:\n"
    "\n"
    "  --name NAME            a label, which list and show print\n"
    "  --tenant NAME          its keys share conversations and caches; the id\n"
    "                         of the key by default\n"
    "  --state STATE          active or disabled\n"
    "  --models A,B,...       models that may be used, or all\n"
    "  --rpm N                requests per minute, or none\n"
    "  --tpm N                tokens per minute, or none\n"
    "  --concurrency N        requests at the same time, or none\n"
    "  --weight N             1 to 10000; 100 by default\n"
    "  --priority PRIORITY    low, normal or high\n"
    "  --expires TIME         2027-01-31, 2027-01-31T12:00:00Z, 30d or never\n"
    "  --budget-day MONEY     HARD, HARD:SOFT, :SOFT or none; UTC\n"
    "  --budget-month MONEY\n"
    "  --budget-total MONEY\n"
    "\n"
    "  --grace DURATION       how long rotate keeps the old key: 30m, 12h,\n"
    "                         7d, 0; 1d by default\n"
    "  --json                 key entries as JSON\n";


enum {
    DSA_KEY_OPT_FILE = DSA_OPTIONS_FIRST,
    DSA_KEY_OPT_JSON,
    DSA_KEY_OPT_GRACE,
    DSA_KEY_OPT_NAME,               /* the first that changes a key */
    DSA_KEY_OPT_TENANT,
    DSA_KEY_OPT_STATE,
    DSA_KEY_OPT_MODELS,
    DSA_KEY_OPT_RPM,
    DSA_KEY_OPT_TPM,
    DSA_KEY_OPT_CONCURRENCY,
    DSA_KEY_OPT_WEIGHT,
    DSA_KEY_OPT_PRIORITY,
    DSA_KEY_OPT_EXPIRES,
    DSA_KEY_OPT_DAY,
    DSA_KEY_OPT_MONTH,
    DSA_KEY_OPT_TOTAL
};


typedef struct dsa_key_run_s  dsa_key_run_t;

typedef struct {
    const char               *command;      /* "key" and the verb */
    int                     (*run)(dsa_key_run_t *run, dsa_err_t *err);
    dsa_key_store_mode_e      mode;
    unsigned                  id:1;         /* the id of a key is expected */
    unsigned                  change:1;     /* options that change a key */
    unsigned                  grace:1;
    unsigned                  json:1;
} dsa_key_verb_t;


/* One execution of the command. */

struct dsa_key_run_s {
    const dsa_key_verb_t     *verb;
    dsa_key_store_conf_t      conf;
    dsa_key_options_t         options;
    unsigned                  changes;      /* options that change a key */
    const char               *grace;
    dsa_str_t                 id;
    int                       json;
    int64_t                   now;
    dsa_key_store_t          *store;
    dsa_key_text_t            text;         /* of a new key */
};


/* Changes a key that was read. */

typedef int (*dsa_key_change_pt)(dsa_key_t *key, dsa_arena_t *arena,
    dsa_key_run_t *run, dsa_err_t *err);


static const dsa_key_verb_t *dsa_key_verb(const char *name);
static int dsa_key_option(void *data, int opt, const char *value,
    dsa_err_t *err);
static void dsa_key_change_option(dsa_key_options_t *options, int opt,
    const char *value);
static int dsa_key_complete(void *data, int n, char **args, dsa_err_t *err);
static int dsa_key_try(const dsa_key_run_t *run, dsa_err_t *err);
static int dsa_key_create(dsa_key_run_t *run, dsa_err_t *err);
static int dsa_key_list(dsa_key_run_t *run, dsa_err_t *err);
static int dsa_key_list_print(const dsa_key_run_t *run,
    const dsa_key_list_t *list, dsa_err_t *err);
static int dsa_key_get(const dsa_key_run_t *run, dsa_arena_t *arena,
    dsa_key_t *key, dsa_str_t *entry, dsa_err_t *err);
static int dsa_key_show(dsa_key_run_t *run, dsa_err_t *err);
static int dsa_key_set(dsa_key_run_t *run, dsa_err_t *err);
static int dsa_key_revoke(dsa_key_run_t *run, dsa_err_t *err);
static int dsa_key_rotate(dsa_key_run_t *run, dsa_err_t *err);
static int dsa_key_change(dsa_key_run_t *run, dsa_key_change_pt change,
    dsa_err_t *err);
static int dsa_key_change_once(dsa_key_run_t *run, dsa_key_change_pt change,
    dsa_err_t *err);
static int dsa_key_live(const dsa_key_t *key, dsa_err_t *err);
static int dsa_key_change_set(dsa_key_t *key, dsa_arena_t *arena,
    dsa_key_run_t *run, dsa_err_t *err);
static int dsa_key_change_revoke(dsa_key_t *key, dsa_arena_t *arena,
    dsa_key_run_t *run, dsa_err_t *err);
static int dsa_key_change_rotate(dsa_key_t *key, dsa_arena_t *arena,
    dsa_key_run_t *run, dsa_err_t *err);


static const dsa_key_verb_t  dsa_key_verbs[] = {
    { "key create", dsa_key_create, DSA_KEY_STORE_CREATE, 0, 1, 0, 0 },
    { "key list", dsa_key_list, DSA_KEY_STORE_READ, 0, 0, 0, 1 },
    { "key show", dsa_key_show, DSA_KEY_STORE_READ, 1, 0, 0, 1 },
    { "key set", dsa_key_set, DSA_KEY_STORE_WRITE, 1, 1, 0, 0 },
    { "key revoke", dsa_key_revoke, DSA_KEY_STORE_WRITE, 1, 0, 0, 0 },
    { "key rotate", dsa_key_rotate, DSA_KEY_STORE_WRITE, 1, 0, 1, 0 }
};

#define DSA_KEY_N_VERBS  (sizeof(dsa_key_verbs) / sizeof(dsa_key_verbs[0]))


static const struct option  dsa_key_table[] = {
    DSA_CLIENT_OPTIONS,
    { "file", required_argument, NULL, DSA_KEY_OPT_FILE },
    { "json", no_argument, NULL, DSA_KEY_OPT_JSON },
    { "grace", required_argument, NULL, DSA_KEY_OPT_GRACE },
    { "name", required_argument, NULL, DSA_KEY_OPT_NAME },
    { "tenant", required_argument, NULL, DSA_KEY_OPT_TENANT },
    { "state", required_argument, NULL, DSA_KEY_OPT_STATE },
    { "models", required_argument, NULL, DSA_KEY_OPT_MODELS },
    { "rpm", required_argument, NULL, DSA_KEY_OPT_RPM },
    { "tpm", required_argument, NULL, DSA_KEY_OPT_TPM },
    { "concurrency", required_argument, NULL, DSA_KEY_OPT_CONCURRENCY },
    { "weight", required_argument, NULL, DSA_KEY_OPT_WEIGHT },
    { "priority", required_argument, NULL, DSA_KEY_OPT_PRIORITY },
    { "expires", required_argument, NULL, DSA_KEY_OPT_EXPIRES },
    { "budget-day", required_argument, NULL, DSA_KEY_OPT_DAY },
    { "budget-month", required_argument, NULL, DSA_KEY_OPT_MONTH },
    { "budget-total", required_argument, NULL, DSA_KEY_OPT_TOTAL },
    DSA_OPTIONS_END
};


int
dsa_cmd_key(int argc, char **argv)
{
    int            rc;
    dsa_err_t      err;
    dsa_key_run_t  run;
    dsa_options_t  options;

    memset(&run, 0, sizeof(dsa_key_run_t));

    run.verb = dsa_key_verb(argv[0]);
    run.now = time(NULL);

    options.command = run.verb->command;
    options.usage = dsa_key_usage;
    options.table = dsa_key_table;
    options.set = dsa_key_option;
    options.complete = dsa_key_complete;

    rc = dsa_options_read(&options, &run, argc, argv);

    if (rc != -1) {
        return rc;
    }

    run.store = dsa_key_store_open(&run.conf, run.verb->mode, &err);
    rc = run.store != NULL ? run.verb->run(&run, &err) : DSA_ERROR;

    dsa_key_store_close(run.store);
    explicit_bzero(&run.text, sizeof(dsa_key_text_t));

    if (rc != DSA_OK) {
        (void) fprintf(stderr, "dsa %s: %s\n", run.verb->command, err.text);
        return 1;
    }

    return 0;
}


/* main.c has the same verbs; "dsa key --help" is for the first. */

static const dsa_key_verb_t *
dsa_key_verb(const char *name)
{
    size_t  i;

    for (i = 1; i < DSA_KEY_N_VERBS; i++) {
        if (strcmp(name, dsa_key_verbs[i].command + strlen("key ")) == 0) {
            return &dsa_key_verbs[i];
        }
    }

    return &dsa_key_verbs[0];
}


static int
dsa_key_option(void *data, int opt, const char *value, dsa_err_t *err)
{
    int                     rc;
    dsa_key_run_t          *run = data;
    const dsa_key_verb_t   *verb;

    verb = run->verb;
    rc = dsa_client_option(&run->conf.redis, opt, value, err);

    if (rc != DSA_AGAIN) {
        return rc;
    }

    switch (opt) {

    case DSA_KEY_OPT_FILE:
        run->conf.file = value;
        return DSA_OK;

    case DSA_KEY_OPT_JSON:
        if (!verb->json) {
            return dsa_error(err, "--json is an option of list and show");
        }

        run->json = 1;
        return DSA_OK;

    case DSA_KEY_OPT_GRACE:
        if (!verb->grace) {
            return dsa_error(err, "--grace is an option of rotate");
        }

        run->grace = value;
        return DSA_OK;

    default:
        if (!verb->change) {
            return dsa_error(err, "an option that changes a key is given; "
                             "expected it with create or set");
        }

        run->changes++;
        dsa_key_change_option(&run->options, opt, value);

        return DSA_OK;
    }
}


static void
dsa_key_change_option(dsa_key_options_t *options, int opt, const char *value)
{
    switch (opt) {

    case DSA_KEY_OPT_NAME:
        options->name = value;
        break;

    case DSA_KEY_OPT_TENANT:
        options->tenant = value;
        break;

    case DSA_KEY_OPT_STATE:
        options->state = value;
        break;

    case DSA_KEY_OPT_MODELS:
        options->models = value;
        break;

    case DSA_KEY_OPT_RPM:
        options->rpm = value;
        break;

    case DSA_KEY_OPT_TPM:
        options->tpm = value;
        break;

    case DSA_KEY_OPT_CONCURRENCY:
        options->concurrency = value;
        break;

    case DSA_KEY_OPT_WEIGHT:
        options->weight = value;
        break;

    case DSA_KEY_OPT_PRIORITY:
        options->priority = value;
        break;

    case DSA_KEY_OPT_EXPIRES:
        options->expires = value;
        break;

    default: /* DSA_KEY_OPT_DAY to DSA_KEY_OPT_TOTAL */
        options->budget[opt - DSA_KEY_OPT_DAY] = value;
    }
}


static int
dsa_key_complete(void *data, int n, char **args, dsa_err_t *err)
{
    dsa_key_run_t  *run = data;

    if (run->conf.file == NULL) {
        dsa_client_default(&run->conf.redis);
    }

    if ((run->conf.file != NULL) == (run->conf.redis.address != NULL)) {
        return dsa_error(err, "expected either --redis ADDRESS or --file "
                         "PATH");
    }

    if (run->verb->id) {

        if (n == 0) {
            return dsa_error(err, "expected the id of a key, for example "
                             "key_0123456789abcdef");
        }

        run->id = dsa_strz(args[0]);

        /* it may be the text of a key, so the error does not repeat it */

        if (!dsa_key_id_ok(run->id)) {
            return dsa_error(err, "the argument is not the id of a key; "
                             "expected key_ and 16 hexadecimal digits");
        }
    }

    if (n != run->verb->id) {
        return dsa_error(err, "too many arguments; expected %s",
                         run->verb->id ? "one id and options" : "options");
    }

    if (run->verb->id && run->verb->change && run->changes == 0) {
        return dsa_error(err, "there is nothing to change; expected an option, "
                         "for example --rpm 60");
    }

    return dsa_key_try(run, err);
}


/*
 * Applies the options to a key that is not stored.  An invalid option is found
 * in this way before a file is created and before a connection to Redis.
 */

static int
dsa_key_try(const dsa_key_run_t *run, dsa_err_t *err)
{
    int           rc;
    int64_t       grace;
    dsa_key_t     key;
    dsa_arena_t  *arena;

    memset(&key, 0, sizeof(dsa_key_t));
    dsa_key_limits_default(&key.limits);

    key.id = dsa_strz("key_0000000000000000");
    key.tenant = key.id;
    key.name = run->verb->id ? key.id : dsa_str(NULL, 0);

    if (run->verb->change && !run->verb->id && run->options.name == NULL) {
        return dsa_error(err, "the key has no name; expected --name NAME");
    }

    if (run->grace != NULL
        && dsa_key_duration(&grace, "grace", run->grace, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (!run->verb->change) {
        return DSA_OK;
    }

    arena = dsa_arena_create(DSA_KEY_ARENA);

    if (arena == NULL) {
        return dsa_error(err, "out of memory");
    }

    rc = dsa_key_options_apply(&key, arena, &run->options, run->now, err);
    dsa_arena_destroy(arena);

    return rc;
}


static int
dsa_key_create(dsa_key_run_t *run, dsa_err_t *err)
{
    int           rc;
    char          id[DSA_KEY_ID_LEN + 1];
    uint64_t      random;
    dsa_key_t     key;
    dsa_arena_t  *arena;

    if (dsa_key_random(&random, sizeof(random), err) != DSA_OK) {
        return DSA_ERROR;
    }

    (void) snprintf(id, sizeof(id), "key_%016llx",
                    (unsigned long long) random);

    memset(&key, 0, sizeof(dsa_key_t));
    dsa_key_limits_default(&key.limits);

    key.id = dsa_str(id, DSA_KEY_ID_LEN);
    key.tenant = key.id;
    key.created = run->now;

    arena = dsa_arena_create(DSA_KEY_ARENA);

    if (arena == NULL) {
        return dsa_error(err, "out of memory");
    }

    if (dsa_key_options_apply(&key, arena, &run->options, run->now, err)
        == DSA_OK
        && dsa_key_text_make(&run->text, key.hash, err) == DSA_OK
        && dsa_key_store_put(run->store, arena, &key, dsa_str(NULL, 0), err)
           == DSA_OK)
    {
        rc = dsa_key_text_print(&run->text, run->verb->command, key.id,
                                err);

    } else {
        rc = DSA_ERROR;
    }

    dsa_arena_destroy(arena);

    return rc;
}


static int
dsa_key_list(dsa_key_run_t *run, dsa_err_t *err)
{
    int              rc;
    dsa_arena_t     *arena;
    dsa_key_list_t   list;

    memset(&list, 0, sizeof(dsa_key_list_t));

    arena = dsa_arena_create(DSA_KEY_LIST_ARENA);

    if (arena == NULL) {
        return dsa_error(err, "out of memory");
    }

    rc = dsa_key_store_list(run->store, arena, &list, err);

    if (rc == DSA_OK) {
        rc = dsa_key_list_print(run, &list, err);
    }

    if (rc == DSA_OK && list.bad != 0) {
        rc = dsa_error(err, "%zu key entries are invalid", list.bad);
    }

    dsa_key_list_free(&list);
    dsa_arena_destroy(arena);

    return rc;
}


static int
dsa_key_list_print(const dsa_key_run_t *run, const dsa_key_list_t *list,
    dsa_err_t *err)
{
    size_t  i;

    if (run->json) {
        (void) printf("[");

        for (i = 0; i < list->n; i++) {
            (void) printf("%s%.*s", i != 0 ? ",\n " : "",
                          (int) list->entries[i].text.len,
                          list->entries[i].text.data);
        }

        (void) printf("]\n");

    } else if (dsa_key_print_table(list, run->now, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (fflush(stdout) != 0) {
        return dsa_error(err, "stdout: %s", strerror(errno));
    }

    return DSA_OK;
}


/* Reads the key with the id of the command line. */

static int
dsa_key_get(const dsa_key_run_t *run, dsa_arena_t *arena, dsa_key_t *key,
    dsa_str_t *entry, dsa_err_t *err)
{
    int  rc;

    rc = dsa_key_store_get(run->store, arena, run->id, key, entry, err);

    if (rc == DSA_AGAIN) {
        return dsa_error(err, "there is no key %.*s", (int) run->id.len,
                         run->id.data);
    }

    return rc;
}


static int
dsa_key_show(dsa_key_run_t *run, dsa_err_t *err)
{
    int           rc;
    dsa_key_t     key;
    dsa_str_t     entry;
    dsa_arena_t  *arena;

    arena = dsa_arena_create(DSA_KEY_ARENA);

    if (arena == NULL) {
        return dsa_error(err, "out of memory");
    }

    rc = dsa_key_get(run, arena, &key, &entry, err);

    if (rc == DSA_OK && run->json) {
        (void) printf("%.*s\n", (int) entry.len, entry.data);

    } else if (rc == DSA_OK) {
        dsa_key_print(&key, run->now);
    }

    dsa_arena_destroy(arena);

    if (rc == DSA_OK && fflush(stdout) != 0) {
        return dsa_error(err, "stdout: %s", strerror(errno));
    }

    return rc;
}


static int
dsa_key_set(dsa_key_run_t *run, dsa_err_t *err)
{
    return dsa_key_change(run, dsa_key_change_set, err);
}


static int
dsa_key_revoke(dsa_key_run_t *run, dsa_err_t *err)
{
    return dsa_key_change(run, dsa_key_change_revoke, err);
}


static int
dsa_key_rotate(dsa_key_run_t *run, dsa_err_t *err)
{
    if (dsa_key_change(run, dsa_key_change_rotate, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_key_text_print(&run->text, run->verb->command, run->id, err);
}


/*
 * Reads a key, changes it, and stores it.  If another process has changed the
 * key in the meantime, all of it is done again.
 */

static int
dsa_key_change(dsa_key_run_t *run, dsa_key_change_pt change, dsa_err_t *err)
{
    int  rc, n;

    for (n = 0; n < DSA_KEY_ATTEMPTS; n++) {
        rc = dsa_key_change_once(run, change, err);

        if (rc != DSA_AGAIN) {
            return rc;
        }
    }

    return dsa_error(err, "the key %.*s was changed by other processes during "
                     "each of %d attempts; run the command again",
                     (int) run->id.len, run->id.data, DSA_KEY_ATTEMPTS);
}


static int
dsa_key_change_once(dsa_key_run_t *run, dsa_key_change_pt change,
    dsa_err_t *err)
{
    int           rc;
    dsa_key_t     key;
    dsa_str_t     entry;
    dsa_arena_t  *arena;

    arena = dsa_arena_create(DSA_KEY_ARENA);

    if (arena == NULL) {
        return dsa_error(err, "out of memory");
    }

    rc = dsa_key_get(run, arena, &key, &entry, err);

    if (rc == DSA_OK) {
        rc = change(&key, arena, run, err);
    }

    if (rc == DSA_OK) {
        rc = dsa_key_check(&key, err);
    }

    if (rc == DSA_OK) {
        rc = dsa_key_store_put(run->store, arena, &key, entry, err);
    }

    dsa_arena_destroy(arena);

    return rc;
}


/* A revoked key stays as it is. */

static int
dsa_key_live(const dsa_key_t *key, dsa_err_t *err)
{
    if (key->state == DSA_KEY_REVOKED) {
        return dsa_error(err, "the key %.*s is revoked and cannot be changed; "
                         "\"dsa key create\" makes another one",
                         (int) key->id.len, key->id.data);
    }

    return DSA_OK;
}


static int
dsa_key_change_set(dsa_key_t *key, dsa_arena_t *arena, dsa_key_run_t *run,
    dsa_err_t *err)
{
    if (dsa_key_live(key, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_key_options_apply(key, arena, &run->options, run->now, err);
}


static int
dsa_key_change_revoke(dsa_key_t *key, dsa_arena_t *arena, dsa_key_run_t *run,
    dsa_err_t *err)
{
    key->state = DSA_KEY_REVOKED;

    return DSA_OK;
}


static int
dsa_key_change_rotate(dsa_key_t *key, dsa_arena_t *arena, dsa_key_run_t *run,
    dsa_err_t *err)
{
    int64_t  grace;

    if (dsa_key_live(key, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (dsa_key_duration(&grace, "grace",
                         run->grace != NULL ? run->grace : DSA_KEY_GRACE, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    memcpy(key->old_hash, key->hash, DSA_KEY_HASH_LEN);
    key->old_until = grace != 0 ? run->now + grace : 0;

    return dsa_key_text_make(&run->text, key->hash, err);
}
