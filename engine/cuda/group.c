
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/cuda/group.h"
#include "engine/cuda/nccl.h"
#include "engine/cuda/preview.h"


typedef struct {
    dsa_cuda_group_t       *group;
    const dsa_cuda_conf_t  *conf;
    dsa_read_list_t         list[DSA_MAX_GPUS];     /* of each rank */
} dsa_group_open_t;


static int dsa_group_net(dsa_cuda_group_t *group,
    const dsa_cuda_conf_t *conf, dsa_err_t *err);
static int dsa_group_drafts(const dsa_cuda_conf_t *conf, dsa_err_t *err);
static int dsa_group_open_rank(void *data, uint32_t rank, dsa_err_t *err);
static int dsa_group_place_rank(void *data, uint32_t rank, dsa_err_t *err);
static int dsa_group_finish_rank(void *data, uint32_t rank, dsa_err_t *err);
static int dsa_group_load(dsa_group_open_t *open, dsa_err_t *err);
static int dsa_group_sync_rank(void *data, uint32_t rank, dsa_err_t *err);
static int dsa_group_close_rank(void *data, uint32_t rank, dsa_err_t *err);
static int dsa_group_plan(dsa_cuda_group_t *group,
    const dsa_cuda_conf_t *conf, dsa_err_t *err);
static int dsa_group_access(dsa_cuda_conf_t *conf, dsa_err_t *err);
static int dsa_group_linked(int from, int to);
static int dsa_group_unlinked(dsa_cuda_conf_t *conf, int from, int to,
    dsa_err_t *err);
static int dsa_group_pair(int from, int to, dsa_err_t *err);
static void dsa_group_connect(dsa_cuda_group_t *group);
static int dsa_group_distinct(const dsa_cuda_group_t *group);


/* Sets CUDA_MODULE_LOADING, which the driver reads once per process. */

void
dsa_cuda_load_all(void)
{
    (void) setenv("CUDA_MODULE_LOADING", "EAGER", 1);
}


dsa_cuda_group_t *
dsa_cuda_group_open(const dsa_cuda_conf_t *conf, dsa_err_t *err)
{
    uint32_t           i;
    dsa_cuda_conf_t    own;
    dsa_cuda_group_t  *group;
    dsa_group_open_t   open;

    group = calloc(1, sizeof(dsa_cuda_group_t));

    if (group == NULL) {
        (void) dsa_error(err, "no memory for %u GPUs", conf->gpus);
        return NULL;
    }

    group->ranks = conf->gpus;
    group->attention = conf->attention;
    own = *conf;

    memset(&open, 0, sizeof(open));
    open.group = group;
    open.conf = &own;

    if (conf->gpus > 1 || conf->hosts.n > 1) {
        dsa_cuda_load_all();
    }

    /*
     * Check this first, because the result does not depend on the GPUs of this
     * machine.
     */

    if (dsa_cuda_check_config(&conf->config, err) != DSA_OK) {
        dsa_cuda_group_close(group);
        return NULL;
    }

    if (dsa_group_drafts(conf, err) != DSA_OK) {
        dsa_cuda_group_close(group);
        return NULL;
    }

    group->team = dsa_cuda_team_create(conf->gpus, err);

    if (group->team == NULL
        || dsa_group_access(&own, err) != DSA_OK
        || dsa_cuda_team_run(group->team, dsa_group_open_rank, &open, err)
           != DSA_OK
        || dsa_group_net(group, &own, err) != DSA_OK
        || dsa_group_plan(group, &own, err) != DSA_OK
        || dsa_group_load(&open, err) != DSA_OK)
    {
        dsa_cuda_group_close(group);
        return NULL;
    }

    if (group->net) {
        for (i = 0; i < group->ranks; i++) {
            dsa_cuda_nccl_prepare(group->rank[i]);
        }

    } else if (group->ranks > 1) {
        dsa_group_connect(group);
    }

    return group;
}


void
dsa_cuda_group_close(dsa_cuda_group_t *group)
{
    dsa_err_t  err;

    if (group == NULL) {
        return;
    }

    if (group->team != NULL) {

        /*
         * Wait for all ranks, because kernels of a rank store to the memory of
         * others, which is freed below.
         */

        (void) dsa_cuda_team_run(group->team, dsa_group_sync_rank, group,
                                 &err);
        (void) dsa_cuda_team_run(group->team, dsa_group_close_rank, group,
                                 &err);
        dsa_cuda_team_destroy(group->team);
    }

    free(group);
}


/*
 * Connects all ranks by NCCL, if need be: before the memory for pages is
 * computed, because NCCL allocates memory, and before the weights are read, so
 * that hosts that do not reach each other fail early.
 */

static int
dsa_group_net(dsa_cuda_group_t *group, const dsa_cuda_conf_t *conf,
    dsa_err_t *err)
{
    group->net = conf->net;

    if (!group->net) {
        return DSA_OK;
    }

    return dsa_cuda_nccl_connect(group->rank, group->ranks, &conf->hosts, err);
}


