
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The link between an nginx worker and a replica of the engine, versions 3 to
 * 8.  Version 4 adds the tiers of the prefix cache: the end of DONE and the end
 * of the control block.  Version 5 adds the fields GRAMMAR and BIAS and the
 * flag THINKING to SUBMIT.  Version 6 adds thinking_budget to SUBMIT, and a
 * spec in place of the text to the grammar of tools.  Version 7 adds the flag
 * SAMPLES and those after it to SUBMIT, and the record ROLLOUT.  Version 8 adds
 * the field REQUEST and the flags LOW and HIGH to SUBMIT.  All else is the same
 * in all of them.
 *
 * The worker connects to the replica's unix SEQPACKET socket and sends an
 * offer: the range of versions that it accepts.  The replica answers with one
 * message: a hello with the version that both use from then on, and three
 * descriptors, a sealed memfd and two eventfds (one wakes the replica, one
 * wakes the worker).  Without a common version the hello has version 0, the
 * replica's own range, and no descriptors; the replica then closes the socket.
 * Nothing else is sent on the socket.  Its end means that the other side is
 * gone, and no state outlives it.
 *
 * The memfd holds a control block, a cancel word for each slot and two rings
 * of records, each with one producer and one consumer:
 *
 *     submit   worker -> replica     SUBMIT, COUNT
 *     event    replica -> worker     ACCEPTED, TOKENS, ROLLOUT, DONE, ERROR,
 *                                    COUNTED
 *
 * Each side keeps its own index in private memory and treats everything that
 * it reads from the segment as hostile: a header is copied out before it is
 * checked, a length never leads outside the ring, and a payload has to be
 * copied before it is checked, because the peer could change it meanwhile.
 *
 * This header does not depend on nginx, and the segment holds no pointers.
 */


#ifndef _DSA_LINK_H_INCLUDED_
#define _DSA_LINK_H_INCLUDED_


#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>


#define DSA_LINK_MAGIC          0x6b6e696c2d617364ULL    /* "dsa-link" */
#define DSA_LINK_VERSION_MIN    3         /* the versions that this header */
#define DSA_LINK_VERSION_MAX    8         /* describes */
#define DSA_LINK_VERSION_TIERS  4         /* the first one with tiers, */
#define DSA_LINK_VERSION_GRAMMAR  5       /* and with GRAMMAR and BIAS */
#define DSA_LINK_VERSION_BUDGET   6       /* and with thinking_budget */
#define DSA_LINK_VERSION_ROLLOUT  7       /* and with ROLLOUT */
#define DSA_LINK_VERSION_REQUEST  8       /* and with REQUEST, LOW, HIGH */

#define DSA_LINK_CACHE_LINE     64
#define DSA_LINK_ALIGN          4096
#define DSA_LINK_CONTROL_SIZE   4096      /* of the control block */
#define DSA_LINK_MAX_RING       (1ULL << 32)
#define DSA_LINK_MAX_SLOTS      (1U << 20)

#define DSA_LINK_MAX_STOP       16
#define DSA_LINK_MAX_STOP_LEN   1024      /* bytes of one, at least 1 */
#define DSA_LINK_MAX_TOP        20        /* alternatives beside a logprob */
#define DSA_LINK_MAX_WEIGHT     10000
#define DSA_LINK_MAX_QUERIES    32        /* bits of ACCEPTED's vocabulary */
#define DSA_LINK_MAX_BIAS       1024      /* ids with a bias */
#define DSA_LINK_MAX_ROW        32512     /* bytes of a row of a rollout */
#define DSA_LINK_MAX_REQUEST    64        /* bytes of the id of a request */


/* The worker's first and only message.  A later version may append to it. */

typedef struct {
    uint64_t    magic;
    uint32_t    version_min;
    uint32_t    version_max;
} dsa_link_offer_t;


/* The replica's answer.  A later version may append to it. */

typedef struct {
    uint64_t    magic;
    uint32_t    version;            /* in use from now on; 0: none in common */
    uint32_t    version_min;        /* of the replica */
    uint32_t    version_max;
    uint32_t    slots;              /* requests a session may have at once */
    uint64_t    segment_size;       /* bytes of the memfd */
    uint64_t    submit_size;        /* bytes of a ring, power of two */
    uint64_t    event_size;
    uint32_t    context_length;     /* tokens, prompt and answer together */
    uint32_t    page_tokens;        /* prefixes are reused in this unit */
    uint32_t    pid;
    uint32_t    replica;            /* number within its supervisor */
    float       temperature;        /* [0, 2]: defaults of the model, if a */
    float       top_p;              /* (0, 1]   request does not set them */
    uint32_t    epoch;              /* random for each start of the replica:
                                       a container may give the same pid to
                                       every start */
    char        model[64];          /* NUL-terminated */
    char        fingerprint[40];    /* hex, NUL-terminated */
} dsa_link_hello_t;


