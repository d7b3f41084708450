
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "id.h"
#include "keys.h"
#include "resp.h"
#include "schema.h"
#include "scripts.h"
#include "stored_scripts.h"


#define DSA_SCHEMA_NAME_MAX    128

/* 18 digits: the sum of two counts fits Redis's signed 64-bit integers */

#define DSA_SCHEMA_COUNT_MAX   999999999999999999ULL

/* 9999-12-31 */

#define DSA_SCHEMA_TIME_MAX    253402300799LL


typedef struct {
    int64_t      index;
    dsa_str_t    text;
} dsa_schema_item_t;


static int dsa_schema_count(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    uint64_t n);
static int dsa_schema_tiers_ok(const dsa_schema_entry_t *entry);
static int dsa_schema_tiers(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_schema_entry_t *entry);
static int dsa_schema_conversation_key(dsa_schema_command_t *cmd,
    dsa_arena_t *arena, dsa_str_t tenant, dsa_str_t id);
static int dsa_schema_day(char day[16], int64_t seconds);
static int dsa_schema_number(const redisReply *reply, int64_t *n);
static int dsa_schema_compare(const void *one, const void *two);
static int dsa_schema_unexpected(const redisReply *reply, dsa_err_t *err);


int
dsa_schema_name_ok(dsa_str_t name)
{
    char    c;
    size_t  i;

    if (name.len == 0 || name.len > DSA_SCHEMA_NAME_MAX) {
        return 0;
    }

    for (i = 0; i < name.len; i++) {
        c = name.data[i];

        if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
            && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.')
        {
            return 0;
        }
    }

    return 1;
}


int
dsa_schema_id_ok(dsa_str_t id)
{
    return dsa_id_ok(id, dsa_strz(DSA_SCHEMA_ID_PREFIX), DSA_SCHEMA_ID_LEN);
}


void
dsa_schema_make_id(char *id, const uint8_t random[DSA_SCHEMA_ID_RANDOM])
{
    size_t             i;

    static const char  hex[] = "0123456789abcdef";

    memcpy(id, DSA_SCHEMA_ID_PREFIX, sizeof(DSA_SCHEMA_ID_PREFIX) - 1);
    id += sizeof(DSA_SCHEMA_ID_PREFIX) - 1;

    for (i = 0; i < DSA_SCHEMA_ID_RANDOM; i++) {
        *id++ = hex[random[i] >> 4];
        *id++ = hex[random[i] & 0xf];
    }
}


