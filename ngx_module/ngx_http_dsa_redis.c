
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_event_connect.h>
#include <ngx_http.h>

#include "redis_schema/resp.h"
#include "redis_schema/schema.h"
#include "ngx_http_dsa_redis.h"
#include "ngx_http_dsa_redis_conf.h"


/*
 * hiredis has an asynchronous client too.  The one of Debian 12 (0.14) has no
 * timeouts for connecting and commands, resolves names by blocking and reads
 * 16 KB an event, so only its codec is used.
 */


/* commands in a worker that wait for a reply, and their unsent bytes */

#define NGX_HTTP_DSA_REDIS_MAX_CALLS    4096
#define NGX_HTTP_DSA_REDIS_MAX_OUT      (64 * 1024 * 1024)

#define NGX_HTTP_DSA_REDIS_BACKOFF_MIN  100         /* milliseconds */
#define NGX_HTTP_DSA_REDIS_BACKOFF_MAX  5000
#define NGX_HTTP_DSA_REDIS_PING         15000

#define NGX_HTTP_DSA_REDIS_BUFFER       65536

/* one event's share: reads, and pieces in a write */

#define NGX_HTTP_DSA_REDIS_READS        16
#define NGX_HTTP_DSA_REDIS_PIECES       64


typedef enum {
    ngx_http_dsa_redis_down = 0,        /* until the reconnect timer */
    ngx_http_dsa_redis_connecting,
    ngx_http_dsa_redis_greeting,        /* AUTH, SELECT, PING */
    ngx_http_dsa_redis_ready
} ngx_http_dsa_redis_state_e;


struct ngx_http_dsa_redis_call_s {
    ngx_queue_t                   queue;
    ngx_http_dsa_redis_pt         handler;  /* NULL: nobody waits */
    void                         *data;
    char                         *command;  /* freed when sent */
    size_t                        len;
    size_t                        pos;
    ngx_msec_t                    deadline;
    unsigned                      greeting:1;
    unsigned                      last:1;
};


struct ngx_http_dsa_redis_s {
    ngx_http_dsa_redis_conf_t     conf;

    /* a worker's */

    ngx_http_dsa_redis_state_e    state;
    ngx_peer_connection_t         peer;
    ngx_uint_t                    addr;
    ngx_log_t                     log;
    ngx_connection_t              dumb;     /* the timers' data */
    ngx_event_t                   reconnect;
    ngx_event_t                   ping;
    ngx_msec_t                    backoff;

    ngx_queue_t                   sent;     /* of calls, oldest first */
    ngx_queue_t                   unsent;
    ngx_uint_t                    calls;
    size_t                        out;

    dsa_resp_t                   *resp;
    u_char                       *buffer;

    const char                   *told;     /* the failure last logged */
    ngx_http_dsa_redis_hooks_t    hooks;
    unsigned                      suspect:1;
};


static u_char *ngx_http_dsa_redis_log_error(ngx_log_t *log, u_char *buf,
    size_t len);
static void ngx_http_dsa_redis_reconnect(ngx_event_t *ev);
static void ngx_http_dsa_redis_ping(ngx_event_t *ev);
static void ngx_http_dsa_redis_connect(ngx_http_dsa_redis_t *redis);
static void ngx_http_dsa_redis_greet(ngx_http_dsa_redis_t *redis);
static ngx_int_t ngx_http_dsa_redis_greeting_call(
    ngx_http_dsa_redis_t *redis, ngx_uint_t argc, const ngx_str_t *argv,
    ngx_uint_t last);
static ngx_http_dsa_redis_call_t *ngx_http_dsa_redis_call(ngx_uint_t argc,
    const ngx_str_t *argv);
static void ngx_http_dsa_redis_count_call(ngx_http_dsa_redis_t *redis,
    ngx_http_dsa_redis_call_t *call);
static void ngx_http_dsa_redis_free_call(ngx_http_dsa_redis_t *redis,
    ngx_http_dsa_redis_call_t *call);
