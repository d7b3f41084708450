
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MODEL_H_INCLUDED_
#define _DSA_MODEL_H_INCLUDED_


#include "engine/backend.h"
#include "engine/checkpoint/weights.h"


/*
 * The forward pass on the CPU over a paged cache.  Two precisions over one
 * road: see dsa_precision_e.
 */

typedef struct dsa_model_s  dsa_model_t;


/* Rows of one sequence; logits of the last n_logits of them are wanted. */

typedef struct {
    const uint32_t     *tokens;     /* [n] ids of the rows, not of the whole */
    uint32_t            start;      /* position of the first row */
    uint32_t            n;
    const uint32_t     *pages;      /* [ceil((start+n)/64)] */
    uint32_t            n_logits;
} dsa_rows_t;


/*
 * Called with the intermediate results of a step where set, for
 * dsa logits --trace: name "hidden", "attn_out" (float32 [rows, hidden]),
 * "topk" (int32 [rows, index_topk, or the context's length where that is
 * less], ascending, -1 last), "gap" (float32 [rows, 1], how far the least
 * selected score lies above the greatest one left out, 0 where all are
 * selected), "expert" (int32 [rows, k]), "expert_weight" (float32 [rows, k]).
 */
typedef void (*dsa_trace_pt)(void *ctx, const char *name, uint32_t layer,
    uint32_t rows, uint32_t cols, const void *data);

/*
 * Called, where set, with the selections of a step before they are used, and
 * may replace them, for a comparison under the choices of another
 * implementation: pick [rows, cols] rising positions, none above the row's own,
 * of which n_pick [rows] count, at least one.
 */
typedef void (*dsa_select_pt)(void *ctx, uint32_t layer, uint32_t rows,
    uint32_t cols, int32_t *pick, uint32_t *n_pick);


/*
 * kv_memory: bytes for pages; what holds no page is refused.  max_rows: most
 * rows of a step.  weights must outlive the model.  NULL with err.  Nothing
 * is allocated after this.
 */
dsa_model_t *dsa_model_open(const dsa_weights_t *weights,
    dsa_precision_e precision, uint64_t kv_memory, uint32_t max_rows,
    dsa_err_t *err);
void dsa_model_close(dsa_model_t *m);               /* NULL is allowed */

uint32_t dsa_model_pages(const dsa_model_t *m);

/* The kv_memory that holds so many tokens of one sequence. */
uint64_t dsa_model_kv_memory(const dsa_model_config_t *config,
    dsa_precision_e precision, uint64_t tokens);

void dsa_model_trace(dsa_model_t *m, dsa_trace_pt trace, void *ctx);
void dsa_model_select(dsa_model_t *m, dsa_select_pt select, void *ctx);

/*
 * Runs the rows of n_seqs sequences through all layers, writes their cache
 * entries, and the wanted logits, in order, to logits [sum n_logits, vocab]
 * float32.  DSA_ERROR with err, and nothing done, for a step that cannot be
 * computed: too many rows, or a token, position or page out of range.
 */
int dsa_model_forward(dsa_model_t *m, const dsa_rows_t *seq, uint32_t n_seqs,
    float *logits, dsa_err_t *err);


#endif /* _DSA_MODEL_H_INCLUDED_ */
