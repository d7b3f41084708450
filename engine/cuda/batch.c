
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>
#include <string.h>

#include "engine/cuda/batch.h"


static int dsa_batch_check(const dsa_cuda_rank_t *rank,
    const dsa_batch_seq_t *seq, uint32_t n_seqs, dsa_err_t *err);
static uint32_t dsa_batch_order(dsa_cuda_batch_t *batch,
    const dsa_cuda_rank_t *rank, const dsa_batch_seq_t *seq, uint32_t n_seqs);
static void dsa_batch_tokens(const dsa_cuda_batch_t *batch,
    const dsa_cuda_host_t *h, const dsa_batch_seq_t *s, uint32_t first,
    uint32_t table);
static void dsa_batch_pages(const dsa_cuda_rank_t *rank, int32_t *pages,
    const dsa_batch_seq_t *s, uint32_t table);
static void dsa_batch_sampling(dsa_cuda_sampling_t *to,
    const dsa_batch_seq_t *s, uint32_t *history, uint32_t *n_history);


int
dsa_cuda_batch_open(dsa_cuda_batch_t *b, const dsa_cuda_rank_t *rank,
    dsa_err_t *err)
{
    size_t  seqs;

    seqs = rank->max_samples;

    b->sample_of = calloc(seqs, sizeof(uint32_t));
    b->sample_now = calloc(seqs, sizeof(uint32_t));
    b->order = calloc(seqs, sizeof(uint32_t));
    b->seq = calloc(2 * seqs, sizeof(dsa_cuda_seq_t));

    if (b->sample_of == NULL || b->sample_now == NULL || b->order == NULL
        || b->seq == NULL)
    {
        return dsa_error(err, "no memory for steps of %zu sequences", seqs);
    }

    return DSA_OK;
}


void
dsa_cuda_batch_close(dsa_cuda_batch_t *b)
{
    free(b->sample_of);
    free(b->sample_now);
    free(b->order);
    free(b->seq);
}


