
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_T_RANDN_H_INCLUDED_
#define _DSA_T_RANDN_H_INCLUDED_


#include <stdint.h>


/*
 * torch.randn() on a CPU, to the bit.
 *
 * PyTorch computes it so: 24 bits of the Mersenne Twister are a uniform number,
 * and 16 of those become 16 normal ones by Box and Muller, with logarithm, sine
 * and cosine by the polynomials of Cephes in float32.  The polynomials are here
 * as gcc compiles them with FMA, because each bit counts; a product that is not
 * fused in randn.c must not be.
 */


#define RANDN_WORDS     624


typedef struct {
    uint32_t  word[RANDN_WORDS];
    uint32_t  next;
} randn_t;


/* torch.manual_seed() */
void randn_seed(randn_t *r, uint32_t seed);

/*
 * torch.randn(n): n numbers that the caller frees; n is even if it is below 16.
 * Aborts without memory.
 */
float *randn(randn_t *r, uint32_t n);


#endif /* _DSA_T_RANDN_H_INCLUDED_ */
