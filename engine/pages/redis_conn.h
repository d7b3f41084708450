
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_REDIS_CONN_H_INCLUDED_
#define _DSA_REDIS_CONN_H_INCLUDED_


#include "engine/pages/redis_cluster.h"
#include "engine/pages/redis_reply.h"
#include "engine/pages/redis_wire.h"
#include "engine/pages/digest.h"
#include "redis_schema/kv.h"


/*
 * A connection to a Redis server, used by one thread.  The socket is
 * non-blocking: a function waits in poll() until the reply is complete, a
 * timeout expires, or one of two eventfds becomes readable.  The engine and the
 * commands of dsa use it, with TLS and without.
 *
 * After DSA_ERROR, err has the cause and the connection is closed.  An error
 * reply of Redis is DSA_OK.
 */

#define DSA_REDIS_CHUNK     512         /* most keys of one round trip */
#define DSA_REDIS_INPUT     4096
#define DSA_REDIS_REPLY     (1U << 30)  /* most bytes of any reply */


typedef struct {
    dsa_redis_wire_t    wire;
    const char         *hint;           /* follows errors that a sandbox may
                                           cause; NULL: nothing */
    size_t              pos;            /* of in[]: begin of the unparsed
                                           bytes */
    size_t              len;
    char                in[DSA_REDIS_INPUT];
} dsa_redis_conn_t;


/*
 * Sets the deadline of an operation that transfers so many bytes: timeout_ms
 * plus the time of the bytes at DSA_REDIS_SLOWEST.  It is valid until the next
 * call.
 */
void dsa_redis_conn_begin(dsa_redis_conn_t *c, uint64_t bytes);

/*
 * Connects, with TLS if there is tls, and sends AUTH if there is a password,
 * and PING.  Unlike in the
 * other functions, an error reply is a DSA_ERROR.  user: NULL is the default
 * user.  A host name is resolved by getaddrinfo(), without a timeout.
 */
int dsa_redis_conn_open(dsa_redis_conn_t *c, const dsa_redis_address_t *a,
    const char *user, const char *password, dsa_err_t *err);

/* Closes the connection, if it is open. */
void dsa_redis_conn_close(dsa_redis_conn_t *c);

/*
 * Returns 1 if the connection is open, has no input and was not closed by the
 * server.
 */
int dsa_redis_conn_idle(const dsa_redis_conn_t *c);

/*
 * Sends a command and reads its reply, of any kind and at most
 * DSA_REDIS_REPLY bytes.  Returns the reply, which the caller frees with
 * freeReplyObject(), or NULL with err.
 */
redisReply *dsa_redis_conn_call(dsa_redis_conn_t *c, int argc,
    const char **argv, const size_t *argvlen, dsa_err_t *err);

/* Sends a command of few bytes and reads a reply of one line. */
int dsa_redis_conn_command(dsa_redis_conn_t *c, int argc, const char **argv,
    const size_t *argvlen, dsa_redis_reply_t *r, dsa_err_t *err);

/*
 * Sends EXISTS for n keys, at most DSA_REDIS_CHUNK, and reads all replies.
 * The first *found keys exist; r is the first other reply, if there is one.
 */
int dsa_redis_conn_exists(dsa_redis_conn_t *c, const dsa_digest_t **digest,
    uint32_t n, uint32_t *found, dsa_redis_reply_t *r, dsa_err_t *err);

/*
 * Reads a value.  If r is a string of DSA_KV_HEADER + bytes, header and page
 * were read.  If it is a string of another length, the connection was closed,
 * and header and page are unchanged.
 */
int dsa_redis_conn_get(dsa_redis_conn_t *c, const char *key, uint8_t *header,
    uint8_t *page, uint64_t bytes, dsa_redis_reply_t *r, dsa_err_t *err);

/* Writes a value that expires after ttl_s seconds. */
int dsa_redis_conn_set(dsa_redis_conn_t *c, const char *key,
    const uint8_t *header, const uint8_t *page, uint64_t bytes, uint64_t ttl_s,
    dsa_redis_reply_t *r, dsa_err_t *err);

/*
 * Reads the map of cluster slots of the cluster.  If the reply is an error, the
 * server is not a node of a cluster: *is_cluster is 0 and map is not set.
 */
int dsa_redis_conn_map(dsa_redis_conn_t *c, const dsa_redis_address_t *from,
    dsa_cluster_map_t *map, int *is_cluster, dsa_err_t *err);


#endif /* _DSA_REDIS_CONN_H_INCLUDED_ */
