
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_OLD_H_INCLUDED_
#define _NGX_HTTP_DSA_OLD_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Directives that exist no longer, and what to write instead.  Each is an error
 * of the configuration in all places, because nginx would only log that it is
 * unknown.
 */

#define NGX_HTTP_DSA_OLD_COMMANDS                                             \
    NGX_HTTP_DSA_OLD("dsa_currency", "dsa_price currency=NAME"),              \
    NGX_HTTP_DSA_OLD("dsa_keepalive_json", "dsa_keepalive TIME json=on|off"), \
    NGX_HTTP_DSA_OLD("dsa_context_threshold",                                 \
                     "dsa_context_strategy STRATEGY threshold=PERCENT"),      \
    NGX_HTTP_DSA_OLD("dsa_retention_ttl", "dsa_retention MODE ttl=TIME")


#define NGX_HTTP_DSA_OLD(name, instead)                                       \
    { ngx_string(name),                                                       \
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF                  \
                        |NGX_HTTP_LIF_CONF|NGX_CONF_ANY,                      \
      ngx_http_dsa_old_directive,                                             \
      0,                                                                      \
      0,                                                                      \
      instead }


/* Logs the error; cmd->post is what to write instead. */
char *ngx_http_dsa_old_directive(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


#endif /* _NGX_HTTP_DSA_OLD_H_INCLUDED_ */
