
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>
#include <string.h>

#include "engine/cuda/batch.h"


/*
 * The drafts of the CUDA backend, as engine/cpu/drafter.h documents them.  The
 * host does not wait for the samples of the model: the first step of the draft
 * layer has a row behind every output, whose token is the sample of that
 * output.  Where a draft was right, its sample is the draft, so the rows up to
 * the first wrong draft are those of the answer.  The rows behind it are
 * overwritten by later steps before they are read, because they lie behind the
 * end of the answer.  Only the later steps, with a row for each sequence,
 * depend on how many drafts were right, and the GPU computes their positions.
 *
 * Nor does the host wait for them before it starts the next step of the model:
 * for sequences that follow this step it prepares as many rows as there may be
 * drafts, and the GPU completes them (dsa_cuda_draft_follow()).
 */


/* Arrays of inflight.drafts.known. */

typedef struct {
    dsa_cuda_host_t         row;
    int32_t                *from;
    int32_t                *owner;
    dsa_cuda_draft_seq_t   *seq;
} dsa_speculate_host_t;


static void dsa_speculate_host(dsa_speculate_host_t *h,
    const dsa_cuda_drafts_t *d, const dsa_cuda_rank_t *rank);
static void dsa_speculate_idle(const dsa_speculate_host_t *h,
    dsa_cuda_drafts_t *d);
static void dsa_speculate_pad(const dsa_speculate_host_t *h,
    dsa_cuda_drafts_t *d);
static void dsa_speculate_piece(dsa_cuda_inflight_t *f,
    const dsa_speculate_host_t *h, const dsa_cuda_piece_t *p, uint32_t decodes,
    const dsa_cuda_rank_t *rank);
static uint32_t dsa_speculate_rows(dsa_cuda_inflight_t *f,
    const dsa_speculate_host_t *h, const dsa_cuda_piece_t *p, uint32_t limit);
static uint32_t dsa_speculate_rows_ahead(dsa_cuda_inflight_t *f,
    const dsa_speculate_host_t *h, const dsa_cuda_piece_t *p);
static void dsa_speculate_samples(dsa_cuda_inflight_t *f,
    const dsa_speculate_host_t *h, const dsa_cuda_piece_t *p, uint32_t limit,
    const dsa_cuda_rank_t *rank);


int
dsa_cuda_speculate_open(dsa_cuda_drafts_t *d, const dsa_cuda_rank_t *rank)
{
    int       rc;
    uint64_t  seqs, tables;

    seqs = rank->max_seqs;
    tables = seqs + rank->max_samples;

    d->entry = calloc(seqs, sizeof(dsa_cuda_verified_t));
    d->seq = calloc(seqs, sizeof(dsa_cuda_seq_t));

    if (d->entry == NULL || d->seq == NULL) {
        return (int) cudaErrorMemoryAllocation;
    }

    rc = (int) cudaMallocHost((void **) &d->known,
                              dsa_cuda_speculate_size(rank));
    rc = rc != 0 ? rc : (int) cudaMallocHost((void **) &d->pages,
                                             tables * rank->ld_pages
                                             * sizeof(int32_t));
    rc = rc != 0 ? rc : (int) cudaMallocHost((void **) &d->accepted,
                                             seqs * sizeof(uint32_t));
    rc = rc != 0 ? rc : (int) cudaMallocHost((void **) &d->state,
                                             seqs * sizeof(uint32_t));
    rc = rc != 0 ? rc : (int) cudaMallocHost((void **) &d->mask,
                                             seqs * dsa_mask_words(
                                                     rank->config.vocab_size)
                                             * sizeof(uint32_t));

    return rc != 0 ? rc : (int) cudaMallocHost((void **) &d->next,
                                               seqs * DSA_DRAFT_NEXT
                                               * sizeof(uint32_t));
}


void
dsa_cuda_speculate_close(dsa_cuda_drafts_t *d)
{
    (void) cudaFreeHost(d->known);
    (void) cudaFreeHost(d->pages);
    (void) cudaFreeHost(d->accepted);
    (void) cudaFreeHost(d->state);
    (void) cudaFreeHost(d->mask);
    (void) cudaFreeHost(d->next);
    free(d->entry);
    free(d->seq);
}


uint64_t
dsa_cuda_speculate_size(const dsa_cuda_rank_t *rank)
{
    return (uint64_t) ((uint8_t *) rank->spec.end
                       - (uint8_t *) rank->spec.known.token);
}


