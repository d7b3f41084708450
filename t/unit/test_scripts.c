
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A script that Redis refuses to run to its end changes nothing.  Each command
 * of each script is refused in turn, and so is each of its keys, by the ACL of
 * a user of a real redis-server.  All keys are compared before and after.
 *
 * What a script uses comes from the script: the server reports which commands
 * it has run on which keys, and these must be all that its text has.
 */


#include <glob.h>

#include "t/unit/script_cases.h"


#define MAX_USES  64
#define MAX_NAME  160


/* Names of commands, or of keys, without repetition. */

typedef struct {
    char          name[MAX_USES][MAX_NAME];
    uint32_t      n;
} names_t;


static redis_t        restricted;       /* the same server as another user */
static redisContext  *monitor;


static int
has(const names_t *names, const char *name)
{
    uint32_t  i;

    for (i = 0; i < names->n; i++) {
        if (strcmp(names->name[i], name) == 0) {
            return 1;
        }
    }

    return 0;
}


static void
put(names_t *names, const char *name, size_t len)
{
    char  text[MAX_NAME];

    assert_true(len < sizeof(text));
    memcpy(text, name, len);
    text[len] = '\0';

    if (!has(names, text)) {
        assert_true(names->n < MAX_USES);
        strcpy(names->name[names->n++], text);
    }
}


/* The commands in the text of a script: words of these functions. */

static void
commands_of(names_t *names, const char *text)
{
    size_t       i, len;
    const char  *p;

    static const char *const  functions[] = {
        "call('", "write('", "attempt('"
    };

    for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        for (p = strstr(text, functions[i]);
             p != NULL;
             p = strstr(p, functions[i]))
        {
            p += strlen(functions[i]);
            len = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
            assert_true(len != 0 && p[len] == '\'');
            put(names, p, len);
        }
    }
}


/* Redis has no redis.acl_check_cmd() before version 7. */

#define HIDE                                                                  \
    "local redis = setmetatable({ acl_check_cmd = false },"                   \
    " { __index = redis })\n"


/* Begins a case.  hide: the script finds no redis.acl_check_cmd(). */

static void
prepare(const script_case_t *c, dsa_schema_command_t *cmd, int hide)
{
    dsa_str_t  *text;
    dsa_buf_t   b;

    ok(&server, "FLUSHALL");
    c->seed();
    c->build(cmd);

    text = &cmd->argv[1];
    assert_true(dsa_str_eqz(cmd->argv[0], "EVAL"));
    assert_true(dsa_str_eqz(*text, c->text));

    if (hide) {
        memset(&b, 0, sizeof(b));
        dsa_buf_addz(&b, HIDE);
        dsa_buf_add(&b, text->data, text->len);
        *text = dsa_strz(dsa_arena_dup(arena, dsa_str(b.data, b.len)));
        dsa_buf_free(&b);
    }
}


/* Sends a command as the restricted user. */

static redisReply *
run_restricted(const dsa_schema_command_t *cmd)
{
    redisReply    *reply;
    redisContext  *own;

    own = server.client;
    server.client = restricted.client;
    reply = run(cmd);
    server.client = own;

    return reply;
}


/* The next line of MONITOR; the caller frees it. */

static redisReply *
monitored(void)
{
    void  *reply;

    assert_int_equal(redisGetReply(monitor, &reply), REDIS_OK);
    assert_non_null(reply);

    return reply;
}


/*
 * Runs a case as a user without restrictions, and adds the commands that the
 * script has run, and their keys.
 */

static void
trace(const script_case_t *c, names_t *commands, names_t *keys)
{
    size_t                len;
    const char           *p;
    redisReply           *reply, *line;
    dsa_schema_command_t  cmd;

    prepare(c, &cmd, 0);
    assert_text("begin", "ECHO begin");

    reply = run(&cmd);

    if (reply->type == REDIS_REPLY_ERROR) {
        fail_msg("%s: %s", c->name, reply->str);
    }

    freeReplyObject(reply);
    assert_text("end", "ECHO end");

    do {
        line = monitored();
        p = strstr(line->str, "\"ECHO\" \"begin\"");
        freeReplyObject(line);
    } while (p == NULL);

    for ( ;; ) {
        line = monitored();

        if (strstr(line->str, "\"ECHO\" \"end\"") != NULL) {
            freeReplyObject(line);
            return;
        }

        p = strstr(line->str, " lua] \"");

        if (p != NULL) {
            p += strlen(" lua] \"");
            len = strcspn(p, "\"");
            put(commands, p, len);

            p += len + 1;

            if (*p == ' ') {
                put(keys, p + 2, strcspn(p + 2, "\""));
            }
        }

        freeReplyObject(line);
    }
}


