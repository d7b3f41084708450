
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include <assert.h>

#include "ngx_http_dsa_redis_call.h"


/* limits for one worker: calls without a reply, and bytes that are not sent */

#define NGX_HTTP_DSA_REDIS_MAX_CALLS  4096
#define NGX_HTTP_DSA_REDIS_MAX_BYTES  (64 * 1024 * 1024)

/* commands that are passed to the kernel in one write */

#define NGX_HTTP_DSA_REDIS_PIECES     64


static ngx_http_dsa_redis_call_t *ngx_http_dsa_redis_call_create(
    const dsa_schema_command_t *cmd);
static void ngx_http_dsa_redis_calls_sent(ngx_http_dsa_redis_calls_t *calls,
    off_t n);
static void ngx_http_dsa_redis_call_free(ngx_http_dsa_redis_call_t *call);


void
ngx_http_dsa_redis_calls_init(ngx_http_dsa_redis_calls_t *calls)
{
    ngx_queue_init(&calls->sent);
    ngx_queue_init(&calls->unsent);

    calls->n = 0;
    calls->bytes = 0;
}


ngx_uint_t
ngx_http_dsa_redis_calls_full(ngx_http_dsa_redis_calls_t *calls)
{
    return calls->n >= NGX_HTTP_DSA_REDIS_MAX_CALLS
           || calls->bytes >= NGX_HTTP_DSA_REDIS_MAX_BYTES;
}


ngx_http_dsa_redis_call_t *
ngx_http_dsa_redis_calls_add(ngx_http_dsa_redis_calls_t *calls,
    const dsa_schema_command_t *cmd, ngx_msec_t timeout, ngx_uint_t setup)
{
    ngx_http_dsa_redis_call_t  *call;

    call = ngx_http_dsa_redis_call_create(cmd);
    if (call == NULL) {
        return NULL;
    }

    call->setup = setup;
    call->deadline = ngx_current_msec + timeout;

    if (setup) {
        ngx_queue_insert_head(&calls->unsent, &call->queue);

    } else {
        ngx_queue_insert_tail(&calls->unsent, &call->queue);
    }

    calls->n++;
    calls->bytes += call->len;

    return call;
}


static ngx_http_dsa_redis_call_t *
ngx_http_dsa_redis_call_create(const dsa_schema_command_t *cmd)
{
    int                         len;
    size_t                     *lens;
    uint32_t                    i;
    const char                **words;
    ngx_http_dsa_redis_call_t  *call;

    call = ngx_calloc(sizeof(ngx_http_dsa_redis_call_t), ngx_cycle->log);
    if (call == NULL) {
        return NULL;
    }

    words = ngx_alloc(cmd->argc * (sizeof(char *) + sizeof(size_t)),
                      ngx_cycle->log);
    if (words == NULL) {
        ngx_free(call);
        return NULL;
    }

    lens = (size_t *) &words[cmd->argc];

    for (i = 0; i < cmd->argc; i++) {
        words[i] = cmd->argv[i].data;
        lens[i] = cmd->argv[i].len;
    }

    len = redisFormatCommandArgv(&call->command, cmd->argc, words, lens);

    ngx_free(words);

    if (len < 0) {
        ngx_free(call);
        return NULL;
    }

    call->len = len;

    ngx_memcpy(call->name, cmd->argv[0].data,
               ngx_min(cmd->argv[0].len, sizeof(call->name) - 1));

    return call;
}


