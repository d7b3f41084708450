
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_event_connect.h>

#include "ngx_http_dsa_redis_connection.h"
#include "ngx_http_dsa_redis_reply.h"
#include "ngx_http_dsa_redis_setup.h"


/*
 * hiredis has an asynchronous client as well.  The one of Debian 12 (0.14) has
 * no timeouts for connecting and for commands, blocks while it resolves names
 * and reads 16 KB per event, so only its codec is used.
 */

#define NGX_HTTP_DSA_REDIS_BUFFER  65536

/* reads in one event; other connections are served after them */

#define NGX_HTTP_DSA_REDIS_READS   16


static ngx_int_t ngx_http_dsa_redis_put_asking(
    ngx_http_dsa_redis_connection_t *rc);
static void ngx_http_dsa_redis_reconnect(ngx_event_t *ev);
static void ngx_http_dsa_redis_connect(ngx_http_dsa_redis_connection_t *rc);
static void ngx_http_dsa_redis_connected(ngx_http_dsa_redis_connection_t *rc);
static void ngx_http_dsa_redis_secure(ngx_http_dsa_redis_connection_t *rc);
static void ngx_http_dsa_redis_secured(ngx_connection_t *c);
static void ngx_http_dsa_redis_established(
    ngx_http_dsa_redis_connection_t *rc);
static void ngx_http_dsa_redis_ping(ngx_event_t *ev);
static void ngx_http_dsa_redis_write_handler(ngx_event_t *wev);
static void ngx_http_dsa_redis_send(ngx_http_dsa_redis_connection_t *rc);
static void ngx_http_dsa_redis_read_handler(ngx_event_t *rev);
static const char *ngx_http_dsa_redis_end(
    ngx_http_dsa_redis_connection_t *rc);
static void ngx_http_dsa_redis_set_timer(ngx_http_dsa_redis_connection_t *rc);
static void ngx_http_dsa_redis_timed_out(ngx_http_dsa_redis_connection_t *rc);


static const char  ngx_http_dsa_redis_unreachable[] =
    "Redis cannot be reached";
static const char  ngx_http_dsa_redis_timeout[] =
    "Redis does not answer in time";
static const char  ngx_http_dsa_redis_closed[] =
    "Redis closed the connection";
static const char  ngx_http_dsa_redis_silent[] =
    "Redis closed the connection before it replied; if the port is one of TLS, "
    "expected \"tls\"";
static const char  ngx_http_dsa_redis_uncertified[] =
    "Redis closed the connection after the TLS handshake; if it requires a "
    "certificate, expected \"tls_certificate\" and \"tls_key\"";
static const char  ngx_http_dsa_redis_tls_failed[] =
    "the TLS handshake with Redis failed; expected a port with TLS";
static const char  ngx_http_dsa_redis_untrusted[] =
    "the certificate of Redis is not accepted";


/* what one read has received; its content does not outlive the read */

static u_char  ngx_http_dsa_redis_buffer[NGX_HTTP_DSA_REDIS_BUFFER];


void
ngx_http_dsa_redis_connection_init(ngx_http_dsa_redis_connection_t *rc,
    const ngx_http_dsa_redis_conf_t *conf, ngx_log_t *log,
    const ngx_http_dsa_redis_events_t *events, void *data)
{
    ngx_http_dsa_redis_state_init(rc, conf, log, events, data);

    rc->reconnect.handler = ngx_http_dsa_redis_reconnect;
    rc->ping.handler = ngx_http_dsa_redis_ping;
}


void
ngx_http_dsa_redis_connection_start(ngx_http_dsa_redis_connection_t *rc)
{
    ngx_http_dsa_redis_connect(rc);
}


