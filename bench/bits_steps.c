
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/bits.h"


/*
 * The next token of a prompt, and the one after it, are computed alone, and
 * then in other steps.  Their 20 best logprobs are compared bit by bit; a
 * logprob depends on all logits.
 */

typedef struct {
    dsa_bits_t         *bits;
    uint32_t            length[DSA_BITS_PROBES];    /* of the prompts */
    dsa_sample_t        first[DSA_BITS_PROBES];     /* alone */
    dsa_sample_t        second[DSA_BITS_PROBES];
    dsa_sample_t        got[DSA_BITS_PROBES];
} dsa_bits_probe_t;


#define DSA_BITS_SHORT      4096        /* most tokens for MHA prefill */
#define DSA_BITS_NEIGHBOR   700         /* tokens of another prompt */


/* Sets *sample to what a condition makes of prompt s. */

typedef int (*dsa_bits_pt)(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err);


typedef struct {
    const char         *what;
    dsa_bits_pt         run;
    uint32_t            n;
    int                 second;         /* 1: of the second token */
} dsa_bits_case_t;


static int dsa_bits_whole(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err);
static int dsa_bits_chunks(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err);
static int dsa_bits_prompts(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err);
static int dsa_bits_streams(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err);
static int dsa_bits_cached(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err);
static int dsa_bits_answer(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err);
static int dsa_bits_beside(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err);
static int dsa_bits_far(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err);
static int dsa_bits_again(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err);
static int dsa_bits_draft(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err);


static const dsa_bits_case_t  dsa_bits_cases[] = {
    { "prompt: the same step again", dsa_bits_whole, 0, 0 },
    { "prompt: in chunks of 64", dsa_bits_chunks, 64, 0 },
    { "prompt: in chunks of 100", dsa_bits_chunks, 100, 0 },
    { "prompt: in chunks of 200", dsa_bits_chunks, 200, 0 },
    { "prompt: in chunks of 512", dsa_bits_chunks, 512, 0 },
    { "prompt: in chunks of 1,000", dsa_bits_chunks, 1000, 0 },
    { "prompt: beside 1 prompt", dsa_bits_prompts, 1, 0 },
    { "prompt: beside 3 prompts", dsa_bits_prompts, 3, 0 },
    { "prompt: beside 8 streams", dsa_bits_streams, 8, 0 },
    { "prompt: beside 127 streams", dsa_bits_streams, 127, 0 },
    { "prompt: all pages but the last cached", dsa_bits_cached, 1, 0 },
    { "prompt: half of its pages cached", dsa_bits_cached, 2, 0 },
    { "prompt: half of its pages cached, as an answer", dsa_bits_answer, 2,
      0 },
    { "answer: the same step again", dsa_bits_beside, 0, 1 },
    { "answer: beside 1 stream", dsa_bits_beside, 1, 1 },
    { "answer: beside 3 streams", dsa_bits_beside, 3, 1 },
    { "answer: beside 7 streams", dsa_bits_beside, 7, 1 },
    { "answer: beside 15 streams", dsa_bits_beside, 15, 1 },
    { "answer: beside 31 streams", dsa_bits_beside, 31, 1 },
    { "answer: beside 63 streams", dsa_bits_beside, 63, 1 },
    { "answer: beside 127 streams", dsa_bits_beside, 127, 1 },
    { "answer: beside 1 stream at 64K", dsa_bits_far, 0, 1 },
    { "answer: beside a prompt", dsa_bits_far, 512, 1 },
    { "answer: computed again with its prompt", dsa_bits_again, 0, 1 },
    { "answer: with a draft", dsa_bits_draft, 1, 1 },
    { "answer: with 3 drafts", dsa_bits_draft, 3, 1 },
    { "answer: with 7 drafts", dsa_bits_draft, DSA_BITS_DRAFTS, 1 }
};


static int
dsa_bits_same(const dsa_sample_t *a, const dsa_sample_t *b)
{
    return a->token == b->token
           && memcmp(&a->logprob, &b->logprob, sizeof(float)) == 0
           && memcmp(a->top, b->top, sizeof(a->top)) == 0
           && memcmp(a->top_logprob, b->top_logprob, sizeof(a->top_logprob))
              == 0;
}


