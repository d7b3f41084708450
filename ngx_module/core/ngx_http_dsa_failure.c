
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <stdarg.h>

#include "ngx_http_dsa_failure.h"


void
ngx_http_dsa_failure_set(ngx_http_dsa_failure_t *failure, ngx_uint_t status,
    const char *param, const char *fmt, ...)
{
    va_list  args;

    if (failure->status != 0) {
        return;
    }

    failure->status = status;
    failure->param = param;

    va_start(args, fmt);
    (void) vsnprintf(failure->text, sizeof(failure->text), fmt, args);
    va_end(args);
}


void
ngx_http_dsa_failure_refused(ngx_http_dsa_failure_t *failure,
    ngx_pool_t *pool, const dsa_refusal_t *refusal)
{
    size_t  len;
    char   *param;

    param = NULL;
    len = ngx_strlen(refusal->param);

    if (len != 0) {
        param = ngx_pnalloc(pool, len + 1);

        if (param != NULL) {
            ngx_memcpy(param, refusal->param, len + 1);
        }
    }

    ngx_http_dsa_failure_set(failure, refusal->status, param, "%s",
                             refusal->message);
}


void
ngx_http_dsa_failure_memory(ngx_http_dsa_failure_t *failure)
{
    ngx_http_dsa_failure_set(failure, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL,
                             "Out of memory.");
}
