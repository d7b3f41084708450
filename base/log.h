
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
    DSA_LOG_INFO
} dsa_log_level_e;


void dsa_log(dsa_log_level_e level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));


#endif /* _DSA_LOG_H_INCLUDED_ */
