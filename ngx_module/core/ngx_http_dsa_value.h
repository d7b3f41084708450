
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_VALUE_H_INCLUDED_
#define _NGX_HTTP_DSA_VALUE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/* cmd->post of ngx_http_dsa_value_parameter() */

typedef struct {
    ngx_command_t             value;        /* sets the field of the value */
    ngx_command_t             parameter;    /* the same for the parameter; its
                                               name ends with "=" */
    ngx_int_t                 unset;        /* the parameter's field if the
                                               directive does not have it */
} ngx_http_dsa_parameter_t;


/*
 * Set a field of a configuration as ngx_conf_set_enum_slot() and its siblings
 * do, with an error that has the accepted values.
 */
char *ngx_http_dsa_value_enum(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_dsa_value_msec(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_dsa_value_size(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/*
 * Sets the two fields of a directive "NAME VALUE [PARAMETER=VALUE]".  That of
 * the parameter has the size of ngx_int_t.  Both are set by each directive, so
 * a level that has the directive inherits neither.
 */
char *ngx_http_dsa_value_parameter(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


#endif /* _NGX_HTTP_DSA_VALUE_H_INCLUDED_ */