int
dsa_schema_create(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id, int64_t created,
    const dsa_schema_storage_t *storage, dsa_str_t metadata,
    const dsa_str_t *messages, uint32_t n_messages)
{
    uint32_t  i;

    if (dsa_command_start(cmd, arena, 10 + n_messages) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_eval(cmd, dsa_schema_create_script, "2");

    if (dsa_schema_conversation_key(cmd, arena, tenant, id) != DSA_OK
        || dsa_command_account(cmd, arena, tenant) != DSA_OK
        || dsa_command_wordf(cmd, arena, "%" PRId64, created) != DSA_OK
        || dsa_command_ttl(cmd, arena, storage->ttl) != DSA_OK
        || dsa_command_quota(cmd, arena, storage) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, metadata);

    for (i = 0; i < n_messages; i++) {
        dsa_command_word(cmd, messages[i]);
    }

    return DSA_OK;
}


int
dsa_schema_delete(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id)
{
    if (dsa_command_start(cmd, arena, 5) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_eval(cmd, dsa_schema_delete_script, "2");

    if (dsa_schema_conversation_key(cmd, arena, tenant, id) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_command_account(cmd, arena, tenant);
}


int
dsa_schema_load(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id)
{
    if (dsa_command_start(cmd, arena, 2) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, dsa_strz("HGETALL"));

    return dsa_schema_conversation_key(cmd, arena, tenant, id);
}


int
dsa_schema_entry_ok(const dsa_schema_entry_t *entry)
{
    size_t  i;

    for (i = 0; i < entry->model.len; i++) {
        if ((unsigned char) entry->model.data[i] < 0x20
            || entry->model.data[i] == 0x7f)
        {
            return 0;
        }
    }

    return entry->model.len != 0
           && dsa_schema_name_ok(entry->request)
           && dsa_schema_name_ok(entry->tenant)
           && entry->time >= 0
           && entry->time <= DSA_SCHEMA_TIME_MAX
           && entry->prompt_tokens <= DSA_SCHEMA_COUNT_MAX
           && entry->cached_tokens <= DSA_SCHEMA_COUNT_MAX
           && dsa_schema_tiers_ok(entry)
           && entry->completion_tokens <= DSA_SCHEMA_COUNT_MAX
           && entry->reasoning_tokens <= DSA_SCHEMA_COUNT_MAX
           && entry->cost_miss >= 0
           && (uint64_t) entry->cost_miss <= DSA_SCHEMA_COUNT_MAX
           && entry->cost_hit >= 0
           && (uint64_t) entry->cost_hit <= DSA_SCHEMA_COUNT_MAX
           && entry->cost_output >= 0
           && (uint64_t) entry->cost_output <= DSA_SCHEMA_COUNT_MAX
           && (entry->key.len == 0 || dsa_key_id_ok(entry->key));
}


static int
dsa_schema_tiers_ok(const dsa_schema_entry_t *entry)
{
    uint32_t  i;
    uint64_t  left;

    left = entry->cached_tokens;

    for (i = DSA_TIER_HOST; i < DSA_TIERS; i++) {
        if (entry->tier_tokens[i] > left) {
            return 0;
        }

        left -= entry->tier_tokens[i];
    }

    return 1;
}


/* The fields of the tiers behind the GPU and their counts, as one word. */

static int
dsa_schema_tiers(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_schema_entry_t *entry)
{
    int       n;
    char      text[DSA_TIERS * 64];
    size_t    len;
    uint32_t  i;

    len = 0;

    for (i = DSA_TIER_HOST; i < DSA_TIERS; i++) {
        n = snprintf(text + len, sizeof(text) - len, "%s %" PRIu64 " ",
                     dsa_tier_names[i].cached, entry->tier_tokens[i]);

        assert(n > 0 && (size_t) n < sizeof(text) - len);

        len += (size_t) n;
    }

    return dsa_command_wordf(cmd, arena, "%s", text);
}


int
dsa_schema_record(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_schema_entry_t *entry, int text)
{
    int       named;
    char      day[16];
    uint32_t  i;

    named = entry->conversation.len != 0;

    if (dsa_schema_day(day, entry->time) != DSA_OK
        || entry->sender == 0 || entry->number == 0
        || entry->number > DSA_SCHEMA_NUMBER_MAX
        || dsa_command_start(cmd, arena, 41 + entry->n_messages) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (dsa_command_script(cmd, arena, dsa_schema_record_script,
                           named ? "9" : "6", text)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:done:%016" PRIx64,
                          (int) entry->tenant.len, entry->tenant.data,
                          entry->sender)
        != DSA_OK
        || dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:ledger:%s",
                             (int) entry->tenant.len, entry->tenant.data,
                             day)
        != DSA_OK
        || dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:ledger:%.7s",
                             (int) entry->tenant.len, entry->tenant.data,
                             day)
        != DSA_OK
        || dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:rolled",
                             (int) entry->tenant.len, entry->tenant.data)
        != DSA_OK
        || dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:spend",
                             (int) entry->tenant.len, entry->tenant.data)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (named
        && (dsa_schema_conversation_key(cmd, arena, entry->tenant,
                                        entry->conversation)
            != DSA_OK
            || dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:l:%.*s",
                                 (int) entry->tenant.len, entry->tenant.data,
                                 (int) entry->conversation.len,
                                 entry->conversation.data)
               != DSA_OK
            || dsa_command_account(cmd, arena, entry->tenant) != DSA_OK))
    {
        return DSA_ERROR;
    }

    if (dsa_command_absent(cmd, arena, entry->tenant) != DSA_OK
        || dsa_command_wordf(cmd, arena, "%d", DSA_SCHEMA_DONE_TTL) != DSA_OK
        || dsa_command_wordf(cmd, arena, "%" PRIu32, entry->cell) != DSA_OK
        || dsa_command_wordf(cmd, arena, "%" PRIu64, entry->number) != DSA_OK
        || dsa_command_wordf(cmd, arena, "%d", DSA_SCHEMA_LEDGER_DAYS)
           != DSA_OK
        || dsa_command_wordf(cmd, arena, "%" PRId64, entry->time / 86400)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, entry->model);
    dsa_command_word(cmd, entry->key);

    if (dsa_schema_count(cmd, arena, entry->prompt_tokens) != DSA_OK
        || dsa_schema_count(cmd, arena, entry->cached_tokens) != DSA_OK
        || dsa_schema_tiers(cmd, arena, entry) != DSA_OK
        || dsa_schema_count(cmd, arena, entry->completion_tokens) != DSA_OK
        || dsa_schema_count(cmd, arena, entry->reasoning_tokens) != DSA_OK
        || dsa_schema_count(cmd, arena, entry->cost_miss) != DSA_OK
        || dsa_schema_count(cmd, arena, entry->cost_hit) != DSA_OK
        || dsa_schema_count(cmd, arena, entry->cost_output) != DSA_OK
        || dsa_command_wordf(cmd, arena, "%" PRId64, entry->cost_miss
                             + entry->cost_hit + entry->cost_output)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (!named) {
        return DSA_OK;
    }

    dsa_command_word(cmd, entry->request);

    if (dsa_command_wordf(cmd, arena, "%" PRId64, entry->version) != DSA_OK
        || dsa_command_ttl(cmd, arena, entry->storage->ttl) != DSA_OK
        || dsa_command_quota(cmd, arena, entry->storage) != DSA_OK
        || dsa_schema_count(cmd, arena, entry->max_messages) != DSA_OK
        || dsa_schema_count(cmd, arena, entry->max_bytes) != DSA_OK)
    {
        return DSA_ERROR;
    }

    for (i = 0; i < entry->n_messages; i++) {
        dsa_command_word(cmd, entry->messages[i]);
    }

    return DSA_OK;
}


