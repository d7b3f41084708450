
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CUDA_MATRIX_H_INCLUDED_
#define _DSA_CUDA_MATRIX_H_INCLUDED_


#include "kernels/core/cuda.h"
#include "kernels/core/int4.h"


/* A matrix in the format of the checkpoint. */

typedef struct {
    uint32_t            rows;               /* output features */
    uint32_t            cols;               /* input features */
    dsa_fp8_weight_t    fp8;                /* q is NULL if it is not FP8 */
    dsa_bf16_weight_t   bf16;               /* w is NULL if it is not BF16 */
    dsa_int4_weight_t   int4;               /* q is NULL if it is not INT4 */
} dsa_cuda_matrix_t;


/* Returns 1 if the matrix multiplies e4m3 rows, and 0 if BF16 rows. */

static inline int
dsa_cuda_matrix_e4m3(const dsa_cuda_matrix_t *w)
{
    return w->fp8.q != NULL || w->int4.q != NULL;
}


#endif /* _DSA_CUDA_MATRIX_H_INCLUDED_ */
