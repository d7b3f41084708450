
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"


int
dsa_error(dsa_err_t *err, const char *fmt, ...)
{
    va_list  args;

    if (err != NULL) {
        va_start(args, fmt);
        (void) vsnprintf(err->text, sizeof(err->text), fmt, args);
        va_end(args);
    }

    return DSA_ERROR;
}
