
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HOSTS_WIRE_H_INCLUDED_
#define _DSA_HOSTS_WIRE_H_INCLUDED_


#include <stdint.h>
#include <sys/uio.h>

#include "base/error.h"


/*
 * Messages on a TCP connection between the leader and a follower.  A message is
 * a head and as many bytes as the head has.  Numbers are little-endian, as on
 * all machines that the project supports.
 *
 *     leader                             follower
 *
 *     HELLO   version, nonce      -->
 *                                 <--    HELLO   version, nonce
 *     PROOF   HMAC                -->
 *                                 <--    PROOF   HMAC
 *     PLAN    what to open        -->
 *                                 <--    READY   fingerprint, pages
 *     STEP    entries of a step   -->
 *     COPY    pages between ranks -->
 *     MOVE    pages of a rank     -->
 *             to or from host
 *             memory
 *                                 <--    MOVED   one MOVE has ended
 *     TIER    a page of a tier    -->
 *             behind host memory
 *                                 <--    TIERED  one TIER has ended
 *     DATA    exchange of ranks  <-->    DATA
 *                                 <--    RESULT  samples of a step
 *     BYE                         -->
 *
 * A follower sends MOVED and TIERED between any other messages.  One that
 * cannot go on sends FAULT with a text, in place of any other message, and
 * closes the connection.
 */

#define DSA_HOSTS_NAME      320         /* bytes of a name, with NUL */
#define DSA_HOSTS_PARTS     16          /* of a message, behind its head */
#define DSA_HOSTS_TEXT      480         /* most bytes of the text of a FAULT */


typedef enum {
    DSA_HOSTS_HELLO = 1,
    DSA_HOSTS_PROOFS,
    DSA_HOSTS_PLAN,
    DSA_HOSTS_READY,
    DSA_HOSTS_STEP,
    DSA_HOSTS_COPY,
    DSA_HOSTS_MOVE,
    DSA_HOSTS_MOVED,
    DSA_HOSTS_TIER,
    DSA_HOSTS_TIERED,
    DSA_HOSTS_DATA,
    DSA_HOSTS_RESULT,
    DSA_HOSTS_BYE,
    DSA_HOSTS_FAULT,
    DSA_HOSTS_TYPES
} dsa_hosts_type_e;


typedef struct {
    uint32_t            type;           /* dsa_hosts_type_e */
    uint32_t            number;         /* of the step, or of the exchange;
                                           otherwise 0 */
    uint64_t            bytes;          /* that follow */
} dsa_hosts_head_t;


/*
 * A connection.  One thread uses it.  All calls below end with an error when
 * deadline_ms has passed, when the peer has closed the connection, and when it
 * has sent FAULT or another message than the expected one.  The error begins
 * with the name.
 */

typedef struct dsa_hosts_wire_s  dsa_hosts_wire_t;

struct dsa_hosts_wire_s {
    int                 fd;             /* non-blocking; -1: none */
    uint64_t            deadline_ms;    /* dsa_clock_ms(); UINT64_MAX: none */
    uint64_t            limit_ms;       /* for the error, how long that was */
    char                name[DSA_HOSTS_NAME];   /* of the peer */

    /*
     * Reads what follows the head of a MOVED or TIERED that comes before the
     * expected message.  NULL: these are not expected, either.
     */
    int               (*aside)(void *data, dsa_hosts_wire_t *w,
                               const dsa_hosts_head_t *head, dsa_err_t *err);
    void               *aside_data;
};


/*
 * Sets the options of a new socket: small messages are sent at once, and a peer
 * whose machine does not answer counts as gone after some seconds.
 */
void dsa_hosts_wire_options(int fd);

/* Sets the deadline to limit_ms from now on; 0: none. */
void dsa_hosts_wire_limit(dsa_hosts_wire_t *w, uint64_t limit_ms);

/* Sends a head and the n parts behind it, at most DSA_HOSTS_PARTS. */
int dsa_hosts_wire_send(dsa_hosts_wire_t *w, dsa_hosts_type_e type,
    uint32_t number, const struct iovec *part, int n, dsa_err_t *err);

/*
 * Receives a head of this type and number, with least to most bytes behind it,
 * which the caller reads next.
 */
int dsa_hosts_wire_expect(dsa_hosts_wire_t *w, dsa_hosts_type_e type,
    uint32_t number, uint64_t least, uint64_t most, dsa_hosts_head_t *head,
    dsa_err_t *err);

/* Returns 1 if aside() reads what follows this head. */
int dsa_hosts_wire_is_aside(const dsa_hosts_wire_t *w,
    const dsa_hosts_head_t *head);

/*
 * Returns 1 if a whole head has arrived, which the next call receives, or the
 * connection has ended, and then it is that of a FAULT.
 */
int dsa_hosts_wire_peek(const dsa_hosts_wire_t *w, dsa_hosts_head_t *head);

/* Receives a head of any type; FAULT is an error with its text. */
int dsa_hosts_wire_head(dsa_hosts_wire_t *w, dsa_hosts_head_t *head,
    dsa_err_t *err);

int dsa_hosts_wire_read(dsa_hosts_wire_t *w, void *data, size_t bytes,
    dsa_err_t *err);

/* Returns 1 if there is something to read, or the connection is closed. */
int dsa_hosts_wire_readable(const dsa_hosts_wire_t *w);

/*
 * Sends FAULT with a text, and gives the peer a second to read it, because the
 * kernel drops what was sent when a socket with unread data is closed.
 */
void dsa_hosts_wire_fault(dsa_hosts_wire_t *w, const char *text);

void dsa_hosts_wire_close(dsa_hosts_wire_t *w);

/* Returns the name of a type in errors. */
const char *dsa_hosts_type(uint32_t type);


#endif /* _DSA_HOSTS_WIRE_H_INCLUDED_ */
