
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <string.h>

#include "engine/schedule/state.h"


int
dsa_sched_masked(const dsa_seq_t *seq, uint32_t skip, uint32_t n)
{
    uint32_t  first;

    if (seq->mask == NULL || seq->mask_at == 0) {
        return seq->mask != NULL;
    }

    first = seq->completion + seq->scheduled_samples + skip;

    return first <= seq->mask_at && seq->mask_at - first < n;
}


const uint32_t *
dsa_sched_mask(dsa_sched_t *s, dsa_seq_t *seq)
{
    uint32_t  words;

    if (!dsa_sched_masked(seq, 0, seq->n_draft + 1)) {
        return NULL;
    }

    assert(seq->scheduled_samples == 0);

    words = dsa_mask_words(s->backend->config.vocab_size);

    memset(seq->masks, 0xff,
           (size_t) (seq->n_draft + 1) * words * sizeof(uint32_t));

    return seq->mask(seq->owner, seq->tokens + seq->n_tokens - seq->n_draft,
                     seq->n_draft, 0, seq->masks, words)
           ? seq->masks : NULL;
}


uint32_t
dsa_sched_ready(const dsa_seq_t *seq, const uint32_t *drafts, uint32_t n)
{
    uint32_t  ready;

    if (seq->ready == NULL || n == 0) {
        return n;
    }

    ready = seq->ready(seq->owner, drafts, n);

    assert(ready <= n + 1);

    return ready != 0 ? ready - 1 : 0;
}


/*
 * The owner is the member of a step.  It is NULL when the sequence has ended or
 * was preempted since the step was started.
 */

int
dsa_sched_next_mask(void *owner, const uint32_t *tokens, uint32_t n,
    uint32_t *mask)
{
    uint32_t    words;
    dsa_seq_t  *seq;

    seq = *(dsa_seq_t **) owner;

    if (seq == NULL) {
        return DSA_AGAIN;
    }

    words = seq->mask_words;
    memset(mask, 0xff, words * sizeof(uint32_t));

    if (seq->mask_at != 0 && seq->completion + n != seq->mask_at) {
        return DSA_OK;
    }

    if (seq->ready != NULL && seq->ready(seq->owner, tokens, n) != n + 1) {
        return DSA_AGAIN;
    }

    (void) seq->mask(seq->owner, tokens, n, n, mask, words);

    return DSA_OK;
}
