
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include "bench/node.h"
#include "bench/node_steps.h"
#include "bench/routing.h"
#include "kernels/core/cuda.h"


/*
 * Loads of chats that are there at once, as bench/serve runs them: so many
 * streams, each with a prompt and an answer.  No GPU is needed.
 *
 *     at least    what all prompts and all steps of the answers read and
 *                 compute (bound.c), as if both could go on at the same time
 *                 all the time: the longer one.  Links are not in it
 *     projected   one GPU, from steps that were measured on it: prompts, and
 *                 then the answers' steps, one after the other
 *
 * With drafts a step has more rows of a sequence, and one step of the draft
 * layer for each of its drafts; a sequence gets one token and those of its
 * drafts that are right.  Where the memory of the GPUs does not hold all
 * streams, so many run at a time as it holds.
 */

#define DSA_CHATS_CARD      150.8e9     /* bytes of an H200 */
#define DSA_CHATS_STEP      4096.0      /* tokens of short prompts in a step,
                                           from which on it takes as long a
                                           token as with more */


typedef struct {
    uint32_t            prompt;
    uint32_t            answer;
} dsa_chats_lengths_t;


typedef struct {
    const dsa_node_chats_t  *o;
    dsa_model_config_t  config;
    dsa_node_steps_t    steps;
    double              moe;            /* layers with experts */
    double              record;         /* bytes of a token in a layer */
    double              tokens;         /* of KV that fit all GPUs; with
                                           "tensor" those of each */
} dsa_chats_t;


/* Output tokens/s with the number of drafts that gives most. */

typedef struct {
    double              rate;           /* 0: there is none */
    uint32_t            drafts;
    const char         *limit;
} dsa_chats_best_t;


static const dsa_chats_lengths_t  dsa_chats_lengths[] = {
    { 1024, 256 }, { 8192, 1024 }
};

static const uint32_t  dsa_chats_streams[] = {
    1, 8, 16, 32, 64, 128, 256, 512
};


#define dsa_chats_size(a)   (sizeof(a) / sizeof((a)[0]))


static int dsa_chats_capacity(dsa_chats_t *c, dsa_err_t *err);
static void dsa_chats_step(const dsa_chats_t *c, dsa_bound_step_t *step);
static int dsa_chats_row(const dsa_chats_t *c, const dsa_chats_lengths_t *l,
    uint32_t streams, dsa_err_t *err);
static int dsa_chats_bound(const dsa_chats_t *c, const dsa_chats_lengths_t *l,
    uint32_t streams, uint32_t drafts, double *seconds, const char **limit);
static void dsa_chats_prompts(const dsa_chats_t *c, dsa_bound_t *sum,
    uint32_t prompt, uint32_t streams);
static int dsa_chats_projected(const dsa_chats_t *c,
    const dsa_chats_lengths_t *l, uint32_t streams, uint32_t drafts,
    double *seconds);
static double dsa_chats_tokens(const dsa_chats_t *c, uint32_t drafts);
static void dsa_chats_better(dsa_chats_best_t *best, double tokens,
    double seconds, uint32_t drafts, const char *limit);
static void dsa_chats_cell(double value, int decimals);