static void
dsa_speculate_host(dsa_speculate_host_t *h, const dsa_cuda_drafts_t *d,
    const dsa_cuda_rank_t *rank)
{
    const uint8_t  *first;

    first = (const uint8_t *) rank->spec.known.token;

#define dsa_speculate_at(p)                                                   \
    (void *) (d->known + ((const uint8_t *) rank->spec.p - first))

    h->row.token = dsa_speculate_at(known.token);
    h->row.position = dsa_speculate_at(known.position);
    h->row.slot = dsa_speculate_at(known.slot);
    h->row.keys = dsa_speculate_at(known.keys);
    h->row.left = dsa_speculate_at(known.left);
    h->row.table = NULL;
    h->row.feed = dsa_speculate_at(known.feed);
    h->row.last = dsa_speculate_at(known.last);
    h->row.sampling = dsa_speculate_at(known.sampling);
    h->from = dsa_speculate_at(from);
    h->owner = dsa_speculate_at(owner);
    h->seq = dsa_speculate_at(seq);

#undef dsa_speculate_at
}


/* Returns the positions that a sequence has pages for. */

static uint32_t
dsa_speculate_limit(const dsa_cuda_rank_t *rank, const dsa_batch_seq_t *s)
{
    uint32_t  limit;

    limit = s->n_pages * DSA_PAGE_TOKENS;

    return limit < rank->context ? limit : rank->context;
}


/*
 * Returns 1 if a piece that follows the step before has a row for its first
 * token.  That step has computed it, unless the token is the first one of a
 * page that the sequence may not have had then.
 */

static uint32_t
dsa_speculate_kept(const dsa_cuda_piece_t *p)
{
    /* the step before accepted up to DSA_MAX_OUTPUTS - 1 drafts */

    return (p->start + DSA_MAX_OUTPUTS - 1) / DSA_PAGE_TOKENS
           != (p->start - 1) / DSA_PAGE_TOKENS;
}


uint32_t
dsa_cuda_speculate_count(const dsa_cuda_rank_t *rank,
    const dsa_cuda_piece_t *p)
{
    uint32_t  end, limit;

    if (p->follows) {
        return p->n + dsa_speculate_kept(p);
    }

    limit = dsa_speculate_limit(rank, p->seq);
    end = p->start + p->n + (dsa_batch_outputs(p->seq) != 0);
    end = end < limit ? end : limit;

    return end - (p->start != 0 ? p->start : 1);
}


void
dsa_cuda_speculate_make(dsa_cuda_inflight_t *f, const dsa_cuda_batch_t *b,
    const dsa_cuda_common_t *common, const dsa_cuda_rank_t *rank)
{
    uint32_t               i;
    dsa_cuda_drafts_t     *d;
    dsa_speculate_host_t   h;

    d = &f->drafts;
    dsa_speculate_host(&h, d, rank);

    memset(&d->step, 0, sizeof(dsa_cuda_step_t));

    d->step.seq = d->seq;
    d->n = 0;
    d->follow = 0;
    d->tokens = 0;
    d->tables = 0;
    d->width = 1;
    d->most = common->drafts;
    d->masked = common->masked && common->drafts != 0;
    d->fullest = common->draft_seqs;
    d->max_keys = 0;

    for (i = 0; i < b->pieces; i++) {
        dsa_speculate_piece(f, &h, &b->piece[i], i < b->decodes, rank);
    }

    if (d->n == 0) {
        dsa_speculate_idle(&h, d);
    }

    if (d->step.tokens == 0 && common->draft_rows != 0) {
        dsa_speculate_pad(&h, d);
    }

    d->step.fullest = common->draft_rows;
    d->step.grouped = common->grouped;
    d->step.indexed = d->step.max_keys > rank->topk;

    /* a head for drafts that no sequence wants would take as long as a layer */

    if (d->most == 0) {
        d->step.samples = 0;
    }
}


/* A rank without entries has a sequence without tokens. */

static void
dsa_speculate_idle(const dsa_speculate_host_t *h, dsa_cuda_drafts_t *d)
{
    memset(&h->seq[0], 0, sizeof(dsa_cuda_draft_seq_t));
    memset(&d->entry[0], 0, sizeof(dsa_cuda_verified_t));

    h->seq[0].from = -1;
    h->seq[0].sample = -1;
    h->seq[0].kept = -1;
    d->pages[0] = 0;
    d->tables = 1;
    d->n = 1;
}


