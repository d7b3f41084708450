
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_DRAFT_H_INCLUDED_
#define _DSA_DRAFT_H_INCLUDED_


#include "kernels/core/cuda.h"
#include "kernels/sample/sample.h"


/*
 * CUDA.  What the steps of the draft layer need to know about the samples of
 * the model before the host has them: which drafts were right, and from which
 * row a sequence goes on.  All pointers are device memory.
 */

#define DSA_DRAFT_NEXT  8       /* a number of drafts, and up to 7 of them */


/* A sequence in a step of the model. */

typedef struct {
    int32_t             token;          /* its first token of the step */
    int32_t             n;              /* its tokens */
    int32_t             n_draft;        /* of them, the last ones */
    int32_t             start;          /* position of the first token */
    int32_t             from;           /* the sequence in the step before
                                           whose samples and drafts are its
                                           tokens; -1: its tokens are known */
    int32_t             from_sample;    /* the first sample of that one */
    int32_t             sample;         /* its first sample; -1: it has none */
    int32_t             kept;           /* the row of its first token in the
                                           draft layer's first step; -1: it has
                                           none */
    int32_t             row;            /* the row behind its first sample
                                           there */
    int32_t             known;          /* the first sample there */
    int32_t             most;           /* drafts that are wanted */
    int32_t             limit;          /* positions that its pages have */
    int32_t             table;          /* a row of its in the block tables of
                                           the first step */
    int32_t             penalized;      /* 1: samples are added to history */
} dsa_cuda_draft_seq_t;


/* The pages' kept hidden states (kernels/attention/cache.h). */

typedef struct {
    uint8_t            *base;           /* of page 0's */
    uint64_t            page;           /* bytes from a page to the next */
    uint32_t            cols;           /* elements, even */
} dsa_cuda_kept_t;


/* The arrays of a step with one row for each sequence. */

typedef struct {
    int32_t            *token;
    int32_t            *position;
    int32_t            *slot;
    int32_t            *keys;
    int32_t            *last;           /* each row is sampled */
    dsa_cuda_sample_row_t  *sampling;
} dsa_cuda_draft_rows_t;


/* The arrays of a step whose sequences follow those of the step before. */

typedef struct {
    int32_t            *token;
    int32_t            *position;
    int32_t            *slot;
    int32_t            *keys;
    int32_t            *left;
    dsa_cuda_sample_row_t  *sampling;
    const int32_t      *pages;          /* block tables, [., ld_pages] */
} dsa_cuda_draft_input_t;


/*
 * Completes the sequences of a step that follow those of the step before: with
 * the accepted drafts of that one, accepted [.] - 1, the tokens move behind its
 * last valid sample, and they are that sample and the drafts next [.,
 * DSA_DRAFT_NEXT].  in is the step of the model, with a block table for each of
 * these tokens from table [token] on; known is the first step of the draft
 * layer, with rows s.row and s.kept of sequence s, and block tables from
 * s.table on, whose hidden states are from [.].  left is what
 * dsa_cuda_index_score_groups() needs.  The caller sets all values for the case
 * that no draft was accepted.  Tokens behind the drafts that there
 * are, or behind limit, become padding.  Where penalized is set, the tokens are
 * appended to the history.  seq [n]: start, n and n_draft are completed.
 */
int dsa_cuda_draft_follow(dsa_cuda_draft_seq_t *seq, uint32_t n,
    const dsa_cuda_draft_input_t *in, const int32_t *table,
    const dsa_cuda_draft_input_t *known, int32_t *from, size_t ld_pages,
    uint32_t *history, const uint32_t *accepted, const uint32_t *next,
    const dsa_cuda_sample_t *sample, dsa_stream_t stream);

/*
 * Sets accepted [n] to 1 + the number of the sequence's drafts before the first
 * one that differs from its sample; token: the inputs of the step.  Where
 * penalized is set, appends the samples to the history of row [samples].
 */
int dsa_cuda_draft_accept(uint32_t *accepted, const dsa_cuda_draft_seq_t *seq,
    uint32_t n, const int32_t *token, const dsa_cuda_sample_t *sample,
    const dsa_cuda_sample_row_t *row, uint32_t *history,
    dsa_stream_t stream);

/*
 * y [rows, cols] = the rows from[r] of hidden [., cols].  from[r] below 0: what
 * page -1 - from[r] has kept, if it is the state of position[r] - 1; otherwise
 * zeros, and slot[r] = -1, so that the row is not written.
 */
int dsa_cuda_draft_gather(dsa_bf16_t *y, int32_t *slot,
    const dsa_bf16_t *hidden, const int32_t *from, const int32_t *position,
    const dsa_cuda_kept_t *kept, uint32_t rows, dsa_stream_t stream);

/*
 * Keeps in each page the hidden state of the last token that the step has
 * verified in it: hidden [tokens, cols], position, slot, owner [tokens]; owner
 * is a sequence.
 */
int dsa_cuda_draft_keep_hidden(const dsa_cuda_kept_t *kept,
    const dsa_bf16_t *hidden, const int32_t *position, const int32_t *slot,
    const int32_t *owner, const dsa_cuda_draft_seq_t *seq,
    const uint32_t *accepted, uint32_t tokens, dsa_stream_t stream);

/*
 * Reports draft k, from 0 on, of each sequence in next [n, DSA_DRAFT_NEXT],
 * whose element 0 is the number of drafts, and sets the row of draft k + 1 in
 * to.  from is the step that sampled draft k: for k = 0 the first one, with the
 * tokens last[.] of its samples, then the step before.  source [n]: the sample
 * of each row in from; pick [n]: its token there; -1: the sequence has no
 * further draft, and its row attends to nothing and is not written.  pages [n,
 * ld_pages]: block tables of the rows of to.
 */
int dsa_cuda_draft_next(uint32_t *next, int32_t *source, int32_t *pick,
    const dsa_cuda_draft_rows_t *to, const dsa_cuda_draft_rows_t *from,
    const int32_t *last, const dsa_cuda_sample_t *sample, uint32_t *history,
    const dsa_cuda_draft_seq_t *seq, const uint32_t *accepted,
    const int32_t *pages, size_t ld_pages, uint32_t n, uint32_t k,
    dsa_stream_t stream);

/*
 * Before draft k is sampled: sets the mask of its row in sampling, as in
 * dsa_cuda_draft_next(), to mask + i for sequence i where state [n] is
 * DSA_DRAFT_MASKED, and ends the drafts of the sequence where it is
 * DSA_DRAFT_ENDED.
 */
#define DSA_DRAFT_MASKED    1
#define DSA_DRAFT_ENDED     2

int dsa_cuda_draft_mask(dsa_cuda_sample_row_t *sampling, uint32_t *next,
    dsa_cuda_draft_seq_t *seq, const uint32_t *accepted,
    const uint32_t *state, uint32_t mask, uint32_t n, uint32_t k,
    dsa_stream_t stream);

/*
 * to [n, ld] = the rows row[i], stride ints apart, of from: cols elements.
 * Rows below 0 are set to fill.
 */
int dsa_cuda_draft_copy(int32_t *to, const int32_t *from, const int32_t *row,
    size_t stride, uint32_t n, size_t ld, uint32_t cols, int32_t fill,
    dsa_stream_t stream);


#endif /* _DSA_DRAFT_H_INCLUDED_ */
