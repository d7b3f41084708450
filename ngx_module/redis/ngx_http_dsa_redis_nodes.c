
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_http_dsa_redis_nodes.h"
#include "ngx_http_dsa_redis_reply.h"


/* redirects that are followed at once */

#define NGX_HTTP_DSA_REDIS_REDIRECTS  5

#define NGX_HTTP_DSA_REDIS_WAIT_MIN   10        /* milliseconds */
#define NGX_HTTP_DSA_REDIS_WAIT_MAX   200

/* each cause is logged as an error at most once in so many seconds */

#define NGX_HTTP_DSA_REDIS_QUIET      60


static ngx_http_dsa_redis_connection_t *ngx_http_dsa_redis_nodes_target(
    ngx_http_dsa_redis_nodes_t *nodes, int32_t slot);
static void ngx_http_dsa_redis_nodes_forget(ngx_http_dsa_redis_nodes_t *nodes,
    ngx_http_dsa_redis_connection_t *rc);
static void ngx_http_dsa_redis_nodes_ready(void *data);
static void ngx_http_dsa_redis_nodes_changed(void *data,
    ngx_http_dsa_redis_connection_t *rc);
static void ngx_http_dsa_redis_nodes_refused(void *data,
    ngx_http_dsa_redis_connection_t *rc, ngx_http_dsa_redis_command_t *command,
    redisReply *reply, dsa_cluster_reply_e kind);
static void ngx_http_dsa_redis_nodes_redirect(
    ngx_http_dsa_redis_nodes_t *nodes, ngx_http_dsa_redis_connection_t *rc,
    ngx_http_dsa_redis_command_t *command, dsa_cluster_reply_e kind);
static ngx_int_t ngx_http_dsa_redis_nodes_find(
    ngx_http_dsa_redis_nodes_t *nodes, ngx_http_dsa_redis_connection_t *rc,
    const dsa_cluster_target_t *to, ngx_http_dsa_redis_cause_e *cause);
static ngx_int_t ngx_http_dsa_redis_nodes_new(
    ngx_http_dsa_redis_nodes_t *nodes);
static void ngx_http_dsa_redis_nodes_send(ngx_http_dsa_redis_nodes_t *nodes,
    ngx_http_dsa_redis_connection_t *rc, ngx_http_dsa_redis_command_t *command);
static void ngx_http_dsa_redis_nodes_delay(ngx_http_dsa_redis_nodes_t *nodes,
    ngx_http_dsa_redis_command_t *command, ngx_http_dsa_redis_cause_e cause);
static void ngx_http_dsa_redis_nodes_again(ngx_event_t *ev);
static void ngx_http_dsa_redis_nodes_set_timer(
    ngx_http_dsa_redis_nodes_t *nodes);
static void ngx_http_dsa_redis_nodes_end(ngx_http_dsa_redis_nodes_t *nodes,
    ngx_http_dsa_redis_command_t *command, ngx_http_dsa_redis_cause_e cause);
static void ngx_http_dsa_redis_nodes_return(
    ngx_http_dsa_redis_command_t *command, const char *why);


static const ngx_http_dsa_redis_events_t  ngx_http_dsa_redis_nodes_events = {
    ngx_http_dsa_redis_nodes_ready,
    ngx_http_dsa_redis_nodes_changed,
    ngx_http_dsa_redis_nodes_refused
};


/* for the log and for the client */

static const char *const  ngx_http_dsa_redis_causes[] = {
    "Redis Cluster is moving the keys to another node",
    "Redis is a node of a cluster that is down",
    "Redis Cluster redirects a command in a circle; the nodes may not agree "
        "yet, or the user lacks +asking",
    "a node of Redis Cluster cannot be reached",
    "Redis sent a redirect that does not have the cluster slot of the key, an "
        "IP address and a port",
    "Redis Cluster names more than 64 nodes"
};

static const char  ngx_http_dsa_redis_busy[] =
    "too many commands are waiting for Redis";

