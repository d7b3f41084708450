
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Copies between the GPU and host memory by a kernel.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "kernels/row/copy.h"
#include "t/gpu/gpu.h"
#include "t/unit/numbers.h"


/*
 * Parts of several sizes, from host memory to the GPU and back; the memory
 * between the rows stays as it was.
 */

static void
copy_case(const dsa_copy_t *size, uint32_t n)
{
    size_t      k, bytes;
    uint32_t    i, *host[DSA_COPY_PARTS], *back[DSA_COPY_PARTS];
    dsa_copy_t  in[DSA_COPY_PARTS], out[DSA_COPY_PARTS];

    for (i = 0; i < n; i++) {
        bytes = (size_t) size[i].pitch * size[i].rows * sizeof(uint32_t);

        gpu_ok(cudaMallocHost((void **) &host[i], bytes));
        gpu_ok(cudaMallocHost((void **) &back[i], bytes));
        memset(back[i], 0xff, bytes);

        for (k = 0; k < bytes / sizeof(uint32_t); k++) {
            host[i][k] = dsa_t_random(1U << 31);
        }

        in[i] = size[i];
        in[i].from = host[i];
        in[i].to = gpu_alloc(bytes);
        out[i] = size[i];
        out[i].from = in[i].to;
        out[i].to = back[i];
        out[i].width = size[i].pitch;
    }

    gpu_ok(dsa_cuda_copy(in, n, NULL));
    gpu_ok(dsa_cuda_copy(out, n, NULL));
    gpu_sync();

    for (i = 0; i < n; i++) {
        for (k = 0; k < (size_t) size[i].pitch * size[i].rows; k++) {
            assert_int_equal(back[i][k], k % size[i].pitch < size[i].width
                                         ? host[i][k] : 0xffffffff);
        }

        gpu_ok(cudaFreeHost(host[i]));
        gpu_ok(cudaFreeHost(back[i]));
    }
}


static void
test_copy(void **state)
{
    dsa_copy_t  bad;

    static const dsa_copy_t  one[] = { { NULL, NULL, 1, 1, 1 } };
    static const dsa_copy_t  large[] = { { NULL, NULL, 3000001, 3000001, 1 } };
    static const dsa_copy_t  four[] = {
        { NULL, NULL, 49152, 49152, 1 },
        { NULL, NULL, 2560, 7, 128 },
        { NULL, NULL, 641, 641, 33 },
        { NULL, NULL, 8192, 8191, 2 }
    };

    copy_case(one, 1);
    copy_case(large, 1);
    copy_case(four, 2);
    copy_case(four, 4);

    bad = one[0];
    assert_int_equal(dsa_cuda_copy(&bad, 0, NULL), cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_copy(&bad, DSA_COPY_PARTS + 1, NULL),
                     cudaErrorInvalidValue);
    bad.width = 2;
    assert_int_equal(dsa_cuda_copy(&bad, 1, NULL), cudaErrorInvalidValue);
    bad.width = 1;
    bad.from = (const char *) NULL + 2;
    assert_int_equal(dsa_cuda_copy(&bad, 1, NULL), cudaErrorInvalidValue);
    bad = one[0];
    bad.rows = (1U << 31) + 1;
    assert_int_equal(dsa_cuda_copy(&bad, 1, NULL), cudaErrorInvalidValue);

    /* no rows: nothing to do */

    bad.rows = 0;
    gpu_ok(dsa_cuda_copy(&bad, 1, NULL));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_copy, gpu_setup, gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
