
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CUDA_SIZES_H_INCLUDED_
#define _DSA_CUDA_SIZES_H_INCLUDED_


#include <stdint.h>


/*
 * The sizes of decode steps for which a GPU has CUDA graphs: numbers of tokens
 * and bounds of contexts.  A step uses the next larger ones, and is padded.
 */

/*
 * The most numbers of tokens: enough for 8,192, so that no step is padded by
 * more than a quarter.
 */
#define DSA_CUDA_SIZES      64
#define DSA_CUDA_BOUNDS     4           /* the most bounds of contexts */


typedef struct {
    uint32_t            size[DSA_CUDA_SIZES];       /* tokens, ascending */
    uint32_t            sizes;
    uint32_t            bound[DSA_CUDA_BOUNDS];     /* keys, ascending */
    uint32_t            bounds;
    uint32_t            grouped[DSA_CUDA_BOUNDS];
                                        /* 1: steps with several tokens of a
                                           sequence have graphs of their own:
                                           those that compute index scores,
                                           which are faster in groups then, and
                                           slower if each token is a group; and
                                           those of dense models, which read
                                           the keys of a sequence once */
} dsa_cuda_sizes_t;


/*
 * Sets the sizes for steps of up to tokens tokens and contexts of up to context
 * keys, of which topk are selected; both are at least 1.  drafts: 1 if steps
 * may have several tokens of a sequence.  dense: 1 without an indexer.
 */
void dsa_cuda_sizes(dsa_cuda_sizes_t *s, uint32_t tokens, uint32_t topk,
    uint32_t context, uint32_t drafts, uint32_t dense);

/* Returns the number of graphs. */
uint32_t dsa_cuda_sizes_graphs(const dsa_cuda_sizes_t *s);


#endif /* _DSA_CUDA_SIZES_H_INCLUDED_ */
