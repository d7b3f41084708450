
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Retained answers.  The first byte chooses: a sampled text
 * that is retained and restored, see t/unit/retained.h, or any bytes that are
 * read as a retained answer.  In the latter case the checksum is put behind
 * them, because no input would have a valid one, and a retained answer that is
 * accepted must be written again in the same bytes.
 */


#include <endian.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "t/unit/retained.h"


#define BYTES_FLAG    0x80


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
check_record(const uint8_t *data, size_t size)
{
    char                  *p;
    uint32_t               i;
    uint64_t               sum;
    dsa_err_t              err;
    dsa_arena_t           *arena;
    dsa_sampled_t         *s;
    dsa_sampled_writer_t   w;

    p = malloc(size + 8);
    arena = dsa_arena_create(HISTORY_MEMORY);

    if (p == NULL || arena == NULL) {
        abort();
    }

    /* also the bytes alone, and with a valid checksum */

    (void) dsa_sampled_read(arena, &dsa_deepseek, dsa_str(data, size), &err);

    memcpy(p, data, size);
    sum = htole64(XXH3_64bits(data, size));
    memcpy(p + size, &sum, 8);

    s = dsa_sampled_read(arena, &dsa_deepseek, dsa_str(p, size + 8), &err);

    if (s != NULL) {
        memset(&w, 0, sizeof(dsa_sampled_writer_t));
        dsa_sampled_start(&w, &dsa_deepseek, s->thinking, s->vocabulary);

        for (i = 0; i < s->n; i++) {
            dsa_sampled_add(&w, s->segments[i].text,
                            s->segments[i].kind == DSA_SEGMENT_CONTROL);
        }

        if (dsa_sampled_end(&w) != DSA_OK || w.answer.len != size + 8
            || memcmp(w.answer.data, p, size + 8) != 0)
        {
            abort();
        }

        i = dsa_sampled_behind_reasoning(s);

        if (i != UINT32_MAX && i > s->n) {
            abort();
        }

        dsa_buf_free(&w.answer);
    }

    dsa_arena_destroy(arena);
    free(p);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char  *why;

    if (size == 0) {
        return 0;
    }

    if ((data[0] & BYTES_FLAG) != 0) {
        check_record(data + 1, size - 1);
        return 0;
    }

    why = retained_check(data + 1, size - 1, data[0] & HISTORY_FLAGS);

    if (why != NULL) {
        (void) fprintf(stderr, "%s\n", why);
        abort();
    }

    return 0;
}
