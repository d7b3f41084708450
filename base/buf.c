
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "buf.h"


void
dsa_buf_add(dsa_buf_t *b, const void *data, size_t len)
{
    char    *p;
    size_t   size;

    if (b->failed || len == 0) {
        return;
    }

    if (len > b->size - b->len) {
        size = b->size != 0 ? b->size : 256;

        while (len > size - b->len) {
            size *= 2;
        }

        p = realloc(b->data, size);
        if (p == NULL) {
            b->failed = 1;
            return;
        }

        b->data = p;
        b->size = size;
    }

    memcpy(b->data + b->len, data, len);
    b->len += len;
}


void
dsa_buf_addz(dsa_buf_t *b, const char *text)
{
    dsa_buf_add(b, text, strlen(text));
}


void
dsa_buf_printf(dsa_buf_t *b, const char *fmt, ...)
{
    int       n;
    char      small[256], *text;
    va_list   args;

    va_start(args, fmt);
    n = vsnprintf(small, sizeof(small), fmt, args);
    va_end(args);

    if (n < 0) {
        b->failed = 1;
        return;
    }

    if ((size_t) n < sizeof(small)) {
        dsa_buf_add(b, small, n);
        return;
    }

    text = malloc((size_t) n + 1);
    if (text == NULL) {
        b->failed = 1;
        return;
    }

    va_start(args, fmt);
    n = vsnprintf(text, (size_t) n + 1, fmt, args);
    va_end(args);

    dsa_buf_add(b, text, n);
    free(text);
}


void
dsa_buf_free(dsa_buf_t *b)
{
    free(b->data);
    memset(b, 0, sizeof(dsa_buf_t));
}
