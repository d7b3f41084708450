
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "bf16.h"
#include "simd.h"


DSA_CLONES void
dsa_bf16_round_rows(float *x, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        x[i] = dsa_bf16_round(x[i]);
    }
}


DSA_CLONES void
dsa_bf16_decode_rows(float *out, const void *in, size_t n)
{
    size_t          i;
    uint16_t        v;
    const uint8_t  *p = in;

    for (i = 0; i < n; i++) {
        memcpy(&v, p + i * sizeof(v), sizeof(v));
        out[i] = dsa_bf16_decode(v);
    }
}