static void ngx_http_dsa_redis_hold(ngx_http_dsa_redis_t *redis);
static void ngx_http_dsa_redis_write_handler(ngx_event_t *wev);
static void ngx_http_dsa_redis_send(ngx_http_dsa_redis_t *redis);
static void ngx_http_dsa_redis_sent(ngx_http_dsa_redis_t *redis, off_t n);
static void ngx_http_dsa_redis_read_handler(ngx_event_t *rev);
static ngx_int_t ngx_http_dsa_redis_replies(ngx_http_dsa_redis_t *redis);
static ngx_int_t ngx_http_dsa_redis_reply(ngx_http_dsa_redis_t *redis,
    redisReply *reply);
static void ngx_http_dsa_redis_ready_now(ngx_http_dsa_redis_t *redis);
static void ngx_http_dsa_redis_timed_out(ngx_http_dsa_redis_t *redis);
static void ngx_http_dsa_redis_watch(ngx_http_dsa_redis_t *redis);
static ngx_http_dsa_redis_call_t *ngx_http_dsa_redis_oldest(
    ngx_http_dsa_redis_t *redis);
static void ngx_http_dsa_redis_tell(ngx_http_dsa_redis_t *redis,
    const char *why, ngx_err_t err, const char *detail, size_t len);
static void ngx_http_dsa_redis_back(ngx_http_dsa_redis_t *redis);
static void ngx_http_dsa_redis_fail(ngx_http_dsa_redis_t *redis,
    const char *why, ngx_err_t err, const char *detail, size_t len);


static const char  ngx_http_dsa_redis_unreachable[] =
    "Redis cannot be reached";
static const char  ngx_http_dsa_redis_silent[] =
    "Redis does not answer in time";
static const char  ngx_http_dsa_redis_closed[] =
    "Redis closed the connection";
static const char  ngx_http_dsa_redis_garbled[] =
    "Redis answered with something that is no reply";
static const char  ngx_http_dsa_redis_unwelcome[] =
    "Redis does not let us in";
static const char  ngx_http_dsa_redis_busy[] =
    "too many commands wait for Redis";
static const char  ngx_http_dsa_redis_nomem[] =
    "no memory for a command to Redis";


ngx_http_dsa_redis_t *
ngx_http_dsa_redis_create(ngx_conf_t *cf,
    const ngx_http_dsa_redis_conf_t *conf)
{
    ngx_http_dsa_redis_t  *redis;

    redis = ngx_pcalloc(cf->pool, sizeof(ngx_http_dsa_redis_t));

    if (redis != NULL) {
        redis->conf = *conf;
    }

    return redis;
}


ngx_int_t
ngx_http_dsa_redis_init_worker(ngx_http_dsa_redis_t *redis,
    ngx_cycle_t *cycle)
{
    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return NGX_OK;
    }

    redis->buffer = ngx_palloc(cycle->pool, NGX_HTTP_DSA_REDIS_BUFFER);
    if (redis->buffer == NULL) {
        return NGX_ERROR;
    }

    ngx_queue_init(&redis->sent);
    ngx_queue_init(&redis->unsent);

    redis->log = *cycle->log;
    redis->log.handler = ngx_http_dsa_redis_log_error;
    redis->log.data = redis;
    redis->log.action = NULL;

    redis->dumb.fd = (ngx_socket_t) -1;
    redis->dumb.data = redis;

    redis->reconnect.handler = ngx_http_dsa_redis_reconnect;
    redis->reconnect.data = &redis->dumb;
    redis->reconnect.log = &redis->log;
    redis->reconnect.cancelable = 1;

    redis->ping.handler = ngx_http_dsa_redis_ping;
    redis->ping.data = &redis->dumb;
    redis->ping.log = &redis->log;
    redis->ping.cancelable = 1;

    redis->backoff = NGX_HTTP_DSA_REDIS_BACKOFF_MIN;

    /* the workers of a host do not all begin with the same address */

    redis->addr = ngx_worker % redis->conf.url.naddrs;

    ngx_http_dsa_redis_connect(redis);

    return NGX_OK;
}


void
ngx_http_dsa_redis_exit_worker(ngx_http_dsa_redis_t *redis)
{
    ngx_http_dsa_redis_call_t  *call;

    if (redis->buffer == NULL) {
        return;
    }

    if (redis->hooks.data != NULL) {
        redis->hooks.done(redis->hooks.data);
    }

    if (redis->peer.connection != NULL) {
        ngx_close_connection(redis->peer.connection);
        redis->peer.connection = NULL;
    }

    redis->state = ngx_http_dsa_redis_down;

    for (call = ngx_http_dsa_redis_oldest(redis);
         call != NULL;
         call = ngx_http_dsa_redis_oldest(redis))
    {
        ngx_http_dsa_redis_free_call(redis, call);
    }

    if (redis->reconnect.timer_set) {
        ngx_del_timer(&redis->reconnect);
    }

    if (redis->ping.timer_set) {
        ngx_del_timer(&redis->ping);
    }

    dsa_resp_destroy(redis->resp);
    redis->resp = NULL;
}