/* One ring's shared indices: free-running, in bytes. */

typedef struct {
    _Alignas(DSA_LINK_CACHE_LINE) _Atomic uint64_t  head;     /* producer's */
    _Alignas(DSA_LINK_CACHE_LINE) _Atomic uint64_t  tail;     /* consumer's */
    _Alignas(DSA_LINK_CACHE_LINE) _Atomic uint32_t  sleeping; /* consumer's */
} dsa_link_indices_t;


/* Where the pages of the prefix cache are. */

typedef enum {
    DSA_LINK_TIER_GPU = 0,          /* memory of the replica's GPUs; without
                                       GPUs, the memory that steps use */
    DSA_LINK_TIER_HOST,             /* host memory */
    DSA_LINK_TIER_REDIS,
    DSA_LINK_TIERS
} dsa_link_tier_e;


/* What a tier has, and what it has done since the replica started. */

typedef struct {
    _Atomic uint64_t    pages;          /* that it can hold; Redis: 0 */
    _Atomic uint64_t    used;           /* of them, with contents that can be
                                           found, or in use; Redis: 0 */
    _Atomic uint64_t    hit_tokens;     /* prompt tokens found here first */
    _Atomic uint64_t    read_pages;     /* moved from here to a faster tier */
    _Atomic uint64_t    read_bytes;
    _Atomic uint64_t    read_us;        /* sum of their times */
    _Atomic uint64_t    write_pages;    /* moved here */
    _Atomic uint64_t    write_bytes;
    _Atomic uint64_t    write_us;
    _Atomic uint64_t    abandoned;      /* pages whose read was too slow */
    _Atomic uint64_t    invalid;        /* pages that did not verify */
    _Atomic uint64_t    failed;         /* operations that failed */
    _Atomic uint64_t    lost;           /* pages that left the tier before a
                                           slower one had them */
} dsa_link_tier_t;


/* The head of the segment. */

typedef struct {
    dsa_link_indices_t  submit;
    dsa_link_indices_t  event;

    /* written by the replica at least every 100 ms */

    _Alignas(DSA_LINK_CACHE_LINE)
    _Atomic uint64_t    alive_ms;           /* CLOCK_MONOTONIC, by the thread
                                               that serves the rings */
    _Atomic uint64_t    step_started_ms;    /* CLOCK_MONOTONIC, by the thread
                                               that computes; 0: idle */
    _Atomic uint64_t    steps;
    _Atomic uint64_t    prompt_tokens;      /* since the replica started */
    _Atomic uint64_t    cached_tokens;
    _Atomic uint64_t    completion_tokens;
    _Atomic uint64_t    preemptions;
    _Atomic uint32_t    running;            /* sequences */
    _Atomic uint32_t    waiting;
    _Atomic uint32_t    pages;
    _Atomic uint32_t    pages_used;
    _Atomic uint32_t    draining;           /* 1: rejects new requests */

    /* from DSA_LINK_VERSION_TIERS on; a worker of version 3 does not read it */

    _Atomic uint64_t    page_bytes;         /* of a page, in every tier; 0: not
                                               known */
    dsa_link_tier_t     tier[DSA_LINK_TIERS];
} dsa_link_control_t;


_Static_assert(sizeof(dsa_link_control_t) <= DSA_LINK_CONTROL_SIZE,
               "the control block has a page of its own");

/* Version 3 ends with draining; nothing before it may move. */

_Static_assert(offsetof(dsa_link_control_t, submit) == 0
               && offsetof(dsa_link_control_t, event) == 192
               && offsetof(dsa_link_control_t, alive_ms) == 384
               && offsetof(dsa_link_control_t, preemptions) == 432
               && offsetof(dsa_link_control_t, running) == 440
               && offsetof(dsa_link_control_t, draining) == 456
               && offsetof(dsa_link_control_t, page_bytes) == 464
               && offsetof(dsa_link_control_t, tier) == 472
               && sizeof(dsa_link_tier_t) == 104,
               "the layout of the control block");


