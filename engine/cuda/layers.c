
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "engine/cuda/rank.h"
#include "kernels/exchange/exchange.h"
#include "kernels/row/embed.h"
#include "kernels/row/norm.h"


static int dsa_cuda_layers(dsa_cuda_rank_t *rank,
    const dsa_cuda_step_t *step);
static int dsa_cuda_sum(dsa_cuda_rank_t *rank, const dsa_cuda_step_t *step);
static int dsa_cuda_hidden(dsa_cuda_rank_t *rank,
    const dsa_cuda_step_t *step);
static int dsa_cuda_no_head(dsa_cuda_rank_t *rank);


int
dsa_cuda_rank_run(dsa_cuda_rank_t *rank, const dsa_cuda_step_t *step,
    dsa_err_t *err)
{
    int  rc;

    rc = dsa_cuda_layers(rank, step);

    if (rc == 0 && rank->drafts) {
        rc = dsa_cuda_hidden(rank, step);
    }

    if (rc == 0) {
        rc = dsa_cuda_head(rank, rank->weights.norm, rank->sample, step);
    }

    if (rc != 0) {
        return dsa_error(err, "GPU %d: a step of %u tokens: %s", rank->device,
                         step->tokens, dsa_cuda_error(rc));
    }

    return DSA_OK;
}


/* Computes the layers, as dsa_model_forward(). */

static int
dsa_cuda_layers(dsa_cuda_rank_t *rank, const dsa_cuda_step_t *step)
{
    uint32_t  l;

    dsa_cuda_try(dsa_cuda_feed(rank->input.token, rank->input.feed,
                               rank->sample, step->tokens,
                               rank->input.history, rank->input.sampling,
                               rank->input.last, step->samples,
                               rank->stream));
    dsa_cuda_try(dsa_cuda_embedding(rank, step));

    if (!step->indexed && !rank->dense) {
        dsa_cuda_try(dsa_cuda_select_all(rank, step));
    }

    /*
     * Before a rank stores cache entries on other ranks, these must have
     * finished earlier steps, which may still read the same pages.
     */

    if (step->shared) {
        dsa_cuda_try(dsa_cuda_exchange_signal(&rank->peers.exchange,
                                              rank->stream));
        dsa_cuda_try(dsa_cuda_exchange_wait(&rank->peers.exchange,
                                            rank->stream));
    }

    for (l = 0; l < rank->config.num_hidden_layers; l++) {
        dsa_cuda_try(dsa_cuda_layer(rank, l, l == 0, step));
    }

    return 0;
}


int
dsa_cuda_embedding(dsa_cuda_rank_t *rank, const dsa_cuda_step_t *step)
{
    dsa_cuda_work_t  *w;

    w = &rank->work;

    w->y8.ld = dsa_cuda_ld(step->tokens);
    w->expert8.ld = dsa_cuda_ld(step->tokens);
    w->qr8.ld = dsa_cuda_ld(step->tokens);
    w->o8.ld = dsa_cuda_ld(step->tokens);
    w->act8.ld = dsa_cuda_ld(step->tokens);

    dsa_cuda_try(dsa_cuda_embed(w->x, rank->weights.embed, rank->input.token,
                                step->tokens, rank->config.hidden_size,
                                rank->shard.vocab.first, rank->shard.vocab.n,
                                rank->stream));

    return dsa_cuda_sum(rank, step);
}


/* The norm before a block adds x to residual. */

int
dsa_cuda_layer(dsa_cuda_rank_t *rank, uint32_t l, int first,
    const dsa_cuda_step_t *step)
{
    int                        fp8;
    dsa_cuda_work_t           *w;
    const dsa_model_config_t  *s;
    const dsa_cuda_layer_t    *layer;

    w = &rank->work;
    s = &rank->config;
    layer = &rank->weights.layer[l];

    dsa_cuda_try(dsa_cuda_add_rmsnorm(w->y,
                                      layer->qkv_a.fp8.q != NULL ? &w->y8
                                                                 : NULL, w->x,
                                      first ? NULL : w->residual, w->residual,
                                      layer->input_norm, step->tokens,
                                      s->hidden_size, s->rms_norm_eps,
                                      (int) s->ue8m0, rank->stream));
    dsa_cuda_try(dsa_cuda_attention(rank, l, step));
    dsa_cuda_try(dsa_cuda_sum(rank, step));
    dsa_cuda_try(dsa_cuda_trace_bf16(rank, "attn_out", l, step->tokens,
                                     s->hidden_size, w->x, NULL));

    fp8 = layer->gate_up.fp8.q != NULL
          || dsa_cuda_matrix_e4m3(&layer->expert_gate_up);

    dsa_cuda_try(dsa_cuda_add_rmsnorm(w->y, fp8 ? &w->y8 : NULL, w->x,
                                      w->residual, w->residual,
                                      layer->post_norm,
                                      step->tokens, s->hidden_size,
                                      s->rms_norm_eps, (int) s->ue8m0,
                                      rank->stream));
    dsa_cuda_try(dsa_cuda_ffn(rank, l, step));
    dsa_cuda_try(dsa_cuda_sum(rank, step));

    return dsa_cuda_trace_bf16(rank, "hidden", l, step->tokens, s->hidden_size,
                               w->x, w->residual);
}


