
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "ngx_http_dsa_wrong.h"


int
ngx_http_dsa_wrong_range(ngx_http_dsa_wrong_t *w, const char *field,
    uint64_t value, uint64_t low, uint64_t high)
{
    if (value >= low && value <= high) {
        return 0;
    }

    if (low == high) {
        return ngx_http_dsa_wrong(w, field, "with %s %" PRIu64 ", expected %"
                                  PRIu64, field, value, low);
    }

    if (high == UINT32_MAX) {
        return ngx_http_dsa_wrong(w, field, "with %s %" PRIu64 ", expected at "
                                  "least %" PRIu64, field, value, low);
    }

    return ngx_http_dsa_wrong(w, field, "with %s %" PRIu64 ", expected %"
                              PRIu64 " to %" PRIu64, field, value, low, high);
}


int
ngx_http_dsa_wrong(ngx_http_dsa_wrong_t *w, const char *field,
    const char *fmt, ...)
{
    va_list  args;

    w->field = field;

    va_start(args, fmt);
    (void) vsnprintf(w->text, sizeof(w->text), fmt, args);
    va_end(args);

    return -1;
}
