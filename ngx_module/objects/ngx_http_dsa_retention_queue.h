
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_RETENTION_QUEUE_H_INCLUDED_
#define _NGX_HTTP_DSA_RETENTION_QUEUE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/buf.h"

#include "ngx_module/redis/ngx_http_dsa_redis.h"


/*
 * The queue of sampled answers to Redis, in the memory of a worker.  While
 * Redis cannot be reached, up to NGX_HTTP_DSA_RETENTION_ENTRIES retained
 * answers and NGX_HTTP_DSA_RETENTION_BYTES bytes wait, for at most
 * NGX_HTTP_DSA_RETENTION_WAIT.  Without it a later request has no reasoning,
 * but no money depends on it, so a retained answer that is lost is counted, and
 * the queue is not kept on disk.
 */

#define NGX_HTTP_DSA_RETENTION_ENTRIES   1024
#define NGX_HTTP_DSA_RETENTION_BYTES     (64 * 1024 * 1024)
#define NGX_HTTP_DSA_RETENTION_WAIT      60000      /* milliseconds */


/*
 * Queues a retained answer.  The queue owns its bytes, and *answer is empty
 * afterwards.  ttl is in milliseconds.  id: of the request, for logs.
 */
void ngx_http_dsa_retention_queue_add(ngx_http_dsa_redis_t *redis,
    const ngx_str_t *id, const ngx_str_t *tenant, dsa_str_t key,
    ngx_msec_t ttl, dsa_buf_t *answer);

/*
 * Called when the worker exits: drops all retained answers, which is logged and
 * counted.
 */
void ngx_http_dsa_retention_queue_exit(void);


#endif /* _NGX_HTTP_DSA_RETENTION_QUEUE_H_INCLUDED_ */
