
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/routing.h"
#include "kernels/moe/moe.h"


#define DSA_ROUTING_SAMPLES     16
#define DSA_ROUTING_TOKENS      8192    /* enough of all samples together */


/* splitmix64: a good number even for neighboring seeds. */

static uint64_t
dsa_routing_random(uint64_t *state)
{
    uint64_t  z;

    *state += 0x9e3779b97f4a7c15ULL;
    z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;

    return z ^ (z >> 31);
}


int
dsa_bench_zipf(double *zipf, const char *text)
{
    char  *end;

    *zipf = strtod(text, &end);

    return end != text && *end == '\0' && *zipf >= 0
           && *zipf <= DSA_BENCH_ZIPF ? DSA_OK : DSA_ERROR;
}


void
dsa_bench_popular(uint32_t *order, uint32_t experts, uint64_t seed)
{
    uint32_t  i, j, e;
    uint64_t  state;

    state = ~seed;

    for (i = 0; i < experts; i++) {
        order[i] = i;
    }

    for (i = experts; i > 1; i--) {
        j = (uint32_t) (dsa_routing_random(&state) % i);
        e = order[i - 1];
        order[i - 1] = order[j];
        order[j] = e;
    }
}


/*
 * A logit from -1 to 1; or one whose order is that of draws without replacement
 * by popularity, as the Gumbel-max rule has it.  The factor keeps sigmoid() of
 * it from being rounded to 1.
 */

static float
dsa_routing_logit(double popularity, double zipf, uint64_t *state)
{
    double    u;
    uint64_t  bits;

    bits = dsa_routing_random(state) >> 40;

    if (zipf == 0) {
        return (float) bits * 0x1p-23f - 1;
    }

    u = ((double) bits + 0.5) * 0x1p-24;

    return (float) (0.25 * (popularity - log(-log(u))));
}


int
dsa_bench_routing_check(const dsa_model_config_t *s, uint32_t ranks,
    dsa_err_t *err)
{
    if (s->n_routed_experts > DSA_CUDA_EXPERTS
        || s->num_experts_per_tok > DSA_CUDA_CHOICES)
    {
        return dsa_error(err, "the model has %u experts, %u of a token; "
                         "expected at most %d and %d", s->n_routed_experts,
                         s->num_experts_per_tok, DSA_CUDA_EXPERTS,
                         DSA_CUDA_CHOICES);
    }

    if (s->n_routed_experts % ranks != 0) {
        return dsa_error(err, "%u experts cannot be shared out equally to %u "
                         "GPUs", s->n_routed_experts, ranks);
    }

    return DSA_OK;
}


int
dsa_bench_routing(int32_t *expert, const dsa_model_config_t *s,
    uint32_t tokens, double zipf, uint64_t seed)
{
    float        *logits, *bias, *scratch, weight[DSA_CUDA_CHOICES];
    double        popularity[DSA_CUDA_EXPERTS];
    uint32_t      i, e, order[DSA_CUDA_EXPERTS];
    uint64_t      state;
    dsa_router_t  router;

    router.experts = s->n_routed_experts;
    router.groups = s->n_group;
    router.groups_kept = s->topk_group;
    router.k = s->num_experts_per_tok;
    router.normalize = s->norm_topk_prob;
    router.scale = s->routed_scaling_factor;

    logits = calloc(4 * (size_t) router.experts + router.groups,
                    sizeof(float));

    if (logits == NULL) {
        return DSA_ERROR;
    }

    bias = logits + router.experts;
    scratch = bias + router.experts;
    state = seed << 32;
    dsa_bench_popular(order, router.experts, seed);

    for (e = 0; e < router.experts; e++) {
        popularity[order[e]] = -zipf * log(e + 1);
    }

    for (i = 0; i < tokens; i++) {
        for (e = 0; e < router.experts; e++) {
            logits[e] = dsa_routing_logit(popularity[e], zipf, &state);
        }

        dsa_route(expert + (uint64_t) i * router.k, weight, logits, bias, 1,
                  &router, scratch);
    }

    free(logits);

    return DSA_OK;
}


static void
dsa_routing_count(dsa_bench_load_t *load, const int32_t *expert,
    const dsa_model_config_t *s, uint32_t tokens, uint32_t rank,
    uint32_t ranks)
{
    uint32_t  i, j, e, k, n, here;
    uint8_t   used[DSA_CUDA_EXPERTS];

    memset(load, 0, sizeof(dsa_bench_load_t));
    memset(used, 0, sizeof(used));

    k = s->num_experts_per_tok;
    n = s->n_routed_experts / ranks;
    load->rank = rank;

    for (i = 0; i < tokens; i++) {
        here = 0;

        for (j = 0; j < k; j++) {
            e = (uint32_t) expert[(uint64_t) i * k + j];

            if (e / n == rank) {
                load->experts += used[e] == 0;
                used[e] = 1;
                here++;
            }
        }

        load->pairs += here;
        load->tokens += here != 0;
    }
}


void
dsa_bench_fullest(dsa_bench_load_t *load, const int32_t *expert,
    const dsa_model_config_t *s, uint32_t tokens, uint32_t ranks)
{
    uint32_t          r;
    dsa_bench_load_t  now;

    for (r = 0; r < ranks; r++) {
        dsa_routing_count(&now, expert, s, tokens, r, ranks);

        if (r == 0 || now.experts > load->experts
            || (now.experts == load->experts && now.pairs > load->pairs))
        {
            *load = now;
        }
    }
}


int
dsa_bench_load(dsa_bench_load_t *load, const dsa_model_config_t *s,
    uint32_t tokens, uint32_t ranks)
{
    int32_t          *expert;
    uint32_t          i, n;
    dsa_bench_load_t  now;

    memset(load, 0, sizeof(dsa_bench_load_t));

    expert = malloc((uint64_t) tokens * s->num_experts_per_tok
                    * sizeof(int32_t));

    if (expert == NULL) {
        return DSA_ERROR;
    }

    n = DSA_ROUTING_TOKENS / tokens;
    n = n < 1 ? 1 : n;
    n = n > DSA_ROUTING_SAMPLES ? DSA_ROUTING_SAMPLES : n;

    for (i = 0; i < n; i++) {
        if (dsa_bench_routing(expert, s, tokens, 0, i) != DSA_OK) {
            free(expert);
            return DSA_ERROR;
        }

        dsa_bench_fullest(&now, expert, s, tokens, ranks);

        load->experts += now.experts / n;
        load->pairs += now.pairs / n;
        load->tokens += now.tokens / n;
    }

    free(expert);

    return DSA_OK;
}
