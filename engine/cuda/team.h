
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CUDA_TEAM_H_INCLUDED_
#define _DSA_CUDA_TEAM_H_INCLUDED_


#include <stdint.h>

#include "base/error.h"


/*
 * A thread for each rank.  The threads enqueue a step of several ranks in
 * parallel, because launching the kernels of a prefill step takes several
 * milliseconds.
 */

typedef struct dsa_cuda_team_s  dsa_cuda_team_t;

/* The work of one rank; DSA_ERROR with err. */
typedef int (*dsa_cuda_work_pt)(void *data, uint32_t rank, dsa_err_t *err);


/* Starts the threads; a team of one rank has none.  NULL with err. */
dsa_cuda_team_t *dsa_cuda_team_create(uint32_t ranks, dsa_err_t *err);

/* Ends the threads.  No work may be running.  NULL is allowed. */
void dsa_cuda_team_destroy(dsa_cuda_team_t *team);

/*
 * Calls work for each rank in the thread of that rank, and waits for all of
 * them.  A team of one rank calls it in the caller's thread.  DSA_ERROR with
 * the err of the rank that failed first.
 */
int dsa_cuda_team_run(dsa_cuda_team_t *team, dsa_cuda_work_pt work,
    void *data, dsa_err_t *err);


#endif /* _DSA_CUDA_TEAM_H_INCLUDED_ */
