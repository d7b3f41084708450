
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CUDA_STEP_H_INCLUDED_
#define _DSA_CUDA_STEP_H_INCLUDED_


#include <stdint.h>


/*
 * Consecutive tokens of one sequence in a step, all computed by MHA prefill or
 * all by absorbed MQA.
 */

typedef struct {
    uint32_t            first;              /* index of the first token in the
                                               step */
    uint32_t            start;              /* its position */
    uint32_t            n;
    uint32_t            table;              /* row of pages[] */
    uint32_t            mha;                /* 1: by MHA prefill */
} dsa_cuda_seq_t;


/*
 * A step; its arrays are in the rank's input.  Tokens 0 .. decode-1 are decode
 * tokens, one of each sequence and its drafts, computed by absorbed MQA.  The
 * other tokens follow, sequence by sequence.
 */

typedef struct {
    uint32_t                tokens;
    uint32_t                decode;
    uint32_t                max_keys;       /* no decode token has more
                                               keys[] */
    uint32_t                indexed;        /* 1: decode tokens may see more
                                               than topk tokens */
    uint32_t                grouped;        /* 1: several of the decode tokens
                                               may be of one sequence, see
                                               left[] */
    uint32_t                n_seqs;         /* besides those of the decode
                                               tokens */
    const dsa_cuda_seq_t   *seq;            /* [n_seqs], host memory */
    uint32_t                samples;        /* tokens to sample from */
    uint32_t                fullest;        /* tokens of the fullest rank; the
                                               same on all ranks */
    uint32_t                shared_pick;    /* 1: of the draft layer, whose
                                               decode tokens attend to what
                                               pick has already */
    uint32_t                shared;         /* 1: cache entries of some tokens
                                               go to all ranks; the same on all
                                               ranks */
} dsa_cuda_step_t;


/*
 * Cuts n tokens from position start on into the parts that MHA prefill and
 * absorbed MQA compute.  prompt: tokens of the request's prompt; prompts of up
 * to mha_prompt are computed by MHA prefill.  first, table: as in
 * dsa_cuda_seq_t.  Returns the number of parts, 1 or 2.
 */

static inline uint32_t
dsa_cuda_step_parts(dsa_cuda_seq_t part[2], uint32_t mha_prompt,
    uint32_t start, uint32_t n, uint32_t prompt, uint32_t first,
    uint32_t table)
{
    uint32_t  mha, parts;

    mha = 0;
    parts = 0;

    if (prompt <= mha_prompt && start < prompt) {
        mha = n < prompt - start ? n : prompt - start;

        part[parts].first = first;
        part[parts].start = start;
        part[parts].n = mha;
        part[parts].table = table;
        part[parts].mha = 1;
        parts++;
    }

    if (mha < n) {
        part[parts].first = first + mha;
        part[parts].start = start + mha;
        part[parts].n = n - mha;
        part[parts].table = table;
        part[parts].mha = 0;
        parts++;
    }

    return parts;
}


/* Returns 1 if n tokens from position start on are one decode token. */

static inline int
dsa_cuda_step_decodes(uint32_t mha_prompt, uint32_t start, uint32_t n,
    uint32_t prompt)
{
    return n == 1 && (start >= prompt || prompt > mha_prompt);
}


#endif /* _DSA_CUDA_STEP_H_INCLUDED_ */
