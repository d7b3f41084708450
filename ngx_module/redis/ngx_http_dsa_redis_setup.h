
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_REDIS_SETUP_H_INCLUDED_
#define _NGX_HTTP_DSA_REDIS_SETUP_H_INCLUDED_


#include "ngx_http_dsa_redis_command.h"
#include "ngx_http_dsa_redis_conf.h"


/*
 * Queues the first commands of a new connection in front of all others: AUTH if
 * there is a password, SELECT if the database is not 0, ROLE, and PING.  The
 * members role and last of the commands for ROLE and PING are set.  NGX_OK, or
 * NGX_ERROR: out of memory.
 */
ngx_int_t ngx_http_dsa_redis_setup_commands(
    ngx_http_dsa_redis_commands_t *commands,
    const ngx_http_dsa_redis_conf_t *conf);

/*
 * The same for a connection to a Sentinel: AUTH if there is a password, and
 * the query for the address of the primary, whose member last is set.
 */
ngx_int_t ngx_http_dsa_redis_setup_sentinel(
    ngx_http_dsa_redis_commands_t *commands,
    const ngx_http_dsa_redis_conf_t *conf);

/*
 * Queues ASKING in front of all others, when the commands above have their
 * replies: it succeeds if Redis is a node of a cluster.  Its members cluster
 * and last are set.  NGX_OK, or NGX_ERROR: out of memory.
 */
ngx_int_t ngx_http_dsa_redis_setup_cluster(
    ngx_http_dsa_redis_commands_t *commands,
    const ngx_http_dsa_redis_conf_t *conf);


#endif /* _NGX_HTTP_DSA_REDIS_SETUP_H_INCLUDED_ */