int
dsa_cuda_batch_make(dsa_cuda_batch_t *b, dsa_cuda_inflight_t *f,
    dsa_cuda_step_t *step, dsa_cuda_extent_t *extent,
    const dsa_cuda_rank_t *rank, const dsa_batch_seq_t *seq, uint32_t n_seqs,
    dsa_err_t *err)
{
    uint32_t                i, n, first, end, width, *swap;
    dsa_cuda_host_t         h;
    dsa_cuda_sampling_t    *sampling;
    const dsa_batch_seq_t  *s;

    if (dsa_batch_check(rank, seq, n_seqs, err) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_cuda_host(&h, rank, f);

    memset(step, 0, sizeof(dsa_cuda_step_t));
    memset(extent, 0, sizeof(dsa_cuda_extent_t));

    step->decode = dsa_batch_order(b, rank, seq, n_seqs);
    step->seq = b->seq;
    f->samples = 0;
    first = 0;
    width = 0;

    for (i = 0; i < n_seqs; i++) {
        n = b->order[i];
        s = &seq[n];
        end = s->start + s->n_input;

        dsa_batch_tokens(b, &h, s, first, i);
        dsa_batch_pages(rank, f->pages, s, i);

        if (i < step->decode) {
            step->max_keys = end > step->max_keys ? end : step->max_keys;

        } else {
            step->n_seqs += dsa_cuda_step_parts(&b->seq[step->n_seqs],
                                                rank->mha_tokens, s->start,
                                                s->n_input, s->n_prompt,
                                                first, i);
        }

        first += s->n_input;
        width = end > width ? end : width;

        /*
         * Every decode token is sampled from, because graphs do so: their
         * samples are their tokens.  Samples that were not requested have no
         * destination.
         */

        if (s->sampling != NULL || i < step->decode) {
            sampling = &h.sampling[f->samples];
            memset(sampling, 0, sizeof(dsa_cuda_sampling_t));

            f->out[f->samples] = NULL;

            if (s->sampling != NULL) {
                dsa_batch_sampling(sampling, s, f->history, &extent->history);
                f->out[f->samples] = s->sample;
            }

            h.last[f->samples] = (int32_t) first - 1;
            b->sample_now[n] = f->samples++;
        }
    }

    step->tokens = first;
    step->samples = f->samples;
    step->indexed = step->max_keys > rank->topk;

    extent->tables = n_seqs;
    extent->pages = (width + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;

    swap = b->sample_of;
    b->sample_of = b->sample_now;
    b->sample_now = swap;

    return DSA_OK;
}


static int
dsa_batch_check(const dsa_cuda_rank_t *rank, const dsa_batch_seq_t *seq,
    uint32_t n_seqs, dsa_err_t *err)
{
    uint32_t  i, n;

    for (i = 0, n = 0; i < n_seqs; i++) {
        n += seq[i].n_input;
    }

    if (n_seqs == 0 || n_seqs > rank->max_samples || n > rank->max_tokens) {
        return dsa_error(err, "a step has %u sequences of %u tokens; expected "
                         "1 to %u sequences of up to %u tokens", n_seqs, n,
                         rank->max_samples, rank->max_tokens);
    }

    return DSA_OK;
}


static int
dsa_batch_decodes(const dsa_cuda_rank_t *rank, const dsa_batch_seq_t *s)
{
    return dsa_cuda_step_decodes(rank->mha_tokens, s->start, s->n_input,
                                 s->n_prompt);
}


/*
 * Entries of one decode token first, because graphs are made of them.  Returns
 * their number.
 */

static uint32_t
dsa_batch_order(dsa_cuda_batch_t *b, const dsa_cuda_rank_t *rank,
    const dsa_batch_seq_t *seq, uint32_t n_seqs)
{
    uint32_t  i, n, decode;

    decode = 0;

    for (i = 0; i < n_seqs; i++) {
        decode += (uint32_t) dsa_batch_decodes(rank, &seq[i]);
    }

    for (i = 0, n = 0; i < n_seqs; i++) {
        if (dsa_batch_decodes(rank, &seq[i])) {
            b->order[n++] = i;

        } else {
            b->order[decode + i - n] = i;
        }
    }

    return decode;
}


/* The tokens of an entry, from index first of the step on. */

static void
dsa_batch_tokens(const dsa_cuda_batch_t *b, const dsa_cuda_host_t *h,
    const dsa_batch_seq_t *s, uint32_t first, uint32_t table)
{
    uint32_t  i, t, at;

    for (i = 0, t = first; i < s->n_input; i++, t++) {
        at = s->start + i;

        h->position[t] = (int32_t) at;
        h->keys[t] = (int32_t) at + 1;
        h->table[t] = (int32_t) table;
        h->slot[t] = (int32_t) (s->pages[at / DSA_PAGE_TOKENS]
                                * DSA_PAGE_TOKENS + at % DSA_PAGE_TOKENS);
        h->feed[t] = -1;

        if (i + 1 == s->n_input && s->input_from != DSA_INPUT_KNOWN) {
            h->token[t] = 0;
            h->feed[t] = (int32_t) b->sample_of[s->input_from];

        } else {
            h->token[t] = (int32_t) s->tokens[at];
        }
    }
}


/* The block table of an entry. */

static void
dsa_batch_pages(const dsa_cuda_rank_t *rank, int32_t *pages,
    const dsa_batch_seq_t *s, uint32_t table)
{
    uint32_t  i, last;

    last = (s->start + s->n_input - 1) / DSA_PAGE_TOKENS;

    for (i = 0; i <= last; i++) {
        pages[(uint64_t) table * rank->ld_pages + i] = (int32_t) s->pages[i];
    }
}


/* How the last token of an entry is sampled from. */

static void
dsa_batch_sampling(dsa_cuda_sampling_t *to, const dsa_batch_seq_t *s,
    uint32_t *history, uint32_t *n_history)
{
    uint32_t               end, prompt;
    const dsa_sampling_t  *from;

    from = s->sampling;
    end = s->start + s->n_input;
    prompt = s->n_prompt < end ? s->n_prompt : end;

    to->temperature = from->temperature;
    to->top_p = from->top_p;
    to->frequency_penalty = from->frequency_penalty;
    to->presence_penalty = from->presence_penalty;
    to->seed = from->seed;
    to->position = end;
    to->logprobs = from->logprobs;
    to->top_logprobs = from->top_logprobs;
    to->history = *n_history;
    to->n_history = 0;

    if (from->frequency_penalty != 0 || from->presence_penalty != 0) {
        to->n_history = end - prompt;
        memcpy(history + *n_history, s->tokens + prompt,
               to->n_history * sizeof(uint32_t));
        *n_history += to->n_history;
    }
}


void
dsa_cuda_batch_finish(const dsa_cuda_inflight_t *f)
{
    uint32_t                  i, j;
    dsa_sample_t             *to;
    const dsa_cuda_sample_t  *from;

    for (i = 0; i < f->samples; i++) {
        to = f->out[i];
        from = &f->sample[i];

        if (to == NULL) {
            continue;
        }

        to->token = from->token;
        to->logprob = from->logprob;
        to->n_top = from->n_top;

        for (j = 0; j < from->n_top && j < DSA_SAMPLE_MAX_TOP; j++) {
            to->top[j] = from->top[j];
            to->top_logprob[j] = from->top_logprob[j];
        }
    }
}
