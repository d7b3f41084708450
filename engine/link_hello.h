
/*
 * Copyright (C) The nginx-dsa authors
 *
 * How a session begins: the worker's offer and the replica's hello, the only
 * messages on the socket.
 */


#ifndef _DSA_LINK_HELLO_H_INCLUDED_
#define _DSA_LINK_HELLO_H_INCLUDED_


#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine/link_version.h"


#define DSA_LINK_MAGIC          0x6b6e696c2d617364ULL    /* "dsa-link" */
#define DSA_LINK_MAX_SLOTS      (1U << 20)

#define DSA_LINK_FDS    3       /* memfd, replica's eventfd, worker's eventfd */


/* The worker's first and only message.  A later version may append to it. */

typedef struct {
    uint64_t    magic;
    uint32_t    version_min;
    uint32_t    version_max;
} dsa_link_offer_t;


/* The replica's answer.  A later version may append to it. */

typedef struct {
    uint64_t    magic;
    uint32_t    version;            /* in use from now on; 0: none in common */
    uint32_t    version_min;        /* of the replica */
    uint32_t    version_max;
    uint32_t    slots;              /* requests a session may have at once */
    uint64_t    segment_size;       /* bytes of the memfd */
    uint64_t    submit_size;        /* bytes of a ring, power of two */
    uint64_t    event_size;
    uint32_t    context_length;     /* tokens, prompt and answer together */
    uint32_t    page_tokens;        /* prefixes are reused in this unit */
    uint32_t    pid;
    uint32_t    replica;            /* number within its supervisor */
    float       temperature;        /* [0, 2]: defaults of the model, if a */
    float       top_p;              /* (0, 1]   request does not set them */
    uint32_t    epoch;              /* random for each start of the replica:
                                       a container may give the same pid to
                                       every start */
    uint32_t    ids;                /* of the model: ids of tokens are below */
    char        model[64];          /* 1 to 63 bytes of UTF-8 without control
                                       characters, NUL-terminated */
    char        fingerprint[40];    /* hex, NUL-terminated */
    char        family[16];         /* how prompts are written for the model and
                                       its output is read: a name of the table
                                       in context/family.c, NUL-terminated */
} dsa_link_hello_t;


/* The worker's first message.  0, or -1 with errno. */

static inline int
dsa_link_send_offer(int fd)
{
    dsa_link_offer_t  offer;

    offer.magic = DSA_LINK_MAGIC;
    offer.version_min = DSA_LINK_VERSION_MIN;
    offer.version_max = DSA_LINK_VERSION_MAX;

    return send(fd, &offer, sizeof(offer), MSG_NOSIGNAL|MSG_DONTWAIT)
           == (ssize_t) sizeof(offer)
           ? 0 : -1;
}


/*
 * The replica's side.  1: an offer was received; 0: nothing yet; -1: errno,
 * EPROTO for a message that is not an offer.
 */

static inline int
dsa_link_recv_offer(int fd, dsa_link_offer_t *offer)
{
    ssize_t  n;

    n = recv(fd, offer, sizeof(dsa_link_offer_t), MSG_DONTWAIT);

    if (n == -1) {
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    }

    if (n == 0) {
        errno = ECONNRESET;
        return -1;
    }

    if (n != (ssize_t) sizeof(dsa_link_offer_t)
        || offer->magic != DSA_LINK_MAGIC)
    {
        errno = EPROTO;
        return -1;
    }

    return 1;
}


/* A message of size bytes, with descriptors unless fds is NULL. */