ngx_uint_t
ngx_http_dsa_redis_up(ngx_http_dsa_redis_t *redis)
{
    return redis->state == ngx_http_dsa_redis_ready;
}


void
ngx_http_dsa_redis_hurry(ngx_http_dsa_redis_t *redis)
{
    redis->backoff = NGX_HTTP_DSA_REDIS_BACKOFF_MIN;

    if (redis->reconnect.timer_set
        && (ngx_msec_int_t) (redis->reconnect.timer.key - ngx_current_msec)
           > 2 * NGX_HTTP_DSA_REDIS_BACKOFF_MIN)
    {
        ngx_del_timer(&redis->reconnect);
        ngx_add_timer(&redis->reconnect, NGX_HTTP_DSA_REDIS_BACKOFF_MIN);
    }
}


ngx_http_dsa_redis_hooks_t *
ngx_http_dsa_redis_hooks(ngx_http_dsa_redis_t *redis)
{
    return &redis->hooks;
}


ngx_http_dsa_ledger_t *
ngx_http_dsa_redis_ledger(ngx_http_dsa_redis_t *redis)
{
    return redis->conf.ledger;
}


ngx_msec_t
ngx_http_dsa_redis_timeout(ngx_http_dsa_redis_t *redis)
{
    return redis->conf.timeout;
}


time_t
ngx_http_dsa_redis_ttl(ngx_http_dsa_redis_t *redis)
{
    return redis->conf.ttl;
}


ngx_http_dsa_redis_call_t *
ngx_http_dsa_redis_command(ngx_http_dsa_redis_t *redis, ngx_uint_t argc,
    const ngx_str_t *argv, ngx_http_dsa_redis_pt handler, void *data)
{
    const char                 *why;
    ngx_connection_t           *c;
    ngx_http_dsa_redis_call_t  *call;

    if (redis->state == ngx_http_dsa_redis_down) {
        why = redis->told != NULL ? redis->told
                                  : ngx_http_dsa_redis_unreachable;
        goto failed;
    }

    if (redis->calls >= NGX_HTTP_DSA_REDIS_MAX_CALLS
        || redis->out >= NGX_HTTP_DSA_REDIS_MAX_OUT)
    {
        why = ngx_http_dsa_redis_busy;
        goto failed;
    }

    call = ngx_http_dsa_redis_call(argc, argv);
    if (call == NULL) {
        why = ngx_http_dsa_redis_nomem;
        goto failed;
    }

    call->handler = handler;
    call->data = data;
    call->deadline = ngx_current_msec + redis->conf.timeout;

    ngx_queue_insert_tail(&redis->unsent, &call->queue);
    ngx_http_dsa_redis_count_call(redis, call);

    if (redis->state == ngx_http_dsa_redis_ready) {

        /*
         * Written after the events of this turn: commands go out together,
         * and no failure can call handlers from within here.
         */

        c = redis->peer.connection;

        if (c->write->ready) {
            ngx_post_event(c->write, &ngx_posted_events);
        }

        ngx_http_dsa_redis_watch(redis);
    }

    return call;

failed:

    handler(data, NULL, why);

    return NULL;
}


void
ngx_http_dsa_redis_detach(ngx_http_dsa_redis_call_t *call)
{
    call->handler = NULL;
}


static ngx_http_dsa_redis_call_t *
ngx_http_dsa_redis_call(ngx_uint_t argc, const ngx_str_t *argv)
{
    int                         len;
    size_t                     *lens;
    ngx_uint_t                  i;
    const char                **words;
    ngx_http_dsa_redis_call_t  *call;

    call = ngx_calloc(sizeof(ngx_http_dsa_redis_call_t), ngx_cycle->log);
    if (call == NULL) {
        return NULL;
    }

    words = ngx_alloc(argc * (sizeof(char *) + sizeof(size_t)),
                      ngx_cycle->log);
    if (words == NULL) {
        ngx_free(call);
        return NULL;
    }

    lens = (size_t *) &words[argc];

    for (i = 0; i < argc; i++) {
        words[i] = (const char *) argv[i].data;
        lens[i] = argv[i].len;
    }

    len = redisFormatCommandArgv(&call->command, argc, words, lens);

    ngx_free(words);

    if (len < 0) {
        ngx_free(call);
        return NULL;
    }

    call->len = len;

    return call;
}


