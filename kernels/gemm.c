
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cblas.h>

#include "kernels/gemm.h"


void
dsa_gemm_nt(float *y, size_t ld_y, const float *x, size_t ld_x,
    const float *w, size_t ld_w, size_t rows, size_t out, size_t in, int add)
{
    float  beta;

    beta = add ? 1.0f : 0.0f;

    if (rows == 1) {
        cblas_sgemv(CblasRowMajor, CblasNoTrans, (blasint) out, (blasint) in,
                    1.0f, w, (blasint) ld_w, x, 1, beta, y, 1);
        return;
    }

    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint) rows,
                (blasint) out, (blasint) in, 1.0f, x, (blasint) ld_x, w,
                (blasint) ld_w, beta, y, (blasint) ld_y);
}


void
dsa_gemm_nn(float *y, size_t ld_y, const float *x, size_t ld_x,
    const float *w, size_t ld_w, size_t rows, size_t out, size_t in, int add)
{
    float  beta;

    beta = add ? 1.0f : 0.0f;

    if (rows == 1) {
        cblas_sgemv(CblasRowMajor, CblasTrans, (blasint) in, (blasint) out,
                    1.0f, w, (blasint) ld_w, x, 1, beta, y, 1);
        return;
    }

    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint) rows,
                (blasint) out, (blasint) in, 1.0f, x, (blasint) ld_x, w,
                (blasint) ld_w, beta, y, (blasint) ld_y);
}
