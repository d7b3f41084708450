
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_FUZZ_PIECE_H_INCLUDED_
#define _DSA_FUZZ_PIECE_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>
#include <string.h>


/*
 * Returns the length of the next piece of a model's output, which begins with
 * text: 1 to cut bytes, by *seed, which changes; cut 0: all bytes in front of
 * the next FF, which announces a control token.
 */

static inline size_t
fuzz_piece(uint32_t *seed, uint32_t cut, const uint8_t *data, size_t size)
{
    size_t          n;
    const uint8_t  *mark;

    *seed = *seed * 1664525 + 1013904223;
    mark = memchr(data + 1, 0xff, size - 1);
    n = mark != NULL ? (size_t) (mark - data) : size;

    if (cut != 0 && n > 1 + (*seed >> 16) % cut) {
        n = 1 + (*seed >> 16) % cut;
    }

    return n;
}


#endif /* _DSA_FUZZ_PIECE_H_INCLUDED_ */