/* The header of every record, on an 8-byte boundary. */

typedef struct {
    uint32_t    length;             /* of the payload, without padding */
    uint32_t    type;
    uint64_t    id;                 /* epoch << 32 | slot; the epoch of a
                                       slot counts its requests from 1, and a
                                       cancel word starts at 0 */
} dsa_link_record_t;


typedef enum {
    DSA_LINK_PAD = 1,               /* skip to the end of the ring */
    DSA_LINK_SUBMIT,
    DSA_LINK_ACCEPTED,
    DSA_LINK_TOKENS,
    DSA_LINK_DONE,
    DSA_LINK_ERROR,
    DSA_LINK_COUNT,
    DSA_LINK_COUNTED,
    DSA_LINK_ROLLOUT,               /* from DSA_LINK_VERSION_ROLLOUT on */
    DSA_LINK_TYPES                  /* one more than the last type */
} dsa_link_type_e;


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

    /* from DSA_LINK_VERSION_GRAMMAR on; not allowed in COUNT */

    DSA_LINK_FIELD_GRAMMAR,         /* the spec of the answer's structure, see
                                       grammar/grammar.h; at most one */
    DSA_LINK_FIELD_BIAS,            /* dsa_link_bias_t []; at most one, with at
                                       most DSA_LINK_MAX_BIAS ids */

    /* from DSA_LINK_VERSION_REQUEST on; not allowed in COUNT */

    DSA_LINK_FIELD_REQUEST          /* the id by which nginx's log, the ledger
                                       and the client name the request, for the
                                       replica's log: 1 to DSA_LINK_MAX_REQUEST
                                       letters, digits, "-" and "_"; at most
                                       one */
} dsa_link_field_e;


/* Is added to the logit of an id before temperature: -100 .. 100. */

typedef struct {
    uint32_t    id;
    float       bias;
} dsa_link_bias_t;


typedef struct {
    uint32_t    length;             /* bytes, without padding */
    uint32_t    type;
} dsa_link_field_t;


/*
 * SUBMIT: this, then n_fields fields.  Nothing follows them.  A slot may be
 * used again after the DONE, ERROR or COUNTED of its last request.
 */

#define DSA_LINK_LOGPROBS       0x1U
#define DSA_LINK_IGNORE_EOS     0x2U
#define DSA_LINK_PRIVATE        0x4U    /* no other request may reuse pages of
                                           this one, nor this one another's */
#define DSA_LINK_THINKING       0x8U    /* the answer begins with reasoning:
                                           the grammar begins behind </think> */

/*
 * From DSA_LINK_VERSION_REQUEST on: the class of the request, see
 * engine/schedule/policy.h.  None of them: normal; both are an error.
 */

#define DSA_LINK_LOW            0x10U
#define DSA_LINK_HIGH           0x20U

/* from DSA_LINK_VERSION_ROLLOUT on; the others only together with the first */

#define DSA_LINK_SAMPLES        0x100U  /* ROLLOUT has a row for each token */
#define DSA_LINK_KEPT           0x200U  /* with the ids it was drawn from, */
#define DSA_LINK_EXPERTS        0x400U  /* and rows of experts of the answer */
#define DSA_LINK_PROMPT         0x800U  /* and rows of the prompt */

typedef struct {
    uint32_t    n_fields;
    uint32_t    flags;
    uint32_t    max_tokens;         /* of the answer; 0: to the context's end */
    uint32_t    top_logprobs;       /* at most DSA_LINK_MAX_TOP */
    uint32_t    weight;             /* of the tenant, in fair sharing with
                                       others of its class:
                                       1 .. DSA_LINK_MAX_WEIGHT */
    float       temperature;        /* 0: the most probable token */
    float       top_p;
    float       frequency_penalty;
    float       presence_penalty;
    uint32_t    thinking_budget;    /* with DSA_LINK_THINKING: after so many
                                       tokens without </think>, the next token
                                       is </think>; 0: no limit, and always 0
                                       before DSA_LINK_VERSION_BUDGET */
    uint64_t    seed;               /* of the sampling noise */
    uint64_t    deadline_ms;        /* CLOCK_MONOTONIC; 0: none */
    uint8_t     tenant[32];         /* SHA-256; salts the prefix cache */
} dsa_link_submit_t;


/* COUNT: this, then n_fields fields.  The answer is COUNTED, or ERROR. */