/* Checks that the draft layer can be loaded, if it is used. */

static int
dsa_group_drafts(const dsa_cuda_conf_t *conf, dsa_err_t *err)
{
    if (!conf->drafts) {
        return DSA_OK;
    }

    if (conf->weights != NULL && conf->weights->draft.fault[0] != '\0') {
        return dsa_error(err, "the checkpoint has no usable draft layer: %s",
                         conf->weights->draft.fault);
    }

    return DSA_OK;
}


static int
dsa_group_open_rank(void *data, uint32_t rank, dsa_err_t *err)
{
    dsa_group_open_t  *open;

    open = data;
    open->group->rank[rank] = dsa_cuda_rank_open(open->conf, rank, err);

    return open->group->rank[rank] != NULL ? DSA_OK : DSA_ERROR;
}


static int
dsa_group_place_rank(void *data, uint32_t rank, dsa_err_t *err)
{
    dsa_group_open_t  *open;

    open = data;

    return dsa_cuda_rank_place(open->group->rank[rank], open->group->pages,
                               open->conf->weights, &open->list[rank], err);
}


static int
dsa_group_finish_rank(void *data, uint32_t rank, dsa_err_t *err)
{
    dsa_group_open_t  *open;

    open = data;

    if (dsa_cuda_rank_finish(open->group->rank[rank], err) != DSA_OK) {
        return DSA_ERROR;
    }

    return open->group->ranks > 1 || open->group->net
           ? dsa_cuda_rank_warm(open->group->rank[rank], err) : DSA_OK;
}


/*
 * Loads the weights: each rank allocates its memory, all files are read once,
 * and each rank finishes its weights.
 */

static int
dsa_group_load(dsa_group_open_t *open, dsa_err_t *err)
{
    int                rc;
    uint32_t           i;
    dsa_cuda_group_t  *group;

    group = open->group;

    rc = dsa_cuda_team_run(group->team, dsa_group_place_rank, open, err);

    if (rc == DSA_OK && open->conf->weights != NULL) {
        rc = dsa_cuda_read(open->conf->weights, open->list, group->ranks,
                           group->fingerprint, err);
    }

    for (i = 0; i < group->ranks; i++) {
        free(open->list[i].task);
    }

    if (rc == DSA_OK) {
        rc = dsa_cuda_team_run(group->team, dsa_group_finish_rank, open, err);
    }

    return rc;
}


static int
dsa_group_sync_rank(void *data, uint32_t rank, dsa_err_t *err)
{
    dsa_cuda_rank_t   *r;
    dsa_cuda_group_t  *group;

    group = data;
    r = group->rank[rank];

    if (r != NULL && r->stream != NULL) {
        (void) dsa_cuda_rank_attach(r);
        (void) cudaStreamSynchronize(r->stream);
    }

    return DSA_OK;
}


static int
dsa_group_close_rank(void *data, uint32_t rank, dsa_err_t *err)
{
    dsa_cuda_group_t  *group;

    group = data;

    if (group->rank[rank] != NULL) {
        dsa_cuda_nccl_close(group->rank[rank]);
    }

    dsa_cuda_rank_close(group->rank[rank]);

    return DSA_OK;
}


/* Sets the number of pages of each GPU from the free memory of all GPUs. */

