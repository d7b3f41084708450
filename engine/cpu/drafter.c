
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>
#include <string.h>

#include "engine/cpu/drafter.h"
#include "kernels/sample/sample.h"


struct dsa_drafter_s {
    dsa_model_t                *model;
    const dsa_model_config_t   *config;
    uint32_t                    allowed;
    uint32_t                   *tokens;     /* [max_tokens + max_seqs] */
    float                      *hidden;     /* [max_tokens + max_seqs, hidden
                                               size], of the first step */
    float                      *g;          /* [max_seqs, hidden size] */
    float                      *logits;     /* [max_seqs, vocab] */
    float                      *scratch;    /* [vocab] */
    uint32_t                   *history;    /* [a context] */
    uint32_t                   *first;      /* [max_seqs] hidden state of the
                                               first input */
    uint32_t                   *mask;       /* [dsa_mask_words(vocab)] */
    uint32_t                   *most;       /* [max_seqs] drafts */
    dsa_rows_t                 *rows;       /* [max_seqs] */
    dsa_batch_seq_t           **seq;        /* [max_seqs] of rows */
    uint32_t                   *steps;      /* [max_seqs] of rows */
};


static uint32_t dsa_drafter_most(const dsa_drafter_t *d,
    const dsa_batch_seq_t *s);
static uint32_t dsa_drafter_known(dsa_drafter_t *d, const dsa_batch_seq_t *s,
    dsa_rows_t *rows, uint32_t at, uint32_t first, uint32_t most);
static void dsa_drafter_keep(dsa_drafter_t *d, const dsa_batch_seq_t *s,
    uint32_t first);
static int dsa_drafter_run(dsa_drafter_t *d, uint32_t n, dsa_err_t *err);
static uint32_t dsa_drafter_sample(dsa_drafter_t *d, const dsa_batch_seq_t *s,
    const float *logits, uint32_t k);
static const uint32_t *dsa_drafter_mask(dsa_drafter_t *d,
    const dsa_batch_seq_t *s, uint32_t k);


/* Returns the inputs of a step that stay, which are not rejected drafts. */

static uint32_t
dsa_drafter_verified(const dsa_batch_seq_t *s)
{
    return s->n_draft == 0 ? s->n_input
                           : s->n_input - s->n_draft + *s->accepted - 1;
}


/* Returns the token after the verified ones. */

static uint32_t
dsa_drafter_sampled(const dsa_batch_seq_t *s)
{
    return s->sample[s->n_draft == 0 ? 0 : *s->accepted - 1].token;
}


dsa_drafter_t *
dsa_drafter_open(dsa_model_t *model, const dsa_model_config_t *config,
    uint32_t max_seqs, uint32_t max_tokens, uint32_t allowed, dsa_err_t *err)
{
    size_t          rows, hidden, vocab;
    dsa_drafter_t  *d;

    d = calloc(1, sizeof(dsa_drafter_t));

    if (d == NULL) {
        (void) dsa_error(err, "no memory for drafts");
        return NULL;
    }

    rows = (size_t) max_tokens + max_seqs;
    hidden = config->hidden_size * sizeof(float);
    vocab = config->vocab_size * sizeof(float);

    d->model = model;
    d->config = config;
    d->allowed = allowed;
    d->tokens = calloc(rows, sizeof(uint32_t));
    d->hidden = calloc(rows, hidden);
    d->g = calloc(max_seqs, hidden);
    d->logits = calloc(max_seqs, vocab);
    d->scratch = calloc(1, vocab);
    d->history = calloc(config->max_position_embeddings, sizeof(uint32_t));
    d->first = calloc(max_seqs, sizeof(uint32_t));
    d->mask = calloc(dsa_mask_words(config->vocab_size), sizeof(uint32_t));
    d->most = calloc(max_seqs, sizeof(uint32_t));
    d->rows = calloc(max_seqs, sizeof(dsa_rows_t));
    d->seq = calloc(max_seqs, sizeof(dsa_batch_seq_t *));
    d->steps = calloc(max_seqs, sizeof(uint32_t));

    if (d->tokens == NULL || d->hidden == NULL || d->g == NULL
        || d->logits == NULL || d->scratch == NULL || d->history == NULL
        || d->first == NULL || d->mask == NULL || d->most == NULL
        || d->rows == NULL || d->seq == NULL || d->steps == NULL)
    {
        (void) dsa_error(err, "no memory for the drafts of %u sequences",
                         max_seqs);
        dsa_drafter_close(d);
        return NULL;
    }

    return d;
}