static inline int
dsa_link_send_fds(int fd, const void *data, size_t size, const int *fds)
{
    ssize_t          n;
    struct iovec     iov;
    struct msghdr    msg;
    struct cmsghdr  *cmsg;

    union {
        char             space[CMSG_SPACE(sizeof(int) * DSA_LINK_FDS)];
        struct cmsghdr   align;
    } control;

    memset(&msg, 0, sizeof(msg));
    memset(&control, 0, sizeof(control));

    iov.iov_base = (void *) data;
    iov.iov_len = size;

    msg.msg_iov = &iov;
    msg.msg_iovlen = 1;

    if (fds != NULL) {
        msg.msg_control = control.space;
        msg.msg_controllen = sizeof(control.space);

        cmsg = CMSG_FIRSTHDR(&msg);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(sizeof(int) * DSA_LINK_FDS);
        memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * DSA_LINK_FDS);
    }

    n = sendmsg(fd, &msg, MSG_NOSIGNAL|MSG_DONTWAIT);

    return n == (ssize_t) size ? 0 : -1;
}


/*
 * The replica's answer to an offer.  fds is NULL if there is no common
 * version.  0, or -1 with errno.
 */

static inline int
dsa_link_send_hello(int fd, const dsa_link_hello_t *hello, const int *fds)
{
    return dsa_link_send_fds(fd, hello, sizeof(dsa_link_hello_t), fds);
}


/*
 * The worker's side.  1: the hello is there.  If it has a version, so are the
 * descriptors, close-on-exec, and the caller closes them; otherwise they are
 * -1.  0: nothing yet; -1: errno, EPROTO for a message that is not a hello.
 */

static inline int
dsa_link_recv_hello(int fd, dsa_link_hello_t *hello, int fds[DSA_LINK_FDS])
{
    int              i, n_fds, extra;
    size_t           size;
    ssize_t          n;
    struct iovec     iov;
    struct msghdr    msg;
    struct cmsghdr  *cmsg;

    union {
        char             space[CMSG_SPACE(sizeof(int) * DSA_LINK_FDS)];
        struct cmsghdr   align;
    } control;

    memset(&msg, 0, sizeof(msg));
    memset(hello, 0, sizeof(dsa_link_hello_t));

    iov.iov_base = hello;
    iov.iov_len = sizeof(dsa_link_hello_t);

    msg.msg_iov = &iov;
    msg.msg_iovlen = 1;
    msg.msg_control = control.space;
    msg.msg_controllen = sizeof(control.space);

    n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC|MSG_DONTWAIT);

    if (n == -1) {
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    }

    if (n == 0) {
        errno = ECONNRESET;
        return -1;
    }

    for (i = 0; i < DSA_LINK_FDS; i++) {
        fds[i] = -1;
    }

    /* control.space has padding that holds one descriptor more than wanted */

    n_fds = 0;
    cmsg = CMSG_FIRSTHDR(&msg);

    if (cmsg != NULL && cmsg->cmsg_level == SOL_SOCKET
        && cmsg->cmsg_type == SCM_RIGHTS)
    {
        size = cmsg->cmsg_len - CMSG_LEN(0);

        for ( /* void */ ; size >= sizeof(int); size -= sizeof(int)) {
            memcpy(&extra, CMSG_DATA(cmsg) + sizeof(int) * (size_t) n_fds,
                   sizeof(int));

            if (n_fds < DSA_LINK_FDS) {
                fds[n_fds] = extra;

            } else {
                (void) close(extra);
            }

            n_fds++;
        }
    }

    hello->model[sizeof(hello->model) - 1] = '\0';
    hello->fingerprint[sizeof(hello->fingerprint) - 1] = '\0';
    hello->family[sizeof(hello->family) - 1] = '\0';

    /* a replica of a later version may send more */

    if (n == (ssize_t) sizeof(dsa_link_hello_t)
        && hello->magic == DSA_LINK_MAGIC
        && n_fds == (hello->version != 0 ? DSA_LINK_FDS : 0))
    {
        return 1;
    }

    for (i = 0; i < DSA_LINK_FDS; i++) {
        if (fds[i] != -1) {
            (void) close(fds[i]);
            fds[i] = -1;
        }
    }

    errno = EPROTO;

    return -1;
}


#endif /* _DSA_LINK_HELLO_H_INCLUDED_ */
