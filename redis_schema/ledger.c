
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <inttypes.h>
#include <string.h>

#include "command.h"
#include "keys.h"
#include "ledger.h"
#include "resp.h"


#define DSA_LEDGER_DAY_MAX  2932896             /* 9999-12-31 */


static int dsa_ledger_number(const redisReply *reply, int64_t *n);
static int dsa_ledger_unexpected(const redisReply *reply, dsa_err_t *err);


static const char *const  dsa_ledger_names[DSA_LEDGER_COUNTS] = {
    [DSA_LEDGER_REQUESTS] = "requests",
    [DSA_LEDGER_PROMPT] = "prompt_tokens",
    [DSA_LEDGER_CACHED] = "cached_tokens",
    [DSA_LEDGER_COMPLETION] = "completion_tokens",
    [DSA_LEDGER_REASONING] = "reasoning_tokens",
    [DSA_LEDGER_COST_MISS] = "cost_miss",
    [DSA_LEDGER_COST_HIT] = "cost_hit",
    [DSA_LEDGER_COST_OUTPUT] = "cost_output"
};


const char *
dsa_ledger_name(dsa_ledger_count_e count)
{
    if (count >= DSA_LEDGER_CACHED_TIER && count < DSA_LEDGER_COMPLETION) {
        return dsa_tier_names[DSA_TIER_HOST + count
                              - DSA_LEDGER_CACHED_TIER].cached;
    }

    return dsa_ledger_names[count];
}


int
dsa_ledger_load(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, const char *period)
{
    if (!dsa_schema_name_ok(tenant)
        || dsa_command_start(cmd, arena, 2) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, dsa_strz("HGETALL"));

    return dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:ledger:%s",
                             (int) tenant.len, tenant.data, period);
}


int
dsa_ledger_reply(const redisReply *reply, dsa_err_t *err)
{
    size_t  i;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements % 2 != 0) {
        return dsa_ledger_unexpected(reply, err);
    }

    for (i = 0; i < reply->elements; i++) {
        if (reply->element[i]->type != REDIS_REPLY_STRING) {
            return dsa_ledger_unexpected(reply->element[i], err);
        }
    }

    return DSA_OK;
}


int
dsa_ledger_field(dsa_ledger_field_t *field, const redisReply *name,
    const redisReply *value, dsa_err_t *err)
{
    int          i;
    char         text[DSA_RESP_TEXT];
    dsa_str_t    count;
    const char  *bar;

    /* a model's name may contain "|" as well, so the last one counts */

    bar = memrchr(name->str, '|', name->len);

    if (bar == NULL) {
        return DSA_AGAIN;
    }

    field->model = dsa_str(name->str, (size_t) (bar - name->str));
    field->key = dsa_str(NULL, 0);
    count = dsa_str(bar + 1, name->len - field->model.len - 1);

    for (i = 0; i < DSA_LEDGER_COUNTS; i++) {
        if (dsa_str_eqz(count, dsa_ledger_name((dsa_ledger_count_e) i))) {
            break;
        }
    }

    if (i == DSA_LEDGER_COUNTS) {
        return DSA_AGAIN;
    }

    field->count = (dsa_ledger_count_e) i;

    if (field->model.len > DSA_KEY_ID_LEN
        && field->model.data[DSA_KEY_ID_LEN] == '|'
        && dsa_key_id_ok(dsa_str(field->model.data, DSA_KEY_ID_LEN)))
    {
        field->key = dsa_str(field->model.data, DSA_KEY_ID_LEN);
        field->model.data += DSA_KEY_ID_LEN + 1;
        field->model.len -= DSA_KEY_ID_LEN + 1;
    }

    if (dsa_ledger_number(value, &field->value) != DSA_OK) {
        return dsa_error(err, "the field \"%s\" is not a count",
                         dsa_resp_text(text, name->str, name->len));
    }

    return DSA_OK;
}


int
dsa_ledger_rolled(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant)
{
    if (!dsa_schema_name_ok(tenant)
        || dsa_command_start(cmd, arena, 2) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, dsa_strz("GET"));

    return dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:rolled",
                             (int) tenant.len, tenant.data);
}


int
dsa_ledger_rolled_reply(int64_t *day, const redisReply *reply, dsa_err_t *err)
{
    if (reply->type == REDIS_REPLY_NIL) {
        return DSA_AGAIN;
    }

    if (reply->type != REDIS_REPLY_STRING) {
        return dsa_ledger_unexpected(reply, err);
    }

    if (dsa_ledger_number(reply, day) != DSA_OK || *day < 0
        || *day > DSA_LEDGER_DAY_MAX)
    {
        return dsa_error(err, "the first day that is not folded is not a "
                         "number of days");
    }

    return DSA_OK;
}


/* 1 to 19 digits, with "-" before them if an operator corrected the value. */

static int
dsa_ledger_number(const redisReply *reply, int64_t *n)
{
    size_t    i, sign;
    uint64_t  v;

    sign = reply->len != 0 && reply->str[0] == '-';

    if (reply->len <= sign || reply->len > sign + 19) {
        return DSA_ERROR;
    }

    v = 0;

    for (i = sign; i < reply->len; i++) {
        if (reply->str[i] < '0' || reply->str[i] > '9') {
            return DSA_ERROR;
        }

        v = v * 10 + (uint64_t) (reply->str[i] - '0');
    }

    if (v > INT64_MAX) {
        return DSA_ERROR;
    }

    *n = sign ? -(int64_t) v : (int64_t) v;

    return DSA_OK;
}


static int
dsa_ledger_unexpected(const redisReply *reply, dsa_err_t *err)
{
    char  text[DSA_RESP_TEXT];

    if (reply->type == REDIS_REPLY_ERROR) {
        return dsa_error(err, "Redis replied \"%s\"",
                         dsa_resp_text(text, reply->str, reply->len));
    }

    return dsa_error(err, "the reply of Redis has the unexpected type %d",
                     reply->type);
}
