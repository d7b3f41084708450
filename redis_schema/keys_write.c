
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdio.h>

#include "base/json_write.h"
#include "keys.h"


static void dsa_key_write_hash(dsa_json_writer_t *w, const char *name,
    const uint8_t hash[DSA_KEY_HASH_LEN]);
static void dsa_key_write_limits(dsa_json_writer_t *w,
    const dsa_key_limits_t *limits);
static void dsa_key_write_number(dsa_json_writer_t *w, const char *name,
    uint64_t n, uint64_t absent);
static void dsa_key_write_budget(dsa_json_writer_t *w,
    const dsa_key_limits_t *limits);
static void dsa_key_write_amount(dsa_json_writer_t *w, const char *name,
    int64_t amount);


void
dsa_key_write(dsa_buf_t *b, const dsa_key_t *key)
{
    uint32_t           i;
    dsa_json_writer_t  w;

    assert(dsa_key_check(key, NULL) == DSA_OK);

    dsa_json_writer(&w, b);
    dsa_json_object(&w);

    dsa_json_key(&w, "id");
    dsa_json_string(&w, key->id);
    dsa_json_key(&w, "name");
    dsa_json_string(&w, key->name);
    dsa_json_key(&w, "tenant");
    dsa_json_string(&w, key->tenant);
    dsa_key_write_hash(&w, "hash", key->hash);

    if (key->old_until != 0) {
        dsa_json_key(&w, "old");
        dsa_json_object(&w);
        dsa_key_write_hash(&w, "hash", key->old_hash);
        dsa_json_key(&w, "until");
        dsa_json_uint(&w, (uint64_t) key->old_until);
        dsa_json_object_end(&w);
    }

    dsa_json_key(&w, "state");
    dsa_json_stringz(&w, dsa_key_state_name(key->state));
    dsa_json_key(&w, "created");
    dsa_json_uint(&w, (uint64_t) key->created);

    if (key->expires != 0) {
        dsa_json_key(&w, "expires");
        dsa_json_uint(&w, (uint64_t) key->expires);
    }

    if (key->n_models != 0) {
        dsa_json_key(&w, "models");
        dsa_json_array(&w);

        for (i = 0; i < key->n_models; i++) {
            dsa_json_string(&w, key->models[i]);
        }

        dsa_json_array_end(&w);
    }

    dsa_key_write_limits(&w, &key->limits);
    dsa_json_object_end(&w);
}


static void
dsa_key_write_hash(dsa_json_writer_t *w, const char *name,
    const uint8_t hash[DSA_KEY_HASH_LEN])
{
    int   i;
    char  hex[2 * DSA_KEY_HASH_LEN + 1];

    for (i = 0; i < DSA_KEY_HASH_LEN; i++) {
        (void) snprintf(&hex[2 * i], 3, "%02x", hash[i]);
    }

    dsa_json_key(w, name);
    dsa_json_string(w, dsa_str(hex, 2 * DSA_KEY_HASH_LEN));
}


static void
dsa_key_write_limits(dsa_json_writer_t *w, const dsa_key_limits_t *limits)
{
    dsa_key_write_number(w, "rpm", limits->rpm, 0);
    dsa_key_write_number(w, "tpm", limits->tpm, 0);
    dsa_key_write_number(w, "concurrency", limits->concurrency, 0);
    dsa_key_write_number(w, "weight", limits->weight, DSA_KEY_WEIGHT);

    if (limits->priority != DSA_KEY_NORMAL) {
        dsa_json_key(w, "priority");
        dsa_json_stringz(w, dsa_key_priority_name(limits->priority));
    }

    dsa_key_write_budget(w, limits);
}


/* absent: the value that a key entry without this member has. */

static void
dsa_key_write_number(dsa_json_writer_t *w, const char *name, uint64_t n,
    uint64_t absent)
{
    if (n != absent) {
        dsa_json_key(w, name);
        dsa_json_uint(w, n);
    }
}


static void
dsa_key_write_budget(dsa_json_writer_t *w, const dsa_key_limits_t *limits)
{
    int                      i, any;
    const dsa_key_budget_t  *b;

    any = 0;

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        b = &limits->budget[i];

        if (b->soft == -1 && b->hard == -1) {
            continue;
        }

        if (!any) {
            any = 1;
            dsa_json_key(w, "budget");
            dsa_json_object(w);
        }

        dsa_json_key(w, dsa_key_period_name(i));
        dsa_json_object(w);
        dsa_key_write_amount(w, "soft", b->soft);
        dsa_key_write_amount(w, "hard", b->hard);
        dsa_json_object_end(w);
    }

    if (any) {
        dsa_json_object_end(w);
    }
}


static void
dsa_key_write_amount(dsa_json_writer_t *w, const char *name, int64_t amount)
{
    char  text[DSA_MONEY_LEN];

    if (amount != -1) {
        dsa_json_key(w, name);
        dsa_json_string(w, dsa_str(text, dsa_money_print(text, amount, 0)));
    }
}