typedef struct {
    uint32_t    n_fields;
    uint32_t    reserved;
} dsa_link_count_t;


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
    uint32_t    reserved;
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


/*
 * ROLLOUT: whole rows, for the trainer of a policy.  Each row is a header, its
 * data, and zeros up to a multiple of 4 bytes.  All numbers are little-endian.
 * Positions count from 0, the first token of the prompt.
 *
 *     PROMPT    the ids of prompt tokens position .. position + n - 1:
 *               uint32_t [n].
 *     EXPERTS   the experts to which the tokens position .. position + n - 1
 *               were routed: uint16_t layers, uint16_t k, then [n][layers][k]
 *               numbers of form bytes (1 or 2).  Layers are those that have
 *               experts.  A position has at most one such row: the one of its
 *               first computation.  It has none if it was found in the prefix
 *               cache, and if it is the last token of an answer, which is not
 *               computed.
 *     SAMPLE    the token at position, a sample: dsa_link_sampled_t, then the
 *               n ids that it was drawn from, in a form of dsa_link_kept_e.
 *
 * An answer has one SAMPLE row for each of its completion_tokens, rising, the
 * end token included.  The experts that led to a sample are those of the
 * position before it.  Rows come independently of TOKENS, and before DONE.
 * With RESUME they begin where the resumed tokens end.
 */

typedef enum {
    DSA_LINK_ROW_PROMPT = 1,
    DSA_LINK_ROW_EXPERTS,
    DSA_LINK_ROW_SAMPLE
} dsa_link_row_e;


typedef enum {
    DSA_LINK_KEPT_NONE = 0,         /* not requested; n is 0 */
    DSA_LINK_KEPT_ALL,              /* all ids of the tokenizer; n is 0 */
    DSA_LINK_KEPT_GAPS,             /* rising ids: the first id, then the
                                       differences, as LEB128 varints */
    DSA_LINK_KEPT_BITS              /* bit id % 8 of byte id / 8, up to the
                                       byte of the greatest id */
} dsa_link_kept_e;


typedef struct {
    uint32_t    length;             /* of the row in bytes, this header and
                                       the zeros included; at most
                                       DSA_LINK_MAX_ROW */
    uint16_t    type;
    uint16_t    form;
    uint32_t    position;
    uint32_t    n;
} dsa_link_row_t;


/* log p of dsa_draw_t in engine/sampling.h, natural. */

typedef struct {
    uint32_t    id;
    float       logprob;
} dsa_link_sampled_t;


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
    uint32_t    cached_tokens;      /* of them, found in the cache */
    uint32_t    completion_tokens;  /* with the end token, without those of
                                       DSA_LINK_FIELD_RESUME */
    uint32_t    queue_ms;           /* submit to the first step */
    uint32_t    prefill_ms;         /* first step to the first token */
    uint32_t    decode_ms;          /* first token to the last */
    uint32_t    stop;               /* 1 and the number, from 0, of the STOP
                                       field that ended the answer; 0: none
                                       did, or the engine does not report it */

    /* Version 3 ends here.  The rest of the cached tokens was on the GPU. */

    uint32_t    host_tokens;        /* of cached ones, from host memory */
    uint32_t    redis_tokens;       /* of cached ones, from Redis */
} dsa_link_done_t;


typedef enum {
    DSA_LINK_E_INVALID = 1,         /* a malformed submit, an unknown token */
    DSA_LINK_E_CONTEXT,             /* prompt and max_tokens exceed the
                                       context */
    DSA_LINK_E_OVERLOADED,          /* try again later */
    DSA_LINK_E_DRAINING,            /* try another replica */
    DSA_LINK_E_INTERNAL
} dsa_link_error_e;


/* ERROR: this and a text for people; the last record of an id. */

typedef struct {
    uint32_t    code;
    uint32_t    prompt_tokens;      /* with DSA_LINK_E_CONTEXT */
    uint32_t    text_len;
    uint32_t    more;               /* as in COUNTED */
} dsa_link_failure_t;


/* Records are read in place after a copy: their sizes are part of the link. */

