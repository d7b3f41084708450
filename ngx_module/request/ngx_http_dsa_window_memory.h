
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

#include "ngx_module/redis/ngx_http_dsa_redis.h"


/*
 * The cuts of long histories, and their summaries, stored in Redis by tenant.
 * With a stored cut a replay needs fewer counts, and the cut stays the same
 * when a new user message removes reasoning from the prompt.  Without Redis,
 * or if a record is damaged, the whole replay is done.
 */

typedef struct {
    /* set by the owner */
    ngx_http_dsa_redis_t          *redis;   /* NULL: none */
    ngx_str_t                      tenant;  /* empty: none */
    ngx_http_request_t            *request;

    /* called once after NGX_AGAIN, in the context of the request */
    void                         (*handler)(void *data);
    void                          *data;

    dsa_window_t                  *replay;
    ngx_http_dsa_redis_command_t  *command; /* NULL: no command is pending */
    u_char                        *digests; /* of the points, in an arena */
    uint32_t                       first;   /* first point that is looked up */
    uint32_t                       found;   /* the cut in Redis; 0: none */
    dsa_buf_t                      summary; /* of these rounds, from Redis: the
                                               content of a message */
} ngx_http_dsa_window_memory_t;


/* Returns 1 if Redis can be asked now. */
ngx_uint_t ngx_http_dsa_window_usable(
    const ngx_http_dsa_window_memory_t *memory);

/*
 * Computes the digests of the history of a replay, which are allocated from
 * arena.  digests is NULL without memory.  It may run in a thread.
 */
void ngx_http_dsa_window_digests(ngx_http_dsa_window_memory_t *memory,
    dsa_window_t *replay, dsa_arena_t *arena, ngx_str_t *model);

/*
 * Looks up these digests, after the first count of the replay has exceeded the
 * threshold, and resumes the replay from the stored cut.  NGX_AGAIN: the
 * handler will be called; NGX_DECLINED: it is not called, and nothing was
 * changed.
 */
ngx_int_t ngx_http_dsa_window_load(ngx_http_dsa_window_memory_t *memory);

/*
 * Stores the cut of a replay that has ended, unless Redis has it already.
 * summary: the content of its message; empty for other strategies.
 */
void ngx_http_dsa_window_store(ngx_http_dsa_window_memory_t *memory,
    dsa_str_t summary);

/* Ensures that the handler is not called. */
void ngx_http_dsa_window_forget(ngx_http_dsa_window_memory_t *memory);

/* Frees the summary. */
void ngx_http_dsa_window_drop(ngx_http_dsa_window_memory_t *memory);


#endif /* _NGX_HTTP_DSA_WINDOW_MEMORY_H_INCLUDED_ */