void
ngx_http_dsa_redis_connection_stop(ngx_http_dsa_redis_connection_t *rc)
{
    ngx_http_dsa_redis_command_t  *command;

    ngx_http_dsa_redis_close(rc);

    for (command = ngx_http_dsa_redis_commands_oldest(&rc->commands);
         command != NULL;
         command = ngx_http_dsa_redis_commands_oldest(&rc->commands))
    {
        ngx_http_dsa_redis_commands_remove(&rc->commands, command);
    }

    if (rc->reconnect.timer_set) {
        ngx_del_timer(&rc->reconnect);
    }

    if (rc->reconnect.posted) {
        ngx_delete_posted_event(&rc->reconnect);
    }
}


ngx_uint_t
ngx_http_dsa_redis_connection_usable(ngx_http_dsa_redis_connection_t *rc)
{
    return rc->state != ngx_http_dsa_redis_down
           || (rc->primary.node && !rc->reconnect.timer_set);
}


const char *
ngx_http_dsa_redis_connection_why(ngx_http_dsa_redis_connection_t *rc)
{
    return rc->reported != NULL ? rc->reported : ngx_http_dsa_redis_unreachable;
}


ngx_int_t
ngx_http_dsa_redis_connection_put(ngx_http_dsa_redis_connection_t *rc,
    ngx_http_dsa_redis_command_t *command)
{
    ngx_connection_t  *c;

    if (command->asking
        && ngx_http_dsa_redis_put_asking(rc) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_dsa_redis_commands_put(&rc->commands, command, rc->conf->timeout);

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, &rc->log, 0,
                   "dsa redis command %s: %uz bytes, %ui commands",
                   command->name, command->len, rc->commands.n);

    ngx_http_dsa_redis_set_cancelable(rc);

    if (rc->state == ngx_http_dsa_redis_down) {
        ngx_post_event(&rc->reconnect, &ngx_posted_events);
    }

    if (rc->state == ngx_http_dsa_redis_ready) {

        /*
         * The write handler runs after the events that nginx handles now.  So
         * the commands of these events are sent by one write, and a failure
         * does not call a handler from within this function.
         */

        c = rc->peer.connection;

        if (c->write->ready) {
            ngx_post_event(c->write, &ngx_posted_events);
        }

        ngx_http_dsa_redis_set_timer(rc);
    }

    return NGX_OK;
}


/* Its reply is of no interest: the command after it shows its effect. */

static ngx_int_t
ngx_http_dsa_redis_put_asking(ngx_http_dsa_redis_connection_t *rc)
{
    dsa_str_t                      argv;
    dsa_schema_command_t           cmd;
    ngx_http_dsa_redis_command_t  *command;

    argv = dsa_strz("ASKING");

    cmd.argc = 1;
    cmd.argv = &argv;

    command = ngx_http_dsa_redis_command_create(&cmd);
    if (command == NULL) {
        return NGX_ERROR;
    }

    command->probe = 1;

    ngx_http_dsa_redis_commands_put(&rc->commands, command, rc->conf->timeout);

    return NGX_OK;
}


void
ngx_http_dsa_redis_connection_retry_soon(ngx_http_dsa_redis_connection_t *rc)
{
    rc->backoff = NGX_HTTP_DSA_REDIS_BACKOFF_MIN;

    if (rc->reconnect.timer_set
        && (ngx_msec_int_t) (rc->reconnect.timer.key - ngx_current_msec)
           > 2 * NGX_HTTP_DSA_REDIS_BACKOFF_MIN)
    {
        ngx_del_timer(&rc->reconnect);
        ngx_add_timer(&rc->reconnect, NGX_HTTP_DSA_REDIS_BACKOFF_MIN);
    }
}


static void
ngx_http_dsa_redis_reconnect(ngx_event_t *ev)
{
    ngx_connection_t                 *dumb = ev->data;
    ngx_http_dsa_redis_connection_t  *rc = dumb->data;

    if (rc->primary.node && rc->commands.n == 0) {
        return;
    }

    ngx_http_dsa_redis_connect(rc);
}


