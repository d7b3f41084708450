
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_event_connect.h>

#include "ngx_http_dsa_redis_connection.h"
#include "ngx_http_dsa_redis_setup.h"


/*
 * hiredis has an asynchronous client as well.  The one of Debian 12 (0.14) has
 * no timeouts for connecting and for commands, blocks while it resolves names
 * and reads 16 KB per event, so only its codec is used.
 */

#define NGX_HTTP_DSA_REDIS_BACKOFF_MIN  100         /* milliseconds */
#define NGX_HTTP_DSA_REDIS_BACKOFF_MAX  5000
#define NGX_HTTP_DSA_REDIS_NEXT         10          /* before another address */
#define NGX_HTTP_DSA_REDIS_PING         15000

#define NGX_HTTP_DSA_REDIS_BUFFER       65536

/* reads in one event; other connections are served after them */

#define NGX_HTTP_DSA_REDIS_READS        16


static void ngx_http_dsa_redis_connect(ngx_http_dsa_redis_connection_t *rc);
static ngx_int_t ngx_http_dsa_redis_put_asking(
    ngx_http_dsa_redis_connection_t *rc);
static void ngx_http_dsa_redis_reconnect(ngx_event_t *ev);
static void ngx_http_dsa_redis_set_state(ngx_http_dsa_redis_connection_t *rc,
    ngx_http_dsa_redis_state_e state);
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
static ngx_int_t ngx_http_dsa_redis_replies(
    ngx_http_dsa_redis_connection_t *rc);
static ngx_int_t ngx_http_dsa_redis_reply(ngx_http_dsa_redis_connection_t *rc,
    redisReply *reply);
static ngx_int_t ngx_http_dsa_redis_setup_end(
    ngx_http_dsa_redis_connection_t *rc, redisReply *reply,
    ngx_uint_t cluster);
static ngx_int_t ngx_http_dsa_redis_found(ngx_http_dsa_redis_connection_t *rc,
    redisReply *reply);
static ngx_int_t ngx_http_dsa_redis_stray(ngx_http_dsa_redis_connection_t *rc,
    redisReply *reply);
static void ngx_http_dsa_redis_set_ready(ngx_http_dsa_redis_connection_t *rc);
static void ngx_http_dsa_redis_set_timer(ngx_http_dsa_redis_connection_t *rc);
static void ngx_http_dsa_redis_timed_out(ngx_http_dsa_redis_connection_t *rc);
static void ngx_http_dsa_redis_set_cancelable(
    ngx_http_dsa_redis_connection_t *rc);
static void ngx_http_dsa_redis_close(ngx_http_dsa_redis_connection_t *rc);
static void ngx_http_dsa_redis_fail(ngx_http_dsa_redis_connection_t *rc,
    const char *why, ngx_err_t err, const char *detail, size_t len);
static void ngx_http_dsa_redis_report(ngx_http_dsa_redis_connection_t *rc,
    ngx_uint_t more, const char *why, ngx_err_t err, const char *detail,
    size_t len);
static void ngx_http_dsa_redis_report_up(ngx_http_dsa_redis_connection_t *rc);
static u_char *ngx_http_dsa_redis_log_error(ngx_log_t *log, u_char *buf,
    size_t len);


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
static const char  ngx_http_dsa_redis_protocol_error[] =
    "Redis sent something that is not a valid reply";
static const char  ngx_http_dsa_redis_rejected[] =
    "Redis rejects the connection";
static const char  ngx_http_dsa_redis_nomem[] =
    "nginx is out of memory";


/* the reply that the handler which runs has kept, or NULL */

static redisReply  *ngx_http_dsa_redis_kept;

/* what one read has received; its content does not outlive the read */

static u_char       ngx_http_dsa_redis_buffer[NGX_HTTP_DSA_REDIS_BUFFER];


