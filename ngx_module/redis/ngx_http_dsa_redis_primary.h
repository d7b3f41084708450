
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_REDIS_PRIMARY_H_INCLUDED_
#define _NGX_HTTP_DSA_REDIS_PRIMARY_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "redis_schema/resp.h"
#include "ngx_http_dsa_redis_conf.h"


/*
 * Finds the primary.  The addresses of dsa_redis are tried in turn until one
 * is that of a primary.  With sentinel= they are those of Sentinels: each
 * attempt queries the next Sentinel for the address of the primary and
 * connects to it.
 */

typedef struct {
    const ngx_http_dsa_redis_conf_t  *conf;
    ngx_uint_t                        next;     /* address tried next */
    ngx_uint_t                        tried;    /* since a primary was found */

    ngx_addr_t                        found;    /* by a Sentinel, or the node
                                                   of a redirect */
    ngx_sockaddr_t                    sockaddr; /* of found */
    u_char                            text[NGX_SOCKADDR_STRLEN];
    u_char                            ip[NGX_SOCKADDR_STRLEN];

    ngx_str_t                         host;     /* of the current address: as
                                                   it is configured, or the IP
                                                   address of found */

    unsigned                          node:1;   /* found is a node of a
                                                   cluster, and the only
                                                   address */
    unsigned                          known:1;  /* the next attempt uses
                                                   found */
    unsigned                          sentinel:1;   /* the current address is
                                                       that of a Sentinel */
} ngx_http_dsa_redis_primary_t;


/*
 * Chooses the first address.  The workers of a host begin with different ones.
 */
void ngx_http_dsa_redis_primary_init(ngx_http_dsa_redis_primary_t *primary,
    const ngx_http_dsa_redis_conf_t *conf);

/*
 * The same for a node of a cluster, which has this address alone.  NGX_ERROR:
 * the host is not an IP address, or the port is not 1 to 65535.
 */
ngx_int_t ngx_http_dsa_redis_primary_node(ngx_http_dsa_redis_primary_t *primary,
    const ngx_http_dsa_redis_conf_t *conf, dsa_str_t host, ngx_int_t port);

/*
 * Returns the address for the next attempt; sets the members sentinel and host.
 */
ngx_addr_t *ngx_http_dsa_redis_primary_next(
    ngx_http_dsa_redis_primary_t *primary);

/*
 * Records that an attempt has failed.  Returns 1 if some address has not been
 * tried since the last success, so that the next attempt can be made at once.
 */
ngx_uint_t ngx_http_dsa_redis_primary_failed(
    ngx_http_dsa_redis_primary_t *primary);

/* Records that an attempt has found a primary. */
void ngx_http_dsa_redis_primary_good(ngx_http_dsa_redis_primary_t *primary);

/*
 * Reads a Sentinel's reply.  Returns NULL if the next attempt uses the address
 * in it, otherwise the reason why it cannot be used, a static clause.
 */
const char *ngx_http_dsa_redis_primary_answer(
    ngx_http_dsa_redis_primary_t *primary, const redisReply *reply);

/*
 * Reads the reply to ROLE.  Returns NULL for a primary, and also for an error
 * such as NOPERM, because the user may lack the permission for ROLE only.
 * Otherwise returns why the connection cannot be used, a static clause.
 */
const char *ngx_http_dsa_redis_primary_role(const redisReply *reply);


#endif /* _NGX_HTTP_DSA_REDIS_PRIMARY_H_INCLUDED_ */
