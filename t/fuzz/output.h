
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_FUZZ_OUTPUT_H_INCLUDED_
#define _DSA_FUZZ_OUTPUT_H_INCLUDED_


#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "context/parse.h"
#include "t/fuzz/piece.h"


/*
 * The output of a model of any family, in pieces.  In the input 0xff and a
 * number are a control token.
 */

typedef struct {
    const dsa_family_t  *family;
    const dsa_types_t   *types;         /* or NULL */
    uint32_t             vocabulary;
    int                  thinking;
    int                  tools;
    int                  complete;
} fuzz_output_t;


typedef struct {
    dsa_buf_t            out;
    dsa_delta_e          last;
    uint32_t             calls;
} fuzz_result_t;


static inline int
fuzz_delta(void *ctx, dsa_delta_e what, uint32_t call, dsa_str_t text)
{
    char            kind;
    fuzz_result_t  *r = ctx;

    if (text.len == 0) {
        abort();
    }

    if (what != r->last || what == DSA_DELTA_CALL) {
        kind = (char) ('0' + what);
        dsa_buf_add(&r->out, "\n", 1);
        dsa_buf_add(&r->out, &kind, 1);
        r->last = what;
    }

    if (what == DSA_DELTA_CALL && call != r->calls++) {
        abort();
    }

    if (what == DSA_DELTA_ARGUMENTS && call + 1 != r->calls) {
        abort();
    }

    dsa_buf_add(&r->out, text.data, text.len);

    return DSA_OK;
}


/* Text in pieces of 1 to cut bytes; 0: up to the next control token. */

static inline void
fuzz_output(fuzz_result_t *r, const fuzz_output_t *o, uint32_t cut,
    const uint8_t *data, size_t size)
{
    int                          rc;
    size_t                       n;
    uint32_t                     seed, token;
    dsa_parse_t                 *p;
    const dsa_control_tokens_t  *tokens;

    memset(r, 0, sizeof(fuzz_result_t));
    tokens = &o->family->tokens;

    p = dsa_parse_create(o->family, o->thinking, o->tools, o->vocabulary,
                         fuzz_delta, r);

    if (p == NULL) {
        abort();
    }

    dsa_parse_types(p, o->types);

    for (seed = cut; size != 0; data += n, size -= n) {

        if (data[0] == 0xff && size >= 2) {
            token = (data[1] & 31) % (tokens->n + 1);
            n = 2;
            rc = dsa_parse_feed_control(p, token < tokens->n
                                           ? tokens->elts[token].name
                                           : dsa_strz("<|other|>"));

        } else {
            n = fuzz_piece(&seed, cut, data, size);
            rc = dsa_parse_feed(p, dsa_str(data, n));
        }

        if (rc != DSA_OK) {
            abort();
        }
    }

    if (dsa_parse_end(p, o->complete) != DSA_OK
        || dsa_parse_calls(p) != r->calls)
    {
        abort();
    }

    dsa_parse_destroy(p);

    if (r->out.failed || (!o->tools && r->calls != 0)) {
        abort();
    }
}


/* The deltas joined are those of the output in one piece. */

static inline void
fuzz_same(const fuzz_output_t *o, uint8_t most, const uint8_t *data,
    size_t size)
{
    size_t         i;
    fuzz_result_t  whole, cut;

    fuzz_output(&whole, o, 0, data, size);

    for (i = 0; i < 2; i++) {
        fuzz_output(&cut, o, i == 0 ? 1 : 2 + most, data, size);

        if (cut.calls != whole.calls
            || !dsa_str_eq(dsa_str(cut.out.data, cut.out.len),
                           dsa_str(whole.out.data, whole.out.len)))
        {
            abort();
        }

        dsa_buf_free(&cut.out);
    }

    dsa_buf_free(&whole.out);
}


#endif /* _DSA_FUZZ_OUTPUT_H_INCLUDED_ */