static int
compare_keys(const void *one, const void *two)
{
    redisReply *const  *a = one;
    redisReply *const  *b = two;

    return strcmp((*a)->str, (*b)->str);
}


/* All keys, with their values and whether they expire. */

static void
snapshot(dsa_buf_t *b)
{
    size_t       i;
    redisReply  *keys, *value;

    memset(b, 0, sizeof(*b));

    keys = query(&server, "KEYS *");
    dsa_buf_printf(b, "%zu keys: ", keys->elements);

    /* without elements there is no array */

    if (keys->elements != 0) {
        qsort(keys->element, keys->elements, sizeof(redisReply *),
              compare_keys);
    }

    for (i = 0; i < keys->elements; i++) {
        value = query(&server, "DUMP %s", keys->element[i]->str);
        assert_int_equal(value->type, REDIS_REPLY_STRING);

        dsa_buf_printf(b, "%s %d ", keys->element[i]->str,
                       number(&server, "PTTL %s", keys->element[i]->str) > 0);
        dsa_buf_add(b, value->str, value->len);

        freeReplyObject(value);
    }

    freeReplyObject(keys);
    assert_false(b->failed);
}


/*
 * Runs a case as the restricted user, between two commands of another one.
 * Either it succeeds, or nothing has changed.  Returns the text of the error in
 * the arena; NULL: it succeeded.
 */

static const char *
all_or_nothing(const script_case_t *c, const char *what, int hide,
    const char *refuse, const char *accept)
{
    dsa_buf_t              before, after;
    const char            *error;
    redisReply            *reply;
    dsa_schema_command_t   cmd;

    prepare(c, &cmd, hide);
    snapshot(&before);

    if (refuse != NULL) {
        ok(&server, refuse);
    }

    reply = run_restricted(&cmd);

    if (accept != NULL) {
        ok(&server, accept);
    }

    snapshot(&after);

    error = NULL;

    if (reply->type == REDIS_REPLY_ERROR) {
        error = dsa_arena_dup(arena, dsa_str(reply->str, reply->len));

        if (after.len != before.len
            || memcmp(after.data, before.data, after.len) != 0)
        {
            fail_msg("%s without %s%s has changed something: %s", c->name,
                     what, hide ? " in Redis 6" : "", error);
        }
    }

    freeReplyObject(reply);
    dsa_buf_free(&before);
    dsa_buf_free(&after);

    return error;
}


/* Each script of the headers has a case, and these use all of its commands. */

static void
test_cases_are_complete(void **state)
{
    char         line[256], name[128];
    FILE        *f;
    glob_t       files;
    size_t       i, k, n;
    names_t     *in_text, *used, *keys;

    n = 0;
    assert_int_equal(glob("redis_schema/*.h", 0, NULL, &files), 0);

    for (i = 0; i < files.gl_pathc; i++) {
        f = fopen(files.gl_pathv[i], "r");
        assert_non_null(f);

        while (fgets(line, sizeof(line), f) != NULL) {
            if (sscanf(line, "static const char %127[a-z_]", name) != 1
                || strlen(name) < 7
                || strcmp(&name[strlen(name) - 7], "_script") != 0)
            {
                continue;
            }

            n++;

            for (k = 0; k < N_CASES && strcmp(cases[k].name, name) != 0; k++) {
                /* void */
            }

            if (k == N_CASES) {
                fail_msg("%s has no case", name);
            }
        }

        fclose(f);
    }

    globfree(&files);
    assert_true(n >= 16);

    in_text = dsa_arena_alloc(arena, 3 * sizeof(names_t));
    used = in_text + 1;
    keys = used + 1;

    for (i = 0; i < N_CASES; i++) {
        memset(in_text, 0, 3 * sizeof(names_t));
        commands_of(in_text, cases[i].text);

        for (k = 0; k < N_CASES; k++) {
            if (cases[k].text == cases[i].text) {
                trace(&cases[k], used, keys);
            }
        }

        for (k = 0; k < in_text->n; k++) {
            if (!has(used, in_text->name[k])) {
                fail_msg("no case of %s uses %s", cases[i].name,
                         in_text->name[k]);
            }
        }

        for (k = 0; k < used->n; k++) {
            if (!has(in_text, used->name[k])) {
                fail_msg("%s is used by %s in another way than by call(), "
                         "write() or attempt()", used->name[k],
                         cases[i].name);
            }
        }
    }
}


