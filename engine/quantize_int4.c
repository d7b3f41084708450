
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <math.h>
#include <stdatomic.h>

#include "engine/quantize_int4.h"
#include "kernels/core/bf16.h"
#include "kernels/core/fp8.h"
#include "kernels/core/int4.h"


#define DSA_QUANTIZE_ROWS   16          /* of a piece */


typedef struct {
    uint8_t                *q;
    uint16_t               *scale;
    const dsa_tensor_t     *tensor;
    dsa_quantize_loss_t    *loss;
    atomic_int              faults;     /* groups with weights that are not
                                           finite */
    atomic_flag             lock;       /* of loss */
} dsa_quantize_int4_t;


/* Quantizes a group of weights; 1: they are not finite. */

static int
dsa_quantize_group(uint8_t *q, uint16_t *scale, const float *w,
    dsa_quantize_loss_t *loss)
{
    float     s, value[DSA_INT4_GROUP];
    double    d;
    uint32_t  i;

    s = dsa_int4_encode(q, w);

    if (isnan(s)) {
        return 1;
    }

    *scale = dsa_bf16_encode(s);
    dsa_int4_decode(value, q, s);

    for (i = 0; i < DSA_INT4_GROUP; i++) {
        d = (double) w[i] - (double) value[i];
        loss->error += d * d;
        loss->weights += (double) w[i] * (double) w[i];
    }

    return 0;
}


static void
dsa_quantize_int4_piece(void *ctx, uint32_t piece, uint32_t thread)
{
    float                  w[DSA_INT4_GROUP];
    uint64_t               at;
    uint32_t               row, col, end;
    dsa_quantize_int4_t   *job = ctx;
    const dsa_tensor_t    *t;
    dsa_quantize_loss_t    loss = { 0, 0 };

    t = job->tensor;
    row = piece * DSA_QUANTIZE_ROWS;
    end = t->rows - row < DSA_QUANTIZE_ROWS ? t->rows
                                            : row + DSA_QUANTIZE_ROWS;

    for ( /* void */ ; row < end; row++) {
        for (col = 0; col < t->cols; col += DSA_INT4_GROUP) {
            at = (uint64_t) row * t->cols + col;

            dsa_fp8_decode(w, (const uint8_t *) t->data + at, DSA_INT4_GROUP,
                           t->scale[(uint64_t) (row / DSA_FP8_GROUP)
                                    * (t->cols / DSA_FP8_GROUP)
                                    + col / DSA_FP8_GROUP]);

            if (dsa_quantize_group(job->q + at / 2,
                                   job->scale + at / DSA_INT4_GROUP, w, &loss))
            {
                atomic_fetch_add(&job->faults, 1);
                return;
            }
        }
    }

    while (atomic_flag_test_and_set(&job->lock)) { /* void */ }

    job->loss->error += loss.error;
    job->loss->weights += loss.weights;

    atomic_flag_clear(&job->lock);
}


int
dsa_quantize_int4(dsa_threads_t *pool, uint8_t *q, uint16_t *scale,
    const dsa_tensor_t *t, dsa_quantize_loss_t *loss)
{
    dsa_quantize_int4_t  job;

    assert(t->dtype == DSA_E4M3 && t->cols % DSA_INT4_GROUP == 0);

    job.q = q;
    job.scale = scale;
    job.tensor = t;
    job.loss = loss;
    atomic_init(&job.faults, 0);
    atomic_flag_clear(&job.lock);

    dsa_threads_run(pool, (t->rows + DSA_QUANTIZE_ROWS - 1)
                          / DSA_QUANTIZE_ROWS, dsa_quantize_int4_piece, &job);

    return atomic_load(&job.faults) == 0 ? DSA_OK : DSA_ERROR;
}