_Static_assert(sizeof(ngx_http_dsa_redis_causes) / sizeof(char *)
               == NGX_HTTP_DSA_REDIS_CAUSES, "a text for each cause");
_Static_assert(NGX_HTTP_DSA_REDIS_NODES == 64, "a cause names the limit");


void
ngx_http_dsa_redis_nodes_start(ngx_http_dsa_redis_nodes_t *nodes,
    const ngx_http_dsa_redis_conf_t *conf, ngx_cycle_t *cycle)
{
    nodes->conf = conf;
    nodes->cycle = cycle;

    ngx_http_dsa_redis_commands_init(&nodes->delayed);

    nodes->dumb.fd = (ngx_socket_t) -1;
    nodes->dumb.data = nodes;

    nodes->timer.handler = ngx_http_dsa_redis_nodes_again;
    nodes->timer.data = &nodes->dumb;
    nodes->timer.log = cycle->log;

    ngx_http_dsa_redis_connection_init(&nodes->first, conf, cycle->log,
                                       &ngx_http_dsa_redis_nodes_events,
                                       nodes);
    ngx_http_dsa_redis_primary_init(&nodes->first.primary, conf);
    ngx_http_dsa_redis_connection_start(&nodes->first);
}


void
ngx_http_dsa_redis_nodes_stop(ngx_http_dsa_redis_nodes_t *nodes)
{
    ngx_uint_t                     i;
    ngx_http_dsa_redis_command_t  *command;

    if (nodes->cycle == NULL) {
        return;
    }

    ngx_http_dsa_redis_connection_stop(&nodes->first);

    for (i = 0; i < nodes->n; i++) {
        ngx_http_dsa_redis_connection_stop(nodes->node[i]);
    }

    while (nodes->delayed.n != 0) {
        command = ngx_http_dsa_redis_commands_oldest(&nodes->delayed);
        ngx_http_dsa_redis_commands_remove(&nodes->delayed, command);
    }

    if (nodes->timer.timer_set) {
        ngx_del_timer(&nodes->timer);
    }
}


ngx_uint_t
ngx_http_dsa_redis_nodes_up(ngx_http_dsa_redis_nodes_t *nodes)
{
    ngx_uint_t  i;

    if (nodes->first.state == ngx_http_dsa_redis_ready) {
        return 1;
    }

    for (i = 0; i < nodes->n; i++) {
        if (nodes->node[i]->state == ngx_http_dsa_redis_ready) {
            return 1;
        }
    }

    return 0;
}


ngx_http_dsa_redis_command_t *
ngx_http_dsa_redis_nodes_command(ngx_http_dsa_redis_nodes_t *nodes,
    const dsa_schema_command_t *cmd, ngx_http_dsa_redis_pt handler, void *data,
    const char **why)
{
    int32_t                           slot;
    ngx_http_dsa_redis_command_t     *command;
    ngx_http_dsa_redis_connection_t  *rc;

    slot = dsa_cluster_command_slot(cmd);
    rc = ngx_http_dsa_redis_nodes_target(nodes, slot);

    if (rc == NULL) {
        *why = ngx_http_dsa_redis_connection_why(&nodes->first);
        return NULL;
    }

    if (ngx_http_dsa_redis_commands_full()) {
        *why = ngx_http_dsa_redis_busy;
        return NULL;
    }

    command = ngx_http_dsa_redis_command_create(cmd);

    if (command == NULL) {
        *why = ngx_http_dsa_redis_nomem;
        return NULL;
    }

    command->handler = handler;
    command->data = data;
    command->slot = slot;
    command->until = ngx_current_msec + nodes->conf->timeout;
    command->wait = NGX_HTTP_DSA_REDIS_WAIT_MIN;

    (void) ngx_http_dsa_redis_connection_put(rc, command);

    return command;
}


