
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/threads.h"
#include "engine/quantize.h"
#include "kernels/core/bf16.h"
#include "kernels/core/fp8.h"


#define DSA_QUANTIZE_ALIGN  63ULL       /* 64 bytes */


/*
 * Matrices are visited twice: first to count the bytes of the codes and scales,
 * then, with the memory allocated, to make them.
 */

typedef struct {
    dsa_weights_t      *weights;
    dsa_threads_t      *pool;
    uint8_t            *memory;         /* NULL while counting */
    uint64_t            used;           /* bytes */
    uint64_t            cols;           /* the most of a matrix */
    float              *rows;           /* [threads][128][cols] decoded */
    uint32_t            number;         /* of the layer */
    int                 rc;
    dsa_err_t          *err;
} dsa_quantize_t;


/* A matrix as a job; a piece is 128 rows. */

typedef struct {
    const dsa_quantize_t   *quantize;
    const dsa_tensor_t     *tensor;
    uint8_t                *q;
    float                  *scale;
    atomic_int              faults;     /* pieces with numbers that are not
                                           finite */
} dsa_quantize_job_t;


int
dsa_config_quantize(dsa_model_config_t *config, dsa_err_t *err)
{
    uint32_t  i;

    for (i = 0; i < DSA_MATRICES; i++) {
        if (config->format[i] == DSA_FORMAT_FP8) {
            return dsa_error(err, "config.json has \"quantization_config\", so "
                             "that the weights are in FP8 already; expected "
                             "\"weights files\"");
        }
    }

    memset(config->format, DSA_FORMAT_FP8, sizeof(config->format));
    config->ue8m0 = 0;

    return DSA_OK;
}


static uint32_t
dsa_quantize_blocks(uint32_t n)
{
    return (n + DSA_FP8_GROUP - 1) / DSA_FP8_GROUP;
}


static void
dsa_quantize_piece(void *ctx, uint32_t piece, uint32_t thread)
{
    float                 *rows, *scale;
    size_t                 at;
    uint32_t               i, n, cols, first;
    dsa_quantize_job_t    *job = ctx;
    const dsa_tensor_t    *t;
    const dsa_quantize_t  *d;

    d = job->quantize;
    t = job->tensor;
    cols = t->cols;
    first = piece * DSA_FP8_GROUP;
    n = t->rows - first < DSA_FP8_GROUP ? t->rows - first : DSA_FP8_GROUP;
    at = (size_t) first * cols;
    rows = d->rows + (size_t) thread * DSA_FP8_GROUP * d->cols;
    scale = job->scale + (size_t) piece * dsa_quantize_blocks(cols);

    if (t->dtype == DSA_BF16) {
        dsa_bf16_decode_rows(rows, (const uint16_t *) t->data + at,
                             (size_t) n * cols);

    } else {
        memcpy(rows, (const float *) t->data + at,
               (size_t) n * cols * sizeof(float));
    }

    dsa_fp8_encode_weight(job->q + at, scale, rows, n, cols);

    for (i = 0; i < dsa_quantize_blocks(cols); i++) {
        if (!isfinite(scale[i])) {
            atomic_fetch_add(&job->faults, 1);
            break;
        }
    }
}


/* Replaces a matrix, if the layer has it. */