static void
ngx_http_dsa_redis_connect(ngx_http_dsa_redis_connection_t *rc)
{
    ngx_int_t               ok;
    ngx_addr_t             *addr;
    ngx_connection_t       *c;
    ngx_peer_connection_t  *peer;

    rc->resp = dsa_resp_create(DSA_SCHEMA_MAX_REPLY, DSA_SCHEMA_MAX_ELEMENTS);
    if (rc->resp == NULL) {
        ngx_http_dsa_redis_fail(rc, ngx_http_dsa_redis_nomem, 0, NULL, 0);
        return;
    }

    rc->unfit = NULL;

    addr = ngx_http_dsa_redis_primary_next(&rc->primary);

    peer = &rc->peer;
    ngx_memzero(peer, sizeof(ngx_peer_connection_t));

    peer->sockaddr = addr->sockaddr;
    peer->socklen = addr->socklen;
    peer->name = &addr->name;
    peer->get = ngx_event_get_peer;
    peer->log = &rc->log;
    peer->log_error = NGX_ERROR_ERR;
    peer->so_keepalive = 1;

    ngx_http_dsa_redis_set_state(rc, ngx_http_dsa_redis_connecting);

    /* nginx logs each attempt that fails; one line for a cause is enough */

    if (rc->reported == ngx_http_dsa_redis_unreachable
        || rc->reported == ngx_http_dsa_redis_tls_failed)
    {
        rc->log.log_level = NGX_LOG_ALERT;
    }

    ok = ngx_event_connect_peer(peer);

    if (ok != NGX_OK && ok != NGX_AGAIN) {
        ngx_http_dsa_redis_fail(rc, ngx_http_dsa_redis_unreachable, 0, NULL,
                                0);
        return;
    }

    c = peer->connection;
    c->data = rc;

    c->read->handler = ngx_http_dsa_redis_read_handler;
    c->write->handler = ngx_http_dsa_redis_write_handler;

    /*
     * When worker_shutdown_timeout is over, nginx closes all connections that
     * are not channels.  The requests that end then still need this one.
     */

    c->read->channel = 1;
    c->write->channel = 1;

    ngx_http_dsa_redis_set_cancelable(rc);

    if (ok == NGX_AGAIN) {
        ngx_add_timer(c->write, rc->conf->connect_timeout);
        return;
    }

    ngx_http_dsa_redis_connected(rc);
}


static void
ngx_http_dsa_redis_connected(ngx_http_dsa_redis_connection_t *rc)
{
    ngx_connection_t  *c;

    c = rc->peer.connection;

    if (rc->peer.sockaddr->sa_family != AF_UNIX
        && ngx_tcp_nodelay(c) != NGX_OK)
    {
        ngx_http_dsa_redis_fail(rc, ngx_http_dsa_redis_unreachable, 0, NULL,
                                0);
        return;
    }

    if (rc->conf->tls->on) {
        ngx_http_dsa_redis_secure(rc);

    } else {
        ngx_http_dsa_redis_established(rc);
    }
}


/* The timer of connecting goes on during the handshake of TLS. */

static void
ngx_http_dsa_redis_secure(ngx_http_dsa_redis_connection_t *rc)
{
    ngx_connection_t  *c;

    c = rc->peer.connection;

    ngx_http_dsa_redis_set_state(rc, ngx_http_dsa_redis_handshake);

    c->pool = ngx_create_pool(512, &rc->log);

    if (c->pool == NULL
        || ngx_http_dsa_redis_tls_start(rc->conf->tls, c, &rc->primary.host)
           != NGX_OK)
    {
        ngx_http_dsa_redis_fail(rc, ngx_http_dsa_redis_nomem, 0, NULL, 0);
        return;
    }

    if (!c->write->timer_set) {
        ngx_add_timer(c->write, rc->conf->connect_timeout);
    }

    if (ngx_ssl_handshake(c) == NGX_AGAIN) {
        c->ssl->handler = ngx_http_dsa_redis_secured;
        return;
    }

    ngx_http_dsa_redis_secured(c);
}


