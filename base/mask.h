
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MASK_H_INCLUDED_
#define _DSA_MASK_H_INCLUDED_


#include <stdint.h>


/* A mask over a vocabulary: bit id % 32 of word id / 32 belongs to id. */


/* Returns the 32-bit words of a mask. */

static inline uint32_t
dsa_mask_words(uint32_t vocab)
{
    return (vocab + 31) / 32;
}


/* Returns 1 if the bit of id is set. */

static inline int
dsa_mask_has(const uint32_t *mask, uint32_t id)
{
    return (mask[id / 32] >> (id % 32) & 1) != 0;
}


#endif /* _DSA_MASK_H_INCLUDED_ */
