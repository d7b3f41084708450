
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <inttypes.h>

#include "command.h"
#include "conversations.h"
#include "conversations_scripts.h"
#include "resp.h"


#define DSA_SCHEMA_WORDS  16


static int dsa_schema_turn_key(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    char kind, dsa_str_t tenant, dsa_str_t id);
static int dsa_schema_turn_lease(dsa_schema_command_t *cmd,
    dsa_arena_t *arena, const char *script, dsa_str_t tenant, dsa_str_t id,
    dsa_str_t owner);


int
dsa_schema_begin(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id, dsa_str_t owner)
{
    if (dsa_command_start(cmd, arena, DSA_SCHEMA_WORDS) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_eval(cmd, dsa_schema_begin_script, "2");

    if (dsa_schema_turn_key(cmd, arena, 'c', tenant, id) != DSA_OK
        || dsa_schema_turn_key(cmd, arena, 'l', tenant, id) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, owner);

    return dsa_command_wordf(cmd, arena, "%d", DSA_SCHEMA_LEASE);
}


int
dsa_schema_begun(dsa_schema_change_e *result,
    dsa_schema_conversation_t *c, dsa_arena_t *arena, const redisReply *reply,
    dsa_err_t *err)
{
    redisReply  fields;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0) {
        if (dsa_schema_change(result, reply, err) != DSA_OK) {
            return DSA_ERROR;
        }

        return *result != DSA_SCHEMA_CHANGE_DONE ? DSA_OK
               : dsa_error(err, "the reply of the script that begins a turn "
                           "has no conversation");
    }

    if (dsa_schema_change(result, reply->element[0], err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (*result != DSA_SCHEMA_CHANGE_DONE) {
        return DSA_OK;
    }

    fields = *reply;
    fields.element++;
    fields.elements--;

    switch (dsa_schema_conversation(c, arena, &fields, err)) {

    case DSA_OK:
        return DSA_OK;

    case DSA_AGAIN:
        return dsa_error(err, "the reply of the script that begins a turn has "
                         "no fields");

    default:
        return DSA_ERROR;
    }
}


int
dsa_schema_renew(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id, dsa_str_t owner)
{
    if (dsa_schema_turn_lease(cmd, arena, dsa_schema_renew_script,
                               tenant, id, owner)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_command_wordf(cmd, arena, "%d", DSA_SCHEMA_LEASE);
}


int
dsa_schema_release(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id, dsa_str_t owner)
{
    return dsa_schema_turn_lease(cmd, arena, dsa_schema_release_script,
                                  tenant, id, owner);
}


static int
dsa_schema_turn_lease(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const char *script, dsa_str_t tenant, dsa_str_t id, dsa_str_t owner)
{
    if (dsa_command_start(cmd, arena, DSA_SCHEMA_WORDS) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_eval(cmd, script, "1");

    if (dsa_schema_turn_key(cmd, arena, 'l', tenant, id) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, owner);

    return DSA_OK;
}


int
dsa_schema_add(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id, const dsa_schema_storage_t *storage,
    const dsa_str_t *entries, uint32_t n)
{
    uint32_t  i;

    if (dsa_command_start(cmd, arena, DSA_SCHEMA_WORDS + n) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_eval(cmd, dsa_schema_add_script, "3");

    if (dsa_schema_turn_key(cmd, arena, 'c', tenant, id) != DSA_OK
        || dsa_schema_turn_key(cmd, arena, 'l', tenant, id) != DSA_OK
        || dsa_command_account(cmd, arena, tenant) != DSA_OK
        || dsa_command_ttl(cmd, arena, storage->ttl) != DSA_OK
        || dsa_command_quota(cmd, arena, storage) != DSA_OK
        || dsa_command_wordf(cmd, arena, "%d", DSA_SCHEMA_MAX_MESSAGES)
           != DSA_OK
        || dsa_command_wordf(cmd, arena, "%d", DSA_SCHEMA_MAX_BYTES) != DSA_OK)
    {
        return DSA_ERROR;
    }

    for (i = 0; i < n; i++) {
        dsa_command_word(cmd, entries[i]);
    }

    return DSA_OK;
}


int
dsa_schema_edit(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id, int64_t version, int64_t ttl,
    int64_t number, dsa_str_t text)
{
    if (dsa_command_start(cmd, arena, DSA_SCHEMA_WORDS) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_eval(cmd, dsa_schema_edit_script, "3");

    if (dsa_schema_turn_key(cmd, arena, 'c', tenant, id) != DSA_OK
        || dsa_schema_turn_key(cmd, arena, 'l', tenant, id) != DSA_OK
        || dsa_command_account(cmd, arena, tenant) != DSA_OK
        || dsa_command_wordf(cmd, arena, "%" PRId64, version) != DSA_OK
        || dsa_command_ttl(cmd, arena, ttl) != DSA_OK
        || dsa_command_wordf(cmd, arena, "%" PRId64, number) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, text);

    return DSA_OK;
}


int
dsa_schema_change(dsa_schema_change_e *result,
    const redisReply *reply, dsa_err_t *err)
{
    int64_t  n;

    if (dsa_schema_integer(reply, &n, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (n < DSA_SCHEMA_CHANGE_DONE || n > DSA_SCHEMA_CHANGE_CHANGED) {
        return dsa_error(err, "%" PRId64 " is not a result of the scripts for "
                         "conversations", n);
    }

    *result = (dsa_schema_change_e) n;

    return DSA_OK;
}


int
dsa_schema_metadata(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id, const dsa_schema_storage_t *storage,
    dsa_str_t metadata)
{
    if (dsa_command_start(cmd, arena, DSA_SCHEMA_WORDS) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_eval(cmd, dsa_schema_metadata_script, "2");

    if (dsa_schema_turn_key(cmd, arena, 'c', tenant, id) != DSA_OK
        || dsa_command_account(cmd, arena, tenant) != DSA_OK
        || dsa_command_quota(cmd, arena, storage) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, metadata);

    return DSA_OK;
}


/* kind: "c" of a conversation, "l" of its lease. */

static int
dsa_schema_turn_key(dsa_schema_command_t *cmd, dsa_arena_t *arena, char kind,
    dsa_str_t tenant, dsa_str_t id)
{
    return dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:%c:%.*s",
                             (int) tenant.len, tenant.data, kind,
                             (int) id.len, id.data);
}