void
dsa_drafter_close(dsa_drafter_t *d)
{
    if (d == NULL) {
        return;
    }

    free(d->tokens);
    free(d->hidden);
    free(d->g);
    free(d->logits);
    free(d->scratch);
    free(d->history);
    free(d->first);
    free(d->mask);
    free(d->most);
    free(d->rows);
    free(d->seq);
    free(d->steps);
    free(d);
}


int
dsa_drafter_step(dsa_drafter_t *d, dsa_batch_seq_t *seq, uint32_t n_seqs,
    dsa_err_t *err)
{
    uint32_t  i, n, at, most, longest;

    longest = 0;

    for (i = 0, at = 0; i < n_seqs; i++) {
        d->first[i] = at;
        at += seq[i].n_input;

        d->most[i] = dsa_drafter_most(d, &seq[i]);
        longest = d->most[i] > longest ? d->most[i] : longest;
    }

    /*
     * The sequences with the most drafts are the first ones, so that those of
     * a later step are the first ones of the step before.
     */

    n = 0;
    at = 0;

    for (most = longest + 1; most-- > 0; /* void */ ) {
        for (i = 0; i < n_seqs; i++) {
            if (d->most[i] != most) {
                continue;
            }

            at += dsa_drafter_known(d, &seq[i], &d->rows[n], at, d->first[i],
                                    most);

            if (d->rows[n].n != 0) {
                d->steps[n] = most;
                d->seq[n++] = &seq[i];
            }
        }
    }

    /* the kept hidden states of earlier steps were read */

    for (i = 0; i < n_seqs; i++) {
        dsa_drafter_keep(d, &seq[i], d->first[i]);

        if (seq[i].next != NULL) {
            *seq[i].n_next = d->most[i];
        }
    }

    return n != 0 ? dsa_drafter_run(d, n, err) : DSA_OK;
}


/*
 * Returns how many drafts a sequence can have: draft k, from 0 on, is computed
 * in the cache entry of the sample's position plus k.
 */

static uint32_t
dsa_drafter_most(const dsa_drafter_t *d, const dsa_batch_seq_t *s)
{
    uint32_t  end, room;

    if (s->sampling == NULL || s->next == NULL) {
        return 0;
    }

    end = s->start + dsa_drafter_verified(s);
    room = s->n_pages * DSA_PAGE_TOKENS;
    room = room < d->config->max_position_embeddings
           ? room : d->config->max_position_embeddings;
    room = room > end ? room - end : 0;

    return *s->n_next < room ? *s->n_next : room;
}


/*
 * Sets rows to those of the first step from the place at of d->tokens and
 * d->hidden on, and returns their number.  first is the hidden state of the
 * sequence's first input.  The row of that input needs the hidden state before
 * it; where a page has lost it, the row is left out, which costs drafts.
 */

static uint32_t
dsa_drafter_known(dsa_drafter_t *d, const dsa_batch_seq_t *s,
    dsa_rows_t *rows, uint32_t at, uint32_t first, uint32_t most)
{
    size_t        hidden;
    uint32_t      n, verified;
    const float  *from;

    hidden = d->config->hidden_size;
    verified = dsa_drafter_verified(s);
    from = dsa_model_hidden(d->model) + first * hidden;

    memset(rows, 0, sizeof(dsa_rows_t));

    rows->start = s->start;
    rows->rank = s->rank;
    rows->pages = s->pages;
    rows->copies = s->copies;
    rows->n_logits = most != 0;
    rows->tokens = d->tokens + at;
    rows->hidden = d->hidden + at * hidden;

    n = 0;

    if (s->start != 0
        && dsa_model_kept_hidden(d->model, s->rank,
                                 s->pages[(s->start - 1) / DSA_PAGE_TOKENS],
                                 s->start - 1, d->hidden + at * hidden))
    {
        d->tokens[at] = s->tokens[s->start];
        n = 1;

    } else {
        rows->start++;
    }

    memcpy(d->tokens + at + n, s->tokens + s->start + 1,
           (verified - 1) * sizeof(uint32_t));
    memcpy(d->hidden + (at + n) * hidden, from,
           (verified - 1) * hidden * sizeof(float));
    n += verified - 1;

    if (most != 0) {
        d->tokens[at + n] = dsa_drafter_sampled(s);
        memcpy(d->hidden + (at + n) * hidden, from + (verified - 1) * hidden,
               hidden * sizeof(float));
        n++;
    }

    rows->n = n;

    return n;
}


/* Keeps the hidden state of the last token in each page of the step. */

