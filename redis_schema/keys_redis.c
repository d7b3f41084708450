
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "command.h"
#include "keys_redis.h"
#include "keys_scripts.h"
#include "resp.h"


#define DSA_KEY_WORDS       12

/* the limit in the script of what is missing */

_Static_assert(DSA_BUCKET_MAX_DEBT == 600000000000000000ULL, "6e17");


static int dsa_key_set(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    uint32_t keys);
static char *dsa_key_hex(dsa_arena_t *arena,
    const uint8_t hash[DSA_KEY_HASH_LEN]);
static int dsa_key_count(const redisReply *reply, uint64_t max, uint64_t *n);
static int dsa_key_amount(const redisReply *reply, int64_t *amount);
static int dsa_key_unexpected(const redisReply *reply, const char *what,
    dsa_err_t *err);


int
dsa_key_put(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_key_t *key, dsa_str_t previous)
{
    char      *entry, *hash, *old;
    dsa_buf_t  b;
    dsa_str_t  id;

    memset(&b, 0, sizeof(dsa_buf_t));
    dsa_key_write(&b, key);

    id = key->id;
    entry = b.failed ? NULL : dsa_arena_dup(arena, dsa_str(b.data, b.len));
    hash = dsa_key_hex(arena, key->hash);
    old = key->old_until != 0 ? dsa_key_hex(arena, key->old_hash) : "";
    dsa_buf_free(&b);

    if (entry == NULL || hash == NULL || old == NULL
        || dsa_command_start(cmd, arena, DSA_KEY_WORDS) != DSA_OK)
    {
        return DSA_ERROR;
    }

    /* keys are rarely written, so the command has the text of the script */

    dsa_command_eval(cmd, dsa_key_put_script, "4");

    if (dsa_key_set(cmd, arena, 4) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, id);
    dsa_command_word(cmd, dsa_strz(entry));
    dsa_command_word(cmd, previous);
    dsa_command_word(cmd, dsa_strz(hash));
    dsa_command_word(cmd, dsa_strz(old));

    return DSA_OK;
}


int
dsa_key_put_reply(dsa_key_put_e *result, const redisReply *reply,
    dsa_err_t *err)
{
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer < DSA_KEY_PUT_DONE
        || reply->integer > DSA_KEY_PUT_TAKEN)
    {
        return dsa_key_unexpected(reply, "a result", err);
    }

    *result = (dsa_key_put_e) reply->integer;

    return DSA_OK;
}


int
dsa_key_get(dsa_schema_command_t *cmd, dsa_arena_t *arena, dsa_str_t id)
{
    if (dsa_command_start(cmd, arena, 3) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, dsa_strz("HGET"));

    if (dsa_key_set(cmd, arena, 1) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, id);

    return DSA_OK;
}


int
dsa_key_get_reply(dsa_str_t *entry, const redisReply *reply, dsa_err_t *err)
{
    if (reply->type == REDIS_REPLY_NIL) {
        return DSA_AGAIN;
    }

    if (reply->type != REDIS_REPLY_STRING) {
        return dsa_key_unexpected(reply, "a key entry", err);
    }

    *entry = dsa_str(reply->str, reply->len);

    return DSA_OK;
}


