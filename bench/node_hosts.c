
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>

#include "bench/hosts.h"
#include "bench/node.h"
#include "bench/routing.h"
#include "kernels/core/cuda.h"


/*
 * What several hosts of H100 would do at least, with "attention data".  Nothing
 * is measured here, and no GPU is needed: the time of a step is the sum of
 *
 *     GPUs      what the fullest GPU reads and computes, as bound.c has it
 *     exchange  bytes that a GPU sends, to the GPUs of its own host and to
 *               those of the others at the same time: the longer of the two,
 *               because the forward pass waits for it in each layer
 *     latency   two exchanges in each layer with experts
 *
 * Between hosts each token goes to every GPU, and a sum comes back from each
 * (engine/cuda/nccl.c).
 */

#define DSA_HOSTS_H100      (3.35 / 4.8)    /* its memory's rate by that of an
                                               H200, as published */
#define DSA_HOSTS_LATENCY   20e-6           /* s, of an exchange: assumed */

/*
 * How many times their bound the GPUs take: what a node of eight H200 was
 * projected to take without its exchanges, from one that was measured, for 64
 * streams on a GPU at 8K, and for prompts of 4K (bench/results/
 * 2026-11-22-node-data.csv, 512 and 32,768 tokens).
 */

#define DSA_HOSTS_DECODE    1.51
#define DSA_HOSTS_PREFILL   1.71


typedef struct {
    uint32_t            tokens;         /* of a GPU */
    uint32_t            start;          /* decode: keys that each token sees */
    int                 prefill;
} dsa_hosts_work_t;


static const dsa_hosts_work_t  dsa_hosts_works[] = {
    { 1, 8192, 0 }, { 8, 8192, 0 }, { 32, 8192, 0 }, { 64, 4096, 0 },
    { 512, 0, 1 }, { 2048, 0, 1 }
};


static int dsa_hosts_row(const dsa_model_config_t *config,
    const dsa_node_hosts_t *hosts, const dsa_hosts_work_t *work,
    dsa_err_t *err);


int
dsa_node_hosts_table(const char *model, const dsa_node_hosts_t *hosts,
    dsa_err_t *err)
{
    size_t              i;
    dsa_model_config_t  config;

    if (dsa_model_config_read(&config, model, err) != DSA_OK
        || dsa_bench_routing_check(&config, hosts->n * hosts->gpus, err)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    (void) printf("%u hosts of %u H100, attention data, %.0f GB/s between "
                  "hosts for each GPU.  Bounds, not measured: HBM %.0f GB/s, "
                  "FP8 %.0f and BF16 %.0f TFLOPS, link within a host %.0f "
                  "GB/s, %.0f us for an exchange.\n\n"
                  "| step | tokens of a GPU | GPUs, ms | limit | network, ms "
                  "| within a host, ms | latency, ms | at least, ms "
                  "| projected, ms | tokens/s |\n"
                  "|---|---|---|---|---|---|---|---|---|---|\n", hosts->n,
                  hosts->gpus, hosts->network, DSA_BENCH_HBM * DSA_HOSTS_H100,
                  DSA_BENCH_FP8, DSA_BENCH_BF16, DSA_BENCH_LINK,
                  DSA_HOSTS_LATENCY * 1e6);

    for (i = 0; i < sizeof(dsa_hosts_works) / sizeof(dsa_hosts_works[0]); i++)
    {
        if (dsa_hosts_row(&config, hosts, &dsa_hosts_works[i], err) != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static int
dsa_hosts_row(const dsa_model_config_t *config, const dsa_node_hosts_t *hosts,
    const dsa_hosts_work_t *work, dsa_err_t *err)
{
    double             gpu, network, within, latency, exchange, projected;
    uint32_t           i, layers, all;
    const char        *limit;
    dsa_bound_t        bound = { 0, 0, 0, 0 };
    dsa_bound_step_t   step;

    for (i = 0, layers = 0; i < config->num_hidden_layers; i++) {
        layers += config->layer[i].moe;
    }

    all = hosts->n * hosts->gpus * work->tokens;

    step.ranks = hosts->n * hosts->gpus;
    step.attention = DSA_ATTENTION_DATA;
    step.tokens = work->tokens;
    step.sequences = work->tokens;
    step.start = work->start;
    step.prefill = work->prefill;
    step.record = dsa_cuda_record(0);

    if (dsa_bench_load(&step.load, config, all, step.ranks) != DSA_OK) {
        return dsa_error(err, "out of memory");
    }

    dsa_bound_layers(&bound, config, &step, 0, config->num_hidden_layers);
    dsa_bound_head(&bound, config, &step, work->prefill ? 1 : work->tokens);

    /* exchanges are in the columns of their own */

    bound.link = 0;
    bound.bytes /= DSA_HOSTS_H100;
    gpu = dsa_bound_seconds(&bound, &limit);

    exchange = layers * work->tokens * 1e-9
               * (double) (dsa_bench_token_bytes(config)
                           + dsa_bench_sum_bytes(config));
    network = exchange * hosts->gpus * (hosts->n - 1) / hosts->network;
    within = exchange * (hosts->gpus - 1) / DSA_BENCH_LINK;
    latency = 2 * layers * DSA_HOSTS_LATENCY;
    exchange = (network > within ? network : within) + latency;

    projected = gpu * (work->prefill ? DSA_HOSTS_PREFILL : DSA_HOSTS_DECODE)
                + exchange;

    (void) printf("| ");

    if (work->prefill) {
        (void) printf("prompt");

    } else {
        (void) printf("decode at %uK", work->start / 1024);
    }

    (void) printf(" | %u | %.2f | %s | %.2f | %.2f | %.2f | %.2f | %.2f "
                  "| %.0f |\n", work->tokens, gpu * 1e3, limit, network * 1e3,
                  within * 1e3, latency * 1e3, (gpu + exchange) * 1e3,
                  projected * 1e3, all / projected);

    return DSA_OK;
}
