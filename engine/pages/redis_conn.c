
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/pages/redis_conn.h"
#include "redis_schema/resp.h"


#define DSA_CONN_EXISTS     "*2\r\n$6\r\nEXISTS\r\n$72\r\n"
#define DSA_CONN_GET        "*2\r\n$3\r\nGET\r\n$72\r\n"
#define DSA_CONN_SET        "*5\r\n$3\r\nSET\r\n$72\r\n"

_Static_assert(DSA_KV_KEY == 72, "commands contain the length of a key");

/*
 * limits for the reply to CLUSTER SLOTS, in which every cluster slot may be a
 * range of its own
 */

#define DSA_CONN_MAP        (8 * 1024 * 1024)
#define DSA_CONN_ELEMENTS   (32 * DSA_CLUSTER_SLOTS)


#define DSA_CONN_REPLY_ELEMENTS  (1U << 26)     /* of a reply of any kind */


static int dsa_conn_fail(dsa_redis_conn_t *c);
static int dsa_conn_refused(const dsa_redis_conn_t *c, const char *cause,
    dsa_err_t *err);
static int dsa_conn_handshake(dsa_redis_conn_t *c, const char *host,
    dsa_err_t *err);
static int dsa_conn_wait(dsa_redis_conn_t *c, short events, dsa_err_t *err);
static int dsa_conn_send(dsa_redis_conn_t *c, struct iovec *iov, int n,
    dsa_err_t *err);
static ssize_t dsa_conn_write(dsa_redis_conn_t *c, const struct msghdr *msg,
    short *events, dsa_err_t *err);
static ssize_t dsa_conn_read(dsa_redis_conn_t *c, const struct iovec *iov,
    int n, short *events, dsa_err_t *err);
static int dsa_conn_receive(dsa_redis_conn_t *c, struct iovec *iov, int n,
    size_t *size, dsa_err_t *err);
static int dsa_conn_reply(dsa_redis_conn_t *c, size_t want,
    dsa_redis_reply_t *r, dsa_err_t *err);
static int dsa_conn_body(dsa_redis_conn_t *c, uint8_t *header, uint8_t *page,
    uint64_t bytes, dsa_err_t *err);
static int dsa_conn_end(dsa_redis_conn_t *c, dsa_err_t *err);
static int dsa_conn_auth(dsa_redis_conn_t *c, const char *user,
    const char *password, dsa_err_t *err);
static int dsa_conn_array(dsa_redis_conn_t *c, dsa_resp_t *resp,
    redisReply **reply, dsa_err_t *err);


void
dsa_redis_conn_begin(dsa_redis_conn_t *c, uint64_t bytes)
{
    c->last_ms = dsa_clock_ms();
    c->deadline_ms = c->last_ms + c->timeout_ms + bytes / DSA_REDIS_SLOWEST;
}


