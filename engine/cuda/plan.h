
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PLAN_H_INCLUDED_
#define _DSA_PLAN_H_INCLUDED_


#include "base/buf.h"
#include "base/error.h"
#include "engine/backend.h"


/*
 * The plan of a replica's GPU memory: the needs of each GPU for its part of
 * the model, and the number of KV pages that fit in the rest.
 *
 * plan.c is arithmetic and text only.  It does not call CUDA, so that it is
 * built and tested on machines without it.
 */


/* Bytes that a GPU needs besides the pages. */

typedef struct {
    uint64_t            weights;
    uint64_t            workspace;      /* of the steps */
    uint64_t            exchange;       /* buffers that other GPUs write */
    uint64_t            reserve;        /* for the driver, libraries and
                                           graphs */
} dsa_plan_needs_t;


typedef struct {
    uint32_t            number;         /* of the GPU */
    uint64_t            memory;         /* bytes that it has; 0: not known */
    dsa_plan_needs_t    needs;
} dsa_plan_gpu_t;


typedef struct {
    dsa_plan_gpu_t      gpu[DSA_MAX_GPUS];
    uint32_t            gpus;           /* 1 .. DSA_MAX_GPUS */
    uint32_t            free;           /* 1: memory is what is free now; 0: it
                                           is all memory of the GPU */
    uint32_t            same;           /* 1: all GPUs have the same memory,
                                           and one line describes them */
    dsa_attention_e     attention;
    uint32_t            rank_tokens;    /* tokens of a step on one GPU */
    uint32_t            max_seqs;       /* sequences of a step on one GPU */
    uint32_t            context;        /* most tokens of a sequence */
    uint64_t            page;           /* bytes of a page on one GPU */
    uint64_t            kv_memory;      /* bytes for pages on each GPU; 0: the
                                           rest */
    uint32_t            pages;          /* result: of each GPU; 0: not known */
} dsa_plan_t;


/*
 * Sets plan->pages from the other fields.  All GPUs get as many pages as the
 * GPU with the least room has, so that all ranks are equal for the scheduler.
 * DSA_ERROR: err describes the GPU that lacks the most memory and its needs;
 * or kv_memory is below one page.
 */
int dsa_plan_pages(dsa_plan_t *plan, dsa_err_t *err);

/*
 * Appends the plan to text after dsa_plan_pages(): a line for each GPU, or one
 * for all if their memory is the same or not known, and a line for the
 * replica.
 */
void dsa_plan_describe(const dsa_plan_t *plan, dsa_buf_t *text);

/* Logs the plan. */
void dsa_plan_log(const dsa_plan_t *plan);


/*
 * Computes the needs of a GPU of a replica with this number of GPUs.
 * DSA_ERROR with err: the model cannot be split over so many, or there is no
 * host memory.
 */
typedef int (*dsa_plan_needs_pt)(void *data, dsa_plan_needs_t *needs,
    uint32_t gpus, dsa_attention_e attention, dsa_err_t *err);

/*
 * Call it after a DSA_ERROR of dsa_plan_pages().  Appends to err the smallest
 * numbers of GPUs that could hold the model and the KV cache of one sequence
 * of plan->context tokens.  GPUs are assumed to have as much memory as the
 * smallest one of this plan.  Appends nothing if only kv_memory is too large.
 */
void dsa_plan_alternatives(const dsa_plan_t *plan, dsa_plan_needs_pt needs,
    void *data, dsa_err_t *err);


#endif /* _DSA_PLAN_H_INCLUDED_ */
