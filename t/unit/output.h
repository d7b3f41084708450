
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TEST_OUTPUT_H_INCLUDED_
#define _DSA_TEST_OUTPUT_H_INCLUDED_


#include <stdio.h>

#include "base/buf.h"
#include "context/deepseek/deepseek.h"
#include "context/parse.h"


/*
 * Outputs of a model, and what the parser makes of them.  cmocka.h must be
 * included before this file.
 */

#define D        DSA_DEEPSEEK_DSML
#define EOS      DSA_DEEPSEEK_EOS

#define CALLS    "<" D "function_calls>\n"
#define END      "</" D "function_calls>"
#define F        "<" D "invoke name=\"f\">\n"
#define G        "<" D "invoke name=\"g\">\n"
#define FEND     "</" D "invoke>\n"
#define STR(k)   "<" D "parameter name=\"" k "\" string=\"true\">"
#define VAL(k)   "<" D "parameter name=\"" k "\" string=\"false\">"
#define PEND     "</" D "parameter>\n"

/* In an input: the name that follows was sampled as one token. */
#define T        "\xff"

#define ALL      ((1u << DSA_DEEPSEEK_TOKENS) - 1)
#define BIT(x)   (1u << DSA_DEEPSEEK_TOKEN_ ## x)


enum {
    THINK = 1,
    NOTOOLS = 2,
    CUT = 4             /* the output was cut off */
};


/*
 * What a parser has delivered: R, C, N and A for reasoning, content, a call's
 * name and its arguments, in their order, neighbors of one kind joined.
 */

typedef struct {
    dsa_buf_t    out;
    dsa_delta_e  last;
    uint32_t     calls;
    int          whole;         /* every delta holds whole characters */
    uint32_t     n;
} result_t;


static inline void
result_close(result_t *r)
{
    if (r->last != 0) {
        dsa_buf_addz(&r->out, ")");
    }

    r->last = 0;
}


static inline int
on_delta(void *ctx, dsa_delta_e what, uint32_t call, dsa_str_t text)
{
    result_t  *r = ctx;

    r->n++;

    assert_true(text.len != 0);

    if ((text.data[0] & 0xc0) == 0x80) {
        r->whole = 0;
    }

    if (what == DSA_DELTA_CALL) {
        assert_int_equal(call, r->calls);
        r->calls++;
    }

    if (what == DSA_DELTA_ARGUMENTS) {
        assert_int_equal(call, r->calls - 1);
    }

    if (what != r->last || what == DSA_DELTA_CALL) {
        result_close(r);
        dsa_buf_addz(&r->out, what == DSA_DELTA_REASONING ? "R("
                              : what == DSA_DELTA_CONTENT ? "C("
                              : what == DSA_DELTA_CALL ? "N(" : "A(");
        r->last = what;
    }

    dsa_buf_add(&r->out, text.data, text.len);

    return DSA_OK;
}


/*
 * The length of the control token's name at the front of a text, 0 if there is
 * none.  <|other|> stands for an added token that the parser does not know.
 */

static inline size_t
name_len(const char *text, size_t len)
{
    size_t     i;
    dsa_str_t  name;

    for (i = 0; i <= DSA_DEEPSEEK_TOKENS; i++) {
        name = i < DSA_DEEPSEEK_TOKENS ? dsa_deepseek_tokens[i].name
                                      : dsa_strz("<|other|>");

        if (len >= name.len && memcmp(text, name.data, name.len) == 0) {
            return name.len;
        }
    }

    return 0;
}


/*
 * Feeds an input whose control tokens are marked with T.  Its other text is
 * cut at first, and from there on every step bytes.
 */

static inline void
feed(dsa_parse_t *p, const char *in, size_t len, size_t first, size_t step)
{
    size_t       n, cut;
    const char  *mark;

    for (cut = first; len != 0; in += n, len -= n) {

        if (*in == T[0]) {
            in++;
            len--;
            n = name_len(in, len);

            assert_true(n != 0);
            assert_int_equal(dsa_parse_feed_control(p, dsa_str(in, n)),
                             DSA_OK);
            continue;
        }

        mark = memchr(in, T[0], len);
        n = mark != NULL ? (size_t) (mark - in) : len;

        if (cut == 0) {
            cut = step;
        }

        if (n > cut) {
            n = cut;
        }

        cut -= n;

        assert_int_equal(dsa_parse_feed(p, dsa_str(in, n)), DSA_OK);
    }
}


/* Parses an input, and leaves the result NUL-terminated in r->out. */

static inline void
parse(result_t *r, int flags, uint32_t vocabulary, const char *in, size_t len,
    size_t first, size_t step)
{
    dsa_parse_t  *p;

    memset(r, 0, sizeof(result_t));
    r->whole = 1;

    p = dsa_parse_create(&dsa_deepseek, flags & THINK, !(flags & NOTOOLS),
                         vocabulary,
                         on_delta, r);
    assert_non_null(p);

    feed(p, in, len, first, step);

    assert_int_equal(dsa_parse_end(p, !(flags & CUT)), DSA_OK);
    assert_int_equal(dsa_parse_calls(p), r->calls);
    dsa_parse_destroy(p);

    result_close(r);
    dsa_buf_add(&r->out, "", 1);
    assert_false(r->out.failed);
}


/* Every cut of the input in two, and pieces of 1 to 9 bytes. */

static inline void
check(int flags, uint32_t vocabulary, const char *in, size_t len,
    const char *out)
{
    size_t    k;
    result_t  r;

    for (k = 0; k <= len + 9; k++) {
        parse(&r, flags, vocabulary, in, len, k <= len ? k : k - len,
              k <= len ? len + 1 : k - len);

        if (strcmp(r.out.data, out) != 0) {
            fail_msg("flags %d, vocabulary %x, cut %zu: \"%s\"\nis      %s\n"
                     "must be %s", flags, vocabulary, k, in, r.out.data, out);
        }

        dsa_buf_free(&r.out);
    }
}


/* Marks every name of a control token in a text with T. */

static inline void
mark_names(dsa_buf_t *b, const char *in)
{
    size_t  n;

    for ( /* void */ ; *in != '\0'; in += n) {
        n = name_len(in, strlen(in));

        if (n != 0) {
            dsa_buf_addz(b, T);

        } else {
            n = 1;
        }

        dsa_buf_add(b, in, n);
    }

    dsa_buf_add(b, "", 1);
    assert_false(b->failed);
}


#endif /* _DSA_TEST_OUTPUT_H_INCLUDED_ */
