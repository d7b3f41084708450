
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/batch.h"


static uint32_t dsa_batch_ranks(const dsa_cuda_rank_t *rank);
static int dsa_batch_piece(dsa_cuda_piece_t *piece,
    const dsa_cuda_rank_t *rank, uint32_t number, const dsa_batch_seq_t *s);
static int dsa_batch_decodes(const dsa_cuda_rank_t *rank,
    const dsa_batch_seq_t *s);
static uint32_t dsa_batch_pieces(dsa_cuda_batch_t *batch,
    const dsa_cuda_rank_t *rank, const dsa_batch_seq_t *seq, uint32_t n_seqs);
static void dsa_batch_tokens(const dsa_cuda_host_t *h,
    const dsa_cuda_rank_t *rank, const dsa_cuda_piece_t *p, uint32_t first,
    uint32_t table);
static void dsa_batch_peers(const dsa_cuda_rank_t *rank, int32_t *slot,
    const dsa_cuda_piece_t *p, uint32_t first);
static void dsa_batch_outputs_of(dsa_cuda_inflight_t *f, dsa_cuda_host_t *h,
    dsa_cuda_extent_t *extent, const dsa_cuda_rank_t *rank,
    const dsa_cuda_piece_t *p);
static void dsa_batch_sampling(dsa_cuda_sample_row_t *to,
    const dsa_batch_seq_t *s, uint32_t output, uint32_t *history,
    uint32_t *n_history);
static void dsa_batch_mask(dsa_cuda_sample_row_t *to, const dsa_batch_seq_t *s,
    const dsa_cuda_rank_t *rank, uint32_t *mask, uint32_t *n);
static int dsa_batch_forces(const dsa_biases_t *b);
static int dsa_batch_forced(uint32_t *mask, const dsa_batch_seq_t *s,
    uint32_t allowed, uint32_t words);
static int dsa_batch_banned(uint32_t *mask, const dsa_batch_seq_t *s,
    uint32_t allowed, uint32_t words);
static void dsa_batch_bias(dsa_cuda_sample_row_t *to, const dsa_biases_t *b,
    dsa_bias_t *bias, uint32_t *n);
static void dsa_batch_rollout(dsa_cuda_sample_row_t *to, dsa_cuda_rollouts_t *r,
    uint32_t i, uint32_t output, const dsa_rollout_t *from);


int
dsa_cuda_batch_open(dsa_cuda_batch_t *b, const dsa_cuda_rank_t *rank,
    dsa_err_t *err)
{
    size_t  seqs;

    seqs = rank->max_samples;
    b->entries = rank->max_samples * dsa_batch_ranks(rank);

    b->before = calloc(b->entries, sizeof(dsa_cuda_entry_t));
    b->now = calloc(b->entries, sizeof(dsa_cuda_entry_t));
    b->piece = calloc(seqs, sizeof(dsa_cuda_piece_t));
    b->seq = calloc(2 * seqs, sizeof(dsa_cuda_seq_t));

    if (b->before == NULL || b->now == NULL || b->piece == NULL
        || b->seq == NULL)
    {
        return dsa_error(err, "no memory for steps of %zu sequences", seqs);
    }

    return DSA_OK;
}


void
dsa_cuda_batch_close(dsa_cuda_batch_t *b)
{
    free(b->before);
    free(b->now);
    free(b->piece);
    free(b->seq);
}


/* Returns the number of ranks that the scheduler uses. */

static uint32_t
dsa_batch_ranks(const dsa_cuda_rank_t *rank)
{
    return rank->shard.attention == DSA_ATTENTION_DATA ? rank->shard.ranks : 1;
}


