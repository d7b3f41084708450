
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_EMBED_H_INCLUDED_
#define _DSA_EMBED_H_INCLUDED_


#include "kernels/core/cuda.h"


/*
 * CUDA.  x [rows, cols] bf16 = table [vocab, cols] bf16 at token [rows].  The
 * table has ids first .. first+vocab-1; other ids give zeros, so the results
 * of tables with parts of a vocabulary can be added.  cols is a multiple of 8.
 * There is no CPU twin: the CPU reads its table in place (engine/cpu/model.c).
 */
int dsa_cuda_embed(dsa_bf16_t *x, const dsa_bf16_t *table,
    const int32_t *token, uint32_t rows, uint32_t cols, uint32_t first,
    uint32_t vocab, dsa_stream_t stream);

/*
 * CUDA.  y [n, cols] bf16 = the rows row[i] of x [., cols]; zeros if row[i] is
 * below 0.
 */
int dsa_cuda_gather_rows(dsa_bf16_t *y, const dsa_bf16_t *x,
    const int32_t *row, uint32_t n, uint32_t cols, dsa_stream_t stream);


#endif /* _DSA_EMBED_H_INCLUDED_ */
