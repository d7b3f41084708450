
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HADAMARD_H_INCLUDED_
#define _DSA_HADAMARD_H_INCLUDED_


#include <stddef.h>


/*
 * x [n, dim] float32, in place: H x / sqrt(dim), H the Walsh-Hadamard matrix
 * in Sylvester's order, H[i][j] = (-1)^popcount(i & j).  dim is a power of
 * two.  Orthonormal: dot products of two transformed vectors are those of the
 * vectors; it spreads outliers before FP8.
 */
void dsa_hadamard(float *x, size_t n, size_t dim, int bf16);


#endif /* _DSA_HADAMARD_H_INCLUDED_ */
