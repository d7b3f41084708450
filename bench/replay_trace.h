
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_REPLAY_TRACE_H_INCLUDED_
#define _DSA_BENCH_REPLAY_TRACE_H_INCLUDED_


#include "base/error.h"
#include "base/map.h"


/*
 * A trace of requests: a JSON object on each line, in the order of arrival,
 * with these members.  Others are ignored.
 *
 *     timestamp      ms since the start of the trace
 *     input_length   tokens of the prompt, >= 1
 *     output_length  tokens of the answer, >= 1
 *     hash_ids       a number for each block of 512 tokens of the prompt, the
 *                    last of which may be shorter: equal numbers stand for
 *                    blocks that are equal and have an equal prefix
 *     tenant         a name; optional
 *     conversation   a name; optional.  A request begins when the one before
 *                    it in its conversation has ended
 *     pause_ms       optional, ms from the end of the one before it in its
 *                    conversation, for example while a tool runs: replaces the
 *                    timestamp, which can only assume how long answers take.
 *                    That of a conversation's first request counts only where
 *                    an agent has one conversation after another
 *                    (bench/replay_order.h)
 */

#define TRACE_BLOCK         512         /* tokens */
#define TRACE_NONE          UINT32_MAX


typedef struct {
    double              arrival_ms;
    double              pause_ms;       /* -1: none */
    uint32_t            input;          /* tokens */
    uint32_t            output;         /* tokens */
    uint32_t            n_ids;          /* ceil(input / TRACE_BLOCK) */
    size_t              first_id;       /* in ids of the trace */
    uint32_t            tenant;         /* in names; TRACE_NONE: none */
    uint32_t            previous;       /* the request before it in its
                                           conversation, or TRACE_NONE */
    uint32_t            next;           /* the one after it, or TRACE_NONE */
    uint32_t            best;           /* tokens that a cache of any size
                                           would hold when it arrives */
} trace_request_t;


typedef struct {
    trace_request_t    *request;        /* [n] */
    uint64_t           *id;             /* [n_ids], of all requests */
    uint8_t            *part;           /* [n_ids]: 1 where prompts of the
                                           trace part behind this block */
    char              **tenant;         /* [n_tenants], names */
    uint32_t            n;
    uint32_t            n_tenants;
    uint32_t            n_first;        /* requests without one before them */
    size_t              n_ids;
    size_t              id_size;        /* ids that there is room for */
    uint32_t            size;           /* requests that there is room for */
    dsa_map_t           tenants;        /* name to number */
    dsa_map_t           conversations;  /* name to its last request */
} trace_t;


/*
 * Reads at most limit requests of a file, "-" for stdin; a file whose name ends
 * in .xz is read through "xz -dc".  DSA_ERROR with "FILE:LINE: reason" in err.
 * The caller frees a trace with trace_free() in any case.
 */
int trace_read(trace_t *t, const char *path, uint32_t limit, dsa_err_t *err);
void trace_free(trace_t *t);


#endif /* _DSA_BENCH_REPLAY_TRACE_H_INCLUDED_ */
