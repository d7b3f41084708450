
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BUF_H_INCLUDED_
#define _DSA_BUF_H_INCLUDED_


#include <stddef.h>

#include "str.h"


/*
 * Text under construction.  The owner of the buffer frees its bytes with
 * dsa_buf_free().  If an allocation fails, "failed" is set and later additions
 * are dropped, so that a caller checks once, at the end.  A zeroed buffer is
 * empty.
 */

typedef struct {
    char     *data;
    size_t    len;              /* bytes used */
    size_t    size;             /* bytes allocated */
    int       failed;
} dsa_buf_t;


void dsa_buf_add(dsa_buf_t *b, const void *data, size_t len);

/* Appends a NUL-terminated text. */
void dsa_buf_addz(dsa_buf_t *b, const char *text);

void dsa_buf_printf(dsa_buf_t *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

void dsa_buf_free(dsa_buf_t *b);


#endif /* _DSA_BUF_H_INCLUDED_ */
