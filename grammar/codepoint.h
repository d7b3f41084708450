
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CODEPOINT_H_INCLUDED_
#define _DSA_CODEPOINT_H_INCLUDED_


#include "base/utf8.h"
#include "grammar/dfa.h"


/* The code point at *i of a valid UTF-8 text; moves *i behind it. */

static inline uint32_t
dsa_codepoint_next(dsa_str_t text, size_t *i)
{
    int             n;
    uint32_t        c;
    const uint8_t  *p;

    p = (const uint8_t *) text.data + *i;
    n = dsa_utf8_char(p, text.len - *i);

    if (n <= 1) {
        *i += 1;
        return p[0];
    }

    c = p[0] & (0x7f >> n);
    *i += (size_t) n;

    while (--n != 0) {
        c = c << 6 | (*++p & 0x3f);
    }

    return c;
}


/* Adds [lo, end) without the surrogates, which are not characters. */

static inline void
dsa_codepoint_ranges(dsa_dfa_t *d, uint32_t lo, uint32_t end, uint32_t to)
{
    if (lo < 0xd800 && lo < end) {
        dsa_dfa_range(d, lo, (end < 0xd800 ? end : 0xd800) - 1, to);
    }

    if (end > 0xe000 && lo < end) {
        dsa_dfa_range(d, lo > 0xe000 ? lo : 0xe000, end - 1, to);
    }
}


#endif /* _DSA_CODEPOINT_H_INCLUDED_ */
