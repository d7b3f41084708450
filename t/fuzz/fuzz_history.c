
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A sampled text as history: see t/unit/history.h.  The first byte has the
 * flags: whether it begins with reasoning, has tools, is complete, and whether
 * the vocabulary has the control tokens.
 */


#include "t/unit/history.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char  *why;

    if (size == 0) {
        return 0;
    }

    why = history_check(data + 1, size - 1, data[0] & HISTORY_FLAGS);

    if (why != NULL) {
        (void) fprintf(stderr, "%s\n", why);
        abort();
    }

    return 0;
}
