
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_UTF8_H_INCLUDED_
#define _DSA_UTF8_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>
#include <string.h>


/*
 * Returns the length of the character at the front of p[0 .. n-1], n > 0.  0:
 * the bytes are the beginning of a character.  Negative: they are ill-formed;
 * the absolute value is the length of the maximal subpart, to be replaced by
 * one U+FFFD (Unicode 3.9, table 3-7).
 */

static inline int
dsa_utf8_char(const uint8_t *p, size_t n)
{
    int      i, need;
    uint8_t  lo, hi;

    lo = 0x80;
    hi = 0xbf;

    if (p[0] < 0x80) {
        return 1;
    }

    if (p[0] >= 0xc2 && p[0] < 0xe0) {
        need = 2;

    } else if (p[0] >= 0xe0 && p[0] < 0xf0) {
        need = 3;
        lo = (p[0] == 0xe0) ? 0xa0 : 0x80;
        hi = (p[0] == 0xed) ? 0x9f : 0xbf;

    } else if (p[0] >= 0xf0 && p[0] < 0xf5) {
        need = 4;
        lo = (p[0] == 0xf0) ? 0x90 : 0x80;
        hi = (p[0] == 0xf4) ? 0x8f : 0xbf;

    } else {
        return -1;
    }

    for (i = 1; i < need; i++) {

        if ((size_t) i == n) {
            return 0;
        }

        if (p[i] < lo || p[i] > hi) {
            return -i;
        }

        lo = 0x80;
        hi = 0xbf;
    }

    return need;
}


/* The number of bytes from p on that are whole characters, at most n. */

static inline size_t
dsa_utf8_prefix(const uint8_t *p, size_t n)
{
    int       rc;
    size_t    i;
    uint64_t  word;

    i = 0;

    while (i < n) {

        if (n - i >= sizeof(word)) {
            memcpy(&word, p + i, sizeof(word));

            if ((word & 0x8080808080808080) == 0) {
                i += sizeof(word);
                continue;
            }
        }

        rc = dsa_utf8_char(p + i, n - i);
        if (rc <= 0) {
            break;
        }

        i += (size_t) rc;
    }

    return i;
}


#endif /* _DSA_UTF8_H_INCLUDED_ */
