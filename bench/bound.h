
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_BOUND_H_INCLUDED_
#define _DSA_BENCH_BOUND_H_INCLUDED_


#include "bench/routing.h"
#include "engine/checkpoint/config.h"
#include "engine/checkpoint/shard.h"


/*
 * Lower bounds of the time of a step on the fullest of several GPUs.  Weights
 * and cache entries are read once, products are computed once at the ceiling of
 * their type, and what other GPUs have computed is received once.  All three
 * could happen at the same time, so that the bound is the longest of them.
 * Activations, launches and latencies count nothing.
 */

/* The ceilings that were measured on the H200, and between two of them. */

#define DSA_BENCH_HBM       4384.0      /* GB/s, reading */
#define DSA_BENCH_FP8       1453.0      /* TFLOPS, a square product */
#define DSA_BENCH_BF16      790.0
#define DSA_BENCH_LINK      349.0       /* GB/s, stores to the other GPU */


/* What a GPU has to do at least.  Parts of a step are added. */

typedef struct {
    double              bytes;          /* read from its memory */
    double              fp8;            /* operations */
    double              bf16;
    double              link;           /* bytes received from other GPUs */
} dsa_bound_t;


typedef struct {
    uint32_t            ranks;
    dsa_attention_e     attention;
    double              tokens;         /* whose attention the GPU computes */
    double              sequences;      /* decode: of these tokens; a sequence's
                                           cache entries are read once */
    double              start;          /* prefill: position of the first;
                                           decode: keys that each token sees */
    int                 prefill;
    double              record;         /* bytes of a token's latent */
    dsa_bench_load_t    load;           /* of its experts; "tensor": as with
                                           one rank */
} dsa_bound_step_t;


/*
 * Adds the layers first .. end-1, of which those behind the model's are like
 * its last one, or embedding and head with samples tokens.
 */
void dsa_bound_layers(dsa_bound_t *b, const dsa_model_config_t *config,
    const dsa_bound_step_t *step, uint32_t first, uint32_t end);
void dsa_bound_head(dsa_bound_t *b, const dsa_model_config_t *config,
    const dsa_bound_step_t *step, double samples);

/*
 * Adds a step of the draft layer, with the product before it and the head, for
 * each sequence of a decode step: step->tokens is their number.
 */
void dsa_bound_draft(dsa_bound_t *b, const dsa_model_config_t *config,
    const dsa_bound_step_t *step);

/* Seconds, and what takes them: "HBM", "products" or "link". */
double dsa_bound_seconds(const dsa_bound_t *b, const char **limit);


#endif /* _DSA_BENCH_BOUND_H_INCLUDED_ */