ngx_uint_t
ngx_http_dsa_redis_nodes_each(ngx_http_dsa_redis_nodes_t *nodes,
    const dsa_schema_command_t *cmd, ngx_http_dsa_redis_pt handler, void *data)
{
    ngx_uint_t                        i, n;
    ngx_http_dsa_redis_command_t     *command;
    ngx_http_dsa_redis_connection_t  *rc;

    n = 0;

    for (i = 0; i <= nodes->n && !ngx_http_dsa_redis_commands_full(); i++) {
        rc = i < nodes->n ? nodes->node[i] : &nodes->first;

        if (rc->state != ngx_http_dsa_redis_ready) {
            continue;
        }

        command = ngx_http_dsa_redis_command_create(cmd);

        if (command == NULL) {
            break;
        }

        command->handler = handler;
        command->data = data;
        command->probe = 1;

        (void) ngx_http_dsa_redis_connection_put(rc, command);
        n++;
    }

    return n;
}


ngx_uint_t
ngx_http_dsa_redis_nodes_of(ngx_http_dsa_redis_nodes_t *nodes, uint32_t slot)
{
    return nodes->slot[slot];
}


ngx_uint_t
ngx_http_dsa_redis_nodes_usable(ngx_http_dsa_redis_nodes_t *nodes,
    ngx_uint_t node)
{
    return node != 0
           ? ngx_http_dsa_redis_connection_usable(nodes->node[node - 1])
           : ngx_http_dsa_redis_nodes_up(nodes);
}


void
ngx_http_dsa_redis_nodes_retry_soon(ngx_http_dsa_redis_nodes_t *nodes)
{
    ngx_uint_t  i;

    ngx_http_dsa_redis_connection_retry_soon(&nodes->first);

    for (i = 0; i < nodes->n; i++) {
        ngx_http_dsa_redis_connection_retry_soon(nodes->node[i]);
    }
}


/*
 * The connection for the first attempt with keys of a cluster slot, or NULL.
 * If the node cannot be reached, any other node can name the one that has the
 * cluster slot now.
 */

static ngx_http_dsa_redis_connection_t *
ngx_http_dsa_redis_nodes_target(ngx_http_dsa_redis_nodes_t *nodes,
    int32_t slot)
{
    ngx_uint_t                        i;
    ngx_http_dsa_redis_connection_t  *rc;

    if (slot >= 0 && nodes->slot[slot] != 0) {
        rc = nodes->node[nodes->slot[slot] - 1];

        if (ngx_http_dsa_redis_connection_usable(rc)) {
            return rc;
        }
    }

    if (nodes->first.state == ngx_http_dsa_redis_ready) {
        return &nodes->first;
    }

    for (i = 0; i < nodes->n; i++) {
        if (nodes->node[i]->state == ngx_http_dsa_redis_ready) {
            return nodes->node[i];
        }
    }

    return ngx_http_dsa_redis_connection_usable(&nodes->first) ? &nodes->first
                                                               : NULL;
}


static void
ngx_http_dsa_redis_nodes_forget(ngx_http_dsa_redis_nodes_t *nodes,
    ngx_http_dsa_redis_connection_t *rc)
{
    ngx_uint_t  i, slot;

    for (i = 0; i < nodes->n && nodes->node[i] != rc; i++) { /* void */ }

    if (i == nodes->n) {
        return;
    }

    for (slot = 0; slot < DSA_CLUSTER_SLOTS; slot++) {
        if (nodes->slot[slot] == i + 1) {
            nodes->slot[slot] = 0;
        }
    }
}


static void
ngx_http_dsa_redis_nodes_ready(void *data)
{
    ngx_http_dsa_redis_nodes_t  *nodes = data;

    nodes->ready(nodes->data);
}


static void
ngx_http_dsa_redis_nodes_changed(void *data,
    ngx_http_dsa_redis_connection_t *rc)
{
    ngx_http_dsa_redis_nodes_t  *nodes = data;

    if (rc->state == ngx_http_dsa_redis_down) {
        ngx_http_dsa_redis_nodes_forget(nodes, rc);
    }

    ngx_http_dsa_metrics_set(redis_up, ngx_http_dsa_redis_nodes_up(nodes));
}


