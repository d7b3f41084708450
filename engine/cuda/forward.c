
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/group.h"
#include "kernels/core/bf16.h"


typedef struct {
    dsa_cuda_group_t   *group;
    const dsa_rows_t   *seq;
    uint32_t            prompt;
    float              *logits;
} dsa_forward_t;


static int dsa_forward_check(const dsa_cuda_rank_t *rank,
    const dsa_rows_t *seq, dsa_err_t *err);
static int dsa_forward_rank(void *data, uint32_t number, dsa_err_t *err);
static void dsa_forward_step(dsa_cuda_step_t *step, dsa_cuda_seq_t part[2],
    const dsa_cuda_rank_t *rank, const dsa_rows_t *seq, uint32_t prompt);
static int dsa_forward_input(dsa_cuda_rank_t *rank, const dsa_rows_t *seq);
static int dsa_forward_padding(dsa_cuda_rank_t *rank);
static int dsa_forward_put(dsa_cuda_rank_t *rank, dsa_bf16_t *to,
    const float *from, uint64_t n);
static int dsa_forward_get(dsa_cuda_rank_t *rank, float *to,
    const dsa_bf16_t *from, uint64_t n);
static int dsa_forward_draft(dsa_cuda_rank_t *rank, const dsa_rows_t *seq,
    uint32_t step);


