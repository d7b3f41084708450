
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <inttypes.h>
#include <string.h>

#include "command.h"
#include "resp.h"
#include "tenant.h"


typedef struct {
    const char         *name;       /* what follows the tenant in a key */
    int                 begins;     /* 1: the key has more after the name */
    dsa_tenant_kind_e   kind;
} dsa_tenant_key_t;


static const dsa_tenant_key_t  dsa_tenant_keys[] = {
    { "c:", 1, DSA_TENANT_CONVERSATION },
    { "l:", 1, DSA_TENANT_LEASE },
    { "r:", 1, DSA_TENANT_RESPONSE },
    { "p:", 1, DSA_TENANT_RESPONSE },
    { "e:", 1, DSA_TENANT_RESPONSE },
    { "s:", 1, DSA_TENANT_RETAINED },
    { "i:", 1, DSA_TENANT_IDEMPOTENCY },
    { "i", 0, DSA_TENANT_IDEMPOTENCY },
    { "w:", 1, DSA_TENANT_WINDOW },
    { "stored", 0, DSA_TENANT_ACCOUNT },
    { "ledger:", 1, DSA_TENANT_LEDGER },
    { "rolled", 0, DSA_TENANT_LEDGER },
    { "spend", 0, DSA_TENANT_SPEND },
    { "done:", 1, DSA_TENANT_MARKER }
};

#define DSA_TENANT_N_KEYS                                                     \
    (sizeof(dsa_tenant_keys) / sizeof(dsa_tenant_keys[0]))


static const char *const  dsa_tenant_names[DSA_TENANT_KINDS] = {
    [DSA_TENANT_CONVERSATION] = "conversations",
    [DSA_TENANT_LEASE] = "leases",
    [DSA_TENANT_RESPONSE] = "responses",
    [DSA_TENANT_RETAINED] = "retained answers",
    [DSA_TENANT_IDEMPOTENCY] = "idempotency keys",
    [DSA_TENANT_WINDOW] = "cuts and summaries",
    [DSA_TENANT_ACCOUNT] = "account",
    [DSA_TENANT_LEDGER] = "ledger",
    [DSA_TENANT_SPEND] = "amounts spent",
    [DSA_TENANT_MARKER] = "markers",
    [DSA_TENANT_OTHER] = "unknown"
};


const char *
dsa_tenant_name(dsa_tenant_kind_e kind)
{
    return dsa_tenant_names[kind];
}


int
dsa_tenant_kind(dsa_tenant_kind_e *kind, dsa_str_t tenant, dsa_str_t key)
{
    size_t                   i, len;
    dsa_str_t                rest;
    const dsa_tenant_key_t  *k;

    len = sizeof("dsa1:{}:") - 1 + tenant.len;

    if (key.len < len || memcmp(key.data, "dsa1:{", 6) != 0
        || memcmp(key.data + 6, tenant.data, tenant.len) != 0
        || memcmp(key.data + 6 + tenant.len, "}:", 2) != 0)
    {
        return DSA_AGAIN;
    }

    rest = dsa_str(key.data + len, key.len - len);

    for (i = 0; i < DSA_TENANT_N_KEYS; i++) {
        k = &dsa_tenant_keys[i];
        len = strlen(k->name);

        if (k->begins ? rest.len > len && memcmp(rest.data, k->name, len) == 0
                      : dsa_str_eqz(rest, k->name))
        {
            *kind = k->kind;
            return DSA_OK;
        }
    }

    *kind = DSA_TENANT_OTHER;

    return DSA_OK;
}


int
dsa_tenant_probe(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant)
{
    if (dsa_command_start(cmd, arena, 2) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, dsa_strz("EXISTS"));

    return dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:", (int) tenant.len,
                             tenant.data);
}


int
dsa_tenant_scan(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t cursor)
{
    /* a name that is not digits could be a pattern */

    if (!dsa_schema_name_ok(tenant)
        || dsa_command_start(cmd, arena, 6) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, dsa_strz("SCAN"));
    dsa_command_word(cmd, cursor);
    dsa_command_word(cmd, dsa_strz("MATCH"));

    if (dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:*", (int) tenant.len,
                          tenant.data)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, dsa_strz("COUNT"));

    return dsa_command_wordf(cmd, arena, "%d", DSA_TENANT_SCAN);
}


int
dsa_tenant_unlink(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_str_t *keys, uint32_t n)
{
    uint32_t  i;

    if (dsa_command_start(cmd, arena, 1 + n) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, dsa_strz("UNLINK"));

    for (i = 0; i < n; i++) {
        dsa_command_word(cmd, keys[i]);
    }

    return DSA_OK;
}


int
dsa_tenant_scan_reply(dsa_str_t *cursor, const redisReply **keys,
    const redisReply *reply, dsa_err_t *err)
{
    char               text[DSA_RESP_TEXT];
    size_t             i;
    const redisReply  *at, *found;

    if (reply->type == REDIS_REPLY_ERROR) {
        return dsa_error(err, "Redis replied \"%s\"",
                         dsa_resp_text(text, reply->str, reply->len));
    }

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2
        || reply->element[0]->type != REDIS_REPLY_STRING
        || reply->element[1]->type != REDIS_REPLY_ARRAY)
    {
        return dsa_error(err, "the reply to SCAN is not a cursor and keys");
    }

    at = reply->element[0];
    found = reply->element[1];

    for (i = 0; i < found->elements; i++) {
        if (found->element[i]->type != REDIS_REPLY_STRING) {
            return dsa_error(err, "the reply to SCAN has something that is not "
                             "a key");
        }
    }

    *cursor = dsa_str(at->str, at->len);
    *keys = found;

    return DSA_OK;
}
