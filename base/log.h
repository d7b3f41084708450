
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_LOG_H_INCLUDED_
#define _DSA_LOG_H_INCLUDED_


/*
 * One line on stderr with time, level and process.  A line is at most
 * DSA_LOG_LINE bytes, escaped as dsa_escape() does it, and a process
 * writes at most DSA_LOG_RATE lines a second below DSA_LOG_ERR: what was left
 * out is counted and told.
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


/* May be called by several threads. */
void dsa_log(dsa_log_level_e level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Debug lines are off unless dsa_log_debug_on is set before threads start. */
extern int  dsa_log_debug_on;

#define dsa_log_debug(...)                                                    \
    do {                                                                      \
        if (dsa_log_debug_on) {                                               \
            dsa_log(DSA_LOG_DEBUG, __VA_ARGS__);                              \
        }                                                                     \
    } while (0)


#endif /* _DSA_LOG_H_INCLUDED_ */
