
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Commands of redis_schema/ against a real redis-server, which is empty before
 * each test.  The tests read the results of a script with other commands.
 */


#ifndef _T_SCHEMA_H_INCLUDED_
#define _T_SCHEMA_H_INCLUDED_


#include "t/unit/redis_server.h"

#include "redis_schema/resp.h"
#include "redis_schema/schema.h"


static redis_t       server;
static dsa_arena_t  *arena;             /* of one test */


/* Before and after all tests of a program. */

static inline int
start(void **state)
{
    make_dir();
    redis_start(&server, "redis", "--port 0");

    return 0;
}


static inline int
stop(void **state)
{
    redis_stop(&server);
    remove_dir();

    return 0;
}


/* Before and after each test. */

static inline int
begin(void **state)
{
    ok(&server, "FLUSHALL");
    arena = dsa_arena_create(1 << 26);
    assert_non_null(arena);

    return 0;
}


static inline int
end(void **state)
{
    dsa_arena_destroy(arena);

    return 0;
}


/* Sends a command; the caller frees the reply, which may be an error. */

static inline redisReply *
run(const dsa_schema_command_t *cmd)
{
    size_t       *lens;
    uint32_t      i;
    redisReply   *reply;
    const char  **words;

    words = dsa_arena_alloc(arena, cmd->argc * sizeof(char *));
    lens = dsa_arena_alloc(arena, cmd->argc * sizeof(size_t));
    assert_true(words != NULL && lens != NULL);

    for (i = 0; i < cmd->argc; i++) {
        words[i] = cmd->argv[i].data;
        lens[i] = cmd->argv[i].len;
    }

    reply = redisCommandArgv(server.client, (int) cmd->argc, words, lens);
    assert_non_null(reply);

    return reply;
}


/*
 * The reply to a command of the test: a string, a status or an integer as text
 * in the arena, "(nil)" for nil.
 */

static inline const char *
text(const char *fmt, ...)
{
    char         number[32];
    va_list      args;
    const char  *value;
    redisReply  *reply;

    va_start(args, fmt);
    reply = redisvCommand(server.client, fmt, args);
    va_end(args);

    assert_non_null(reply);

    switch (reply->type) {

    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
        value = dsa_arena_dup(arena, dsa_str(reply->str, reply->len));
        break;

    case REDIS_REPLY_INTEGER:
        (void) snprintf(number, sizeof(number), "%lld", reply->integer);
        value = dsa_arena_dup(arena, dsa_strz(number));
        break;

    case REDIS_REPLY_NIL:
        value = "(nil)";
        break;

    default:
        fail_msg("the reply to \"%s\" is \"%s\"", fmt,
                 reply->str != NULL ? reply->str : "");
        value = NULL;
    }

    freeReplyObject(reply);
    assert_non_null(value);

    return value;
}


#define assert_text(want, ...)                                                \
    assert_string_equal(text(__VA_ARGS__), want)


#endif /* _T_SCHEMA_H_INCLUDED_ */
