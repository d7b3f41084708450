
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>
#include <string.h>

#include "engine/cuda/group.h"
#include "engine/quantize.h"


/*
 * Weights that are replaced.  The new ones get the addresses of the old ones,
 * which the graphs of decode steps have, so that a GPU needs no room for both.
 */

typedef struct {
    dsa_cuda_group_t       *group;
    const dsa_weights_t    *weights;
    dsa_read_list_t         list[DSA_MAX_GPUS];     /* of each rank */
} dsa_reload_t;


static dsa_weights_t *dsa_reload_open(const dsa_backend_conf_t *conf,
    const uint8_t config_hash[32], uint32_t drafts, dsa_err_t *err);
static int dsa_reload_list(void *data, uint32_t rank, dsa_err_t *err);
static int dsa_reload_copy(dsa_reload_t *re, dsa_err_t *err);
static int dsa_reload_finish(void *data, uint32_t rank, dsa_err_t *err);


int
dsa_cuda_group_reload(dsa_cuda_group_t *group, const dsa_backend_conf_t *conf,
    const uint8_t config_hash[32], uint32_t drafts, dsa_err_t *err)
{
    int             rc;
    uint32_t        i;
    dsa_reload_t    re;
    dsa_weights_t  *weights;

    weights = dsa_reload_open(conf, config_hash, drafts, err);

    if (weights == NULL) {
        return DSA_AGAIN;
    }

    memset(&re, 0, sizeof(re));
    re.group = group;
    re.weights = weights;

    rc = dsa_cuda_team_run(group->team, dsa_reload_list, &re, err);
    rc = rc == DSA_OK ? dsa_reload_copy(&re, err) : DSA_AGAIN;

    for (i = 0; i < group->ranks; i++) {
        free(re.list[i].task);
    }

    dsa_weights_close(weights);

    return rc;
}


/* Opens a checkpoint that may replace the running one; NULL with err. */

static dsa_weights_t *
dsa_reload_open(const dsa_backend_conf_t *conf, const uint8_t config_hash[32],
    uint32_t drafts, dsa_err_t *err)
{
    int             rc;
    char           *path;
    dsa_weights_t  *weights;

    path = dsa_backend_resolve(conf->model, err);

    if (path == NULL) {
        return NULL;
    }

    weights = dsa_weights_open_unread(path, err);
    rc = DSA_ERROR;

    if (weights != NULL) {
        rc = dsa_backend_replaces(path, config_hash, weights->config_hash,
                                  drafts, weights->draft.fault, err);
    }

    if (rc == DSA_OK && conf->quantize) {
        rc = dsa_weights_quantize(weights, err);
    }

    if (rc != DSA_OK) {
        dsa_weights_close(weights);
        weights = NULL;
    }

    free(path);

    return weights;
}


static int
dsa_reload_list(void *data, uint32_t rank, dsa_err_t *err)
{
    int               rc;
    dsa_reload_t     *re;
    dsa_cuda_rank_t  *r;

    re = data;
    r = re->group->rank[rank];
    rc = dsa_cuda_rank_attach(r);

    if (rc != 0) {
        return dsa_error(err, "GPU %d: %s", r->device, dsa_cuda_error(rc));
    }

    return dsa_cuda_weights_list(&r->weights, &r->config, &r->shard,
                                 re->weights, &re->list[rank], err);
}


/* Returns DSA_AGAIN until the first byte is copied. */

static int
dsa_reload_copy(dsa_reload_t *re, dsa_err_t *err)
{
    char               checked[DSA_FULL_LEN + 1];
    dsa_cuda_group_t  *group;

    group = re->group;

    if (dsa_cuda_read_check(re->weights, re->list, group->ranks, checked, err)
        != DSA_OK)
    {
        return DSA_AGAIN;
    }

    if (dsa_cuda_read(re->weights, re->list, group->ranks, group->fingerprint,
                      err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (strcmp(checked, group->fingerprint) != 0) {
        return dsa_error(err, "the files of the weights have changed while "
                         "they were read; expected a checkpoint that is "
                         "complete before the engine loads it");
    }

    return dsa_cuda_team_run(group->team, dsa_reload_finish, re, err);
}


static int
dsa_reload_finish(void *data, uint32_t rank, dsa_err_t *err)
{
    dsa_reload_t     *re;
    dsa_cuda_rank_t  *r;

    re = data;
    r = re->group->rank[rank];

    return dsa_cuda_weights_finish(&r->weights, &r->config, r->stream, err);
}