int
dsa_cuda_group_forward(dsa_cuda_group_t *group, const dsa_rows_t *seq,
    uint32_t prompt, float *logits, dsa_err_t *err)
{
    dsa_forward_t  f = { group, seq, prompt, logits };

    if (dsa_forward_check(group->rank[0], seq, err) != DSA_OK
        || dsa_cuda_team_run(group->team, dsa_forward_rank, &f, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_cuda_group_check(group, err);
}


/*
 * Computes the step on one rank.  With "attention data" the other ranks
 * compute a padding token, because all ranks must take part in the exchanges.
 */

static int
dsa_forward_rank(void *data, uint32_t number, dsa_err_t *err)
{
    int               rc, idle;
    dsa_forward_t    *f;
    dsa_cuda_seq_t    part[2];
    dsa_cuda_rank_t  *rank;
    dsa_cuda_step_t   step;

    f = data;
    rank = f->group->rank[number];
    idle = number != 0 && f->group->attention == DSA_ATTENTION_DATA;

    rc = dsa_cuda_rank_attach(rank);

    if (rc == 0) {
        rc = idle ? dsa_forward_padding(rank)
                  : dsa_forward_input(rank, f->seq);
    }

    if (rc != 0) {
        return dsa_error(err, "GPU %d: the input of %u tokens: %s",
                         rank->device, f->seq->n, dsa_cuda_error(rc));
    }

    memset(&step, 0, sizeof(dsa_cuda_step_t));

    if (idle) {
        step.tokens = 1;
        step.decode = 1;

    } else {
        dsa_forward_step(&step, part, rank, f->seq, f->prompt);
    }

    step.fullest = f->seq->n;

    if (dsa_cuda_rank_run(rank, &step, err) != DSA_OK) {
        return DSA_ERROR;
    }

    rc = number != 0 ? 0
         : (int) cudaMemcpyAsync(f->logits, rank->work.vocab,
                                 (uint64_t) f->seq->n
                                 * rank->config.vocab_size * sizeof(float),
                                 cudaMemcpyDeviceToHost, rank->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(rank->stream);

    if (rc != 0) {
        return dsa_error(err, "GPU %d: the logits of %u tokens: %s",
                         rank->device, f->seq->n, dsa_cuda_error(rc));
    }

    return DSA_OK;
}


static void
dsa_forward_step(dsa_cuda_step_t *step, dsa_cuda_seq_t part[2],
    const dsa_cuda_rank_t *rank, const dsa_rows_t *seq, uint32_t prompt)
{
    step->tokens = seq->n;
    step->samples = seq->n;
    step->seq = part;

    if (dsa_cuda_step_decodes(rank->mha_prompt, seq->start, seq->n, prompt)) {
        step->decode = 1;
        step->max_keys = seq->start + 1;
        step->indexed = step->max_keys > rank->topk;

    } else {
        step->n_seqs = dsa_cuda_step_parts(part, rank->mha_prompt, seq->start,
                                           seq->n, prompt, 0, 0);
    }
}


static int
dsa_forward_check(const dsa_cuda_rank_t *rank, const dsa_rows_t *seq,
    dsa_err_t *err)
{
    uint32_t  i, most;

    most = rank->max_tokens < rank->max_samples ? rank->max_tokens
                                                : rank->max_samples;

    if (seq->n == 0 || seq->n > most
        || (uint64_t) seq->start + seq->n > rank->context)
    {
        return dsa_error(err, "a step has %u tokens from position %u on; "
                         "expected 1 to %u tokens at positions below %u",
                         seq->n, seq->start, most, rank->context);
    }

    for (i = 0; i < seq->n; i++) {
        if (seq->tokens[i] >= rank->config.vocab_size) {
            return dsa_error(err, "the token at position %u has id %u; "
                             "expected an id below %u", seq->start + i,
                             seq->tokens[i], rank->config.vocab_size);
        }
    }

    return DSA_OK;
}


static int
dsa_forward_set(dsa_cuda_rank_t *rank, void *to, const int32_t *from,
    uint32_t n)
{
    return cudaMemcpyAsync(to, from, n * sizeof(int32_t),
                           cudaMemcpyHostToDevice, rank->stream);
}


/* Fills the arrays of the step.  All tokens use row 0 of the block tables. */

static int
dsa_forward_input(dsa_cuda_rank_t *rank, const dsa_rows_t *seq)
{
    int                rc;
    int32_t           *v;
    uint32_t           i, at, n, pages;
    dsa_cuda_input_t  *in;

    in = &rank->input;
    n = seq->n;
    pages = (seq->start + n + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;

    v = calloc(7 * (size_t) n, sizeof(int32_t));

    if (v == NULL) {
        return cudaErrorMemoryAllocation;
    }

    for (i = 0; i < n; i++) {
        at = seq->start + i;

        v[i] = (int32_t) seq->tokens[i];
        v[n + i] = (int32_t) at;
        v[2 * n + i] = (int32_t) (seq->pages[at / DSA_PAGE_TOKENS]
                                  * DSA_PAGE_TOKENS + at % DSA_PAGE_TOKENS);
        v[3 * n + i] = (int32_t) at + 1;
        v[5 * n + i] = -1;
        v[6 * n + i] = (int32_t) i;
    }

    rc = dsa_forward_set(rank, in->token, v, n);
    rc = rc != 0 ? rc : dsa_forward_set(rank, in->position, v + n, n);
    rc = rc != 0 ? rc : dsa_forward_set(rank, in->slot, v + 2 * n, n);
    rc = rc != 0 ? rc : dsa_forward_set(rank, in->keys, v + 3 * n, n);
    rc = rc != 0 ? rc : dsa_forward_set(rank, in->table, v + 4 * n, n);
    rc = rc != 0 ? rc : dsa_forward_set(rank, in->feed, v + 5 * n, n);
    rc = rc != 0 ? rc : dsa_forward_set(rank, in->last, v + 6 * n, n);
    rc = rc != 0 ? rc : dsa_forward_set(rank, in->pages,
                                        (const int32_t *) seq->pages, pages);

    /* zeros are greedy sampling; the samples are ignored */

    rc = rc != 0 ? rc : (int) cudaMemsetAsync(in->sampling, 0,
                                              n * sizeof(dsa_cuda_sample_row_t),
                                              rank->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(rank->stream);
    free(v);

    return rc;
}


/* Fills the arrays with one padding token. */

static int
dsa_forward_padding(dsa_cuda_rank_t *rank)
{
    int                rc;
    int32_t            zero, none;
    dsa_cuda_input_t  *in;

    in = &rank->input;
    zero = 0;
    none = -1;

    rc = dsa_forward_set(rank, in->token, &zero, 1);
    rc = rc != 0 ? rc : dsa_forward_set(rank, in->position, &zero, 1);
    rc = rc != 0 ? rc : dsa_forward_set(rank, in->keys, &zero, 1);
    rc = rc != 0 ? rc : dsa_forward_set(rank, in->table, &zero, 1);
    rc = rc != 0 ? rc : dsa_forward_set(rank, in->slot, &none, 1);
    rc = rc != 0 ? rc : dsa_forward_set(rank, in->feed, &none, 1);

    return rc != 0 ? rc : (int) cudaStreamSynchronize(rank->stream);
}


int
dsa_cuda_group_hidden(dsa_cuda_group_t *group, uint32_t n, float *hidden,
    dsa_err_t *err)
{
    int               rc;
    dsa_cuda_rank_t  *rank;

    rank = group->rank[0];

    rc = dsa_cuda_rank_attach(rank);
    rc = rc != 0 ? rc : dsa_forward_get(rank, hidden, rank->work.hidden,
                                        (uint64_t) n
                                        * rank->config.hidden_size);

    if (rc != 0) {
        return dsa_error(err, "GPU %d: the hidden states of %u tokens: %s",
                         rank->device, n, dsa_cuda_error(rc));
    }

    return DSA_OK;
}


int
dsa_cuda_group_draft(dsa_cuda_group_t *group, const dsa_rows_t *seq,
    uint32_t step, float *hidden, float *logits, dsa_err_t *err)
{
    int               rc;
    uint64_t          first, width, vocab;
    dsa_cuda_rank_t  *rank;

    rank = group->rank[0];
    width = rank->config.hidden_size;
    vocab = rank->config.vocab_size;
    first = seq->n - seq->n_logits;

    if (dsa_forward_check(rank, seq, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (seq->start == 0 || (step != 0 && seq->n != 1)) {
        return dsa_error(err, "step %u of the draft layer has %u tokens from "
                         "position %u on; expected position 1 or a later one, "
                         "and one token after step 0", step, seq->n,
                         seq->start);
    }

    rc = dsa_cuda_rank_attach(rank);
    rc = rc != 0 ? rc : dsa_forward_input(rank, seq);
    rc = rc != 0 ? rc : dsa_forward_put(rank, rank->work.draft_hidden,
                                        seq->hidden, seq->n * width);
    rc = rc != 0 ? rc : dsa_forward_draft(rank, seq, step);
    rc = rc != 0 ? rc : dsa_forward_get(rank, hidden,
                                        rank->work.last_y + first * width,
                                        seq->n_logits * width);
    rc = rc != 0 ? rc : (int) cudaMemcpyAsync(logits,
                                              rank->work.vocab + first * vocab,
                                              seq->n_logits * vocab
                                              * sizeof(float),
                                              cudaMemcpyDeviceToHost,
                                              rank->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(rank->stream);

    if (rc != 0) {
        return dsa_error(err, "GPU %d: a step of %u rows of the draft layer: "
                         "%s", rank->device, seq->n, dsa_cuda_error(rc));
    }

    return DSA_OK;
}


static int
dsa_forward_draft(dsa_cuda_rank_t *rank, const dsa_rows_t *seq, uint32_t step)
{
    dsa_cuda_seq_t   part;
    dsa_cuda_step_t  s;

    memset(&s, 0, sizeof(dsa_cuda_step_t));
    memset(&part, 0, sizeof(dsa_cuda_seq_t));

    s.tokens = seq->n;
    s.samples = seq->n;
    s.fullest = seq->n;
    s.seq = &part;

    if (seq->n == 1) {
        s.decode = 1;
        s.max_keys = seq->start + 1;
        s.indexed = s.max_keys > rank->topk;
        s.shared_pick = step != 0
                        && rank->config.index_share_for_mtp_iteration;

    } else {
        s.n_seqs = 1;
        part.start = seq->start;
        part.n = seq->n;
    }

    dsa_cuda_try(dsa_cuda_draft(rank, rank->sample, &s));

    return step == 0 ? dsa_cuda_draft_keep(rank, seq->n - 1) : 0;
}


/* Rounds n elements to BF16 and copies them to the GPU. */

static int
dsa_forward_put(dsa_cuda_rank_t *rank, dsa_bf16_t *to, const float *from,
    uint64_t n)
{
    int          rc;
    uint64_t     i;
    dsa_bf16_t  *v;

    v = malloc(n * sizeof(dsa_bf16_t));

    if (v == NULL) {
        return cudaErrorMemoryAllocation;
    }

    for (i = 0; i < n; i++) {
        v[i] = dsa_bf16_encode(from[i]);
    }

    rc = cudaMemcpyAsync(to, v, n * sizeof(dsa_bf16_t),
                         cudaMemcpyHostToDevice, rank->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(rank->stream);
    free(v);

    return rc;
}


/* Copies n BF16 elements from the GPU. */

static int
dsa_forward_get(dsa_cuda_rank_t *rank, float *to, const dsa_bf16_t *from,
    uint64_t n)
{
    int          rc;
    uint64_t     i;
    dsa_bf16_t  *v;

    v = malloc(n * sizeof(dsa_bf16_t));

    if (v == NULL) {
        return cudaErrorMemoryAllocation;
    }

    rc = cudaMemcpyAsync(v, from, n * sizeof(dsa_bf16_t),
                         cudaMemcpyDeviceToHost, rank->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(rank->stream);

    for (i = 0; rc == 0 && i < n; i++) {
        to[i] = dsa_bf16_decode(v[i]);
    }

    free(v);

    return rc;
}
