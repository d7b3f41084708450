
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TENSOR_H_INCLUDED_
#define _DSA_TENSOR_H_INCLUDED_


#include <stdint.h>


typedef enum {
    DSA_F32 = 0,
    DSA_BF16,
    DSA_E4M3,
    DSA_INT4                    /* routed experts only */
} dsa_dtype_e;


/* A matrix or vector of weights, where it is mapped. */

typedef struct {
    dsa_dtype_e     dtype;
    uint32_t        rows;       /* out features; 1 for a vector */
    uint32_t        cols;       /* in features */
    const void     *data;       /* [rows, cols] row-major, aligned to its
                                   elements; NULL when the layer has none.
                                   INT4: [rows, cols / 2] bytes, see
                                   kernels/core/int4.h */
    const float    *scale;      /* e4m3: a factor for each block,
                                   [ceil(rows/128), ceil(cols/128)]; INT4
                                   whose factors are float32: those, which are
                                   rounded when they are used, see
                                   kernels/core/int4.h; else NULL */
    const uint16_t *groups;     /* INT4: a BF16 factor for each group of 128
                                   columns, [rows, cols/128]; else, or if they
                                   are in scale, NULL */
    float           input;      /* INT4: the scale of the activations that it
                                   multiplies; 0: they have scales of their
                                   own */
    uint32_t        made;       /* 1: data and scale are in memory, of
                                   dsa_weights_quantize(), and not mapped */
} dsa_tensor_t;


#endif /* _DSA_TENSOR_H_INCLUDED_ */
