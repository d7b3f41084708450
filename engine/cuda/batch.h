
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CUDA_BATCH_H_INCLUDED_
#define _DSA_CUDA_BATCH_H_INCLUDED_


#include <cuda_runtime_api.h>

#include "engine/backend.h"
#include "engine/cuda/rank.h"


/*
 * Converts the scheduler's entries of a step to arrays for the GPU.  Only
 * batch.c reads dsa_batch_seq_t.
 */


/* Tokens of a step whose experts are reported. */

typedef struct {
    uint16_t               *to;         /* as in dsa_rollout_t, of the first
                                           one */
    uint32_t                first;
    uint32_t                n;
} dsa_cuda_routes_t;


/* The rollout data of a step; kept and experts are pinned. */

typedef struct {
    dsa_rollout_t          *sample;     /* [max_samples] of each sample; draw
                                           is NULL: nothing */
    uint32_t               *kept;       /* [max_samples, words] */
    dsa_cuda_routes_t      *piece;      /* [max_samples] */
    int32_t                *experts;    /* as rank->routes; NULL: no layer has
                                           experts */
    uint32_t                n_kept;     /* samples with kept ids to report */
    uint32_t                n_pieces;
    uint32_t                tokens;     /* tokens of the step up to the last
                                           one with experts to report */
    uint32_t                words;      /* of a bitmap */
    uint32_t                allowed;
} dsa_cuda_rollouts_t;


/*
 * Where the results of an entry go, as in dsa_batch_seq_t; NULL: they are
 * dropped.
 */

typedef struct {
    uint32_t               *accepted;
    uint32_t               *next;
    uint32_t               *n_next;
    uint32_t                sample;     /* the first one */
    dsa_next_mask_pt        next_mask;  /* NULL after the last draft */
    void                   *next_owner;
} dsa_cuda_verified_t;


/*
 * The drafts of a step; known, pages, accepted, next, state and mask are
 * pinned.
 */

typedef struct {
    uint8_t                *known;      /* laid out as rank->spec, from
                                           known.token to end */
    int32_t                *pages;      /* as spec.known.pages */
    uint32_t               *accepted;   /* as spec.accepted */
    uint32_t               *next;       /* as spec.next */
    uint32_t               *state;      /* as spec.state */
    uint32_t               *mask;       /* [max_seqs, words] of a draft */
    dsa_cuda_verified_t    *entry;      /* [max_seqs] */
    dsa_cuda_seq_t         *seq;        /* [max_seqs] of step */
    dsa_cuda_step_t         step;       /* the first one of the draft layer */
    uint32_t                n;          /* sequences */
    uint32_t                follow;     /* 1: some follow the step before */
    uint32_t                masked;     /* 1: some drafts have masks, on any
                                           rank, so that the host takes part in
                                           each of them */
    uint32_t                tokens;     /* of the step of the model */
    uint32_t                tables;     /* rows of pages */
    uint32_t                width;      /* of the longest row, in pages */
    uint32_t                most;       /* drafts of any sequence, on all
                                           ranks */
    uint32_t                fullest;    /* rows of a later step on the fullest
                                           rank */
    uint32_t                max_keys;   /* of the later steps */
} dsa_cuda_drafts_t;


/*
 * Host memory of an in-flight step.  All but out and parts of rollouts is
 * pinned: the GPU reads and writes it while the host prepares the next step.
 */

typedef struct {
    uint8_t                *input;      /* laid out as rank->input, from token
                                           to end */
    int32_t                *pages;      /* [max_samples, ld_pages] */
    int32_t                *peer_slot;  /* [ranks, max_tokens]; NULL for one
                                           rank */
    uint32_t               *history;    /* [max_seqs *
                                           DSA_CUDA_HISTORY(rank)] */
    uint32_t               *mask;       /* [max_samples,
                                           dsa_mask_words(vocab)] */
    dsa_bias_t             *bias;       /* [max_samples *
                                           DSA_SAMPLE_MAX_BIAS] */
    dsa_cuda_sample_t      *sample;     /* [max_samples] */
    dsa_sample_t          **out;        /* [max_samples] destinations; NULL:
                                           the sample is dropped */
    dsa_cuda_rollouts_t     rollouts;
    int32_t                *loads;      /* pinned [layers with experts, ranks]
                                           rows that the tokens of this rank
                                           have there; NULL: no such layer */
    cudaEvent_t             ended;      /* the GPU finished the step */
    uint32_t                samples;
    dsa_cuda_drafts_t       drafts;     /* zeros without drafts */
} dsa_cuda_inflight_t;


/* The arrays of inflight.input. */

typedef struct {
    int32_t                *token;
    int32_t                *position;
    int32_t                *slot;
    int32_t                *keys;
    int32_t                *left;
    int32_t                *table;
    int32_t                *feed;
    int32_t                *last;
    dsa_cuda_sample_row_t  *sampling;
} dsa_cuda_host_t;


/* The tokens of an entry that a rank computes. */

