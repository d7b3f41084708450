
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "ngx_http_dsa_redis_reply.h"
#include "ngx_http_dsa_redis_setup.h"


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


static const char  ngx_http_dsa_redis_protocol_error[] =
    "Redis sent something that is not a valid reply";
static const char  ngx_http_dsa_redis_rejected[] =
    "Redis rejects the connection";


/* the reply that the handler which runs has kept, or NULL */

static redisReply  *ngx_http_dsa_redis_kept;


ngx_int_t
ngx_http_dsa_redis_replies(ngx_http_dsa_redis_connection_t *rc,
    u_char *buf, size_t size)
{
    int          next;
    dsa_err_t    err;
    ngx_int_t    ok;
    redisReply  *reply;

    if (dsa_resp_feed(rc->resp, buf, size, &err) != DSA_OK) {
        ngx_http_dsa_redis_fail(rc, ngx_http_dsa_redis_protocol_error, 0,
                                err.text, ngx_strlen(err.text));
        return NGX_ERROR;
    }

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
            return ok;
        }
    }
}


/* Returns as ngx_http_dsa_redis_replies() does. */

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
 * A Sentinel has replied.  NGX_DONE: it has named the primary; NGX_ERROR: the
 * connection to the Sentinel failed and is closed.
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

    return NGX_DONE;
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


void
ngx_http_dsa_redis_reply_keep(redisReply *reply)
{
    ngx_http_dsa_redis_kept = reply;
}
