
/*
 * Copyright (C) The nginx-dsa authors
 *
 * logit_bias: {"50256": -100, ...}, as OpenAI documents it.
 */


#include <stdlib.h>

#include "context/read.h"


#define DSA_BIAS_DIGITS   10            /* of an id */


static int dsa_bias_id(dsa_str_t key, uint32_t *id);
static int dsa_bias_compare(const void *a, const void *b);


int
dsa_read_bias(dsa_reader_t *r, const dsa_json_t *root)
{
    double             d;
    dsa_at_t           at = { NULL, "logit_bias", 0 };
    uint32_t           i;
    dsa_bias_t        *b;
    dsa_json_t        *v;
    const dsa_json_t  *child;

    if (dsa_read_any(root, "logit_bias", &v) == 0) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(r->refusal, &at, v, "an object of token ids "
                               "and numbers");
    }

    if (v->n > DSA_SAMPLE_MAX_BIAS) {
        return dsa_refuse_at(r->refusal, &at, "%u ids; at most %d are "
                             "accepted", v->n, DSA_SAMPLE_MAX_BIAS);
    }

    b = dsa_arena_alloc(r->arena, (v->n + 1) * sizeof(dsa_bias_t));

    if (b == NULL) {
        return dsa_refuse_memory(r->refusal, r->arena);
    }

    r->chat->bias = b;

    for (child = v->first; child != NULL; child = child->next, b++) {
        if (dsa_bias_id(child->key, &b->id) != DSA_OK) {
            return dsa_refuse_at(r->refusal, &at, "\"%.*s\" is not a token "
                                 "id; expected digits, for example \"128\"",
                                 dsa_read_shown(child->key), child->key.data);
        }

        if (dsa_json_double(child, &d) != DSA_OK || d < -DSA_SAMPLE_FORCE
            || d > DSA_SAMPLE_FORCE)
        {
            return dsa_refuse_at(r->refusal, &at, "the bias of token id %u is "
                                 "not a number in [-%d, %d]", b->id,
                                 DSA_SAMPLE_FORCE, DSA_SAMPLE_FORCE);
        }

        b->bias = (float) d;
    }

    r->chat->n_bias = v->n;

    /* "7" and "07" are different names */

    qsort(r->chat->bias, v->n, sizeof(dsa_bias_t), dsa_bias_compare);

    for (i = 1; i < v->n; i++) {
        if (r->chat->bias[i].id == r->chat->bias[i - 1].id) {
            return dsa_refuse_at(r->refusal, &at, "token id %u occurs twice; "
                                 "expected each id once",
                                 r->chat->bias[i].id);
        }
    }

    return DSA_OK;
}


static int
dsa_bias_id(dsa_str_t key, uint32_t *id)
{
    size_t    i;
    uint64_t  n;

    if (key.len == 0 || key.len > DSA_BIAS_DIGITS) {
        return DSA_ERROR;
    }

    n = 0;

    for (i = 0; i < key.len; i++) {
        if (key.data[i] < '0' || key.data[i] > '9') {
            return DSA_ERROR;
        }

        n = n * 10 + (uint64_t) (key.data[i] - '0');
    }

    *id = (uint32_t) n;

    return n <= UINT32_MAX ? DSA_OK : DSA_ERROR;
}


static int
dsa_bias_compare(const void *a, const void *b)
{
    const dsa_bias_t  *x = a;
    const dsa_bias_t  *y = b;

    return (x->id > y->id) - (x->id < y->id);
}
