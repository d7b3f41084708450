
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "cuda.h"
}

#include "hopper.cuh"


#define DSA_TENSOR_RANK     3


typedef CUresult (*dsa_tensor_map_pt)(CUtensorMap *, CUtensorMapDataType,
    cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
    const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
    CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);


extern "C" const char *
dsa_cuda_error(int error)
{
    return cudaGetErrorString((cudaError_t) error);
}


int
dsa_cuda_tensor_map(const dsa_cuda_state_t *state, CUtensorMap *map,
    CUtensorMapDataType type, uint32_t rank, const void *base,
    const uint64_t *dim, const uint64_t *stride, const uint32_t *box,
    CUtensorMapSwizzle swizzle)
{
    uint32_t           i;
    cuuint32_t         b[DSA_TENSOR_RANK], step[DSA_TENSOR_RANK];
    cuuint64_t         d[DSA_TENSOR_RANK], s[DSA_TENSOR_RANK];
    dsa_tensor_map_pt  encode;

    if (rank < 2 || rank > DSA_TENSOR_RANK) {
        return cudaErrorInvalidValue;
    }

    for (i = 0; i < rank; i++) {
        d[i] = dim[i];
        b[i] = box[i];
        step[i] = 1;

        if (i + 1 < rank) {
            s[i] = stride[i];
        }
    }

    encode = (dsa_tensor_map_pt) state->encode;

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
