
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ID_H_INCLUDED_
#define _DSA_ID_H_INCLUDED_


#include <stddef.h>
#include <string.h>

#include "base/str.h"


/* 1 if id has len bytes: the prefix, then lower-case hexadecimal digits. */

static inline int
dsa_id_ok(dsa_str_t id, dsa_str_t prefix, size_t len)
{
    char    c;
    size_t  i;

    if (id.len != len || memcmp(id.data, prefix.data, prefix.len) != 0) {
        return 0;
    }

    for (i = prefix.len; i < id.len; i++) {
        c = id.data[i];

        if ((c < 'a' || c > 'f') && (c < '0' || c > '9')) {
            return 0;
        }
    }

    return 1;
}


#endif /* _DSA_ID_H_INCLUDED_ */
