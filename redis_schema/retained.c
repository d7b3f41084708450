
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <inttypes.h>
#include <stdio.h>

#include "redis_schema/command.h"
#include "redis_schema/resp.h"
#include "redis_schema/retained.h"
#include "redis_schema/scripts.h"


#define DSA_RETAINED_PREFIX   "dsa1:{"
#define DSA_RETAINED_MIDDLE   "}:s:"

/* Redis adds the time of day to it, in a signed integer of 64 bits */

#define DSA_RETAINED_TTL_MAX  (100ULL * 366 * 24 * 3600 * 1000)


static int dsa_retained_key(dsa_str_t *word, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t key);
static int dsa_retained_number(dsa_str_t *word, dsa_arena_t *arena,
    uint64_t n);


int
dsa_schema_retain(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t key, uint64_t ttl,
    const dsa_schema_storage_t *storage, dsa_str_t answer)
{
    if (ttl == 0 || ttl > DSA_RETAINED_TTL_MAX
        || dsa_command_start(cmd, arena, 9) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_eval(cmd, dsa_schema_retain_script, "2");

    if (dsa_retained_key(&cmd->argv[cmd->argc++], arena, tenant, key)
        != DSA_OK
        || dsa_command_account(cmd, arena, tenant) != DSA_OK
        || dsa_command_wordf(cmd, arena, "%" PRIu64, ttl) != DSA_OK
        || dsa_command_quota(cmd, arena, storage) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, answer);

    return DSA_OK;
}


int
dsa_schema_load_retained(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, const dsa_str_t *keys, uint32_t n)
{
    uint32_t  i;

    if (n == 0 || n > DSA_SCHEMA_RETAINED_KEYS) {
        return DSA_ERROR;
    }

    cmd->argc = 4 + n;
    cmd->argv = dsa_arena_alloc(arena, cmd->argc * sizeof(dsa_str_t));

    if (cmd->argv == NULL) {
        return DSA_ERROR;
    }

    cmd->argv[0] = dsa_strz("EVAL");
    cmd->argv[1] = dsa_strz(dsa_schema_retained_script);

    if (dsa_retained_number(&cmd->argv[2], arena, n) != DSA_OK) {
        return DSA_ERROR;
    }

    for (i = 0; i < n; i++) {
        if (dsa_retained_key(&cmd->argv[3 + i], arena, tenant, keys[i])
            != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return dsa_retained_number(&cmd->argv[3 + n], arena,
                               DSA_SCHEMA_RETAINED_BYTES);
}


int
dsa_schema_retained(dsa_str_t *answers, uint32_t n, const redisReply *reply,
    dsa_err_t *err)
{
    char               text[DSA_RESP_TEXT];
    uint32_t           i;
    const redisReply  *answer;

    if (reply->type == REDIS_REPLY_ERROR) {
        return dsa_error(err, "Redis replied \"%s\"",
                         dsa_resp_text(text, reply->str, reply->len));
    }

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != n) {
        return dsa_error(err, "Redis sent a reply of type %d that is not an "
                         "array of %u retained answers", reply->type, n);
    }

    for (i = 0; i < n; i++) {
        answer = reply->element[i];

        if (answer->type == REDIS_REPLY_STRING) {
            answers[i] = dsa_str(answer->str, answer->len);

        } else if (answer->type == REDIS_REPLY_NIL) {
            answers[i] = dsa_str(NULL, 0);

        } else {
            return dsa_error(err, "answer %u of the reply has type %d", i,
                             answer->type);
        }
    }

    return DSA_OK;
}


static int
dsa_retained_key(dsa_str_t *word, dsa_arena_t *arena, dsa_str_t tenant,
    dsa_str_t key)
{
    int     n;
    char   *p;
    size_t  size;

    if (!dsa_schema_name_ok(tenant) || !dsa_schema_name_ok(key)) {
        return DSA_ERROR;
    }

    size = sizeof(DSA_RETAINED_PREFIX DSA_RETAINED_MIDDLE) + tenant.len
           + key.len;

    p = dsa_arena_alloc(arena, size);

    if (p == NULL) {
        return DSA_ERROR;
    }

    n = snprintf(p, size, DSA_RETAINED_PREFIX "%.*s" DSA_RETAINED_MIDDLE
                 "%.*s", (int) tenant.len, tenant.data, (int) key.len,
                 key.data);

    *word = dsa_str(p, n);

    return DSA_OK;
}


static int
dsa_retained_number(dsa_str_t *word, dsa_arena_t *arena, uint64_t n)
{
    int   len;
    char  text[24], *p;

    len = snprintf(text, sizeof(text), "%" PRIu64, n);
    p = dsa_arena_dup(arena, dsa_str(text, len));

    if (p == NULL) {
        return DSA_ERROR;
    }

    *word = dsa_str(p, len);

    return DSA_OK;
}