/* A rank without rows has one of padding, because others may have some. */

static void
dsa_speculate_pad(const dsa_speculate_host_t *h, dsa_cuda_drafts_t *d)
{
    h->row.token[0] = 0;
    h->row.position[0] = 0;
    h->row.keys[0] = 0;
    h->row.left[0] = 0;
    h->row.slot[0] = -1;
    h->row.feed[0] = -1;
    h->from[0] = 0;

    if (d->tables == 0) {
        d->pages[0] = 0;
        d->tables = 1;
    }

    d->step.tokens = 1;
    d->step.decode = 1;
}


/* Adds the rows and samples of a piece, which is a whole entry of the step. */

static void
dsa_speculate_piece(dsa_cuda_inflight_t *f, const dsa_speculate_host_t *h,
    const dsa_cuda_piece_t *p, uint32_t decodes, const dsa_cuda_rank_t *rank)
{
    uint32_t                i, n, end, limit, pages;
    dsa_cuda_seq_t         *part;
    dsa_cuda_drafts_t      *d;
    const dsa_batch_seq_t  *s;
    dsa_cuda_draft_seq_t   *seq;

    d = &f->drafts;
    s = p->seq;
    seq = &h->seq[d->n];
    limit = dsa_speculate_limit(rank, s);
    pages = s->n_pages < rank->ld_pages ? s->n_pages : rank->ld_pages;

    for (i = 0; i < p->n; i++) {
        h->owner[p->first + i] = (int32_t) d->n;
    }

    memset(seq, 0, sizeof(dsa_cuda_draft_seq_t));

    seq->token = (int32_t) p->first;
    seq->n = (int32_t) p->n;
    seq->n_draft = (int32_t) s->n_draft;
    seq->start = (int32_t) p->start;
    seq->from = -1;
    seq->sample = -1;
    seq->kept = -1;
    seq->known = (int32_t) d->step.samples;
    seq->limit = (int32_t) limit;

    d->entry[d->n].accepted = s->n_draft != 0 ? s->accepted : NULL;
    d->entry[d->n].next = s->sampling != NULL ? s->next : NULL;
    d->entry[d->n].n_next = s->n_next;
    d->entry[d->n].sample = p->sample;
    d->entry[d->n].next_mask = d->entry[d->n].next != NULL ? s->next_mask
                                                           : NULL;
    d->entry[d->n].next_owner = s->next_owner;

    part = &d->seq[d->step.n_seqs];
    part->first = d->step.tokens;

    n = p->follows ? dsa_speculate_rows_ahead(f, h, p)
                   : dsa_speculate_rows(f, h, p, limit);

    if (s->sampling != NULL) {
        seq->sample = (int32_t) p->sample;
        seq->penalized = dsa_sampling_penalizes(s->sampling);

        seq->most = s->next != NULL ? (int32_t) *s->n_next : 0;

        dsa_speculate_samples(f, h, p, limit, rank);
    }

    end = p->follows ? limit
          : n != 0 ? (uint32_t) h->row.keys[part->first + n - 1] : 0;
    d->max_keys = limit > d->max_keys ? limit : d->max_keys;
    d->width = pages > d->width ? pages : d->width;

    if (decodes) {
        d->step.decode += n;
        d->step.max_keys = end > d->step.max_keys ? end : d->step.max_keys;

    } else if (n != 0) {
        part->start = (uint32_t) h->row.position[part->first];
        part->n = n;
        part->table = d->tables;
        part->mha = 0;
        d->step.n_seqs++;
    }

    /* a row of the block tables for each decode token */

    seq->table = n != 0 ? (int32_t) d->tables : 0;

    for (i = 0; i < (decodes ? n : n != 0); i++) {
        dsa_cuda_batch_pages(rank, d->pages, p, pages * DSA_PAGE_TOKENS,
                             d->tables++);
    }

    d->step.tokens += n;
    d->tokens += p->n;
    d->n++;
}


/*
 * Writes the rows of a piece: that of its first token, whose hidden state the
 * page before has kept, those of its other tokens, and those of its samples.
 * Returns their number.
 */

