
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "engine/schedule/pace.h"


/* weights of the newest step in the moving averages */

#define DSA_PACE_BASE       0.25
#define DSA_PACE_PREFILL    0.5
#define DSA_PACE_TOKEN      0.25

#define DSA_PACE_GROWTH     4.0         /* times the measured chunk */


uint32_t
dsa_pace_limit(const dsa_pace_t *p, uint32_t decodes, uint32_t budget)
{
    double  room, most, limit;

    if (p->target == 0 || decodes == 0) {
        return budget;
    }

    limit = DSA_PACE_GROWTH * p->chunk;

    if (p->extra > 0) {
        room = p->target - p->base;
        room = room > p->base / 4 ? room : p->base / 4;
        most = room * p->chunk / p->extra;
        limit = most < limit ? most : limit;
    }

    limit = limit > DSA_PACE_LEAST ? limit : DSA_PACE_LEAST;

    return limit < (double) budget ? (uint32_t) limit : budget;
}


static double
dsa_pace_average(double average, double value, double weight)
{
    return average + weight * (value - average);
}


void
dsa_pace_measure(dsa_pace_t *p, uint64_t duration_us, uint32_t decodes,
    uint32_t prefill)
{
    double  duration, token;

    duration = (double) duration_us;

    if (prefill != 0) {
        token = decodes != 0 && p->base < duration ? duration - p->base
                                                   : duration;
        token /= prefill;
        p->token = p->token != 0
                   ? dsa_pace_average(p->token, token, DSA_PACE_TOKEN)
                   : token;
    }

    if (decodes == 0) {
        return;
    }

    if (prefill == 0) {
        p->base = p->base != 0
                  ? dsa_pace_average(p->base, duration, DSA_PACE_BASE)
                  : duration;
        return;
    }

    if (p->base > duration) {
        p->base = duration;
    }

    if (p->chunk == 0) {
        p->chunk = prefill;
        p->extra = duration - p->base;
        return;
    }

    p->chunk = dsa_pace_average(p->chunk, prefill, DSA_PACE_PREFILL);
    p->extra = dsa_pace_average(p->extra, duration - p->base,
                                DSA_PACE_PREFILL);
}
