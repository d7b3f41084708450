
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
ngx_http_dsa_failure_memory(ngx_http_dsa_failure_t *failure)
{
    ngx_http_dsa_failure_set(failure, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL,
                             "Out of memory.");
}