static uint32_t
dsa_speculate_rows(dsa_cuda_inflight_t *f, const dsa_speculate_host_t *h,
    const dsa_cuda_piece_t *p, uint32_t limit)
{
    uint32_t                i, n, at, row, outputs, page;
    const dsa_batch_seq_t  *s;

    s = p->seq;
    outputs = dsa_batch_outputs(s);
    n = 0;

    for (i = p->start == 0; i <= p->n; i++) {
        at = p->start + i;

        if (at >= limit || (i == p->n && outputs == 0)) {
            break;
        }

        row = f->drafts.step.tokens + n++;

        h->row.position[row] = (int32_t) at;
        h->row.keys[row] = (int32_t) at + 1;
        h->row.slot[row] = (int32_t) (p->pages[at / DSA_PAGE_TOKENS]
                                      * DSA_PAGE_TOKENS
                                      + at % DSA_PAGE_TOKENS);
        h->row.token[row] = i < p->n ? (int32_t) s->tokens[at] : 0;
        h->row.feed[row] = -1;

        if (outputs != 0 && i + outputs > p->n) {
            h->row.feed[row] = (int32_t) (p->sample + i + outputs - p->n - 1);
        }

        if (i == 0) {
            page = p->pages[(at - 1) / DSA_PAGE_TOKENS];
            h->from[row] = -1 - (int32_t) page;

        } else {
            h->from[row] = (int32_t) (p->first + i - 1);
        }
    }

    /* with the row of the first token, a group might have a row too many */

    row = f->drafts.step.tokens;

    for (i = 0; i < n; i++) {
        h->row.left[row + i] = i == 0 && p->start != 0 ? 1
                                                       : (int32_t) (n - i);
    }

    return n;
}


/*
 * Writes the rows of a piece that follows the step before, and returns their
 * number.  The GPU sets the positions.
 */

static uint32_t
dsa_speculate_rows_ahead(dsa_cuda_inflight_t *f,
    const dsa_speculate_host_t *h, const dsa_cuda_piece_t *p)
{
    uint32_t               i, row, kept;
    dsa_cuda_draft_seq_t  *seq;

    seq = &h->seq[f->drafts.n];
    row = f->drafts.step.tokens;

    kept = dsa_speculate_kept(p);

    seq->from = (int32_t) p->from;
    seq->from_sample = (int32_t) p->from_sample;
    seq->kept = kept ? (int32_t) row : -1;
    seq->row = (int32_t) (row + kept);
    f->drafts.follow = 1;

    for (i = 0; i < p->n + kept; i++, row++) {
        h->row.token[row] = 0;
        h->row.position[row] = 0;
        h->row.keys[row] = 0;
        h->row.left[row] = 0;
        h->row.slot[row] = -1;
        h->row.feed[row] = i >= kept ? (int32_t) (p->sample + i - kept) : -1;
        h->from[row] = (int32_t) (p->first + (i >= kept ? i - kept : 0));
    }

    return p->n + kept;
}


/*
 * Writes the samples of the last rows of a piece, before these are counted.
 * They have the masks of biases; those of a grammar depend on the drafts, and
 * dsa_cuda_draft_mask() sets them.
 */

static void
dsa_speculate_samples(dsa_cuda_inflight_t *f, const dsa_speculate_host_t *h,
    const dsa_cuda_piece_t *p, uint32_t limit, const dsa_cuda_rank_t *rank)
{
    uint32_t                i, at, first;
    dsa_cuda_host_t         main;
    dsa_cuda_drafts_t      *d;
    const dsa_batch_seq_t  *s;
    dsa_cuda_sample_row_t  *row;

    d = &f->drafts;
    s = p->seq;
    first = p->follows ? (uint32_t) h->seq[d->n].row
                       : d->step.tokens - (p->start == 0) + p->n - s->n_draft;

    dsa_cuda_host(&main, rank, f);

    for (i = 0; i <= s->n_draft; i++) {
        at = dsa_batch_position(s, i);

        if (at >= limit && !p->follows) {
            break;
        }

        row = &h->row.sampling[d->step.samples];
        *row = main.sampling[p->sample + i];

        row->position++;
        row->n_history += dsa_sampling_penalizes(s->sampling) != 0;
        row->sampling.logprobs = 0;
        row->sampling.top_logprobs = 0;
        row->report = 0;
        row->mask = s->mask == NULL ? row->mask : 0;

        h->row.last[d->step.samples++] = (int32_t) (first + i);
    }
}