static void
ngx_http_dsa_redis_count_call(ngx_http_dsa_redis_t *redis,
    ngx_http_dsa_redis_call_t *call)
{
    redis->calls++;
    redis->out += call->len;

    ngx_http_dsa_redis_hold(redis);
}


static void
ngx_http_dsa_redis_free_call(ngx_http_dsa_redis_t *redis,
    ngx_http_dsa_redis_call_t *call)
{
    ngx_queue_remove(&call->queue);

    redis->calls--;
    redis->out -= call->len - call->pos;

    ngx_http_dsa_redis_hold(redis);

    if (call->command != NULL) {
        redisFreeCommand(call->command);
    }

    ngx_free(call);
}


/* The connection's timers keep a worker that shuts down while calls wait. */

static void
ngx_http_dsa_redis_hold(ngx_http_dsa_redis_t *redis)
{
    ngx_connection_t  *c;

    c = redis->peer.connection;

    if (c != NULL) {
        c->read->cancelable = (redis->calls == 0);
        c->write->cancelable = (redis->calls == 0);
    }
}


static u_char *
ngx_http_dsa_redis_log_error(ngx_log_t *log, u_char *buf, size_t len)
{
    ngx_http_dsa_redis_t  *redis = log->data;

    return ngx_snprintf(buf, len, ", redis: %V", &redis->conf.url.url);
}


static void
ngx_http_dsa_redis_reconnect(ngx_event_t *ev)
{
    ngx_connection_t      *dumb = ev->data;
    ngx_http_dsa_redis_t  *redis = dumb->data;

    ngx_http_dsa_redis_connect(redis);
}


static void
ngx_http_dsa_redis_connect(ngx_http_dsa_redis_t *redis)
{
    ngx_int_t               rc;
    ngx_addr_t             *addr;
    ngx_uint_t              level;
    ngx_connection_t       *c;
    ngx_peer_connection_t  *peer;

    redis->resp = dsa_resp_create(DSA_SCHEMA_MAX_REPLY,
                                  DSA_SCHEMA_MAX_ELEMENTS);
    if (redis->resp == NULL) {
        ngx_http_dsa_redis_fail(redis, ngx_http_dsa_redis_nomem, 0, NULL, 0);
        return;
    }

    addr = &redis->conf.url.addrs[redis->addr];
    redis->addr = (redis->addr + 1) % redis->conf.url.naddrs;

    peer = &redis->peer;
    ngx_memzero(peer, sizeof(ngx_peer_connection_t));

    peer->sockaddr = addr->sockaddr;
    peer->socklen = addr->socklen;
    peer->name = &addr->name;
    peer->get = ngx_event_get_peer;
    peer->log = &redis->log;
    peer->log_error = NGX_ERROR_ERR;
    peer->so_keepalive = 1;

    redis->state = ngx_http_dsa_redis_connecting;

    /* nginx logs each failed attempt, of many that fail alike one is enough */

    level = redis->log.log_level;

    if (redis->told == ngx_http_dsa_redis_unreachable) {
        redis->log.log_level = NGX_LOG_ALERT;
    }

    rc = ngx_event_connect_peer(peer);

    redis->log.log_level = level;

    if (rc != NGX_OK && rc != NGX_AGAIN) {
        ngx_http_dsa_redis_fail(redis, ngx_http_dsa_redis_unreachable, 0,
                                NULL, 0);
        return;
    }

    c = peer->connection;
    c->data = redis;

    c->read->handler = ngx_http_dsa_redis_read_handler;
    c->write->handler = ngx_http_dsa_redis_write_handler;

    /*
     * The worker's own connection: not one that a graceful shutdown closes
     * while requests still need it.
     */

    c->read->channel = 1;
    c->write->channel = 1;

    ngx_http_dsa_redis_hold(redis);

    if (rc == NGX_AGAIN) {
        ngx_add_timer(c->write, redis->conf.connect_timeout);
        return;
    }

    ngx_http_dsa_redis_greet(redis);
}


