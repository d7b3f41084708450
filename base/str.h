
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_STR_H_INCLUDED_
#define _DSA_STR_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>
#include <string.h>


/* A reference to bytes that have another owner; not NUL-terminated. */

typedef struct {
    size_t      len;
    const char *data;
} dsa_str_t;


#define dsa_string(lit)     { sizeof(lit) - 1, lit }
#define dsa_null_string     { 0, NULL }


static inline dsa_str_t
dsa_str(const void *data, size_t len)
{
    dsa_str_t  s = { len, data };

    return s;
}


static inline dsa_str_t
dsa_strz(const char *text)
{
    return dsa_str(text, strlen(text));
}


static inline int
dsa_str_eq(dsa_str_t a, dsa_str_t b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}


static inline int
dsa_str_eqz(dsa_str_t a, const char *text)
{
    return dsa_str_eq(a, dsa_strz(text));
}


/* Without white space (of JSON) at both ends. */

static inline dsa_str_t
dsa_str_trim(dsa_str_t text)
{
    while (text.len != 0 && memchr(" \t\r\n", text.data[0], 4) != NULL) {
        text.data++;
        text.len--;
    }

    while (text.len != 0
           && memchr(" \t\r\n", text.data[text.len - 1], 4) != NULL)
    {
        text.len--;
    }

    return text;
}


#endif /* _DSA_STR_H_INCLUDED_ */
