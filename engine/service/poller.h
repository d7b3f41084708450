
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_POLLER_H_INCLUDED_
#define _DSA_POLLER_H_INCLUDED_


#include <stdint.h>

#include "base/error.h"


/* The epoll instance of the I/O thread. */

typedef struct {
    int                 epoll;          /* -1: closed */
} dsa_poller_t;


/* The handler of a descriptor, owned by the caller. */

typedef struct {
    void              (*handler)(void *data);
    void               *data;
} dsa_source_t;


/* DSA_ERROR with err. */
int dsa_poller_open(dsa_poller_t *p, dsa_err_t *err);

/* Closes the epoll descriptor, if it is open. */
void dsa_poller_close(dsa_poller_t *p);

/*
 * Calls the source's handler when fd has one of the epoll events.  The source
 * must outlive the round in which fd is removed.  DSA_ERROR with errno.
 */
int dsa_poller_add(dsa_poller_t *p, int fd, uint32_t events,
    dsa_source_t *source);
void dsa_poller_remove(dsa_poller_t *p, int fd);

/*
 * Waits at most timeout_ms and calls handlers.  Handlers must not free a
 * source, because a later event of the same round may refer to it.  DSA_ERROR
 * with errno.
 */
int dsa_poller_wait(dsa_poller_t *p, int timeout_ms);


#endif /* _DSA_POLLER_H_INCLUDED_ */
