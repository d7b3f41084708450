
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

#include "context/deepseek/v3.h"
#include "t/fuzz/output.h"


#define FUZZ_THINKING  1            /* in the first byte */
#define FUZZ_TOOLS     2
#define FUZZ_COMPLETE  4
#define FUZZ_ALL       8            /* the vocabulary has all tokens,
                                       not some of them */
#define FUZZ_NONE      16           /* it has none */

#define FUZZ_SOME      0x5555u


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t fuzz_vocabulary(uint8_t how);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_output_t  o;

    if (size < 2) {
        return 0;
    }

    o.family = &dsa_deepseek_v3_1;
    o.types = NULL;
    o.vocabulary = fuzz_vocabulary(data[0]);
    o.thinking = data[0] & FUZZ_THINKING;
    o.tools = (data[0] & FUZZ_TOOLS) != 0;
    o.complete = data[0] & FUZZ_COMPLETE;

    fuzz_same(&o, data[1], data + 2, size - 2);

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
