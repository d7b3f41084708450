
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <string.h>

#include "bench/node.h"


static const char *const  dsa_exchange_name[DSA_EXCHANGES] = {
    "moe", "reduce", "logits"
};


static int
dsa_node_exchange_line(dsa_node_exchange_t *x, const char *line)
{
    char      name[16];
    double    us;
    uint32_t  i, n, tokens;

    if (sscanf(line, "%15[a-z],%u,%lf", name, &tokens, &us) != 3) {
        return DSA_ERROR;
    }

    for (i = 0; i < DSA_EXCHANGES; i++) {
        if (strcmp(name, dsa_exchange_name[i]) == 0) {
            break;
        }
    }

    if (i == DSA_EXCHANGES || x->sizes[i] == DSA_NODE_SIZES) {
        return DSA_ERROR;
    }

    n = x->sizes[i]++;
    x->tokens[i][n] = tokens;
    x->us[i][n] = us;

    return DSA_OK;
}


int
dsa_node_exchange_read(dsa_node_exchange_t *x, const char *name,
    dsa_err_t *err)
{
    int        rc;
    char       line[128];
    FILE      *file;
    uint32_t   n;

    memset(x, 0, sizeof(dsa_node_exchange_t));

    file = fopen(name, "r");

    if (file == NULL) {
        return dsa_error(err, "%s: %s", name, strerror(errno));
    }

    rc = DSA_OK;

    for (n = 1; rc == DSA_OK && fgets(line, sizeof(line), file) != NULL; n++) {
        if (line[0] == '#') {
            continue;
        }

        if (dsa_node_exchange_line(x, line) != DSA_OK) {
            rc = dsa_error(err, "%s: line %u is not an exchange; expected "
                           "\"NAME,TOKENS,US\" with the name moe, reduce or "
                           "logits, at most %u sizes of each", name, n,
                           DSA_NODE_SIZES);
        }
    }

    (void) fclose(file);

    return rc;
}


int
dsa_node_exchange_find(double *us, const dsa_node_exchange_t *x,
    dsa_node_exchange_e kind, uint32_t tokens, dsa_err_t *err)
{
    uint32_t  i;

    for (i = 0; i < x->sizes[kind]; i++) {
        if (x->tokens[kind][i] == tokens) {
            *us = x->us[kind][i];
            return DSA_OK;
        }
    }

    return dsa_error(err, "the exchange \"%s\" of %u tokens was not measured",
                     dsa_exchange_name[kind], tokens);
}


/* The exchanges of a whole step, in seconds. */

static int
dsa_node_exchange(double *seconds, const dsa_node_t *n,
    const dsa_node_exchange_t *x, int head, dsa_err_t *err)
{
    double    us, logits;
    uint32_t  layers;

    us = 0;
    *seconds = 0;
    layers = n->config.num_hidden_layers;

    if (n->gpus == 1) {
        return DSA_OK;
    }

    if (n->attention == DSA_ATTENTION_DATA) {
        if (dsa_node_exchange_find(&us, x, DSA_EXCHANGE_MOE, n->step.batch,
                                   err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }

        layers -= n->config.first_k_dense_replace;
        *seconds = layers * us * 1e-6;

        return DSA_OK;
    }

    logits = 0;

    if (dsa_node_exchange_find(&us, x, DSA_EXCHANGE_REDUCE, n->step.batch,
                               err)
        != DSA_OK
        || (head && dsa_node_exchange_find(&logits, x, DSA_EXCHANGE_LOGITS,
                                           n->step.samples, err)
                    != DSA_OK))
    {
        return DSA_ERROR;
    }

    /* after attention and MLP of each layer, and after the embedding */

    *seconds = ((2 * layers + 1) * us + logits) * 1e-6;

    return DSA_OK;
}


/*
 * Returns the layers with experts that attend to the selection of another one.
 */

static uint32_t
dsa_node_shared(const dsa_model_config_t *s)
{
    uint32_t  i, n;

    if (dsa_model_config_dense(s)) {
        return 0;
    }

    for (i = 0, n = 0; i < s->num_hidden_layers; i++) {
        n += s->layer[i].moe && s->layer[i].selection != DSA_SELECTION_OWN;
    }

    return n;
}


int
dsa_node_measure(dsa_node_time_t *t, dsa_node_t *n,
    const dsa_node_exchange_t *x, int head, dsa_err_t *err)
{
    double            dense, moe, shared, us;
    uint32_t          few, rest, without;
    dsa_bound_t       bound = { 0, 0, 0, 0 };
    dsa_bound_step_t  b;

    few = n->config.first_k_dense_replace;
    without = dsa_node_shared(&n->config);
    rest = n->config.num_hidden_layers - few - without;

    dense = dsa_node_time(n, DSA_NODE_DENSE);
    moe = dsa_node_time(n, DSA_NODE_MOE);
    shared = without > 0 ? dsa_node_time(n, DSA_NODE_SHARED) : 0;
    us = head ? dsa_node_time(n, DSA_NODE_HEAD) : 0;
    t->exchange = 0;

    if (dense < 0 || moe < 0 || shared < 0 || us < 0) {
        return dsa_error(err, "a step of %u tokens was not measured",
                         n->step.batch);
    }

    if (x != NULL
        && dsa_node_exchange(&t->exchange, n, x, head, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    t->layers = (few * dense + rest * moe + without * shared) * 1e-6;
    t->head = us * 1e-6;
    t->total = t->layers + t->head + t->exchange;

    b.ranks = n->gpus;
    b.attention = n->attention;
    b.tokens = n->step.tokens;
    b.sequences = n->step.tokens;
    b.start = n->step.prefill ? n->step.start : n->step.keys;
    b.prefill = n->step.prefill;
    b.load = n->load;
    b.record = dsa_cuda_record(n->kv_bf16);

    dsa_bound_layers(&bound, &n->config, &b, 0, n->config.num_hidden_layers);

    if (head) {
        dsa_bound_head(&bound, &n->config, &b, n->step.samples);
    }

    t->bound = dsa_bound_seconds(&bound, &t->limit);

    return DSA_OK;
}
