
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Lark grammars of the tests.
 */


#include "base/json_write.h"
#include "grammar.h"


/* An answer around the input of the tool "f". */

#define LARK_BEFORE                                                           \
    "\n\n<" DSML "function_calls>\n<" DSML "invoke name=\"f\">\n"             \
    "<" DSML "parameter name=\"input\" string=\"true\">"
#define LARK_BEHIND                                                           \
    "</" DSML "parameter>\n</" DSML "invoke>\n</" DSML "function_calls>"


static inline int
lark_compile(dsa_grammar_t **g, dsa_str_t definition,
    dsa_grammar_error_t *error)
{
    int                 rc;
    dsa_buf_t           b;
    dsa_json_writer_t   w;

    memset(&b, 0, sizeof(dsa_buf_t));
    dsa_json_writer(&w, &b);

    dsa_buf_addz(&b, "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":"
                 "\"one\",\"text\":false,\"tools\":[{\"name\":\"f\","
                 "\"input\":{\"syntax\":\"lark\",\"definition\":");
    dsa_json_string(&w, definition);
    dsa_buf_addz(&b, "}}]}");
    assert_false(b.failed);

    rc = dsa_grammar_compile(g, dsa_str(b.data, b.len), dsa_strz(DSML),
                             error);
    dsa_buf_free(&b);

    return rc;
}


static inline dsa_grammar_t *
lark_of(const char *definition)
{
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    if (lark_compile(&g, dsa_strz(definition), &error) != 0) {
        fail_msg("%s: \"%s\": %s", definition, error.path, error.message);
    }

    return g;
}


/* 1: the grammar has this text; the vocabulary is vocabulary_bytes(1). */

static inline int
lark_accepts(dsa_grammar_t *g, dsa_vocabulary_t *v, const char *text)
{
    int        rc;
    dsa_buf_t  b;

    memset(&b, 0, sizeof(dsa_buf_t));

    dsa_buf_addz(&b, LARK_BEFORE);
    dsa_buf_addz(&b, text);
    dsa_buf_addz(&b, LARK_BEHIND);
    assert_false(b.failed);

    rc = grammar_accepts(g, v, 1, dsa_str(b.data, b.len));
    dsa_buf_free(&b);

    return rc;
}
