
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>

#include "engine/schedule/pages.h"
#include "engine/schedule/pool.h"


dsa_pages_t *
dsa_pages_create(uint32_t n)
{
    uint32_t      i, slots[DSA_STORES];
    dsa_pages_t  *p;

    p = calloc(1, sizeof(dsa_pages_t));

    if (p == NULL) {
        return NULL;
    }

    if (dsa_pool_init(&p->store[DSA_STORE_GPU], n) != DSA_OK) {
        free(p);
        return NULL;
    }

    for (i = 0; i < DSA_STORES; i++) {
        slots[i] = p->store[i].total;
    }

    p->prefix = dsa_prefix_create(slots);

    if (p->prefix == NULL) {
        dsa_pages_destroy(p);
        return NULL;
    }

    return p;
}


void
dsa_pages_destroy(dsa_pages_t *p)
{
    uint32_t  i;

    if (p == NULL) {
        return;
    }

    for (i = 0; i < DSA_STORES; i++) {
        p->store[i].destroy(p->store[i].data);
    }

    dsa_prefix_destroy(p->prefix);
    free(p);
}


uint32_t
dsa_pages_total(const dsa_pages_t *p)
{
    return p->store[DSA_STORE_GPU].total;
}


uint32_t
dsa_pages_free(const dsa_pages_t *p)
{
    const dsa_store_t  *gpu;

    gpu = &p->store[DSA_STORE_GPU];

    return gpu->n_free(gpu->data);
}


uint32_t
dsa_pages_alloc(dsa_pages_t *p)
{
    uint32_t      page;
    dsa_store_t  *gpu;

    gpu = &p->store[DSA_STORE_GPU];
    page = gpu->alloc(gpu->data);

    if (page != DSA_NO_PAGE) {
        dsa_prefix_remove(p->prefix, DSA_STORE_GPU, page);
    }

    return page;
}


uint32_t
dsa_pages_find(dsa_pages_t *p, const dsa_digest_t *digest)
{
    uint32_t      page;
    dsa_store_t  *gpu;

    gpu = &p->store[DSA_STORE_GPU];
    page = dsa_prefix_find(p->prefix, DSA_STORE_GPU, digest);

    if (page != DSA_NO_PAGE) {
        gpu->retain(gpu->data, page);
    }

    return page;
}


uint32_t
dsa_pages_peek(const dsa_pages_t *p, const dsa_digest_t *digest, int *in_use)
{
    uint32_t            page;
    const dsa_store_t  *gpu;

    gpu = &p->store[DSA_STORE_GPU];
    page = dsa_prefix_find(p->prefix, DSA_STORE_GPU, digest);

    if (page != DSA_NO_PAGE) {
        *in_use = gpu->users(gpu->data, page) != 0;
    }

    return page;
}


void
dsa_pages_release(dsa_pages_t *p, uint32_t page)
{
    dsa_store_t  *gpu;

    gpu = &p->store[DSA_STORE_GPU];
    gpu->release(gpu->data, page,
                 dsa_prefix_digest(p->prefix, DSA_STORE_GPU, page) != NULL);
}


void
dsa_pages_publish(dsa_pages_t *p, uint32_t page, const dsa_digest_t *digest)
{
    if (dsa_prefix_digest(p->prefix, DSA_STORE_GPU, page) == NULL
        && dsa_prefix_copy(p->prefix, DSA_STORE_GPU, digest) == DSA_NO_PAGE)
    {
        dsa_prefix_add(p->prefix, DSA_STORE_GPU, digest, page,
                       DSA_COPY_READY);
    }
}


int
dsa_pages_audit(const dsa_pages_t *p, const uint32_t *users, dsa_err_t *err)
{
    const dsa_store_t  *gpu;

    gpu = &p->store[DSA_STORE_GPU];

    if (gpu->audit(gpu->data, users, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_prefix_audit(p->prefix, err);
}
