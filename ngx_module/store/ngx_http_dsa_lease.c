
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "redis_schema/conversations.h"

#include "ngx_module/redis/ngx_http_dsa_redis_command.h"
#include "ngx_http_dsa_lease.h"


/* memory for the words of a command */

#define NGX_HTTP_DSA_LEASE_ARENA  4096


typedef int (*ngx_http_dsa_lease_command_pt)(dsa_schema_command_t *cmd,
    dsa_arena_t *arena, dsa_str_t tenant, dsa_str_t id, dsa_str_t owner);


static void ngx_http_dsa_lease_renew(ngx_event_t *ev);
static ngx_http_dsa_redis_command_t *ngx_http_dsa_lease_send(
    ngx_http_dsa_lease_t *lease, ngx_http_dsa_lease_command_pt command);


void
ngx_http_dsa_lease_start(ngx_http_dsa_lease_t *lease,
    ngx_http_dsa_redis_t *redis, const ngx_str_t *tenant,
    const ngx_str_t *conversation, const ngx_str_t *owner)
{
    lease->redis = redis;
    lease->tenant = *tenant;
    lease->conversation = *conversation;
    lease->owner = *owner;
    lease->taken = 1;

    lease->dumb.data = lease;
    lease->dumb.fd = (ngx_socket_t) -1;

    lease->timer.handler = ngx_http_dsa_lease_renew;
    lease->timer.data = &lease->dumb;
    lease->timer.log = ngx_cycle->log;

    ngx_add_timer(&lease->timer, DSA_SCHEMA_LEASE / 3);
}


static void
ngx_http_dsa_lease_renew(ngx_event_t *ev)
{
    ngx_connection_t *dumb = ev->data;

    ngx_http_dsa_lease_t          *lease = dumb->data;
    ngx_http_dsa_redis_command_t  *command;

    command = ngx_http_dsa_lease_send(lease, dsa_schema_renew);

    /*
     * A renewal that a node of a cluster refuses is not sent again: it could
     * be executed after the release, and hold back the next turn.  The next
     * renewal comes soon enough.
     */

    if (command != NULL) {
        command->until = ngx_current_msec;
    }

    ngx_add_timer(&lease->timer, DSA_SCHEMA_LEASE / 3);
}


void
ngx_http_dsa_lease_stored(ngx_http_dsa_lease_t *lease)
{
    lease->taken = 0;

    if (lease->timer.timer_set) {
        ngx_del_timer(&lease->timer);
    }
}


void
ngx_http_dsa_lease_release(ngx_http_dsa_lease_t *lease)
{
    if (!lease->taken) {
        return;
    }

    ngx_http_dsa_lease_stored(lease);
    (void) ngx_http_dsa_lease_send(lease, dsa_schema_release);
}


/*
 * Sends a command without a handler for its reply, because the request may end
 * before the reply.  If the command is lost, the lease expires.
 */

static ngx_http_dsa_redis_command_t *
ngx_http_dsa_lease_send(ngx_http_dsa_lease_t *lease,
    ngx_http_dsa_lease_command_pt command)
{
    const char                    *why;
    dsa_arena_t                   *arena;
    dsa_schema_command_t           cmd;
    ngx_http_dsa_redis_command_t  *sent;

    why = "nginx is out of memory";
    sent = NULL;
    arena = dsa_arena_create(NGX_HTTP_DSA_LEASE_ARENA);

    if (arena != NULL
        && command(&cmd, arena,
                   dsa_str(lease->tenant.data, lease->tenant.len),
                   dsa_str(lease->conversation.data, lease->conversation.len),
                   dsa_str(lease->owner.data, lease->owner.len))
           == DSA_OK)
    {
        sent = ngx_http_dsa_redis_command(lease->redis, &cmd, NULL, NULL,
                                          &why);
    }

    if (sent == NULL) {
        ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                      "dsa: the lease of conversation \"%V\" is neither "
                      "renewed nor ended: %s", &lease->conversation, why);
    }

    dsa_arena_destroy(arena);

    return sent;
}
