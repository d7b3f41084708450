
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_DRAFTER_H_INCLUDED_
#define _DSA_DRAFTER_H_INCLUDED_


#include "engine/cpu/model.h"


/*
 * The drafts of the CPU backend.  After each step of the model, the draft layer
 * computes the rows of the tokens that the step has verified, and then drafts
 * behind the samples.  Drafts are sampled as the model's tokens are: with the
 * same noise, temperature, penalties and biases, and with the masks of their
 * positions, for which next_mask of the sequence is called.
 */

typedef struct dsa_drafter_s  dsa_drafter_t;


/*
 * Opens a drafter for steps of at most max_seqs sequences and max_tokens input
 * tokens; model was opened with drafts and has max_tokens + max_seqs tokens.
 * NULL with err: out of memory.
 */
dsa_drafter_t *dsa_drafter_open(dsa_model_t *model,
    const dsa_model_config_t *config, uint32_t max_seqs, uint32_t max_tokens,
    uint32_t allowed, dsa_err_t *err);
void dsa_drafter_close(dsa_drafter_t *d);           /* NULL is allowed */

/*
 * Sets next and n_next of each sequence of the step that the model has just
 * computed, and whose samples are known.
 */
int dsa_drafter_step(dsa_drafter_t *d, dsa_batch_seq_t *seq, uint32_t n_seqs,
    dsa_err_t *err);


#endif /* _DSA_DRAFTER_H_INCLUDED_ */