typedef struct {
    const dsa_batch_seq_t  *seq;
    uint32_t                entry;      /* of the step */
    uint32_t                start;      /* position of the first one */
    uint32_t                n;
    uint32_t                last;       /* 1: the last input is among them */
    const uint32_t         *pages;      /* block table on this rank */
    uint32_t                first;      /* its first token in the step */
    uint32_t                sample;     /* its first sample, if it has one */
    uint32_t                follows;    /* 1: an entry of the step before */
    uint32_t                from;       /* that entry's piece there */
    uint32_t                from_sample;        /* and its first sample */
} dsa_cuda_piece_t;


/* What later steps need of an entry of a step. */

typedef struct {
    uint32_t                piece;
    uint32_t                sample;     /* the first one */
} dsa_cuda_entry_t;


/* The state between the preparation of two steps. */

typedef struct {
    dsa_cuda_entry_t       *before;     /* [entries] of the step that was
                                           started last */
    dsa_cuda_entry_t       *now;        /* the same of the step being made */
    uint32_t                entries;    /* most entries of a step, of all
                                           ranks */
    dsa_cuda_piece_t       *piece;      /* [max_samples] those of decode
                                           tokens first */
    uint32_t                pieces;     /* of the step being made */
    uint32_t                decodes;    /* of them, those of decode tokens */
    dsa_cuda_seq_t         *seq;        /* [2 * max_samples] */
} dsa_cuda_batch_t;


/* The values of a step that must be equal on all ranks. */

typedef struct {
    uint32_t                fullest;    /* tokens of the fullest rank */
    uint32_t                max_keys;   /* bound of keys[] of all decode
                                           tokens */
    uint32_t                decode;     /* 1: decode tokens only */
    uint32_t                grouped;    /* 1: an entry has drafts */
    uint32_t                shared;     /* 1: an entry has copies */
    uint32_t                drafts;     /* most next drafts of an entry */
    uint32_t                masked;     /* 1: next drafts have masks */
    uint32_t                draft_rows; /* of the fullest rank in the first
                                           step of the draft layer */
    uint32_t                draft_seqs; /* and in the later ones */
} dsa_cuda_common_t;


/* The used sizes of a step's arrays. */

typedef struct {
    uint32_t                tables;     /* rows of pages */
    uint32_t                pages;      /* pages of the longest row */
    uint32_t                history;    /* ids */
    uint32_t                masks;      /* rows */
    uint32_t                biases;
    uint32_t                peers;      /* tokens of peer_slot */
} dsa_cuda_extent_t;


/*
 * Allocate memory for a rank's limits.  DSA_ERROR with err.  Closing frees it.
 */
int dsa_cuda_batch_open(dsa_cuda_batch_t *batch, const dsa_cuda_rank_t *rank,
    dsa_err_t *err);
void dsa_cuda_batch_close(dsa_cuda_batch_t *batch);

int dsa_cuda_inflight_open(dsa_cuda_inflight_t *f,
    const dsa_cuda_rank_t *rank, dsa_err_t *err);
void dsa_cuda_inflight_close(dsa_cuda_inflight_t *f);

/*
 * loads.c: memory for the rows of experts, which open returns a cudaError_t
 * for, as enqueue does: it counts them after a step.  When the step has ended
 * on n ranks, of which rank is one, add counts them in b.
 */
int dsa_cuda_loads_open(dsa_cuda_inflight_t *f, const dsa_cuda_rank_t *rank);
void dsa_cuda_loads_close(dsa_cuda_inflight_t *f);
int dsa_cuda_loads_enqueue(const dsa_cuda_inflight_t *f,
    const dsa_cuda_rank_t *rank, const dsa_cuda_step_t *step);
void dsa_cuda_loads_add(dsa_backend_t *b, dsa_cuda_inflight_t *const *f,
    uint32_t n, const dsa_cuda_rank_t *rank);

/* Returns the bytes of inflight.input. */
uint64_t dsa_cuda_input_size(const dsa_cuda_rank_t *rank);

/* Sets host to the arrays in f->input. */
void dsa_cuda_host(dsa_cuda_host_t *host, const dsa_cuda_rank_t *rank,
    const dsa_cuda_inflight_t *f);

/*
 * Enqueue the copies of f->input and of the used parts of the other arrays to
 * rank->input, and of f->samples samples from rank->sample to f->sample.  They
 * return a cudaError_t.
 */
int dsa_cuda_inflight_upload(const dsa_cuda_inflight_t *f,
    dsa_cuda_rank_t *rank, const dsa_cuda_extent_t *extent);
int dsa_cuda_inflight_download(const dsa_cuda_inflight_t *f,
    const dsa_cuda_rank_t *rank);

/*
 * Sets tokens from .. to-1 of a step to padding: tokens that attend to
 * nothing, write no cache entries, and whose samples are ignored.
 */
void dsa_cuda_host_pad(dsa_cuda_host_t *host, uint32_t from, uint32_t to);

