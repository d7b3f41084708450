
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "id.h"
#include "keys.h"


/* levels and values of the JSON of a key entry */

#define DSA_KEY_DEPTH        4
#define DSA_KEY_VALUES       128

#define DSA_KEY_ID_PREFIX    "key_"

/* the label of the digest of a tenant that has a name */

#define DSA_KEY_TENANT       "\0dsa_tenant"


/*
 * Why a key entry always fits: names may double in length when they are
 * written, because quotes and backslashes are escaped.  Names of models have
 * none.
 */

_Static_assert(DSA_KEY_MAX_MODELS * (DSA_KEY_MAX_MODEL + 3)
               + 2 * 2 * DSA_KEY_MAX_NAME + 1200 <= DSA_KEY_MAX_ENTRY,
               "the entry of a key within its limits is within its limit");


/* Members that are strings and integers, and where they go in dsa_key_t. */

typedef struct {
    const char        *name;
    size_t             offset;
} dsa_key_string_t;


typedef struct {
    const char        *name;
    size_t             offset;
    size_t             size;        /* of the integer: 4 or 8 */
    int                required;
    uint64_t           min;
    uint64_t           max;
} dsa_key_integer_t;


static int dsa_key_read_members(dsa_key_t *key, dsa_arena_t *arena,
    const dsa_json_t *object, dsa_err_t *err);
static int dsa_key_read_strings(dsa_key_t *key, const dsa_json_t *object,
    uint32_t *known, dsa_err_t *err);
static int dsa_key_read_integers(dsa_key_t *key, const dsa_json_t *object,
    uint32_t *known, dsa_err_t *err);
static int dsa_key_read_state(dsa_key_t *key, const dsa_json_t *v,
    dsa_err_t *err);
static int dsa_key_read_old(dsa_key_t *key, const dsa_json_t *v,
    dsa_err_t *err);
static int dsa_key_read_models(dsa_key_t *key, dsa_arena_t *arena,
    const dsa_json_t *v, dsa_err_t *err);
static int dsa_key_read_priority(dsa_key_t *key, const dsa_json_t *v,
    dsa_err_t *err);
static int dsa_key_read_budget(dsa_key_t *key, const dsa_json_t *v,
    dsa_err_t *err);
static int dsa_key_read_period(dsa_key_budget_t *budget, const char *period,
    const dsa_json_t *v, dsa_err_t *err);
static int dsa_key_number(const dsa_json_t *v, const char *name, uint64_t min,
    uint64_t max, uint64_t *n, dsa_err_t *err);
static int dsa_key_digest(const dsa_json_t *v, const char *name,
    uint8_t hash[DSA_KEY_HASH_LEN], dsa_err_t *err);
static int dsa_key_printable(dsa_str_t text, size_t max);
static int dsa_key_check_models(const dsa_key_t *key, dsa_err_t *err);
static int dsa_key_check_limits(const dsa_key_limits_t *limits,
    dsa_err_t *err);
static int dsa_key_index(const char *const *names, int n, dsa_str_t text);


static const dsa_key_string_t  dsa_key_strings[] = {
    { "id", offsetof(dsa_key_t, id) },
    { "name", offsetof(dsa_key_t, name) },
    { "tenant", offsetof(dsa_key_t, tenant) }
};

#define DSA_KEY_N_STRINGS                                                     \
    (sizeof(dsa_key_strings) / sizeof(dsa_key_strings[0]))


static const dsa_key_integer_t  dsa_key_integers[] = {
    { "created", offsetof(dsa_key_t, created), 8, 1, 0, DSA_KEY_MAX_TIME },
    { "expires", offsetof(dsa_key_t, expires), 8, 0, 1, DSA_KEY_MAX_TIME },
    { "rpm", offsetof(dsa_key_t, limits.rpm), 8, 0, 1, DSA_KEY_MAX_RATE },
    { "tpm", offsetof(dsa_key_t, limits.tpm), 8, 0, 1, DSA_KEY_MAX_RATE },
    { "concurrency", offsetof(dsa_key_t, limits.concurrency), 4, 0, 1,
      DSA_KEY_MAX_CONCURRENCY },
    { "weight", offsetof(dsa_key_t, limits.weight), 4, 0, 1,
      DSA_KEY_MAX_WEIGHT }
};

