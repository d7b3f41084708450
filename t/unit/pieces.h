
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Outputs of any family that are parsed in pieces.  cmocka.h must be included
 * before this file.
 */


#ifndef _DSA_TEST_PIECES_H_INCLUDED_
#define _DSA_TEST_PIECES_H_INCLUDED_


#include "base/buf.h"
#include "context/parse.h"


/* In an input: the name that follows was sampled as text. */
#define SPELL     "\1"


enum {
    THINK = 1,
    NOTOOLS = 2,
    CUT = 4             /* the output was cut off */
};


/* R, C, N and A: reasoning, content, a call's name and its arguments. */

typedef struct {
    dsa_buf_t    out;
    dsa_delta_e  last;
} result_t;


static inline int
on_delta(void *ctx, dsa_delta_e what, uint32_t call, dsa_str_t text)
{
    result_t  *r = ctx;

    assert_true(text.len != 0);

    if (what != r->last || what == DSA_DELTA_CALL) {
        if (r->last != 0) {
            dsa_buf_addz(&r->out, ")");
        }

        dsa_buf_addz(&r->out, what == DSA_DELTA_REASONING ? "R("
                              : what == DSA_DELTA_CONTENT ? "C("
                              : what == DSA_DELTA_CALL ? "N(" : "A(");
        r->last = what;
    }

    dsa_buf_add(&r->out, text.data, text.len);

    return DSA_OK;
}


/* The length of the control token's name at the front of a text, or 0. */

static inline size_t
name_len(const dsa_family_t *family, const char *text, size_t len)
{
    size_t     i;
    dsa_str_t  name;

    for (i = 0; i < family->tokens.n; i++) {
        name = family->tokens.elts[i].name;

        if (len >= name.len && memcmp(text, name.data, name.len) == 0) {
            return name.len;
        }
    }

    return 0;
}


/*
 * Parses an output.  vocabulary 0: names of control tokens are text; otherwise
 * they are the tokens, except behind SPELL.  The text is cut at first, and from
 * there on every step bytes.
 */

static inline void
parse(result_t *r, const dsa_family_t *family, int flags, uint32_t vocabulary,
    const dsa_types_t *types, const char *in, size_t len, size_t first,
    size_t step)
{
    int           spelled;
    size_t        n, cut;
    dsa_parse_t  *p;

    memset(r, 0, sizeof(result_t));

    p = dsa_parse_create(family, flags & THINK, !(flags & NOTOOLS),
                         vocabulary, on_delta, r);
    assert_non_null(p);

    dsa_parse_types(p, types);

    for (cut = first; len != 0; in += n, len -= n) {
        n = vocabulary != 0 ? name_len(family, in, len) : 0;

        if (n != 0) {
            assert_int_equal(dsa_parse_feed_control(p, dsa_str(in, n)),
                             DSA_OK);
            continue;
        }

        spelled = *in == SPELL[0] && vocabulary != 0;

        if (spelled) {
            in++;
            len--;
            n = name_len(family, in, len);

        } else {
            for (n = 1; n < len; n++) {
                if (vocabulary != 0
                    && (in[n] == SPELL[0]
                        || name_len(family, in + n, len - n) != 0))
                {
                    break;
                }
            }
        }

        if (cut == 0) {
            cut = step;
        }

        if (!spelled && n > cut) {
            n = cut;
        }

        cut -= n < cut ? n : cut;

        assert_int_equal(dsa_parse_feed(p, dsa_str(in, n)), DSA_OK);
    }

    assert_int_equal(dsa_parse_end(p, !(flags & CUT)), DSA_OK);
    dsa_parse_destroy(p);

    if (r->last != 0) {
        dsa_buf_addz(&r->out, ")");
    }

    dsa_buf_add(&r->out, "", 1);
    assert_false(r->out.failed);
}


/* Every cut of the input in two, and pieces of 1 to 9 bytes. */

static inline void
check(const dsa_family_t *family, int flags, uint32_t vocabulary,
    const dsa_types_t *types, const char *in, const char *out)
{
    size_t    k, len;
    result_t  r;

    len = strlen(in);

    for (k = 0; k <= len + 9; k++) {
        parse(&r, family, flags, vocabulary, types, in, len,
              k <= len ? k : k - len, k <= len ? len + 1 : k - len);

        if (strcmp(r.out.data, out) != 0) {
            fail_msg("flags %d, vocabulary %x, cut %zu: \"%s\"\nis      %s\n"
                     "must be %s", flags, vocabulary, k, in, r.out.data, out);
        }

        dsa_buf_free(&r.out);
    }
}


#endif /* _DSA_TEST_PIECES_H_INCLUDED_ */
