
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "engine/cuda/batch.h"
#include "kernels/row/copy.h"
#include "kernels/row/embed.h"


/* The kernels and steps of the draft layer for what speculate.c prepares. */


static int dsa_speculate_upload(const dsa_cuda_drafts_t *d,
    const dsa_cuda_rank_t *rank);
static int dsa_speculate_download(const dsa_cuda_drafts_t *d,
    const dsa_cuda_rank_t *rank);
static int dsa_speculate_first(const dsa_cuda_drafts_t *d,
    dsa_cuda_rank_t *rank);
static int dsa_speculate_next(const dsa_cuda_drafts_t *d,
    dsa_cuda_rank_t *rank, uint32_t k);
static int dsa_speculate_selection(const dsa_cuda_drafts_t *d,
    dsa_cuda_rank_t *rank);
static int dsa_speculate_later(const dsa_cuda_drafts_t *d,
    dsa_cuda_rank_t *rank);


int
dsa_cuda_speculate_begin(const dsa_cuda_inflight_t *f, dsa_cuda_rank_t *rank)
{
    dsa_cuda_draft_input_t    in, known;
    const dsa_cuda_drafts_t  *d;
    dsa_cuda_speculation_t   *spec;

    d = &f->drafts;
    spec = &rank->spec;

    dsa_cuda_try(dsa_speculate_upload(d, rank));

    if (!d->follow) {
        return 0;
    }

    in.token = rank->input.token;
    in.position = rank->input.position;
    in.slot = rank->input.slot;
    in.keys = rank->input.keys;
    in.left = rank->input.left;
    in.sampling = rank->input.sampling;
    in.pages = rank->input.pages;

    known.token = spec->known.token;
    known.position = spec->known.position;
    known.slot = spec->known.slot;
    known.keys = spec->known.keys;
    known.left = spec->known.left;
    known.sampling = spec->known.sampling;
    known.pages = spec->known.pages;

    return dsa_cuda_draft_follow(spec->seq, d->n, &in, rank->input.table,
                                 &known, spec->from, rank->ld_pages,
                                 rank->input.history, spec->accepted,
                                 spec->next, rank->sample, rank->stream);
}


int
dsa_cuda_speculate_enqueue(const dsa_cuda_inflight_t *f,
    dsa_cuda_rank_t *rank)
{
    uint32_t                  k;
    dsa_cuda_kept_t           kept;
    const dsa_cuda_drafts_t  *d;
    dsa_cuda_speculation_t   *spec;

    d = &f->drafts;
    spec = &rank->spec;

    kept.base = (uint8_t *) rank->page + rank->cache.hidden;
    kept.page = rank->cache.page;
    kept.cols = rank->config.hidden_size;

    dsa_cuda_try(dsa_cuda_draft_accept(spec->accepted, spec->seq, d->n,
                                       rank->input.token, rank->sample,
                                       rank->input.sampling,
                                       rank->input.history, rank->stream));

    if (d->step.tokens != 0) {
        dsa_cuda_try(dsa_cuda_draft_gather(rank->work.draft_hidden,
                                           spec->known.slot, rank->work.hidden,
                                           spec->from, spec->known.position,
                                           &kept, d->step.tokens,
                                           rank->stream));
    }

    /* what earlier steps have kept was read */

    if (d->tokens != 0) {
        dsa_cuda_try(dsa_cuda_draft_keep_hidden(&kept, rank->work.hidden,
                                                rank->input.position,
                                                rank->input.slot, spec->owner,
                                                spec->seq, spec->accepted,
                                                d->tokens, rank->stream));
    }

    if (d->step.tokens != 0) {
        dsa_cuda_try(dsa_speculate_first(d, rank));
    }

    for (k = 0; k < d->most && !d->masked; k++) {
        dsa_cuda_try(dsa_speculate_next(d, rank, k));

        if (k + 1 < d->most) {
            dsa_cuda_try(dsa_speculate_later(d, rank));
        }
    }

    return dsa_speculate_download(d, rank);
}


static int
dsa_speculate_download(const dsa_cuda_drafts_t *d, const dsa_cuda_rank_t *rank)
{
    dsa_copy_t  part[2];

    part[0].to = d->accepted;
    part[0].from = rank->spec.accepted;
    part[0].pitch = d->n;
    part[0].width = d->n;
    part[0].rows = 1;

    part[1].to = d->next;
    part[1].from = rank->spec.next;
    part[1].pitch = d->n * DSA_DRAFT_NEXT;
    part[1].width = part[1].pitch;
    part[1].rows = 1;

    return dsa_cuda_copy(part, d->most != 0 ? 2 : 1, rank->stream);
}


/*
 * Sets the masks of draft k of each sequence, after the valid samples and the
 * drafts before it.
 */