static int
dsa_group_plan(dsa_cuda_group_t *group, const dsa_cuda_conf_t *conf,
    dsa_err_t *err)
{
    int               rc;
    size_t            all, left;
    uint32_t          r;
    dsa_plan_t        plan;
    dsa_cuda_rank_t  *rank;

    if (dsa_cuda_plan(&plan, conf, err) != DSA_OK) {
        return DSA_ERROR;
    }

    plan.free = 1;

    for (r = 0; r < group->ranks; r++) {
        rank = group->rank[r];

        rc = dsa_cuda_rank_attach(rank);
        rc = rc != 0 ? rc : (int) cudaMemGetInfo(&left, &all);

        if (rc != 0) {
            return dsa_error(err, "GPU %d: its free memory is not known: %s",
                             rank->device, dsa_cuda_error(rc));
        }

        plan.gpu[r].memory = left;
        dsa_cuda_rank_needs(rank, &plan.gpu[r].needs);
    }

    if (dsa_cuda_plan_pages(&plan, conf, err) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_plan_log(&plan);
    group->pages = plan.pages;

    return DSA_OK;
}


/*
 * Enables the access of each GPU to the memory of all others.  Sets conf->net
 * if there is no such access, because GPUs are on several hosts or have no
 * NVLink.
 */

static int
dsa_group_access(dsa_cuda_conf_t *conf, dsa_err_t *err)
{
    int       from, to;
    uint32_t  i, j;

    for (i = 0; i < conf->gpus; i++) {
        if (dsa_cuda_check_device(conf->gpu[i], err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    conf->net = conf->hosts.n > 1;

    for (i = 0; i < conf->gpus * conf->gpus && !conf->net; i++) {
        from = (int) conf->gpu[i / conf->gpus];
        to = (int) conf->gpu[i % conf->gpus];

        if (from != to && !dsa_group_linked(from, to)) {
            return dsa_group_unlinked(conf, from, to, err);
        }
    }

    for (i = 0; i < conf->gpus && !conf->net; i++) {
        for (j = 0; j < conf->gpus; j++) {
            if (conf->gpu[i] != conf->gpu[j]
                && dsa_group_pair((int) conf->gpu[i], (int) conf->gpu[j], err)
                   != DSA_OK)
            {
                return DSA_ERROR;
            }
        }
    }

    return DSA_OK;
}


/*
 * Returns 1 if a GPU has an NVLink to another one.  The peer kernels need it,
 * because they use atomic additions in the memory of the other GPU.
 */

static int
dsa_group_linked(int from, int to)
{
    int  can;

    can = 0;

    return cudaDeviceGetP2PAttribute(&can, cudaDevP2PAttrNativeAtomicSupported,
                                     from, to) == cudaSuccess
           && can;
}


/* Without NVLink, NCCL can replace the peer kernels of "attention data". */

static int
dsa_group_unlinked(dsa_cuda_conf_t *conf, int from, int to, dsa_err_t *err)
{
    if (conf->attention != DSA_ATTENTION_DATA || conf->drafts) {
        return dsa_error(err, "GPU %d has no NVLink to GPU %d; expected GPUs "
                         "that are all linked (\"nvidia-smi topo -m\" shows "
                         "the links), or \"attention data\" without drafts, "
                         "for which NCCL can be used", from, to);
    }

    dsa_log(DSA_LOG_NOTICE, "GPU %d has no NVLink to GPU %d: the GPUs exchange "
            "by NCCL, which is slower", from, to);

    conf->net = 1;

    return DSA_OK;
}


static int
dsa_group_pair(int from, int to, dsa_err_t *err)
{
    int  rc;

    rc = cudaSetDevice(from);
    rc = rc != 0 ? rc : (int) cudaDeviceEnablePeerAccess(to, 0);

    /* an earlier group of this process has enabled it */

    if (rc == (int) cudaErrorPeerAccessAlreadyEnabled) {
        (void) cudaGetLastError();
        rc = 0;
    }

    if (rc != 0) {
        return dsa_error(err, "GPU %d: access to GPU %d: %s", from, to,
                         dsa_cuda_error(rc));
    }

    return DSA_OK;
}


/* Sets the addresses of the shared memory of all ranks in each rank. */

static void
dsa_group_connect(dsa_cuda_group_t *group)
{
    uint32_t                  r, q;
    dsa_cuda_peers_t         *p;
    const dsa_cuda_rank_t    *from;

    for (r = 0; r < group->ranks; r++) {
        p = &group->rank[r]->peers;

        p->exchange.rank = r;
        p->exchange.ranks = group->ranks;
        p->exchange.processors = group->rank[r]->state.processors;
        p->exchange.exclusive = (uint32_t) dsa_group_distinct(group);
        p->exchange.timeout_ns = DSA_CUDA_EXCHANGE_MS * 1000000ULL;
        p->exchange.fault = group->rank[r]->fault;

        for (q = 0; q < group->ranks; q++) {
            from = group->rank[q];

            p->exchange.state[q] = from->shared.state;
            p->tokens.x[q] = from->shared.x;
            p->tokens.expert[q] = from->shared.expert;
            p->tokens.weight[q] = from->shared.weight;
            p->part[q] = from->shared.part;
            p->reduce[q] = from->shared.reduce;
            p->vocab[q] = from->work.vocab;
            p->page[q] = from->page;
        }
    }
}


/* Returns 1 if each rank has a GPU of its own. */

static int
dsa_group_distinct(const dsa_cuda_group_t *group)
{
    uint32_t  i, j;

    for (i = 0; i < group->ranks; i++) {
        for (j = 0; j < i; j++) {
            if (group->rank[i]->device == group->rank[j]->device) {
                return 0;
            }
        }
    }

    return 1;
}


int
dsa_cuda_group_check(const dsa_cuda_group_t *group, dsa_err_t *err)
{
    uint32_t                     r;
    const dsa_exchange_fault_t  *fault;

    for (r = 0; group->net && r < group->ranks; r++) {
        if (dsa_cuda_nccl_check(group->rank[r], err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    for (r = 0; group->ranks > 1 && !group->net && r < group->ranks; r++) {
        fault = group->rank[r]->fault;

        if (fault->failed) {
            return dsa_error(err, "GPU %d has received no data from GPU %d "
                             "for %u ms (exchange %u)", group->rank[r]->device,
                             group->rank[fault->missing]->device,
                             DSA_CUDA_EXCHANGE_MS, fault->number);
        }
    }

    return DSA_OK;
}
