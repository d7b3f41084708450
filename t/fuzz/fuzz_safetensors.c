
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A safetensors file of any bytes either fails with an error, or each byte
 * behind its header belongs to one tensor.
 */


#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/safetensors.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t                  i, n;
    uint64_t                  k, total;
    dsa_st_t                 *st;
    dsa_err_t                 err;
    const uint8_t            *p;
    uint8_t                  *seen;
    const dsa_st_tensor_t    *t;

    err.text[0] = '\0';
    st = dsa_st_read("file", data, size, &err);

    if (st == NULL) {
        if (strncmp(err.text, "file: ", 6) != 0) {
            abort();
        }

        return 0;
    }

    n = dsa_st_count(st);
    total = 8 + dsa_st_header(st).len;
    seen = calloc(size, 1);

    if (seen == NULL || total > size) {
        abort();
    }

    memset(seen, 1, total);

    for (i = 0; i < n; i++) {
        t = dsa_st_at(st, i);

        if (dsa_st_find(st, t->name) != t) {
            abort();
        }

        p = t->data;

        if (t->size != 0
            && (p < data || t->size > size
                || (size_t) (p - data) > size - t->size))
        {
            abort();
        }

        for (k = 0; k < t->size; k++) {
            if (seen[p - data + k]++ != 0) {
                abort();
            }
        }

        total += t->size;
    }

    if (total != size) {
        abort();
    }

    free(seen);
    dsa_st_close(st);

    return 0;
}