ngx_int_t
ngx_http_dsa_redis_calls_send(ngx_http_dsa_redis_calls_t *calls,
    ngx_connection_t *c, ngx_uint_t setup)
{
    off_t                       before;
    ngx_buf_t                   bufs[NGX_HTTP_DSA_REDIS_PIECES];
    ngx_uint_t                  n;
    ngx_queue_t                *q;
    ngx_chain_t                 chain[NGX_HTTP_DSA_REDIS_PIECES];
    ngx_http_dsa_redis_call_t  *call;

    while (c->write->ready) {

        n = 0;

        for (q = ngx_queue_head(&calls->unsent);
             q != ngx_queue_sentinel(&calls->unsent)
             && n < NGX_HTTP_DSA_REDIS_PIECES;
             q = ngx_queue_next(q))
        {
            call = ngx_queue_data(q, ngx_http_dsa_redis_call_t, queue);

            if (setup && !call->setup) {
                break;
            }

            ngx_memzero(&bufs[n], sizeof(ngx_buf_t));
            bufs[n].pos = (u_char *) call->command + call->pos;
            bufs[n].last = (u_char *) call->command + call->len;
            bufs[n].memory = 1;

            chain[n].buf = &bufs[n];
            chain[n].next = NULL;

            if (n > 0) {
                chain[n - 1].next = &chain[n];
            }

            n++;
        }

        if (n == 0) {
            return NGX_OK;
        }

        before = c->sent;

        if (c->send_chain(c, chain, 0) == NGX_CHAIN_ERROR) {
            return NGX_ERROR;
        }

        ngx_http_dsa_redis_calls_sent(calls, c->sent - before);
    }

    return NGX_OK;
}


static void
ngx_http_dsa_redis_calls_sent(ngx_http_dsa_redis_calls_t *calls, off_t n)
{
    size_t                      part;
    ngx_queue_t                *q;
    ngx_http_dsa_redis_call_t  *call;

    while (n > 0) {
        assert(!ngx_queue_empty(&calls->unsent));

        q = ngx_queue_head(&calls->unsent);
        call = ngx_queue_data(q, ngx_http_dsa_redis_call_t, queue);

        part = call->len - call->pos;

        if (n < (off_t) part) {
            part = n;
        }

        assert(part <= calls->bytes);

        call->pos += part;
        calls->bytes -= part;
        n -= part;

        if (call->pos == call->len) {
            redisFreeCommand(call->command);
            call->command = NULL;

            ngx_queue_remove(q);
            ngx_queue_insert_tail(&calls->sent, q);
        }
    }
}


ngx_http_dsa_redis_call_t *
ngx_http_dsa_redis_calls_next(ngx_http_dsa_redis_calls_t *calls)
{
    if (ngx_queue_empty(&calls->sent)) {
        return NULL;
    }

    return ngx_queue_data(ngx_queue_head(&calls->sent),
                          ngx_http_dsa_redis_call_t, queue);
}


ngx_http_dsa_redis_call_t *
ngx_http_dsa_redis_calls_oldest(ngx_http_dsa_redis_calls_t *calls)
{
    if (ngx_queue_empty(&calls->sent) && !ngx_queue_empty(&calls->unsent)) {
        return ngx_queue_data(ngx_queue_head(&calls->unsent),
                              ngx_http_dsa_redis_call_t, queue);
    }

    return ngx_http_dsa_redis_calls_next(calls);
}


void
ngx_http_dsa_redis_calls_remove(ngx_http_dsa_redis_calls_t *calls,
    ngx_http_dsa_redis_call_t *call)
{
    assert(calls->n != 0 && calls->bytes >= call->len - call->pos);

    ngx_queue_remove(&call->queue);

    calls->n--;
    calls->bytes -= call->len - call->pos;

    ngx_http_dsa_redis_call_free(call);
}


void
ngx_http_dsa_redis_calls_fail(ngx_http_dsa_redis_calls_t *calls,
    const char *why)
{
    void                       *data;
    ngx_queue_t                 failed;
    ngx_http_dsa_redis_pt       handler;
    ngx_http_dsa_redis_call_t  *call;

    ngx_queue_init(&failed);

    if (!ngx_queue_empty(&calls->sent)) {
        ngx_queue_add(&failed, &calls->sent);
    }

    if (!ngx_queue_empty(&calls->unsent)) {
        ngx_queue_add(&failed, &calls->unsent);
    }

    ngx_http_dsa_redis_calls_init(calls);

    while (!ngx_queue_empty(&failed)) {
        call = ngx_queue_data(ngx_queue_head(&failed),
                              ngx_http_dsa_redis_call_t, queue);

        handler = call->handler;
        data = call->data;

        ngx_queue_remove(&call->queue);
        ngx_http_dsa_redis_call_free(call);

        if (handler != NULL) {
            handler(data, NULL, why);
        }
    }
}


static void
ngx_http_dsa_redis_call_free(ngx_http_dsa_redis_call_t *call)
{
    if (call->command != NULL) {
        redisFreeCommand(call->command);
    }

    ngx_free(call);
}
