
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A Redis that sends any bytes to the cache of pages.  The first byte of the
 * input chooses the command; the rest is the whole reply, after which the
 * connection ends.  A page is read only if its bytes are those of the reply,
 * nothing is written beyond it, and the connection is closed after an error.
 */


#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/pages/redis_conn.h"


#define BYTES   48
#define SENT    (DSA_KV_HEADER + BYTES)
#define MOST    16384

static const char  key[] = "0123456789abcdef0123456789abcdef"
                           "0123456789abcdef0123456789abcdef01234567";


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
check_get(dsa_redis_conn_t *c, const uint8_t *data, size_t size)
{
    int                  rc;
    char                 line[] = "$176\r\n";
    uint8_t             *header, *page;
    dsa_err_t            err;
    dsa_redis_reply_t    r;

    header = malloc(DSA_KV_HEADER);
    page = malloc(BYTES);

    if (header == NULL || page == NULL) {
        abort();
    }

    rc = dsa_redis_conn_get(c, key, header, page, BYTES, &r, &err);

    if (rc == DSA_OK && r.type == DSA_REPLY_STRING && r.number == SENT
        && (size < sizeof(line) - 1 + SENT + 2
            || memcmp(data, line, sizeof(line) - 1) != 0
            || memcmp(data + 6, header, DSA_KV_HEADER) != 0
            || memcmp(data + 6 + DSA_KV_HEADER, page, BYTES) != 0
            || memcmp(data + 6 + SENT, "\r\n", 2) != 0))
    {
        abort();
    }

    if (rc == DSA_OK && r.type == DSA_REPLY_STRING && r.number != SENT
        && r.number != -1 && c->wire.fd != -1)
    {
        abort();
    }

    if (rc != DSA_OK && c->wire.fd != -1) {
        abort();
    }

    free(header);
    free(page);
}


static void
check_map(dsa_redis_conn_t *c, const dsa_redis_address_t *from)
{
    int                  is_cluster;
    uint32_t             i;
    dsa_err_t            err;
    dsa_redis_address_t  again;

    static dsa_cluster_map_t  map;

    if (dsa_redis_conn_map(c, from, &map, &is_cluster, &err) != DSA_OK) {
        if (c->wire.fd != -1) {
            abort();
        }

        return;
    }

    if (!is_cluster) {
        return;
    }

    for (i = 0; i < DSA_CLUSTER_SLOTS; i++) {
        if (map.cluster_slot[i] != DSA_CLUSTER_NONE
            && map.cluster_slot[i] >= map.nodes)
        {
            abort();
        }
    }

    /* an address has a form that is read again */

    for (i = 0; i < map.nodes; i++) {
        if (map.node[i].port < 1 || map.node[i].port > 65535) {
            abort();
        }

        /* "unix:1" is a socket */

        if (strcmp(map.node[i].host, "unix") != 0
            && (dsa_redis_address(&again, map.node[i].text, &err) != DSA_OK
                || strcmp(again.host, map.node[i].host) != 0
                || again.port != map.node[i].port))
        {
            abort();
        }
    }
}


static void
check_redirect(const uint8_t *data, size_t size,
    const dsa_redis_address_t *from)
{
    dsa_err_t            err;
    dsa_redis_reply_t    r;
    dsa_redis_address_t  to;

    if (dsa_redis_reply(&r, (const char *) data, size, &err) == DSA_OK
        && r.type == DSA_REPLY_ERROR
        && dsa_cluster_redirect(&to, r.text, from, &err) == DSA_OK
        && (to.port < 1 || to.port > 65535 || to.host[0] == '\0'))
    {
        abort();
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int                   fd[2];
    size_t                len;
    uint8_t               kind, page[BYTES], header[DSA_KV_HEADER];
    uint32_t              found;
    dsa_err_t             err;
    dsa_digest_t          digest[3];
    const char           *ping;
    const dsa_digest_t   *p[3];
    dsa_redis_conn_t      c;
    dsa_redis_reply_t     r;
    dsa_redis_address_t   from;

    if (size < 1 || size > MOST) {
        return 0;
    }

    kind = data[0] % 6;
    data++;
    size--;

    if (socketpair(AF_UNIX, SOCK_STREAM|SOCK_NONBLOCK, 0, fd) != 0
        || send(fd[1], data, size, MSG_NOSIGNAL) != (ssize_t) size
        || shutdown(fd[1], SHUT_WR) != 0
        || dsa_redis_address(&from, "seed:7000", &err) != DSA_OK)
    {
        abort();
    }

    memset(&c, 0, offsetof(dsa_redis_conn_t, in));
    memset(digest, 0, sizeof(digest));
    memset(page, 1, sizeof(page));
    memset(header, 2, sizeof(header));
    c.wire.fd = fd[0];
    c.wire.off_fd = -1;
    c.wire.stop_fd = -1;
    c.wire.timeout_ms = 1000;
    dsa_redis_conn_begin(&c, 0);

    p[0] = &digest[0];
    p[1] = &digest[1];
    p[2] = &digest[2];

    switch (kind) {

    case 0:
        check_get(&c, data, size);
        break;

    case 1:
        (void) dsa_redis_conn_set(&c, key, header, page, BYTES, 1, &r, &err);
        break;

    case 2:
        if (dsa_redis_conn_exists(&c, p, 3, &found, &r, &err) == DSA_OK
            && found > 3)
        {
            abort();
        }
        break;

    case 3:
        ping = "PING";
        len = 4;
        (void) dsa_redis_conn_command(&c, 1, &ping, &len, &r, &err);
        break;

    case 4:
        check_map(&c, &from);
        break;

    default:
        check_redirect(data, size, &from);
    }

    dsa_redis_conn_close(&c);
    (void) close(fd[1]);

    return 0;
}
