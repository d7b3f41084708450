
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_WAKE_H_INCLUDED_
#define _DSA_WAKE_H_INCLUDED_


#include <errno.h>
#include <stdint.h>
#include <unistd.h>


/*
 * Wakes the reader of an eventfd.  EAGAIN is not an error: it means that the
 * counter is full, and the reader is awake then.
 */

static inline void
dsa_wake(int fd)
{
    ssize_t   n;
    uint64_t  one;

    one = 1;

    do {
        n = write(fd, &one, sizeof(one));
    } while (n == -1 && errno == EINTR);
}


#endif /* _DSA_WAKE_H_INCLUDED_ */