#define DSA_KEY_N_INTEGERS                                                    \
    (sizeof(dsa_key_integers) / sizeof(dsa_key_integers[0]))


static const char *const  dsa_key_states[] = { "active", "disabled",
                                               "revoked" };
static const char *const  dsa_key_priorities[] = { "low", "normal", "high" };
static const char *const  dsa_key_periods[] = { "day", "month", "total" };

_Static_assert(DSA_KEY_REVOKED == 2 && DSA_KEY_HIGH == 2
               && DSA_KEY_PERIODS == 3, "each value has a name");


int
dsa_key_read(dsa_key_t *key, dsa_arena_t *arena, dsa_str_t json,
    dsa_err_t *err)
{
    uint32_t     values;
    dsa_err_t    reason;
    dsa_json_t  *object;

    if (json.len > DSA_KEY_MAX_ENTRY) {
        return dsa_error(err, "the entry of a key has %zu bytes; expected at "
                         "most %d", json.len, DSA_KEY_MAX_ENTRY);
    }

    values = DSA_KEY_VALUES;
    object = dsa_json_parse_some(arena, json.data, json.len, DSA_KEY_DEPTH,
                                 &values, &reason);

    if (object == NULL) {

        /*
         * What people put there first.  The text may be a secret, so that it is
         * not quoted.
         */

        if (json.len != 0 && json.data[0] != '{') {
            return dsa_error(err, "the line is not the entry of a key; "
                             "expected the JSON that \"dsa key create\" "
                             "writes, which has the hash of a key and not its "
                             "text");
        }

        /* this reason alone quotes the text, a name that is repeated */

        if (strchr(reason.text, '"') != NULL) {
            return dsa_error(err, "the entry of a key has a member twice");
        }

        return dsa_error(err, "the entry of a key is not JSON: %s",
                         reason.text);
    }

    if (object->type != DSA_JSON_OBJECT) {
        return dsa_error(err, "the entry of a key is not a JSON object");
    }

    memset(key, 0, sizeof(dsa_key_t));
    dsa_key_limits_default(&key->limits);

    if (dsa_key_read_members(key, arena, object, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_key_check(key, err);
}


static int
dsa_key_read_members(dsa_key_t *key, dsa_arena_t *arena,
    const dsa_json_t *object, dsa_err_t *err)
{
    uint32_t           known;
    const dsa_json_t  *hash, *old, *state, *models, *priority, *budget;

    known = 0;

    if (dsa_key_read_strings(key, object, &known, err) != DSA_OK
        || dsa_key_read_integers(key, object, &known, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    hash = dsa_json_get(object, "hash");
    state = dsa_json_get(object, "state");
    old = dsa_json_get(object, "old");
    models = dsa_json_get(object, "models");
    priority = dsa_json_get(object, "priority");
    budget = dsa_json_get(object, "budget");

    if (hash == NULL || state == NULL) {
        return dsa_error(err, "the entry of a key has no member \"%s\"",
                         hash == NULL ? "hash" : "state");
    }

    known += 2 + (old != NULL) + (models != NULL) + (priority != NULL)
             + (budget != NULL);

    if (known != object->n) {
        return dsa_error(err, "the entry of a key has an unknown member; "
                         "expected id, name, tenant, hash, old, state, "
                         "created, expires, models, rpm, tpm, concurrency, "
                         "weight, priority and budget");
    }

    if (dsa_key_digest(hash, "hash", key->hash, err) != DSA_OK
        || dsa_key_read_state(key, state, err) != DSA_OK
        || (old != NULL && dsa_key_read_old(key, old, err) != DSA_OK)
        || (models != NULL
            && dsa_key_read_models(key, arena, models, err) != DSA_OK)
        || (priority != NULL
            && dsa_key_read_priority(key, priority, err) != DSA_OK)
        || (budget != NULL && dsa_key_read_budget(key, budget, err) != DSA_OK))
    {
        return DSA_ERROR;
    }

    return DSA_OK;
}


static int
dsa_key_read_strings(dsa_key_t *key, const dsa_json_t *object,
    uint32_t *known, dsa_err_t *err)
{
    size_t             i;
    const dsa_json_t  *v;

    for (i = 0; i < DSA_KEY_N_STRINGS; i++) {
        v = dsa_json_get(object, dsa_key_strings[i].name);

        if (v == NULL) {
            return dsa_error(err, "the entry of a key has no member \"%s\"",
                             dsa_key_strings[i].name);
        }

        if (v->type != DSA_JSON_STRING) {
            return dsa_error(err, "\"%s\" of a key is not a string",
                             dsa_key_strings[i].name);
        }

        *(dsa_str_t *) ((char *) key + dsa_key_strings[i].offset) = v->text;
        (*known)++;
    }

    return DSA_OK;
}


static int
dsa_key_read_integers(dsa_key_t *key, const dsa_json_t *object,
    uint32_t *known, dsa_err_t *err)
{
    char                     *p;
    size_t                    i;
    uint64_t                  n;
    const dsa_json_t         *v;
    const dsa_key_integer_t  *m;

    for (i = 0; i < DSA_KEY_N_INTEGERS; i++) {
        m = &dsa_key_integers[i];
        v = dsa_json_get(object, m->name);

        if (v == NULL && m->required) {
            return dsa_error(err, "the entry of a key has no member \"%s\"",
                             m->name);
        }

        if (v == NULL) {
            continue;
        }

        if (dsa_key_number(v, m->name, m->min, m->max, &n, err) != DSA_OK) {
            return DSA_ERROR;
        }

        p = (char *) key + m->offset;

        if (m->size == 4) {
            *(uint32_t *) p = (uint32_t) n;

        } else {
            *(uint64_t *) p = n;
        }

        (*known)++;
    }

    return DSA_OK;
}


static int
dsa_key_read_state(dsa_key_t *key, const dsa_json_t *v, dsa_err_t *err)
{
    if (v->type != DSA_JSON_STRING
        || dsa_key_state(&key->state, v->text) != DSA_OK)
    {
        return dsa_error(err, "\"state\" of a key is invalid; expected "
                         "\"active\", \"disabled\" or \"revoked\"");
    }

    return DSA_OK;
}


static int
dsa_key_read_old(dsa_key_t *key, const dsa_json_t *v, dsa_err_t *err)
{
    uint64_t           until;
    const dsa_json_t  *hash, *end;

    hash = dsa_json_get(v, "hash");
    end = dsa_json_get(v, "until");

    if (hash == NULL || end == NULL || v->n != 2) {
        return dsa_error(err, "\"old\" of a key is not an object with \"hash\" "
                         "and \"until\"");
    }

    if (dsa_key_digest(hash, "old.hash", key->old_hash, err) != DSA_OK
        || dsa_key_number(end, "old.until", 1, DSA_KEY_MAX_TIME, &until, err)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    key->old_until = (int64_t) until;

    return DSA_OK;
}


static int
dsa_key_read_models(dsa_key_t *key, dsa_arena_t *arena, const dsa_json_t *v,
    dsa_err_t *err)
{
    const dsa_json_t  *item;

    if (v->type != DSA_JSON_ARRAY || v->n == 0 || v->n > DSA_KEY_MAX_MODELS) {
        return dsa_error(err, "\"models\" of a key is invalid; expected an "
                         "array of 1 to %d names", DSA_KEY_MAX_MODELS);
    }

    key->models = dsa_arena_alloc(arena, v->n * sizeof(dsa_str_t));

    if (key->models == NULL) {
        return dsa_error(err, "out of memory for the entry of a key");
    }

    for (item = v->first; item != NULL; item = item->next) {

        if (item->type != DSA_JSON_STRING) {
            return dsa_error(err, "\"models\" of a key has an element that is "
                             "not a string");
        }

        key->models[key->n_models++] = item->text;
    }

    return DSA_OK;
}


static int
dsa_key_read_priority(dsa_key_t *key, const dsa_json_t *v, dsa_err_t *err)
{
    if (v->type != DSA_JSON_STRING
        || dsa_key_priority(&key->limits.priority, v->text) != DSA_OK)
    {
        return dsa_error(err, "\"priority\" of a key is invalid; expected "
                         "\"low\", \"normal\" or \"high\"");
    }

    return DSA_OK;
}


static int
dsa_key_read_budget(dsa_key_t *key, const dsa_json_t *v, dsa_err_t *err)
{
    int                i;
    uint32_t           known;
    const dsa_json_t  *period;

    known = 0;

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        period = dsa_json_get(v, dsa_key_periods[i]);

        if (period == NULL) {
            continue;
        }

        known++;

        if (dsa_key_read_period(&key->limits.budget[i], dsa_key_periods[i],
                                period, err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    if (known == 0 || known != v->n) {
        return dsa_error(err, "\"budget\" of a key is invalid; expected an "
                         "object with \"day\", \"month\" or \"total\"");
    }

    return DSA_OK;
}


static int
dsa_key_read_period(dsa_key_budget_t *budget, const char *period,
    const dsa_json_t *v, dsa_err_t *err)
{
    uint32_t           known;
    const dsa_json_t  *soft, *hard;

    soft = dsa_json_get(v, "soft");
    hard = dsa_json_get(v, "hard");
    known = (soft != NULL) + (hard != NULL);

    if (known == 0 || known != v->n) {
        return dsa_error(err, "\"budget.%s\" of a key is invalid; expected an "
                         "object with \"soft\", \"hard\" or both", period);
    }

    if ((soft != NULL
         && (soft->type != DSA_JSON_STRING
             || dsa_money_amount(soft->text, &budget->soft, NULL) != DSA_OK))
        || (hard != NULL
            && (hard->type != DSA_JSON_STRING
                || dsa_money_amount(hard->text, &budget->hard, NULL)
                   != DSA_OK)))
    {
        return dsa_error(err, "\"budget.%s\" of a key has an invalid amount; "
                         "expected a string, for example \"1.5\", up to %d "
                         "with at most 12 decimals", period, DSA_MONEY_MAX);
    }

    return DSA_OK;
}


/* Reads an integer from min to max. */

static int
dsa_key_number(const dsa_json_t *v, const char *name, uint64_t min,
    uint64_t max, uint64_t *n, dsa_err_t *err)
{
    int64_t  value;

    *n = 0;

    if (dsa_json_int(v, &value) != DSA_OK || value < 0
        || (uint64_t) value < min || (uint64_t) value > max)
    {
        return dsa_error(err, "\"%s\" of a key is invalid; expected an integer "
                         "from %" PRIu64 " to %" PRIu64, name, min, max);
    }

    *n = (uint64_t) value;

    return DSA_OK;
}


/* Reads 64 hexadecimal digits in lower case. */

static int
dsa_key_digest(const dsa_json_t *v, const char *name,
    uint8_t hash[DSA_KEY_HASH_LEN], dsa_err_t *err)
{
    char      c;
    size_t    i;
    uint8_t   digit;

    if (v->type != DSA_JSON_STRING || v->text.len != 2 * DSA_KEY_HASH_LEN) {
        goto invalid;
    }

    for (i = 0; i < 2 * DSA_KEY_HASH_LEN; i++) {
        c = v->text.data[i];

        if (c >= '0' && c <= '9') {
            digit = (uint8_t) (c - '0');

        } else if (c >= 'a' && c <= 'f') {
            digit = (uint8_t) (c - 'a' + 10);

        } else {
            goto invalid;
        }

        hash[i / 2] = (uint8_t) (hash[i / 2] << 4 | digit);
    }

    return DSA_OK;

invalid:

    return dsa_error(err, "\"%s\" of a key is invalid; expected the SHA-256 of "
                     "the key as %d hexadecimal digits in lower case", name,
                     2 * DSA_KEY_HASH_LEN);
}


int
dsa_key_check(const dsa_key_t *key, dsa_err_t *err)
{
    if (!dsa_key_id_ok(key->id)) {
        return dsa_error(err, "\"id\" of a key is invalid; expected \"key_\" "
                         "and 16 hexadecimal digits in lower case");
    }

    if (!dsa_key_printable(key->name, DSA_KEY_MAX_NAME)) {
        return dsa_error(err, "\"name\" of a key is invalid; expected 1 to %d "
                         "bytes of printable UTF-8", DSA_KEY_MAX_NAME);
    }

    if (!dsa_key_printable(key->tenant, DSA_KEY_MAX_NAME)) {
        return dsa_error(err, "\"tenant\" of a key is invalid; expected 1 to "
                         "%d bytes of printable UTF-8", DSA_KEY_MAX_NAME);
    }

    if ((unsigned) key->state > DSA_KEY_REVOKED
        || key->created < 0 || key->created > DSA_KEY_MAX_TIME
        || key->expires < 0 || key->expires > DSA_KEY_MAX_TIME
        || key->old_until < 0 || key->old_until > DSA_KEY_MAX_TIME)
    {
        return dsa_error(err, "the state or a time of a key is out of range; "
                         "expected the years 1970 to 9999");
    }

    if (key->old_until != 0
        && memcmp(key->hash, key->old_hash, DSA_KEY_HASH_LEN) == 0)
    {
        return dsa_error(err, "\"old.hash\" of a key is its \"hash\"; expected "
                         "the hash of an earlier key");
    }

    if (dsa_key_check_models(key, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_key_check_limits(&key->limits, err);
}


static int
dsa_key_check_models(const dsa_key_t *key, dsa_err_t *err)
{
    uint32_t   i, k;
    dsa_str_t  name;

    if (key->n_models > DSA_KEY_MAX_MODELS) {
        return dsa_error(err, "a key has %" PRIu32 " models; expected at most "
                         "%d", key->n_models, DSA_KEY_MAX_MODELS);
    }

    for (i = 0; i < key->n_models; i++) {
        name = key->models[i];

        if (!dsa_key_printable(name, DSA_KEY_MAX_MODEL)
            || memchr(name.data, '"', name.len) != NULL
            || memchr(name.data, '\\', name.len) != NULL)
        {
            return dsa_error(err, "the name of a model of a key is invalid; "
                             "expected 1 to %d bytes of printable UTF-8 "
                             "without quotes and backslashes",
                             DSA_KEY_MAX_MODEL);
        }

        for (k = 0; k < i; k++) {
            if (dsa_str_eq(name, key->models[k])) {
                return dsa_error(err, "a key has the same model twice; "
                                 "expected different names");
            }
        }
    }

    return DSA_OK;
}


static int
dsa_key_check_limits(const dsa_key_limits_t *limits, dsa_err_t *err)
{
    int                      i;
    const dsa_key_budget_t  *b;

    if (limits->rpm > DSA_KEY_MAX_RATE || limits->tpm > DSA_KEY_MAX_RATE
        || limits->concurrency > DSA_KEY_MAX_CONCURRENCY
        || limits->weight < 1 || limits->weight > DSA_KEY_MAX_WEIGHT
        || (unsigned) limits->priority > DSA_KEY_HIGH)
    {
        return dsa_error(err, "a limit of a key is out of range; expected rpm "
                         "and tpm up to %llu, concurrency up to %d, weight "
                         "from 1 to %d", DSA_KEY_MAX_RATE,
                         DSA_KEY_MAX_CONCURRENCY, DSA_KEY_MAX_WEIGHT);
    }

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        b = &limits->budget[i];

        if (b->soft < -1 || b->soft > DSA_MONEY_MAX * DSA_MONEY_UNIT
            || b->hard < -1 || b->hard > DSA_MONEY_MAX * DSA_MONEY_UNIT
            || (b->hard != -1 && b->soft > b->hard))
        {
            return dsa_error(err, "\"budget.%s\" of a key is invalid; expected "
                             "amounts up to %d, and \"soft\" at most \"hard\"",
                             dsa_key_periods[i], DSA_MONEY_MAX);
        }
    }

    return DSA_OK;
}


/* 1 to max bytes of UTF-8 without control characters (C0, DEL, C1). */

static int
dsa_key_printable(dsa_str_t text, size_t max)
{
    size_t          i;
    const uint8_t  *p = (const uint8_t *) text.data;

    if (text.len == 0 || text.len > max
        || dsa_utf8_prefix(p, text.len) != text.len)
    {
        return 0;
    }

    for (i = 0; i < text.len; i++) {
        if (p[i] < 0x20 || p[i] == 0x7f
            || (p[i] == 0xc2 && p[i + 1] < 0xa0))
        {
            return 0;
        }
    }

    return 1;
}


void
dsa_key_limits_default(dsa_key_limits_t *limits)
{
    int  i;

    memset(limits, 0, sizeof(dsa_key_limits_t));

    limits->weight = DSA_KEY_WEIGHT;
    limits->priority = DSA_KEY_NORMAL;

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        limits->budget[i].soft = -1;
        limits->budget[i].hard = -1;
    }
}


int
dsa_key_id_ok(dsa_str_t id)
{
    return dsa_id_ok(id, dsa_strz(DSA_KEY_ID_PREFIX), DSA_KEY_ID_LEN);
}


const char *
dsa_key_state_name(dsa_key_state_e state)
{
    return dsa_key_states[state];
}


const char *
dsa_key_priority_name(dsa_key_priority_e priority)
{
    return dsa_key_priorities[priority];
}


const char *
dsa_key_period_name(dsa_key_period_e period)
{
    return dsa_key_periods[period];
}


int
dsa_key_state(dsa_key_state_e *state, dsa_str_t text)
{
    int  i;

    i = dsa_key_index(dsa_key_states, DSA_KEY_REVOKED + 1, text);

    if (i == -1) {
        return DSA_ERROR;
    }

    *state = (dsa_key_state_e) i;

    return DSA_OK;
}


int
dsa_key_priority(dsa_key_priority_e *priority, dsa_str_t text)
{
    int  i;

    i = dsa_key_index(dsa_key_priorities, DSA_KEY_HIGH + 1, text);

    if (i == -1) {
        return DSA_ERROR;
    }

    *priority = (dsa_key_priority_e) i;

    return DSA_OK;
}


static int
dsa_key_index(const char *const *names, int n, dsa_str_t text)
{
    int  i;

    for (i = 0; i < n; i++) {
        if (dsa_str_eqz(text, names[i])) {
            return i;
        }
    }

    return -1;
}


void
dsa_key_hash(uint8_t hash[DSA_KEY_HASH_LEN], dsa_str_t text)
{
    SHA256((const uint8_t *) text.data, text.len, hash);
}


void
dsa_key_tenant(uint8_t digest[32], dsa_str_t name)
{
    uint8_t  text[sizeof(DSA_KEY_TENANT) + DSA_KEY_MAX_NAME];

    /* the label ends with its NUL, so that no other label makes these bytes */

    assert(name.len <= DSA_KEY_MAX_NAME);

    memcpy(text, DSA_KEY_TENANT, sizeof(DSA_KEY_TENANT));
    memcpy(text + sizeof(DSA_KEY_TENANT), name.data, name.len);

    SHA256(text, sizeof(DSA_KEY_TENANT) + name.len, digest);
}


void
dsa_key_tenant_digits(char digits[DSA_KEY_TENANT_LEN + 1], dsa_str_t name)
{
    int      i;
    uint8_t  digest[32];

    dsa_key_tenant(digest, name);

    for (i = 0; i < DSA_KEY_TENANT_LEN / 2; i++) {
        (void) snprintf(&digits[2 * i], 3, "%02x", digest[i]);
    }
}


void
dsa_key_tenant_given(char digits[DSA_KEY_TENANT_LEN + 1], dsa_str_t given)
{
    if (!dsa_id_ok(given, dsa_strz(""), DSA_KEY_TENANT_LEN)) {
        dsa_key_tenant_digits(digits, given);
        return;
    }

    memcpy(digits, given.data, given.len);
    digits[given.len] = '\0';
}
