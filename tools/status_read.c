
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Reads the JSON of dsa_status.
 */


#include <string.h>

#include "base/json.h"
#include "base/money.h"
#include "base/tiers.h"
#include "tools/status.h"


#define DSA_STATUS_DEPTH   16
#define DSA_STATUS_ARENA   (64 * 1024 * 1024)
#define DSA_STATUS_ROWS    1000         /* of engines, and of tenants */
#define DSA_STATUS_VALUES  200000


static uint64_t dsa_status_number(const dsa_json_t *v, const char *key);
static uint64_t dsa_status_count(const dsa_json_t *v);
static double dsa_status_seconds(const dsa_json_t *v, const char *key);
static dsa_str_t dsa_status_text(const dsa_json_t *v, const char *key);
static int dsa_status_true(const dsa_json_t *v, const char *key);
static int dsa_status_false(const dsa_json_t *v, const char *key);
static uint64_t dsa_status_failed(const dsa_json_t *codes);
static void dsa_status_hist(dsa_status_hist_t *hist, const dsa_json_t *v);
static void dsa_status_money(dsa_status_t *s, const dsa_json_t *v);
static void *dsa_status_rows(dsa_status_t *s, const dsa_json_t *v, size_t size,
    uint32_t *n);
static int dsa_status_engines(dsa_status_t *s, const dsa_json_t *v);
static int dsa_status_tenants(dsa_status_t *s, const dsa_json_t *v);


int
dsa_status_read(dsa_status_t *s, dsa_str_t text, dsa_err_t *err)
{
    uint32_t           i, values;
    dsa_json_t        *root;
    const dsa_json_t  *v;

    memset(s, 0, sizeof(dsa_status_t));

    s->arena = dsa_arena_create(DSA_STATUS_ARENA);

    if (s->arena == NULL) {
        return dsa_error(err, "out of memory");
    }

    values = DSA_STATUS_VALUES;
    root = dsa_json_parse_some(s->arena, text.data, text.len,
                               DSA_STATUS_DEPTH, &values, err);

    if (root == NULL) {
        return DSA_ERROR;
    }

    if (root->type != DSA_JSON_OBJECT || dsa_json_get(root, "uptime") == NULL) {
        return dsa_error(err, "the answer is not a document of dsa_status");
    }

    s->time = dsa_status_seconds(root, "time");
    s->uptime = dsa_status_seconds(root, "uptime");
    s->version = dsa_status_text(root, "version");

    v = dsa_json_get(root, "requests");
    s->in_flight = dsa_status_number(v, "in_flight");
    s->requests = dsa_status_number(v, "total");
    s->failed = dsa_status_failed(dsa_json_get(v, "by_status"));

    v = dsa_json_get(root, "tokens");
    s->prompt = dsa_status_number(v, "prompt");
    s->completion = dsa_status_number(v, "completion");

    v = dsa_json_get(v, "cached");

    for (i = 0; i < DSA_TIERS; i++) {
        s->cached += dsa_status_number(v, dsa_tier_names[i].name);
    }

    v = dsa_json_get(root, "latency");
    dsa_status_hist(&s->ttft, dsa_json_get(v, "ttft"));
    dsa_status_hist(&s->inter_token, dsa_json_get(v, "inter_token"));

    dsa_status_money(s, dsa_json_get(root, "money"));

    v = dsa_json_get(root, "redis");
    s->redis = v != NULL;
    s->redis_lossy = dsa_status_false(v, "durable");
    s->redis_up = dsa_status_true(v, "up");
    s->writable = dsa_status_true(v, "writable");
    s->queue = dsa_status_number(v, "queue");
    s->queue_used = dsa_status_number(v, "queue_used");
    s->queue_capacity = dsa_status_number(v, "queue_capacity");
    s->memory_used = dsa_status_number(v, "memory_used");
    s->memory_limit = dsa_status_number(v, "memory_limit");

    if (dsa_status_engines(s, dsa_json_get(root, "engines")) != DSA_OK
        || dsa_status_tenants(s, dsa_json_get(root, "tenants")) != DSA_OK)
    {
        return dsa_error(err, "out of memory");
    }

    return DSA_OK;
}


void
dsa_status_free(dsa_status_t *s)
{
    dsa_arena_destroy(s->arena);
    memset(s, 0, sizeof(dsa_status_t));
}


/* The value of a member; 0, an empty text or false if there is none. */

static uint64_t
dsa_status_number(const dsa_json_t *v, const char *key)
{
    return dsa_status_count(dsa_json_get(v, key));
}


static uint64_t
dsa_status_count(const dsa_json_t *v)
{
    int64_t  n;

    return v != NULL && dsa_json_int(v, &n) == DSA_OK && n > 0 ? (uint64_t) n
                                                               : 0;
}


static double
dsa_status_seconds(const dsa_json_t *v, const char *key)
{
    double  n;

    v = dsa_json_get(v, key);

    return v != NULL && dsa_json_double(v, &n) == DSA_OK && n > 0 && n < 1e12
           ? n : 0;
}


static dsa_str_t
dsa_status_text(const dsa_json_t *v, const char *key)
{
    v = dsa_json_get(v, key);

    return v != NULL && v->type == DSA_JSON_STRING ? v->text : dsa_str("", 0);
}


static int
dsa_status_true(const dsa_json_t *v, const char *key)
{
    v = dsa_json_get(v, key);

    return v != NULL && v->type == DSA_JSON_TRUE;
}


/* 0: the member is true, absent or of another type. */

static int
dsa_status_false(const dsa_json_t *v, const char *key)
{
    v = dsa_json_get(v, key);

    return v != NULL && v->type == DSA_JSON_FALSE;
}


