
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_COPY_H_INCLUDED_
#define _DSA_COPY_H_INCLUDED_


#include "kernels/core/cuda.h"


/* Rows of 4-byte words; the pitch is the same on both sides. */

typedef struct {
    void           *to;
    const void     *from;
    uint32_t        pitch;      /* words */
    uint32_t        width;      /* words of a row that are copied, <= pitch */
    uint32_t        rows;
} dsa_copy_t;


#define DSA_COPY_PARTS      6


/*
 * CUDA.  Copies n parts, 1 .. DSA_COPY_PARTS, with the multiprocessors.  Each
 * side is memory of the GPU or pinned host memory, aligned to 4 bytes; a part
 * has at most 2^31 words.
 *
 * The inputs and results of a step are copied by this kernel and not by a copy
 * engine, because a copy engine first copies all queued pages between the GPU
 * and host memory: with 512 pages of 3 MB in its queue, a step took 25 to 30
 * ms longer on an H200.  There is no CPU twin, because the CPU reads the
 * arrays in place.
 */
int dsa_cuda_copy(const dsa_copy_t *part, uint32_t n, dsa_stream_t stream);


#endif /* _DSA_COPY_H_INCLUDED_ */
