
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "bench/hosts.h"
#include "engine/cuda/group.h"
#include "engine/cuda/nccl.h"
#include "engine/cuda/preview.h"


/*
 * The exchange between the GPUs of several hosts as the engine does it, in the
 * memory of opened ranks: engine/cuda/nccl.c.  Their model has random weights
 * and one layer with experts.
 */

struct dsa_bench_gpus_s {
    dsa_cuda_group_t   *group;
    uint32_t            tokens;         /* of each rank in this exchange */
    int                 sums;
};


static int dsa_bench_gpus_rank(void *data, uint32_t rank, dsa_err_t *err);


dsa_bench_gpus_t *
dsa_bench_gpus_open(const dsa_backend_conf_t *conf,
    const dsa_model_config_t *config, dsa_err_t *err)
{
    dsa_cuda_conf_t      own;
    dsa_bench_gpus_t    *gpus;
    dsa_model_config_t   small;

    gpus = calloc(1, sizeof(dsa_bench_gpus_t));

    if (gpus == NULL) {
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    small = *config;
    dsa_model_config_resize(&small, config->first_k_dense_replace + 1);
    dsa_cuda_conf_init(&own, conf, &small);

    gpus->group = dsa_cuda_group_open(&own, err);

    if (gpus->group == NULL) {
        free(gpus);
        return NULL;
    }

    return gpus;
}


void
dsa_bench_gpus_close(dsa_bench_gpus_t *gpus)
{
    if (gpus != NULL) {
        dsa_cuda_group_close(gpus->group);
        free(gpus);
    }
}


int
dsa_bench_gpus_exchange(dsa_bench_gpus_t *gpus, uint32_t tokens, int sums,
    dsa_err_t *err)
{
    gpus->tokens = tokens;
    gpus->sums = sums;

    return dsa_cuda_team_run(gpus->group->team, dsa_bench_gpus_rank, gpus,
                             err);
}


/* In the thread of a rank, because NCCL may wait for the others in a call. */

static int
dsa_bench_gpus_rank(void *data, uint32_t rank, dsa_err_t *err)
{
    int                rc;
    dsa_cuda_rank_t   *r;
    dsa_bench_gpus_t  *gpus = data;

    r = gpus->group->rank[rank];
    rc = dsa_cuda_rank_attach(r);

    if (rc == 0) {
        dsa_cuda_nccl_begin(r, gpus->tokens);

        rc = gpus->sums ? dsa_cuda_nccl_sums(r, gpus->tokens)
             : dsa_cuda_nccl_tokens(r, gpus->tokens, r->config.hidden_size);
    }

    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(r->stream);

    if (rc != 0) {
        return dsa_error(err, "GPU %u: the exchange: %s", rank,
                         dsa_cuda_error(rc));
    }

    return DSA_OK;
}
