
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "error.h"
#include "surrogates.h"


/* The position within an escape, which decides what may come next. */

typedef enum {
    DSA_SURROGATES_PLAIN = 0,
    DSA_SURROGATES_BACKSLASH,
    DSA_SURROGATES_HEX          /* this and the next three: a digit */
} dsa_surrogates_e;


static int dsa_surrogates_byte(dsa_surrogates_t *s, char c);


size_t
dsa_surrogates_check(dsa_surrogates_t *s, const char *data, size_t len)
{
    size_t       i;
    const char  *backslash;

    for (i = 0; i < len; i++) {

        if (s->state == DSA_SURROGATES_PLAIN && s->high == 0) {
            backslash = memchr(data + i, '\\', len - i);

            if (backslash == NULL) {
                return len;
            }

            i = (size_t) (backslash - data);
        }

        if (dsa_surrogates_byte(s, data[i]) != DSA_OK) {
            return i;
        }
    }

    return len;
}


/* DSA_ERROR: this byte shows that an escape is unpaired. */

static int
dsa_surrogates_byte(dsa_surrogates_t *s, char c)
{
    if (s->state == DSA_SURROGATES_PLAIN) {
        s->state = c == '\\' ? DSA_SURROGATES_BACKSLASH : DSA_SURROGATES_PLAIN;
        return c == '\\' || s->high == 0 ? DSA_OK : DSA_ERROR;
    }

    if (s->state == DSA_SURROGATES_BACKSLASH) {
        s->state = c == 'u' ? DSA_SURROGATES_HEX : DSA_SURROGATES_PLAIN;
        s->code = 0;
        return c == 'u' || s->high == 0 ? DSA_OK : DSA_ERROR;
    }

    s->code = s->code * 16
              + (c <= '9' ? (uint32_t) c & 0xf : ((uint32_t) c & 0x7) + 9);

    if (s->state++ != DSA_SURROGATES_HEX + 3) {
        return DSA_OK;
    }

    s->state = DSA_SURROGATES_PLAIN;

    if (s->high != 0) {
        s->high = 0;
        return (s->code & 0xfc00) == 0xdc00 ? DSA_OK : DSA_ERROR;
    }

    if ((s->code & 0xfc00) == 0xd800) {
        s->high = s->code;
    }

    return (s->code & 0xfc00) == 0xdc00 ? DSA_ERROR : DSA_OK;
}
