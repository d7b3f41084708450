
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>

#include "kernels/attention.h"
#include "kernels/bf16.h"
#include "kernels/gemm.h"


/*
 * Replaces the dot products in s [keys] by probabilities over the n > 0 rising
 * positions selected, and by 0 elsewhere.
 */

static void
dsa_attention_softmax(float *s, size_t keys, const int32_t *selected, size_t n,
    float scale, int bf16)
{
    float   max, sum, v;
    size_t  i, at;

    max = s[selected[0]];

    for (i = 1; i < n; i++) {
        max = s[selected[i]] > max ? s[selected[i]] : max;
    }

    sum = 0;
    at = 0;

    for (i = 0; i < n; i++) {
        v = expf((s[selected[i]] - max) * scale);
        sum += v;

        while (at < (size_t) selected[i]) {
            s[at++] = 0;
        }

        s[at++] = v;
    }

    while (at < keys) {
        s[at++] = 0;
    }

    for (i = 0; i < n; i++) {
        s[selected[i]] /= sum;
    }

    if (bf16) {
        dsa_bf16_round_rows(s, keys);
    }
}


/* The same if every key is selected. */

static void
dsa_attention_softmax_all(float *s, size_t keys, float scale, int bf16)
{
    float   max, sum;
    size_t  i;

    max = s[0];

    for (i = 1; i < keys; i++) {
        max = s[i] > max ? s[i] : max;
    }

    sum = 0;

    for (i = 0; i < keys; i++) {
        s[i] = expf((s[i] - max) * scale);
        sum += s[i];
    }

    for (i = 0; i < keys; i++) {
        s[i] /= sum;
    }

    if (bf16) {
        dsa_bf16_round_rows(s, keys);
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
        dsa_attention_softmax(scratch + t * keys, keys,
                              selected + t * ld_selected, n_selected[t],
                              a->scale, bf16);
    }

    dsa_gemm_nn(out, ld_out, scratch, keys, kv + a->nope, ld_kv, tokens, a->v,
                keys, 0);
}


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
        dsa_attention_softmax_all(scratch + h * keys, keys, a->scale, bf16);
    }

    dsa_gemm_nn(out, a->latent, scratch, keys, c, a->latent, a->heads,
                a->latent, keys, 0);
}