_Static_assert(sizeof(dsa_link_record_t) == 16
               && sizeof(dsa_link_field_t) == 8
               && sizeof(dsa_link_submit_t) == 88
               && sizeof(dsa_link_count_t) == 8
               && sizeof(dsa_link_counted_t) == 8
               && sizeof(dsa_link_accepted_t) == 16
               && sizeof(dsa_link_tokens_t) == 16
               && sizeof(dsa_link_token_t) == 12
               && sizeof(dsa_link_logprob_t) == 64
               && sizeof(dsa_link_row_t) == 16
               && sizeof(dsa_link_sampled_t) == 8
               && sizeof(dsa_link_done_t) == 40
               && offsetof(dsa_link_done_t, host_tokens) == 32
               && sizeof(dsa_link_failure_t) == 16,
               "sizes of records");


/* One end of one ring, in private memory. */

typedef struct {
    dsa_link_indices_t  *shared;
    uint8_t             *data;
    uint64_t             size;
    uint64_t             own;       /* our index; never read back */
    uint64_t             pending;   /* producer: after the next commit;
                                       consumer: after the next release */
} dsa_link_ring_t;


/* A mapped session.  The worker sends on submit, the replica on event. */

typedef struct {
    dsa_link_control_t  *control;
    _Atomic uint32_t    *cancel;    /* [slots]: the epoch to cancel */
    uint32_t             slots;
    uint32_t             version;   /* in use */
    dsa_link_ring_t      submit;
    dsa_link_ring_t      event;
} dsa_link_t;


static inline uint64_t
dsa_link_id(uint32_t epoch, uint32_t slot)
{
    return (uint64_t) epoch << 32 | slot;
}


static inline uint32_t
dsa_link_slot(uint64_t id)
{
    return (uint32_t) id;
}


static inline uint32_t
dsa_link_epoch(uint64_t id)
{
    return (uint32_t) (id >> 32);
}


static inline uint64_t
dsa_link_pad(uint64_t n, uint64_t to)
{
    return (n + to - 1) & ~(to - 1);
}


/* Bytes of the segment for rings and slots of these sizes. */

static inline uint64_t
dsa_link_segment_size(uint32_t slots, uint64_t submit, uint64_t event)
{
    return DSA_LINK_CONTROL_SIZE
           + dsa_link_pad((uint64_t) slots * 4, DSA_LINK_ALIGN)
           + submit + event;
}


static inline int
dsa_link_ring_size_valid(uint64_t size)
{
    return size >= DSA_LINK_ALIGN && size <= DSA_LINK_MAX_RING
           && (size & (size - 1)) == 0;
}


/*
 * Finds the parts of a session in the mapped segment.  0, or -1 if the hello
 * has a version that this header does not describe, is out of bounds, or does
 * not fit a mapping of mapped bytes.  The caller has made sure that the
 * segment is sealed against resizing.  Indices start at zero on both sides.
 */

static inline int
dsa_link_attach(dsa_link_t *link, void *base, uint64_t mapped,
    const dsa_link_hello_t *hello)
{
    uint8_t  *p = base;

    if (hello->magic != DSA_LINK_MAGIC || hello->version < DSA_LINK_VERSION_MIN
        || hello->version > DSA_LINK_VERSION_MAX
        || hello->slots == 0 || hello->slots > DSA_LINK_MAX_SLOTS
        || !dsa_link_ring_size_valid(hello->submit_size)
        || !dsa_link_ring_size_valid(hello->event_size)
        || !(hello->temperature >= 0 && hello->temperature <= 2)
        || !(hello->top_p > 0 && hello->top_p <= 1)
        || hello->segment_size != mapped
        || dsa_link_segment_size(hello->slots, hello->submit_size,
                                 hello->event_size)
           != mapped)
    {
        return -1;
    }

    memset(link, 0, sizeof(dsa_link_t));

    link->control = base;
    link->slots = hello->slots;
    link->version = hello->version;

    p += DSA_LINK_CONTROL_SIZE;
    link->cancel = (_Atomic uint32_t *) p;

    p += dsa_link_pad((uint64_t) hello->slots * 4, DSA_LINK_ALIGN);
    link->submit.shared = &link->control->submit;
    link->submit.data = p;
    link->submit.size = hello->submit_size;

    p += hello->submit_size;
    link->event.shared = &link->control->event;
    link->event.data = p;
    link->event.size = hello->event_size;

    return 0;
}


/* Bytes of a DONE in this version of the link. */

static inline uint32_t
dsa_link_done_size(uint32_t version)
{
    return version >= DSA_LINK_VERSION_TIERS
           ? (uint32_t) sizeof(dsa_link_done_t)
           : (uint32_t) offsetof(dsa_link_done_t, host_tokens);
}


