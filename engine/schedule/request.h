
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCHED_REQUEST_H_INCLUDED_
#define _DSA_SCHED_REQUEST_H_INCLUDED_


#include <stdint.h>

#include "base/sampling.h"
#include "base/tiers.h"


/* What goes into the scheduler, and what is reported at the end. */

typedef struct dsa_seq_s    dsa_seq_t;


/* Classes of requests, see policy.h. */

typedef enum {
    DSA_PRIORITY_LOW = 0,
    DSA_PRIORITY_NORMAL,
    DSA_PRIORITY_HIGH,
    DSA_PRIORITIES
} dsa_priority_e;


typedef enum {
    DSA_FINISH_STOP = 1,            /* end token, or the handler's decision */
    DSA_FINISH_LENGTH,              /* max_tokens */
    DSA_FINISH_CANCELLED,
    DSA_FINISH_DEADLINE
} dsa_finish_e;


/*
 * Proposes drafts for the next tokens of an answer.  tokens: prompt and answer
 * so far.  Writes at most `most` ids, each below the vocabulary's size, and
 * returns their number.  Called once before each decode step.
 */
typedef uint32_t (*dsa_sched_draft_pt)(void *owner, const uint32_t *tokens,
    uint32_t n_tokens, uint32_t *drafts, uint32_t most);

/*
 * Sets the masks of the tokens first to n_drafts of those that follow all
 * tokens that the handler was given, mask [n_drafts - first + 1][words] as in
 * dsa_batch_seq_t: token i comes after drafts[0 .. i-1].  All bits are 1 before
 * the call.  At least one id must stay permitted for each token, also for those
 * after a draft that an earlier mask excludes; these are never accepted.
 * Returns 0 if all bits are still 1.
 *
 * Called with first 0 for the outputs of a step, and, while the step is in
 * flight, with first n_drafts for the next draft of the backend; then drafts
 * begins with the samples of the step.
 */
typedef int (*dsa_sched_mask_pt)(void *owner, const uint32_t *drafts,
    uint32_t n_drafts, uint32_t first, uint32_t *mask, uint32_t words);

/*
 * Returns how many of these masks can be set at once, from that of token 0 on:
 * 0 to n_drafts + 1.  0: a decode step has no entry for the sequence; call
 * dsa_sched_poll() when the mask of token 0 has become ready.  A mask behind
 * drafts that is not ready ends them, because waiting for a mask costs more
 * than a draft saves.
 */
typedef uint32_t (*dsa_sched_ready_pt)(void *owner, const uint32_t *drafts,
    uint32_t n_drafts);


/*
 * What a step reports of a sequence for the trainer of a policy: the experts of
 * its inputs, and how its outputs were drawn.  An input that is computed again,
 * after a preemption, is reported again.
 */

typedef struct {
    uint32_t            start;          /* position of the first input */
    uint32_t            n_input;        /* without rejected drafts, and without
                                           inputs behind the end token */
    const uint16_t     *experts;        /* NULL, or [n_input][layers with
                                           experts][num_experts_per_tok] */
    uint32_t            n_samples;      /* with the end token */
    uint32_t            position;       /* of the first sample */
    const dsa_sample_t *samples;        /* [n_samples] */
    const dsa_draw_t   *draw;           /* [n_samples] */
    const uint32_t     *kept;           /* NULL, or [n_samples][words]; see
                                           dsa_rollout_t */
    uint32_t            words;
} dsa_sched_rollout_t;

/*
 * Called once for each step of a sequence that has something to report: after
 * the handler's tokens() for the same step, and before its done().
 */
typedef void (*dsa_sched_rollout_pt)(void *owner,
    const dsa_sched_rollout_t *rollout);

#define DSA_REPORT_KEPT     0x1U        /* the ids that were drawn from */
#define DSA_REPORT_EXPERTS  0x2U        /* of steps with outputs */
#define DSA_REPORT_PROMPT   0x4U        /* and of all other steps */


typedef struct {
    uint64_t            id;             /* for the log, which has the low and
                                           the high word as "low.high"; of the
                                           link's ids these are slot.epoch */
    uint32_t           *tokens;         /* [n_tokens], malloc()ed; the
                                           sequence owns them when the request
                                           is accepted */
    uint32_t            n_tokens;       /* prompt and resumed tokens */
    uint32_t            n_resume;       /* The last n_resume tokens are answer
                                           tokens that were generated
                                           elsewhere.  They count for
                                           penalties, positions and max_tokens,
                                           not as prompt.  < n_tokens,
                                           < max_tokens */
    uint32_t            max_tokens;     /* of the answer, >= 1; prompt and
                                           max_tokens together at most
                                           context */
    uint32_t            weight;         /* >= 1; of the tenant's requests of
                                           this class, from now on */
    dsa_priority_e      priority;
    uint32_t            ignore_eos;
    uint32_t            private;        /* 1: no page is shared with another
                                           request */
    dsa_sampling_t      sampling;
    dsa_biases_t        biases;         /* they must exist until the request
                                           ends */
    uint8_t             tenant[32];
    dsa_sched_draft_pt  draft;          /* NULL: no drafts.  Not called on a
                                           backend with max_outputs 1 */
    dsa_sched_mask_pt   mask;           /* NULL: no masks */
    uint32_t            mask_at;        /* n: mask is called only for the step
                                           that samples token n of the answer,
                                           from 0, so that other steps need not
                                           wait for the token before them; 0:
                                           for every step */
    dsa_sched_rollout_pt  rollout;      /* NULL: nothing is reported */
    uint32_t            reports;        /* DSA_REPORT_ bits */
    dsa_sched_ready_pt  ready;          /* NULL: mask is always ready */
    void               *owner;          /* argument of all callbacks */
} dsa_sched_request_t;


typedef struct {
    dsa_finish_e        finish;
    uint32_t            prompt_tokens;  /* computed, or found in the cache: all
                                           of the prompt unless the sequence
                                           was cancelled before its first
                                           token */
    uint32_t            cached_tokens;  /* of them, found */
    uint32_t            tier_tokens[DSA_TIERS]; /* of cached ones, by the tier
                                                   that had them; their sum is
                                                   cached_tokens */
    uint32_t            completion_tokens;  /* of the answer, with resumed
                                               tokens and the end token */
    uint32_t            draft_tokens;   /* drafts that steps have verified */
    uint32_t            accepted_tokens;        /* of them, completion tokens */
    uint32_t            queue_ms;       /* request to admission */
    uint32_t            prefill_ms;     /* admission to the first token */
    uint32_t            decode_ms;      /* first token to the last */
} dsa_sched_usage_t;


#endif /* _DSA_SCHED_REQUEST_H_INCLUDED_ */
