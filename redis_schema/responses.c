
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "id.h"
#include "progress.h"
#include "resp.h"
#include "responses_scripts.h"


#define DSA_RESPONSE_WORDS  20
#define DSA_RESPONSE_KEYS   "dsa1:{%.*s}:r:"    /* of a tenant */


static int dsa_response_items_one(dsa_response_items_t *items,
    dsa_arena_t *arena, redisReply **strings, uint32_t n, uint32_t entries,
    dsa_err_t *err);
static int dsa_response_hmget(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id);
static int dsa_response_progress(dsa_schema_command_t *cmd,
    dsa_arena_t *arena, dsa_str_t tenant, dsa_str_t id);
static int dsa_response_key(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id);
static int dsa_response_unexpected(const redisReply *reply, dsa_err_t *err);


int
dsa_response_id_ok(dsa_str_t id)
{
    return dsa_id_ok(id, dsa_strz(DSA_RESPONSE_ID_PREFIX), DSA_RESPONSE_ID_LEN);
}


int
dsa_response_fits(const dsa_response_t *node)
{
    return node->input.len <= DSA_RESPONSE_MAX_BYTES
           && node->before.len + node->output.len + node->after.len
              <= DSA_RESPONSE_MAX_BYTES
           && node->input.len + node->output.len <= DSA_RESPONSE_MAX_BYTES;
}


/* The scripts are short, so that each command carries its text. */

