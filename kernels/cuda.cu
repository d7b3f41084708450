
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "kernels/cuda.h"
}

#include "kernels/hopper.cuh"


extern "C" const char *
dsa_cuda_error(int error)
{
    return cudaGetErrorString((cudaError_t) error);
}


/* The driver's function is found through the runtime: nothing links libcuda,
   so that programs start on machines without a GPU. */

typedef CUresult (*dsa_tensor_map_pt)(CUtensorMap *, CUtensorMapDataType,
    cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
    const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
    CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);


int
dsa_cuda_tensor_map(CUtensorMap *map, CUtensorMapDataType type, uint32_t rank,
    const void *base, const uint64_t *dim, const uint64_t *stride,
    const uint32_t *box, CUtensorMapSwizzle swizzle)
{
    void                             *p;
    uint32_t                          i;
    cuuint32_t                        b[3], step[3];
    cuuint64_t                        d[3], s[3];
    cudaError_t                       rc;
    static dsa_tensor_map_pt          encode;
    cudaDriverEntryPointQueryResult   found;

    if (rank < 2 || rank > 3) {
        return cudaErrorInvalidValue;
    }

    if (encode == NULL) {
        rc = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &p,
                                              12000, cudaEnableDefault,
                                              &found);
        if (rc != cudaSuccess) {
            return rc;
        }

        if (found != cudaDriverEntryPointSuccess) {
            return cudaErrorNotSupported;
        }

        encode = (dsa_tensor_map_pt) p;
    }

    for (i = 0; i < rank; i++) {
        d[i] = dim[i];
        b[i] = box[i];
        step[i] = 1;

        if (i + 1 < rank) {
            s[i] = stride[i];
        }
    }

    if (encode(map, type, rank, (void *) base, d, s, b, step,
               CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
               CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
        != CUDA_SUCCESS)
    {
        return cudaErrorInvalidValue;
    }

    return cudaSuccess;
}