/*
 * Every case leaves another cache, so the prompt is computed alone before each
 * of them.
 */

static int
dsa_bits_case(dsa_bits_probe_t *p, const dsa_bits_case_t *c, dsa_err_t *err)
{
    double               most, d;
    uint32_t             s, is, tokens, differ[2], of[2];
    const dsa_sample_t  *alone, *got;

    most = 0;
    tokens = 0;
    memset(differ, 0, sizeof(differ));
    memset(of, 0, sizeof(of));

    for (s = 0; s < DSA_BITS_PROBES; s++) {
        alone = c->second ? &p->second[s] : &p->first[s];
        got = &p->got[s];

        if (dsa_bits_whole(p, s, 0, &p->got[s], err) != DSA_OK) {
            return DSA_ERROR;
        }

        if (c->run(p, s, c->n, &p->got[s], err) != DSA_OK) {
            return DSA_ERROR;
        }

        is = p->length[s] > DSA_BITS_SHORT;
        of[is]++;
        differ[is] += !dsa_bits_same(alone, got);
        tokens += alone->token != got->token;
        d = fabs((double) alone->top_logprob[0] - got->top_logprob[0]);
        most = d > most ? d : most;
    }

    (void) printf("| %s | %u of %u | %u of %u | %u | %.2g |\n", c->what,
                  differ[0], of[0], differ[1], of[1], tokens, most);
    (void) fflush(stdout);

    return DSA_OK;
}