static void
ngx_http_dsa_redis_secured(ngx_connection_t *c)
{
    u_char                            buf[NGX_HTTP_DSA_REDIS_TLS_DETAIL];
    ngx_str_t                         detail;
    ngx_http_dsa_redis_connection_t  *rc = c->data;

    if (!c->ssl->handshaked) {
        ngx_http_dsa_redis_fail(rc, ngx_http_dsa_redis_tls_failed,
                                c->write->timedout ? NGX_ETIMEDOUT : 0, NULL,
                                0);
        return;
    }

    if (ngx_http_dsa_redis_tls_verify(rc->conf->tls, c, &rc->primary.host,
                                      &detail, buf)
        != NGX_OK)
    {
        ngx_http_dsa_redis_fail(rc, ngx_http_dsa_redis_untrusted, 0,
                                (char *) detail.data, detail.len);
        return;
    }

    c->read->handler = ngx_http_dsa_redis_read_handler;
    c->write->handler = ngx_http_dsa_redis_write_handler;

    ngx_http_dsa_redis_established(rc);
}


static void
ngx_http_dsa_redis_established(ngx_http_dsa_redis_connection_t *rc)
{
    ngx_int_t          ok;
    ngx_connection_t  *c;

    c = rc->peer.connection;

    if (c->write->timer_set) {
        ngx_del_timer(c->write);
    }

    rc->log.log_level = rc->log_level;

    ngx_http_dsa_redis_set_state(rc, ngx_http_dsa_redis_setup);

    ok = rc->primary.sentinel
         ? ngx_http_dsa_redis_setup_sentinel(&rc->commands, rc->conf)
         : ngx_http_dsa_redis_setup_commands(&rc->commands, rc->conf);

    if (ok != NGX_OK) {
        ngx_http_dsa_redis_fail(rc, ngx_http_dsa_redis_nomem, 0, NULL, 0);
        return;
    }

    ngx_http_dsa_redis_set_cancelable(rc);
    ngx_http_dsa_redis_set_timer(rc);

    ngx_post_event(c->write, &ngx_posted_events);

    if (c->read->ready) {

        /* the read event came before, and nginx does not report it again */

        ngx_post_event(c->read, &ngx_posted_events);
    }
}


/* Sends a PING if no command waits, so that no request is the first to fail. */

static void
ngx_http_dsa_redis_ping(ngx_event_t *ev)
{
    dsa_str_t                         argv;
    ngx_connection_t                 *dumb = ev->data;
    dsa_schema_command_t              cmd;
    ngx_http_dsa_redis_command_t     *command;
    ngx_http_dsa_redis_connection_t  *rc = dumb->data;

    ngx_add_timer(ev, NGX_HTTP_DSA_REDIS_PING);

    if (rc->commands.n != 0) {
        return;
    }

    argv = dsa_strz("PING");

    cmd.argc = 1;
    cmd.argv = &argv;

    command = ngx_http_dsa_redis_command_create(&cmd);

    if (command != NULL) {
        (void) ngx_http_dsa_redis_connection_put(rc, command);
    }
}


static void
ngx_http_dsa_redis_write_handler(ngx_event_t *wev)
{
    int                               err;
    socklen_t                         len;
    ngx_connection_t                 *c = wev->data;
    ngx_http_dsa_redis_connection_t  *rc = c->data;

    if (rc->state != ngx_http_dsa_redis_connecting) {
        ngx_http_dsa_redis_send(rc);
        return;
    }

    if (wev->timedout) {
        ngx_http_dsa_redis_fail(rc, ngx_http_dsa_redis_unreachable,
                                NGX_ETIMEDOUT, NULL, 0);
        return;
    }

    err = 0;
    len = sizeof(int);

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len) == -1) {
        err = ngx_socket_errno;
    }

    if (err != 0) {
        ngx_http_dsa_redis_fail(rc, ngx_http_dsa_redis_unreachable, err, NULL,
                                0);
        return;
    }

    ngx_http_dsa_redis_connected(rc);
}


