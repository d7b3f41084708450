
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Steps of four sequences on two ranks, of which all results are compared.
 */


#ifndef _DSA_T_HOSTS_BITS_H_INCLUDED_
#define _DSA_T_HOSTS_BITS_H_INCLUDED_


#include "t/unit/hosts.h"


#define SEQS        4           /* and rounds */
#define ROUNDS      12
#define VOCAB       1024


/* What a sequence has. */

typedef struct {
    uint32_t            tokens[256];
    uint32_t            n;
    uint32_t            pages[4];
    dsa_sampling_t      sampling;
    dsa_bias_t          bias[3];
    uint32_t            mask[VOCAB / 32];
    dsa_sample_t        sample[ROUNDS];
} bits_t;


/* With penalties, biases, masks, noise and alternatives, some of them. */

static void
bits_make(bits_t *s, uint32_t number)
{
    uint32_t  i;

    memset(s, 0, sizeof(bits_t));
    s->n = 70 + 13 * number;

    for (i = 0; i < s->n; i++) {
        s->tokens[i] = (i * 31 + number * 7) % VOCAB;
    }

    for (i = 0; i < 4; i++) {
        s->pages[i] = (number + 5 * i) % 13;
    }

    for (i = 0; i < VOCAB / 32; i++) {
        s->mask[i] = 0x5a5a5a5aU;
    }

    for (i = 0; i < 3; i++) {
        s->bias[i].id = 100 * i + number;
        s->bias[i].bias = (float) i * 20 - 10;
    }

    s->sampling.logprobs = 1;
    s->sampling.top_logprobs = number * 5;
    s->sampling.temperature = (float) number * 0.5f;
    s->sampling.top_p = number % 2 == 0 ? 1 : 0.9f;
    s->sampling.presence_penalty = number > 1 ? 0.7f : 0;
    s->sampling.frequency_penalty = number == 1 ? -0.5f : 0;
    s->sampling.seed = 0x123456789abcdefULL + number;
}


/* Two sequences on each of two ranks: prompts in chunks, then answers. */

static void
bits_run(dsa_backend_t *b, bits_t *s)
{
    uint32_t         i, round, at[SEQS];
    dsa_err_t        err;
    dsa_batch_seq_t  seq[SEQS];

    memset(at, 0, sizeof(at));

    for (i = 0; i < SEQS; i++) {
        bits_make(&s[i], i);
    }

    for (round = 0; round < ROUNDS; round++) {
        memset(seq, 0, sizeof(seq));

        for (i = 0; i < SEQS; i++) {
            seq[i].tokens = s[i].tokens;
            seq[i].start = at[i];
            seq[i].n_prompt = 70 + 13 * i;
            seq[i].n_input = at[i] == 0 ? 50 : s[i].n - at[i];
            seq[i].input_from = DSA_INPUT_KNOWN;
            seq[i].rank = i % 2;
            seq[i].pages = s[i].pages;

            at[i] += seq[i].n_input;

            if (at[i] < s[i].n) {
                continue;
            }

            seq[i].sampling = &s[i].sampling;
            seq[i].biases.bias = s[i].bias;
            seq[i].biases.n = i;
            seq[i].mask = i == 3 ? s[i].mask : NULL;
            seq[i].sample = &s[i].sample[round];
        }

        must(b->start(b, seq, SEQS, &err), &err);
        must(b->wait(b, &err), &err);

        for (i = 0; i < SEQS && round != 0; i++) {
            s[i].tokens[s[i].n++] = s[i].sample[round].token;
        }
    }
}


/* The samples of all sequences are the same, to the bit. */

static inline void
bits_same(const bits_t *one, const bits_t *two)
{
    uint32_t             i, j;
    const dsa_sample_t  *a, *b;

    for (i = 0; i < SEQS * ROUNDS; i++) {
        a = &one[i / ROUNDS].sample[i % ROUNDS];
        b = &two[i / ROUNDS].sample[i % ROUNDS];
        j = a->n_top;

        assert_int_equal(a->token, b->token);
        assert_memory_equal(&a->logprob, &b->logprob, sizeof(float));
        assert_int_equal(j, b->n_top);

        if (j != 0) {
            assert_memory_equal(a->top, b->top, j * sizeof(uint32_t));
            assert_memory_equal(a->top_logprob, b->top_logprob,
                                j * sizeof(float));
        }
    }

    /* the last one has a mask, and alternatives */

    assert_int_equal(one[SEQS - 1].sample[ROUNDS - 1].n_top, 15);
    assert_true(0x5a5a5a5aU >> one[SEQS - 1].sample[ROUNDS - 1].token % 32
                & 1);
}


#endif /* _DSA_T_HOSTS_BITS_H_INCLUDED_ */