static void
ngx_http_dsa_redis_nodes_refused(void *data,
    ngx_http_dsa_redis_connection_t *rc, ngx_http_dsa_redis_command_t *command,
    redisReply *reply, dsa_cluster_reply_e kind)
{
    ngx_http_dsa_redis_nodes_t  *nodes = data;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, &rc->log, 0,
                   "dsa redis %s refused: %s", command->name, reply->str);

    if (command->refusal != NULL) {
        freeReplyObject(command->refusal);
    }

    command->refusal = reply;
    ngx_http_dsa_redis_reply_keep(reply);

    switch (kind) {

    case DSA_CLUSTER_MOVED:
    case DSA_CLUSTER_ASK:
        ngx_http_dsa_redis_nodes_redirect(nodes, rc, command, kind);
        return;

    case DSA_CLUSTER_DOWN:
        ngx_http_dsa_redis_nodes_delay(nodes, command,
                                       ngx_http_dsa_redis_not_served);
        return;

    default: /* DSA_CLUSTER_MOVING */
        ngx_http_dsa_redis_nodes_delay(nodes, command,
                                       ngx_http_dsa_redis_moving);
    }
}


static void
ngx_http_dsa_redis_nodes_redirect(ngx_http_dsa_redis_nodes_t *nodes,
    ngx_http_dsa_redis_connection_t *rc, ngx_http_dsa_redis_command_t *command,
    dsa_cluster_reply_e kind)
{
    dsa_err_t                   err;
    ngx_int_t                   i;
    dsa_cluster_target_t        to;
    ngx_http_dsa_redis_cause_e  cause;

    if (dsa_cluster_target(&to, command->refusal->str, &err) != DSA_OK
        || (int32_t) to.cluster_slot != command->slot)
    {
        ngx_http_dsa_redis_nodes_end(nodes, command, ngx_http_dsa_redis_wrong);
        return;
    }

    if (++command->redirects > NGX_HTTP_DSA_REDIS_REDIRECTS) {
        nodes->slot[command->slot] = 0;
        ngx_http_dsa_redis_nodes_delay(nodes, command,
                                       ngx_http_dsa_redis_circle);
        return;
    }

    i = ngx_http_dsa_redis_nodes_find(nodes, rc, &to, &cause);

    if (i == NGX_ERROR) {
        ngx_http_dsa_redis_nodes_end(nodes, command, cause);
        return;
    }

    if (kind == DSA_CLUSTER_MOVED) {
        nodes->slot[command->slot] = i;

        if (command->moved && ngx_http_dsa_redis_nodes_usable(nodes, i)) {
            ngx_http_dsa_redis_nodes_return(command, NULL);
            return;
        }

        if (command->moved) {
            ngx_http_dsa_redis_nodes_end(nodes, command,
                                         ngx_http_dsa_redis_lost);
            return;
        }
    }

    command->asking = (kind == DSA_CLUSTER_ASK);

    ngx_http_dsa_redis_nodes_send(nodes, i != 0 ? nodes->node[i - 1]
                                                : &nodes->first, command);
}


/*
 * Returns 1 + the index of the node that a redirect of rc names, or 0 for the
 * first connection.  NGX_ERROR: there is none, and *cause is set.
 */