/*
 * Reads a DONE of length bytes, a private copy of its payload.  In version 3
 * all cached tokens are of the GPU.  0, or -1: its length is wrong, it has more
 * cached tokens than prompt tokens, or those from host memory and Redis
 * together exceed the cached ones.
 */

static inline int
dsa_link_done_read(dsa_link_done_t *done, uint32_t version,
    const void *payload, uint32_t length)
{
    if (length != dsa_link_done_size(version)) {
        return -1;
    }

    memset(done, 0, sizeof(dsa_link_done_t));
    memcpy(done, payload, length);

    return done->cached_tokens <= done->prompt_tokens
           && (uint64_t) done->host_tokens + done->redis_tokens
              <= done->cached_tokens
           ? 0 : -1;
}


/*
 * Whether a private copy of length bytes is whole rows.  0, or -1.  The data of
 * the rows is not checked.
 */

static inline int
dsa_link_rows_check(const void *payload, uint32_t length)
{
    uint32_t         at;
    dsa_link_row_t   row;
    const uint8_t   *p = payload;

    for (at = 0; at < length; at += row.length) {
        if (length - at < sizeof(row)) {
            return -1;
        }

        memcpy(&row, p + at, sizeof(row));

        if (row.length < sizeof(row) || row.length % 4 != 0
            || row.length > DSA_LINK_MAX_ROW || row.length > length - at)
        {
            return -1;
        }
    }

    return 0;
}


/* The longest payload that always fits an empty ring. */

static inline uint64_t
dsa_link_max_payload(const dsa_link_ring_t *ring)
{
    return ring->size / 2 - sizeof(dsa_link_record_t);
}


/*
 * Producer: contiguous room for one record, which the caller fills and then
 * commits.  NULL with errno: 0, the ring has no room now; EMSGSIZE, the record
 * never fits; EPROTO, the consumer's index is impossible and the session has
 * to be closed.  Several records may be reserved one after another before one
 * commit publishes them together.
 */

static inline void *
dsa_link_reserve(dsa_link_ring_t *ring, uint32_t type, uint64_t id,
    uint64_t length)
{
    uint64_t            tail, used, total, offset, skip;
    dsa_link_record_t  *record;

    errno = 0;

    if (length > dsa_link_max_payload(ring)) {
        errno = EMSGSIZE;
        return NULL;
    }

    tail = atomic_load_explicit(&ring->shared->tail, memory_order_acquire);
    used = ring->pending - tail;

    if (used > ring->size || (tail & 7) != 0) {
        errno = EPROTO;
        return NULL;
    }

    total = dsa_link_pad(sizeof(dsa_link_record_t) + length, 8);
    offset = ring->pending & (ring->size - 1);
    skip = 0;

    if (total > ring->size - offset) {
        skip = ring->size - offset;
    }

    if (skip + total > ring->size - used) {
        return NULL;
    }

    if (skip != 0) {

        /* offsets are multiples of 8: a lone length word always fits */

        *(uint32_t *) (void *) (ring->data + offset) = 0;
        *(uint32_t *) (void *) (ring->data + offset + 4) = DSA_LINK_PAD;

        ring->pending += skip;
        offset = 0;
    }

    record = (dsa_link_record_t *) (void *) (ring->data + offset);
    record->length = (uint32_t) length;
    record->type = type;
    record->id = id;

    ring->pending += total;

    return record + 1;
}


/*
 * Producer: publishes all reserved records.  1: the consumer sleeps, and the
 * caller has to write to its wake fd.
 */

static inline int
dsa_link_commit(dsa_link_ring_t *ring)
{
    if (ring->pending == ring->own) {
        return 0;
    }

    ring->own = ring->pending;
    atomic_store_explicit(&ring->shared->head, ring->own,
                          memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);

    return atomic_load_explicit(&ring->shared->sleeping,
                                memory_order_relaxed) != 0
           && atomic_exchange(&ring->shared->sleeping, 0) != 0;
}


/*
 * Consumer: the next record.  1: *record is a private copy of its header and
 * *payload points to record->length bytes in the segment, valid until
 * released; 0: empty; -1: the ring is corrupt, close the session.
 */