int
dsa_cuda_batch_common(dsa_cuda_common_t *c, const dsa_cuda_rank_t *rank,
    const dsa_batch_seq_t *seq, uint32_t n_seqs, dsa_err_t *err)
{
    uint32_t          i, r, end, ranks;
    dsa_cuda_piece_t  piece;
    uint32_t          tokens[DSA_MAX_GPUS], entries[DSA_MAX_GPUS];
    uint32_t          rows[DSA_MAX_GPUS];

    memset(c, 0, sizeof(dsa_cuda_common_t));
    memset(tokens, 0, sizeof(tokens));
    memset(entries, 0, sizeof(entries));
    memset(rows, 0, sizeof(rows));

    ranks = dsa_batch_ranks(rank);
    c->decode = 1;

    for (i = 0; i < n_seqs; i++) {
        if (seq[i].rank >= ranks) {
            return dsa_error(err, "entry %u of a step is on rank %u; expected "
                             "a rank below %u", i, seq[i].rank, ranks);
        }

        c->shared |= seq[i].copies != NULL;
        c->grouped |= seq[i].n_draft != 0;

        if (dsa_batch_decodes(rank, &seq[i])) {
            end = dsa_cuda_batch_end(rank, &seq[i]);
            c->max_keys = end > c->max_keys ? end : c->max_keys;

        } else {
            c->decode = 0;
        }

        if (seq[i].next != NULL && *seq[i].n_next > c->drafts) {
            c->drafts = *seq[i].n_next;
        }

        c->masked |= seq[i].next_mask != NULL;

        for (r = 0; r < ranks; r++) {
            if (dsa_batch_piece(&piece, rank, r, &seq[i])) {
                tokens[r] += piece.n;
                entries[r]++;

                if (rank->drafts) {
                    rows[r] += dsa_cuda_speculate_count(rank, &piece);
                }
            }
        }
    }

    for (r = 0; r < ranks; r++) {
        if (n_seqs == 0 || entries[r] > rank->max_seqs
            || tokens[r] > rank->max_tokens)
        {
            return dsa_error(err, "a step has %u sequences of %u tokens on "
                             "rank %u; expected up to %u sequences of up to "
                             "%u tokens, and at least one in all", entries[r],
                             tokens[r], r, rank->max_seqs,
                             rank->max_tokens);
        }

        c->fullest = tokens[r] > c->fullest ? tokens[r] : c->fullest;
        c->draft_rows = rows[r] > c->draft_rows ? rows[r] : c->draft_rows;
        c->draft_seqs = entries[r] > c->draft_seqs ? entries[r]
                                                   : c->draft_seqs;
    }

    return DSA_OK;
}


/*
 * Sets p to the tokens of an entry that a rank computes; returns 0 if there
 * are none.  The tokens of an entry with copies are cut into one piece for
 * each rank.  The sequence's own rank gets the last piece, so it also has the
 * sample, which the next step uses as input there.
 */

static int
dsa_batch_piece(dsa_cuda_piece_t *p, const dsa_cuda_rank_t *rank,
    uint32_t number, const dsa_batch_seq_t *s)
{
    uint32_t  i, end, ranks;

    ranks = dsa_batch_ranks(rank);

    p->seq = s;
    p->start = s->start;
    p->n = s->n_input;
    p->last = 1;
    p->pages = s->pages;
    p->follows = s->input_from != DSA_INPUT_KNOWN;

    if (s->copies == NULL) {
        return ranks == 1 || s->rank == number;
    }

    i = (number + ranks - s->rank - 1) % ranks;
    end = (uint32_t) ((uint64_t) s->n_input * (i + 1) / ranks);

    p->start += (uint32_t) ((uint64_t) s->n_input * i / ranks);
    p->n = s->start + end - p->start;
    p->last = i + 1 == ranks;
    p->pages = s->copies[number];

    return p->n != 0;
}


/* Returns 1 if all tokens of an entry, its last one and drafts, decode. */

static int
dsa_batch_decodes(const dsa_cuda_rank_t *rank, const dsa_batch_seq_t *s)
{
    return s->copies == NULL
           && dsa_cuda_step_decodes(rank->mha_prompt, s->start,
                                    s->n_input - s->n_draft, s->n_prompt);
}