static void
ngx_http_dsa_redis_greet(ngx_http_dsa_redis_t *redis)
{
    u_char             text[NGX_INT_T_LEN];
    ngx_str_t          argv[3];
    ngx_uint_t         n;
    ngx_connection_t  *c;

    c = redis->peer.connection;

    if (c->write->timer_set) {
        ngx_del_timer(c->write);
    }

    if (redis->peer.sockaddr->sa_family != AF_UNIX
        && ngx_tcp_nodelay(c) != NGX_OK)
    {
        ngx_http_dsa_redis_fail(redis, ngx_http_dsa_redis_unreachable, 0,
                                NULL, 0);
        return;
    }

    redis->state = ngx_http_dsa_redis_greeting;

    /* each goes in front of what waits already: the last one first */

    ngx_str_set(&argv[0], "PING");

    if (ngx_http_dsa_redis_greeting_call(redis, 1, argv, 1) != NGX_OK) {
        goto nomem;
    }

    if (redis->conf.db != 0) {
        ngx_str_set(&argv[0], "SELECT");
        argv[1].data = text;
        argv[1].len = ngx_sprintf(text, "%i", redis->conf.db) - text;

        if (ngx_http_dsa_redis_greeting_call(redis, 2, argv, 0) != NGX_OK) {
            goto nomem;
        }
    }

    if (redis->conf.password.len != 0) {
        n = 0;
        ngx_str_set(&argv[n], "AUTH");
        n++;

        if (redis->conf.user.len != 0) {
            argv[n++] = redis->conf.user;
        }

        argv[n++] = redis->conf.password;

        if (ngx_http_dsa_redis_greeting_call(redis, n, argv, 0) != NGX_OK) {
            goto nomem;
        }
    }

    ngx_http_dsa_redis_watch(redis);

    ngx_post_event(c->write, &ngx_posted_events);

    if (c->read->ready) {

        /* what it said while connecting: the event for that has been */

        ngx_post_event(c->read, &ngx_posted_events);
    }

    return;

nomem:

    ngx_http_dsa_redis_fail(redis, ngx_http_dsa_redis_nomem, 0, NULL, 0);
}


static ngx_int_t
ngx_http_dsa_redis_greeting_call(ngx_http_dsa_redis_t *redis,
    ngx_uint_t argc, const ngx_str_t *argv, ngx_uint_t last)
{
    ngx_http_dsa_redis_call_t  *call;

    call = ngx_http_dsa_redis_call(argc, argv);
    if (call == NULL) {
        return NGX_ERROR;
    }

    call->greeting = 1;
    call->last = last;
    call->deadline = ngx_current_msec + redis->conf.timeout;

    ngx_queue_insert_head(&redis->unsent, &call->queue);
    ngx_http_dsa_redis_count_call(redis, call);

    return NGX_OK;
}


/* Finds a dead peer before a request does. */

static void
ngx_http_dsa_redis_ping(ngx_event_t *ev)
{
    ngx_str_t                   argv;
    ngx_connection_t           *dumb = ev->data;
    ngx_connection_t           *c;
    ngx_http_dsa_redis_t       *redis = dumb->data;
    ngx_http_dsa_redis_call_t  *call;

    ngx_add_timer(ev, NGX_HTTP_DSA_REDIS_PING);

    if (redis->calls != 0) {
        return;
    }

    ngx_str_set(&argv, "PING");

    call = ngx_http_dsa_redis_call(1, &argv);
    if (call == NULL) {
        return;
    }

    call->deadline = ngx_current_msec + redis->conf.timeout;

    ngx_queue_insert_tail(&redis->unsent, &call->queue);
    ngx_http_dsa_redis_count_call(redis, call);

    c = redis->peer.connection;

    ngx_post_event(c->write, &ngx_posted_events);
    ngx_http_dsa_redis_watch(redis);
}


