
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "t/gpu/spin.h"


static __global__ void __launch_bounds__(1024)
gpu_spin_kernel(const volatile int *end)
{
    while (*end == 0) {
        __nanosleep(1000);
    }
}


int
gpu_spin(const volatile int *end, dsa_stream_t stream)
{
    int  device, processors;

    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount,
                           device);

    /* a processor has 2,048 threads */

    gpu_spin_kernel<<<2 * processors, 1024, 0, stream>>>(end);

    return cudaGetLastError();
}
