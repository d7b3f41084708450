
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TEST_ENCODING_H_INCLUDED_
#define _DSA_TEST_ENCODING_H_INCLUDED_


/*
 * Reads a file of t/data/encoding into allocated memory, NUL-terminated.  The
 * caller frees it with free().
 */

static inline char *
read_text(const char *name, size_t *len)
{
    char    path[256], *text;
    long    n;
    FILE   *f;

    (void) snprintf(path, sizeof(path), "t/data/encoding/%s", name);

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


#endif /* _DSA_TEST_ENCODING_H_INCLUDED_ */
