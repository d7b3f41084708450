
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts.h"
#include "window.h"


#define DSA_SCHEMA_WINDOW_HEX  (2 * DSA_SCHEMA_WINDOW_DIGEST)


static uint32_t dsa_schema_window_number(const char *p, size_t len);
static int dsa_schema_window_key(dsa_str_t *key, dsa_arena_t *arena,
    dsa_str_t tenant, const uint8_t *digest);


int
dsa_schema_window_load(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, const uint8_t *digests, uint32_t n)
{
    uint32_t  i;

    assert(n != 0 && n <= DSA_SCHEMA_WINDOW_KEYS);

    cmd->argv = dsa_arena_alloc(arena, (1 + n) * sizeof(dsa_str_t));
    if (cmd->argv == NULL) {
        return DSA_ERROR;
    }

    cmd->argv[0] = dsa_strz("MGET");

    for (i = 0; i < n; i++) {
        if (dsa_schema_window_key(&cmd->argv[1 + i], arena, tenant,
                                  digests + i * DSA_SCHEMA_WINDOW_DIGEST)
            != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    cmd->argc = 1 + n;

    return DSA_OK;
}


uint32_t
dsa_schema_window_cut(const redisReply *reply, uint32_t n, uint32_t i)
{
    const redisReply  *value;

    assert(i < n);

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != n) {
        return 0;
    }

    value = reply->element[i];

    if (value->type != REDIS_REPLY_STRING
        || value->len < 4 || value->len >= DSA_SCHEMA_WINDOW_VALUE
        || memcmp(value->str, "v1 ", 3) != 0)
    {
        return 0;
    }

    return dsa_schema_window_number(value->str + 3, value->len - 3);
}


/* 0: it is not a number, or larger than a cut can be. */

static uint32_t
dsa_schema_window_number(const char *p, size_t len)
{
    size_t    i;
    uint32_t  n;

    n = 0;

    for (i = 0; i < len; i++) {
        if (p[i] < '0' || p[i] > '9' || n > 99999999) {
            return 0;
        }

        n = n * 10 + (uint32_t) (p[i] - '0');
    }

    return n;
}


int
dsa_schema_window_store(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, const uint8_t *digest, uint32_t cut)
{
    char   value[DSA_SCHEMA_WINDOW_VALUE], ttl[16];
    char  *words[2];

    assert(cut != 0 && cut <= 999999999);

    cmd->argc = 5;
    cmd->argv = dsa_arena_alloc(arena, cmd->argc * sizeof(dsa_str_t));

    (void) snprintf(value, sizeof(value), "v1 %u", cut);
    (void) snprintf(ttl, sizeof(ttl), "%d", DSA_SCHEMA_WINDOW_TTL);

    words[0] = dsa_arena_dup(arena, dsa_strz(value));
    words[1] = dsa_arena_dup(arena, dsa_strz(ttl));

    if (cmd->argv == NULL || words[0] == NULL || words[1] == NULL) {
        return DSA_ERROR;
    }

    cmd->argv[0] = dsa_strz("SET");
    cmd->argv[2] = dsa_strz(words[0]);
    cmd->argv[3] = dsa_strz("EX");
    cmd->argv[4] = dsa_strz(words[1]);

    return dsa_schema_window_key(&cmd->argv[1], arena, tenant, digest);
}


int
dsa_schema_summary_load(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, const uint8_t *digests, uint32_t n)
{
    char      count[16], limit[16];
    char     *words[2];
    uint32_t  i;

    assert(n != 0 && n <= DSA_SCHEMA_WINDOW_KEYS);

    (void) snprintf(count, sizeof(count), "%u", n);
    (void) snprintf(limit, sizeof(limit), "%d",
                    DSA_SCHEMA_WINDOW_VALUE + DSA_SCHEMA_WINDOW_SUMMARY);

    cmd->argc = 4 + n;
    cmd->argv = dsa_arena_alloc(arena, cmd->argc * sizeof(dsa_str_t));
    words[0] = dsa_arena_dup(arena, dsa_strz(count));
    words[1] = dsa_arena_dup(arena, dsa_strz(limit));

    if (cmd->argv == NULL || words[0] == NULL || words[1] == NULL) {
        return DSA_ERROR;
    }

    cmd->argv[0] = dsa_strz("EVAL");
    cmd->argv[1] = dsa_strz(dsa_schema_summary_script);
    cmd->argv[2] = dsa_strz(words[0]);
    cmd->argv[3 + n] = dsa_strz(words[1]);

    for (i = 0; i < n; i++) {
        if (dsa_schema_window_key(&cmd->argv[3 + i], arena, tenant,
                                  digests + i * DSA_SCHEMA_WINDOW_DIGEST)
            != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


uint32_t
dsa_schema_summary(const redisReply *reply, uint32_t n, uint32_t *i,
    dsa_str_t *summary)
{
    const char        *space;
    const redisReply  *index, *value;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) {
        return 0;
    }

    index = reply->element[0];
    value = reply->element[1];

    if (index->type != REDIS_REPLY_INTEGER || index->integer < 1
        || index->integer > n || value->type != REDIS_REPLY_STRING
        || value->len < 3 || memcmp(value->str, "s1 ", 3) != 0)
    {
        return 0;
    }

    space = memchr(value->str + 3, ' ', value->len - 3);

    if (space == NULL || space + 1 == value->str + value->len) {
        return 0;
    }

    *i = (uint32_t) index->integer - 1;
    *summary = dsa_str(space + 1, value->str + value->len - (space + 1));

    return dsa_schema_window_number(value->str + 3, space - (value->str + 3));
}


int
dsa_schema_summary_store(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, const uint8_t *digest, uint32_t cut, dsa_str_t summary)
{
    int    n;
    char   ttl[16];
    char  *value, *word;

    assert(cut != 0 && cut <= 999999999);
    assert(summary.len != 0 && summary.len <= DSA_SCHEMA_WINDOW_SUMMARY);

    (void) snprintf(ttl, sizeof(ttl), "%d", DSA_SCHEMA_WINDOW_TTL);

    cmd->argc = 5;
    cmd->argv = dsa_arena_alloc(arena, cmd->argc * sizeof(dsa_str_t));
    value = dsa_arena_alloc(arena, DSA_SCHEMA_WINDOW_VALUE + summary.len);
    word = dsa_arena_dup(arena, dsa_strz(ttl));

    if (cmd->argv == NULL || value == NULL || word == NULL) {
        return DSA_ERROR;
    }

    n = snprintf(value, DSA_SCHEMA_WINDOW_VALUE, "s1 %u ", cut);

    assert(n > 0 && n < DSA_SCHEMA_WINDOW_VALUE);

    memcpy(value + n, summary.data, summary.len);

    cmd->argv[0] = dsa_strz("SET");
    cmd->argv[2] = dsa_str(value, n + summary.len);
    cmd->argv[3] = dsa_strz("EX");
    cmd->argv[4] = dsa_strz(word);

    return dsa_schema_window_key(&cmd->argv[1], arena, tenant, digest);
}


static int
dsa_schema_window_key(dsa_str_t *key, dsa_arena_t *arena, dsa_str_t tenant,
    const uint8_t *digest)
{
    int       n;
    char     *p;
    size_t    size;
    uint32_t  i;

    static const char  hex[] = "0123456789abcdef";

    if (!dsa_schema_name_ok(tenant)) {
        return DSA_ERROR;
    }

    size = sizeof("dsa1:{}:w:") + tenant.len + DSA_SCHEMA_WINDOW_HEX;

    p = dsa_arena_alloc(arena, size);
    if (p == NULL) {
        return DSA_ERROR;
    }

    n = snprintf(p, size, "dsa1:{%.*s}:w:", (int) tenant.len, tenant.data);

    for (i = 0; i < DSA_SCHEMA_WINDOW_DIGEST; i++) {
        p[n++] = hex[digest[i] >> 4];
        p[n++] = hex[digest[i] & 15];
    }

    *key = dsa_str(p, (size_t) n);

    return DSA_OK;
}