static inline int
dsa_link_peek(dsa_link_ring_t *ring, dsa_link_record_t *record,
    const void **payload)
{
    uint32_t         pads;
    uint64_t         head, left, offset, total;
    const uint32_t  *word;

    for (pads = 0; /* void */ ; pads++) {
        head = atomic_load_explicit(&ring->shared->head,
                                    memory_order_acquire);
        left = head - ring->own;

        if (left == 0) {
            return 0;
        }

        if (left > ring->size || (left & 7) != 0) {
            return -1;
        }

        offset = ring->own & (ring->size - 1);
        word = (const uint32_t *) (const void *) (ring->data + offset);

        if (*(const volatile uint32_t *) (word + 1) != DSA_LINK_PAD) {
            break;
        }

        total = ring->size - offset;

        /* a hostile producer could write pads without an end */

        if (total > left || pads != 0) {
            return -1;
        }

        ring->own += total;
        atomic_store_explicit(&ring->shared->tail, ring->own,
                              memory_order_release);
    }

    if (left < sizeof(dsa_link_record_t)
        || ring->size - offset < sizeof(dsa_link_record_t))
    {
        return -1;
    }

    memcpy(record, ring->data + offset, sizeof(dsa_link_record_t));

    total = dsa_link_pad(sizeof(dsa_link_record_t)
                         + (uint64_t) record->length, 8);

    if (total > left || total > ring->size - offset
        || record->type <= DSA_LINK_PAD || record->type >= DSA_LINK_TYPES)
    {
        return -1;
    }

    *payload = ring->data + offset + sizeof(dsa_link_record_t);
    ring->pending = ring->own + total;

    return 1;
}


/* Consumer: frees the room of the record that was peeked. */

static inline void
dsa_link_release(dsa_link_ring_t *ring)
{
    ring->own = ring->pending;
    atomic_store_explicit(&ring->shared->tail, ring->own,
                          memory_order_release);
}


/*
 * Consumer: announces that it will wait for its wake fd.  1: it may sleep;
 * 0: a record arrived meanwhile, and it has to go on reading.
 */

static inline int
dsa_link_sleep(dsa_link_ring_t *ring)
{
    atomic_store_explicit(&ring->shared->sleeping, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);

    if (atomic_load_explicit(&ring->shared->head, memory_order_acquire)
        == ring->own)
    {
        return 1;
    }

    atomic_store_explicit(&ring->shared->sleeping, 0, memory_order_relaxed);

    return 0;
}


/* The worker cancels a request; the replica reads the word at each step. */

static inline void
dsa_link_cancel(dsa_link_t *link, uint64_t id)
{
    atomic_store_explicit(&link->cancel[dsa_link_slot(id)],
                          dsa_link_epoch(id), memory_order_release);
}


static inline int
dsa_link_cancelled(dsa_link_t *link, uint64_t id)
{
    return dsa_link_slot(id) < link->slots
           && atomic_load_explicit(&link->cancel[dsa_link_slot(id)],
                                   memory_order_acquire)
              == dsa_link_epoch(id);
}


#define DSA_LINK_FDS    3       /* memfd, replica's eventfd, worker's eventfd */


/* The worker's first message.  0, or -1 with errno. */

static inline int
dsa_link_send_offer(int fd)
{
    dsa_link_offer_t  offer;

    offer.magic = DSA_LINK_MAGIC;
    offer.version_min = DSA_LINK_VERSION_MIN;
    offer.version_max = DSA_LINK_VERSION_MAX;

    return send(fd, &offer, sizeof(offer), MSG_NOSIGNAL|MSG_DONTWAIT)
           == (ssize_t) sizeof(offer)
           ? 0 : -1;
}


/*
 * The replica's side.  1: an offer was received; 0: nothing yet; -1: errno,
 * EPROTO for a message that is not an offer.
 */

static inline int
dsa_link_recv_offer(int fd, dsa_link_offer_t *offer)
{
    ssize_t  n;

    n = recv(fd, offer, sizeof(dsa_link_offer_t), MSG_DONTWAIT);

    if (n == -1) {
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    }

    if (n == 0) {
        errno = ECONNRESET;
        return -1;
    }

    if (n != (ssize_t) sizeof(dsa_link_offer_t)
        || offer->magic != DSA_LINK_MAGIC)
    {
        errno = EPROTO;
        return -1;
    }

    return 1;
}


/* The highest version that both sides accept; 0 if there is none. */

static inline uint32_t
dsa_link_version(uint32_t min, uint32_t max)
{
    if (max > DSA_LINK_VERSION_MAX) {
        max = DSA_LINK_VERSION_MAX;
    }

    return max >= min && max >= DSA_LINK_VERSION_MIN ? max : 0;
}


