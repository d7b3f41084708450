
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_FUZZ_HOSTS_H_INCLUDED_
#define _DSA_FUZZ_HOSTS_H_INCLUDED_


#include <math.h>
#include <stdlib.h>

#include "engine/hosts/step.h"


/* Shared by the targets for the messages between hosts. */

static inline void
must(int ok)
{
    if (!ok) {
        abort();
    }
}


/* Reads what a backend reads of an entry of its own host. */

static inline void
fuzz_hosts_entry(const dsa_batch_seq_t *s, const dsa_hosts_limits_t *limits)
{
    int       bits;
    uint32_t  i, end, from;

    must(s->sample != NULL && s->pages != NULL && s->tokens != NULL);

    end = s->start + s->n_input;
    must(end > s->start && end <= limits->context);
    must(s->n_pages == (end + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS);

    for (i = 0; i < s->n_pages; i++) {
        must(s->pages[i] < limits->pages);
    }

    end = s->input_from == DSA_INPUT_KNOWN ? end : s->start;
    from = s->start;

    if (s->sampling != NULL && dsa_sampling_penalizes(s->sampling)) {
        from = s->n_prompt < from ? s->n_prompt : from;
    }

    for (i = from; i < end; i++) {
        must(s->tokens[i] < limits->vocab);
    }

    if (s->sampling == NULL) {
        must(s->mask == NULL && s->biases.n == 0);
        return;
    }

    must(isfinite(s->sampling->temperature) && s->sampling->temperature >= 0);
    must(s->sampling->top_p > 0 && s->sampling->top_p <= 1);
    must(s->sampling->top_logprobs <= DSA_SAMPLE_MAX_TOP);

    for (i = 0; i < s->biases.n; i++) {
        must(s->biases.bias[i].id < limits->vocab
             && fabsf(s->biases.bias[i].bias) <= DSA_SAMPLE_FORCE);
    }

    for (i = 0, bits = 0; s->mask != NULL && i < dsa_mask_words(limits->vocab);
         i++)
    {
        bits |= s->mask[i] != 0;
    }

    must(s->mask == NULL || bits);
}


/* A text for a log has no control characters, whatever the peer has sent. */

static inline void
fuzz_hosts_text(const char *text)
{
    must(*text != '\0');

    for ( /* void */ ; *text != '\0'; text++) {
        must(*text >= ' ' && *text <= '~');
    }
}


#endif /* _DSA_FUZZ_HOSTS_H_INCLUDED_ */
