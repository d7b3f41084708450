
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MODEL_H_INCLUDED_
#define _DSA_MODEL_H_INCLUDED_


#include "base/threads.h"
#include "engine/backend.h"
#include "engine/checkpoint/weights.h"


/*
 * The forward pass on the CPU over a paged cache, in one of two precisions:
 * see dsa_precision_e.
 *
 * Results do not depend on the number of threads, and those of a sequence do
 * not depend on the other sequences of a step.  They do depend on how a prompt
 * is cut into chunks, because a chunk is computed in the cheaper of the two
 * forms of attention (kernels/attention.h).
 */

typedef struct dsa_model_s  dsa_model_t;


/* Tokens of one sequence in a step, the last n_logits of them with logits. */

typedef struct {
    const uint32_t     *tokens;     /* [n] ids of these tokens only */
    uint32_t            start;      /* position of the first one */
    uint32_t            n;
    const uint32_t     *pages;      /* block table, [ceil((start+n)/64)] */
    uint32_t            n_logits;
} dsa_rows_t;


/*
 * Called with the intermediate results of a step if set, for
 * dsa logits --trace: name "hidden", "attn_out" (float32 [tokens, hidden]),
 * "topk" (int32 [tokens, index_topk, or the context's length if that is
 * less], ascending, then -1), "gap" (float32 [tokens, 1], by how much the least
 * selected score exceeds the greatest one that was left out, 0 if all are
 * selected), "expert" (int32 [tokens, k]), "expert_weight" (float32
 * [tokens, k]).
 */
typedef void (*dsa_trace_pt)(void *ctx, const char *name, uint32_t layer,
    uint32_t rows, uint32_t cols, const void *data);

/*
 * Called, if set, with the selections of a step before they are used; may
 * replace them, in order to compare two implementations under the same
 * selections: selected [rows, cols] rising positions, none above the token's
 * own, of which n_selected [rows] count, at least one.
 */
typedef void (*dsa_select_pt)(void *ctx, uint32_t layer, uint32_t rows,
    uint32_t cols, int32_t *selected, uint32_t *n_selected);


/*
 * kv_memory: bytes for pages, at least one page.  max_rows: most tokens of a
 * step.  threads: that compute, the caller's included; 0: as many as CPUs on
 * which the process may run.  weights must outlive the model.  NULL with err.
 * Nothing is allocated after this.
 */
dsa_model_t *dsa_model_open(const dsa_weights_t *weights,
    dsa_precision_e precision, uint64_t kv_memory, uint32_t max_rows,
    uint32_t threads, dsa_err_t *err);
void dsa_model_close(dsa_model_t *m);               /* NULL is allowed */

uint32_t dsa_model_pages(const dsa_model_t *m);

/* The threads of the model, for other work between its steps. */
dsa_threads_t *dsa_model_pool(const dsa_model_t *m);

/* The kv_memory that holds so many tokens of one sequence. */
uint64_t dsa_model_kv_memory(const dsa_model_config_t *config,
    dsa_precision_e precision, uint64_t tokens);

void dsa_model_trace(dsa_model_t *m, dsa_trace_pt trace, void *ctx);
void dsa_model_select(dsa_model_t *m, dsa_select_pt select, void *ctx);

/*
 * Computes the tokens of n_seqs sequences through all layers, writes their
 * cache entries, and the requested logits, in order, to logits
 * [sum n_logits, vocab] float32.  DSA_ERROR with err, and nothing is computed,
 * if there are too many tokens, or a token, a position or a page is out of
 * range.
 */
int dsa_model_forward(dsa_model_t *m, const dsa_rows_t *seq, uint32_t n_seqs,
    float *logits, dsa_err_t *err);


#endif /* _DSA_MODEL_H_INCLUDED_ */
