
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOOLS_CHECK_H_INCLUDED_
#define _DSA_TOOLS_CHECK_H_INCLUDED_


#include "base/buf.h"
#include "tools/statements.h"


/*
 * The parts of dsa check.  Each prints a line for what it has checked, of one
 * of three kinds, and goes on.
 */

#define DSA_CHECK_ENGINES   64
#define DSA_CHECK_OUTPUT    (8 * 1024 * 1024)   /* bytes of a program's */
#define DSA_CHECK_MISSING   127                 /* no exit status of nginx */
#define DSA_CHECK_KILLED    128                 /* or of dsa-engine */


typedef struct {
    const char         *file;           /* engine.conf */
    dsa_statements_t    conf;           /* none if it was not read */
} dsa_check_engine_t;


typedef struct {
    const char         *nginx;          /* nginx.conf; NULL: that of nginx */
    uint64_t            rate;           /* requests/s; 0: not given */
    dsa_check_engine_t  engine[DSA_CHECK_ENGINES];
    uint32_t            n_engines;
    dsa_arena_t        *arena;
    dsa_statements_t    conf;           /* of nginx */
    uint32_t            failed;         /* lines of each kind */
    uint32_t            warned;
} dsa_check_t;


typedef enum {
    DSA_CHECK_OK = 0,
    DSA_CHECK_WARN,                     /* works, and should be changed */
    DSA_CHECK_FAIL
} dsa_check_e;


/*
 * Prints a line; what: the part that was checked.  Control characters become
 * \xNN.
 */
void dsa_check_line(dsa_check_t *c, dsa_check_e kind, const char *what,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/*
 * Runs a program, which is in PATH or in /usr/sbin, and waits for its end.
 * Appends what it has written to stdout and to stderr, at most
 * DSA_CHECK_OUTPUT bytes each.  Returns its exit status, DSA_CHECK_MISSING if
 * it is not there, DSA_CHECK_KILLED if a signal ended it, which is then in the
 * last line of errors, or -1 with err.
 */
int dsa_check_run(char *const argv[], dsa_buf_t *out, dsa_buf_t *errors,
    dsa_err_t *err);

/* The last line of a text, without the newline. */
dsa_str_t dsa_check_last(const dsa_buf_t *text);

/* nginx.conf: whether nginx accepts it; sets c->conf. */
void dsa_check_nginx(dsa_check_t *c);

/* Each engine.conf: whether dsa-engine accepts it; sets their conf. */
void dsa_check_engines(dsa_check_t *c);

/* The sockets of nginx's pools and of the engines. */
void dsa_check_sockets(dsa_check_t *c);

/* What engines of one host must not share: sockets, GPUs, memory. */
void dsa_check_shared(dsa_check_t *c);

/* The queue file of dsa_redis and its disk. */
void dsa_check_queue(dsa_check_t *c);

/* The servers of dsa_redis and redis_cache, and the clock. */
void dsa_check_redis(dsa_check_t *c);

/*
 * A size as nginx and engine.conf write it: a number, and k, m, g or none.
 * DSA_ERROR: it is not one.
 */
int dsa_check_size(uint64_t *size, const char *text);


#endif /* _DSA_TOOLS_CHECK_H_INCLUDED_ */
