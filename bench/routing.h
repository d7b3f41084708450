
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_ROUTING_H_INCLUDED_
#define _DSA_BENCH_ROUTING_H_INCLUDED_


#include <stdint.h>

#include "base/error.h"
#include "engine/checkpoint/config.h"


/*
 * Experts that the router would choose for random logits, within the groups
 * that the model keeps for a token.  A trained model prefers some experts, so
 * that its fullest GPU has more to compute: with zipf > 0 the n-th most popular
 * expert is drawn first with a probability in proportion to n^-zipf, as if
 * there were no groups.  A token has different experts, so the most popular
 * ones have less of all pairs than that.  Which experts are popular depends on
 * the seed, as it does on the layer in a model.
 */

#define DSA_BENCH_ZIPF      4           /* the largest exponent */


/* What one GPU of several has to compute in an MoE layer. */

typedef struct {
    uint32_t            rank;
    double              experts;        /* that have a token */
    double              pairs;          /* of a token and an expert */
    double              tokens;         /* with at least one expert there */
} dsa_bench_load_t;


/*
 * DSA_ERROR with err: the functions below have no room for the experts of the
 * model, or so many GPUs cannot have equal numbers of whole experts.
 */
int dsa_bench_routing_check(const dsa_model_config_t *config, uint32_t ranks,
    dsa_err_t *err);

/*
 * expert [tokens, k]: the experts chosen for random logits, which depend on
 * seed and zipf alone.  DSA_ERROR: no memory.
 */
int dsa_bench_routing(int32_t *expert, const dsa_model_config_t *config,
    uint32_t tokens, double zipf, uint64_t seed);

/* The exponent in a text, from 0 to DSA_BENCH_ZIPF.  DSA_ERROR: it is wrong. */
int dsa_bench_zipf(double *zipf, const char *text);

/* The experts of the same seed, the most popular one first; order [experts]. */
void dsa_bench_popular(uint32_t *order, uint32_t experts, uint64_t seed);

/*
 * Of ranks GPUs with equal numbers of whole experts, the one that has most
 * experts to read, and among equals most pairs.
 */
void dsa_bench_fullest(dsa_bench_load_t *load, const int32_t *expert,
    const dsa_model_config_t *config, uint32_t tokens, uint32_t ranks);

/*
 * The mean load of the fullest GPU over several samples of routing for so many
 * tokens.  DSA_ERROR: no memory.
 */
int dsa_bench_load(dsa_bench_load_t *load, const dsa_model_config_t *config,
    uint32_t tokens, uint32_t ranks);


#endif /* _DSA_BENCH_ROUTING_H_INCLUDED_ */
