
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Samples of a small vocabulary, for the tests of kernels/sample/.
 */


#ifndef _T_SAMPLER_H_INCLUDED_
#define _T_SAMPLER_H_INCLUDED_


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/backend.h"
#include "kernels/sample/sample.h"
#include "t/unit/numbers.h"


#define VOCAB   1000


static float  scratch[VOCAB];


static inline dsa_sampling_t
sampling(float temperature, float top_p)
{
    dsa_sampling_t  s;

    memset(&s, 0, sizeof(s));
    s.temperature = temperature;
    s.top_p = top_p;

    return s;
}


static inline uint32_t
sample(const dsa_sampling_t *s, const float *logits, uint32_t n,
    uint64_t position)
{
    dsa_sample_t  out;

    dsa_sample(&out, s, NULL, logits, n, n, NULL, NULL, 0, position, scratch);

    return out.token;
}


#endif /* _T_SAMPLER_H_INCLUDED_ */
