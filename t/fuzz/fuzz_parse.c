
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A completion cut at random: the deltas joined have to be those of the whole
 * text in one piece.  The first two bytes say how it is cut, and whether it
 * begins with reasoning, has tools, was cut off.
 */


#include <stdlib.h>

#include "base/json.h"
#include "context/parse.h"


typedef struct {
    dsa_buf_t    out;
    dsa_delta_e  last;
    uint32_t     calls;
} fuzz_result_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_parse(fuzz_result_t *r, uint8_t how, uint32_t cut,
    const uint8_t *data, size_t size);
static int fuzz_delta(void *ctx, dsa_delta_e what, uint32_t call,
    dsa_str_t text);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t         i;
    fuzz_result_t  whole, cut;

    if (size < 2) {
        return 0;
    }

    fuzz_parse(&whole, data[0], 0, data + 2, size - 2);

    for (i = 0; i < 2; i++) {
        fuzz_parse(&cut, data[0], i == 0 ? 1 : 2 + data[1], data + 2,
                   size - 2);

        if (cut.calls != whole.calls || cut.out.len != whole.out.len
            || (cut.out.len != 0
                && memcmp(cut.out.data, whole.out.data, cut.out.len) != 0))
        {
            abort();
        }

        dsa_buf_free(&cut.out);
    }

    dsa_buf_free(&whole.out);

    return 0;
}


/* Pieces of 1 to cut bytes; 0: all at once. */

static void
fuzz_parse(fuzz_result_t *r, uint8_t how, uint32_t cut, const uint8_t *data,
    size_t size)
{
    size_t        n;
    uint32_t      seed;
    dsa_parse_t  *p;

    memset(r, 0, sizeof(fuzz_result_t));

    p = dsa_parse_create(how & 1, how & 2, fuzz_delta, r);

    if (p == NULL) {
        abort();
    }

    seed = cut;

    while (size != 0) {
        seed = seed * 1664525 + 1013904223;
        n = cut == 0 ? size : 1 + (seed >> 16) % cut;

        if (n > size) {
            n = size;
        }

        if (dsa_parse_feed(p, dsa_str(data, n)) != DSA_OK) {
            abort();
        }

        data += n;
        size -= n;
    }

    if (dsa_parse_end(p, how & 4) != DSA_OK
        || dsa_parse_calls(p) != r->calls)
    {
        abort();
    }

    dsa_parse_destroy(p);
}


static int
fuzz_delta(void *ctx, dsa_delta_e what, uint32_t call, dsa_str_t text)
{
    char            head[2];
    fuzz_result_t  *r = ctx;

    if (text.len == 0) {
        abort();
    }

    if (what == DSA_DELTA_CALL) {
        r->calls++;
    }

    if (what >= DSA_DELTA_CALL ? call != r->calls - 1 : call != 0) {
        abort();
    }

    if (what != r->last || what == DSA_DELTA_CALL) {
        head[0] = '\0';
        head[1] = (char) what;
        dsa_buf_add(&r->out, head, sizeof(head));
        r->last = what;
    }

    dsa_buf_add(&r->out, text.data, text.len);

    return DSA_OK;
}
