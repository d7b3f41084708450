
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The output of DeepSeek-V3.1, cut at random: the deltas joined must be those
 * of the output in one piece.
 *
 * The first byte has the options of the parser, the second one how the text is
 * cut.  In the text, a byte FF and the low five bits of the byte after it are a
 * control token.
 */


#include <stdlib.h>

#include "base/buf.h"
#include "context/deepseek/v3.h"
#include "context/parse.h"
#include "t/fuzz/piece.h"


#define FUZZ_THINKING  1            /* in the first byte */
#define FUZZ_TOOLS     2
#define FUZZ_COMPLETE  4
#define FUZZ_ALL       8            /* the vocabulary has all tokens,
                                       not some of them */
#define FUZZ_NONE      16           /* it has none */

#define FUZZ_SOME      0x5555u


typedef struct {
    dsa_buf_t    out;
    dsa_delta_e  last;
    uint32_t     calls;
} fuzz_result_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t fuzz_vocabulary(uint8_t how);
static void fuzz_parse(fuzz_result_t *r, uint8_t how, uint32_t cut,
    const uint8_t *data, size_t size);
static int fuzz_delta(void *ctx, dsa_delta_e what, uint32_t call,
    dsa_str_t text);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t          i;
    fuzz_result_t   whole, cut;

    if (size < 2) {
        return 0;
    }

    fuzz_parse(&whole, data[0], 0, data + 2, size - 2);

    for (i = 0; i < 2; i++) {
        fuzz_parse(&cut, data[0], i == 0 ? 1 : 2 + data[1], data + 2,
                   size - 2);

        if (cut.calls != whole.calls
            || !dsa_str_eq(dsa_str(cut.out.data, cut.out.len),
                           dsa_str(whole.out.data, whole.out.len)))
        {
            abort();
        }

        dsa_buf_free(&cut.out);
    }

    dsa_buf_free(&whole.out);

    return 0;
}


static uint32_t
fuzz_vocabulary(uint8_t how)
{
    if ((how & FUZZ_NONE) != 0) {
        return 0;
    }

    return (how & FUZZ_ALL) != 0 ? (1u << DSA_V3_1_TOKENS) - 1 : FUZZ_SOME;
}


/* Text in pieces of 1 to cut bytes; 0: up to the next control token. */

static void
fuzz_parse(fuzz_result_t *r, uint8_t how, uint32_t cut,
    const uint8_t *data, size_t size)
{
    int           rc;
    size_t        n;
    uint32_t      seed, token;
    dsa_parse_t  *p;

    memset(r, 0, sizeof(fuzz_result_t));

    p = dsa_parse_create(&dsa_deepseek_v3_1, how & FUZZ_THINKING,
                         how & FUZZ_TOOLS, fuzz_vocabulary(how), fuzz_delta,
                         r);

    if (p == NULL) {
        abort();
    }

    for (seed = cut; size != 0; data += n, size -= n) {

        if (data[0] == 0xff && size >= 2) {
            token = (data[1] & 31) % (DSA_V3_1_TOKENS + 1);
            n = 2;
            rc = dsa_parse_feed_control(p, token < DSA_V3_1_TOKENS
                                           ? dsa_v3_1_tokens[token].name
                                           : dsa_strz("<|other|>"));

        } else {
            n = fuzz_piece(&seed, cut, data, size);
            rc = dsa_parse_feed(p, dsa_str(data, n));
        }

        if (rc != DSA_OK) {
            abort();
        }
    }

    if (dsa_parse_end(p, how & FUZZ_COMPLETE) != DSA_OK
        || dsa_parse_calls(p) != r->calls)
    {
        abort();
    }

    dsa_parse_destroy(p);

    if (r->out.failed || ((how & FUZZ_TOOLS) == 0 && r->calls != 0)) {
        abort();
    }
}


static int
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
