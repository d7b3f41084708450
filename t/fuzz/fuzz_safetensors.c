
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A safetensors file of any bytes either fails with an error, or all of its
 * tensors are within the file.
 */


#include <stdlib.h>

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
    volatile uint8_t          sum;
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
    sum = 0;

    for (i = 0; i < n; i++) {
        t = dsa_st_at(st, i);

        if (dsa_st_find(st, t->name) != t) {
            abort();
        }

        p = t->data;

        for (k = 0; k < t->size; k++) {
            sum = (uint8_t) (sum + p[k]);
        }

        total += t->size;
    }

    if (total != size) {
        abort();
    }

    dsa_st_close(st);

    return 0;
}
