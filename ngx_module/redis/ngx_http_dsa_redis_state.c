
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "ngx_http_dsa_redis_state.h"


#define NGX_HTTP_DSA_REDIS_BACKOFF_MAX  5000        /* milliseconds */
#define NGX_HTTP_DSA_REDIS_NEXT         10          /* before another address */


static void ngx_http_dsa_redis_report(ngx_http_dsa_redis_connection_t *rc,
    ngx_uint_t more, const char *why, ngx_err_t err, const char *detail,
    size_t len);
static u_char *ngx_http_dsa_redis_log_error(ngx_log_t *log, u_char *buf,
    size_t len);


const char  ngx_http_dsa_redis_nomem[] = "nginx is out of memory";


void
ngx_http_dsa_redis_state_init(ngx_http_dsa_redis_connection_t *rc,
    const ngx_http_dsa_redis_conf_t *conf, ngx_log_t *log,
    const ngx_http_dsa_redis_events_t *events, void *data)
{
    rc->conf = conf;
    rc->events = events;
    rc->data = data;

    ngx_http_dsa_redis_commands_init(&rc->commands);

    rc->log = *log;
    rc->log_level = log->log_level;
    rc->log.handler = ngx_http_dsa_redis_log_error;
    rc->log.data = rc;
    rc->log.action = NULL;

    rc->dumb.fd = (ngx_socket_t) -1;
    rc->dumb.data = rc;

    rc->reconnect.data = &rc->dumb;
    rc->reconnect.log = &rc->log;
    rc->reconnect.cancelable = 1;

    rc->ping.data = &rc->dumb;
    rc->ping.log = &rc->log;
    rc->ping.cancelable = 1;

    rc->backoff = NGX_HTTP_DSA_REDIS_BACKOFF_MIN;
}


void
ngx_http_dsa_redis_set_state(ngx_http_dsa_redis_connection_t *rc,
    ngx_http_dsa_redis_state_e state)
{
#if (NGX_DEBUG)
    static const char *const  names[] = {
        "down",                 /* as ngx_http_dsa_redis_state_e */
        "connecting",
        "in the TLS handshake",
        "connected",
        "ready"
    };

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, &rc->log, 0, "dsa redis %s",
                   names[state]);
#endif

    rc->state = state;

    rc->events->changed(rc->data, rc);
}


void
ngx_http_dsa_redis_set_cancelable(ngx_http_dsa_redis_connection_t *rc)
{
    ngx_connection_t  *c;

    c = rc->peer.connection;

    if (c != NULL) {
        c->read->cancelable = (rc->commands.n == 0);
        c->write->cancelable = (rc->commands.n == 0);
    }
}


void
ngx_http_dsa_redis_close(ngx_http_dsa_redis_connection_t *rc)
{
    ngx_pool_t        *pool;
    ngx_connection_t  *c;

    c = rc->peer.connection;

    if (c != NULL) {
        pool = c->pool;

        if (c->ssl != NULL) {
            c->ssl->no_wait_shutdown = 1;
            c->ssl->no_send_shutdown = 1;
            (void) ngx_ssl_shutdown(c);
        }

        ngx_close_connection(c);
        rc->peer.connection = NULL;

        if (pool != NULL) {
            ngx_destroy_pool(pool);
        }
    }

    dsa_resp_destroy(rc->resp);
    rc->resp = NULL;

    if (rc->ping.timer_set) {
        ngx_del_timer(&rc->ping);
    }

    ngx_http_dsa_redis_set_state(rc, ngx_http_dsa_redis_down);
}


void
ngx_http_dsa_redis_fail(ngx_http_dsa_redis_connection_t *rc, const char *why,
    ngx_err_t err, const char *detail, size_t len)
{
    ngx_uint_t  more;
    ngx_msec_t  delay;

    rc->log.log_level = rc->log_level;

    more = ngx_http_dsa_redis_primary_failed(&rc->primary);

    ngx_http_dsa_redis_report(rc, more, why, err, detail, len);

    ngx_http_dsa_redis_close(rc);

    if (more) {
        delay = NGX_HTTP_DSA_REDIS_NEXT;

    } else {
        delay = NGX_HTTP_DSA_REDIS_BACKOFF_MIN
                + ngx_random() % (rc->backoff - NGX_HTTP_DSA_REDIS_BACKOFF_MIN
                                  + 1);

        rc->backoff = ngx_min(rc->backoff * 2, NGX_HTTP_DSA_REDIS_BACKOFF_MAX);
    }

    ngx_add_timer(&rc->reconnect, delay);

    ngx_http_dsa_redis_commands_fail(&rc->commands, why);
}


/*
 * Logs one error for each change of the cause, not for each attempt.  more:
 * other addresses have not failed yet, so the level is "info".
 */

static void
ngx_http_dsa_redis_report(ngx_http_dsa_redis_connection_t *rc,
    ngx_uint_t more, const char *why, ngx_err_t err, const char *detail,
    size_t len)
{
    char        text[DSA_RESP_TEXT];
    ngx_uint_t  level;

    level = more || rc->reported == why ? NGX_LOG_INFO : NGX_LOG_ERR;

    if (!more) {
        rc->reported = why;
    }

    if (detail == NULL) {
        ngx_log_error(level, &rc->log, err, "%s", why);
        return;
    }

    ngx_log_error(level, &rc->log, err, "%s: \"%s\"", why,
                  dsa_resp_text(text, detail, len));
}


void
ngx_http_dsa_redis_report_up(ngx_http_dsa_redis_connection_t *rc)
{
    rc->unproven = 0;
    rc->backoff = NGX_HTTP_DSA_REDIS_BACKOFF_MIN;

    if (rc->reported != NULL) {
        rc->reported = NULL;
        ngx_log_error(NGX_LOG_NOTICE, &rc->log, 0,
                      "Redis is available again");
    }
}


static u_char *
ngx_http_dsa_redis_log_error(ngx_log_t *log, u_char *buf, size_t len)
{
    ngx_http_dsa_redis_connection_t  *rc = log->data;

    return rc->peer.name != NULL
           ? ngx_snprintf(buf, len, ", redis: %V", rc->peer.name) : buf;
}
