
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_HASH_H_INCLUDED_
#define _NGX_HTTP_DSA_HASH_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* Creates what an upstream has of "dsa_hash"; also that of a server. */
void *ngx_http_dsa_hash_create_conf(ngx_conf_t *cf);

/*
 * "dsa_hash VALUE [bound=N] [least=N];" in an upstream: chooses the server of a
 * request.  offset and post of the command are not used.
 */
char *ngx_http_dsa_hash_directive(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


#endif /* _NGX_HTTP_DSA_HASH_H_INCLUDED_ */
