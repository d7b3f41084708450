
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "ngx_http_dsa_redis_primary.h"


static ngx_int_t ngx_http_dsa_redis_primary_parse(
    ngx_http_dsa_redis_primary_t *primary, dsa_str_t host);
static ngx_int_t ngx_http_dsa_redis_primary_set(
    ngx_http_dsa_redis_primary_t *primary, dsa_str_t host, ngx_int_t port);
static ngx_uint_t ngx_http_dsa_redis_primary_is(const redisReply *reply,
    const char *text);


void
ngx_http_dsa_redis_primary_init(ngx_http_dsa_redis_primary_t *primary,
    const ngx_http_dsa_redis_conf_t *conf)
{
    ngx_memzero(primary, sizeof(ngx_http_dsa_redis_primary_t));

    primary->conf = conf;
    primary->next = ngx_worker % conf->addrs->nelts;
}


ngx_int_t
ngx_http_dsa_redis_primary_node(ngx_http_dsa_redis_primary_t *primary,
    const ngx_http_dsa_redis_conf_t *conf, dsa_str_t host, ngx_int_t port)
{
    ngx_memzero(primary, sizeof(ngx_http_dsa_redis_primary_t));

    primary->conf = conf;
    primary->node = 1;

    return ngx_http_dsa_redis_primary_set(primary, host, port);
}


ngx_addr_t *
ngx_http_dsa_redis_primary_next(ngx_http_dsa_redis_primary_t *primary)
{
    ngx_str_t   *host;
    ngx_addr_t  *addr;

    if (primary->node || primary->known) {
        primary->known = 0;
        primary->sentinel = 0;
        primary->host.data = primary->ip;
        primary->host.len = ngx_sock_ntop(primary->found.sockaddr,
                                          primary->found.socklen, primary->ip,
                                          NGX_SOCKADDR_STRLEN, 0);
        return &primary->found;
    }

    addr = primary->conf->addrs->elts;
    addr += primary->next;

    host = primary->conf->hosts->elts;
    primary->host = host[primary->next];

    primary->next = (primary->next + 1) % primary->conf->addrs->nelts;
    primary->sentinel = (primary->conf->sentinel.len != 0);

    return addr;
}


ngx_uint_t
ngx_http_dsa_redis_primary_failed(ngx_http_dsa_redis_primary_t *primary)
{
    if (primary->node) {
        return 0;
    }

    primary->tried++;

    return primary->tried % primary->conf->addrs->nelts != 0;
}


void
ngx_http_dsa_redis_primary_good(ngx_http_dsa_redis_primary_t *primary)
{
    primary->tried = 0;
}


const char *
ngx_http_dsa_redis_primary_answer(ngx_http_dsa_redis_primary_t *primary,
    const redisReply *reply)
{
    dsa_str_t    name;
    ngx_int_t    port;
    redisReply  *host, *number;

    if (reply->type == REDIS_REPLY_NIL) {
        return "Sentinel monitors no primary with the name of sentinel=";
    }

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2
        || reply->element[0]->type != REDIS_REPLY_STRING
        || reply->element[1]->type != REDIS_REPLY_STRING)
    {
        return "Sentinel sent no address of the primary";
    }

    host = reply->element[0];
    number = reply->element[1];

    name = dsa_str(host->str, host->len);
    port = ngx_atoi((u_char *) number->str, number->len);

    if (ngx_http_dsa_redis_primary_set(primary, name, port) != NGX_OK) {

        /*
         * A host name could be resolved only by a call that blocks the worker.
         */

        return "Sentinel sent a primary that is not an IP address and a port";
    }

    primary->known = 1;

    return NULL;
}


static ngx_int_t
ngx_http_dsa_redis_primary_set(ngx_http_dsa_redis_primary_t *primary,
    dsa_str_t host, ngx_int_t port)
{
    ngx_addr_t  *addr;

    if (port < 1 || port > 65535
        || ngx_http_dsa_redis_primary_parse(primary, host) != NGX_OK)
    {
        return NGX_ERROR;
    }

    addr = &primary->found;

    ngx_inet_set_port(addr->sockaddr, (in_port_t) port);

    addr->name.data = primary->text;
    addr->name.len = ngx_sock_ntop(addr->sockaddr, addr->socklen,
                                   primary->text, NGX_SOCKADDR_STRLEN, 1);

    return NGX_OK;
}


/* Sets found to an IP address without a port. */

static ngx_int_t
ngx_http_dsa_redis_primary_parse(ngx_http_dsa_redis_primary_t *primary,
    dsa_str_t host)
{
    ngx_addr_t  *addr;

    addr = &primary->found;
    addr->sockaddr = &primary->sockaddr.sockaddr;

    ngx_memzero(&primary->sockaddr, sizeof(ngx_sockaddr_t));

    primary->sockaddr.sockaddr_in.sin_addr.s_addr =
        ngx_inet_addr((u_char *) host.data, host.len);

    if (primary->sockaddr.sockaddr_in.sin_addr.s_addr != INADDR_NONE) {
        primary->sockaddr.sockaddr_in.sin_family = AF_INET;
        addr->socklen = sizeof(struct sockaddr_in);
        return NGX_OK;
    }

#if (NGX_HAVE_INET6)

    ngx_memzero(&primary->sockaddr, sizeof(ngx_sockaddr_t));

    if (ngx_inet6_addr((u_char *) host.data, host.len,
                       primary->sockaddr.sockaddr_in6.sin6_addr.s6_addr)
        == NGX_OK)
    {
        primary->sockaddr.sockaddr_in6.sin6_family = AF_INET6;
        addr->socklen = sizeof(struct sockaddr_in6);
        return NGX_OK;
    }

#endif

    return NGX_ERROR;
}


const char *
ngx_http_dsa_redis_primary_role(const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements != 0
        && ngx_http_dsa_redis_primary_is(reply->element[0], "slave"))
    {
        return "Redis is a replica and not the primary";
    }

    if (reply->type == REDIS_REPLY_ARRAY && reply->elements != 0
        && ngx_http_dsa_redis_primary_is(reply->element[0], "sentinel"))
    {
        return "this is a Sentinel; expected a Redis, or sentinel=";
    }

    return NULL;
}


static ngx_uint_t
ngx_http_dsa_redis_primary_is(const redisReply *reply, const char *text)
{
    return reply->type == REDIS_REPLY_STRING
           && reply->len == ngx_strlen(text)
           && ngx_strncmp(reply->str, text, reply->len) == 0;
}
