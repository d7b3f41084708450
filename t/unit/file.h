
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TEST_FILE_H_INCLUDED_
#define _DSA_TEST_FILE_H_INCLUDED_


#include <stdio.h>
#include <stdlib.h>


/*
 * Reads a file into allocated memory, NUL-terminated.  The caller frees it with
 * free().  cmocka.h must be included before this file.
 */

static inline char *
read_file(const char *path, size_t *len)
{
    char    *text;
    long     n;
    FILE    *f;

    f = fopen(path, "rb");
    assert_non_null(f);

    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    n = ftell(f);
    rewind(f);

    text = malloc(n + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, n, f), n);
    text[n] = '\0';

    (void) fclose(f);

    *len = n;

    return text;
}


#endif /* _DSA_TEST_FILE_H_INCLUDED_ */
