
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The records of the event ring, replica -> worker: ACCEPTED, TOKENS, DONE,
 * ERROR and COUNTED.  ROLLOUT has a header of its own, link_rollout.h.
 */


#ifndef _DSA_LINK_EVENT_H_INCLUDED_
#define _DSA_LINK_EVENT_H_INCLUDED_


#include <stdint.h>

#include "base/tiers.h"
#include "engine/link_version.h"


/* COUNTED: the last record of an id. */

typedef struct {
    uint32_t    prompt_tokens;
    uint32_t    more;               /* 1: prompt_tokens is a lower bound,
                                       because counting stopped there */
} dsa_link_counted_t;


/* ACCEPTED: the prompt is tokenized, fits, and is in the queue. */

typedef struct {
    uint32_t    prompt_tokens;
    uint32_t    cached_tokens;      /* of them, in the cache at this moment;
                                       DONE has the final count */
    uint32_t    vocabulary;         /* bits, see DSA_LINK_FIELD_QUERY */

    /* what of GRAMMAR is not enforced, because it is not strict */

    uint16_t    conditions;         /* of its schemas; UINT16_MAX: or more */
    uint16_t    schemas;            /* that are replaced by any JSON; the
                                       same */
} dsa_link_accepted_t;


/*
 * TOKENS: this; n_tokens times dsa_link_token_t; with logprobs, for each token
 * in turn, one dsa_link_logprob_t and n_top more, its alternatives; then
 * text_len bytes of text, whole UTF-8 characters, control tokens by their
 * names.  There is no padding: all parts before the text are multiples of 4.
 *
 * A token is sent when all of its text can be sent, so text that may still
 * become part of a stop string delays its token.  Bytes of an incomplete
 * UTF-8 character count to the token that completes it.  The end token is not
 * sent.  n_tokens is 0 for text that remains at the end of an answer.
 */

typedef struct {
    uint32_t    n_tokens;
    uint32_t    text_len;
    uint32_t    logprobs;           /* 1: logprob entries are present */
    uint32_t    n_top;              /* alternatives for each token */
} dsa_link_tokens_t;


typedef struct {
    uint32_t    id;
    uint32_t    end;                /* of the token's text, in the record's */
    uint32_t    control;            /* bytes of the name of a control token,
                                       with which its text ends; 0: an
                                       ordinary token */
} dsa_link_token_t;


typedef struct {
    uint32_t    token;
    float       logprob;            /* natural */
    uint32_t    len;                /* bytes of the token's own text, */
    char        bytes[52];          /* of which these are the first */
} dsa_link_logprob_t;


typedef enum {
    DSA_LINK_FINISH_STOP = 1,       /* end token, or a stop string */
    DSA_LINK_FINISH_LENGTH,         /* max_tokens, or the context's end */
    DSA_LINK_FINISH_CANCELLED,
    DSA_LINK_FINISH_DEADLINE
} dsa_link_finish_e;


/* DONE: the last record of an id. */

typedef struct {
    uint32_t    finish;
    uint32_t    prompt_tokens;      /* computed, or found in the cache: the
                                       whole prompt, unless the request was
                                       cancelled before its first token */
    uint32_t    completion_tokens;  /* with the end token, without those of
                                       DSA_LINK_FIELD_RESUME */
    uint32_t    queue_ms;           /* submit to the first step */
    uint32_t    prefill_ms;         /* first step to the first token */
    uint32_t    decode_ms;          /* from the first token to the last */
    uint32_t    stop;               /* 1 and the number, from 0, of the STOP
                                       field that ended the answer; 0: none
                                       did, or the engine does not report it */
    uint32_t    cached_tokens[DSA_TIERS];   /* of prompt_tokens, found in each
                                               tier of the cache */
    uint32_t    draft_tokens;       /* drafts that were verified: at most
                                       DSA_LINK_DRAFTS for each completion
                                       token */
    uint32_t    accepted_tokens;    /* of them, completion tokens */
} dsa_link_done_t;


/* Returns the cached tokens of all tiers. */

static inline uint64_t
dsa_link_cached(const dsa_link_done_t *done)
{
    uint64_t  n;
    uint32_t  i;

    n = 0;

    for (i = 0; i < DSA_TIERS; i++) {
        n += done->cached_tokens[i];
    }

    return n;
}


typedef enum {
    DSA_LINK_E_INVALID = 1,         /* a malformed submit, an unknown token */
    DSA_LINK_E_CONTEXT,             /* the prompt, or with DSA_LINK_WHOLE the
                                       prompt and max_tokens, exceed the
                                       context */
    DSA_LINK_E_OVERLOADED,          /* the replica is full; try another one,
                                       or again later */
    DSA_LINK_E_DRAINING,            /* the replica stops; another one may
                                       accept the request, or continue the
                                       answer after the tokens that were
                                       sent */
    DSA_LINK_E_INTERNAL,
    DSA_LINK_E_TENANT,              /* the requests of this tenant fill its
                                       part of the queue; there may be room
                                       for others */
    DSA_LINK_E_GRAMMAR,             /* the spec of GRAMMAR cannot be
                                       enforced */
    DSA_LINK_E_BIAS                 /* an id of BIAS is not a token, or occurs
                                       twice */
} dsa_link_error_e;


/*
 * ERROR: this, the path of the place in the spec that cannot be enforced, and a
 * text for people; the last record of an id.
 */

typedef struct {
    uint32_t    code;
    uint32_t    prompt_tokens;      /* with DSA_LINK_E_CONTEXT, at least 1 */
    uint32_t    path_len;           /* with DSA_LINK_E_GRAMMAR, else 0 */
    uint32_t    text_len;
    uint32_t    more;               /* as in COUNTED */
    uint32_t    reserved;
} dsa_link_failure_t;


/* Records are read in place after a copy: their sizes are part of the link. */

_Static_assert(sizeof(dsa_link_counted_t) == 8
               && sizeof(dsa_link_accepted_t) == 16
               && sizeof(dsa_link_tokens_t) == 16
               && sizeof(dsa_link_token_t) == 12
               && sizeof(dsa_link_logprob_t) == 64
               && sizeof(dsa_link_done_t) == 36 + 4 * DSA_TIERS
               && sizeof(dsa_link_failure_t) == 24,
               "sizes of records");


#endif /* _DSA_LINK_EVENT_H_INCLUDED_ */
