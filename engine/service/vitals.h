
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_VITALS_H_INCLUDED_
#define _DSA_VITALS_H_INCLUDED_


#include <stdatomic.h>
#include <stdint.h>


/*
 * The vital signs of a replica, in memory that it shares with the supervisor.
 * The supervisor maps it before it starts the replica, and zeroes it before
 * each start.  Times are milliseconds of CLOCK_MONOTONIC.
 */

typedef struct {
    _Atomic uint64_t    alive_ms;           /* by the I/O thread, at least
                                               every 100 ms once the replica
                                               is ready; 0: not ready yet */
    _Atomic uint64_t    step_started_ms;    /* by the step thread, at the start
                                               of each step; 0: no step runs */
} dsa_vitals_t;


#endif /* _DSA_VITALS_H_INCLUDED_ */