void
ngx_http_dsa_redis_connection_init(ngx_http_dsa_redis_connection_t *rc,
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

    rc->reconnect.handler = ngx_http_dsa_redis_reconnect;
    rc->reconnect.data = &rc->dumb;
    rc->reconnect.log = &rc->log;
    rc->reconnect.cancelable = 1;

    rc->ping.handler = ngx_http_dsa_redis_ping;
    rc->ping.data = &rc->dumb;
    rc->ping.log = &rc->log;
    rc->ping.cancelable = 1;

    rc->backoff = NGX_HTTP_DSA_REDIS_BACKOFF_MIN;
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
ngx_http_dsa_redis_connection_keep(redisReply *reply)
{
    ngx_http_dsa_redis_kept = reply;
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
    dsa_err_t                         err;
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

        if (dsa_resp_feed(rc->resp, ngx_http_dsa_redis_buffer, n, &err)
            != DSA_OK)
        {
            ngx_http_dsa_redis_fail(rc, ngx_http_dsa_redis_protocol_error, 0,
                                    err.text, ngx_strlen(err.text));
            return;
        }

        if (ngx_http_dsa_redis_replies(rc) != NGX_OK) {
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


/* NGX_ERROR: the connection failed and is closed. */

static ngx_int_t
ngx_http_dsa_redis_replies(ngx_http_dsa_redis_connection_t *rc)
{
    int          next;
    dsa_err_t    err;
    ngx_int_t    ok;
    redisReply  *reply;

    for ( ;; ) {

        next = dsa_resp_next(rc->resp, &reply, &err);

        if (next == DSA_AGAIN) {
            return NGX_OK;
        }

        if (next != DSA_OK) {
            ngx_http_dsa_redis_fail(rc, ngx_http_dsa_redis_protocol_error, 0,
                                    err.text, ngx_strlen(err.text));
            return NGX_ERROR;
        }

        ok = ngx_http_dsa_redis_reply(rc, reply);

        if (reply != ngx_http_dsa_redis_kept) {
            freeReplyObject(reply);
        }

        ngx_http_dsa_redis_kept = NULL;

        if (ok != NGX_OK) {
            return NGX_ERROR;
        }
    }
}


/* NGX_ERROR: the connection failed and is closed. */

static ngx_int_t
ngx_http_dsa_redis_reply(ngx_http_dsa_redis_connection_t *rc,
    redisReply *reply)
{
    void                          *data;
    ngx_uint_t                     setup, last, role, cluster, probe;
    const char                    *why;
    dsa_cluster_reply_e            kind;
    ngx_http_dsa_redis_pt          handler;
    ngx_http_dsa_redis_command_t  *command;

    command = ngx_http_dsa_redis_commands_next(&rc->commands);

    if (command == NULL) {
        return ngx_http_dsa_redis_stray(rc, reply);
    }

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, &rc->log, 0,
                   "dsa redis reply to %s: type %d, %ui commands",
                   command->name, reply->type, rc->commands.n - 1);

    kind = command->setup ? DSA_CLUSTER_OTHER : dsa_cluster_reply(reply);

    if (kind != DSA_CLUSTER_OTHER) {
        ngx_http_dsa_redis_commands_take(&rc->commands, command);
        ngx_http_dsa_redis_set_cancelable(rc);

        rc->events->refused(rc->data, rc, command, reply, kind);

        return NGX_OK;
    }

    setup = command->setup;
    last = command->last;
    role = command->role;
    cluster = command->cluster;
    probe = command->probe;
    handler = command->handler;
    data = command->data;

    ngx_http_dsa_redis_commands_remove(&rc->commands, command);
    ngx_http_dsa_redis_set_cancelable(rc);

    if (role) {
        rc->unfit = ngx_http_dsa_redis_primary_role(reply);
    }

    if (last && rc->unfit != NULL) {
        return ngx_http_dsa_redis_setup_end(rc, reply, cluster);
    }

    why = dsa_resp_refusal(reply);

    if (reply->type == REDIS_REPLY_ERROR && (why != NULL || setup)
        && !(role && dsa_resp_is_error(reply, "NOPERM")))
    {

        if (!setup) {
            rc->unproven = 1;
        }

        ngx_http_dsa_redis_fail(rc, why != NULL ? why
                                                : ngx_http_dsa_redis_rejected,
                                0, reply->str, reply->len);

        if (handler != NULL) {
            handler(data, reply, why);
        }

        return NGX_ERROR;
    }

    if (setup) {

        if (last && rc->primary.sentinel) {
            return ngx_http_dsa_redis_found(rc, reply);
        }

        if (last) {
            ngx_http_dsa_redis_set_ready(rc);
        }

        return NGX_OK;
    }

    if (handler == NULL) {
        return NGX_OK;
    }

    if (rc->reported != NULL && !probe) {
        ngx_http_dsa_redis_report_up(rc);
    }

    handler(data, reply, NULL);

    return NGX_OK;
}


/*
 * The last reply of the setup of a Redis that is not a primary.  A replica in a
 * cluster redirects each command to the node that has its keys, so it can be
 * used, and it may be the only one that is known.  Elsewhere a replica would
 * execute commands that read, with what it has.  ASKING succeeds in a cluster
 * alone, and a replica does not act on it.  cluster: this is the reply to it.
 * NGX_ERROR: the connection failed and is closed.
 */

static ngx_int_t
ngx_http_dsa_redis_setup_end(ngx_http_dsa_redis_connection_t *rc,
    redisReply *reply, ngx_uint_t cluster)
{
    if (!cluster) {

        if (ngx_http_dsa_redis_setup_cluster(&rc->commands, rc->conf)
            != NGX_OK)
        {
            ngx_http_dsa_redis_fail(rc, ngx_http_dsa_redis_nomem, 0, NULL, 0);
            return NGX_ERROR;
        }

        ngx_http_dsa_redis_set_cancelable(rc);
        ngx_post_event(rc->peer.connection->write, &ngx_posted_events);

        return NGX_OK;
    }

    if (dsa_resp_is_error(reply, "NOPERM")) {
        ngx_http_dsa_redis_fail(rc, rc->unfit, 0, reply->str, reply->len);
        return NGX_ERROR;
    }

    if (reply->type == REDIS_REPLY_ERROR) {
        ngx_http_dsa_redis_fail(rc, rc->unfit, 0, NULL, 0);
        return NGX_ERROR;
    }

    ngx_http_dsa_redis_set_ready(rc);

    return NGX_OK;
}


/*
 * A Sentinel has replied: connects to the primary.  The commands that wait stay
 * in the queue.  NGX_ERROR: the connection to the Sentinel is closed.
 */

static ngx_int_t
ngx_http_dsa_redis_found(ngx_http_dsa_redis_connection_t *rc,
    redisReply *reply)
{
    const char  *why;

    why = ngx_http_dsa_redis_primary_answer(&rc->primary, reply);

    if (why != NULL) {
        ngx_http_dsa_redis_fail(rc, why, 0, NULL, 0);
        return NGX_ERROR;
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, &rc->log, 0,
                   "dsa redis sentinel: the primary is %V",
                   &rc->primary.found.name);

    ngx_http_dsa_redis_close(rc);
    ngx_http_dsa_redis_connect(rc);

    return NGX_ERROR;
}


/*
 * A reply without a command.  Redis sends an error such as "max number of
 * clients reached" before it closes a new connection.
 */

static ngx_int_t
ngx_http_dsa_redis_stray(ngx_http_dsa_redis_connection_t *rc,
    redisReply *reply)
{
    const char  *why;

    static const char  text[] = "a reply without a command";

    if (reply->type != REDIS_REPLY_ERROR) {
        ngx_http_dsa_redis_fail(rc, ngx_http_dsa_redis_protocol_error, 0,
                                text, sizeof(text) - 1);
        return NGX_ERROR;
    }

    why = dsa_resp_refusal(reply);

    ngx_http_dsa_redis_fail(rc, why != NULL ? why
                                            : ngx_http_dsa_redis_rejected,
                            0, reply->str, reply->len);

    return NGX_ERROR;
}


static void
ngx_http_dsa_redis_set_ready(ngx_http_dsa_redis_connection_t *rc)
{
    ngx_http_dsa_redis_set_state(rc, ngx_http_dsa_redis_ready);
    ngx_http_dsa_redis_primary_good(&rc->primary);

    /*
     * The setup succeeds even if Redis refuses commands with an error such as
     * MOVED.  After such an error, only the reply to a command shows that Redis
     * can be used again.
     */

    if (!rc->unproven) {
        ngx_http_dsa_redis_report_up(rc);
    }

    ngx_add_timer(&rc->ping, NGX_HTTP_DSA_REDIS_PING);

    rc->events->ready(rc->data);

    ngx_post_event(rc->peer.connection->write, &ngx_posted_events);
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


/*
 * While commands wait, the timers of the connection keep a worker that shuts
 * down from exiting.
 */

static void
ngx_http_dsa_redis_set_cancelable(ngx_http_dsa_redis_connection_t *rc)
{
    ngx_connection_t  *c;

    c = rc->peer.connection;

    if (c != NULL) {
        c->read->cancelable = (rc->commands.n == 0);
        c->write->cancelable = (rc->commands.n == 0);
    }
}


static void
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


/*
 * Ends the connection.  The handlers of the waiting commands come last, when it
 * is closed and the next attempt to connect is scheduled, so that they may
 * queue other commands.
 */

static void
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


static void
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
