
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_REDIS_CONF_H_INCLUDED_
#define _NGX_HTTP_DSA_REDIS_CONF_H_INCLUDED_


#include "ngx_http_dsa_redis.h"


/* What dsa_redis says; between its two files. */

typedef struct {
    ngx_url_t               url;            /* resolved: addrs */
    ngx_str_t               user;           /* empty: the default one */
    ngx_str_t               password;       /* empty: none */
    ngx_int_t               db;
    ngx_msec_t              timeout;        /* of a command */
    ngx_msec_t              connect_timeout;
    ngx_int_t               queue;
    ngx_str_t               queue_file;     /* empty: beside the pid file */
    ngx_http_dsa_ledger_t  *ledger;
    time_t                  ttl;
} ngx_http_dsa_redis_conf_t;


/* A copy, with what a worker needs; NULL when out of memory. */
ngx_http_dsa_redis_t *ngx_http_dsa_redis_create(ngx_conf_t *cf,
    const ngx_http_dsa_redis_conf_t *conf);


#endif /* _NGX_HTTP_DSA_REDIS_CONF_H_INCLUDED_ */