static ngx_int_t
ngx_http_dsa_redis_nodes_find(ngx_http_dsa_redis_nodes_t *nodes,
    ngx_http_dsa_redis_connection_t *rc, const dsa_cluster_target_t *to,
    ngx_http_dsa_redis_cause_e *cause)
{
    u_char                           text[NGX_SOCKADDR_STRLEN];
    ngx_int_t                        k;
    dsa_str_t                        host;
    ngx_addr_t                      *addr;
    ngx_uint_t                       i;
    ngx_peer_connection_t           *peer;
    ngx_http_dsa_redis_primary_t     primary;

    host = to->host;

    if (host.len == 0) {
        host = dsa_str(text, ngx_sock_ntop(rc->peer.sockaddr, rc->peer.socklen,
                                           text, NGX_SOCKADDR_STRLEN, 0));
    }

    *cause = ngx_http_dsa_redis_wrong;

    if (ngx_http_dsa_redis_primary_node(&primary, nodes->conf, host, to->port)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    addr = &primary.found;
    peer = &nodes->first.peer;

    if (nodes->first.state == ngx_http_dsa_redis_ready
        && ngx_cmp_sockaddr(peer->sockaddr, peer->socklen, addr->sockaddr,
                            addr->socklen, 1)
           == NGX_OK)
    {
        return 0;
    }

    for (i = 0; i < nodes->n; i++) {
        if (ngx_cmp_sockaddr(nodes->node[i]->primary.found.sockaddr,
                             nodes->node[i]->primary.found.socklen,
                             addr->sockaddr, addr->socklen, 1)
            == NGX_OK)
        {
            return i + 1;
        }
    }

    *cause = ngx_http_dsa_redis_many;

    k = ngx_http_dsa_redis_nodes_new(nodes);

    if (k == NGX_ERROR) {
        return NGX_ERROR;
    }

    (void) ngx_http_dsa_redis_primary_node(&nodes->node[k]->primary,
                                           nodes->conf, host, to->port);

    return k + 1;
}


/*
 * Returns the index of a new connection.  If there are as many as there may be,
 * one that is not used is replaced.
 */

static ngx_int_t
ngx_http_dsa_redis_nodes_new(ngx_http_dsa_redis_nodes_t *nodes)
{
    ngx_uint_t                        i;
    ngx_http_dsa_redis_connection_t  *rc;

    if (nodes->n < NGX_HTTP_DSA_REDIS_NODES) {
        rc = ngx_pcalloc(nodes->cycle->pool,
                         sizeof(ngx_http_dsa_redis_connection_t));
        if (rc == NULL) {
            return NGX_ERROR;
        }

        i = nodes->n++;
        nodes->node[i] = rc;

    } else {
        for (i = 0; i < nodes->n; i++) {
            rc = nodes->node[i];

            if (rc->state == ngx_http_dsa_redis_down && rc->commands.n == 0) {
                break;
            }
        }

        if (i == nodes->n) {
            return NGX_ERROR;
        }

        ngx_http_dsa_redis_connection_stop(rc);
        ngx_memzero(rc, sizeof(ngx_http_dsa_redis_connection_t));
    }

    ngx_http_dsa_redis_connection_init(rc, nodes->conf, nodes->cycle->log,
                                       &ngx_http_dsa_redis_nodes_events,
                                       nodes);
    return i;
}


static void
ngx_http_dsa_redis_nodes_send(ngx_http_dsa_redis_nodes_t *nodes,
    ngx_http_dsa_redis_connection_t *rc, ngx_http_dsa_redis_command_t *command)
{
    if (!ngx_http_dsa_redis_connection_usable(rc)
        || ngx_http_dsa_redis_connection_put(rc, command) != NGX_OK)
    {
        ngx_http_dsa_redis_nodes_forget(nodes, rc);
        ngx_http_dsa_redis_nodes_delay(nodes, command, ngx_http_dsa_redis_lost);
    }
}


static void
ngx_http_dsa_redis_nodes_delay(ngx_http_dsa_redis_nodes_t *nodes,
    ngx_http_dsa_redis_command_t *command, ngx_http_dsa_redis_cause_e cause)
{
    command->cause = cause;
    command->due = ngx_current_msec + command->wait;
    command->wait = ngx_min(command->wait * 2, NGX_HTTP_DSA_REDIS_WAIT_MAX);

    if ((ngx_msec_int_t) (command->until - command->due) < 0) {
        ngx_http_dsa_redis_nodes_end(nodes, command, cause);
        return;
    }

    ngx_http_dsa_redis_commands_put(&nodes->delayed, command, 0);
    ngx_http_dsa_redis_nodes_set_timer(nodes);
}


/* Sends the commands that are due. */

static void
ngx_http_dsa_redis_nodes_again(ngx_event_t *ev)
{
    ngx_queue_t                       due, *q, *next;
    ngx_connection_t                 *dumb = ev->data;
    ngx_http_dsa_redis_nodes_t       *nodes = dumb->data;
    ngx_http_dsa_redis_command_t     *command;
    ngx_http_dsa_redis_connection_t  *rc;

    ngx_queue_init(&due);

    for (q = ngx_queue_head(&nodes->delayed.unsent);
         q != ngx_queue_sentinel(&nodes->delayed.unsent);
         q = next)
    {
        next = ngx_queue_next(q);
        command = ngx_queue_data(q, ngx_http_dsa_redis_command_t, queue);

        if ((ngx_msec_int_t) (command->due - ngx_current_msec) <= 0) {
            ngx_http_dsa_redis_commands_take(&nodes->delayed, command);
            ngx_queue_insert_tail(&due, q);
        }
    }

    while (!ngx_queue_empty(&due)) {
        q = ngx_queue_head(&due);
        ngx_queue_remove(q);

        command = ngx_queue_data(q, ngx_http_dsa_redis_command_t, queue);
        command->redirects = 0;
        command->asking = 0;

        rc = ngx_http_dsa_redis_nodes_target(nodes, command->slot);

        if (rc != NULL) {
            ngx_http_dsa_redis_nodes_send(nodes, rc, command);

        } else {
            ngx_http_dsa_redis_nodes_delay(nodes, command,
                                           ngx_http_dsa_redis_lost);
        }
    }

    ngx_http_dsa_redis_nodes_set_timer(nodes);
}


/* A worker that shuts down waits for the commands. */

static void
ngx_http_dsa_redis_nodes_set_timer(ngx_http_dsa_redis_nodes_t *nodes)
{
    if (nodes->delayed.n != 0 && !nodes->timer.timer_set) {
        ngx_add_timer(&nodes->timer, NGX_HTTP_DSA_REDIS_WAIT_MIN);
    }
}


/* Ends a command that no node has executed. */

static void
ngx_http_dsa_redis_nodes_end(ngx_http_dsa_redis_nodes_t *nodes,
    ngx_http_dsa_redis_command_t *command, ngx_http_dsa_redis_cause_e cause)
{
    char         text[DSA_RESP_TEXT];
    ngx_uint_t   level;
    redisReply  *refusal;

    level = NGX_LOG_INFO;

    if (nodes->logged[cause] == 0
        || ngx_time() - nodes->logged[cause] >= NGX_HTTP_DSA_REDIS_QUIET)
    {
        nodes->logged[cause] = ngx_time();
        level = NGX_LOG_ERR;
    }

    refusal = command->refusal;

    ngx_log_error(level, nodes->cycle->log, 0, "dsa: %s: \"%s\"",
                  ngx_http_dsa_redis_causes[cause],
                  dsa_resp_text(text, refusal->str, refusal->len));

    ngx_http_dsa_redis_nodes_return(command, ngx_http_dsa_redis_causes[cause]);
}


/* Frees a command, and calls its handler with the last refusal. */

static void
ngx_http_dsa_redis_nodes_return(ngx_http_dsa_redis_command_t *command,
    const char *why)
{
    void                   *data;
    redisReply             *refusal;
    ngx_http_dsa_redis_pt   handler;

    handler = command->handler;
    data = command->data;
    refusal = command->refusal;
    command->refusal = NULL;

    ngx_http_dsa_redis_command_free(command);

    if (handler != NULL) {
        handler(data, refusal, why);
    }

    freeReplyObject(refusal);
}
