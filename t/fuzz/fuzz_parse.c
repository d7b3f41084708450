
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A model's output, cut at random: the deltas joined must be those of the
 * output in one piece.
 *
 * The first byte has the options of the parser and its vocabulary, the second
 * one how the text is cut.  In the text, a byte FF and the low three bits of
 * the byte after it are a control token.
 */


#include <stdlib.h>

#include "base/buf.h"
#include "context/deepseek/deepseek.h"
#include "context/parse.h"
#include "t/fuzz/piece.h"


#define FUZZ_THINKING  1            /* in the first byte */
#define FUZZ_TOOLS     2
#define FUZZ_COMPLETE  4
#define FUZZ_VOCABULARY_SHIFT  3
#define FUZZ_ALL       ((1u << DSA_DEEPSEEK_TOKENS) - 1)


typedef struct {
    dsa_buf_t    out;
    dsa_delta_e  last;
    uint32_t     calls;
    int          reasoning;         /* the output ended in its reasoning */
} fuzz_result_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t fuzz_vocabulary(uint8_t how);
static void fuzz_parse(fuzz_result_t *r, uint8_t how, uint32_t cut,
    int spelled, const uint8_t *data, size_t size);
static int fuzz_delta(void *ctx, dsa_delta_e what, uint32_t call,
    dsa_str_t text);
static int fuzz_same(const fuzz_result_t *a, const fuzz_result_t *b);
static void fuzz_check_text(const fuzz_result_t *r, uint8_t how,
    const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t         i;
    uint32_t       vocabulary;
    fuzz_result_t  whole, cut;

    if (size < 2) {
        return 0;
    }

    vocabulary = fuzz_vocabulary(data[0]);
    fuzz_parse(&whole, data[0], 0, 0, data + 2, size - 2);

    /* without a vocabulary a name may as well be spelled */

    for (i = 0; i < 3; i++) {
        fuzz_parse(&cut, data[0], i == 0 ? 1 : 2 + data[1],
                   i == 2 && vocabulary == 0, data + 2, size - 2);

        if (!fuzz_same(&cut, &whole)) {
            abort();
        }

        dsa_buf_free(&cut.out);
    }

    if (vocabulary == FUZZ_ALL && memchr(data + 2, 0xff, size - 2) == NULL) {
        fuzz_check_text(&whole, data[0], data + 2, size - 2);
    }

    dsa_buf_free(&whole.out);

    return 0;
}


/* Five bits of the first byte; three of the tokens share one. */

static uint32_t
fuzz_vocabulary(uint8_t how)
{
    size_t    i;
    uint32_t  bits, vocabulary;

    static const uint32_t  tokens[] = {
        1u << DSA_DEEPSEEK_TOKEN_DSML,
        1u << DSA_DEEPSEEK_TOKEN_THINK_END,
        1u << DSA_DEEPSEEK_TOKEN_THINK,
        1u << DSA_DEEPSEEK_TOKEN_EOS,
        1u << DSA_DEEPSEEK_TOKEN_BOS | 1u << DSA_DEEPSEEK_TOKEN_USER
        | 1u << DSA_DEEPSEEK_TOKEN_ASSISTANT
    };

    bits = how >> FUZZ_VOCABULARY_SHIFT;
    vocabulary = 0;

    for (i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
        if ((bits >> i & 1) != 0) {
            vocabulary |= tokens[i];
        }
    }

    return vocabulary;
}


/*
 * Text in pieces of 1 to cut bytes; 0: as long as there is no control token.
 * spelled: a control token is fed as text.
 */

static void
fuzz_parse(fuzz_result_t *r, uint8_t how, uint32_t cut, int spelled,
    const uint8_t *data, size_t size)
{
    int           rc;
    size_t        n;
    uint32_t      seed, token;
    dsa_str_t     name;
    dsa_parse_t  *p;

    memset(r, 0, sizeof(fuzz_result_t));

    p = dsa_parse_create(&dsa_deepseek, how & FUZZ_THINKING, how & FUZZ_TOOLS,
                         fuzz_vocabulary(how), fuzz_delta, r);

    if (p == NULL) {
        abort();
    }

    for (seed = cut; size != 0; data += n, size -= n) {

        if (data[0] == 0xff && size >= 2) {
            token = data[1] & 7;
            name = token < DSA_DEEPSEEK_TOKENS ? dsa_deepseek_tokens[token].name
                                              : dsa_strz("<|other|>");
            n = 2;
            rc = spelled ? dsa_parse_feed(p, name)
                         : dsa_parse_feed_control(p, name);

        } else {
            n = fuzz_piece(&seed, cut, data, size);
            rc = dsa_parse_feed(p, dsa_str(data, n));
        }

        if (rc != DSA_OK) {
            abort();
        }
    }

    r->reasoning = dsa_parse_in_reasoning(p);

    if (dsa_parse_end(p, how & FUZZ_COMPLETE) != DSA_OK
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


static int
fuzz_same(const fuzz_result_t *a, const fuzz_result_t *b)
{
    return a->calls == b->calls && a->reasoning == b->reasoning
           && dsa_str_eq(dsa_str(a->out.data, a->out.len),
                         dsa_str(b->out.data, b->out.len));
}


/*
 * If the vocabulary has all control tokens and none was sampled, the text is
 * delivered unchanged as what the output began with.
 */

static void
fuzz_check_text(const fuzz_result_t *r, uint8_t how, const uint8_t *data,
    size_t size)
{
    dsa_delta_e  what;

    what = how & FUZZ_THINKING ? DSA_DELTA_REASONING : DSA_DELTA_CONTENT;

    if (r->calls != 0 || r->reasoning != (what == DSA_DELTA_REASONING)) {
        abort();
    }

    if (size == 0) {
        return;
    }

    if (r->last != what || r->out.len != size + 2
        || memcmp(r->out.data + 2, data, size) != 0)
    {
        abort();
    }
}