int
dsa_response_save(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, const dsa_response_t *node, int64_t created,
    const dsa_schema_storage_t *storage)
{
    if (dsa_command_start(cmd, arena, DSA_RESPONSE_WORDS) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_eval(cmd, dsa_response_save_script, "4");

    if (dsa_response_key(cmd, arena, tenant, node->id) != DSA_OK
        || dsa_command_account(cmd, arena, tenant) != DSA_OK
        || dsa_response_progress(cmd, arena, tenant, node->id) != DSA_OK
        || dsa_command_wordf(cmd, arena, DSA_RESPONSE_KEYS,
                              (int) tenant.len, tenant.data)
           != DSA_OK
        || dsa_command_wordf(cmd, arena, "%d", DSA_RESPONSE_MAX_DEPTH)
           != DSA_OK
        || dsa_command_ttl(cmd, arena, storage->ttl) != DSA_OK
        || dsa_command_quota(cmd, arena, storage) != DSA_OK
        || dsa_command_wordf(cmd, arena, "%" PRId64, created) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, node->parent);
    dsa_command_word(cmd, node->input);
    dsa_command_word(cmd, node->before);
    dsa_command_word(cmd, node->output);
    dsa_command_word(cmd, node->after);
    dsa_command_word(cmd, node->conversation);

    if (node->background) {
        return dsa_command_ttl(cmd, arena, DSA_PROGRESS_EVENTS_TTL);
    }

    dsa_command_word(cmd, dsa_str("", 0));

    return DSA_OK;
}


int
dsa_response_withdraw(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id)
{
    if (dsa_command_start(cmd, arena, DSA_RESPONSE_WORDS) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_eval(cmd, dsa_response_withdraw_script, "3");

    if (dsa_response_key(cmd, arena, tenant, id) != DSA_OK
        || dsa_command_account(cmd, arena, tenant) != DSA_OK
        || dsa_command_absent(cmd, arena, tenant) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_command_ttl(cmd, arena, DSA_RESPONSE_WITHDRAWN);
}


int
dsa_response_chain(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id)
{
    if (dsa_command_start(cmd, arena, DSA_RESPONSE_WORDS) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_eval(cmd, dsa_response_chain_script, "2");

    if (dsa_response_key(cmd, arena, tenant, id) != DSA_OK
        || dsa_command_absent(cmd, arena, tenant) != DSA_OK
        || dsa_command_wordf(cmd, arena, DSA_RESPONSE_KEYS,
                              (int) tenant.len, tenant.data)
           != DSA_OK
        || dsa_command_wordf(cmd, arena, "%d", DSA_RESPONSE_MAX_DEPTH)
           != DSA_OK
        || dsa_command_wordf(cmd, arena, "%d", DSA_RESPONSE_MAX_BYTES)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    return DSA_OK;
}


int
dsa_response_load(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id)
{
    if (dsa_response_hmget(cmd, arena, tenant, id) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, dsa_strz("before"));
    dsa_command_word(cmd, dsa_strz("output"));
    dsa_command_word(cmd, dsa_strz("after"));

    return DSA_OK;
}


int
dsa_response_load_input(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id)
{
    if (dsa_response_hmget(cmd, arena, tenant, id) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, dsa_strz("input"));

    return DSA_OK;
}


int
dsa_response_delete(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id)
{
    if (dsa_command_start(cmd, arena, DSA_RESPONSE_WORDS) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_eval(cmd, dsa_response_delete_script, "4");

    if (dsa_response_key(cmd, arena, tenant, id) != DSA_OK
        || dsa_command_account(cmd, arena, tenant) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_response_progress(cmd, arena, tenant, id);
}


int
dsa_response_items(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, const dsa_str_t *owners, uint32_t n)
{
    uint32_t  i;

    if (dsa_command_start(cmd, arena, 2 * n + DSA_RESPONSE_WORDS) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, dsa_strz("EVAL"));
    dsa_command_word(cmd, dsa_strz(dsa_response_items_script));

    if (dsa_command_wordf(cmd, arena, "%" PRIu32, 2 * n) != DSA_OK) {
        return DSA_ERROR;
    }

    for (i = 0; i < n; i++) {
        if (dsa_command_wordf(cmd, arena, DSA_RESPONSE_KEYS
                              DSA_RESPONSE_ID_PREFIX "%.*s",
                              (int) tenant.len, tenant.data,
                              (int) owners[i].len, owners[i].data)
            != DSA_OK
            || dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:c:"
                                 DSA_SCHEMA_ID_PREFIX "%.*s",
                                 (int) tenant.len, tenant.data,
                                 (int) owners[i].len, owners[i].data)
               != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    if (dsa_command_wordf(cmd, arena, "%d", DSA_SCHEMA_MAX_ELEMENTS)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_command_wordf(cmd, arena, "%d", DSA_RESPONSE_MAX_BYTES);
}


int
dsa_response_items_read(dsa_response_items_t *items, uint32_t n,
    dsa_arena_t *arena, const redisReply *reply, dsa_err_t *err)
{
    size_t       at;
    int64_t      count;
    uint32_t     i;
    redisReply  *number;

    if (reply->type != REDIS_REPLY_ARRAY) {
        return dsa_response_unexpected(reply, err);
    }

    memset(items, 0, n * sizeof(dsa_response_items_t));

    for (i = 0, at = 0; i < 2 * n; i++, at += (size_t) count) {
        number = at < reply->elements ? reply->element[at++] : NULL;
        count = number != NULL && number->type == REDIS_REPLY_INTEGER
                ? number->integer : -2;

        if (count == -1 && i == 0) {
            return DSA_AGAIN;
        }

        if (count < 0 || (size_t) count > reply->elements - at
            || count % 2 != 0 || (i % 2 == 0 && count > 2))
        {
            return dsa_error(err, "the reply of the script for items has "
                             "another form");
        }

        if (dsa_response_items_one(&items[i / 2], arena, &reply->element[at],
                                   (uint32_t) count, i % 2, err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/* The strings of one key: of a conversation if entries is 1. */

static int
dsa_response_items_one(dsa_response_items_t *items, dsa_arena_t *arena,
    redisReply **strings, uint32_t n, uint32_t entries, dsa_err_t *err)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        if (strings[i]->type != REDIS_REPLY_STRING) {
            return dsa_error(err, "an item is not a string");
        }
    }

    if (!entries) {
        if (n != 0) {
            items->input = dsa_str(strings[0]->str, strings[0]->len);
            items->output = dsa_str(strings[1]->str, strings[1]->len);
        }

        return DSA_OK;
    }

    items->n = n / 2;
    items->entries = dsa_arena_alloc(arena, (n / 2 + 1) * sizeof(dsa_str_t));
    items->numbers = dsa_arena_alloc(arena, (n / 2 + 1) * sizeof(int64_t));

    if (items->entries == NULL || items->numbers == NULL) {
        return dsa_error(err, "out of memory for items");
    }

    for (i = 0; i < n / 2; i++) {
        items->numbers[i] = strtoll(strings[2 * i]->str, NULL, 10);
        items->entries[i] = dsa_str(strings[2 * i + 1]->str,
                                    strings[2 * i + 1]->len);
    }

    return DSA_OK;
}


/* The first words; a script is followed by its number of keys, which is 1. */

/* HMGET of a node; the fields follow. */

static int
dsa_response_hmget(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id)
{
    if (dsa_command_start(cmd, arena, DSA_RESPONSE_WORDS) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, dsa_strz("HMGET"));

    return dsa_response_key(cmd, arena, tenant, id);
}


/* The keys of a response that is in progress, and of its events. */

static int
dsa_response_progress(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id)
{
    if (dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:p:%.*s",
                          (int) tenant.len, tenant.data,
                          (int) id.len, id.data)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:e:%.*s",
                             (int) tenant.len, tenant.data,
                             (int) id.len, id.data);
}


static int
dsa_response_key(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id)
{
    return dsa_command_wordf(cmd, arena, DSA_RESPONSE_KEYS "%.*s",
                             (int) tenant.len, tenant.data,
                             (int) id.len, id.data);
}


int
dsa_response_chain_read(dsa_response_result_e *result, dsa_str_t **lists,
    uint32_t *n, dsa_arena_t *arena, const redisReply *reply, dsa_err_t *err)
{
    size_t       i;
    redisReply  *code, *text;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0) {
        return dsa_response_unexpected(reply, err);
    }

    code = reply->element[0];

    if (code->type != REDIS_REPLY_INTEGER
        || code->integer < DSA_RESPONSE_FOUND
        || code->integer > DSA_RESPONSE_TURN)
    {
        return dsa_error(err, "the reply of the script for chains has no "
                         "result");
    }

    *result = (dsa_response_result_e) code->integer;
    *n = (uint32_t) (reply->elements - 1);

    *lists = dsa_arena_alloc(arena, reply->elements * sizeof(dsa_str_t));
    if (*lists == NULL) {
        return dsa_error(err, "out of memory for a chain of responses");
    }

    for (i = 1; i < reply->elements; i++) {
        text = reply->element[i];

        if (text->type != REDIS_REPLY_STRING) {
            return dsa_error(err, "a field of a response is not a string");
        }

        (*lists)[i - 1] = dsa_str(text->str, text->len);
    }

    return DSA_OK;
}


int
dsa_response_fields(dsa_str_t *fields, uint32_t n, const redisReply *reply,
    dsa_err_t *err)
{
    uint32_t     i, absent;
    redisReply  *value;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != n) {
        return dsa_response_unexpected(reply, err);
    }

    absent = 0;

    for (i = 0; i < n; i++) {
        value = reply->element[i];

        if (value->type == REDIS_REPLY_NIL) {
            absent++;

        } else if (value->type == REDIS_REPLY_STRING) {
            fields[i] = dsa_str(value->str, value->len);

        } else {
            return dsa_error(err, "a field of a response is not a string");
        }
    }

    if (absent == n) {
        return DSA_AGAIN;
    }

    if (absent != 0) {
        return dsa_error(err, "a stored response is damaged: %" PRIu32 " of "
                         "%" PRIu32 " fields are missing", absent, n);
    }

    return DSA_OK;
}


static int
dsa_response_unexpected(const redisReply *reply, dsa_err_t *err)
{
    char  text[DSA_RESP_TEXT];

    if (reply->type == REDIS_REPLY_ERROR) {
        return dsa_error(err, "Redis replied \"%s\"",
                         dsa_resp_text(text, reply->str, reply->len));
    }

    return dsa_error(err, "Redis sent a reply of unexpected type %d",
                     reply->type);
}