int
dsa_bits_steps(dsa_bits_t *b, dsa_err_t *err)
{
    size_t            i;
    uint32_t          s;
    dsa_bits_probe_t  p;

    memset(&p, 0, sizeof(p));
    p.bits = b;

    (void) printf("\nLogprobs of a token that are not those of the prompt "
                  "alone in one step:\n\n"
                  "| | prompts up to %u tokens | longer ones | other tokens "
                  "| most of a logprob |\n|---|---|---|---|---|\n",
                  DSA_BITS_SHORT);

    for (s = 0; s < DSA_BITS_PROBES; s++) {
        p.length[s] = 300 + s * 370;

        if (dsa_bits_whole(&p, s, 0, &p.first[s], err) != DSA_OK
            || dsa_bits_beside(&p, s, 0, &p.second[s], err) != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    for (i = 0; i < sizeof(dsa_bits_cases) / sizeof(dsa_bits_cases[0]); i++) {
        if (dsa_bits_case(&p, &dsa_bits_cases[i], err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/* Computes a step of n entries, of which the first is the probe. */

static int
dsa_bits_probe(dsa_bits_probe_t *p, uint32_t n, dsa_sample_t *sample,
    dsa_err_t *err)
{
    memset(&p->bits->sample[0], 0, sizeof(dsa_sample_t));

    if (dsa_bits_step(p->bits, n, err) != DSA_OK) {
        return DSA_ERROR;
    }

    *sample = p->bits->sample[0];

    return DSA_OK;
}


static int
dsa_bits_whole(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err)
{
    (void) dsa_bits_seq(p->bits, 0, s, 0, p->length[s], p->length[s]);

    return dsa_bits_probe(p, 1, sample, err);
}


static int
dsa_bits_chunks(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err)
{
    uint32_t  at, part;

    for (at = 0; at < p->length[s]; at += part) {
        part = p->length[s] - at < n ? p->length[s] - at : n;
        (void) dsa_bits_seq(p->bits, 0, s, at, part, p->length[s]);

        if (dsa_bits_probe(p, 1, sample, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static int
dsa_bits_prompts(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err)
{
    uint32_t  i;

    (void) dsa_bits_seq(p->bits, 0, s, 0, p->length[s], p->length[s]);

    for (i = 1; i <= n; i++) {
        (void) dsa_bits_seq(p->bits, i, DSA_BITS_PROBES + s + i, 0,
                            DSA_BITS_NEIGHBOR, DSA_BITS_NEIGHBOR);
    }

    return dsa_bits_probe(p, n + 1, sample, err);
}


/*
 * Sets entries first .. first + n - 1 to streams at 1,000 tokens, whose cache
 * is random.
 */

static void
dsa_bits_neighbors(dsa_bits_probe_t *p, uint32_t s, uint32_t first,
    uint32_t n)
{
    uint32_t  i, other;

    for (i = 0; i < n; i++) {
        other = (s + 1 + i) % DSA_BITS_SEQS;
        (void) dsa_bits_seq(p->bits, first + i, other, 1000, 1, 1000);
    }
}


static int
dsa_bits_streams(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err)
{
    (void) dsa_bits_seq(p->bits, 0, s, 0, p->length[s], p->length[s]);
    dsa_bits_neighbors(p, s, 1, n);

    return dsa_bits_probe(p, n + 1, sample, err);
}


/* The pages before the last 1 / n of the prompt are used. */

static uint32_t
dsa_bits_cut(const dsa_bits_probe_t *p, uint32_t s, uint32_t n)
{
    return (n == 1 ? p->length[s] - 1 : p->length[s] / n) / DSA_PAGE_TOKENS
           * DSA_PAGE_TOKENS;
}


static int
dsa_bits_cached(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err)
{
    uint32_t  cut;

    cut = dsa_bits_cut(p, s, n);
    (void) dsa_bits_seq(p->bits, 0, s, cut, p->length[s] - cut, p->length[s]);

    return dsa_bits_probe(p, 1, sample, err);
}


/* The pages were computed as those of an answer are, by absorbed MQA. */

static int
dsa_bits_answer(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err)
{
    (void) dsa_bits_seq(p->bits, 0, s, 0, dsa_bits_cut(p, s, n), 0);

    if (dsa_bits_probe(p, 1, sample, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_bits_cached(p, s, n, sample, err);
}


static int
dsa_bits_beside(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err)
{
    (void) dsa_bits_seq(p->bits, 0, s, p->length[s], 1, p->length[s]);
    dsa_bits_neighbors(p, s, 1, n);

    return dsa_bits_probe(p, n + 1, sample, err);
}


/* Beside n tokens of a prompt, or a stream with a long context. */

static int
dsa_bits_far(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err)
{
    dsa_batch_seq_t  *far;

    (void) dsa_bits_seq(p->bits, 0, s, p->length[s], 1, p->length[s]);

    if (n != 0) {
        (void) dsa_bits_seq(p->bits, 1, DSA_BITS_PROBES + s, 0, n, n);

    } else {
        far = dsa_bits_seq(p->bits, 1, 0, DSA_BITS_FAR - 1, 1,
                           DSA_BITS_FAR - 1);
        far->pages = p->bits->pages + DSA_BITS_SEQS * DSA_BITS_LENGTH
                                      / DSA_PAGE_TOKENS;
    }

    return dsa_bits_probe(p, 2, sample, err);
}


/* As after a preemption: prompt and answer in one step. */

static int
dsa_bits_again(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err)
{
    (void) dsa_bits_seq(p->bits, 0, s, 0, p->length[s] + 1, p->length[s]);

    return dsa_bits_probe(p, 1, sample, err);
}


static int
dsa_bits_draft(dsa_bits_probe_t *p, uint32_t s, uint32_t n,
    dsa_sample_t *sample, dsa_err_t *err)
{
    uint32_t          accepted;
    dsa_sample_t      samples[DSA_BITS_DRAFTS + 1];
    dsa_batch_seq_t  *seq;

    memset(samples, 0, sizeof(samples));

    seq = dsa_bits_seq(p->bits, 0, s, p->length[s], n + 1, p->length[s]);
    seq->n_draft = n;
    seq->sample = samples;
    seq->accepted = &accepted;

    if (dsa_bits_step(p->bits, 1, err) != DSA_OK) {
        return DSA_ERROR;
    }

    *sample = samples[0];

    return DSA_OK;
}