static void
ngx_http_dsa_redis_send(ngx_http_dsa_redis_connection_t *rc)
{
    ngx_uint_t         setup;
    ngx_connection_t  *c;

    c = rc->peer.connection;

    /*
     * Other commands wait until the setup has succeeded, because they would
     * run as another user or in another database.
     */

    setup = (rc->state != ngx_http_dsa_redis_ready);

    if (ngx_http_dsa_redis_commands_send(&rc->commands, c, setup) != NGX_OK
        || ngx_handle_write_event(c->write, 0) != NGX_OK)
    {
        ngx_http_dsa_redis_fail(rc, ngx_http_dsa_redis_end(rc), 0, NULL, 0);
    }
}


static void
ngx_http_dsa_redis_read_handler(ngx_event_t *rev)
{
    ssize_t                           n;
    ngx_int_t                         ok;
    ngx_uint_t                        i;
    ngx_connection_t                 *c = rev->data;
    ngx_http_dsa_redis_connection_t  *rc = c->data;

    if (rev->timedout) {
        rev->timedout = 0;
        ngx_http_dsa_redis_timed_out(rc);
        return;
    }

    if (rc->state == ngx_http_dsa_redis_connecting) {

        /* the write event reports the result of connecting */

        return;
    }

    for (i = 0; i < NGX_HTTP_DSA_REDIS_READS; i++) {

        n = c->recv(c, ngx_http_dsa_redis_buffer, NGX_HTTP_DSA_REDIS_BUFFER);

        if (n == NGX_AGAIN) {
            break;
        }

        if (n == NGX_ERROR || n == 0) {
            ngx_http_dsa_redis_fail(rc, ngx_http_dsa_redis_end(rc), 0, NULL,
                                    0);
            return;
        }

        ok = ngx_http_dsa_redis_replies(rc, ngx_http_dsa_redis_buffer, n);

        if (ok == NGX_DONE) {

            /* the commands that wait stay in the queue */

            ngx_http_dsa_redis_close(rc);
            ngx_http_dsa_redis_connect(rc);
            return;
        }

        if (ok != NGX_OK) {
            return;
        }
    }

    if (i == NGX_HTTP_DSA_REDIS_READS) {
        ngx_post_event(rev, &ngx_posted_next_events);
    }

    if (ngx_handle_read_event(rev, 0) != NGX_OK) {
        ngx_http_dsa_redis_fail(rc, ngx_http_dsa_redis_closed, 0, NULL, 0);
    }
}


/* Why the connection ended, as far as its state shows it. */

static const char *
ngx_http_dsa_redis_end(ngx_http_dsa_redis_connection_t *rc)
{
    if (rc->state != ngx_http_dsa_redis_setup) {
        return ngx_http_dsa_redis_closed;
    }

    if (!rc->conf->tls->on) {
        return ngx_http_dsa_redis_silent;
    }

    return rc->conf->tls->certificate.len == 0 ? ngx_http_dsa_redis_uncertified
                                               : ngx_http_dsa_redis_closed;
}


/*
 * The timer is set while commands wait.  If it fires before the deadline of the
 * oldest one, it is set again.
 */

static void
ngx_http_dsa_redis_set_timer(ngx_http_dsa_redis_connection_t *rc)
{
    ngx_event_t  *rev;

    rev = rc->peer.connection->read;

    if (!rev->timer_set) {
        ngx_add_timer(rev, rc->conf->timeout);
    }
}


static void
ngx_http_dsa_redis_timed_out(ngx_http_dsa_redis_connection_t *rc)
{
    ngx_msec_int_t                 left;
    ngx_http_dsa_redis_command_t  *command;

    command = ngx_http_dsa_redis_commands_oldest(&rc->commands);

    if (command == NULL) {
        return;
    }

    left = (ngx_msec_int_t) (command->deadline - ngx_current_msec);

    if (left > 0) {
        ngx_add_timer(rc->peer.connection->read, left);
        return;
    }

    ngx_http_dsa_redis_fail(rc, ngx_http_dsa_redis_timeout, 0, NULL, 0);
}
