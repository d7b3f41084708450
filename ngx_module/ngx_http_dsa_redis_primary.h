
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
 * Where the primary is.  The addresses of dsa_redis are tried in turn until one
 * is a primary.  With sentinel= they are Sentinels: each attempt queries the
 * next one for the address of the primary, and connects to that.
 */

typedef struct {
    const ngx_http_dsa_redis_conf_t  *conf;
    ngx_uint_t                        next;     /* address tried next */
    ngx_uint_t                        tried;    /* since a primary was found */

    ngx_addr_t                        found;    /* by a Sentinel */
    ngx_sockaddr_t                    sockaddr; /* of found */
    u_char                            text[NGX_SOCKADDR_STRLEN];

    unsigned                          known:1;  /* found is tried next */
    unsigned                          asking:1; /* the address that is tried is
                                                   a Sentinel */
} ngx_http_dsa_redis_primary_t;


/* The workers of a host begin with different addresses. */
void ngx_http_dsa_redis_primary_init(ngx_http_dsa_redis_primary_t *primary,
    const ngx_http_dsa_redis_conf_t *conf);

/* The address for the next attempt, and whether it is a Sentinel (asking). */
ngx_addr_t *ngx_http_dsa_redis_primary_next(
    ngx_http_dsa_redis_primary_t *primary);

/*
 * The attempt has failed.  1: other addresses have not been tried since then,
 * so the next attempt does not have to wait.
 */
ngx_uint_t ngx_http_dsa_redis_primary_failed(
    ngx_http_dsa_redis_primary_t *primary);

/* The attempt has found a primary. */
void ngx_http_dsa_redis_primary_good(ngx_http_dsa_redis_primary_t *primary);

/*
 * Reads a Sentinel's reply.  NULL: the next attempt is at the address in it.
 * Otherwise the reason as a static clause.
 */
const char *ngx_http_dsa_redis_primary_answer(
    ngx_http_dsa_redis_primary_t *primary, const redisReply *reply);

/*
 * Reads the reply to ROLE.  NULL: a primary, or an error: NOPERM is none of the
 * connection, because the user may lack the permission for ROLE only.
 * Otherwise the reason as a static clause.
 */
const char *ngx_http_dsa_redis_primary_role(const redisReply *reply);


#endif /* _NGX_HTTP_DSA_REDIS_PRIMARY_H_INCLUDED_ */
