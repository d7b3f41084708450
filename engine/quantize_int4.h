
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_QUANTIZE_INT4_H_INCLUDED_
#define _DSA_QUANTIZE_INT4_H_INCLUDED_


#include "base/threads.h"
#include "engine/checkpoint/tensor.h"


/* What rounding has changed, for people. */

typedef struct {
    double      error;          /* sum of squares of the differences */
    double      weights;        /* and of the weights */
} dsa_quantize_loss_t;


/*
 * Quantizes a matrix t, which is e4m3 with scales and whose columns are a
 * multiple of 128, to INT4 (kernels/core/int4.h): q [rows, cols / 2], scale
 * [rows, cols / 128] BF16, both memory of the caller.  Adds to loss.  The
 * result does not depend on the number of threads.  DSA_ERROR: a weight is not
 * a finite number; q and scale are undefined then.
 */
int dsa_quantize_int4(dsa_threads_t *pool, uint8_t *q, uint16_t *scale,
    const dsa_tensor_t *t, dsa_quantize_loss_t *loss);


#endif /* _DSA_QUANTIZE_INT4_H_INCLUDED_ */
