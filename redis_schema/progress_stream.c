
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "progress_stream.h"


static void dsa_progress_stream_event(dsa_progress_stream_t *s,
    dsa_buf_t *out, const char *text, size_t len, int64_t after);


void
dsa_progress_stream_init(dsa_progress_stream_t *s)
{
    memset(s, 0, sizeof(dsa_progress_stream_t));

    s->last = -1;
}


void
dsa_progress_stream_free(dsa_progress_stream_t *s)
{
    dsa_buf_free(&s->rest);
}


int
dsa_progress_stream_add(dsa_progress_stream_t *s, dsa_buf_t *out,
    dsa_str_t chunk, int64_t after, dsa_err_t *err)
{
    char       *p, *end, *from;
    size_t      old;
    dsa_buf_t  *b;

    if (chunk.len == 0) {
        return DSA_OK;
    }

    if (chunk.len > DSA_PROGRESS_EVENTS - s->bytes) {
        return dsa_error(err, "Redis has more than %d bytes of events of a "
                         "response", DSA_PROGRESS_EVENTS);
    }

    s->bytes += chunk.len;

    b = &s->rest;
    old = b->len;

    dsa_buf_add(b, chunk.data, chunk.len);

    if (b->failed) {
        return dsa_error(err, "out of memory for events");
    }

    p = b->data;

    /* what was there before has no end of an event, but may have half of it */

    from = p + (old != 0 ? old - 1 : 0);

    for ( ;; ) {
        end = memmem(from, b->data + b->len - from, "\n\n", 2);

        if (end == NULL) {
            break;
        }

        end += 2;
        dsa_progress_stream_event(s, out, p, end - p, after);
        p = end;
        from = end;
    }

    b->len -= p - b->data;
    memmove(b->data, p, b->len);

    return DSA_OK;
}


static void
dsa_progress_stream_event(dsa_progress_stream_t *s, dsa_buf_t *out,
    const char *text, size_t len, int64_t after)
{
    int64_t      n;
    const char  *p, *end;

    static const char  name[] = "\"sequence_number\":";

    end = text + len;
    p = memmem(text, len, name, sizeof(name) - 1);

    if (text[0] == ':' || p == NULL) {
        return;
    }

    n = 0;

    for (p += sizeof(name) - 1;
         p < end && *p >= '0' && *p <= '9' && n < INT32_MAX;
         p++)
    {
        n = 10 * n + (*p - '0');
    }

    s->last = n;

    if (n > after) {
        dsa_buf_add(out, text, len);
    }
}
