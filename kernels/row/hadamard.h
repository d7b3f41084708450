
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HADAMARD_H_INCLUDED_
#define _DSA_HADAMARD_H_INCLUDED_


#include <stddef.h>


/*
 * Replaces each x of x [n, dim] float32 by H x / sqrt(dim); H is the
 * Walsh-Hadamard matrix in Sylvester's order, H[i][j] = (-1)^popcount(i & j),
 * and dim a power of two.  The transform is orthonormal: the dot product of two
 * transformed vectors is that of the vectors.  It spreads outliers over all
 * elements before they are rounded to FP8.
 */
void dsa_hadamard(float *x, size_t n, size_t dim, int bf16);


#endif /* _DSA_HADAMARD_H_INCLUDED_ */
