
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_WINDOW_MEMORY_H_INCLUDED_
#define _NGX_HTTP_DSA_WINDOW_MEMORY_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "context/window.h"
#include "redis_schema/window.h"

#include "ngx_http_dsa_redis.h"


/*
 * The cuts of long histories in Redis, by tenant, and their summaries.  They
 * save the counts of a replay, and hold a cut although reasoning has left the
 * prompt with a new user message.  Without Redis, while it is away, and if a
 * record is damaged, the replay decides alone.
 */

typedef struct {
    /* set by the owner */
    ngx_http_dsa_redis_t       *redis;      /* NULL: none */
    ngx_str_t                   tenant;     /* empty: none */
    ngx_http_request_t         *request;

    /* called once after NGX_AGAIN, in the context of the request */
    void                      (*handler)(void *data);
    void                       *data;

    dsa_window_t               *replay;
    ngx_http_dsa_redis_call_t  *call;       /* NULL: none waits */
    u_char                     *digests;    /* of the points; in an arena */
    uint32_t                    first;      /* the first point that was
                                               looked up */
    uint32_t                    found;      /* the cut in Redis; 0: none */
    dsa_buf_t                   summary;    /* in Redis, of these rounds: the
                                               content of a message */
} ngx_http_dsa_window_memory_t;


/*
 * Looks up the history of a replay, whose first count exceeded the threshold,
 * and resumes the replay if there is a record.  The digests are allocated from
 * arena.  NGX_AGAIN: the handler is called later; NGX_DECLINED: it is not
 * called, and nothing has changed.
 */
ngx_int_t ngx_http_dsa_window_load(ngx_http_dsa_window_memory_t *memory,
    dsa_window_t *replay, dsa_arena_t *arena, ngx_str_t *model);

/*
 * Writes the cut of a replay that has ended, unless it is the one in Redis.
 * summary: the content of its message; empty: the strategy has none.
 */
void ngx_http_dsa_window_store(ngx_http_dsa_window_memory_t *memory,
    dsa_str_t summary);

/* Ensures that the handler is not called, and frees the summary. */
void ngx_http_dsa_window_forget(ngx_http_dsa_window_memory_t *memory);


#endif /* _NGX_HTTP_DSA_WINDOW_MEMORY_H_INCLUDED_ */
