
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <stddef.h>

#include "engine/service/sampling.h"


#define DSA_MAX_PENALTY   2


static int dsa_sampling_numbers(const dsa_sampling_t *s, dsa_err_t *err);
static int dsa_sampling_reserved(const dsa_sampling_t *s, dsa_err_t *err);


int
dsa_sampling_check(const dsa_sampling_t *s, dsa_err_t *err)
{
    if (s->version != DSA_SAMPLING_VERSION) {
        return dsa_error(err, "sampling has version %u; expected %d",
                         s->version, DSA_SAMPLING_VERSION);
    }

    if (s->logprobs > 1) {
        return dsa_error(err, "logprobs is %u; expected 0 or 1", s->logprobs);
    }

    if (s->top_logprobs > DSA_SAMPLE_MAX_TOP) {
        return dsa_error(err, "top_logprobs is %u; expected 0 to %d",
                         s->top_logprobs, DSA_SAMPLE_MAX_TOP);
    }

    return dsa_sampling_numbers(s, err) == DSA_OK
           ? dsa_sampling_reserved(s, err) : DSA_ERROR;
}


/* All of the conditions are false for NaN. */

static int
dsa_sampling_numbers(const dsa_sampling_t *s, dsa_err_t *err)
{
    if (!(s->temperature >= 0 && isfinite(s->temperature))) {
        return dsa_error(err, "temperature is %g; expected 0 or more",
                         (double) s->temperature);
    }

    if (!(s->top_p > 0 && s->top_p <= 1)) {
        return dsa_error(err, "top_p is %g; expected more than 0 and at "
                         "most 1", (double) s->top_p);
    }

    if (!(fabsf(s->frequency_penalty) <= DSA_MAX_PENALTY)) {
        return dsa_error(err, "frequency_penalty is %g; expected -%d to %d",
                         (double) s->frequency_penalty, DSA_MAX_PENALTY,
                         DSA_MAX_PENALTY);
    }

    if (!(fabsf(s->presence_penalty) <= DSA_MAX_PENALTY)) {
        return dsa_error(err, "presence_penalty is %g; expected -%d to %d",
                         (double) s->presence_penalty, DSA_MAX_PENALTY,
                         DSA_MAX_PENALTY);
    }

    return DSA_OK;
}


static int
dsa_sampling_reserved(const dsa_sampling_t *s, dsa_err_t *err)
{
    size_t  i;

    for (i = 0; i < sizeof(s->reserved) / sizeof(s->reserved[0]); i++) {
        if (s->reserved[i] != 0) {
            return dsa_error(err, "reserved word %zu of sampling is 0x%x; "
                             "expected 0", i, s->reserved[i]);
        }
    }

    return DSA_OK;
}