int
dsa_redis_conn_open(dsa_redis_conn_t *c, const dsa_redis_address_t *a,
    const char *user, const char *password, dsa_err_t *err)
{
    int                 error;
    size_t              len;
    dsa_err_t           waited;
    socklen_t           size;
    const char         *ping;
    redisContext       *redis;
    dsa_redis_reply_t   r;

    assert(c->fd == -1);

    redis = a->port != 0 ? redisConnectNonBlock(a->host, a->port)
                         : redisConnectUnixNonBlock(a->host);

    if (redis == NULL || redis->err != 0) {
        (void) dsa_conn_refused(c, redis != NULL ? redis->errstr
                                   : strerror(ENOMEM), err);
        redisFree(redis);
        return DSA_ERROR;
    }

    c->fd = redisFreeKeepFd(redis);
    c->pos = 0;
    c->len = 0;

    (void) fcntl(c->fd, F_SETFD, FD_CLOEXEC);

    if (dsa_conn_wait(c, POLLOUT, &waited) != DSA_OK) {
        return dsa_conn_refused(c, waited.text, err);
    }

    error = 0;
    size = sizeof(error);

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size) == -1) {
        error = errno;
    }

    if (error != 0) {
        (void) dsa_conn_refused(c, strerror(error), err);
        return dsa_conn_fail(c);
    }

    if (c->tls != NULL && dsa_conn_handshake(c, a->host, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (dsa_conn_auth(c, user, password, err) != DSA_OK) {
        return DSA_ERROR;
    }

    ping = "PING";
    len = 4;

    if (dsa_redis_conn_command(c, 1, &ping, &len, &r, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (r.type != DSA_REPLY_STATUS) {
        (void) dsa_error(err, "the reply to PING is %s",
                         r.type == DSA_REPLY_ERROR ? r.text : "not a status");
        return dsa_conn_fail(c);
    }

    return DSA_OK;
}


/*
 * A sandbox forbids connections with errors that look like those of a network,
 * or lets them time out, as IPAddressDeny= of systemd does.
 */

static int
dsa_conn_refused(const dsa_redis_conn_t *c, const char *cause, dsa_err_t *err)
{
    size_t       i;
    const char  *hint;

    static const int  forbidden[] = { EAFNOSUPPORT, EACCES, EPERM, ENETUNREACH,
                                      EHOSTUNREACH };

    hint = "";

    if (c->hint != NULL && strstr(cause, "timed out") != NULL) {
        hint = c->hint;
    }

    for (i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
        if (c->hint != NULL && strstr(cause, strerror(forbidden[i])) != NULL) {
            hint = c->hint;
        }
    }

    return dsa_error(err, "cannot connect: %s%s", cause, hint);
}


static int
dsa_conn_handshake(dsa_redis_conn_t *c, const char *host, dsa_err_t *err)
{
    int        rc;
    short      events;
    dsa_err_t  waited;

    c->ssl = dsa_redis_ssl_create(c->tls, c->fd, host, err);

    if (c->ssl == NULL) {
        return dsa_conn_fail(c);
    }

    for ( ;; ) {
        rc = dsa_redis_ssl_handshake(c->tls, c->ssl, host, &events, err);

        if (rc == DSA_OK) {
            return DSA_OK;
        }

        if (rc == DSA_ERROR) {
            return dsa_conn_fail(c);
        }

        /* a port without TLS may wait for the rest of a line */

        if (dsa_conn_wait(c, events, &waited) != DSA_OK) {
            return dsa_error(err, DSA_REDIS_TLS_FAILED ": %s", waited.text);
        }
    }
}


static int
dsa_conn_auth(dsa_redis_conn_t *c, const char *user, const char *password,
    dsa_err_t *err)
{
    int                 argc;
    size_t              len[3];
    const char         *argv[3];
    dsa_redis_reply_t   r;

    if (password == NULL) {
        return DSA_OK;
    }

    argc = 0;
    argv[argc++] = "AUTH";

    if (user != NULL) {
        argv[argc++] = user;
    }

    argv[argc++] = password;

    len[0] = strlen(argv[0]);
    len[1] = strlen(argv[1]);
    len[2] = argc == 3 ? strlen(argv[2]) : 0;

    if (dsa_redis_conn_command(c, argc, argv, len, &r, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (r.type != DSA_REPLY_STATUS) {
        (void) dsa_error(err, "the reply to AUTH is %s",
                         r.type == DSA_REPLY_ERROR ? r.text : "not a status");
        return dsa_conn_fail(c);
    }

    return DSA_OK;
}


void
dsa_redis_conn_close(dsa_redis_conn_t *c)
{
    dsa_redis_ssl_destroy(c->ssl);
    c->ssl = NULL;

    if (c->fd != -1) {
        (void) close(c->fd);
        c->fd = -1;
    }
}


int
dsa_redis_conn_idle(const dsa_redis_conn_t *c)
{
    struct pollfd  p;

    p.fd = c->fd;
    p.events = POLLIN;

    if (c->fd == -1 || c->pos != c->len) {
        return 0;
    }

    return poll(&p, 1, 0) == 0
           || (c->ssl != NULL && dsa_redis_ssl_idle(c->ssl));
}


redisReply *
dsa_redis_conn_call(dsa_redis_conn_t *c, int argc, const char **argv,
    const size_t *argvlen, dsa_err_t *err)
{
    int            n, rc;
    char          *text;
    dsa_resp_t    *resp;
    redisReply    *reply;
    struct iovec   iov;

    n = redisFormatCommandArgv(&text, argc, argv, argvlen);
    resp = dsa_resp_create(DSA_REDIS_REPLY, DSA_CONN_REPLY_ELEMENTS);
    reply = NULL;

    if (n < 0 || resp == NULL) {
        (void) dsa_error(err, "%s", strerror(ENOMEM));
        rc = dsa_conn_fail(c);

    } else {
        iov.iov_base = text;
        iov.iov_len = (size_t) n;

        rc = dsa_conn_send(c, &iov, 1, err);
    }

    if (n >= 0) {
        redisFreeCommand(text);
    }

    if (rc == DSA_OK && dsa_conn_array(c, resp, &reply, err) != DSA_OK) {
        (void) dsa_conn_fail(c);
    }

    dsa_resp_destroy(resp);

    return reply;
}


int
dsa_redis_conn_command(dsa_redis_conn_t *c, int argc, const char **argv,
    const size_t *argvlen, dsa_redis_reply_t *r, dsa_err_t *err)
{
    int            n, rc;
    char          *text;
    struct iovec   iov;

    n = redisFormatCommandArgv(&text, argc, argv, argvlen);

    if (n < 0) {
        (void) dsa_error(err, "%s", strerror(ENOMEM));
        return dsa_conn_fail(c);
    }

    iov.iov_base = text;
    iov.iov_len = (size_t) n;

    rc = dsa_conn_send(c, &iov, 1, err);
    redisFreeCommand(text);

    if (rc != DSA_OK
        || dsa_conn_reply(c, DSA_REDIS_INPUT, r, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (r->type == DSA_REPLY_STRING) {
        (void) dsa_error(err, "protocol error: the reply to %s is a string",
                         argv[0]);
        return dsa_conn_fail(c);
    }

    return dsa_conn_end(c, err);
}


int
dsa_redis_conn_exists(dsa_redis_conn_t *c, const dsa_digest_t **digest,
    uint32_t n, uint32_t *found, dsa_redis_reply_t *r, dsa_err_t *err)
{
    char               *p;
    uint32_t            i;
    struct iovec        iov;
    dsa_redis_reply_t   reply;
    char                out[DSA_REDIS_CHUNK * (sizeof(DSA_CONN_EXISTS) - 1
                                               + DSA_KV_KEY + 2) + 1];

    assert(n >= 1 && n <= DSA_REDIS_CHUNK);

    p = out;

    for (i = 0; i < n; i++) {
        memcpy(p, DSA_CONN_EXISTS, sizeof(DSA_CONN_EXISTS) - 1);
        p += sizeof(DSA_CONN_EXISTS) - 1;
        dsa_kv_key(p, digest[i]->byte);
        p += DSA_KV_KEY;
        memcpy(p, "\r\n", 2);
        p += 2;
    }

    iov.iov_base = out;
    iov.iov_len = (size_t) (p - out);

    if (dsa_conn_send(c, &iov, 1, err) != DSA_OK) {
        return DSA_ERROR;
    }

    *found = 0;

    for (i = 0; i < n; i++) {
        if (dsa_conn_reply(c, DSA_REDIS_INPUT, &reply, err) != DSA_OK) {
            return DSA_ERROR;
        }

        if (reply.type != DSA_REPLY_INTEGER && reply.type != DSA_REPLY_ERROR) {
            (void) dsa_error(err, "protocol error: the reply to EXISTS is "
                             "neither an integer nor an error");
            return dsa_conn_fail(c);
        }

        if (*found != i) {
            continue;
        }

        if (reply.type == DSA_REPLY_INTEGER && reply.number == 1) {
            (*found)++;

        } else {
            *r = reply;
        }
    }

    return dsa_conn_end(c, err);
}


int
dsa_redis_conn_get(dsa_redis_conn_t *c, const char *key, uint8_t *header,
    uint8_t *page, uint64_t bytes, dsa_redis_reply_t *r, dsa_err_t *err)
{
    int           n;
    char          line[32];
    struct iovec  iov[3];

    iov[0].iov_base = DSA_CONN_GET;
    iov[0].iov_len = sizeof(DSA_CONN_GET) - 1;
    iov[1].iov_base = (void *) key;
    iov[1].iov_len = DSA_KV_KEY;
    iov[2].iov_base = "\r\n";
    iov[2].iov_len = 2;

    /*
     * At first only the line in front of a page is read, so that the page
     * itself is received directly into its memory.
     */

    n = snprintf(line, sizeof(line), "$%llu\r\n",
                 (unsigned long long) (DSA_KV_HEADER + bytes));

    if (dsa_conn_send(c, iov, 3, err) != DSA_OK
        || dsa_conn_reply(c, (size_t) n, r, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (r->type != DSA_REPLY_STRING || r->number == -1) {
        return dsa_conn_end(c, err);
    }

    if ((uint64_t) r->number != DSA_KV_HEADER + bytes) {
        (void) dsa_conn_fail(c);
        return DSA_OK;
    }

    return dsa_conn_body(c, header, page, bytes, err);
}


static int
dsa_conn_body(dsa_redis_conn_t *c, uint8_t *header, uint8_t *page,
    uint64_t bytes, dsa_err_t *err)
{
    char          end[2];
    size_t        size;
    uint64_t      left;
    struct iovec  iov[3], *p;

    /* only the line was read, so the buffer is empty */

    assert(c->pos == c->len);

    iov[0].iov_base = header;
    iov[0].iov_len = DSA_KV_HEADER;
    iov[1].iov_base = page;
    iov[1].iov_len = bytes;
    iov[2].iov_base = end;
    iov[2].iov_len = sizeof(end);

    p = iov;
    left = DSA_KV_HEADER + bytes + sizeof(end);

    while (left != 0) {
        if (dsa_conn_receive(c, p, (int) (iov + 3 - p), &size, err) != DSA_OK)
        {
            return DSA_ERROR;
        }

        left -= size;

        while (size != 0 && size >= p->iov_len) {
            size -= p->iov_len;
            p++;
        }

        if (size != 0) {
            p->iov_base = (char *) p->iov_base + size;
            p->iov_len -= size;
        }
    }

    if (end[0] != '\r' || end[1] != '\n') {
        (void) dsa_error(err, "protocol error: a string does not end with CR "
                         "and LF");
        return dsa_conn_fail(c);
    }

    return DSA_OK;
}


int
dsa_redis_conn_set(dsa_redis_conn_t *c, const char *key,
    const uint8_t *header, const uint8_t *page, uint64_t bytes, uint64_t ttl_s,
    dsa_redis_reply_t *r, dsa_err_t *err)
{
    int           n;
    char          length[32], ttl[64], seconds[32];
    struct iovec  iov[6];

    iov[0].iov_base = DSA_CONN_SET;
    iov[0].iov_len = sizeof(DSA_CONN_SET) - 1;
    iov[1].iov_base = (void *) key;
    iov[1].iov_len = DSA_KV_KEY;

    n = snprintf(length, sizeof(length), "\r\n$%llu\r\n",
                 (unsigned long long) (DSA_KV_HEADER + bytes));
    iov[2].iov_base = length;
    iov[2].iov_len = (size_t) n;

    iov[3].iov_base = (void *) header;
    iov[3].iov_len = DSA_KV_HEADER;
    iov[4].iov_base = (void *) page;
    iov[4].iov_len = bytes;

    n = snprintf(seconds, sizeof(seconds), "%llu", (unsigned long long) ttl_s);
    n = snprintf(ttl, sizeof(ttl), "\r\n$2\r\nEX\r\n$%d\r\n%s\r\n", n, seconds);
    iov[5].iov_base = ttl;
    iov[5].iov_len = (size_t) n;

    if (dsa_conn_send(c, iov, 6, err) != DSA_OK
        || dsa_conn_reply(c, DSA_REDIS_INPUT, r, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (r->type != DSA_REPLY_STATUS && r->type != DSA_REPLY_ERROR) {
        (void) dsa_error(err, "protocol error: the reply to SET is neither a "
                         "status nor an error");
        return dsa_conn_fail(c);
    }

    return dsa_conn_end(c, err);
}


int
dsa_redis_conn_map(dsa_redis_conn_t *c, const dsa_redis_address_t *from,
    dsa_cluster_map_t *map, int *is_cluster, dsa_err_t *err)
{
    int            rc;
    dsa_resp_t    *resp;
    redisReply    *reply;
    struct iovec   iov;

    static const char  command[] = "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n";

    *is_cluster = 0;

    iov.iov_base = (void *) command;
    iov.iov_len = sizeof(command) - 1;

    if (dsa_conn_send(c, &iov, 1, err) != DSA_OK) {
        return DSA_ERROR;
    }

    resp = dsa_resp_create(DSA_CONN_MAP, DSA_CONN_ELEMENTS);

    if (resp == NULL) {
        (void) dsa_error(err, "%s", strerror(ENOMEM));
        return dsa_conn_fail(c);
    }

    rc = dsa_conn_array(c, resp, &reply, err);

    if (rc == DSA_OK && reply->type != REDIS_REPLY_ERROR) {
        *is_cluster = 1;
        rc = dsa_cluster_map(map, reply, from, err);
    }

    if (reply != NULL) {
        freeReplyObject(reply);
    }

    dsa_resp_destroy(resp);

    return rc == DSA_OK ? DSA_OK : dsa_conn_fail(c);
}


/* Reads one reply of any kind; *reply is NULL unless the result is DSA_OK. */

static int
dsa_conn_array(dsa_redis_conn_t *c, dsa_resp_t *resp, redisReply **reply,
    dsa_err_t *err)
{
    int           rc;
    size_t        size;
    redisReply   *more;
    struct iovec  iov;

    *reply = NULL;

    do {
        iov.iov_base = c->in;
        iov.iov_len = sizeof(c->in);

        if (dsa_conn_receive(c, &iov, 1, &size, err) != DSA_OK
            || dsa_resp_feed(resp, c->in, size, err) != DSA_OK)
        {
            return DSA_ERROR;
        }

        rc = dsa_resp_next(resp, reply, err);

    } while (rc == DSA_AGAIN);

    if (rc != DSA_OK) {
        *reply = NULL;
        return DSA_ERROR;
    }

    more = NULL;

    if (dsa_resp_next(resp, &more, err) != DSA_AGAIN) {
        if (more != NULL) {
            freeReplyObject(more);
        }

        freeReplyObject(*reply);
        *reply = NULL;

        return dsa_error(err, "protocol error: Redis sent more than a reply");
    }

    return DSA_OK;
}


/* Closes the connection.  The caller has set err. */

static int
dsa_conn_fail(dsa_redis_conn_t *c)
{
    dsa_redis_conn_close(c);

    return DSA_ERROR;
}


/*
 * Waits until the socket is readable or writable.  timeout_ms is counted from
 * the last byte; the deadline is that of the whole operation.
 */

static int
dsa_conn_wait(dsa_redis_conn_t *c, short events, dsa_err_t *err)
{
    int            n;
    uint64_t       now, until;
    struct pollfd  p[3];

    for ( ;; ) {
        now = dsa_clock_ms();
        until = c->last_ms + c->timeout_ms;

        if (now >= until) {
            (void) dsa_error(err, "timed out: not a byte in %llu ms",
                             (unsigned long long) c->timeout_ms);
            break;
        }

        until = until < c->deadline_ms ? until : c->deadline_ms;

        if (now >= until) {
            (void) dsa_error(err, "timed out: less than %d MB/s",
                             DSA_REDIS_SLOWEST / 1000);
            break;
        }

        p[0].fd = c->fd;
        p[0].events = events;
        p[1].fd = c->off_fd;
        p[1].events = POLLIN;
        p[2].fd = c->stop_fd;
        p[2].events = POLLIN;

        n = poll(p, 3, (int) (until - now));

        if (n == -1 && errno != EINTR) {
            (void) dsa_error(err, "poll() failed: %s", strerror(errno));
            break;
        }

        if (n > 0 && (p[1].revents != 0 || p[2].revents != 0)) {
            (void) dsa_error(err, "interrupted");
            break;
        }

        if (n > 0) {
            return DSA_OK;
        }
    }

    return dsa_conn_fail(c);
}


/* Sends everything; changes iov. */

static int
dsa_conn_send(dsa_redis_conn_t *c, struct iovec *iov, int n, dsa_err_t *err)
{
    short          events;
    ssize_t        size;
    struct msghdr  msg;

    memset(&msg, 0, sizeof(msg));
    msg.msg_iov = iov;
    msg.msg_iovlen = (size_t) n;

    while (msg.msg_iovlen != 0) {
        size = dsa_conn_write(c, &msg, &events, err);

        if (size == -1) {
            return dsa_conn_fail(c);
        }

        if (size == 0) {
            if (dsa_conn_wait(c, events, err) != DSA_OK) {
                return DSA_ERROR;
            }

            continue;
        }

        c->last_ms = dsa_clock_ms();

        while (msg.msg_iovlen != 0 && (size_t) size >= msg.msg_iov->iov_len) {
            size -= (ssize_t) msg.msg_iov->iov_len;
            msg.msg_iov++;
            msg.msg_iovlen--;
        }

        if (msg.msg_iovlen != 0) {
            msg.msg_iov->iov_base = (char *) msg.msg_iov->iov_base + size;
            msg.msg_iov->iov_len -= (size_t) size;
        }
    }

    return DSA_OK;
}


/*
 * Returns the bytes that were sent; 0: the socket must be ready for *events
 * first; -1 with err.  No iov is empty.
 */

static ssize_t
dsa_conn_write(dsa_redis_conn_t *c, const struct msghdr *msg, short *events,
    dsa_err_t *err)
{
    int      rc;
    size_t   n;
    ssize_t  size;

    if (c->ssl != NULL) {
        rc = dsa_redis_ssl_write(c->ssl, msg->msg_iov->iov_base,
                                 msg->msg_iov->iov_len, &n, events, err);

        return rc == DSA_OK ? (ssize_t) n : rc == DSA_AGAIN ? 0 : -1;
    }

    do {
        size = sendmsg(c->fd, msg, MSG_NOSIGNAL);
    } while (size == -1 && errno == EINTR);

    if (size == -1 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        *events = POLLOUT;
        return 0;
    }

    if (size == -1) {
        (void) dsa_error(err, "cannot send: %s", strerror(errno));
    }

    return size;
}


/* Receives at least one byte, and at most as many as iov has room for. */

static int
dsa_conn_receive(dsa_redis_conn_t *c, struct iovec *iov, int n, size_t *size,
    dsa_err_t *err)
{
    short    events;
    ssize_t  rc;

    for ( ;; ) {
        rc = dsa_conn_read(c, iov, n, &events, err);

        if (rc > 0) {
            c->last_ms = dsa_clock_ms();
            *size = (size_t) rc;
            return DSA_OK;
        }

        if (rc == -1) {
            return dsa_conn_fail(c);
        }

        if (dsa_conn_wait(c, events, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }
}


/*
 * Returns the bytes that were received; 0: the socket must be ready for
 * *events first; -1 with err.
 */

static ssize_t
dsa_conn_read(dsa_redis_conn_t *c, const struct iovec *iov, int n,
    short *events, dsa_err_t *err)
{
    int      rc;
    size_t   len;
    ssize_t  size;

    if (c->ssl != NULL) {
        rc = dsa_redis_ssl_read(c->ssl, iov->iov_base, iov->iov_len, &len,
                                events, err);

        return rc == DSA_OK ? (ssize_t) len : rc == DSA_AGAIN ? 0 : -1;
    }

    do {
        size = readv(c->fd, iov, n);
    } while (size == -1 && errno == EINTR);

    if (size > 0) {
        return size;
    }

    if (size == -1 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        *events = POLLIN;
        return 0;
    }

    (void) dsa_error(err, size == 0 ? "Redis closed the connection"
                                    : "cannot receive: %s", strerror(errno));

    return -1;
}


/*
 * Reads the first line of a reply.  Not more than want bytes are read before
 * the line is complete or known to be longer.
 */

static int
dsa_conn_reply(dsa_redis_conn_t *c, size_t want, dsa_redis_reply_t *r,
    dsa_err_t *err)
{
    int           rc;
    size_t        size;
    struct iovec  iov;

    for ( ;; ) {
        rc = dsa_redis_reply(r, c->in + c->pos, c->len - c->pos, err);

        if (rc == DSA_OK) {
            c->pos += r->size;
            return DSA_OK;
        }

        if (rc == DSA_ERROR) {
            return dsa_conn_fail(c);
        }

        memmove(c->in, c->in + c->pos, c->len - c->pos);
        c->len -= c->pos;
        c->pos = 0;

        iov.iov_base = c->in + c->len;
        iov.iov_len = c->len < want ? want - c->len : sizeof(c->in) - c->len;

        if (dsa_conn_receive(c, &iov, 1, &size, err) != DSA_OK) {
            return DSA_ERROR;
        }

        c->len += size;
    }
}


/* Checks that a reply ends where the input ends, because each reply is read
   before the next command is sent. */

static int
dsa_conn_end(dsa_redis_conn_t *c, dsa_err_t *err)
{
    if (c->pos == c->len) {
        return DSA_OK;
    }

    (void) dsa_error(err, "protocol error: Redis sent more than a reply");

    return dsa_conn_fail(c);
}