/*
 * Sets common for the entries of a step.  DSA_ERROR with err: entries or
 * tokens exceed the limits of a rank.
 */
int dsa_cuda_batch_common(dsa_cuda_common_t *common,
    const dsa_cuda_rank_t *rank, const dsa_batch_seq_t *seq, uint32_t n_seqs,
    dsa_err_t *err);

/*
 * Fills f, step and extent from the entries of a step that this rank computes;
 * a rank without entries gets a padding token.  seq is used until the return,
 * and the arrays for its results until dsa_cuda_batch_finish().
 */
void dsa_cuda_batch_make(dsa_cuda_batch_t *batch, dsa_cuda_inflight_t *f,
    dsa_cuda_step_t *step, dsa_cuda_extent_t *extent,
    const dsa_cuda_common_t *common, const dsa_cuda_rank_t *rank,
    const dsa_batch_seq_t *seq, uint32_t n_seqs);

/*
 * Copies the samples and rollouts of a finished step to the arrays of its
 * entries.
 */
void dsa_cuda_batch_finish(const dsa_cuda_inflight_t *f,
    const dsa_cuda_rank_t *rank);

/* Writes the block table of the tokens before position end to row table. */
void dsa_cuda_batch_pages(const dsa_cuda_rank_t *rank, int32_t *pages,
    const dsa_cuda_piece_t *p, uint32_t end, uint32_t table);

/* Returns the end of an entry's tokens, whatever the step before accepts. */
uint32_t dsa_cuda_batch_end(const dsa_cuda_rank_t *rank,
    const dsa_batch_seq_t *s);

/*
 * speculate.c and speculate_run.c, for a rank with drafts.  Opening returns a
 * cudaError_t; closing frees.  size returns the bytes of f->drafts.known, and
 * count the rows of a piece in the first step of the draft layer.  make fills
 * f->drafts after dsa_cuda_batch_make(); begin completes the inputs of the
 * step, after dsa_cuda_inflight_upload(); enqueue adds the verification, the
 * steps of the draft layer and the copy of their results behind the step; both
 * return a cudaError_t; finish copies the results to the entries.
 *
 * With masks of drafts, enqueue ends behind the first step.  When that has
 * ended, masks and draft are called for each draft k < f->drafts.most: masks
 * calls next_mask of the entries, by the thread that may, and draft samples
 * the drafts, enqueues what follows, and waits for it.
 */
int dsa_cuda_speculate_open(dsa_cuda_drafts_t *d,
    const dsa_cuda_rank_t *rank);
void dsa_cuda_speculate_close(dsa_cuda_drafts_t *d);
uint64_t dsa_cuda_speculate_size(const dsa_cuda_rank_t *rank);
uint32_t dsa_cuda_speculate_count(const dsa_cuda_rank_t *rank,
    const dsa_cuda_piece_t *piece);
void dsa_cuda_speculate_make(dsa_cuda_inflight_t *f,
    const dsa_cuda_batch_t *batch, const dsa_cuda_common_t *common,
    const dsa_cuda_rank_t *rank);
int dsa_cuda_speculate_begin(const dsa_cuda_inflight_t *f,
    dsa_cuda_rank_t *rank);
int dsa_cuda_speculate_enqueue(const dsa_cuda_inflight_t *f,
    dsa_cuda_rank_t *rank);
void dsa_cuda_speculate_masks(dsa_cuda_inflight_t *f,
    const dsa_cuda_rank_t *rank, uint32_t k);
int dsa_cuda_speculate_draft(const dsa_cuda_inflight_t *f,
    dsa_cuda_rank_t *rank, uint32_t k);
void dsa_cuda_speculate_finish(const dsa_cuda_inflight_t *f);

/* rollout.c.  Opening returns a cudaError_t; closing frees. */
int dsa_cuda_rollout_open(dsa_cuda_rollouts_t *r,
    const dsa_cuda_rank_t *rank);
void dsa_cuda_rollout_close(dsa_cuda_rollouts_t *r);

/* Adds a piece that begins at token first of the step. */
void dsa_cuda_rollout_piece(dsa_cuda_rollouts_t *r,
    const dsa_cuda_rank_t *rank, const dsa_cuda_piece_t *p, uint32_t first);

/*
 * Enqueues the kernels and copies for the rollouts of a step behind it.
 * Returns a cudaError_t.
 */
int dsa_cuda_rollout_enqueue(const dsa_cuda_rollouts_t *r,
    const dsa_cuda_rank_t *rank, uint32_t samples);

/*
 * Sets the draw and the kept ids of sample i; mask: of its sampling, or NULL.
 */
void dsa_cuda_rollout_draw(const dsa_cuda_rollouts_t *r, uint32_t i,
    const dsa_cuda_sample_t *from, const uint32_t *mask);

/* Copies the experts to the entries. */
void dsa_cuda_rollout_finish(const dsa_cuda_rollouts_t *r,
    const dsa_cuda_rank_t *rank);


#endif /* _DSA_CUDA_BATCH_H_INCLUDED_ */