static void
refuse_each_command(int hide)
{
    size_t       i;
    names_t      commands, keys;
    uint32_t     k;
    const char  *error;

    for (i = 0; i < N_CASES; i++) {
        commands.n = 0;
        keys.n = 0;
        trace(&cases[i], &commands, &keys);
        assert_true(commands.n != 0);

        for (k = 0; k < commands.n; k++) {
            ok(&server, "ACL SETUSER restricted reset on >x ~* +@all -%s",
               commands.name[k]);

            error = all_or_nothing(&cases[i], commands.name[k], hide, NULL,
                                   NULL);

            if (error == NULL) {
                fail_msg("%s succeeds without %s", cases[i].name,
                         commands.name[k]);
            }

            if (strstr(error, "NOPERM ") == NULL
                || strstr(error, commands.name[k]) == NULL)
            {
                fail_msg("%s without %s: %s", cases[i].name,
                         commands.name[k], error);
            }
        }
    }
}


static void
test_each_command(void **state)
{
    refuse_each_command(0);
}


static void
test_each_command_without_check(void **state)
{
    refuse_each_command(1);
}


/* A user for whom one of the keys is outside the patterns. */

static void
refuse_each_key(int hide)
{
    size_t       i;
    names_t      commands, keys;
    uint32_t     k, n;
    const char  *error;

    for (i = 0; i < N_CASES; i++) {
        commands.n = 0;
        keys.n = 0;
        trace(&cases[i], &commands, &keys);
        assert_true(keys.n != 0);

        for (k = 0; k < keys.n; k++) {
            ok(&server, "ACL SETUSER restricted reset on >x +@all");

            for (n = 0; n < keys.n; n++) {
                if (n != k) {
                    ok(&server, "ACL SETUSER restricted ~%s", keys.name[n]);
                }
            }

            error = all_or_nothing(&cases[i], keys.name[k], hide, NULL, NULL);

            if (error == NULL || strstr(error, "NOPERM ") == NULL) {
                fail_msg("%s without %s: %s", cases[i].name, keys.name[k],
                         error != NULL ? error : "it succeeds");
            }
        }
    }
}


static void
test_each_key(void **state)
{
    refuse_each_key(0);
}


static void
test_each_key_without_check(void **state)
{
    refuse_each_key(1);
}


/*
 * A server that refuses to write for all of its users: because of its memory,
 * which scripts that only remove may still do, or as a replica.
 */

static void
test_server(void **state)
{
    int          hide;
    size_t       i;
    const char  *full[2], *replica[2];

    ok(&server, "ACL SETUSER restricted reset on >x ~* +@all");

    for (i = 0; i < N_CASES; i++) {
        for (hide = 0; hide < 2; hide++) {
            assert_null(all_or_nothing(&cases[i], "nothing", hide, NULL,
                                       NULL));

            full[hide] = all_or_nothing(&cases[i], "memory", hide,
                                        "CONFIG SET maxmemory 1",
                                        "CONFIG SET maxmemory 0");
            replica[hide] = all_or_nothing(&cases[i], "its primary", hide,
                                           "REPLICAOF 127.0.0.1 1",
                                           "REPLICAOF NO ONE");

            assert_true(full[hide] == NULL
                        || strncmp(full[hide], "OOM ", 4) == 0);
            assert_true(replica[hide] == NULL
                        || strncmp(replica[hide], "READONLY ", 9) == 0);
        }

        assert_int_equal(full[0] == NULL, full[1] == NULL);
        assert_int_equal(replica[0] == NULL, replica[1] == NULL);
    }
}


static int
start_users(void **state)
{
    (void) start(state);

    restricted = server;
    restricted.client = redisConnectUnix(server.path);
    monitor = redisConnectUnix(server.path);
    assert_true(restricted.client != NULL && restricted.client->err == 0);
    assert_true(monitor != NULL && monitor->err == 0);

    ok(&server, "ACL SETUSER restricted reset on >x ~* +@all");
    freeReplyObject(query(&restricted, "AUTH restricted x"));
    freeReplyObject(redisCommand(monitor, "MONITOR"));

    return 0;
}


static int
stop_users(void **state)
{
    redisFree(restricted.client);
    redisFree(monitor);

    return stop(state);
}


int
main(void)
{
#define test(name)  cmocka_unit_test_setup_teardown(name, begin, end)

    const struct CMUnitTest  tests[] = {
        test(test_cases_are_complete),
        test(test_each_command),
        test(test_each_command_without_check),
        test(test_each_key),
        test(test_each_key_without_check),
        test(test_server)
    };

    return cmocka_run_group_tests(tests, start_users, stop_users);
}