static int
dsa_schema_count(dsa_schema_command_t *cmd, dsa_arena_t *arena, uint64_t n)
{
    if (n > DSA_SCHEMA_COUNT_MAX) {
        return DSA_ERROR;
    }

    return dsa_command_wordf(cmd, arena, "%" PRIu64, n);
}


static int
dsa_schema_conversation_key(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id)
{
    return dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:c:%.*s",
                             (int) tenant.len, tenant.data,
                             (int) id.len, id.data);
}


static int
dsa_schema_day(char day[16], int64_t seconds)
{
    time_t     t;
    struct tm  tm;

    t = seconds;

    if (gmtime_r(&t, &tm) == NULL || strftime(day, 16, "%Y-%m-%d", &tm) == 0) {
        return DSA_ERROR;
    }

    return DSA_OK;
}


int
dsa_schema_integer(const redisReply *reply, int64_t *n, dsa_err_t *err)
{
    if (reply->type != REDIS_REPLY_INTEGER) {
        return dsa_schema_unexpected(reply, err);
    }

    *n = reply->integer;

    return DSA_OK;
}


int
dsa_schema_over_quota(const redisReply *reply, int64_t *bytes,
    int64_t *objects)
{
    /* hiredis ends the text with a NUL */

    return dsa_resp_is_error(reply, "DSAQUOTA")
           && sscanf(reply->str, "DSAQUOTA %" SCNd64 " %" SCNd64, bytes,
                     objects)
              == 2;
}


int
dsa_schema_conversation(dsa_schema_conversation_t *c, dsa_arena_t *arena,
    const redisReply *reply, dsa_err_t *err)
{
    size_t              i;
    int64_t             n, count;
    uint32_t            k;
    dsa_str_t           name;
    redisReply         *field, *value;
    dsa_schema_item_t  *items;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements % 2 != 0) {
        return dsa_schema_unexpected(reply, err);
    }

    if (reply->elements == 0) {
        return DSA_AGAIN;
    }

    items = dsa_arena_alloc(arena, reply->elements / 2
                                   * sizeof(dsa_schema_item_t));
    if (items == NULL) {
        return dsa_error(err, "out of memory for a conversation");
    }

    memset(c, 0, sizeof(dsa_schema_conversation_t));
    count = -1;

    for (i = 0; i < reply->elements; i += 2) {
        field = reply->element[i];
        value = reply->element[i + 1];

        if (field->type != REDIS_REPLY_STRING
            || value->type != REDIS_REPLY_STRING)
        {
            return dsa_error(err, "a field of a conversation is not a "
                             "string");
        }

        if (dsa_schema_number(field, &n) == DSA_OK) {
            items[c->n_messages].index = n;
            items[c->n_messages].text = dsa_str(value->str, value->len);
            c->n_messages++;
            c->bytes += value->len;
            continue;
        }

        name = dsa_str(field->str, field->len);

        if (dsa_str_eqz(name, "metadata")) {
            c->metadata = dsa_str(value->str, value->len);
            continue;
        }

        if (dsa_schema_number(value, &n) != DSA_OK) {
            continue;
        }

        if (dsa_str_eqz(name, "version")) {
            c->version = n;

        } else if (dsa_str_eqz(name, "created")) {
            c->created = n;

        } else if (dsa_str_eqz(name, "count")) {
            count = n;
        }
    }

    if (c->version == 0 || count != (int64_t) c->n_messages) {
        return dsa_error(err, "a conversation is damaged: version %" PRId64
                         ", %" PRIu32 " of %" PRId64 " messages",
                         c->version, c->n_messages, count);
    }

    qsort(items, c->n_messages, sizeof(dsa_schema_item_t), dsa_schema_compare);

    c->messages = dsa_arena_alloc(arena, (c->n_messages + 1)
                                         * sizeof(dsa_str_t));
    c->numbers = dsa_arena_alloc(arena, (c->n_messages + 1)
                                        * sizeof(int64_t));

    if (c->messages == NULL || c->numbers == NULL) {
        return dsa_error(err, "out of memory for a conversation");
    }

    for (k = 0; k < c->n_messages; k++) {
        c->messages[k] = items[k].text;
        c->numbers[k] = items[k].index;
    }

    return DSA_OK;
}


