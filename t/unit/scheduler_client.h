
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Clients of the scheduler on the backend of scheduler_backend.h: what they
 * submit, the drafts and masks that they have, and the comparison of an answer
 * with what its prompt determines.
 */


#ifndef _SCHEDULER_CLIENT_H_INCLUDED_
#define _SCHEDULER_CLIENT_H_INCLUDED_


#include "t/unit/scheduler_backend.h"


#define MAX_ANSWER  2000


typedef struct {
    dsa_seq_t          *seq;
    uint32_t           *prompt;
    uint32_t            n_prompt;
    uint32_t            n_resume;       /* of prompt, answer tokens */
    uint32_t            n;
    uint32_t            answer[MAX_ANSWER];
    uint32_t            calls;          /* of tokens() */
    uint32_t            stop_at;        /* the handler ends it there */
    uint64_t            seed;
    uint32_t            finish;         /* 0: not yet */
    uint32_t            dropped;
    uint32_t            private;
    uint32_t            draft_right;    /* of each step, so many drafts are */
    uint32_t            draft_wrong;    /*     right, then so many wrong */
    uint32_t            draft_eos;      /* the draft of this answer token is
                                           EOS; 0: none */
    uint32_t            modulus;        /* of permitted ids; 0: no mask */
    uint32_t            mask_at;        /* the token with a mask; 0: all */
    uint32_t            unready;        /* the mask of each so manieth token is
                                           not ready behind drafts; 0: all
                                           are */
    dsa_priority_e      priority;
    dsa_sched_usage_t   usage;
} client_t;


static float     penalty;           /* presence penalty of what is submitted */

static uint64_t  billed_prompt;     /* sum of all usages */
static uint64_t  billed_cached;


/* The first id from token on, cyclically, that is a multiple of modulus. */

static inline uint32_t
permitted(uint32_t token, uint32_t modulus)
{
    while (modulus != 0 && token % modulus != 0) {
        token = (token + 1) % VOCAB;
    }

    return token;
}


/* The modulus of a token of the answer, from 0. */

static inline uint32_t
modulus_of(const client_t *c, uint32_t index)
{
    return c->mask_at == 0 || index == c->mask_at ? c->modulus : 0;
}


static inline int
on_tokens(void *owner, const dsa_sample_t *samples, uint32_t n)
{
    uint32_t   i;
    client_t  *c;

    c = owner;

    assert_true(n >= 1);
    c->calls++;

    for (i = 0; i < n; i++) {
        assert_true(c->n < MAX_ANSWER);
        c->answer[c->n++] = samples[i].token;

        if (c->stop_at == c->n) {
            return DSA_FINISH_STOP;
        }
    }

    return 0;
}


static inline void
on_done(void *owner, const dsa_sched_usage_t *usage)
{
    client_t  *c;

    c = owner;

    assert_int_equal(c->finish, 0);
    c->finish = usage->finish;
    c->usage = *usage;
    billed_prompt += usage->prompt_tokens;
    billed_cached += usage->cached_tokens;
    c->seq = NULL;
}


static inline void
on_dropped(void *owner)
{
    client_t  *c;

    c = owner;

    assert_int_equal(c->finish, 0);
    assert_int_equal(c->n, 0);
    c->dropped = 1;
    c->seq = NULL;
}


static const dsa_sched_handler_t  handler = {
    on_tokens, on_done, on_dropped
};


/*
 * Proposes drafts for a client: the tokens that the answer will have, or
 * others.
 */

static inline uint32_t
on_draft(void *owner, const uint32_t *tokens, uint32_t n_tokens,
    uint32_t *drafts, uint32_t most)
{
    uint32_t   i, n, *entries;
    client_t  *c;

    c = owner;
    n = c->draft_right + c->draft_wrong;
    n = n < most ? n : most;

    entries = malloc((n_tokens + n) * sizeof(uint32_t));
    assert_non_null(entries);

    for (i = 0; i < n_tokens; i++) {
        entries[i] = entry_of(i == 0 ? 0 : entries[i - 1], tokens[i]);
    }

    for (i = 0; i < n; i++) {
        drafts[i] = permitted(token_of(entries, n_tokens + i, c->seed),
                              modulus_of(c, c->n_resume + c->n + i));

        if (i >= c->draft_right) {
            drafts[i] = (drafts[i] + 1) % VOCAB;
        }

        if (n_tokens + i - (c->n_prompt - c->n_resume) + 1 == c->draft_eos) {
            drafts[i] = EOS;
        }

        entries[n_tokens + i] = entry_of(entries[n_tokens + i - 1], drafts[i]);
    }

    free(entries);

    return n;
}


/* 1 if the mask behind i drafts is ready. */

static inline int
is_ready(const client_t *c, uint32_t i)
{
    return i == 0 || c->unready == 0
           || (c->n_resume + c->n + i) % c->unready != 0;
}


