
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_REDIS_REPLY_H_INCLUDED_
#define _NGX_HTTP_DSA_REDIS_REPLY_H_INCLUDED_


#include "ngx_http_dsa_redis_state.h"


/*
 * What follows the replies of a connection to Redis: the end of its setup, and
 * the handlers of commands.
 */

#define NGX_HTTP_DSA_REDIS_PING  15000      /* milliseconds between two PINGs */


/*
 * Reads the replies in size bytes that were received.  NGX_OK; NGX_DONE: the
 * connection is one to a Sentinel, which has named the primary, and the caller
 * closes it and connects to the primary; NGX_ERROR: the connection failed and
 * is closed.
 */
ngx_int_t ngx_http_dsa_redis_replies(ngx_http_dsa_redis_connection_t *rc,
    u_char *buf, size_t size);

/* Called by a handler: its caller does not free the reply. */
void ngx_http_dsa_redis_reply_keep(redisReply *reply);


#endif /* _NGX_HTTP_DSA_REDIS_REPLY_H_INCLUDED_ */
