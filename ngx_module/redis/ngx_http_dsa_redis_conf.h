
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_REDIS_CONF_H_INCLUDED_
#define _NGX_HTTP_DSA_REDIS_CONF_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "redis_schema/schema.h"
#include "ngx_http_dsa_redis_tls.h"


/* The addresses and the parameters of dsa_redis. */

typedef struct {
    ngx_array_t  *addrs;                /* of ngx_addr_t, resolved */
    ngx_array_t  *hosts;                /* of ngx_str_t: of each address, as it
                                           is configured */
    ngx_http_dsa_redis_tls_t
                 *tls;
    ngx_str_t     sentinel;             /* name of the primary; the addresses
                                           are those of Sentinels; empty: the
                                           addresses are those of Redis */
    ngx_str_t     sentinel_password;    /* empty: none */
    ngx_str_t     user;                 /* empty: the default user */
    ngx_str_t     password;             /* empty: none */
    ngx_int_t     db;
    ngx_msec_t    timeout;              /* of a command */
    ngx_msec_t    connect_timeout;
    ngx_int_t     queue;                /* cells for ledger entries */
    ngx_str_t     queue_file;           /* empty: beside the pid file */
    dsa_schema_storage_t
                  storage;              /* of each tenant */
} ngx_http_dsa_redis_conf_t;


/*
 * Reads the arguments of the directive in cf->args, resolves the addresses and
 * reads the password files.  Returns NGX_CONF_OK or the error of a directive
 * handler.
 */
char *ngx_http_dsa_redis_conf_read(ngx_conf_t *cf, ngx_str_t *directive,
    ngx_http_dsa_redis_conf_t *conf);


#endif /* _NGX_HTTP_DSA_REDIS_CONF_H_INCLUDED_ */
