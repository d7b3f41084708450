
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>

#include "context/delta.h"


static void dsa_deltas_flush(dsa_deltas_t *d, size_t len);
static size_t dsa_delta_whole(const char *data, size_t len);


void
dsa_deltas_start(dsa_deltas_t *d, dsa_delta_buffer_t *buffer)
{
    buffer->len = 0;
    d->buffer = buffer;
}


int
dsa_deltas_finish(dsa_deltas_t *d)
{
    dsa_deltas_flush(d, d->buffer->len);
    d->buffer = NULL;

    return d->rc;
}


void
dsa_deltas_add(dsa_deltas_t *d, dsa_delta_e what, const char *data,
    size_t len)
{
    size_t               n;
    dsa_delta_buffer_t  *b;

    b = d->buffer;

    if (b->len != 0 && b->what != what) {
        dsa_deltas_flush(d, b->len);
    }

    b->what = what;

    while (len != 0) {
        n = DSA_DELTA_BUFFER - b->len;

        if (n == 0) {
            dsa_deltas_flush(d, dsa_delta_whole(b->data, b->len));
            continue;
        }

        if (n > len) {
            n = len;
        }

        memcpy(b->data + b->len, data, n);
        b->len += n;
        data += n;
        len -= n;
    }
}


void
dsa_deltas_call(dsa_deltas_t *d, dsa_str_t name)
{
    dsa_deltas_flush(d, d->buffer->len);

    d->calls++;

    if (d->rc == DSA_OK) {
        d->rc = d->callback(d->ctx, DSA_DELTA_CALL, d->calls - 1, name);
    }
}


/*
 * dsa_json_escape() writes to an allocated buffer.  Here the text goes straight
 * to the delta that is being joined.
 */

void
dsa_deltas_escape(dsa_deltas_t *d, const char *data, size_t len)
{
    int            n;
    char           u[8];
    size_t         i, from;
    unsigned char  c;

    static const char  escapes[] = "\"\"\\\\\nn\rr\tt\bb\ff";
    const char        *esc;

    from = 0;

    for (i = 0; i < len; i++) {
        c = data[i];

        if (c >= 0x20 && c != '"' && c != '\\') {
            continue;
        }

        dsa_deltas_add(d, DSA_DELTA_ARGUMENTS, data + from, i - from);
        from = i + 1;

        for (esc = escapes; *esc != '\0'; esc += 2) {
            if (*esc == (char) c) {
                break;
            }
        }

        n = *esc != '\0' ? snprintf(u, sizeof(u), "\\%c", esc[1])
                         : snprintf(u, sizeof(u), "\\u%04x", c);

        dsa_deltas_add(d, DSA_DELTA_ARGUMENTS, u, n);
    }

    if (from != len) {
        dsa_deltas_add(d, DSA_DELTA_ARGUMENTS, data + from, len - from);
    }
}


/* Delivers the first len bytes of the buffer. */

static void
dsa_deltas_flush(dsa_deltas_t *d, size_t len)
{
    uint32_t             call;
    dsa_delta_buffer_t  *b;

    b = d->buffer;

    if (len == 0) {
        return;
    }

    if (d->rc == DSA_OK) {
        call = b->what == DSA_DELTA_ARGUMENTS ? d->calls - 1 : 0;
        d->rc = d->callback(d->ctx, b->what, call, dsa_str(b->data, len));
    }

    b->len -= len;
    memmove(b->data, b->data + len, b->len);
}


/*
 * The length of data without an incomplete UTF-8 character at its end, so
 * that a full buffer is cut between characters.
 */

static size_t
dsa_delta_whole(const char *data, size_t len)
{
    size_t         n;
    unsigned char  c;

    for (n = 1; n <= 3; n++) {
        c = data[len - n];

        if (c >= 0xc0) {
            return c >= 0xf0 || (c >= 0xe0 && n < 3) || n < 2 ? len - n : len;
        }

        if (c < 0x80) {
            break;
        }
    }

    return len;
}
