
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


static int dsa_conn_refused(const dsa_redis_conn_t *c, const char *cause,
    dsa_err_t *err);
static int dsa_conn_handshake(dsa_redis_conn_t *c, const char *host,
    dsa_err_t *err);
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
    c->wire.last_ms = dsa_clock_ms();
    c->wire.deadline_ms = c->wire.last_ms + c->wire.timeout_ms
                          + bytes / DSA_REDIS_SLOWEST;
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

    assert(c->wire.fd == -1);

    redis = a->port != 0 ? redisConnectNonBlock(a->host, a->port)
                         : redisConnectUnixNonBlock(a->host);

    if (redis == NULL || redis->err != 0) {
        (void) dsa_conn_refused(c, redis != NULL ? redis->errstr
                                   : strerror(ENOMEM), err);
        redisFree(redis);
        return DSA_ERROR;
    }

    c->wire.fd = redisFreeKeepFd(redis);
    c->pos = 0;
    c->len = 0;

    (void) fcntl(c->wire.fd, F_SETFD, FD_CLOEXEC);

    if (dsa_redis_wire_wait(&c->wire, POLLOUT, &waited) != DSA_OK) {
        return dsa_conn_refused(c, waited.text, err);
    }

    error = 0;
    size = sizeof(error);

    if (getsockopt(c->wire.fd, SOL_SOCKET, SO_ERROR, &error, &size) == -1) {
        error = errno;
    }

    if (error != 0) {
        (void) dsa_conn_refused(c, strerror(error), err);
        return dsa_redis_wire_fail(&c->wire);
    }

    if (c->wire.tls != NULL && dsa_conn_handshake(c, a->host, err) != DSA_OK) {
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
        return dsa_redis_wire_fail(&c->wire);
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

    c->wire.ssl = dsa_redis_ssl_create(c->wire.tls, c->wire.fd, host, err);

    if (c->wire.ssl == NULL) {
        return dsa_redis_wire_fail(&c->wire);
    }

    for ( ;; ) {
        rc = dsa_redis_ssl_handshake(c->wire.tls, c->wire.ssl, host, &events,
                                     err);

        if (rc == DSA_OK) {
            return DSA_OK;
        }

        if (rc == DSA_ERROR) {
            return dsa_redis_wire_fail(&c->wire);
        }

        /* a port without TLS may wait for the rest of a line */

        if (dsa_redis_wire_wait(&c->wire, events, &waited) != DSA_OK) {
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
        return dsa_redis_wire_fail(&c->wire);
    }

    return DSA_OK;
}


void
dsa_redis_conn_close(dsa_redis_conn_t *c)
{
    dsa_redis_wire_close(&c->wire);
}


int
dsa_redis_conn_idle(const dsa_redis_conn_t *c)
{
    struct pollfd  p;

    p.fd = c->wire.fd;
    p.events = POLLIN;

    if (c->wire.fd == -1 || c->pos != c->len) {
        return 0;
    }

    return poll(&p, 1, 0) == 0
           || (c->wire.ssl != NULL && dsa_redis_ssl_idle(c->wire.ssl));
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
        rc = dsa_redis_wire_fail(&c->wire);

    } else {
        iov.iov_base = text;
        iov.iov_len = (size_t) n;

        rc = dsa_redis_wire_send(&c->wire, &iov, 1, err);
    }

    if (n >= 0) {
        redisFreeCommand(text);
    }

    if (rc == DSA_OK && dsa_conn_array(c, resp, &reply, err) != DSA_OK) {
        (void) dsa_redis_wire_fail(&c->wire);
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
        return dsa_redis_wire_fail(&c->wire);
    }

    iov.iov_base = text;
    iov.iov_len = (size_t) n;

    rc = dsa_redis_wire_send(&c->wire, &iov, 1, err);
    redisFreeCommand(text);

    if (rc != DSA_OK
        || dsa_conn_reply(c, DSA_REDIS_INPUT, r, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (r->type == DSA_REPLY_STRING) {
        (void) dsa_error(err, "protocol error: the reply to %s is a string",
                         argv[0]);
        return dsa_redis_wire_fail(&c->wire);
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

    if (dsa_redis_wire_send(&c->wire, &iov, 1, err) != DSA_OK) {
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
            return dsa_redis_wire_fail(&c->wire);
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

    if (dsa_redis_wire_send(&c->wire, iov, 3, err) != DSA_OK
        || dsa_conn_reply(c, (size_t) n, r, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (r->type != DSA_REPLY_STRING || r->number == -1) {
        return dsa_conn_end(c, err);
    }

    if ((uint64_t) r->number != DSA_KV_HEADER + bytes) {
        (void) dsa_redis_wire_fail(&c->wire);
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
        if (dsa_redis_wire_receive(&c->wire, p, (int) (iov + 3 - p), &size, err)
            != DSA_OK)
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
        return dsa_redis_wire_fail(&c->wire);
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

    if (dsa_redis_wire_send(&c->wire, iov, 6, err) != DSA_OK
        || dsa_conn_reply(c, DSA_REDIS_INPUT, r, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (r->type != DSA_REPLY_STATUS && r->type != DSA_REPLY_ERROR) {
        (void) dsa_error(err, "protocol error: the reply to SET is neither a "
                         "status nor an error");
        return dsa_redis_wire_fail(&c->wire);
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

    if (dsa_redis_wire_send(&c->wire, &iov, 1, err) != DSA_OK) {
        return DSA_ERROR;
    }

    resp = dsa_resp_create(DSA_CONN_MAP, DSA_CONN_ELEMENTS);

    if (resp == NULL) {
        (void) dsa_error(err, "%s", strerror(ENOMEM));
        return dsa_redis_wire_fail(&c->wire);
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

    return rc == DSA_OK ? DSA_OK : dsa_redis_wire_fail(&c->wire);
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

        if (dsa_redis_wire_receive(&c->wire, &iov, 1, &size, err) != DSA_OK
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
            return dsa_redis_wire_fail(&c->wire);
        }

        memmove(c->in, c->in + c->pos, c->len - c->pos);
        c->len -= c->pos;
        c->pos = 0;

        iov.iov_base = c->in + c->len;
        iov.iov_len = c->len < want ? want - c->len : sizeof(c->in) - c->len;

        if (dsa_redis_wire_receive(&c->wire, &iov, 1, &size, err) != DSA_OK) {
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

    return dsa_redis_wire_fail(&c->wire);
}
