
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "json.h"


static size_t dsa_json_unescape_one(dsa_buf_t *b, dsa_str_t s);
static int dsa_json_hex(dsa_str_t s, uint32_t *code);


int
dsa_json_unescape(dsa_buf_t *b, dsa_str_t s)
{
    size_t       n, len;
    const char  *esc;

    len = b->len;

    while (s.len != 0) {
        esc = memchr(s.data, '\\', s.len);
        n = esc != NULL ? (size_t) (esc - s.data) : s.len;

        dsa_buf_add(b, s.data, n);

        if (esc == NULL) {
            break;
        }

        s = dsa_str(esc, s.len - n);
        n = dsa_json_unescape_one(b, s);

        if (n == 0) {
            b->len = len;
            return DSA_ERROR;
        }

        s = dsa_str(s.data + n, s.len - n);
    }

    return DSA_OK;
}


/* Returns the length of the escape at the front of s, 0 if it is invalid. */

static size_t
dsa_json_unescape_one(dsa_buf_t *b, dsa_str_t s)
{
    char         utf8[4];
    size_t       n;
    uint32_t     code, low;
    const char  *from;

    static const char  plain[] = "\"\"\\\\//b\bf\fn\nr\rt\t";

    if (s.len < 2) {
        return 0;
    }

    for (from = plain; *from != '\0'; from += 2) {
        if (s.data[1] == *from) {
            dsa_buf_add(b, from + 1, 1);
            return 2;
        }
    }

    if (dsa_json_hex(s, &code) != DSA_OK) {
        return 0;
    }

    n = 6;

    if ((code & 0xf800) == 0xd800) {
        if ((code & 0x400) != 0
            || dsa_json_hex(dsa_str(s.data + n, s.len - n), &low) != DSA_OK
            || (low & 0xfc00) != 0xdc00)
        {
            return 0;
        }

        code = 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
        n = 12;
    }

    if (code < 0x80) {
        utf8[0] = code;
        dsa_buf_add(b, utf8, 1);

    } else if (code < 0x800) {
        utf8[0] = 0xc0 | code >> 6;
        utf8[1] = 0x80 | (code & 0x3f);
        dsa_buf_add(b, utf8, 2);

    } else if (code < 0x10000) {
        utf8[0] = 0xe0 | code >> 12;
        utf8[1] = 0x80 | (code >> 6 & 0x3f);
        utf8[2] = 0x80 | (code & 0x3f);
        dsa_buf_add(b, utf8, 3);

    } else {
        utf8[0] = 0xf0 | code >> 18;
        utf8[1] = 0x80 | (code >> 12 & 0x3f);
        utf8[2] = 0x80 | (code >> 6 & 0x3f);
        utf8[3] = 0x80 | (code & 0x3f);
        dsa_buf_add(b, utf8, 4);
    }

    return n;
}


/* Reads \uXXXX at the front of s. */

static int
dsa_json_hex(dsa_str_t s, uint32_t *code)
{
    char    c;
    size_t  i;

    if (s.len < 6 || s.data[0] != '\\' || s.data[1] != 'u') {
        return DSA_ERROR;
    }

    *code = 0;

    for (i = 2; i < 6; i++) {
        c = s.data[i] | 0x20;

        if (s.data[i] >= '0' && s.data[i] <= '9') {
            *code = *code * 16 + (s.data[i] - '0');

        } else if (c >= 'a' && c <= 'f') {
            *code = *code * 16 + (c - 'a' + 10);

        } else {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}
