
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_LOG_H_INCLUDED_
#define _DSA_LOG_H_INCLUDED_


#include <stdatomic.h>


/*
 * One line on stderr with time, level and process id.  A line is at most
 * DSA_LOG_LINE bytes, escaped by dsa_escape().  A process writes at most
 * DSA_LOG_RATE lines a second of the levels warn to info; the next line
 * reports how many were left out.  Errors are always written, and debug lines
 * are when the level is debug.  All functions may be called from any thread.
 */

#define DSA_LOG_LINE    1024
#define DSA_LOG_RATE    100


typedef enum {
    DSA_LOG_ERR = 0,
    DSA_LOG_WARN,
    DSA_LOG_NOTICE,
    DSA_LOG_INFO,
    DSA_LOG_DEBUG
} dsa_log_level_e;


/* The highest level that is written; set it with dsa_log_level(). */
extern _Atomic int  dsa_log_limit;


/* Writes lines up to this level from now on; DSA_LOG_INFO at the start. */
void dsa_log_level(dsa_log_level_e level);

void dsa_log(dsa_log_level_e level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));


/* Its arguments are not evaluated unless the level is debug. */

#define dsa_log_debug(...)                                                    \
    do {                                                                      \
        if (atomic_load_explicit(&dsa_log_limit, memory_order_relaxed)        \
            >= DSA_LOG_DEBUG)                                                 \
        {                                                                     \
            dsa_log(DSA_LOG_DEBUG, __VA_ARGS__);                              \
        }                                                                     \
    } while (0)


#endif /* _DSA_LOG_H_INCLUDED_ */
