
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LEASE_H_INCLUDED_
#define _NGX_HTTP_DSA_LEASE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "ngx_module/redis/ngx_http_dsa_redis.h"


/*
 * The lease of a turn on its conversation, in Redis.  While a turn has the
 * lease, other turns and changes of the conversation's items get a 409, in all
 * workers of all hosts.  The lease is renewed while the request lives, and
 * expires if the worker is killed.
 *
 * A lease does not protect the data.  The script that stores a turn compares
 * the version of the conversation.  So if the lease of a turn has expired,
 * because Redis could not be reached for too long, the turn may be refused,
 * but never overwrites another one.
 */

/* the code of the error 409 */

#define NGX_HTTP_DSA_CONVERSATION_LOCKED  "conversation_locked"


typedef struct {
    ngx_http_dsa_redis_t     *redis;
    ngx_str_t                 tenant;
    ngx_str_t                 conversation;
    ngx_str_t                 owner;        /* the id of the request */
    ngx_event_t               timer;
    ngx_connection_t          dumb;         /* data of timer; nginx logs it */
    unsigned                  taken:1;
} ngx_http_dsa_lease_t;


/*
 * Call it when the command that acquires the lease was sent: starts to renew
 * the lease.  The strings and the lease live until ngx_http_dsa_lease_stored()
 * or _release().
 */
void ngx_http_dsa_lease_start(ngx_http_dsa_lease_t *lease,
    ngx_http_dsa_redis_t *redis, const ngx_str_t *tenant,
    const ngx_str_t *conversation, const ngx_str_t *owner);

/* Stops renewing: the script that stored the turn has ended the lease. */
void ngx_http_dsa_lease_stored(ngx_http_dsa_lease_t *lease);

/*
 * Ends the lease, if this turn has it.  The command for it is sent before
 * those of the client's next request to this worker.  It may be called at any
 * time.
 */
void ngx_http_dsa_lease_release(ngx_http_dsa_lease_t *lease);


#endif /* _NGX_HTTP_DSA_LEASE_H_INCLUDED_ */
