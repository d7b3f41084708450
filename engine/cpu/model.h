
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MODEL_H_INCLUDED_
#define _DSA_MODEL_H_INCLUDED_


#include "base/threads.h"
#include "engine/backend.h"
#include "engine/checkpoint/weights.h"
#include "engine/forward.h"


/*
 * The forward pass on the CPU over a paged cache, in one of two precisions:
 * see dsa_precision_e.
 *
 * The bits of a token depend on the tokens before it and on the number of GPUs
 * only: not on the number of threads, the other sequences of a step, how the
 * tokens are cut into steps, or which sequence computed the pages.  So all
 * attention is absorbed MQA (kernels/attention/attention.h), also where MHA
 * needs fewer operations.
 */

typedef struct dsa_model_s  dsa_model_t;


/*
 * A model of several GPUs, for tests on machines without one: the sums that
 * GPUs exchange are computed in their order and with their roundings.  All
 * ranks are in this process.  They share the weights and the thread pool.
 *
 * With attention data each GPU is a rank with pages of its own.  Attention, the
 * dense and the shared MLPs have the same bits on every rank, so that the
 * tokens of all ranks are computed in common jobs, each on the pages of its
 * rank.  The routed experts are the ranks' own: their results are summed by
 * rank, and then over the ranks.
 *
 * With attention tensor there is one rank and one set of pages, because the
 * pages of all GPUs would be equal.  o_proj and the down_proj of every MLP are
 * cut into slices of columns, one for each GPU; their results are partial
 * sums.  The other matrices are cut by rows.  Each row of a result has the
 * same bits on every GPU, so these matrices are not cut here.
 *
 * With several hosts, which share out the ranks, a model has the pages, the
 * tokens and the routed experts of its own ranks.  It sends the tokens of a
 * layer with experts to all other hosts and receives their sums, so that the
 * bits are those of all ranks in one process.
 */

typedef struct {
    dsa_precision_e     precision;
    uint64_t            kv_memory;  /* bytes for pages of each rank, at least
                                       one page */
    uint32_t            max_tokens; /* of a step, on all ranks together */
    uint32_t            threads;    /* threads that compute, including the
                                       caller's; 0: one for each CPU on which
                                       the process may run */
    uint32_t            gpus;       /* 1 .. DSA_MAX_GPUS, of each host */
    dsa_backend_hosts_t hosts;      /* several: with attention data */
    dsa_attention_e     attention;
    uint32_t            drafts;     /* 1: with the draft layer; pages have room
                                       for it */
} dsa_model_conf_t;

/*
 * Opens a model; weights must outlive it.  NULL with err, also if
 * dsa_shard_init() rejects the number of GPUs, or if the checkpoint has no
 * usable draft layer and conf->drafts is set.  No memory is allocated later.
 */
dsa_model_t *dsa_model_open(const dsa_weights_t *weights,
    const dsa_model_conf_t *conf, dsa_err_t *err);
void dsa_model_close(dsa_model_t *m);               /* NULL is allowed */

/* Returns the number of ranks, on all hosts. */
uint32_t dsa_model_ranks(const dsa_model_t *m);

/* Returns the pages of each rank. */
uint32_t dsa_model_pages(const dsa_model_t *m);

/*
 * Returns the bytes of a page: latents and index keys of all layers, with
 * conf->drafts also of the draft layer.
 */
uint64_t dsa_model_page_bytes(const dsa_model_t *m);

/* Returns the threads of the model, for other work between its steps. */
dsa_threads_t *dsa_model_pool(const dsa_model_t *m);

/* Returns the kv_memory for one sequence of so many tokens. */
uint64_t dsa_model_kv_memory(const dsa_model_config_t *config,
    dsa_precision_e precision, uint32_t drafts, uint64_t tokens);

/* Set the callbacks of the following steps; NULL: none. */
void dsa_model_trace(dsa_model_t *m, dsa_trace_pt trace, void *ctx);
void dsa_model_select(dsa_model_t *m, dsa_select_pt select, void *ctx);

/*
 * Computes the tokens of n_seqs sequences through all layers, writes their
 * cache entries, and the requested logits, in order, to logits
 * [sum n_logits, vocab] float32.  DSA_ERROR with err, and nothing is computed,
 * if there are too many tokens, or a token, a position, a rank or a page is
 * out of range.  With several hosts, seq has those of all hosts, only the
 * requested logits of this one are written, and DSA_ERROR may also come from
 * the exchange.
 */
int dsa_model_forward(dsa_model_t *m, const dsa_rows_t *seq, uint32_t n_seqs,
    float *logits, dsa_err_t *err);

/*
 * Returns the hidden states of the tokens of the last dsa_model_forward(), in
 * the order of its sequences: what the head reads, so after the last norm,
 * [tokens, hidden size] float32.  They are valid until the next one.  Only with
 * conf->drafts.
 */
const float *dsa_model_hidden(const dsa_model_t *m);

/*
 * A page has room for the hidden state of one token, which is that of the last
 * token when the page is full: the draft layer continues with it.  The first
 * call keeps that of the token at position, the second one returns 1 and sets
 * hidden [hidden size] if the page has that of the token at position.
 */
void dsa_model_keep_hidden(dsa_model_t *m, uint32_t rank, uint32_t page,
    uint32_t position, const float *hidden);
int dsa_model_kept_hidden(const dsa_model_t *m, uint32_t rank, uint32_t page,
    uint32_t position, float *hidden);

/*
 * Computes one step of the draft layer, which predicts the token after next:
 *
 *     z = eh_proj [ enorm(embedding of t_p) | hnorm(h) ]
 *     o = decoder layer (z)
 *     g = norm(o), with the weights of shared_head.norm
 *     logits of token p + 1 = head g
 *
 * The row of token p is at position p and has the cache entry p, so that an
 * entry depends on no token after its own.  The published code numbers rows one
 * lower; only differences of positions matter.  There is no row 0, and no row
 * attends to entry 0.
 *
 * seq as for dsa_model_forward(), with start >= 1, and with hidden:
 *
 *     step 0   of consecutive known tokens.  h of token p is the hidden state
 *              of the model at position p - 1.  The entries before start were
 *              written by earlier calls with step 0.
 *     step 1.. one token of each sequence, in the order of step 0: token p is
 *              the draft of the step before, and h is g of its row, or of the
 *              last row of step 0.  start is one more than there.  With
 *              index_share_for_mtp_iteration, the row attends to what the last
 *              row of step 0 has selected.
 *
 * Later calls with step 0 overwrite the entries of the other steps, whose h
 * were guesses.  The results of the rows with logits are written in order: g to
 * hidden [sum n_logits, hidden size], which may be NULL, and logits [sum
 * n_logits, vocab].  A DSA_ERROR with err is that of dsa_model_forward(), or
 * start is 0.
 */
int dsa_model_draft(dsa_model_t *m, const dsa_rows_t *seq, uint32_t n_seqs,
    uint32_t step, float *hidden, float *logits, dsa_err_t *err);

/*
 * Copies n pages between ranks, in order.  DSA_ERROR with err, and nothing is
 * copied, if a rank or a page is out of range.  With several hosts, all of them
 * call it, and DSA_ERROR may also come from the exchange.
 */
int dsa_model_copy(dsa_model_t *m, const dsa_page_copy_t *copy, uint32_t n,
    dsa_err_t *err);

/*
 * Copies n pages between a rank and host memory.  The rank and the pages are in
 * range, and each move has dsa_model_page_bytes() bytes of memory.
 */
void dsa_model_move(dsa_model_t *m, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n);


#endif /* _DSA_MODEL_H_INCLUDED_ */