/* A message of size bytes, with descriptors unless fds is NULL. */

static inline int
dsa_link_send_fds(int fd, const void *data, size_t size, const int *fds)
{
    ssize_t          n;
    struct iovec     iov;
    struct msghdr    msg;
    struct cmsghdr  *cmsg;

    union {
        char             space[CMSG_SPACE(sizeof(int) * DSA_LINK_FDS)];
        struct cmsghdr   align;
    } control;

    memset(&msg, 0, sizeof(msg));
    memset(&control, 0, sizeof(control));

    iov.iov_base = (void *) data;
    iov.iov_len = size;

    msg.msg_iov = &iov;
    msg.msg_iovlen = 1;

    if (fds != NULL) {
        msg.msg_control = control.space;
        msg.msg_controllen = sizeof(control.space);

        cmsg = CMSG_FIRSTHDR(&msg);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(sizeof(int) * DSA_LINK_FDS);
        memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * DSA_LINK_FDS);
    }

    n = sendmsg(fd, &msg, MSG_NOSIGNAL|MSG_DONTWAIT);

    return n == (ssize_t) size ? 0 : -1;
}


/*
 * The replica's answer to an offer.  fds is NULL if there is no common
 * version.  0, or -1 with errno.
 */

static inline int
dsa_link_send_hello(int fd, const dsa_link_hello_t *hello, const int *fds)
{
    return dsa_link_send_fds(fd, hello, sizeof(dsa_link_hello_t), fds);
}


/*
 * The worker's side.  1: the hello is there.  If it has a version, so are the
 * descriptors, close-on-exec, and the caller closes them; otherwise they are
 * -1.  0: nothing yet; -1: errno, EPROTO for a message that is not a hello.
 */

static inline int
dsa_link_recv_hello(int fd, dsa_link_hello_t *hello, int fds[DSA_LINK_FDS])
{
    int              i, n_fds, extra;
    size_t           size;
    ssize_t          n;
    struct iovec     iov;
    struct msghdr    msg;
    struct cmsghdr  *cmsg;

    union {
        char             space[CMSG_SPACE(sizeof(int) * DSA_LINK_FDS)];
        struct cmsghdr   align;
    } control;

    memset(&msg, 0, sizeof(msg));
    memset(hello, 0, sizeof(dsa_link_hello_t));

    iov.iov_base = hello;
    iov.iov_len = sizeof(dsa_link_hello_t);

    msg.msg_iov = &iov;
    msg.msg_iovlen = 1;
    msg.msg_control = control.space;
    msg.msg_controllen = sizeof(control.space);

    n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC|MSG_DONTWAIT);

    if (n == -1) {
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    }

    if (n == 0) {
        errno = ECONNRESET;
        return -1;
    }

    for (i = 0; i < DSA_LINK_FDS; i++) {
        fds[i] = -1;
    }

    /* control.space has padding that holds one descriptor more than wanted */

    n_fds = 0;
    cmsg = CMSG_FIRSTHDR(&msg);

    if (cmsg != NULL && cmsg->cmsg_level == SOL_SOCKET
        && cmsg->cmsg_type == SCM_RIGHTS)
    {
        size = cmsg->cmsg_len - CMSG_LEN(0);

        for ( /* void */ ; size >= sizeof(int); size -= sizeof(int)) {
            memcpy(&extra, CMSG_DATA(cmsg) + sizeof(int) * (size_t) n_fds,
                   sizeof(int));

            if (n_fds < DSA_LINK_FDS) {
                fds[n_fds] = extra;

            } else {
                (void) close(extra);
            }

            n_fds++;
        }
    }

    hello->model[sizeof(hello->model) - 1] = '\0';
    hello->fingerprint[sizeof(hello->fingerprint) - 1] = '\0';

    /* a replica of a later version may send more */

    if (n == (ssize_t) sizeof(dsa_link_hello_t)
        && hello->magic == DSA_LINK_MAGIC
        && n_fds == (hello->version != 0 ? DSA_LINK_FDS : 0))
    {
        return 1;
    }

    for (i = 0; i < DSA_LINK_FDS; i++) {
        if (fds[i] != -1) {
            (void) close(fds[i]);
            fds[i] = -1;
        }
    }

    errno = EPROTO;

    return -1;
}


#endif /* _DSA_LINK_H_INCLUDED_ */
