
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The records of the submit ring, worker -> replica: SUBMIT and COUNT.
 */


#ifndef _DSA_LINK_REQUEST_H_INCLUDED_
#define _DSA_LINK_REQUEST_H_INCLUDED_


#include <stdint.h>

#include "base/sampling.h"


#define DSA_LINK_MAX_STOP       16
#define DSA_LINK_MAX_STOP_LEN   1024      /* bytes of one, at least 1 */
#define DSA_LINK_MAX_WEIGHT     10000
#define DSA_LINK_MAX_QUERIES    32        /* bits of ACCEPTED's vocabulary */
#define DSA_LINK_MAX_REQUEST    64        /* bytes of the id of a request */
#define DSA_LINK_MAX_TRACE      128       /* bytes of a client's name for it */
#define DSA_LINK_MAX_GRAMMAR    (1U << 20)    /* bytes of a spec */


/*
 * A field of SUBMIT or COUNT: this, then length bytes, then padding to 8.
 * The prompt is the TEXT and CONTROL fields in their order.  STOP and RESUME
 * are not allowed in COUNT.
 */

typedef enum {
    DSA_LINK_FIELD_TEXT = 1,        /* UTF-8; never read as a control token */
    DSA_LINK_FIELD_CONTROL,         /* the name of one control token */
    DSA_LINK_FIELD_STOP,            /* a stop string, UTF-8; at most
                                       DSA_LINK_MAX_STOP of them */
    DSA_LINK_FIELD_RESUME,          /* uint32_t ids; at most one field.  The
                                       answer goes on behind these tokens,
                                       which another replica has sent already:
                                       they are part of the answer (penalties,
                                       max_tokens, stop strings, positions),
                                       and are not sent again */
    DSA_LINK_FIELD_QUERY,           /* a name: field i sets bit i of ACCEPTED's
                                       vocabulary if the tokenizer has the name
                                       as one token; at most
                                       DSA_LINK_MAX_QUERIES of them */

    DSA_LINK_FIELD_GRAMMAR,         /* the spec of the answer's structure, see
                                       grammar/grammar.h; at most one.  In
                                       COUNT, it is only checked */

    /* not allowed in COUNT */

    DSA_LINK_FIELD_BIAS,            /* dsa_bias_t []; at most one, with at most
                                       DSA_SAMPLE_MAX_BIAS ids */
    DSA_LINK_FIELD_REQUEST,         /* the id by which nginx's log, the ledger
                                       and the client name the request, for the
                                       replica's log: 1 to DSA_LINK_MAX_REQUEST
                                       letters, digits, "-" and "_"; at most
                                       one */
    DSA_LINK_FIELD_TRACE,           /* the client's traceparent, for the log: 1
                                       to DSA_LINK_MAX_TRACE graphic characters
                                       of ASCII without quotes and backslashes;
                                       at most one */
    DSA_LINK_FIELD_CLIENT           /* the client's id of the request, the
                                       same */
} dsa_link_field_e;


typedef struct {
    uint32_t    length;             /* bytes, without padding */
    uint32_t    type;
} dsa_link_field_t;


/*
 * SUBMIT: this, then n_fields fields.  Nothing follows them.  A slot may be
 * used again after the DONE, ERROR or COUNTED of its last request.
 */

#define DSA_LINK_IGNORE_EOS     0x2U
#define DSA_LINK_PRIVATE        0x4U    /* no other request may reuse pages of
                                           this one, nor this one another's */
#define DSA_LINK_THINKING       0x8U    /* the answer begins with reasoning:
                                           the grammar begins behind </think>,
                                           and so do stop strings */

#define DSA_LINK_WHOLE          0x40U   /* an error, unless the context has
                                           room for all of max_tokens, which
                                           otherwise is reduced to what the
                                           prompt leaves */

/*
 * The class of the request, see engine/schedule/policy.h.  None of them:
 * normal; both are an error.
 */

#define DSA_LINK_LOW            0x10U
#define DSA_LINK_HIGH           0x20U

/* the others only together with the first */

#define DSA_LINK_SAMPLES        0x100U  /* ROLLOUT has a row for each token */
#define DSA_LINK_KEPT           0x200U  /* with the ids it was drawn from, */
#define DSA_LINK_EXPERTS        0x400U  /* and rows of experts of the answer */
#define DSA_LINK_PROMPT         0x800U  /* and rows of the prompt */

typedef struct {
    uint32_t    n_fields;
    uint32_t    flags;
    uint32_t    max_tokens;         /* of the answer; 0: to the context's end */
    uint32_t    weight;             /* of the tenant, in fair sharing with
                                       others of its class:
                                       1 .. DSA_LINK_MAX_WEIGHT */
    uint32_t    thinking_budget;    /* with DSA_LINK_THINKING: after so many
                                       tokens without </think>, the next token
                                       is </think>; 0: no limit */
    uint32_t    reserved;           /* 0 */
    uint64_t    deadline_ms;        /* CLOCK_MONOTONIC; 0: none */
    uint8_t     tenant[32];         /* SHA-256; salts the prefix cache */
    dsa_sampling_t  sampling;
} dsa_link_submit_t;


/*
 * COUNT: this, then n_fields fields.  The answer is COUNTED, or ERROR; or DONE
 * with DSA_LINK_FINISH_CANCELLED, if the worker cancels it before.  The prompt
 * is counted in the turn of its tenant, as that of a SUBMIT.
 */

typedef struct {
    uint32_t    n_fields;
    uint32_t    weight;             /* as in SUBMIT */
    uint8_t     tenant[32];         /* as in SUBMIT */
} dsa_link_count_t;


/* Records are read in place after a copy: their sizes are part of the link. */

_Static_assert(sizeof(dsa_link_field_t) == 8
               && sizeof(dsa_bias_t) == 8
               && sizeof(dsa_sampling_t) == 48
               && sizeof(dsa_link_submit_t) == 112
               && sizeof(dsa_link_count_t) == 40,
               "sizes of records");


#endif /* _DSA_LINK_REQUEST_H_INCLUDED_ */
