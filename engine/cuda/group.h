
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CUDA_GROUP_H_INCLUDED_
#define _DSA_CUDA_GROUP_H_INCLUDED_


#include "engine/cuda/rank.h"
#include "engine/cuda/team.h"


/*
 * The ranks of a replica: one or several GPUs that compute a model together.
 *
 * Ranks wait for each other on the GPUs, so a call in which the host waits for
 * one GPU could deadlock all of them.  Therefore memory is allocated, host
 * memory is registered, and graphs are captured before the first step.  The
 * project's kernels are loaded when the process first uses CUDA and not at
 * their first launch, because loading a kernel may wait for the GPUs while a
 * kernel on one of them waits for another rank; see warm.c for the kernels of
 * libraries.
 */

/*
 * The time limit of a wait for another rank, in ms; if it is exceeded, the
 * replica ends.  Ranks wait for each other in every layer with experts, and a
 * whole step with the default token_budget takes less than a second.
 */
#define DSA_CUDA_EXCHANGE_MS    20000


typedef struct {
    uint32_t            ranks;          /* of this host */
    uint32_t            net;            /* 1: ranks exchange by NCCL */
    dsa_attention_e     attention;
    uint32_t            pages;          /* of each rank */
    char                fingerprint[DSA_FULL_LEN + 1];  /* full, of the
                                           weights; empty if they are random */
    dsa_cuda_rank_t    *rank[DSA_MAX_GPUS];
    dsa_cuda_team_t    *team;
} dsa_cuda_group_t;


/*
 * Makes CUDA load all kernels of the process when it is first used.
 * dsa_cuda_group_open() calls it.  A program that uses CUDA before it opens a
 * group of several GPUs has to call it first.
 */
void dsa_cuda_load_all(void);

/*
 * Opens all GPUs of conf: checks them, plans and logs their memory, loads the
 * weights, and enables peer access, or connects them by NCCL.  NULL with err.
 * conf is not used afterwards.
 */
dsa_cuda_group_t *dsa_cuda_group_open(const dsa_cuda_conf_t *conf,
    dsa_err_t *err);
void dsa_cuda_group_close(dsa_cuda_group_t *group);     /* NULL is allowed */

/*
 * Replaces the weights at their addresses by those that conf->model has now,
 * and sets the fingerprint; conf is that of the backend, config_hash that of
 * the running checkpoint, drafts 1: with the draft layer.  No step is in
 * flight.  All files are read twice: first they are checked, and then copied.
 * DSA_AGAIN with err: the check failed, and nothing has changed.  DSA_ERROR
 * with err: the copies failed, or the files have changed since the check, so
 * that some weights may be replaced.  reload.c.
 */
int dsa_cuda_group_reload(dsa_cuda_group_t *group,
    const dsa_backend_conf_t *conf, const uint8_t config_hash[32],
    uint32_t drafts, dsa_err_t *err);

/*
 * Returns DSA_ERROR with err if a rank has waited too long for another one, and
 * then the work in its stream has ended with wrong results; or if NCCL has
 * found a fault of another host.
 */
int dsa_cuda_group_check(const dsa_cuda_group_t *group, dsa_err_t *err);

/*
 * For tests and tools: as dsa_model_forward() for one sequence of a request
 * with prompt tokens, with the logits of all tokens (at most max_seqs of
 * them).  logits [n, vocab], host memory.  With "attention data" the sequence
 * is on rank 0.  Waits for the GPUs.  forward.c.
 */
int dsa_cuda_group_forward(dsa_cuda_group_t *group, const dsa_rows_t *seq,
    uint32_t prompt, float *logits, dsa_err_t *err);

/*
 * For tests and tools, with conf->drafts: the hidden states of the tokens of
 * the last dsa_cuda_group_forward(), hidden [n, hidden size] float32, which is
 * host memory.
 */
int dsa_cuda_group_hidden(dsa_cuda_group_t *group, uint32_t n, float *hidden,
    dsa_err_t *err);

/*
 * For tests and tools, with conf->drafts: as dsa_model_draft() for one
 * sequence of at most max_seqs tokens.  hidden [n_logits, hidden size] and
 * logits [n_logits, vocab] are host memory.
 */
int dsa_cuda_group_draft(dsa_cuda_group_t *group, const dsa_rows_t *seq,
    uint32_t step, float *hidden, float *logits, dsa_err_t *err);


#endif /* _DSA_CUDA_GROUP_H_INCLUDED_ */
