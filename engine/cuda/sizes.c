
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "engine/cuda/sizes.h"


static void dsa_sizes_tokens(dsa_cuda_sizes_t *s, uint32_t most);
static void dsa_sizes_bounds(dsa_cuda_sizes_t *s, uint32_t least,
    uint32_t most);


void
dsa_cuda_sizes(dsa_cuda_sizes_t *s, uint32_t tokens, uint32_t topk,
    uint32_t context, uint32_t drafts, uint32_t dense)
{
    uint32_t  i;

    memset(s, 0, sizeof(dsa_cuda_sizes_t));

    dsa_sizes_tokens(s, tokens);
    dsa_sizes_bounds(s, topk, context);

    for (i = 0; i < s->bounds; i++) {
        s->grouped[i] = drafts && (dense || s->bound[i] > topk);
    }
}


/*
 * Sets the numbers of tokens: all up to 16, then multiples of a power of two
 * that is an eighth to a quarter of them, so that powers of two, which batches
 * often have, are not padded; the last one is most.
 */

static void
dsa_sizes_tokens(dsa_cuda_sizes_t *s, uint32_t most)
{
    uint32_t  n, step;

    step = 1;

    for (n = 1; s->sizes < DSA_CUDA_SIZES; n += step, n -= n % step) {
        if (n > most || s->sizes == DSA_CUDA_SIZES - 1) {
            n = most;
        }

        s->size[s->sizes++] = n;

        if (n == most) {
            break;
        }

        for (step = 1; step < n / 8; step *= 2) {
            /* void */
        }
    }
}


/*
 * Sets the bounds of contexts: first topk, then four times the previous one,
 * up to most.
 */

static void
dsa_sizes_bounds(dsa_cuda_sizes_t *s, uint32_t least, uint32_t most)
{
    uint32_t  bound;

    for (bound = least; s->bounds < DSA_CUDA_BOUNDS; bound *= 4) {
        if (bound >= most || s->bounds == DSA_CUDA_BOUNDS - 1) {
            bound = most;
        }

        s->bound[s->bounds++] = bound;

        if (bound == most) {
            break;
        }
    }
}


uint32_t
dsa_cuda_sizes_graphs(const dsa_cuda_sizes_t *s)
{
    uint32_t  i, n;

    for (i = 0, n = 0; i < s->bounds; i++) {
        n += s->sizes * (1 + s->grouped[i]);
    }

    return n;
}
