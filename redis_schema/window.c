
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "window.h"


#define DSA_SCHEMA_WINDOW_HEX  (2 * DSA_SCHEMA_WINDOW_DIGEST)


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
    uint32_t           k, cut;
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

    cut = 0;

    for (k = 3; k < value->len; k++) {
        if (value->str[k] < '0' || value->str[k] > '9' || cut > 99999999) {
            return 0;
        }

        cut = cut * 10 + (uint32_t) (value->str[k] - '0');
    }

    return cut;
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
