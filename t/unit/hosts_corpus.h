
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_T_HOSTS_CORPUS_H_INCLUDED_
#define _DSA_T_HOSTS_CORPUS_H_INCLUDED_


#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"


/*
 * The checks of a fuzz target, which the test includes, on its corpus: each
 * input whole, cut off after each byte, and with each word replaced.
 */


static inline void
corpus_read(const char *dir, const char *name, dsa_buf_t *text)
{
    char       path[512];
    dsa_err_t  err;

    (void) snprintf(path, sizeof(path), "%s%s", dir, name);
    memset(text, 0, sizeof(dsa_buf_t));
    assert_int_equal(dsa_file_read(path, 65536, text, &err), DSA_OK);
}


static inline void
corpus_replace(const dsa_buf_t *text, size_t step)
{
    size_t     i, n;
    uint8_t   *copy;

    static const uint32_t  values[] = {
        0, 1, 2, 0x7fffffff, 0x80000000, UINT32_MAX, UINT32_MAX - 1, 256, 96
    };

    copy = malloc(text->len);
    assert_non_null(copy);

    for (n = 1; n + 4 <= text->len; n += step) {
        for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
            memcpy(copy, text->data, text->len);
            memcpy(copy + n, &values[i], sizeof(values[i]));
            (void) LLVMFuzzerTestOneInput(copy, text->len);
        }
    }

    free(copy);
}


/* Words begin at every byte, or, where that takes long, at every step-th. */

static inline void
corpus_run(const char *dir, size_t step)
{
    DIR            *d;
    size_t          n;
    uint32_t        files;
    dsa_buf_t       text;
    struct dirent  *entry;

    d = opendir(dir);
    assert_non_null(d);

    for (files = 0; (entry = readdir(d)) != NULL; /* void */ ) {
        if (entry->d_name[0] == '.') {
            continue;
        }

        corpus_read(dir, entry->d_name, &text);

        for (n = 1; n <= text.len; n++) {
            (void) LLVMFuzzerTestOneInput((uint8_t *) text.data, n);
        }

        corpus_replace(&text, step);
        dsa_buf_free(&text);
        files++;
    }

    (void) closedir(d);
    assert_int_not_equal(files, 0);
}


/* An input of a test, which it puts together. */

typedef struct {
    uint8_t             byte[8192];
    size_t              n;
} input_t;


static inline void
input_add(input_t *in, const void *data, size_t n)
{
    assert_true(n <= sizeof(in->byte) - in->n);

    if (n != 0) {
        memcpy(in->byte + in->n, data, n);
        in->n += n;
    }
}


static inline void
contains(const char *text, const char *want)
{
    if (strstr(text, want) == NULL) {
        fail_msg("\"%s\" does not contain \"%s\"", text, want);
    }
}


#endif /* _DSA_T_HOSTS_CORPUS_H_INCLUDED_ */
