
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "base/utf8.h"
#include "base/escape.h"


size_t
dsa_escape(char *out, size_t room, const char *text, size_t len)
{
    int             rc, i, plain;
    size_t          n, at;
    const uint8_t  *p;

    static const char  hex[] = "0123456789abcdef";

    n = 0;

    for (at = 0; at < len; at += (size_t) rc) {
        p = (const uint8_t *) text + at;
        rc = dsa_utf8_char(p, len - at);
        plain = rc > 0 && p[0] >= 0x20 && p[0] != 0x7f
                && (p[0] != 0xc2 || p[1] >= 0xa0);

        if (rc <= 0) {
            rc = 1;
        }

        if (n + (size_t) rc * (plain ? 1 : 4) > room) {
            break;
        }

        for (i = 0; i < rc; i++) {
            if (plain) {
                out[n++] = (char) p[i];
                continue;
            }

            out[n++] = '\\';
            out[n++] = 'x';
            out[n++] = hex[p[i] >> 4];
            out[n++] = hex[p[i] & 15];
        }
    }

    return n;
}
