
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "engine/backend.h"
#include "engine/cpu/model.h"
#include "engine/null/pages.h"
#include "engine/pages/host.h"


/*
 * Change this name when the contents of a page change.  Otherwise pages of the
 * old and the new layout would have the same identity.  What a page has for
 * each layer follows from config.json, which the fingerprint of the weights
 * covers.
 */

#define DSA_BACKEND_LAYOUT  "layout 1"


static int dsa_backend_plan_kv(uint64_t kv_memory, uint64_t page_bytes,
    dsa_err_t *err);
static int dsa_backend_pinned(const dsa_backend_t *b, const void *host);


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
    uint64_t            page;
    dsa_shard_t         shard;
    dsa_model_config_t  config;

    if (dsa_model_config_read(&config, conf->model, err) != DSA_OK) {
        return DSA_ERROR;
    }

    rc = DSA_OK;

    switch (kind) {

    case DSA_BACKEND_CPU:
        rc = dsa_shard_init(&shard, &config, 0, conf->gpus, conf->attention,
                            err);

        if (rc == DSA_OK) {
            page = dsa_model_kv_memory(&config, conf->precision,
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

    page = kind == DSA_BACKEND_NULL
           ? DSA_NULL_PAGE_BYTES
           : dsa_model_kv_memory(&config, conf->precision, DSA_PAGE_TOKENS);

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


void
dsa_backend_fingerprint(dsa_backend_t *b, const char *model,
    dsa_precision_e precision)
{
    int             n;
    char            text[128];
    XXH128_hash_t   h;

    n = snprintf(text, sizeof(text), "%s %s %s", model,
                 precision == DSA_SERVED ? "served" : "exact",
                 DSA_BACKEND_LAYOUT);

    h = XXH3_128bits(text, (size_t) n);

    (void) snprintf(b->fingerprint, sizeof(b->fingerprint), "%016llx%016llx",
                    (unsigned long long) h.high64,
                    (unsigned long long) h.low64);
}


int
dsa_backend_pin(dsa_backend_t *b, void *memory, uint64_t bytes, dsa_err_t *err)
{
    dsa_pin_region_t  *region;

    if (memory == NULL || bytes == 0) {
        return dsa_error(err, "host memory of %llu bytes cannot be pinned; "
                         "expected at least one byte",
                         (unsigned long long) bytes);
    }

    if (b->n_pinned == DSA_PIN_REGIONS) {
        return dsa_error(err, "%d regions of host memory are pinned already; "
                         "no more are possible", DSA_PIN_REGIONS);
    }

    region = &b->pinned[b->n_pinned++];
    region->memory = memory;
    region->bytes = bytes;

    return DSA_OK;
}


int
dsa_backend_check_moves(const dsa_backend_t *b, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n, dsa_err_t *err)
{
    uint32_t  i;

    assert(n != 0);

    for (i = 0; i < n; i++) {
        if (rank >= b->ranks || move[i].page >= b->pages) {
            return dsa_error(err, "page %u of rank %u cannot be moved; "
                             "expected a page below %u and a rank below %u",
                             move[i].page, rank, b->pages, b->ranks);
        }

        if (!dsa_backend_pinned(b, move[i].host)) {
            return dsa_error(err, "page %u of rank %u cannot be moved because "
                             "its %llu bytes of host memory are not pinned",
                             move[i].page, rank,
                             (unsigned long long) b->page_bytes);
        }
    }

    return DSA_OK;
}


/* Returns 1 if the page at host is within one pinned region. */

static int
dsa_backend_pinned(const dsa_backend_t *b, const void *host)
{
    uint32_t                 i;
    uint64_t                 offset;
    const dsa_pin_region_t  *region;

    for (i = 0; i < b->n_pinned; i++) {
        region = &b->pinned[i];

        if ((uintptr_t) host < (uintptr_t) region->memory) {
            continue;
        }

        offset = (uintptr_t) host - (uintptr_t) region->memory;

        if (offset < region->bytes
            && region->bytes - offset >= b->page_bytes)
        {
            return 1;
        }
    }

    return 0;
}