static void
dsa_drafter_keep(dsa_drafter_t *d, const dsa_batch_seq_t *s, uint32_t first)
{
    uint32_t      p, end, last, rank, ranks;
    const float  *hidden;

    end = s->start + dsa_drafter_verified(s);
    ranks = s->copies != NULL ? dsa_model_ranks(d->model) : 1;

    for (p = s->start; p < end; p = last + 1) {
        last = p / DSA_PAGE_TOKENS * DSA_PAGE_TOKENS + DSA_PAGE_TOKENS - 1;
        last = last < end ? last : end - 1;
        hidden = dsa_model_hidden(d->model)
                 + (uint64_t) (first + last - s->start)
                   * d->config->hidden_size;

        for (rank = 0; rank < ranks; rank++) {
            dsa_model_keep_hidden(d->model,
                                  s->copies != NULL ? rank : s->rank,
                                  (s->copies != NULL ? s->copies[rank]
                                                     : s->pages)
                                  [p / DSA_PAGE_TOKENS],
                                  last, hidden);
        }
    }
}


/*
 * Runs the steps of n rows, of which those with drafts come first.  A sequence
 * whose drafts end early, because a mask is not ready, keeps its row: in later
 * steps the place of a row is that of its selection in the first one.
 */

static int
dsa_drafter_run(dsa_drafter_t *d, uint32_t n, dsa_err_t *err)
{
    uint32_t          i, k;
    dsa_rows_t       *rows;
    dsa_batch_seq_t  *s;

    for (k = 0; n != 0; k++) {
        if (dsa_model_draft(d->model, d->rows, n, k, d->g, d->logits, err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }

        for (i = 0; i < n; i++) {
            s = d->seq[i];
            rows = &d->rows[i];

            if (d->steps[i] <= k) {
                break;
            }

            s->next[k] = dsa_drafter_sample(d, s,
                                            d->logits
                                            + (size_t) i
                                              * d->config->vocab_size,
                                            k);

            if (d->steps[i] == k + 1) {
                continue;
            }

            rows->start = s->start + dsa_drafter_verified(s) + k + 1;
            rows->n = 1;
            rows->tokens = &s->next[k];
            rows->hidden = d->g + (size_t) i * d->config->hidden_size;
            rows->copies = NULL;
        }

        for (n = i; n != 0 && d->steps[n - 1] == k + 1; n--) {
            /* void */
        }
    }

    return DSA_OK;
}


/*
 * Samples draft k as the token at its position would be sampled, with its mask,
 * and reduces the number of drafts to k if the mask is not ready.
 */

static uint32_t
dsa_drafter_sample(dsa_drafter_t *d, const dsa_batch_seq_t *s,
    const float *logits, uint32_t k)
{
    uint32_t         n, known;
    dsa_sample_t     sample;
    dsa_sampling_t   sampling;
    const uint32_t  *mask;

    sampling = *s->sampling;
    sampling.logprobs = 0;
    sampling.top_logprobs = 0;

    known = s->start + dsa_drafter_verified(s);
    mask = k < *s->n_next ? dsa_drafter_mask(d, s, k) : NULL;
    n = 0;

    if (dsa_sampling_penalizes(&sampling)) {
        if (known > s->n_prompt) {
            n = known - s->n_prompt;
            memcpy(d->history, s->tokens + s->n_prompt, n * sizeof(uint32_t));
        }

        d->history[n++] = dsa_drafter_sampled(s);
        memcpy(d->history + n, s->next, k * sizeof(uint32_t));
        n += k;
    }

    dsa_sample(&sample, &sampling, &s->biases, logits, d->config->vocab_size,
               d->allowed, mask, d->history, n, known + 1 + k, d->scratch);

    return sample.token;
}


/* Returns the mask of draft k, or NULL: every id is permitted. */

static const uint32_t *
dsa_drafter_mask(dsa_drafter_t *d, const dsa_batch_seq_t *s, uint32_t k)
{
    uint32_t  i, n, tokens[2 * DSA_MAX_OUTPUTS];

    if (s->next_mask == NULL) {
        return NULL;
    }

    n = s->n_draft == 0 ? 1 : *s->accepted;

    for (i = 0; i < n; i++) {
        tokens[i] = s->sample[i].token;
    }

    memcpy(tokens + n, s->next, k * sizeof(uint32_t));

    if (s->next_mask(s->next_owner, tokens, n + k, d->mask) == DSA_OK) {
        return d->mask;
    }

    *s->n_next = k;

    return NULL;
}
