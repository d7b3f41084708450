
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "resp.h"
#include "responses.h"
#include "responses_scripts.h"


#define DSA_RESPONSE_WORDS  16
#define DSA_RESPONSE_KEYS   "dsa1:{%.*s}:r:"    /* of a tenant */


static int dsa_response_words(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const char *name, const char *script);
static int dsa_response_key(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id);
static void dsa_response_word(dsa_schema_command_t *cmd, dsa_str_t word);
static int dsa_response_wordf(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static int dsa_response_unexpected(const redisReply *reply, dsa_err_t *err);


int
dsa_response_id_ok(dsa_str_t id)
{
    char    c;
    size_t  i, n;

    n = sizeof(DSA_RESPONSE_ID_PREFIX) - 1;

    if (id.len != DSA_RESPONSE_ID_LEN
        || memcmp(id.data, DSA_RESPONSE_ID_PREFIX, n) != 0)
    {
        return 0;
    }

    for (i = n; i < id.len; i++) {
        c = id.data[i];

        if ((c < 'a' || c > 'f') && (c < '0' || c > '9')) {
            return 0;
        }
    }

    return 1;
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
    dsa_str_t tenant, const dsa_response_t *node, int64_t created, int64_t ttl)
{
    if (dsa_response_words(cmd, arena, "EVAL", dsa_response_save_script)
        != DSA_OK
        || dsa_response_key(cmd, arena, tenant, node->id) != DSA_OK
        || dsa_response_wordf(cmd, arena, DSA_RESPONSE_KEYS,
                              (int) tenant.len, tenant.data)
           != DSA_OK
        || dsa_response_wordf(cmd, arena, "%d", DSA_RESPONSE_MAX_DEPTH)
           != DSA_OK
        || dsa_response_wordf(cmd, arena, "%" PRId64, ttl) != DSA_OK
        || dsa_response_wordf(cmd, arena, "%" PRId64, created) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_response_word(cmd, node->parent);
    dsa_response_word(cmd, node->input);
    dsa_response_word(cmd, node->before);
    dsa_response_word(cmd, node->output);
    dsa_response_word(cmd, node->after);
    dsa_response_word(cmd, node->conversation);

    return DSA_OK;
}


int
dsa_response_chain(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id)
{
    if (dsa_response_words(cmd, arena, "EVAL", dsa_response_chain_script)
        != DSA_OK
        || dsa_response_key(cmd, arena, tenant, id) != DSA_OK
        || dsa_response_wordf(cmd, arena, DSA_RESPONSE_KEYS,
                              (int) tenant.len, tenant.data)
           != DSA_OK
        || dsa_response_wordf(cmd, arena, "%d", DSA_RESPONSE_MAX_DEPTH)
           != DSA_OK
        || dsa_response_wordf(cmd, arena, "%d", DSA_RESPONSE_MAX_BYTES)
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
    if (dsa_response_words(cmd, arena, "HMGET", NULL) != DSA_OK
        || dsa_response_key(cmd, arena, tenant, id) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_response_word(cmd, dsa_strz("before"));
    dsa_response_word(cmd, dsa_strz("output"));
    dsa_response_word(cmd, dsa_strz("after"));

    return DSA_OK;
}


int
dsa_response_load_input(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id)
{
    if (dsa_response_words(cmd, arena, "HMGET", NULL) != DSA_OK
        || dsa_response_key(cmd, arena, tenant, id) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_response_word(cmd, dsa_strz("input"));

    return DSA_OK;
}


int
dsa_response_delete(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id)
{
    if (dsa_response_words(cmd, arena, "UNLINK", NULL) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_response_key(cmd, arena, tenant, id);
}


/* The first words; a script is followed by its number of keys, which is 1. */

static int
dsa_response_words(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const char *name, const char *script)
{
    cmd->argc = 0;
    cmd->argv = dsa_arena_alloc(arena, DSA_RESPONSE_WORDS * sizeof(dsa_str_t));

    if (cmd->argv == NULL) {
        return DSA_ERROR;
    }

    dsa_response_word(cmd, dsa_strz(name));

    if (script != NULL) {
        dsa_response_word(cmd, dsa_strz(script));
        dsa_response_word(cmd, dsa_strz("1"));
    }

    return DSA_OK;
}


static int
dsa_response_key(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id)
{
    return dsa_response_wordf(cmd, arena, DSA_RESPONSE_KEYS "%.*s",
                              (int) tenant.len, tenant.data,
                              (int) id.len, id.data);
}


static void
dsa_response_word(dsa_schema_command_t *cmd, dsa_str_t word)
{
    cmd->argv[cmd->argc++] = word;
}


static int
dsa_response_wordf(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const char *fmt, ...)
{
    int      n;
    char     buf[256], *word;
    va_list  args;

    va_start(args, fmt);
    n = vsnprintf(buf, sizeof(buf), fmt, args);
    va_end(args);

    if (n < 0 || (size_t) n >= sizeof(buf)) {
        return DSA_ERROR;
    }

    word = dsa_arena_dup(arena, dsa_str(buf, n));
    if (word == NULL) {
        return DSA_ERROR;
    }

    dsa_response_word(cmd, dsa_str(word, n));

    return DSA_OK;
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
