
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Sequences on a replica of several ranks, through the backend's interface.
 * Ranks are on as many GPUs as the machine has, and share them when there are
 * fewer.
 */


#ifndef _T_GPU_GROUP_H_INCLUDED_
#define _T_GPU_GROUP_H_INCLUDED_


#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "engine/backend.h"


#define MODEL       "t/data/golden/a-fp8"
#define PAGES       64              /* of each rank */
#define CONTEXT     1024
#define PROMPT      300
#define ANSWER      40
#define SEQS        8
#define BUDGET      1024


typedef struct {
    uint32_t            rank;
    uint32_t            prompt;
    uint32_t            tokens[CONTEXT];
    uint32_t            pages[PAGES];   /* block table */
    dsa_sample_t        sample[ANSWER];
} client_t;


/*
 * "attention tensor" needs wider experts than those of the small model: wide is
 * a copy with the same function (t/lib/DSA/Widen.pm).
 */

static char  wide[] = "/tmp/dsa-group-XXXXXX";


static const dsa_sampling_t  greedy = {
    .top_p = 1, .logprobs = 1, .top_logprobs = 2
};


static inline uint32_t
device(uint32_t rank)
{
    int  n;

    n = 1;
    (void) cudaGetDeviceCount(&n);

    return rank % (uint32_t) n;
}


static inline dsa_backend_t *
backend_open(const char *model, uint32_t gpus, dsa_attention_e attention)
{
    uint32_t             i;
    dsa_err_t            err;
    dsa_backend_t       *b;
    dsa_model_config_t   config;
    dsa_backend_conf_t   conf;

    if (dsa_model_config_read(&config, model, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    memset(&conf, 0, sizeof(conf));

    conf.model = model;
    conf.precision = DSA_SERVED;
    conf.gpus = gpus;
    conf.attention = attention;
    conf.context = CONTEXT;
    conf.kv_memory = (uint64_t) PAGES * DSA_PAGE_TOKENS
                     * config.num_hidden_layers * (656 + 132);
    conf.max_tokens = BUDGET * (attention == DSA_ATTENTION_DATA ? gpus : 1);
    conf.max_seqs = SEQS;
    conf.allowed = config.vocab_size;

    for (i = 0; i < gpus; i++) {
        conf.gpu[i] = device(i);
    }

    b = dsa_backend_cuda_open(&conf, &err);

    if (b == NULL) {
        fail_msg("%s", err.text);
    }

    assert_true(b->pages >= PAGES);
    assert_int_equal(b->ranks, attention == DSA_ATTENTION_DATA ? gpus : 1);
    assert_int_equal(b->rank_tokens, BUDGET);

    return b;
}


/* A client with random tokens and pages of its own on a rank. */

static inline void
client_init(client_t *c, uint32_t seed, uint32_t rank, uint32_t prompt)
{
    uint32_t  i;

    memset(c, 0, sizeof(client_t));

    c->rank = rank;
    c->prompt = prompt;

    for (i = 0; i < prompt; i++) {
        seed = seed * 1664525 + 1013904223;
        c->tokens[i] = (seed >> 8) % 1024;
    }
}


static inline void
client_pages(client_t *c, uint32_t first)
{
    uint32_t  i, n;

    n = (c->prompt + ANSWER + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;

    for (i = 0; i < n; i++) {
        c->pages[i] = first + n - 1 - i;
    }
}


static inline void
entry(dsa_batch_seq_t *s, client_t *c, uint32_t start, uint32_t n,
    dsa_sample_t *sample)
{
    memset(s, 0, sizeof(dsa_batch_seq_t));

    s->tokens = c->tokens;
    s->start = start;
    s->n_input = n;
    s->input_from = DSA_INPUT_KNOWN;
    s->n_prompt = c->prompt;
    s->rank = c->rank;
    s->pages = c->pages;
    s->sampling = sample != NULL ? &greedy : NULL;
    s->sample = sample;
}


static inline void
step(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n)
{
    dsa_err_t  err;

    if (b->start(b, seq, n, &err) != DSA_OK || b->wait(b, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }
}


static inline int
wide_make(void **state)
{
    char  command[256];

    if (mkdtemp(wide) == NULL) {
        return -1;
    }

    (void) snprintf(command, sizeof(command), "perl -It/lib -MDSA::Widen -e "
                    "'widen(@ARGV)' %s %s/m 2", MODEL, wide);

    return system(command);
}


static inline int
wide_remove(void **state)
{
    char  command[256];

    (void) snprintf(command, sizeof(command), "rm -rf %s", wide);

    return system(command);
}


#endif /* _T_GPU_GROUP_H_INCLUDED_ */
