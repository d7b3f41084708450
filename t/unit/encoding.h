
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TEST_ENCODING_H_INCLUDED_
#define _DSA_TEST_ENCODING_H_INCLUDED_


#include "t/unit/file.h"


/*
 * Reads a file of t/data/encoding into allocated memory, NUL-terminated.  The
 * caller frees it with free().
 */

static inline char *
read_text(const char *name, size_t *len)
{
    char  path[256];

    (void) snprintf(path, sizeof(path), "t/data/encoding/%s", name);

    return read_file(path, len);
}


#endif /* _DSA_TEST_ENCODING_H_INCLUDED_ */
