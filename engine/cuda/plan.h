
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PLAN_H_INCLUDED_
#define _DSA_PLAN_H_INCLUDED_


#include "base/buf.h"
#include "base/error.h"
#include "engine/backend.h"


/*
 * The plan of a replica's GPU memory: what each GPU needs for its part of the
 * model, and how many pages of the KV cache fit beside that.
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
    dsa_attention_e     attention;
    uint32_t            rank_tokens;    /* tokens in a step of one GPU, */
    uint32_t            max_seqs;       /* and sequences */
    uint32_t            context;        /* most tokens of a sequence */
    uint64_t            page;           /* bytes of a page on one GPU */
    uint64_t            kv_memory;      /* bytes for pages on each GPU; 0: what
                                           is left */
    uint32_t            pages;          /* result: of each GPU; 0: not known */
} dsa_plan_t;


/*
 * Sets plan->pages from the other fields.  All GPUs have as many pages as the
 * fullest one, so that the scheduler sees equal ranks.  DSA_ERROR: err has the
 * GPU that lacks the most memory, and what it needs; or kv_memory is below one
 * page.
 */
int dsa_plan_pages(dsa_plan_t *plan, dsa_err_t *err);

/*
 * Appends the plan to text after dsa_plan_pages(): a line for each GPU, or one
 * for all if their memory is not known, and a line for the replica.
 */
void dsa_plan_describe(const dsa_plan_t *plan, dsa_buf_t *text);

/* The same in the log. */
void dsa_plan_log(const dsa_plan_t *plan);


/*
 * What a GPU of a replica with this number of GPUs needs.  DSA_ERROR with err:
 * the model cannot be split so, or there is no host memory.
 */
typedef int (*dsa_plan_needs_pt)(void *data, dsa_plan_needs_t *needs,
    uint32_t gpus, dsa_attention_e attention, dsa_err_t *err);

/*
 * After a DSA_ERROR of dsa_plan_pages(): appends to err the smallest numbers of
 * GPUs, of the memory that the smallest one here has, that would hold the model
 * with the KV cache of one sequence of plan->context tokens.  Appends nothing
 * if the GPUs are enough and only kv_memory is too large.
 */
void dsa_plan_alternatives(const dsa_plan_t *plan, dsa_plan_needs_pt needs,
    void *data, dsa_err_t *err);


#endif /* _DSA_PLAN_H_INCLUDED_ */