static void
dsa_quantize_matrix(dsa_quantize_t *d, dsa_tensor_t *t)
{
    uint64_t            bytes, scales;
    dsa_quantize_job_t  job;

    if (t->data == NULL || d->rc != DSA_OK) {
        return;
    }

    bytes = ((uint64_t) t->rows * t->cols + DSA_QUANTIZE_ALIGN)
            & ~DSA_QUANTIZE_ALIGN;
    scales = (uint64_t) dsa_quantize_blocks(t->rows)
             * dsa_quantize_blocks(t->cols) * sizeof(float);

    if (d->memory == NULL) {
        d->cols = t->cols > d->cols ? t->cols : d->cols;

    } else {
        job.quantize = d;
        job.tensor = t;
        job.q = d->memory + d->used;
        job.scale = (float *) (d->memory + d->used + bytes);
        atomic_init(&job.faults, 0);

        dsa_threads_run(d->pool, dsa_quantize_blocks(t->rows),
                        dsa_quantize_piece, &job);

        if (atomic_load(&job.faults) != 0) {
            d->rc = dsa_error(d->err, "\"weights fp8\": a matrix [%u, %u] of "
                              "layer %u has a number that is not finite",
                              t->rows, t->cols, d->number);
        }

        t->dtype = DSA_E4M3;
        t->data = job.q;
        t->scale = job.scale;
        t->made = 1;
    }

    d->used += bytes + ((scales + DSA_QUANTIZE_ALIGN) & ~DSA_QUANTIZE_ALIGN);
}


static void
dsa_quantize_mlp(dsa_quantize_t *d, dsa_mlp_t *m)
{
    dsa_quantize_matrix(d, &m->gate);
    dsa_quantize_matrix(d, &m->up);
    dsa_quantize_matrix(d, &m->down);
}


static void
dsa_quantize_layer(dsa_quantize_t *d, dsa_layer_t *l)
{
    uint32_t  e;

    dsa_quantize_matrix(d, &l->q_a_proj);
    dsa_quantize_matrix(d, &l->q_b_proj);
    dsa_quantize_matrix(d, &l->kv_a_proj_with_mqa);
    dsa_quantize_matrix(d, &l->kv_b_proj);
    dsa_quantize_matrix(d, &l->o_proj);
    dsa_quantize_matrix(d, &l->index_wq_b);
    dsa_quantize_matrix(d, &l->index_wk);
    dsa_quantize_mlp(d, &l->mlp);
    dsa_quantize_mlp(d, &l->shared);

    for (e = 0; l->expert != NULL && e < d->weights->config.n_routed_experts;
         e++)
    {
        dsa_quantize_mlp(d, &l->expert[e]);
    }
}


/* Visits all matrices; those of a draft layer that cannot be used stay. */

static void
dsa_quantize_all(dsa_quantize_t *d)
{
    dsa_weights_t  *w;

    w = d->weights;
    d->used = 0;

    for (d->number = 0; d->number < w->config.num_hidden_layers; d->number++) {
        dsa_quantize_layer(d, &w->layer[d->number]);
    }

    if (w->draft.fault[0] == '\0') {
        dsa_quantize_layer(d, &w->draft.layer);
    }
}


int
dsa_weights_quantize(dsa_weights_t *w, dsa_err_t *err)
{
    void            *memory;
    dsa_quantize_t   d;

    if (dsa_config_quantize(&w->config, err) != DSA_OK) {
        return DSA_ERROR;
    }

    memset(&d, 0, sizeof(dsa_quantize_t));

    d.weights = w;
    d.rc = DSA_OK;
    d.err = err;

    dsa_quantize_all(&d);

    d.pool = dsa_threads_create(dsa_threads_cpus(), err);

    if (d.pool == NULL) {
        return DSA_ERROR;
    }

    memory = mmap(NULL, d.used, PROT_READ|PROT_WRITE,
                  MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
    d.rows = malloc(dsa_threads_count(d.pool) * DSA_FP8_GROUP * d.cols
                    * sizeof(float));

    if (memory == MAP_FAILED || d.rows == NULL) {
        d.rc = dsa_error(err, "no memory for %.2f GB of weights in FP8",
                         (double) d.used * 1e-9);
    }

    if (memory != MAP_FAILED) {
        w->made = memory;
        w->made_size = d.used;
        d.memory = memory;
    }

    if (d.rc == DSA_OK) {
        dsa_log(DSA_LOG_NOTICE, "\"weights fp8\" changes the model: its "
                "weights are rounded to FP8 in blocks of 128 x 128, %.2f GB in "
                "memory", (double) d.used * 1e-9);
        dsa_quantize_all(&d);
    }

    free(d.rows);
    dsa_threads_destroy(d.pool);

    return d.rc;
}