static void
ngx_http_dsa_redis_write_handler(ngx_event_t *wev)
{
    int                    err;
    socklen_t              len;
    ngx_connection_t      *c = wev->data;
    ngx_http_dsa_redis_t  *redis = c->data;

    if (redis->state != ngx_http_dsa_redis_connecting) {
        ngx_http_dsa_redis_send(redis);
        return;
    }

    if (wev->timedout) {
        ngx_http_dsa_redis_fail(redis, ngx_http_dsa_redis_unreachable,
                                NGX_ETIMEDOUT, NULL, 0);
        return;
    }

    err = 0;
    len = sizeof(int);

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len) == -1) {
        err = ngx_socket_errno;
    }

    if (err != 0) {
        ngx_http_dsa_redis_fail(redis, ngx_http_dsa_redis_unreachable, err,
                                NULL, 0);
        return;
    }

    ngx_http_dsa_redis_greet(redis);
}


static void
ngx_http_dsa_redis_send(ngx_http_dsa_redis_t *redis)
{
    off_t                       before;
    ngx_buf_t                   bufs[NGX_HTTP_DSA_REDIS_PIECES];
    ngx_uint_t                  n;
    ngx_queue_t                *q;
    ngx_chain_t                 chain[NGX_HTTP_DSA_REDIS_PIECES];
    ngx_connection_t           *c;
    ngx_http_dsa_redis_call_t  *call;

    c = redis->peer.connection;

    while (c->write->ready) {

        n = 0;

        for (q = ngx_queue_head(&redis->unsent);
             q != ngx_queue_sentinel(&redis->unsent)
             && n < NGX_HTTP_DSA_REDIS_PIECES;
             q = ngx_queue_next(q))
        {
            call = ngx_queue_data(q, ngx_http_dsa_redis_call_t, queue);

            if (redis->state != ngx_http_dsa_redis_ready && !call->greeting) {

                /* not before it is known who we are and in which database */

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
            break;
        }

        before = c->sent;

        if (c->send_chain(c, chain, 0) == NGX_CHAIN_ERROR) {
            ngx_http_dsa_redis_fail(redis, ngx_http_dsa_redis_closed, 0, NULL,
                                    0);
            return;
        }

        ngx_http_dsa_redis_sent(redis, c->sent - before);
    }

    if (ngx_handle_write_event(c->write, 0) != NGX_OK) {
        ngx_http_dsa_redis_fail(redis, ngx_http_dsa_redis_closed, 0, NULL, 0);
    }
}


static void
ngx_http_dsa_redis_sent(ngx_http_dsa_redis_t *redis, off_t n)
{
    size_t                      part;
    ngx_queue_t                *q;
    ngx_http_dsa_redis_call_t  *call;

    while (n > 0) {
        q = ngx_queue_head(&redis->unsent);
        call = ngx_queue_data(q, ngx_http_dsa_redis_call_t, queue);

        part = call->len - call->pos;

        if (n < (off_t) part) {
            part = n;
        }

        call->pos += part;
        redis->out -= part;
        n -= part;

        if (call->pos == call->len) {
            redisFreeCommand(call->command);
            call->command = NULL;

            ngx_queue_remove(q);
            ngx_queue_insert_tail(&redis->sent, q);
        }
    }
}


static void
ngx_http_dsa_redis_read_handler(ngx_event_t *rev)
{
    ssize_t                n;
    dsa_err_t              err;
    ngx_uint_t             i;
    ngx_connection_t      *c = rev->data;
    ngx_http_dsa_redis_t  *redis = c->data;

    if (rev->timedout) {
        rev->timedout = 0;
        ngx_http_dsa_redis_timed_out(redis);
        return;
    }

    if (redis->state == ngx_http_dsa_redis_connecting) {

        /* the write event tells how connecting ended */

        return;
    }

    for (i = 0; i < NGX_HTTP_DSA_REDIS_READS; i++) {

        n = c->recv(c, redis->buffer, NGX_HTTP_DSA_REDIS_BUFFER);

        if (n == NGX_AGAIN) {
            break;
        }

        if (n == NGX_ERROR || n == 0) {
            ngx_http_dsa_redis_fail(redis, ngx_http_dsa_redis_closed, 0, NULL,
                                    0);
            return;
        }

        if (dsa_resp_feed(redis->resp, redis->buffer, n, &err) != DSA_OK) {
            ngx_http_dsa_redis_fail(redis, ngx_http_dsa_redis_garbled, 0,
                                    err.text, ngx_strlen(err.text));
            return;
        }

        if (ngx_http_dsa_redis_replies(redis) != NGX_OK) {
            return;
        }
    }

    if (i == NGX_HTTP_DSA_REDIS_READS) {
        ngx_post_event(rev, &ngx_posted_next_events);
    }

    if (ngx_handle_read_event(rev, 0) != NGX_OK) {
        ngx_http_dsa_redis_fail(redis, ngx_http_dsa_redis_closed, 0, NULL, 0);
    }
}


static ngx_int_t
ngx_http_dsa_redis_replies(ngx_http_dsa_redis_t *redis)
{
    int          rc;
    dsa_err_t    err;
    ngx_int_t    ok;
    redisReply  *reply;

    for ( ;; ) {

        rc = dsa_resp_next(redis->resp, &reply, &err);

        if (rc == DSA_AGAIN) {
            return NGX_OK;
        }

        if (rc != DSA_OK) {
            ngx_http_dsa_redis_fail(redis, ngx_http_dsa_redis_garbled, 0,
                                    err.text, ngx_strlen(err.text));
            return NGX_ERROR;
        }

        ok = ngx_http_dsa_redis_reply(redis, reply);

        freeReplyObject(reply);

        if (ok != NGX_OK) {
            return NGX_ERROR;
        }
    }
}


/* NGX_ERROR: the connection is gone. */

static ngx_int_t
ngx_http_dsa_redis_reply(ngx_http_dsa_redis_t *redis, redisReply *reply)
{
    void                       *data;
    ngx_uint_t                  greeting, last;
    const char                 *why;
    ngx_http_dsa_redis_pt       handler;
    ngx_http_dsa_redis_call_t  *call;

    why = dsa_resp_refusal(reply);

    if (ngx_queue_empty(&redis->sent)) {

        /* such as "max number of clients reached", before any command */

        if (reply->type == REDIS_REPLY_ERROR) {
            ngx_http_dsa_redis_fail(redis, why != NULL ? why
                                             : ngx_http_dsa_redis_unwelcome,
                                    0, reply->str, reply->len);

        } else {
            ngx_http_dsa_redis_fail(redis, ngx_http_dsa_redis_garbled, 0,
                                    "a reply to no command",
                                    sizeof("a reply to no command") - 1);
        }

        return NGX_ERROR;
    }

    call = ngx_queue_data(ngx_queue_head(&redis->sent),
                          ngx_http_dsa_redis_call_t, queue);

    greeting = call->greeting;
    last = call->last;
    handler = call->handler;
    data = call->data;

    ngx_http_dsa_redis_free_call(redis, call);

    if (reply->type == REDIS_REPLY_ERROR && (why != NULL || greeting)) {

        if (!greeting) {
            redis->suspect = 1;
        }

        ngx_http_dsa_redis_fail(redis, why != NULL ? why
                                              : ngx_http_dsa_redis_unwelcome,
                                0, reply->str, reply->len);

        if (handler != NULL) {
            handler(data, reply, why);
        }

        return NGX_ERROR;
    }

    if (greeting) {
        if (last) {
            ngx_http_dsa_redis_ready_now(redis);
        }

        return NGX_OK;
    }

    if (handler == NULL) {
        return NGX_OK;
    }

    if (redis->told != NULL) {
        ngx_http_dsa_redis_back(redis);
    }

    handler(data, reply, NULL);

    return NGX_OK;
}


static void
ngx_http_dsa_redis_ready_now(ngx_http_dsa_redis_t *redis)
{
    redis->state = ngx_http_dsa_redis_ready;

    /*
     * After a command was refused in a way that a greeting does not show (as
     * MOVED), only a command tells that Redis is back.
     */

    if (!redis->suspect) {
        ngx_http_dsa_redis_back(redis);
    }

    ngx_add_timer(&redis->ping, NGX_HTTP_DSA_REDIS_PING);

    if (redis->hooks.data != NULL) {
        redis->hooks.up(redis->hooks.data);
    }

    ngx_post_event(redis->peer.connection->write, &ngx_posted_events);
}


static ngx_http_dsa_redis_call_t *
ngx_http_dsa_redis_oldest(ngx_http_dsa_redis_t *redis)
{
    ngx_queue_t  *q;

    q = !ngx_queue_empty(&redis->sent) ? &redis->sent : &redis->unsent;

    if (ngx_queue_empty(q)) {
        return NULL;
    }

    return ngx_queue_data(ngx_queue_head(q), ngx_http_dsa_redis_call_t, queue);
}


/* The timer is set while calls wait; early, it is set anew when it fires. */

static void
ngx_http_dsa_redis_watch(ngx_http_dsa_redis_t *redis)
{
    ngx_event_t  *rev;

    rev = redis->peer.connection->read;

    if (!rev->timer_set) {
        ngx_add_timer(rev, redis->conf.timeout);
    }
}


static void
ngx_http_dsa_redis_timed_out(ngx_http_dsa_redis_t *redis)
{
    ngx_msec_int_t              left;
    ngx_http_dsa_redis_call_t  *call;

    call = ngx_http_dsa_redis_oldest(redis);

    if (call == NULL) {
        return;
    }

    left = (ngx_msec_int_t) (call->deadline - ngx_current_msec);

    if (left > 0) {
        ngx_add_timer(redis->peer.connection->read, left);
        return;
    }

    ngx_http_dsa_redis_fail(redis, ngx_http_dsa_redis_silent, 0, NULL, 0);
}


/* One line for each time that it goes away, not for each attempt. */

static void
ngx_http_dsa_redis_tell(ngx_http_dsa_redis_t *redis, const char *why,
    ngx_err_t err, const char *detail, size_t len)
{
    char        text[DSA_RESP_TEXT];
    ngx_uint_t  level;

    level = redis->told == why ? NGX_LOG_INFO : NGX_LOG_ERR;
    redis->told = why;

    if (detail == NULL) {
        ngx_log_error(level, &redis->log, err, "%s", why);
        return;
    }

    ngx_log_error(level, &redis->log, err, "%s: \"%s\"", why,
                  dsa_resp_text(text, detail, len));
}


static void
ngx_http_dsa_redis_back(ngx_http_dsa_redis_t *redis)
{
    redis->suspect = 0;
    redis->backoff = NGX_HTTP_DSA_REDIS_BACKOFF_MIN;

    if (redis->told != NULL) {
        redis->told = NULL;
        ngx_log_error(NGX_LOG_NOTICE, &redis->log, 0, "Redis is back");
    }
}


/*
 * The connection is over.  It is closed and the next attempt is set up before
 * the waiting calls are told, so that they find everything in order whatever
 * they do.
 */

static void
ngx_http_dsa_redis_fail(ngx_http_dsa_redis_t *redis, const char *why,
    ngx_err_t err, const char *detail, size_t len)
{
    void                       *data;
    ngx_msec_t                  delay;
    ngx_queue_t                 waiting;
    ngx_http_dsa_redis_pt       handler;
    ngx_http_dsa_redis_call_t  *call;

    ngx_http_dsa_redis_tell(redis, why, err, detail, len);

    if (redis->peer.connection != NULL) {
        ngx_close_connection(redis->peer.connection);
        redis->peer.connection = NULL;
    }

    dsa_resp_destroy(redis->resp);
    redis->resp = NULL;

    redis->state = ngx_http_dsa_redis_down;

    if (redis->ping.timer_set) {
        ngx_del_timer(&redis->ping);
    }

    delay = NGX_HTTP_DSA_REDIS_BACKOFF_MIN
            + ngx_random() % (redis->backoff - NGX_HTTP_DSA_REDIS_BACKOFF_MIN
                              + 1);

    redis->backoff = ngx_min(redis->backoff * 2,
                             NGX_HTTP_DSA_REDIS_BACKOFF_MAX);

    ngx_add_timer(&redis->reconnect, delay);

    ngx_queue_init(&waiting);

    if (!ngx_queue_empty(&redis->sent)) {
        ngx_queue_add(&waiting, &redis->sent);
        ngx_queue_init(&redis->sent);
    }

    if (!ngx_queue_empty(&redis->unsent)) {
        ngx_queue_add(&waiting, &redis->unsent);
        ngx_queue_init(&redis->unsent);
    }

    while (!ngx_queue_empty(&waiting)) {
        call = ngx_queue_data(ngx_queue_head(&waiting),
                              ngx_http_dsa_redis_call_t, queue);

        handler = call->handler;
        data = call->data;

        ngx_http_dsa_redis_free_call(redis, call);

        if (handler != NULL) {
            handler(data, NULL, why);
        }
    }
}