uint32_t
dsa_schema_split(dsa_str_t text, dsa_str_t *messages)
{
    uint32_t     n;
    const char  *p, *last, *nul;

    p = text.data;
    last = text.data + text.len;

    for (n = 0; p < last; n++) {
        nul = memchr(p, '\0', (size_t) (last - p));

        /* a text that is not terminated was cut off */

        assert(nul != NULL);

        if (messages != NULL) {
            messages[n] = dsa_str(p, (size_t) (nul - p));
        }

        p = nul + 1;
    }

    return n;
}


int
dsa_schema_recorded(const redisReply *reply, dsa_schema_result_e *result,
    int *again, dsa_err_t *err)
{
    redisReply  *code, *done;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) {
        (void) dsa_schema_unexpected(reply, err);
        return dsa_resp_is_error(reply, "DSADATA") ? DSA_ERROR : DSA_AGAIN;
    }

    code = reply->element[0];
    done = reply->element[1];

    if (code->type != REDIS_REPLY_INTEGER
        || done->type != REDIS_REPLY_INTEGER
        || code->integer < DSA_SCHEMA_LEDGER
        || code->integer > DSA_SCHEMA_QUOTA)
    {
        (void) dsa_error(err, "the reply of the record script is not a "
                         "result and a flag");
        return DSA_AGAIN;
    }

    *result = (dsa_schema_result_e) code->integer;
    *again = done->integer != 0;

    return DSA_OK;
}


const char *
dsa_schema_result(dsa_schema_result_e result)
{
    switch (result) {

    case DSA_SCHEMA_LEDGER:
        return "there were no messages to append";

    case DSA_SCHEMA_APPENDED:
        return "the messages were appended";

    case DSA_SCHEMA_MOVED:
        return "another turn of the conversation was stored in the "
               "meantime";

    case DSA_SCHEMA_GONE:
        return "the conversation was deleted";

    case DSA_SCHEMA_TOO_LARGE:
        return "the turn alone exceeds the limits of a conversation";

    case DSA_SCHEMA_DAMAGED:
        return "the stored conversation is damaged";

    case DSA_SCHEMA_QUOTA:
        return DSA_SCHEMA_QUOTA_TEXT;
    }

    return "";
}


/* Reads 1 to 18 decimal digits. */

static int
dsa_schema_number(const redisReply *reply, int64_t *n)
{
    size_t   i;
    int64_t  v;

    if (reply->len == 0 || reply->len > 18) {
        return DSA_ERROR;
    }

    v = 0;

    for (i = 0; i < reply->len; i++) {
        if (reply->str[i] < '0' || reply->str[i] > '9') {
            return DSA_ERROR;
        }

        v = v * 10 + (reply->str[i] - '0');
    }

    *n = v;

    return DSA_OK;
}


static int
dsa_schema_compare(const void *one, const void *two)
{
    const dsa_schema_item_t  *a = one;
    const dsa_schema_item_t  *b = two;

    return (a->index > b->index) - (a->index < b->index);
}


static int
dsa_schema_unexpected(const redisReply *reply, dsa_err_t *err)
{
    char  text[DSA_RESP_TEXT];

    if (reply->type == REDIS_REPLY_ERROR) {
        return dsa_error(err, "Redis replied \"%s\"",
                         dsa_resp_text(text, reply->str, reply->len));
    }

    return dsa_error(err, "Redis sent a reply of unexpected type %d",
                     reply->type);
}