void
dsa_cuda_batch_make(dsa_cuda_batch_t *b, dsa_cuda_inflight_t *f,
    dsa_cuda_step_t *step, dsa_cuda_extent_t *extent,
    const dsa_cuda_common_t *common, const dsa_cuda_rank_t *rank,
    const dsa_batch_seq_t *seq, uint32_t n_seqs)
{
    uint32_t                i, j, n, first, end, width, tables;
    dsa_cuda_host_t         h;
    dsa_cuda_entry_t       *swap;
    dsa_cuda_piece_t       *p;
    const dsa_batch_seq_t  *s;

    assert(n_seqs <= b->entries);

    dsa_cuda_host(&h, rank, f);

    memset(step, 0, sizeof(dsa_cuda_step_t));
    memset(extent, 0, sizeof(dsa_cuda_extent_t));

    n = dsa_batch_pieces(b, rank, seq, n_seqs);

    step->seq = b->seq;
    step->fullest = common->fullest;
    step->grouped = common->grouped;
    step->shared = common->shared;
    f->samples = 0;
    f->rollouts.n_kept = 0;
    f->rollouts.n_pieces = 0;
    first = 0;
    width = 0;
    tables = 0;

    for (i = 0; i < n; i++) {
        p = &b->piece[i];
        s = p->seq;
        end = p->last ? dsa_cuda_batch_end(rank, s) : p->start + p->n;
        p->first = first;
        p->sample = f->samples;

        dsa_batch_tokens(&h, rank, p, first, tables);
        dsa_cuda_rollout_piece(&f->rollouts, rank, p, first);

        if (common->shared) {
            dsa_batch_peers(rank, f->peer_slot, p, first);
        }

        if (i < b->decodes) {
            step->decode += p->n;
            step->max_keys = end > step->max_keys ? end : step->max_keys;

            /* a row of the block tables for each decode token */

            for (j = 0; j < p->n; j++) {
                h.table[first + j] = (int32_t) tables;
                dsa_cuda_batch_pages(rank, f->pages, p, end, tables++);
            }

        } else {
            step->n_seqs += dsa_cuda_step_parts(&b->seq[step->n_seqs],
                                                rank->mha_prompt, p->start,
                                                p->n, s->n_prompt, first,
                                                tables);
            dsa_cuda_batch_pages(rank, f->pages, p, end, tables++);
        }

        first += p->n;
        width = end > width ? end : width;

        /*
         * In a graph every decode token is sampled, so every one has an entry
         * here.  A sample that was not requested has no destination.
         */

        if ((s->sampling != NULL && p->last) || i < b->decodes) {
            dsa_batch_outputs_of(f, &h, extent, rank, p);
            b->now[p->entry].piece = i;
            b->now[p->entry].sample = p->sample;
        }
    }

    if (n == 0) {
        dsa_cuda_host_pad(&h, 0, 1);
        memset(f->pages, 0, sizeof(int32_t));

        step->decode = 1;
        width = 1;
        first = 1;
        tables = 1;

        if (common->shared) {
            dsa_batch_peers(rank, f->peer_slot, NULL, 0);
        }
    }

    step->tokens = first;
    step->samples = f->samples;
    step->indexed = step->max_keys > rank->topk;

    extent->tables = tables;
    extent->pages = (width + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;
    extent->peers = common->shared ? first : 0;

    swap = b->before;
    b->before = b->now;
    b->now = swap;
}


/* Writes the rows of the samples of a piece, whose tokens end at the last. */

static void
dsa_batch_outputs_of(dsa_cuda_inflight_t *f, dsa_cuda_host_t *h,
    dsa_cuda_extent_t *extent, const dsa_cuda_rank_t *rank,
    const dsa_cuda_piece_t *p)
{
    uint32_t                i;
    dsa_batch_seq_t         s;
    dsa_cuda_sample_row_t  *row;

    s = *p->seq;

    for (i = 0; i <= s.n_draft; i++) {
        row = &h->sampling[f->samples];
        memset(row, 0, sizeof(dsa_cuda_sample_row_t));

        f->out[f->samples] = NULL;
        f->rollouts.sample[f->samples].draw = NULL;

        if (s.sampling != NULL) {
            dsa_batch_sampling(row, &s, i, f->history, &extent->history);
            dsa_batch_mask(row, &s, rank, f->mask, &extent->masks);
            dsa_batch_bias(row, &s.biases, f->bias, &extent->biases);
            dsa_batch_rollout(row, &f->rollouts, f->samples, i, s.rollout);
            f->out[f->samples] = s.sample + i;

            if (s.mask != NULL) {
                s.mask += dsa_mask_words(rank->config.vocab_size);
            }
        }

        h->last[f->samples] = (int32_t) (p->first + p->n - 1 - s.n_draft + i);
        f->samples++;
    }
}


/*
 * Collects the pieces of this rank, first those of decode tokens, which is the
 * order in graphs.  Returns their number.
 */

static uint32_t
dsa_batch_pieces(dsa_cuda_batch_t *b, const dsa_cuda_rank_t *rank,
    const dsa_batch_seq_t *seq, uint32_t n_seqs)
{
    uint32_t          i, n, decodes;
    dsa_cuda_piece_t  piece;

    n = 0;

    for (decodes = 1; ; decodes = 0) {
        for (i = 0; i < n_seqs; i++) {
            if (dsa_batch_decodes(rank, &seq[i]) == (int) decodes
                && dsa_batch_piece(&piece, rank, rank->shard.rank, &seq[i]))
            {
                piece.entry = i;

                if (piece.follows) {
                    piece.from = b->before[seq[i].input_from].piece;
                    piece.from_sample = b->before[seq[i].input_from].sample;
                }

                b->piece[n++] = piece;
            }
        }

        if (decodes == 0) {
            break;
        }

        b->decodes = n;
    }

    b->pieces = n;

    return n;
}


uint32_t
dsa_cuda_batch_end(const dsa_cuda_rank_t *rank, const dsa_batch_seq_t *s)
{
    uint32_t  end;

    if (s->input_from == DSA_INPUT_KNOWN || !rank->drafts) {
        return s->start + s->n_input;
    }

    end = s->n_pages * DSA_PAGE_TOKENS;

    return end < rank->context ? end : rank->context;
}


/*
 * Writes the tokens of a piece, from index first of the step on.  With drafts,
 * those that follow the step before are written as padding, and completed by
 * the GPU.
 */

static void
dsa_batch_tokens(const dsa_cuda_host_t *h, const dsa_cuda_rank_t *rank,
    const dsa_cuda_piece_t *p, uint32_t first, uint32_t table)
{
    uint32_t                i, t, at;
    const dsa_batch_seq_t  *s;

    s = p->seq;

    for (i = 0, t = first; i < p->n; i++, t++) {
        at = p->start + i;

        h->left[t] = (int32_t) (p->n - i);
        h->table[t] = (int32_t) table;
        h->feed[t] = -1;

        if (p->follows && rank->drafts) {
            h->token[t] = 0;
            h->position[t] = 0;
            h->keys[t] = 0;
            h->slot[t] = -1;
            continue;
        }

        h->position[t] = (int32_t) at;
        h->keys[t] = (int32_t) at + 1;
        h->slot[t] = (int32_t) (p->pages[at / DSA_PAGE_TOKENS]
                                * DSA_PAGE_TOKENS + at % DSA_PAGE_TOKENS);

        if (p->follows) {
            h->token[t] = 0;
            h->feed[t] = (int32_t) p->from_sample;

        } else {
            h->token[t] = (int32_t) s->tokens[at];
        }
    }
}


/*
 * Writes the slot mapping of a piece on the other ranks.  p is NULL for a
 * padding token.
 */

static void
dsa_batch_peers(const dsa_cuda_rank_t *rank, int32_t *slot,
    const dsa_cuda_piece_t *p, uint32_t first)
{
    int32_t   *to;
    uint32_t   i, r, n, at, page;

    n = p != NULL ? p->n : 1;

    for (r = 0; r < rank->shard.ranks; r++) {
        to = slot + (uint64_t) r * rank->max_tokens + first;

        for (i = 0; i < n; i++) {
            if (p == NULL || p->seq->copies == NULL) {
                to[i] = -1;
                continue;
            }

            at = p->start + i;
            page = p->seq->copies[r][at / DSA_PAGE_TOKENS];
            to[i] = (int32_t) (page * DSA_PAGE_TOKENS + at % DSA_PAGE_TOKENS);
        }
    }
}


void
dsa_cuda_batch_pages(const dsa_cuda_rank_t *rank, int32_t *pages,
    const dsa_cuda_piece_t *p, uint32_t end, uint32_t table)
{
    uint32_t  i, last;

    last = (end - 1) / DSA_PAGE_TOKENS;

    for (i = 0; i <= last; i++) {
        pages[(uint64_t) table * rank->ld_pages + i] = (int32_t) p->pages[i];
    }
}


/*
 * Writes the sampling parameters of an output.  The outputs of an entry share
 * one copy of its history, of which the first output has the least.  Behind it
 * is room for what the GPU appends: an entry that follows the step before has
 * no tokens of its own yet.
 */

static void
dsa_batch_sampling(dsa_cuda_sample_row_t *to, const dsa_batch_seq_t *s,
    uint32_t output, uint32_t *history, uint32_t *n_history)
{
    uint32_t  end, prompt, n;

    end = dsa_batch_position(s, output);
    prompt = s->n_prompt < end ? s->n_prompt : end;

    to->sampling = *s->sampling;
    to->position = end;
    to->history = *n_history;
    to->n_history = 0;

    if (!dsa_sampling_penalizes(s->sampling)) {
        return;
    }

    to->n_history = end - prompt;

    if (output != 0) {
        to->history = to[-1].history;
        return;
    }

    n = s->start + (s->input_from == DSA_INPUT_KNOWN ? s->n_input : 0)
        - prompt;
    memcpy(history + *n_history, s->tokens + prompt, n * sizeof(uint32_t));
    *n_history += n + DSA_CUDA_APPENDED;
}


/*
 * Writes the mask.  Biases of -100 ban ids, and biases of 100 exclude all
 * other ids.  If no id would remain, the mask is not changed.
 */

static void
dsa_batch_mask(dsa_cuda_sample_row_t *to, const dsa_batch_seq_t *s,
    const dsa_cuda_rank_t *rank, uint32_t *mask, uint32_t *n)
{
    uint32_t  words;

    if (s->mask == NULL && !dsa_batch_forces(&s->biases)) {
        return;
    }

    words = dsa_mask_words(rank->config.vocab_size);
    mask += (size_t) *n * words;

    if (!dsa_batch_forced(mask, s, rank->allowed, words)
        && !dsa_batch_banned(mask, s, rank->allowed, words))
    {
        if (s->mask == NULL) {
            return;
        }

        memcpy(mask, s->mask, words * sizeof(uint32_t));
    }

    to->mask = ++*n;
}


static int
dsa_batch_forces(const dsa_biases_t *b)
{
    uint32_t  i;

    for (i = 0; i < b->n; i++) {
        if (fabsf(b->bias[i].bias) >= DSA_SAMPLE_FORCE) {
            return 1;
        }
    }

    return 0;
}


/*
 * Keeps only the ids with a bias of 100.  Returns 0 if the mask permits none.
 */

static int
dsa_batch_forced(uint32_t *mask, const dsa_batch_seq_t *s, uint32_t allowed,
    uint32_t words)
{
    int                any;
    uint32_t           i;
    const dsa_bias_t  *b;

    memset(mask, 0, words * sizeof(uint32_t));
    any = 0;

    for (i = 0; i < s->biases.n; i++) {
        b = &s->biases.bias[i];

        if (b->bias >= DSA_SAMPLE_FORCE && b->id < allowed
            && (s->mask == NULL || dsa_mask_has(s->mask, b->id)))
        {
            mask[b->id / 32] |= 1U << b->id % 32;
            any = 1;
        }
    }

    return any;
}


/* Removes the ids with a bias of -100.  Returns 0 if no id remains. */

static int
dsa_batch_banned(uint32_t *mask, const dsa_batch_seq_t *s, uint32_t allowed,
    uint32_t words)
{
    uint32_t           i;
    const dsa_bias_t  *b;

    if (s->mask != NULL) {
        memcpy(mask, s->mask, words * sizeof(uint32_t));

    } else {
        memset(mask, 0xff, words * sizeof(uint32_t));
    }

    for (i = 0; i < s->biases.n; i++) {
        b = &s->biases.bias[i];

        if (b->bias <= -DSA_SAMPLE_FORCE && b->id < allowed) {
            mask[b->id / 32] &= ~(1U << b->id % 32);
        }
    }

    for (i = 0; i < allowed; i++) {
        if (dsa_mask_has(mask, i)) {
            return 1;
        }
    }

    return 0;
}


/* Writes the biases, except those of -100 and 100, which are in the mask. */

static void
dsa_batch_bias(dsa_cuda_sample_row_t *to, const dsa_biases_t *b,
    dsa_bias_t *bias, uint32_t *n)
{
    uint32_t  i;

    to->bias = *n;

    for (i = 0; i < b->n; i++) {
        if (fabsf(b->bias[i].bias) < DSA_SAMPLE_FORCE) {
            bias[(*n)++] = b->bias[i];
        }
    }

    to->n_bias = *n - to->bias;
}


/* Registers what is reported with sample i. */

static void
dsa_batch_rollout(dsa_cuda_sample_row_t *to, dsa_cuda_rollouts_t *r, uint32_t i,
    uint32_t output, const dsa_rollout_t *from)
{
    if (from == NULL || from->draw == NULL) {
        return;
    }

    to->report = 1;
    r->sample[i] = *from;
    r->sample[i].draw += output;

    if (from->kept != NULL) {
        r->sample[i].kept += (size_t) output * r->words;
    }

    r->n_kept += from->kept != NULL;
}


void
dsa_cuda_batch_finish(const dsa_cuda_inflight_t *f,
    const dsa_cuda_rank_t *rank)
{
    uint32_t                  i, j, mask;
    dsa_sample_t             *to;
    dsa_cuda_host_t           h;
    const dsa_cuda_sample_t  *from;

    dsa_cuda_host(&h, rank, f);
    dsa_cuda_rollout_finish(&f->rollouts, rank);

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

        mask = h.sampling[i].mask;
        dsa_cuda_rollout_draw(&f->rollouts, i, from,
                              mask == 0 ? NULL : f->mask + (size_t) (mask - 1)
                                                 * f->rollouts.words);
    }
}
