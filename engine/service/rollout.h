
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ROLLOUT_H_INCLUDED_
#define _DSA_ROLLOUT_H_INCLUDED_


#include "base/buf.h"
#include "engine/checkpoint/config.h"
#include "engine/link_rollout.h"
#include "engine/schedule/request.h"


/*
 * Writes the rows of ROLLOUT, which engine/link_rollout.h describes.  Each
 * function appends to rows, and sets rows->failed if memory is short.  version
 * is that of the weights.
 */

/*
 * Returns 1 if the longest rows of this model fit a record: a set of ids of
 * its vocabulary, and the experts of a token.
 */
int dsa_rollout_fits(const dsa_model_config_t *config);

/* Appends the ids of n prompt tokens from position 0 on. */
void dsa_rollout_prompt(dsa_buf_t *rows, const uint32_t *ids, uint32_t n);

/*
 * Appends the experts [n][layers][k] of the tokens from position on; each is
 * below n_experts.
 */
void dsa_rollout_experts(dsa_buf_t *rows, uint32_t version,
    uint32_t position, const uint16_t *experts, uint32_t n, uint32_t layers,
    uint32_t k, uint32_t n_experts);

/*
 * Appends the experts of the inputs of a step, without those before position
 * first, which were reported.  Returns the next position to report.
 */
uint32_t dsa_rollout_step(dsa_buf_t *rows, uint32_t version, uint32_t first,
    const dsa_sched_rollout_t *step, const dsa_model_config_t *config);

/*
 * Appends a sample.  kept: NULL, or a bitmap of words words with the
 * draw->n_kept ids that it was drawn from.
 */
void dsa_rollout_sample(dsa_buf_t *rows, uint32_t version,
    uint32_t position, uint32_t id, const dsa_draw_t *draw,
    const uint32_t *kept, uint32_t words);


#endif /* _DSA_ROLLOUT_H_INCLUDED_ */
