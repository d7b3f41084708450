
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Grammars and vocabularies of the tests.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/str.h"
#include "grammar/grammar.h"


#define BYTES_END       256     /* ids of the vocabulary of bytes */
#define BYTES_DSML      257
#define BYTES_THINK     258
#define BYTES_SIZE      259

#define DSML            "｜DSML｜"


/* One token for each byte, an end, and two control tokens if control is 1. */

static inline dsa_vocabulary_t *
vocabulary_bytes(int control)
{
    char               byte;
    uint32_t           i, end;
    dsa_vocabulary_t  *v;

    v = dsa_vocabulary_create(BYTES_SIZE);
    assert_non_null(v);

    for (i = 0; i < 256; i++) {
        byte = (char) i;
        assert_int_equal(dsa_vocabulary_add(v, i, dsa_str(&byte, 1)), 0);
    }

    end = BYTES_END;

    assert_int_equal(dsa_vocabulary_add_control(v, end, dsa_strz("<end>")), 0);

    if (control) {
        assert_int_equal(dsa_vocabulary_add_control(v, BYTES_DSML,
                                                    dsa_strz("｜DSML｜")), 0);
        assert_int_equal(dsa_vocabulary_add_control(v, BYTES_THINK,
                                                    dsa_strz("</think>")), 0);
    }

    assert_int_equal(dsa_vocabulary_end(v, &end, 1), 0);
    assert_int_equal(dsa_vocabulary_seal(v), 0);

    return v;
}


static inline dsa_grammar_t *
grammar_of(const char *spec)
{
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    if (dsa_grammar_compile(&g, dsa_strz(spec),
                            dsa_strz(DSML), &error) != 0)
    {
        fail_msg("%s: \"%s\": %s", spec, error.path, error.message);
    }

    return g;
}


/*
 * 1: the text is a whole answer of the matcher.  control: the name of the
 * control token in it is the token.
 */

static inline int
matcher_accepts(dsa_matcher_t *m, int control, dsa_str_t text)
{
    int       rc;
    size_t    i, n;
    uint32_t  id, mask[(BYTES_SIZE + 31) / 32];

    rc = 1;

    for (i = 0; i < text.len && rc; i += n) {
        id = (uint8_t) text.data[i];
        n = 1;

        if (control && text.len - i >= sizeof(DSML) - 1
            && strncmp(text.data + i, DSML, sizeof(DSML) - 1) == 0)
        {
            id = BYTES_DSML;
            n = sizeof(DSML) - 1;
        }

        memset(mask, 0xff, sizeof(mask));
        dsa_matcher_mask(m, mask, sizeof(mask) / sizeof(uint32_t));

        rc = dsa_matcher_accept(m, id) == 0;

        assert_int_equal(rc, mask[id / 32] >> id % 32 & 1);
    }

    return rc && dsa_matcher_complete(m);
}


static inline int
grammar_accepts(dsa_grammar_t *g, dsa_vocabulary_t *v, int control,
    dsa_str_t text)
{
    int             rc;
    dsa_matcher_t  *m;

    m = dsa_matcher_create(g, v, dsa_str(NULL, 0));
    assert_non_null(m);

    rc = matcher_accepts(m, control, text);

    dsa_matcher_free(m);

    return rc;
}
