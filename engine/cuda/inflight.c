
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>
#include <string.h>

#include "engine/cuda/batch.h"
#include "kernels/row/copy.h"


static int dsa_inflight_part(dsa_copy_t *part, void *to, const void *from,
    uint64_t pitch, uint64_t width, uint32_t rows);


int
dsa_cuda_inflight_open(dsa_cuda_inflight_t *f, const dsa_cuda_rank_t *rank,
    dsa_err_t *err)
{
    int     rc;
    size_t  seqs;

    seqs = rank->max_samples;
    f->out = calloc(seqs, sizeof(dsa_sample_t *));

    rc = f->out == NULL ? (int) cudaErrorMemoryAllocation : 0;
    rc = rc != 0 ? rc : (int) cudaMallocHost((void **) &f->input,
                                             dsa_cuda_input_size(rank));
    rc = rc != 0 ? rc : (int) cudaMallocHost((void **) &f->pages,
                                             seqs * rank->ld_pages
                                             * sizeof(int32_t));

    if (rank->input.peer_slot != NULL) {
        rc = rc != 0 ? rc : (int) cudaMallocHost((void **) &f->peer_slot,
                                                 (uint64_t) rank->shard.ranks
                                                 * rank->max_tokens
                                                 * sizeof(int32_t));
    }

    rc = rc != 0 ? rc : (int) cudaMallocHost((void **) &f->history,
                                             rank->max_seqs
                                             * DSA_CUDA_HISTORY(rank)
                                             * sizeof(uint32_t));
    rc = rc != 0 ? rc : (int) cudaMallocHost((void **) &f->mask,
                                             seqs * dsa_mask_words(
                                                     rank->config.vocab_size)
                                             * sizeof(uint32_t));
    rc = rc != 0 ? rc : (int) cudaMallocHost((void **) &f->bias,
                                             seqs * DSA_SAMPLE_MAX_BIAS
                                             * sizeof(dsa_bias_t));
    rc = rc != 0 ? rc : (int) cudaMallocHost((void **) &f->sample,
                                             seqs * sizeof(dsa_cuda_sample_t));
    rc = rc != 0 ? rc : dsa_cuda_rollout_open(&f->rollouts, rank);
    rc = rc != 0 ? rc : dsa_cuda_loads_open(f, rank);

    if (rank->drafts) {
        rc = rc != 0 ? rc : dsa_cuda_speculate_open(&f->drafts, rank);
    }

    rc = rc != 0 ? rc : (int) cudaEventCreateWithFlags(&f->ended,
                                             cudaEventDisableTiming);

    if (rc != 0) {
        return dsa_error(err, "pinned memory for steps of %zu sequences: %s",
                         seqs, dsa_cuda_error(rc));
    }

    return DSA_OK;
}


void
dsa_cuda_inflight_close(dsa_cuda_inflight_t *f)
{
    (void) cudaFreeHost(f->input);
    (void) cudaFreeHost(f->pages);
    (void) cudaFreeHost(f->peer_slot);
    (void) cudaFreeHost(f->history);
    (void) cudaFreeHost(f->mask);
    (void) cudaFreeHost(f->bias);
    (void) cudaFreeHost(f->sample);
    dsa_cuda_rollout_close(&f->rollouts);
    dsa_cuda_loads_close(f);
    dsa_cuda_speculate_close(&f->drafts);
    free(f->out);

    if (f->ended != NULL) {
        (void) cudaEventDestroy(f->ended);
    }
}


uint64_t
dsa_cuda_input_size(const dsa_cuda_rank_t *rank)
{
    return (uint64_t) ((uint8_t *) rank->input.end
                       - (uint8_t *) rank->input.token);
}


int
dsa_cuda_inflight_upload(const dsa_cuda_inflight_t *f, dsa_cuda_rank_t *rank,
    const dsa_cuda_extent_t *extent)
{
    uint32_t           n, words, biases;
    dsa_copy_t         part[DSA_COPY_PARTS];
    dsa_cuda_input_t  *in;

    in = &rank->input;
    words = dsa_mask_words(rank->config.vocab_size);
    biases = extent->biases * sizeof(dsa_bias_t) / sizeof(uint32_t);
    n = 0;

    n += dsa_inflight_part(&part[n], in->token, f->input,
                           dsa_cuda_input_size(rank) / sizeof(uint32_t),
                           dsa_cuda_input_size(rank) / sizeof(uint32_t), 1);
    n += dsa_inflight_part(&part[n], in->pages, f->pages, rank->ld_pages,
                           extent->pages, extent->tables);
    n += dsa_inflight_part(&part[n], in->history, f->history,
                           extent->history, extent->history, 1);
    n += dsa_inflight_part(&part[n], in->mask, f->mask, words, words,
                           extent->masks);
    n += dsa_inflight_part(&part[n], in->bias, f->bias, biases, biases, 1);
    n += dsa_inflight_part(&part[n], in->peer_slot, f->peer_slot,
                           rank->max_tokens, extent->peers,
                           rank->shard.ranks);

    return dsa_cuda_copy(part, n, rank->stream);
}


int
dsa_cuda_inflight_download(const dsa_cuda_inflight_t *f,
    const dsa_cuda_rank_t *rank)
{
    uint64_t    words;
    dsa_copy_t  part;

    words = (uint64_t) f->samples * sizeof(dsa_cuda_sample_t)
            / sizeof(uint32_t);

    return dsa_inflight_part(&part, f->sample, rank->sample, words, words, 1)
           ? dsa_cuda_copy(&part, 1, rank->stream) : 0;
}


/* Returns 1 if there is something to copy. */

static int
dsa_inflight_part(dsa_copy_t *part, void *to, const void *from,
    uint64_t pitch, uint64_t width, uint32_t rows)
{
    part->to = to;
    part->from = from;
    part->pitch = (uint32_t) pitch;
    part->width = (uint32_t) width;
    part->rows = rows;

    return width != 0 && rows != 0;
}


void
dsa_cuda_host(dsa_cuda_host_t *h, const dsa_cuda_rank_t *rank,
    const dsa_cuda_inflight_t *f)
{
    const uint8_t  *first;

    first = (const uint8_t *) rank->input.token;

#define dsa_host_at(p)                                                        \
    (void *) (f->input + ((const uint8_t *) rank->input.p - first))

    h->token = dsa_host_at(token);
    h->position = dsa_host_at(position);
    h->slot = dsa_host_at(slot);
    h->keys = dsa_host_at(keys);
    h->left = dsa_host_at(left);
    h->table = dsa_host_at(table);
    h->feed = dsa_host_at(feed);
    h->last = dsa_host_at(last);
    h->sampling = dsa_host_at(sampling);

#undef dsa_host_at
}


void
dsa_cuda_host_pad(dsa_cuda_host_t *h, uint32_t from, uint32_t to)
{
    uint32_t  i;

    for (i = from; i < to; i++) {
        h->token[i] = 0;
        h->position[i] = 0;
        h->slot[i] = -1;
        h->keys[i] = 0;
        h->left[i] = 0;
        h->table[i] = (int32_t) i;
        h->feed[i] = -1;
        h->last[i] = (int32_t) i;
        memset(&h->sampling[i], 0, sizeof(dsa_cuda_sample_row_t));
    }
}