int
dsa_node_chats_table(const char *model, const dsa_node_chats_t *o,
    dsa_err_t *err)
{
    size_t       i, k;
    uint32_t     n;
    dsa_chats_t  c;

    memset(&c, 0, sizeof(c));
    c.o = o;

    if (dsa_model_config_read(&c.config, model, err) != DSA_OK
        || (o->steps != NULL
            && dsa_node_steps_read(&c.steps, o->steps, err) != DSA_OK)
        || dsa_chats_capacity(&c, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    (void) printf("%s: %u H200, attention %s, latents in %s, room for %.2f M "
                  "tokens; bounds as measured on one: HBM %.0f GB/s, FP8 %.0f "
                  "and BF16 %.0f TFLOPS.  Drafts that are right, assumed:",
                  model, o->gpus,
                  o->attention == DSA_ATTENTION_DATA ? "data" : "tensor",
                  c.record == dsa_cuda_record(1) ? "BF16" : "FP8",
                  c.tokens * 1e-6, DSA_BENCH_HBM, DSA_BENCH_FP8,
                  DSA_BENCH_BF16);

    for (n = 0; n < o->drafts; n++) {
        (void) printf(" %g", o->right[n]);
    }

    (void) printf("%s.\n\n| streams | prompt / answer, tokens | bound, output "
                  "tokens/s | limit | projected | with drafts: bound "
                  "| drafts | projected | drafts | served | by its bound "
                  "| by its projection |\n"
                  "|---|---|---|---|---|---|---|---|---|---|---|---|\n",
                  o->drafts == 0 ? " none" : "");

    for (k = 0; k < dsa_chats_size(dsa_chats_lengths); k++) {
        for (i = 0; i < dsa_chats_size(dsa_chats_streams); i++) {
            if (dsa_chats_row(&c, &dsa_chats_lengths[k], dsa_chats_streams[i],
                              err)
                != DSA_OK)
            {
                return DSA_ERROR;
            }
        }
    }

    return DSA_OK;
}


/* Sets what is the same in all rows; the weights are read by a step at most. */

static int
dsa_chats_capacity(dsa_chats_t *c, dsa_err_t *err)
{
    double                     room, token;
    uint32_t                   i;
    dsa_bound_t                weights;
    dsa_bound_step_t           step;
    const dsa_model_config_t  *s;

    s = &c->config;

    if (c->o->kv == DSA_KV_BF16 && !dsa_model_config_dense(s)) {
        return dsa_error(err, "\"--kv bf16\": the model has an indexer; "
                         "expected \"--kv fp8\", or none");
    }

    if (c->o->drafts != 0 && s->num_nextn_predict_layers == 0) {
        return dsa_error(err, "the model has no draft layer; expected no "
                         "\"--drafts\"");
    }

    c->record = dsa_cuda_record(dsa_kv_bf16(DSA_BACKEND_CUDA, c->o->kv, s));

    for (i = 0, token = 0; i < s->num_hidden_layers; i++) {
        c->moe += s->layer[i].moe;
        token += c->record;

        if (s->layer[i].selection == DSA_SELECTION_OWN) {
            token += DSA_CUDA_INDEX + sizeof(float);
        }
    }

    if (dsa_bench_routing_check(s, c->o->gpus, err) != DSA_OK) {
        return DSA_ERROR;
    }

    memset(&weights, 0, sizeof(weights));
    memset(&step, 0, sizeof(step));
    dsa_chats_step(c, &step);
    dsa_bound_layers(&weights, s, &step, 0, s->num_hidden_layers);
    dsa_bound_head(&weights, s, &step, 0);
    dsa_bound_head(&weights, s, &step, 0);      /* the embedding */

    room = DSA_CHATS_CARD - weights.bytes;

    if (room <= 0) {
        return dsa_error(err, "%u such GPUs do not hold the weights, %.1f GB "
                         "on each", c->o->gpus, weights.bytes * 1e-9);
    }

    c->tokens = room / token;

    if (c->o->attention == DSA_ATTENTION_DATA) {
        c->tokens *= c->o->gpus;
    }

    return DSA_OK;
}


/* A step that needs all experts of the GPU. */

static void
dsa_chats_step(const dsa_chats_t *c, dsa_bound_step_t *step)
{
    step->ranks = c->o->gpus;
    step->attention = c->o->attention;
    step->record = c->record;
    step->load.experts = c->config.n_routed_experts;

    if (step->attention == DSA_ATTENTION_DATA) {
        step->load.experts /= step->ranks;
    }
}


static int
dsa_chats_row(const dsa_chats_t *c, const dsa_chats_lengths_t *l,
    uint32_t streams, dsa_err_t *err)
{
    double             seconds, served;
    uint32_t           d, n, room;
    const char        *limit;
    dsa_chats_best_t   bound[2], projected[2];

    room = (uint32_t) (c->tokens / (l->prompt + l->answer));
    n = streams < room ? streams : room;

    if (l->prompt + l->answer > c->config.max_position_embeddings || n == 0) {
        return DSA_OK;
    }

    memset(bound, 0, sizeof(bound));
    memset(projected, 0, sizeof(projected));

    for (d = 0; d <= c->o->drafts; d++) {
        if (dsa_chats_bound(c, l, n, d, &seconds, &limit) != DSA_OK) {
            return dsa_error(err, "no memory for samples of routing");
        }

        dsa_chats_better(&bound[d != 0], (double) n * l->answer, seconds, d,
                         limit);

        if (dsa_chats_projected(c, l, n, d, &seconds) == DSA_OK) {
            dsa_chats_better(&projected[d != 0], (double) n * l->answer,
                             seconds, d, limit);
        }
    }

    (void) printf("| %u", streams);

    if (n < streams) {
        (void) printf(", %u at a time", n);
    }

    (void) printf(" | %u / %u | %.0f | %s |", l->prompt, l->answer,
                  bound[0].rate, bound[0].limit);
    dsa_chats_cell(projected[0].rate, 0);
    dsa_chats_cell(bound[1].rate, 0);
    dsa_chats_cell(bound[1].drafts, 0);
    dsa_chats_cell(projected[1].rate, 0);
    dsa_chats_cell(projected[1].drafts, 0);

    /* what was served chose the number of its drafts, or had none */

    d = bound[1].rate > bound[0].rate;
    served = dsa_node_steps_served(&c->steps, streams, l->prompt, l->answer);
    dsa_chats_cell(served, 0);
    dsa_chats_cell(served / bound[d].rate, 2);

    d = projected[1].rate > projected[0].rate;
    dsa_chats_cell(projected[d].rate > 0 ? served / projected[d].rate : 0, 2);
    (void) printf("\n");

    return DSA_OK;
}


/* Seconds of the streams' prompts and answers at least. */

static int
dsa_chats_bound(const dsa_chats_t *c, const dsa_chats_lengths_t *l,
    uint32_t streams, uint32_t drafts, double *seconds, const char **limit)
{
    double             steps;
    uint32_t           i, all, own, ranks;
    dsa_bound_t        step, sum;
    dsa_bound_step_t   s;

    ranks = c->o->attention == DSA_ATTENTION_DATA ? c->o->gpus : 1;
    own = (streams + ranks - 1) / ranks;
    all = streams * (1 + drafts);

    memset(&sum, 0, sizeof(sum));
    memset(&step, 0, sizeof(step));
    memset(&s, 0, sizeof(s));

    dsa_chats_step(c, &s);
    s.tokens = own * (1 + drafts);
    s.sequences = own;
    s.start = l->prompt + l->answer / 2;

    if (dsa_bench_load(&s.load, &c->config, all, ranks) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_bound_layers(&step, &c->config, &s, 0, c->config.num_hidden_layers);
    dsa_bound_head(&step, &c->config, &s, s.tokens);

    if (drafts != 0
        && dsa_bench_load(&s.load, &c->config, streams, ranks) != DSA_OK)
    {
        return DSA_ERROR;
    }

    s.tokens = own;

    for (i = 0; i < drafts; i++) {
        dsa_bound_draft(&step, &c->config, &s);
    }

    dsa_chats_prompts(c, &sum, l->prompt, streams);

    steps = (l->answer - 1) / dsa_chats_tokens(c, drafts);
    sum.bytes += steps * step.bytes;
    sum.fp8 += steps * step.fp8;
    sum.bf16 += steps * step.bf16;

    *seconds = dsa_bound_seconds(&sum, limit);

    return DSA_OK;
}


/*
 * Adds the prompts: all of their products, shared out equally to the GPUs, and
 * the weights once.
 */

static void
dsa_chats_prompts(const dsa_chats_t *c, dsa_bound_t *sum, uint32_t prompt,
    uint32_t streams)
{
    double             times;
    dsa_bound_t        one;
    dsa_bound_step_t   s;

    memset(&one, 0, sizeof(one));
    memset(&s, 0, sizeof(s));

    dsa_chats_step(c, &s);
    s.prefill = 1;
    s.tokens = prompt;
    s.sequences = 1;
    s.load.pairs = (double) prompt * c->config.num_experts_per_tok;

    dsa_bound_layers(&one, &c->config, &s, 0, c->config.num_hidden_layers);
    dsa_bound_head(&one, &c->config, &s, 1);

    times = streams;

    if (c->o->attention == DSA_ATTENTION_DATA) {
        times /= c->o->gpus;
    }

    sum->bytes += one.bytes;
    sum->fp8 += times * one.fp8;
    sum->bf16 += times * one.bf16;
}


/*
 * Seconds by the measured steps.  DSA_AGAIN: some were not measured.  A step of
 * the draft layer is taken to be a layer with experts and all that a step has
 * beside its layers; the first one has a row for each of the model's.
 */

static int
dsa_chats_projected(const dsa_chats_t *c, const dsa_chats_lengths_t *l,
    uint32_t streams, uint32_t drafts, double *seconds)
{
    double              context, size, step;
    dsa_node_seconds_t  prompt, model, draft;

    context = l->prompt + l->answer / 2;
    size = (double) streams * l->prompt;
    size = size < DSA_CHATS_STEP ? size : DSA_CHATS_STEP;
    size = size > l->prompt ? size : l->prompt;

    if (c->o->gpus != 1
        || dsa_node_steps_prefill(&prompt, &c->steps, size) != DSA_OK
        || dsa_node_steps_decode(&model, &c->steps, streams * (1 + drafts),
                                 context) != DSA_OK
        || dsa_node_steps_decode(&draft, &c->steps, streams, context)
           != DSA_OK)
    {
        return DSA_AGAIN;
    }

    step = model.rest + c->moe * model.layer;

    if (drafts != 0) {
        step += model.rest + model.layer
                + (drafts - 1) * (draft.rest + draft.layer);
        prompt.rest += prompt.layer;
    }

    *seconds = (double) streams * l->prompt
               * (prompt.rest + c->moe * prompt.layer)
               + (l->answer - 1) / dsa_chats_tokens(c, drafts) * step;

    return DSA_OK;
}


/* Tokens of a sequence in a step. */

static double
dsa_chats_tokens(const dsa_chats_t *c, uint32_t drafts)
{
    double    n;
    uint32_t  i;

    for (i = 0, n = 1; i < drafts; i++) {
        n += c->o->right[i];
    }

    return n;
}


static void
dsa_chats_better(dsa_chats_best_t *best, double tokens, double seconds,
    uint32_t drafts, const char *limit)
{
    if (tokens / seconds > best->rate) {
        best->rate = tokens / seconds;
        best->drafts = drafts;
        best->limit = limit;
    }
}


/* An empty cell is something that was not measured. */

static void
dsa_chats_cell(double value, int decimals)
{
    if (value > 0) {
        (void) printf(" %.*f |", decimals, value);

    } else {
        (void) printf(" |");
    }
}