int
dsa_key_sync(dsa_schema_command_t *cmd, dsa_arena_t *arena, int64_t since,
    uint32_t max, int text)
{
    if (since < 0 || max < 1 || max > DSA_KEY_SYNC_MAX
        || dsa_command_start(cmd, arena, DSA_KEY_WORDS) != DSA_OK
        || dsa_command_script(cmd, arena, dsa_key_sync_script, "3", text)
           != DSA_OK
        || dsa_key_set(cmd, arena, 3) != DSA_OK
        || dsa_command_wordf(cmd, arena, "%" PRId64, since) != DSA_OK
        || dsa_command_wordf(cmd, arena, "%" PRIu32, max) != DSA_OK
        || dsa_command_wordf(cmd, arena, "%d", DSA_KEY_MAX_ENTRY) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return DSA_OK;
}


int
dsa_key_sync_reply(dsa_key_changes_t *changes, dsa_arena_t *arena,
    const redisReply *reply, dsa_err_t *err)
{
    uint32_t            i;
    uint64_t            version;
    redisReply        **item;
    dsa_key_change_t   *change;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements % 3 != 1
        || reply->elements / 3 > DSA_KEY_SYNC_MAX
        || dsa_key_count(reply->element[0], INT64_MAX, &version) != DSA_OK)
    {
        return dsa_key_unexpected(reply, "a list of keys", err);
    }

    changes->version = (int64_t) version;
    changes->n = (uint32_t) (reply->elements / 3);
    changes->changes = dsa_arena_alloc(arena, (changes->n + 1)
                                              * sizeof(dsa_key_change_t));

    if (changes->changes == NULL) {
        return dsa_error(err, "out of memory for a list of keys");
    }

    for (i = 0; i < changes->n; i++) {
        item = &reply->element[1 + 3 * i];
        change = &changes->changes[i];

        if (dsa_key_count(item[0], INT64_MAX, &version) != DSA_OK
            || item[1]->type != REDIS_REPLY_STRING
            || item[2]->type != REDIS_REPLY_STRING)
        {
            return dsa_error(err, "key %" PRIu32 " of a reply of Redis is not "
                             "a version, an id and a key entry", i);
        }

        change->version = (int64_t) version;
        change->id = dsa_str(item[1]->str, item[1]->len);
        change->entry = dsa_str(item[2]->str, item[2]->len);
    }

    return DSA_OK;
}


int
dsa_key_share(dsa_schema_command_t *cmd, dsa_arena_t *arena, dsa_str_t id,
    dsa_str_t host, const dsa_key_use_t use[DSA_KEY_RATES], uint32_t running,
    uint32_t ttl_ms, int text)
{
    int  i;

    if (!dsa_key_id_ok(id) || !dsa_schema_name_ok(host)
        || ttl_ms < 1 || ttl_ms > DSA_KEY_LEASE_MAX
        || dsa_command_start(cmd, arena, DSA_KEY_WORDS + 3 * DSA_KEY_RATES)
           != DSA_OK
        || dsa_command_script(cmd, arena, dsa_key_share_script, "1", text)
           != DSA_OK
        || dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:limits", (int) id.len,
                             id.data)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, host);

    if (dsa_command_wordf(cmd, arena, "%" PRIu32, running) != DSA_OK
        || dsa_command_wordf(cmd, arena, "%" PRIu32, ttl_ms) != DSA_OK
        || dsa_command_wordf(cmd, arena, "%d", DSA_KEY_SHARE_TTL) != DSA_OK)
    {
        return DSA_ERROR;
    }

    for (i = 0; i < DSA_KEY_RATES; i++) {

        if (use[i].rate > DSA_KEY_MAX_RATE
            || use[i].used > DSA_BUCKET_MAX_DEBT / DSA_BUCKET_PARTS
            || use[i].missing > DSA_BUCKET_MAX_DEBT
            || dsa_command_wordf(cmd, arena, "%" PRIu64, use[i].rate) != DSA_OK
            || dsa_command_wordf(cmd, arena, "%" PRIu64,
                                 use[i].used * DSA_BUCKET_PARTS)
               != DSA_OK
            || dsa_command_wordf(cmd, arena, "%" PRIu64, use[i].missing)
               != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


int
dsa_key_share_reply(dsa_key_shared_t *shared, const redisReply *reply,
    dsa_err_t *err)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3
        || dsa_key_count(reply->element[0], DSA_BUCKET_MAX_DEBT,
                         &shared->missing[DSA_KEY_REQUESTS])
           != DSA_OK
        || dsa_key_count(reply->element[1], DSA_BUCKET_MAX_DEBT,
                         &shared->missing[DSA_KEY_TOKENS])
           != DSA_OK
        || dsa_key_count(reply->element[2], INT64_MAX, &shared->running)
           != DSA_OK)
    {
        return dsa_key_unexpected(reply, "the use of a key", err);
    }

    return DSA_OK;
}


