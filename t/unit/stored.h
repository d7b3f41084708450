
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Conversations and records of requests in a redis-server, for tests of the
 * scripts that write them.
 */


#ifndef _T_STORED_H_INCLUDED_
#define _T_STORED_H_INCLUDED_


#include <inttypes.h>

#include "t/unit/schema.h"


#define TENANT   "0123456789abcdef0123456789abcdef"
#define OTHER    "ffffffffffffffffffffffffffffffff"
#define ID       "conv_00112233445566778899aabbccddeeff"

#define SENDER   0x0123456789abcdefULL

#define KEY      "dsa1:{" TENANT "}:c:" ID
#define DONE     "dsa1:{" TENANT "}:done:0123456789abcdef"
#define LEDGER   "dsa1:{" TENANT "}:ledger:2099-02-03"

#define SYSTEM   "{\"role\": \"system\", \"content\": \"be brief\"}"
#define USER     "{\"role\": \"user\", \"content\": \"question\"}"
#define CALL     "{\"role\": \"assistant\", \"content\": \"\"}"
#define TOOL     "{\"role\": \"tool\", \"content\": \"22\"}"
#define ANSWER   "{\"role\": \"assistant\", \"content\": \"ok\"}"

/* 2099-02-03 23:59:59 UTC */
#define WHEN     4073846399LL


static const dsa_schema_storage_t  storage = { 600, 1 << 30, 1000000 };


static inline void
create(const char *tenant, const dsa_str_t *messages, uint32_t n)
{
    int64_t               made;
    dsa_err_t             err;
    redisReply           *reply;
    dsa_schema_command_t  cmd;

    assert_int_equal(dsa_schema_create(&cmd, arena, dsa_strz(tenant),
                                       dsa_strz(ID), 1234, &storage,
                                       dsa_strz("{}"), messages, n),
                     DSA_OK);

    reply = run(&cmd);
    assert_int_equal(dsa_schema_integer(reply, &made, &err), DSA_OK);
    assert_int_equal(made, 1);
    freeReplyObject(reply);
}


static inline int
load(dsa_schema_conversation_t *c, const char *tenant, redisReply **reply,
    dsa_err_t *err)
{
    dsa_schema_command_t  cmd;

    assert_int_equal(dsa_schema_load(&cmd, arena, dsa_strz(tenant),
                                     dsa_strz(ID)), DSA_OK);

    *reply = run(&cmd);

    return dsa_schema_conversation(c, arena, *reply, err);
}


/* want: the first letter of the role of each stored message. */

static inline void
assert_roles(const char *want, int64_t version)
{
    char                        roles[64];
    uint32_t                    i;
    dsa_err_t                   err;
    redisReply                 *reply;
    dsa_schema_conversation_t   c;

    assert_int_equal(load(&c, TENANT, &reply, &err), DSA_OK);
    assert_true(c.n_messages < sizeof(roles));

    for (i = 0; i < c.n_messages; i++) {
        roles[i] = c.messages[i].data[sizeof("{\"role\": \"") - 1];
    }

    roles[i] = '\0';

    assert_string_equal(roles, want);
    assert_int_equal(c.version, version);

    freeReplyObject(reply);
}


static inline dsa_schema_entry_t
request(const char *id)
{
    dsa_schema_entry_t  r;

    memset(&r, 0, sizeof(r));

    r.sender = SENDER;
    r.number = 1;
    r.request = dsa_strz(id);
    r.tenant = dsa_strz(TENANT);
    r.model = dsa_strz("v3|2");
    r.time = WHEN;
    r.prompt_tokens = 1000;
    r.cached_tokens = 640;
    r.tier_tokens[DSA_TIER_HOST] = 128;
    r.tier_tokens[DSA_TIER_REDIS] = 64;
    r.completion_tokens = 20;
    r.reasoning_tokens = 7;
    r.storage = &storage;
    r.max_messages = 100;
    r.max_bytes = 100000;

    return r;
}


/* If the id of the request is "r" and a number, its cell has that number. */

static inline int
record(const dsa_schema_entry_t *r, dsa_schema_result_e *result, int *again,
    dsa_err_t *err)
{
    int                   rc;
    redisReply           *reply;
    dsa_schema_entry_t    own;
    dsa_schema_command_t  cmd;

    own = *r;

    if (r->request.data[0] == 'r') {
        own.cell = (uint32_t) atoi(&r->request.data[1]);
    }

    assert_int_equal(dsa_schema_record(&cmd, arena, &own, 0), DSA_OK);
    reply = run(&cmd);

    if (dsa_resp_is_error(reply, "NOSCRIPT")) {
        freeReplyObject(reply);
        assert_int_equal(dsa_schema_record(&cmd, arena, &own, 1), DSA_OK);
        reply = run(&cmd);
    }

    rc = dsa_schema_recorded(reply, result, again, err);
    freeReplyObject(reply);

    return rc;
}


static inline void
assert_recorded(const dsa_schema_entry_t *r, dsa_schema_result_e want,
    int want_again)
{
    int                  again;
    dsa_err_t            err;
    dsa_schema_result_e  result;

    assert_int_equal(record(r, &result, &again, &err), DSA_OK);
    assert_int_equal(result, want);
    assert_int_equal(again, want_again);
}


/* The number in a field of a hash. */

static inline long long
value(const char *fmt, ...)
{
    long long    n;
    va_list      args;
    redisReply  *reply;

    va_start(args, fmt);
    reply = redisvCommand(server.client, fmt, args);
    va_end(args);

    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    n = atoll(reply->str);
    freeReplyObject(reply);

    return n;
}


#endif /* _T_STORED_H_INCLUDED_ */
