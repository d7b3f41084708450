
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>
#include <string.h>

#include "engine/cuda/batch.h"
#include "kernels/row/copy.h"


/*
 * The rollout data of a step.  The experts of all layers stay in device memory
 * until the end of the step in any case.  The kernels for the kept ids and the
 * copy of the experts are enqueued after a step, and only if an entry has a
 * rollout, so they are not part of its graph.
 *
 * Without top_p the kept ids are those of the mask.  Unlike on the CPU, this
 * includes ids with a logit of minus infinity from the model itself.
 */

static void dsa_rollout_one(uint32_t *kept, uint32_t words, uint32_t id);
static uint32_t dsa_rollout_count(uint32_t *kept, uint32_t allowed,
    uint32_t words);


int
dsa_cuda_rollout_open(dsa_cuda_rollouts_t *r, const dsa_cuda_rank_t *rank)
{
    int     rc;
    size_t  seqs, layers;

    seqs = rank->max_samples;
    layers = dsa_model_config_moe_layers(&rank->config);

    r->words = dsa_mask_words(rank->config.vocab_size);
    r->allowed = rank->allowed < rank->config.vocab_size
                 ? rank->allowed : rank->config.vocab_size;
    r->sample = calloc(seqs, sizeof(dsa_rollout_t));
    r->piece = calloc(seqs, sizeof(dsa_cuda_routes_t));

    if (r->sample == NULL || r->piece == NULL) {
        return (int) cudaErrorMemoryAllocation;
    }

    rc = (int) cudaMallocHost((void **) &r->kept,
                              seqs * r->words * sizeof(uint32_t));

    if (layers != 0) {
        rc = rc != 0 ? rc : (int) cudaMallocHost((void **) &r->experts,
                                                 layers * rank->ld_routes
                                                 * sizeof(int32_t));
    }

    return rc;
}


void
dsa_cuda_rollout_close(dsa_cuda_rollouts_t *r)
{
    free(r->sample);
    free(r->piece);
    (void) cudaFreeHost(r->kept);
    (void) cudaFreeHost(r->experts);
}


void
dsa_cuda_rollout_piece(dsa_cuda_rollouts_t *r, const dsa_cuda_rank_t *rank,
    const dsa_cuda_piece_t *p, uint32_t first)
{
    uint32_t             routes;
    dsa_cuda_routes_t   *piece;
    const dsa_rollout_t *from;

    from = p->seq->rollout;

    if (from == NULL || from->experts == NULL) {
        return;
    }

    routes = dsa_model_config_moe_layers(&rank->config) * rank->router.k;

    piece = &r->piece[r->n_pieces++];
    piece->to = from->experts + (size_t) (p->start - p->seq->start) * routes;
    piece->first = first;
    piece->n = p->n;
    r->tokens = first + p->n;
}


int
dsa_cuda_rollout_enqueue(const dsa_cuda_rollouts_t *r,
    const dsa_cuda_rank_t *rank, uint32_t samples)
{
    int         rc;
    dsa_copy_t  part;

    rc = 0;

    if (r->n_kept != 0) {
        rc = dsa_cuda_sample_kept(r->kept, rank->sample, rank->input.sampling,
                                  rank->work.sample_work, samples,
                                  rank->config.vocab_size, rank->allowed,
                                  rank->stream);
    }

    if (rc != 0 || r->n_pieces == 0 || r->experts == NULL) {
        return rc;
    }

    part.to = r->experts;
    part.from = rank->routes;
    part.pitch = (uint32_t) rank->ld_routes;
    part.width = r->tokens * rank->router.k;
    part.rows = dsa_model_config_moe_layers(&rank->config);

    return dsa_cuda_copy(&part, 1, rank->stream);
}


void
dsa_cuda_rollout_draw(const dsa_cuda_rollouts_t *r, uint32_t i,
    const dsa_cuda_sample_t *from, const uint32_t *mask)
{
    uint32_t    *kept;
    dsa_draw_t  *draw;

    draw = r->sample[i].draw;
    kept = r->sample[i].kept;

    if (draw == NULL) {
        return;
    }

    draw->logprob = from->drawn;
    draw->n_kept = 0;

    if (kept == NULL) {
        return;
    }

    switch (from->kept) {

    case DSA_CUDA_KEPT_ONE:
        dsa_rollout_one(kept, r->words, from->token);
        break;

    case DSA_CUDA_KEPT_CUT:
        memcpy(kept, r->kept + (size_t) i * r->words,
               r->words * sizeof(uint32_t));
        break;

    default: /* DSA_CUDA_KEPT_ALL */
        if (mask == NULL) {
            draw->n_kept = DSA_KEPT_ALL;
            return;
        }

        memcpy(kept, mask, r->words * sizeof(uint32_t));
        break;
    }

    draw->n_kept = dsa_rollout_count(kept, r->allowed, r->words);

    if (draw->n_kept == r->allowed) {
        draw->n_kept = DSA_KEPT_ALL;
    }
}


static void
dsa_rollout_one(uint32_t *kept, uint32_t words, uint32_t id)
{
    memset(kept, 0, words * sizeof(uint32_t));
    kept[id / 32] = 1U << id % 32;
}


/*
 * Clears the bits of ids that are not allowed, and counts the remaining ones.
 */

static uint32_t
dsa_rollout_count(uint32_t *kept, uint32_t allowed, uint32_t words)
{
    uint32_t  i, n;

    n = 0;

    for (i = 0; i < words; i++) {
        if (i >= allowed / 32) {
            kept[i] &= i == allowed / 32 ? (1U << allowed % 32) - 1 : 0;
        }

        n += (uint32_t) __builtin_popcount(kept[i]);
    }

    return n;
}


void
dsa_cuda_rollout_finish(const dsa_cuda_rollouts_t *r,
    const dsa_cuda_rank_t *rank)
{
    size_t                    at;
    uint32_t                  i, t, l, e, k, layers;
    const int32_t            *from;
    const dsa_cuda_routes_t  *p;

    k = rank->router.k;
    layers = dsa_model_config_moe_layers(&rank->config);

    for (i = 0; i < r->n_pieces; i++) {
        p = &r->piece[i];

        for (t = 0; t < p->n; t++) {
            for (l = 0; l < layers; l++) {
                from = r->experts + l * rank->ld_routes
                       + (size_t) (p->first + t) * k;
                at = ((size_t) t * layers + l) * k;

                for (e = 0; e < k; e++) {
                    p->to[at + e] = (uint16_t) from[e];
                }
            }
        }
    }
}
