
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The output of a GLM model, cut at random: the deltas joined must be those of
 * the output in one piece.
 *
 * The first byte has the options of the parser, the second one how the text is
 * cut.  In the text, a byte FF and the low five bits of the byte after it are a
 * control token.
 */


#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "context/glm/glm.h"
#include "t/fuzz/output.h"


#define FUZZ_THINKING  1            /* in the first byte */
#define FUZZ_TOOLS     2
#define FUZZ_COMPLETE  4
#define FUZZ_TYPES     8
#define FUZZ_ALL       16           /* the vocabulary has all tokens,
                                       not some of them */
#define FUZZ_NONE      32           /* it has none */

#define FUZZ_SOME      0x15555u


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t fuzz_vocabulary(uint8_t how);
static dsa_types_t *fuzz_types(void);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_output_t        o;
    static dsa_types_t  *types;

    if (size < 2) {
        return 0;
    }

    if (types == NULL) {
        types = fuzz_types();
    }

    o.family = &dsa_glm_5_2;
    o.types = (data[0] & FUZZ_TYPES) != 0 ? types : NULL;
    o.vocabulary = fuzz_vocabulary(data[0]);
    o.thinking = data[0] & FUZZ_THINKING;
    o.tools = (data[0] & FUZZ_TOOLS) != 0;
    o.complete = data[0] & FUZZ_COMPLETE;

    fuzz_same(&o, data[1], data + 2, size - 2);

    return 0;
}


static dsa_types_t *
fuzz_types(void)
{
    dsa_err_t     err;
    dsa_arena_t  *arena;
    dsa_types_t  *types;

    static const char  tools[] =
        "[{\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{"
        "\"s\":{\"type\":\"string\"},\"n\":{\"type\":[\"integer\","
        "\"string\"]},\"o\":{\"type\":\"object\"}}}}}]";

    arena = dsa_arena_create(1 << 20);

    if (arena == NULL) {
        abort();
    }

    types = dsa_types_create(dsa_json_parse(arena, tools, sizeof(tools) - 1,
                                            64, &err));
    dsa_arena_destroy(arena);

    if (types == NULL) {
        abort();
    }

    return types;
}


static uint32_t
fuzz_vocabulary(uint8_t how)
{
    if ((how & FUZZ_NONE) != 0) {
        return 0;
    }

    return (how & FUZZ_ALL) != 0 ? (1u << DSA_GLM_TOKENS) - 1 : FUZZ_SOME;
}