/* Requests with a status of 5xx. */

static uint64_t
dsa_status_failed(const dsa_json_t *codes)
{
    uint64_t           sum;
    const dsa_json_t  *v;

    sum = 0;

    if (codes == NULL || codes->type != DSA_JSON_OBJECT) {
        return 0;
    }

    for (v = codes->first; v != NULL; v = v->next) {
        if (v->key.len == 3 && v->key.data[0] == '5') {
            sum += dsa_status_count(v);
        }
    }

    return sum;
}


/* hist has no counts if the bounds do not rise, or the lengths do not match. */

static void
dsa_status_hist(dsa_status_hist_t *hist, const dsa_json_t *v)
{
    uint32_t           i;
    const dsa_json_t  *bounds, *counts;

    bounds = dsa_json_get(v, "bounds");
    counts = dsa_json_get(v, "counts");

    if (bounds == NULL || bounds->type != DSA_JSON_ARRAY || counts == NULL
        || counts->type != DSA_JSON_ARRAY || bounds->n > DSA_STATUS_BUCKETS
        || counts->n != bounds->n + 1)
    {
        return;
    }

    bounds = bounds->first;
    counts = counts->first;

    for (i = 0; bounds != NULL; i++, bounds = bounds->next) {
        hist->bounds[i] = dsa_status_count(bounds);

        if (i != 0 && hist->bounds[i] <= hist->bounds[i - 1]) {
            return;
        }
    }

    hist->n = i;

    for (i = 0; counts != NULL; i++, counts = counts->next) {
        hist->counts[i] = dsa_status_count(counts);
    }
}


static void
dsa_status_money(dsa_status_t *s, const dsa_json_t *v)
{
    uint32_t   i;
    int64_t    amount;
    dsa_str_t  text;
    dsa_err_t  err;

    static const char *const  parts[] = { "miss", "hit", "output" };

    s->priced = v != NULL;
    s->currency = dsa_status_text(v, "currency");

    for (i = 0; i < 3; i++) {
        text = dsa_status_text(v, parts[i]);

        if (dsa_money_amount(text, &amount, &err) != DSA_OK) {
            s->priced = 0;
            return;
        }

        s->cost += amount;
    }
}


/*
 * Allocates the rows of an array, which are zero, and sets *n to how many there
 * are; NULL: none, or out of memory.
 */

static void *
dsa_status_rows(dsa_status_t *s, const dsa_json_t *v, size_t size, uint32_t *n)
{
    if (v == NULL || v->type != DSA_JSON_ARRAY) {
        *n = 0;
        return NULL;
    }

    *n = v->n < DSA_STATUS_ROWS ? v->n : DSA_STATUS_ROWS;

    return *n != 0 ? dsa_arena_calloc(s->arena, *n * size) : NULL;
}


static int
dsa_status_engines(dsa_status_t *s, const dsa_json_t *v)
{
    uint32_t              i, n;
    const dsa_json_t     *tier;
    dsa_status_engine_t  *e;

    static const char *const  tiers[] = { "gpu", "host" };

    s->engines = dsa_status_rows(s, v, sizeof(dsa_status_engine_t),
                                 &s->n_engines);

    if (s->engines == NULL) {
        return s->n_engines == 0 ? DSA_OK : DSA_ERROR;
    }

    v = v->first;

    for (i = 0; i < s->n_engines; i++, v = v->next) {
        e = &s->engines[i];

        e->pool = dsa_status_text(v, "pool");
        e->name = dsa_status_text(v, "engine");
        e->model = dsa_status_text(v, "model");
        e->up = dsa_status_true(v, "up");
        e->draining = dsa_status_true(v, "draining");
        e->running = dsa_status_number(v, "running");
        e->waiting = dsa_status_number(v, "waiting");
        e->tokens = dsa_status_number(v, "completion_tokens");
        e->decodes = dsa_status_number(v, "decodes");
        e->decode_tokens = dsa_status_number(v, "decode_tokens");
        e->drafts = dsa_status_number(v, "draft_tokens");
        e->accepted = dsa_status_number(v, "accepted_draft_tokens");

        for (n = 0; n < 2; n++) {
            tier = dsa_json_get(dsa_json_get(v, "tiers"), tiers[n]);
            e->pages[n] = dsa_status_number(tier, "pages");
            e->used[n] = dsa_status_number(tier, "used");
        }

        tier = dsa_json_get(dsa_json_get(v, "tiers"), "redis");
        e->servers = dsa_status_number(tier, "servers");
        e->servers_on = dsa_status_number(tier, "servers_on");
    }

    return DSA_OK;
}


static int
dsa_status_tenants(dsa_status_t *s, const dsa_json_t *v)
{
    uint32_t              i;
    dsa_status_tenant_t  *t;

    s->tenants = dsa_status_rows(s, v, sizeof(dsa_status_tenant_t),
                                 &s->n_tenants);

    if (s->tenants == NULL) {
        return s->n_tenants == 0 ? DSA_OK : DSA_ERROR;
    }

    v = v->first;

    for (i = 0; i < s->n_tenants; i++, v = v->next) {
        t = &s->tenants[i];

        t->tenant = dsa_status_text(v, "tenant");
        t->key = dsa_status_text(v, "key");
        t->name = dsa_status_text(v, "name");
        t->cost = dsa_status_text(v, "cost");
        t->running = dsa_status_number(v, "running");
        t->waiting = dsa_status_number(v, "waiting");
        t->requests = dsa_status_number(v, "requests");
        t->tokens = dsa_status_number(v, "tokens");
    }

    return DSA_OK;
}
