
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <string.h>

#include "engine/cuda/nccl.h"
#include "engine/cuda/preview.h"
#include "engine/quantize.h"
#include "kernels/attention/cache.h"


static int dsa_preview_needs(void *data, dsa_plan_needs_t *needs,
    uint32_t gpus, dsa_attention_e attention, dsa_err_t *err);
static int dsa_preview_memory(dsa_plan_t *plan, dsa_err_t *err);


int
dsa_backend_cuda_plan(const dsa_backend_conf_t *from, dsa_buf_t *text,
    dsa_err_t *err)
{
    int                 rc, n;
    uint32_t            i;
    dsa_plan_t          plan;
    dsa_cuda_conf_t     conf;
    dsa_model_config_t  config;

    if (dsa_model_config_read(&config, from->model, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (from->quantize && dsa_config_quantize(&config, err) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_cuda_conf_init(&conf, from, &config);

    if (dsa_cuda_plan(&plan, &conf, err) != DSA_OK) {
        return DSA_ERROR;
    }

    n = 0;
    rc = 0;

    if (from->gpu_memory != 0) {
        plan.same = 1;

        for (i = 0; i < plan.gpus; i++) {
            plan.gpu[i].memory = from->gpu_memory;
        }

    } else {
        rc = cudaGetDeviceCount(&n);

        if (rc == 0 && n != 0 && dsa_preview_memory(&plan, err) != DSA_OK) {
            return DSA_ERROR;
        }

        if (n != 0 && from->hosts.n > 1 && dsa_cuda_nccl_load(err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    if (dsa_cuda_plan_pages(&plan, &conf, err) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_plan_describe(&plan, text);

    if (from->gpu_memory == 0 && (rc != 0 || n == 0)) {
        dsa_buf_printf(text, "no GPU was found (%s): whether the plan fits "
                       "was not checked\n",
                       rc != 0 ? dsa_cuda_error(rc)
                               : "this machine has none");
    }

    return DSA_OK;
}


uint64_t
dsa_backend_cuda_page(const dsa_backend_conf_t *from,
    const dsa_model_config_t *config)
{
    dsa_cache_t  cache;

    dsa_cuda_cache_layout(&cache, config,
                          dsa_cuda_conf_drafts(from, config) != 0,
                          dsa_kv_bf16(DSA_BACKEND_CUDA, from->kv, config));

    return cache.page;
}


uint32_t
dsa_cuda_conf_drafts(const dsa_backend_conf_t *from,
    const dsa_model_config_t *config)
{
    return from->drafts_if_any && config->num_nextn_predict_layers == 0
           ? 0 : from->drafts;
}


void
dsa_cuda_conf_init(dsa_cuda_conf_t *conf, const dsa_backend_conf_t *from,
    const dsa_model_config_t *config)
{
    memset(conf, 0, sizeof(dsa_cuda_conf_t));

    conf->config = *config;
    conf->gpus = from->gpus;
    conf->hosts = from->hosts;
    conf->attention = from->attention;
    conf->context = from->context;
    conf->kv_memory = from->kv_memory;
    conf->max_tokens = dsa_rank_tokens(from->max_tokens,
                                       from->gpus * dsa_backend_hosts(from),
                                       from->attention);
    conf->max_seqs = from->max_seqs;
    conf->allowed = from->allowed;
    conf->outputs = dsa_cuda_conf_drafts(from, config) + 1;
    conf->drafts = conf->outputs > 1;
    conf->kv_bf16 = dsa_kv_bf16(DSA_BACKEND_CUDA, from->kv, config);
    memcpy(conf->gpu, from->gpu, sizeof(conf->gpu));
}


int
dsa_cuda_plan(dsa_plan_t *plan, const dsa_cuda_conf_t *conf, dsa_err_t *err)
{
    uint32_t                   i;
    dsa_cache_t                cache;
    dsa_plan_needs_t           needs;
    const dsa_model_config_t  *config;

    if (dsa_cuda_needs(&needs, conf, err) != DSA_OK) {
        return DSA_ERROR;
    }

    config = &conf->config;

    dsa_cuda_cache_layout(&cache, config, conf->drafts, conf->kv_bf16);

    memset(plan, 0, sizeof(dsa_plan_t));

    plan->gpus = conf->gpus;
    plan->attention = conf->attention;
    plan->rank_tokens = conf->max_tokens;
    plan->max_seqs = conf->max_seqs;
    plan->context = config->max_position_embeddings;
    plan->page = cache.page;
    plan->kv_memory = conf->kv_memory;

    if (conf->context != 0 && conf->context < plan->context) {
        plan->context = conf->context;
    }

    for (i = 0; i < conf->gpus; i++) {
        plan->gpu[i].number = conf->gpu[i];
        plan->gpu[i].needs = needs;
    }

    return DSA_OK;
}


int
dsa_cuda_plan_pages(dsa_plan_t *plan, const dsa_cuda_conf_t *conf,
    dsa_err_t *err)
{
    dsa_cuda_conf_t  from;

    if (dsa_plan_pages(plan, err) == DSA_OK) {
        return DSA_OK;
    }

    from = *conf;
    dsa_plan_alternatives(plan, dsa_preview_needs, &from, err);

    return DSA_ERROR;
}


/* Computes the needs with another number of GPUs and the same steps. */

static int
dsa_preview_needs(void *data, dsa_plan_needs_t *needs, uint32_t gpus,
    dsa_attention_e attention, dsa_err_t *err)
{
    uint32_t         tokens, hosts;
    dsa_cuda_conf_t  other;

    other = *(dsa_cuda_conf_t *) data;

    hosts = other.hosts.n > 1 ? other.hosts.n : 1;
    tokens = other.attention == DSA_ATTENTION_DATA
             ? other.max_tokens * other.gpus * hosts : other.max_tokens;

    other.gpus = gpus;
    other.attention = attention;
    other.max_tokens = dsa_rank_tokens(tokens, gpus * hosts, attention);

    if (other.max_tokens < other.max_seqs) {
        other.max_tokens = other.max_seqs;
    }

    return dsa_cuda_needs(needs, &other, err);
}


/*
 * Uses all memory of the GPUs, not the free memory, because a new
 * configuration is often checked while the engine runs with the old one.
 */

static int
dsa_preview_memory(dsa_plan_t *plan, dsa_err_t *err)
{
    int                    rc;
    uint32_t               i;
    struct cudaDeviceProp  prop;

    for (i = 0; i < plan->gpus; i++) {
        if (dsa_cuda_check_device(plan->gpu[i].number, err) != DSA_OK) {
            return DSA_ERROR;
        }

        rc = cudaGetDeviceProperties(&prop, (int) plan->gpu[i].number);

        if (rc != 0) {
            return dsa_error(err, "GPU %u: %s", plan->gpu[i].number,
                             dsa_cuda_error(rc));
        }

        plan->gpu[i].memory = prop.totalGlobalMem;
    }

    return DSA_OK;
}
