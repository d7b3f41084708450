
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_VALUE_H_INCLUDED_
#define _NGX_HTTP_DSA_VALUE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/*
 * Set a field of a configuration as ngx_conf_set_enum_slot() and its siblings
 * do, with an error that has the accepted values.
 */
char *ngx_http_dsa_value_enum(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_dsa_value_msec(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_dsa_value_size(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);


#endif /* _NGX_HTTP_DSA_VALUE_H_INCLUDED_ */
