
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "kernels/core/bf16.h"
#include "kernels/core/exp.h"
#include "kernels/gemm/gemm.h"
#include "attention.h"


/* The number of partial results, which the compiler keeps in registers. */
#define DSA_LANES  16


/* Replaces the dot products in s [n] by probabilities. */

DSA_CLONES static void
dsa_attention_softmax(float *s, size_t n, float scale, int bf16)
{
    float   max, sum, lane[DSA_LANES];
    size_t  i, j, whole;

    whole = n - n % DSA_LANES;

    for (j = 0; j < DSA_LANES; j++) {
        lane[j] = s[0];
    }

    for (i = 0; i < whole; i += DSA_LANES) {
        for (j = 0; j < DSA_LANES; j++) {
            lane[j] = s[i + j] > lane[j] ? s[i + j] : lane[j];
        }
    }

    max = s[0];

    for ( /* void */ ; i < n; i++) {
        max = s[i] > max ? s[i] : max;
    }

    for (j = 0; j < DSA_LANES; j++) {
        max = lane[j] > max ? lane[j] : max;
        lane[j] = 0;
    }

    for (i = 0; i < n; i++) {
        s[i] = dsa_exp((s[i] - max) * scale);
    }

    for (i = 0; i < whole; i += DSA_LANES) {
        for (j = 0; j < DSA_LANES; j++) {
            lane[j] += s[i + j];
        }
    }

    sum = 0;

    for ( /* void */ ; i < n; i++) {
        sum += s[i];
    }

    for (j = 0; j < DSA_LANES; j++) {
        sum += lane[j];
    }

    for (i = 0; i < n; i++) {
        s[i] /= sum;
    }

    if (bf16) {
        dsa_bf16_round_rows(s, n);
    }
}


/*
 * The same for the n rising positions that are selected of s [keys], with the
 * probability 0 for the others.
 */

static void
dsa_attention_softmax_some(float *s, size_t keys, const int32_t *selected,
    size_t n, float scale, int bf16)
{
    size_t  i, at;

    if (selected[n - 1] == (int32_t) n - 1) {
        dsa_attention_softmax(s, n, scale, bf16);
        memset(s + n, 0, (keys - n) * sizeof(float));
        return;
    }

    /* selected[i] is at least i, so they can be moved together in s itself */

    for (i = 0; i < n; i++) {
        s[i] = s[selected[i]];
    }

    dsa_attention_softmax(s, n, scale, bf16);

    at = keys;

    for (i = n; i != 0; i--) {
        while (at > (size_t) selected[i - 1] + 1) {
            s[--at] = 0;
        }

        s[--at] = s[i - 1];
    }

    while (at != 0) {
        s[--at] = 0;
    }
}


void
dsa_attention_mha(float *out, size_t ld_out, const float *q, size_t ld_q,
    const float *kv, const float *k_rope, size_t tokens, size_t keys,
    const int32_t *selected, size_t ld_selected, const uint32_t *n_selected,
    const dsa_attention_t *a, int bf16, float *scratch)
{
    size_t  t, ld_kv;

    ld_kv = a->nope + a->v;

    dsa_gemm_nt(scratch, keys, q, ld_q, kv, ld_kv, tokens, keys, a->nope, 0);
    dsa_gemm_nt(scratch, keys, q + a->nope, ld_q, k_rope, a->rope, tokens,
                keys, a->rope, 1);

    for (t = 0; t < tokens; t++) {
        dsa_attention_softmax_some(scratch + t * keys, keys,
                                   selected + t * ld_selected, n_selected[t],
                                   a->scale, bf16);
    }

    dsa_gemm_nn(out, ld_out, scratch, keys, kv + a->nope, ld_kv, tokens, a->v,
                keys, 0);
}


/*
 * The sums over the keys are chains, so that keys that are not selected, whose
 * p is 0, can be among them.
 */

void
dsa_attention_mqa(float *out, const float *q_latent, const float *q_rope,
    size_t ld_q, const float *c, const float *k_rope, size_t keys,
    const dsa_attention_t *a, int bf16, float *scratch)
{
    size_t  h;

    dsa_gemm_nt(scratch, keys, q_latent, a->latent, c, a->latent, a->heads,
                keys, a->latent, 0);
    dsa_gemm_nt(scratch, keys, q_rope, ld_q, k_rope, a->rope, a->heads, keys,
                a->rope, 1);

    for (h = 0; h < a->heads; h++) {
        dsa_attention_softmax(scratch + h * keys, keys, a->scale, bf16);
    }

    dsa_gemm_nn_chain(out, a->latent, scratch, keys, c, a->latent, a->heads,
                      a->latent, keys);
}


void
dsa_attention_mqa_all(float *out, const float *q_latent, const float *q_rope,
    size_t ld_q, const float *c, const float *k_rope, size_t tokens,
    size_t keys, const int32_t *selected, size_t ld_selected,
    const uint32_t *n_selected, const dsa_attention_t *a, int bf16,
    float *scratch)
{
    float  *s;
    size_t  t, h, rows;

    rows = tokens * a->heads;

    dsa_gemm_nt(scratch, keys, q_latent, a->latent, c, a->latent, rows, keys,
                a->latent, 0);
    dsa_gemm_nt(scratch, keys, q_rope, ld_q, k_rope, a->rope, rows, keys,
                a->rope, 1);

    s = scratch;

    for (t = 0; t < tokens; t++) {
        for (h = 0; h < a->heads; h++) {
            dsa_attention_softmax_some(s, keys, selected + t * ld_selected,
                                       n_selected[t], a->scale, bf16);
            s += keys;
        }
    }

    dsa_gemm_nn_chain(out, a->latent, scratch, keys, c, a->latent, rows,
                      a->latent, keys);
}
