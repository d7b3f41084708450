
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "redis_schema/schema.h"
#include "ngx_http_dsa_save.h"


/*
 * Links a request and its turn, of which either may end first.  It is
 * allocated from the request's pool.
 */

struct ngx_http_dsa_save_waiter_s {
    ngx_http_dsa_save_t    *turn;       /* NULL once the turn has ended */
    ngx_http_request_t     *request;
    ngx_http_dsa_save_pt    handler;
};


static void ngx_http_dsa_save_cleanup(void *data);


ngx_http_dsa_save_t *
ngx_http_dsa_save_create(ngx_http_request_t *r,
    const ngx_str_t *conversation, int64_t version, dsa_buf_t *text,
    ngx_http_dsa_save_pt handler)
{
    u_char                      *p;
    uint32_t                     n;
    ngx_pool_cleanup_t          *cln;
    ngx_http_dsa_save_t         *turn;
    ngx_http_dsa_save_waiter_t  *waiter;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_dsa_save_waiter_t));
    if (cln == NULL) {
        return NULL;
    }

    waiter = cln->data;
    ngx_memzero(waiter, sizeof(ngx_http_dsa_save_waiter_t));

    cln->handler = ngx_http_dsa_save_cleanup;

    n = dsa_schema_split(dsa_str(text->data, text->len), NULL);

    turn = ngx_calloc(sizeof(ngx_http_dsa_save_t) + n * sizeof(dsa_str_t)
                      + conversation->len, r->connection->log);
    if (turn == NULL) {
        return NULL;
    }

    turn->text = *text;
    ngx_memzero(text, sizeof(dsa_buf_t));

    turn->messages = (dsa_str_t *) &turn[1];
    turn->n_messages = dsa_schema_split(dsa_str(turn->text.data,
                                                turn->text.len),
                                        turn->messages);

    p = (u_char *) &turn->messages[n];
    ngx_memcpy(p, conversation->data, conversation->len);

    turn->conversation = dsa_str(p, conversation->len);
    turn->version = version;

    turn->timer.data = turn;
    turn->timer.log = ngx_cycle->log;

    waiter->turn = turn;
    waiter->request = r;
    waiter->handler = handler;

    turn->waiter = waiter;

    return turn;
}


/*
 * Runs when the request ends first, because the client left.  The turn is
 * still stored, within the rest of its timeout.
 */

static void
ngx_http_dsa_save_cleanup(void *data)
{
    ngx_http_dsa_save_waiter_t  *waiter = data;

    if (waiter->turn != NULL) {
        waiter->turn->waiter = NULL;
    }
}


void
ngx_http_dsa_save_end(ngx_http_dsa_save_t *turn, const char *why)
{
    ngx_connection_t            *c;
    ngx_http_request_t          *r;
    ngx_http_dsa_save_waiter_t  *waiter;

    waiter = turn->waiter;

    ngx_http_dsa_save_free(turn);

    if (waiter == NULL) {
        return;
    }

    r = waiter->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, c->log, 0, "dsa conversation turn %s",
                   why == NULL ? "stored" : "not stored");

    waiter->handler(r, why);

    ngx_http_run_posted_requests(c);
}


void
ngx_http_dsa_save_free(ngx_http_dsa_save_t *turn)
{
    if (turn->waiter != NULL) {
        turn->waiter->turn = NULL;
    }

    if (turn->timer.timer_set) {
        ngx_del_timer(&turn->timer);
    }

    dsa_buf_free(&turn->text);
    ngx_free(turn);
}
