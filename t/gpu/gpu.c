
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "t/gpu/gpu.h"


#define GPU_MAX_BLOCKS  1024


dsa_cuda_state_t    gpu_state;

static void        *gpu_block[GPU_MAX_BLOCKS];
static size_t       gpu_blocks;


void
gpu_ok_(int rc, const char *what, const char *file, int line)
{
    if (rc != 0) {
        print_error("%s: %s\n", what, dsa_cuda_error(rc));
        _fail(file, line);
    }
}


void *
gpu_alloc(size_t size)
{
    void  *p;

    assert_true(gpu_blocks < GPU_MAX_BLOCKS);
    gpu_ok(cudaMalloc(&p, size > 0 ? size : 1));

    gpu_block[gpu_blocks++] = p;
    gpu_poison(p, size);

    return p;
}


void *
gpu_upload(const void *p, size_t size)
{
    void  *device;

    device = gpu_alloc(size);
    gpu_ok(cudaMemcpy(device, p, size, cudaMemcpyHostToDevice));

    return device;
}


void *
gpu_upload_bf16(const float *x, size_t n)
{
    void      *device;
    size_t     i;
    uint16_t  *v;

    v = malloc(n * sizeof(uint16_t) + 1);
    assert_non_null(v);

    for (i = 0; i < n; i++) {
        v[i] = dsa_bf16_encode(x[i]);
    }

    device = gpu_upload(v, n * sizeof(uint16_t));
    free(v);

    return device;
}


void
gpu_poison(void *p, size_t size)
{
    gpu_ok(cudaMemset(p, 0xff, size));
}


void
gpu_download(void *p, const void *device, size_t size)
{
    gpu_sync();
    gpu_ok(cudaMemcpy(p, device, size, cudaMemcpyDeviceToHost));
}


void
gpu_download_bf16(float *x, const void *device, size_t n)
{
    size_t     i;
    uint16_t  *v;

    v = malloc(n * sizeof(uint16_t) + 1);
    assert_non_null(v);

    gpu_download(v, device, n * sizeof(uint16_t));

    for (i = 0; i < n; i++) {
        x[i] = dsa_bf16_decode(v[i]);
    }

    free(v);
}


void
gpu_sync(void)
{
    gpu_ok(cudaDeviceSynchronize());
}


void
gpu_init(dsa_cuda_state_t *state)
{
    void  *counters;

    /* not a block of gpu_free_all(), which a test calls between its cases */

    gpu_ok(cudaMalloc(&counters, sizeof(dsa_cuda_counters_t)));
    gpu_ok(dsa_cuda_init(state, counters));
}


int
gpu_setup(void **state)
{
    gpu_blocks = 0;
    gpu_init(&gpu_state);

    return 0;
}


int
gpu_free_all(void **state)
{
    int  rc;

    rc = cudaDeviceSynchronize();

    while (gpu_blocks > 0) {
        if (cudaFree(gpu_block[--gpu_blocks]) != cudaSuccess) {
            rc = -1;
        }
    }

    return rc;
}