void
dsa_cuda_speculate_masks(dsa_cuda_inflight_t *f, const dsa_cuda_rank_t *rank,
    uint32_t k)
{
    uint32_t              i, j, n, words;
    uint32_t              tokens[2 * DSA_MAX_OUTPUTS];
    const uint32_t       *next;
    dsa_cuda_drafts_t    *d;
    dsa_cuda_verified_t  *e;

    d = &f->drafts;
    words = dsa_mask_words(rank->config.vocab_size);

    for (i = 0; i < d->n; i++) {
        e = &d->entry[i];
        next = d->next + (size_t) i * DSA_DRAFT_NEXT;
        d->state[i] = 0;

        if (e->next_mask == NULL || (k != 0 && k >= next[0])) {
            continue;
        }

        n = d->accepted[i];

        for (j = 0; j < n; j++) {
            tokens[j] = f->sample[e->sample + j].token;
        }

        memcpy(tokens + n, next + 1, k * sizeof(uint32_t));

        if (e->next_mask(e->next_owner, tokens, n + k,
                         d->mask + (size_t) i * words)
            == DSA_OK)
        {
            d->state[i] = DSA_DRAFT_MASKED;

        } else {
            d->state[i] = DSA_DRAFT_ENDED;
            e->next_mask = NULL;
        }
    }
}


int
dsa_cuda_speculate_draft(const dsa_cuda_inflight_t *f, dsa_cuda_rank_t *rank,
    uint32_t k)
{
    uint32_t                  vocab, words;
    dsa_copy_t                part[2];
    dsa_cuda_input_t         *in;
    const dsa_cuda_drafts_t  *d;
    dsa_cuda_speculation_t   *spec;

    d = &f->drafts;
    spec = &rank->spec;
    in = k == 0 ? &spec->known : &spec->later;
    vocab = rank->config.vocab_size;
    words = dsa_mask_words(vocab);

    part[0].to = spec->state;
    part[0].from = d->state;
    part[0].pitch = d->n;
    part[0].width = d->n;
    part[0].rows = 1;

    part[1].to = rank->input.mask + (size_t) rank->max_samples * words;
    part[1].from = d->mask;
    part[1].pitch = words;
    part[1].width = words;
    part[1].rows = d->n;

    dsa_cuda_try(dsa_cuda_copy(part, 2, rank->stream));
    dsa_cuda_try(dsa_cuda_draft_mask(in->sampling, spec->next, spec->seq,
                                     spec->accepted, spec->state,
                                     rank->max_samples + 1, d->n, k,
                                     rank->stream));

    if (k != 0 || d->step.samples != 0) {
        dsa_cuda_try(dsa_cuda_sample(spec->sample, in->sampling,
                                     rank->work.vocab, vocab,
                                     k == 0 ? d->step.samples : d->n, vocab,
                                     rank->allowed, rank->input.history,
                                     rank->input.mask, rank->input.bias,
                                     rank->work.sample_work, rank->stream));
    }

    dsa_cuda_try(dsa_speculate_next(d, rank, k));

    if (k + 1 < d->most) {
        dsa_cuda_try(dsa_speculate_later(d, rank));
    }

    dsa_cuda_try(dsa_speculate_download(d, rank));

    return cudaStreamSynchronize(rank->stream);
}


static int
dsa_speculate_upload(const dsa_cuda_drafts_t *d, const dsa_cuda_rank_t *rank)
{
    dsa_copy_t  part[2];

    part[0].to = rank->spec.known.token;
    part[0].from = d->known;
    part[0].pitch = (uint32_t) (dsa_cuda_speculate_size(rank)
                               / sizeof(uint32_t));
    part[0].width = part[0].pitch;
    part[0].rows = 1;

    part[1].to = rank->spec.known.pages;
    part[1].from = d->pages;
    part[1].pitch = rank->ld_pages;
    part[1].width = d->width;
    part[1].rows = d->tables;

    return dsa_cuda_copy(part, d->tables != 0 ? 2 : 1, rank->stream);
}


/* The first step of the draft layer, over the rows of all sequences. */

static int
dsa_speculate_first(const dsa_cuda_drafts_t *d, dsa_cuda_rank_t *rank)
{
    int               rc;
    dsa_cuda_input_t  input;

    dsa_cuda_try(dsa_cuda_feed(rank->spec.known.token, rank->spec.known.feed,
                               rank->sample, d->step.tokens, NULL, NULL, NULL,
                               0, rank->stream));

    input = rank->input;
    rank->input = rank->spec.known;
    rc = dsa_cuda_draft(rank, rank->spec.sample, &d->step);
    rank->input = input;

    return rc;
}


/* Reports draft k of each sequence and prepares the row of the next one. */

