
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_old.h"


char *
ngx_http_dsa_old_directive(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "the \"%V\" directive is obsolete, use \"%s\" instead",
                       &cmd->name, cmd->post);

    return NGX_CONF_ERROR;
}
