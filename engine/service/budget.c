
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "engine/service/budget.h"


int
dsa_budget_accept(dsa_budget_t *b, uint32_t id)
{
    if (b->most == 0 || b->ended) {
        return DSA_OK;
    }

    if (id == b->end) {
        b->ended = 1;
        return DSA_OK;
    }

    if (b->n == b->most) {
        return DSA_ERROR;
    }

    b->n++;

    return DSA_OK;
}


int
dsa_budget_mask(const dsa_budget_t *b, const uint32_t *drafts,
    uint32_t n_drafts, uint32_t *mask, uint32_t words)
{
    uint32_t  i, last, bit;

    if (b->most == 0 || b->ended || b->most - b->n > n_drafts) {
        return 0;
    }

    /* the output behind the last token of reasoning */

    last = b->most - b->n;

    for (i = 0; i < last; i++) {
        if (drafts[i] == b->end) {
            return 0;
        }
    }

    assert(b->end / 32 < words);

    mask += (size_t) last * words;
    bit = mask[b->end / 32] & (1U << b->end % 32);

    memset(mask, 0, words * sizeof(uint32_t));
    mask[b->end / 32] = bit;

    return 1;
}
