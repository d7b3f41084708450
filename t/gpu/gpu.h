
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_T_GPU_H_INCLUDED_
#define _DSA_T_GPU_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>

#include "kernels/core/bf16.h"
#include "kernels/core/cuda.h"


/*
 * What tests of CUDA ops share (cmocka).  Every error fails the test.  Device
 * memory is freed by gpu_free_all(), a test's teardown.
 */

/* For ops of a test in its default stream; gpu_setup() initializes it. */
extern dsa_cuda_state_t  gpu_state;

/*
 * Another state for another stream.  Its counters live until the process
 * ends.
 */
void gpu_init(dsa_cuda_state_t *state);

/* Asserts that an op, or a call of the runtime, returned 0. */
#define gpu_ok(call)  gpu_ok_((call), #call, __FILE__, __LINE__)
void gpu_ok_(int rc, const char *what, const char *file, int line);

/*
 * size bytes, every one 0xff, which is a NaN in each format.  So a test sees
 * what an op did not write, or read although it must not.
 */
void *gpu_alloc(size_t size);
void *gpu_upload(const void *p, size_t size);       /* a copy */
void *gpu_upload_bf16(const float *x, size_t n);    /* rounded */
void gpu_poison(void *p, size_t size);

/* These wait for all work in all streams. */
void gpu_download(void *p, const void *device, size_t size);
void gpu_download_bf16(float *x, const void *device, size_t n);
void gpu_sync(void);

/* The setup and the teardown of each test. */
int gpu_setup(void **state);
int gpu_free_all(void **state);


#endif /* _DSA_T_GPU_H_INCLUDED_ */
