
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "engine/service/budget.h"


static void dsa_budget_tag(dsa_budget_t *b, uint32_t id);


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

    if (b->call != DSA_BUDGET_NO_CALL) {
        dsa_budget_tag(b, id);
    }

    return DSA_OK;
}


/*
 * Updates ended: 1 if the text, with this token, ends with the first tag of a
 * call.
 */

static void
dsa_budget_tag(dsa_budget_t *b, uint32_t id)
{
    size_t     i;
    dsa_str_t  bytes;

    /*
     * The two tags begin with different letters, so the first byte selects one.
     */

    static const char *const  tags[] = { "function_calls", "invoke" };

    if (id == b->call) {
        b->tag = b->opened ? "" : NULL;
        b->opened = 0;
        return;
    }

    bytes = dsa_token_bytes(b->tokenizer, id);

    for (i = 0; i < bytes.len && b->tag != NULL; i++) {

        if (b->tag[0] == '\0') {
            b->tag = bytes.data[i] == tags[0][0] ? tags[0] : tags[1];
        }

        if (b->tag[0] != bytes.data[i]) {
            b->tag = NULL;
            break;
        }

        b->tag++;

        if (b->tag[0] == '\0') {
            b->ended = 1;
            return;
        }
    }

    b->opened = bytes.len != 0 && bytes.data[bytes.len - 1] == '<';
}


int
dsa_budget_mask(const dsa_budget_t *b, const uint32_t *drafts,
    uint32_t n_drafts, uint32_t first, uint32_t *mask, uint32_t words)
{
    uint32_t      i, last, bit;
    dsa_budget_t  then;

    if (b->most == 0 || b->ended || b->most - b->n > n_drafts) {
        return 0;
    }

    /* the token after the last one of reasoning */

    last = b->most - b->n;

    if (last < first) {
        return 0;
    }

    then = *b;

    for (i = 0; i < last; i++) {
        (void) dsa_budget_accept(&then, drafts[i]);
    }

    if (then.ended) {
        return 0;
    }

    assert(b->end / 32 < words);

    mask += (size_t) (last - first) * words;
    bit = mask[b->end / 32] & (1U << b->end % 32);

    memset(mask, 0, words * sizeof(uint32_t));
    mask[b->end / 32] = bit;

    return 1;
}
