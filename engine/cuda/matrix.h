
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CUDA_MATRIX_H_INCLUDED_
#define _DSA_CUDA_MATRIX_H_INCLUDED_


#include "kernels/core/cuda.h"


/* A matrix in the format of the checkpoint. */

typedef struct {
    uint32_t            rows;               /* output features */
    uint32_t            cols;               /* input features */
    dsa_fp8_weight_t    fp8;                /* q is NULL if it is BF16 */
    dsa_bf16_weight_t   bf16;               /* w is NULL if it is FP8 */
} dsa_cuda_matrix_t;


#endif /* _DSA_CUDA_MATRIX_H_INCLUDED_ */