/* Replaces x by the sum of x over all ranks, if each has a part of a block. */

static int
dsa_cuda_sum(dsa_cuda_rank_t *rank, const dsa_cuda_step_t *step)
{
    if (rank->shard.ranks == 1 || rank->shard.attention == DSA_ATTENTION_DATA)
    {
        return 0;
    }

    return dsa_cuda_exchange_all_reduce(&rank->peers.exchange, rank->work.x,
                                        rank->work.x, rank->peers.reduce,
                                        step->tokens,
                                        rank->config.hidden_size,
                                        rank->stream);
}


/*
 * Keeps the last norm of all tokens for the draft layer.  The head repeats that
 * of its tokens: x is not changed.
 */

static int
dsa_cuda_hidden(dsa_cuda_rank_t *rank, const dsa_cuda_step_t *step)
{
    dsa_cuda_work_t           *w;
    const dsa_model_config_t  *s;

    w = &rank->work;
    s = &rank->config;

    return dsa_cuda_add_rmsnorm(w->hidden, NULL, w->x, w->residual,
                                w->draft_in, rank->weights.norm, step->tokens,
                                s->hidden_size, s->rms_norm_eps,
                                (int) s->ue8m0, rank->stream);
}


/*
 * If each rank has a part of the vocabulary, the logits are gathered and all
 * ranks sample the same tokens, so the input of the next step is on every GPU.
 */

int
dsa_cuda_head(dsa_cuda_rank_t *rank, const float *norm,
    dsa_cuda_sample_t *sample, const dsa_cuda_step_t *step)
{
    uint32_t                   n, part, hidden;
    dsa_cuda_work_t           *w;
    const dsa_model_config_t  *s;

    if (step->samples == 0) {
        return dsa_cuda_no_head(rank);
    }

    w = &rank->work;
    s = &rank->config;
    n = step->samples;
    part = rank->shard.vocab.n;
    hidden = s->hidden_size;

    dsa_cuda_try(dsa_cuda_gather_rows(w->last_x, w->x, rank->input.last, n,
                                      hidden, rank->stream));
    dsa_cuda_try(dsa_cuda_gather_rows(w->last_residual, w->residual,
                                      rank->input.last, n, hidden,
                                      rank->stream));
    dsa_cuda_try(dsa_cuda_add_rmsnorm(w->last_y, NULL, w->last_x,
                                      w->last_residual, w->last_residual,
                                      norm, n, hidden,
                                      s->rms_norm_eps, (int) s->ue8m0,
                                      rank->stream));
    dsa_cuda_try(dsa_cuda_gemm_bf16(rank->gemm, w->vocab_part, part, 1,
                                    w->last_y, hidden, rank->weights.head,
                                    hidden, n, part, hidden, rank->stream));

    if (part != s->vocab_size) {
        dsa_cuda_try(dsa_cuda_exchange_gather(&rank->peers.exchange,
                                              rank->peers.vocab,
                                              w->vocab_part, n, part,
                                              rank->stream));
    }

    return dsa_cuda_sample(sample, rank->input.sampling, w->vocab,
                           s->vocab_size, n, s->vocab_size, rank->allowed,
                           rank->input.history, rank->input.mask,
                           rank->input.bias, w->sample_work, rank->stream);
}


/*
 * Ends a step without samples, which gathers no logits.  The next step may sum
 * more tokens than this one.  Then it must not begin on another rank before
 * this rank has read the last sum: see kernels/exchange/exchange.h.
 */

static int
dsa_cuda_no_head(dsa_cuda_rank_t *rank)
{
    if (rank->shard.ranks == 1 || rank->shard.attention == DSA_ATTENTION_DATA)
    {
        return 0;
    }

    dsa_cuda_try(dsa_cuda_exchange_signal(&rank->peers.exchange,
                                          rank->stream));

    return dsa_cuda_exchange_wait(&rank->peers.exchange, rank->stream);
}