int
dsa_key_spent(dsa_schema_command_t *cmd, dsa_arena_t *arena, dsa_str_t tenant,
    dsa_str_t id, int64_t when)
{
    char       day[16];
    time_t     t;
    struct tm  tm;

    t = when;

    if (!dsa_schema_name_ok(tenant) || !dsa_key_id_ok(id)
        || when < 0 || when > DSA_KEY_MAX_TIME || gmtime_r(&t, &tm) == NULL
        || strftime(day, sizeof(day), "%Y-%m-%d", &tm) == 0
        || dsa_command_start(cmd, arena, 5) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, dsa_strz("HMGET"));

    if (dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:spend", (int) tenant.len,
                          tenant.data)
        != DSA_OK
        || dsa_command_wordf(cmd, arena, "%.*s|%s", (int) id.len, id.data, day)
           != DSA_OK
        || dsa_command_wordf(cmd, arena, "%.*s|%.7s", (int) id.len, id.data,
                             day)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, id);

    return DSA_OK;
}


int
dsa_key_spent_reply(int64_t spent[DSA_KEY_PERIODS], const redisReply *reply,
    dsa_err_t *err)
{
    int  i;

    if (reply->type != REDIS_REPLY_ARRAY
        || reply->elements != DSA_KEY_PERIODS)
    {
        return dsa_key_unexpected(reply, "what a key has spent", err);
    }

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        if (dsa_key_amount(reply->element[i], &spent[i]) != DSA_OK) {
            return dsa_error(err, "what a key has spent (%s) is not an amount "
                             "in Redis", dsa_key_period_name(i));
        }
    }

    return DSA_OK;
}


/* The first words of KEYS. */

static int
dsa_key_set(dsa_schema_command_t *cmd, dsa_arena_t *arena, uint32_t keys)
{
    uint32_t                  i;

    static const char *const  names[] = { "id", "version", "changed", "hash" };

    for (i = 0; i < keys; i++) {
        if (dsa_command_wordf(cmd, arena, "dsa1:{keys}:%s", names[i])
            != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static char *
dsa_key_hex(dsa_arena_t *arena, const uint8_t hash[DSA_KEY_HASH_LEN])
{
    int    i;
    char  *hex;

    hex = dsa_arena_alloc(arena, 2 * DSA_KEY_HASH_LEN + 1);

    for (i = 0; hex != NULL && i < DSA_KEY_HASH_LEN; i++) {
        (void) snprintf(&hex[2 * i], 3, "%02x", hash[i]);
    }

    return hex;
}


/* A string of 1 to 19 digits, up to max. */

static int
dsa_key_count(const redisReply *reply, uint64_t max, uint64_t *n)
{
    size_t    i;
    uint64_t  v;

    if (reply->type != REDIS_REPLY_STRING || reply->len == 0
        || reply->len > 19)
    {
        return DSA_ERROR;
    }

    v = 0;

    for (i = 0; i < reply->len; i++) {
        if (reply->str[i] < '0' || reply->str[i] > '9') {
            return DSA_ERROR;
        }

        v = v * 10 + (uint64_t) (reply->str[i] - '0');
    }

    if (v > max) {
        return DSA_ERROR;
    }

    *n = v;

    return DSA_OK;
}


/*
 * An amount of money; a field that is missing is 0.  It is negative if an
 * operator has refunded more than was spent.
 */

static int
dsa_key_amount(const redisReply *reply, int64_t *amount)
{
    uint64_t    n;
    redisReply  digits;

    if (reply->type == REDIS_REPLY_NIL) {
        *amount = 0;
        return DSA_OK;
    }

    digits = *reply;

    if (reply->type == REDIS_REPLY_STRING && reply->len != 0
        && reply->str[0] == '-')
    {
        digits.str++;
        digits.len--;
    }

    if (dsa_key_count(&digits, INT64_MAX, &n) != DSA_OK) {
        return DSA_ERROR;
    }

    *amount = digits.str != reply->str ? -(int64_t) n : (int64_t) n;

    return DSA_OK;
}


static int
dsa_key_unexpected(const redisReply *reply, const char *what, dsa_err_t *err)
{
    char  text[DSA_RESP_TEXT];

    if (reply->type == REDIS_REPLY_ERROR) {
        return dsa_error(err, "Redis replied \"%s\"",
                         dsa_resp_text(text, reply->str, reply->len));
    }

    return dsa_error(err, "the reply of Redis (type %d) is not %s",
                     reply->type, what);
}