static inline uint32_t
on_ready(void *owner, const uint32_t *drafts, uint32_t n_drafts)
{
    uint32_t   i;
    client_t  *c = owner;

    for (i = 0; i <= n_drafts; i++) {
        if (!is_ready(c, i)) {
            break;
        }
    }

    return i;
}


static inline int
on_mask(void *owner, const uint32_t *drafts, uint32_t n_drafts,
    uint32_t first, uint32_t *mask, uint32_t words)
{
    uint32_t   i, at, id, modulus;
    client_t  *c;

    c = owner;

    assert_int_equal(words, dsa_mask_words(VOCAB));

    /* the step has the only token with a mask */

    assert_true(c->mask_at == 0
                || (c->mask_at >= c->n_resume + c->n + first
                    && c->mask_at <= c->n_resume + c->n + n_drafts));

    for (i = first; i <= n_drafts; i++, mask += words) {
        modulus = modulus_of(c, c->n_resume + c->n + i);

        /* no mask is made that was not ready */

        assert_true(is_ready(c, i));

        for (at = 0; at < words; at++) {
            assert_int_equal(mask[at], UINT32_MAX);
        }

        if (modulus == 0) {
            continue;
        }

        memset(mask, 0, words * sizeof(uint32_t));

        for (id = 0; id < VOCAB; id += modulus) {
            mask[id / 32] |= 1U << (id % 32);
        }
    }

    return 1;
}


/* ids: n of them, the first is the tenant's number; owned by the scheduler. */

static inline void
submit_ids(dsa_sched_t *s, client_t *c, uint32_t *ids, uint32_t n,
    uint32_t max_tokens, uint32_t weight)
{
    dsa_err_t            err;
    dsa_sched_request_t  request;

    memset(&request, 0, sizeof(request));
    memset(c->answer, 0, sizeof(c->answer));

    c->prompt = malloc(n * sizeof(uint32_t));
    assert_non_null(c->prompt);
    memcpy(c->prompt, ids, n * sizeof(uint32_t));
    c->n_prompt = n;
    c->n = 0;
    c->calls = 0;
    c->finish = 0;

    request.tokens = ids;
    request.n_tokens = n;
    request.n_resume = c->n_resume;
    request.max_tokens = max_tokens;
    request.weight = weight;
    request.priority = c->priority;
    request.private = c->private;
    request.sampling.seed = c->seed;
    request.sampling.presence_penalty = penalty;
    request.draft = c->draft_right + c->draft_wrong != 0 ? on_draft : NULL;
    request.mask = c->modulus != 0 ? on_mask : NULL;
    request.mask_at = c->mask_at;
    request.ready = c->unready != 0 ? on_ready : NULL;
    request.owner = c;
    request.tenant[0] = (uint8_t) ids[0];

    c->seq = dsa_sched_add(s, &request, &err);

    if (c->seq == NULL) {
        free(ids);
    }
}


/* A prompt, malloc()ed; prompts with the same text begin alike. */

static inline uint32_t *
ids_of(uint32_t tenant, uint32_t text, uint32_t n)
{
    uint32_t  i, *ids;

    ids = malloc(n * sizeof(uint32_t));
    assert_non_null(ids);

    ids[0] = tenant;

    for (i = 1; i < n; i++) {
        ids[i] = 100 + (text * 7919 + i * 31) % (VOCAB - 100);
    }

    return ids;
}


static inline void
submit(dsa_sched_t *s, client_t *c, uint32_t tenant, uint32_t text,
    uint32_t n, uint32_t max_tokens, uint32_t weight)
{
    submit_ids(s, c, ids_of(tenant, text, n), n, max_tokens, weight);
    assert_non_null(c->seq);
}


/* Compares the answer with what the prompt alone determines. */

static inline void
check_answer(const client_t *c)
{
    uint32_t  i, n, *entries;

    n = c->n_prompt;
    entries = malloc((n + c->n) * sizeof(uint32_t));
    assert_non_null(entries);

    for (i = 0; i < n; i++) {
        entries[i] = entry_of(i == 0 ? 0 : entries[i - 1], c->prompt[i]);
    }

    for (i = 0; i < c->n; i++, n++) {
        assert_int_equal(c->answer[i],
                         permitted(token_of(entries, n, c->seed),
                                   modulus_of(c, c->n_resume + i)));
        entries[n] = entry_of(entries[n - 1], c->answer[i]);
    }

    free(entries);
}


static inline void
check(client_t *c, uint32_t n, uint32_t reason)
{
    assert_int_equal(c->finish, reason);
    assert_int_equal(c->n, n);
    check_answer(c);

    free(c->prompt);
    c->prompt = NULL;
}


#endif /* _SCHEDULER_CLIENT_H_INCLUDED_ */