static int
dsa_speculate_next(const dsa_cuda_drafts_t *d, dsa_cuda_rank_t *rank,
    uint32_t k)
{
    dsa_cuda_input_t        *in;
    dsa_cuda_draft_rows_t    to, from;
    dsa_cuda_speculation_t  *spec;

    spec = &rank->spec;
    in = &spec->later;

    to.token = in->token;
    to.position = in->position;
    to.slot = in->slot;
    to.keys = in->keys;
    to.last = in->last;
    to.sampling = in->sampling;
    from = to;

    if (k == 0) {
        from.sampling = spec->known.sampling;

        dsa_cuda_try(dsa_cuda_draft_copy(in->pages, spec->known.pages,
                                         &spec->seq[0].table,
                                         sizeof(dsa_cuda_draft_seq_t)
                                         / sizeof(int32_t), d->n,
                                         rank->ld_pages, d->width, 0,
                                         rank->stream));
    }

    dsa_cuda_try(dsa_cuda_draft_next(spec->next, spec->source, spec->row, &to,
                                     &from, k == 0 ? spec->known.last : NULL,
                                     spec->sample, rank->input.history,
                                     spec->seq, spec->accepted, in->pages,
                                     rank->ld_pages, d->n, k, rank->stream));

    if (k + 1 == d->most) {
        return 0;
    }

    dsa_cuda_try(dsa_cuda_gather_rows(rank->work.draft_hidden,
                                      rank->work.last_y, spec->source, d->n,
                                      rank->config.hidden_size,
                                      rank->stream));

    return k == 0 && rank->config.index_share_for_mtp_iteration
           ? dsa_speculate_selection(d, rank) : 0;
}


/* Moves the selections of the rows from which drafts go on to the front. */

static int
dsa_speculate_selection(const dsa_cuda_drafts_t *d, dsa_cuda_rank_t *rank)
{
    uint32_t                 topk;
    uint64_t                 bytes;
    dsa_cuda_work_t         *w;
    dsa_cuda_speculation_t  *spec;

    w = &rank->work;
    spec = &rank->spec;
    topk = rank->topk;
    bytes = (uint64_t) d->n * topk * sizeof(int32_t);

    dsa_cuda_try(dsa_cuda_draft_copy(spec->pick, w->pick, spec->row, 1, d->n,
                                     topk, topk, -1, rank->stream));
    dsa_cuda_try(dsa_cuda_draft_copy(spec->pick_slot, w->pick_slot, spec->row,
                                     1, d->n, topk, topk, -1, rank->stream));
    dsa_cuda_try(dsa_cuda_draft_copy(spec->n_pick, w->n_pick, spec->row, 1,
                                     d->n, 1, 1, 0, rank->stream));
    dsa_cuda_try((int) cudaMemcpyAsync(w->pick, spec->pick, bytes,
                                       cudaMemcpyDeviceToDevice,
                                       rank->stream));
    dsa_cuda_try((int) cudaMemcpyAsync(w->pick_slot, spec->pick_slot, bytes,
                                       cudaMemcpyDeviceToDevice,
                                       rank->stream));

    return cudaMemcpyAsync(w->n_pick, spec->n_pick, d->n * sizeof(int32_t),
                           cudaMemcpyDeviceToDevice, rank->stream);
}


/* A later step, with one row for each sequence. */

static int
dsa_speculate_later(const dsa_cuda_drafts_t *d, dsa_cuda_rank_t *rank)
{
    int               rc;
    dsa_cuda_step_t   step;
    dsa_cuda_input_t  input;

    memset(&step, 0, sizeof(dsa_cuda_step_t));

    step.tokens = d->n;
    step.decode = d->n;
    step.samples = d->n;
    step.fullest = d->fullest;
    step.max_keys = d->max_keys;
    step.indexed = d->max_keys > rank->topk;
    step.shared_pick = rank->config.index_share_for_mtp_iteration;

    input = rank->input;
    rank->input = rank->spec.later;
    rc = dsa_cuda_draft(rank, rank->spec.sample, &step);
    rank->input = input;

    return rc;
}


void
dsa_cuda_speculate_finish(const dsa_cuda_inflight_t *f)
{
    uint32_t                    i, n;
    const uint32_t             *next;
    const dsa_cuda_drafts_t    *d;
    const dsa_cuda_verified_t  *e;

    d = &f->drafts;

    for (i = 0; i < d->n; i++) {
        e = &d->entry[i];
        next = d->next + (size_t) i * DSA_DRAFT_NEXT;

        if (e->accepted != NULL) {
            *e->accepted = d->accepted[i];
        }

        if (e->next == NULL) {
            continue;
        }

        n = d->most != 0 ? next[0] : 0;
        memcpy(e->next, next + 1, n * sizeof(uint32_t));
        *e->n_next = n;
    }
}
