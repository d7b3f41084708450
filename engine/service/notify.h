
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_NOTIFY_H_INCLUDED_
#define _DSA_NOTIFY_H_INCLUDED_


#include <stdint.h>


/*
 * The protocol of sd_notify(3): datagrams with "NAME=value" lines to the
 * service manager, which passes the socket's address in NOTIFY_SOCKET and the
 * period of its watchdog in WATCHDOG_USEC.  Without these variables nothing is
 * sent.  libsystemd is not used, because it would load the libraries of its
 * journal reader (four for compression, one for encryption) for one sendto().
 * sd_notify(3) recommends an own implementation in this case.
 */

typedef struct {
    int                 fd;             /* -1: there is no service manager */
    uint64_t            period_ms;      /* between two watchdog notifications;
                                           0: none are expected */
    uint64_t            next_ms;        /* CLOCK_MONOTONIC, of the next one;
                                           UINT64_MAX: none */
} dsa_notify_t;


/*
 * Reads the environment.  An invalid address or period is logged and ignored.
 */
void dsa_notify_open(dsa_notify_t *n);
void dsa_notify_close(dsa_notify_t *n);

/* Sends lines that are separated by newlines.  A failure is ignored. */
void dsa_notify_send(const dsa_notify_t *n, const char *lines);

/* Sends a watchdog notification if one is due. */
void dsa_notify_alive(dsa_notify_t *n, uint64_t now_ms);


#endif /* _DSA_NOTIFY_H_INCLUDED_ */
