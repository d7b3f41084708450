
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CLOCK_H_INCLUDED_
#define _DSA_CLOCK_H_INCLUDED_


#include <stdint.h>
#include <time.h>


/* Milliseconds of CLOCK_MONOTONIC, which all deadlines refer to. */

static inline uint64_t
dsa_clock_ms(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


/* Microseconds of the same clock. */

static inline uint64_t
dsa_clock_us(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}


#endif /* _DSA_CLOCK_H_INCLUDED_ */
