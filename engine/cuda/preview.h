
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PREVIEW_H_INCLUDED_
#define _DSA_PREVIEW_H_INCLUDED_


#include "engine/backend.h"
#include "engine/cuda/plan.h"
#include "engine/cuda/rank.h"


/*
 * Makes the plan of GPU memory from a configuration: for "dsa-engine -t",
 * without opening a GPU, and for the start of a replica.
 */


/* Returns the most drafts, without the weights: 0 without a draft layer. */
uint32_t dsa_cuda_conf_drafts(const dsa_backend_conf_t *from,
    const dsa_model_config_t *config);

/* Fills conf except its weights. */
void dsa_cuda_conf_init(dsa_cuda_conf_t *conf, const dsa_backend_conf_t *from,
    const dsa_model_config_t *config);

/*
 * Fills plan except the GPUs' memory, free and pages.  DSA_ERROR as
 * dsa_cuda_needs().
 */
int dsa_cuda_plan(dsa_plan_t *plan, const dsa_cuda_conf_t *conf,
    dsa_err_t *err);

/*
 * Calls dsa_plan_pages().  On DSA_ERROR, err also has the numbers of GPUs that
 * would be enough.
 */
int dsa_cuda_plan_pages(dsa_plan_t *plan, const dsa_cuda_conf_t *conf,
    dsa_err_t *err);


#endif /* _DSA_PREVIEW_H_INCLUDED_ */
