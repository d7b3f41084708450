
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include "engine/backend.h"
#include "engine/cpu/model.h"
#include "engine/null/pages.h"
#include "engine/pages/host.h"
#include "engine/quantize.h"


static int dsa_backend_plan_kv(uint64_t kv_memory, uint64_t page_bytes,
    dsa_err_t *err);


int
dsa_backend_named(dsa_backend_e *kind, const char *name)
{
    size_t  i;

    static const char  *names[] = { "cpu", "cuda", "null" };

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            *kind = (dsa_backend_e) i;
            return DSA_OK;
        }
    }

    return DSA_ERROR;
}


dsa_backend_t *
dsa_backend_open(dsa_backend_e kind, const dsa_backend_conf_t *conf,
    dsa_err_t *err)
{
    switch (kind) {

    case DSA_BACKEND_CPU:
        return dsa_backend_cpu_open(conf, err);

    case DSA_BACKEND_NULL:
        return dsa_backend_null_open(conf, err);

    case DSA_BACKEND_CUDA:
#if (DSA_CUDA)
        return dsa_backend_cuda_open(conf, err);
#else
        break;
#endif
    }

    (void) dsa_error(err, "backend \"cuda\" is not in this program; expected "
                     "\"cpu\" or \"null\", or the program dsa-cuda");

    return NULL;
}


int
dsa_backend_plan(dsa_backend_e kind, const dsa_backend_conf_t *conf,
    dsa_buf_t *text, dsa_err_t *err)
{
    int                 rc;
    uint32_t            drafts;
    uint64_t            page;
    dsa_shard_t         shard;
    dsa_model_config_t  config;

    if (dsa_model_config_read(&config, conf->model, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (conf->quantize && dsa_config_quantize(&config, err) != DSA_OK) {
        return DSA_ERROR;
    }

    rc = DSA_OK;
    page = 0;

    drafts = conf->drafts != 0
             && !(conf->drafts_if_any && config.num_nextn_predict_layers == 0);

    switch (kind) {

    case DSA_BACKEND_CPU:
        rc = dsa_shard_init(&shard, &config, 0,
                            conf->gpus * dsa_backend_hosts(conf),
                            conf->attention, err);

        if (rc == DSA_OK) {
            page = dsa_model_kv_memory(&config, conf->precision, drafts,
                                       DSA_PAGE_TOKENS);
            rc = dsa_backend_plan_kv(conf->kv_memory, page, err);
        }

        break;

    case DSA_BACKEND_NULL:
        /* it has nothing to split */
        page = (uint64_t) DSA_PAGE_TOKENS * DSA_NULL_TOKEN_BYTES
               * config.num_hidden_layers;
        rc = dsa_backend_plan_kv(conf->kv_memory, page, err);
        break;

    case DSA_BACKEND_CUDA:
#if (DSA_CUDA)
        rc = dsa_backend_cuda_plan(conf, text, err);
#endif
        break;
    }

    if (rc != DSA_OK || conf->host_memory == 0) {
        return rc;
    }

    if (conf->random && conf->layers != 0) {
        dsa_model_config_resize(&config, conf->layers);
    }

    switch (kind) {

    case DSA_BACKEND_CPU:
        page = dsa_model_kv_memory(&config, conf->precision, drafts,
                                   DSA_PAGE_TOKENS);
        break;

    case DSA_BACKEND_NULL:
        page = DSA_NULL_PAGE_BYTES;
        break;

    case DSA_BACKEND_CUDA:
#if (DSA_CUDA)
        page = dsa_backend_cuda_page(conf, &config);
#endif
        break;
    }

    return dsa_backend_plan_host(conf->host_memory, page, text, err);
}


static int
dsa_backend_plan_kv(uint64_t kv_memory, uint64_t page_bytes, dsa_err_t *err)
{
    if (kv_memory == 0 || kv_memory >= page_bytes) {
        return DSA_OK;
    }

    return dsa_error(err, "\"kv_memory\" is %llu bytes; expected at least one "
                     "page, %llu bytes", (unsigned long long) kv_memory,
                     (unsigned long long) page_bytes);
}


int
dsa_backend_plan_host(uint64_t host_memory, uint64_t page_bytes,
    dsa_buf_t *text, dsa_err_t *err)
{
    uint64_t  slot, pages;

    slot = (page_bytes + DSA_HOST_ALIGN - 1) / DSA_HOST_ALIGN * DSA_HOST_ALIGN;
    pages = host_memory / slot;

    if (pages == 0) {
        return dsa_error(err, "\"host_memory\" is %llu bytes; expected at "
                         "least one page, %llu bytes",
                         (unsigned long long) host_memory,
                         (unsigned long long) slot);
    }

    dsa_buf_printf(text, "host memory: %.2f GB, %llu pages of %d tokens with "
                   "%.2f MB each, %.2f M tokens of KV\n",
                   (double) host_memory * 1e-9, (unsigned long long) pages,
                   DSA_PAGE_TOKENS, (double) page_bytes * 1e-6,
                   (double) (pages * DSA_PAGE_TOKENS) * 1e-6);

    return DSA_OK;
}
