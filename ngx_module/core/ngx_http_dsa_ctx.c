
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_dsa_conf.h"
#include "ngx_http_dsa_ctx.h"


ngx_int_t
ngx_http_dsa_request_id(ngx_http_request_t *r, ngx_str_t *id)
{
    ngx_http_dsa_ctx_t         *ctx;
    ngx_http_variable_value_t  *v;
    ngx_http_dsa_main_conf_t   *mcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);

    if (ctx != NULL) {
        *id = ctx->id;
        return NGX_OK;
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    v = ngx_http_get_indexed_variable(r, mcf->request_id);

    if (v == NULL || v->not_found) {
        return NGX_ERROR;
    }

    id->data = v->data;
    id->len = v->len;

    return NGX_OK;
}
