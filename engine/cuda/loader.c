
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "engine/cuda/loader.h"
#include "kernels/core/fp8.h"
#include "kernels/core/int4.h"
#include "kernels/sample/random.h"


#define DSA_LOAD_ALIGN      256


static uint64_t
dsa_load_round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}


void *
dsa_load_place(dsa_loader_t *ld, uint64_t bytes)
{
    void  *p;

    p = ld->memory != NULL ? ld->memory + ld->used : NULL;
    ld->used += dsa_load_round_up(bytes, DSA_LOAD_ALIGN);

    return p;
}


static void
dsa_load_add(dsa_loader_t *ld, void *to, const void *from,
    const dsa_slice_copy_t *copy, dsa_read_e kind)
{
    size_t            room;
    dsa_read_list_t  *list;
    dsa_read_task_t  *task;

    list = ld->list;

    if (list->n == list->room) {
        room = list->room * 2 + 1024;
        task = realloc(list->task, room * sizeof(dsa_read_task_t));

        if (task == NULL) {
            if (!ld->failed) {
                ld->failed = 1;
                (void) dsa_error(ld->err, "no memory for a list of %zu "
                                 "weights", room);
            }

            return;
        }

        list->task = task;
        list->room = room;
    }

    task = &list->task[list->n++];

    task->to = to;
    task->from = from;
    task->copy = *copy;
    task->kind = kind;
}


/* Keeps the first error of the ops that make random numbers. */

static void
dsa_load_random(dsa_loader_t *ld, int rc)
{
    ld->seed++;

    if (ld->rc == 0) {
        ld->rc = rc;
    }
}


float *
dsa_load_vector(dsa_loader_t *ld, const dsa_tensor_t *t, uint64_t n,
    float mean, float spread)
{
    float             *p;
    dsa_slice_copy_t   copy;

    p = dsa_load_place(ld, n * sizeof(float));

    if (p == NULL) {
        return NULL;
    }

    if (ld->random) {
        dsa_load_random(ld, dsa_cuda_random_f32(p, n, mean, spread, ld->seed,
                                                ld->stream));
        return p;
    }

    copy.from = 0;
    copy.run = n * (t->dtype == DSA_BF16 ? sizeof(dsa_bf16_t)
                                         : sizeof(float));
    copy.stride = copy.run;
    copy.runs = 1;

    dsa_load_add(ld, p, t->data, &copy,
                 t->dtype == DSA_BF16 ? DSA_READ_WIDEN : DSA_READ_COPY);

    return p;
}


/*
 * Rejects a tensor whose dtype is not the published one, because with rounded
 * weights the results would differ from those of the CPU backend.
 */

static void
dsa_load_check(dsa_loader_t *ld, const dsa_tensor_t *t, dsa_dtype_e expected,
    const char *name, uint32_t layer)
{
    static const char *const  names[] = { "F32", "BF16", "F8_E4M3", "INT4" };

    if (t->dtype != expected && !ld->failed) {
        ld->failed = 1;
        (void) dsa_error(ld->err, "%s of layer %u has dtype %s; \"backend "
                         "cuda\" expects %s", name, layer, names[t->dtype],
                         names[expected]);
    }
}


dsa_bf16_t *
dsa_load_bf16(dsa_loader_t *ld, const dsa_tensor_t *t, dsa_cut_e cut,
    uint32_t rows, uint32_t cols, float spread, const char *name,
    uint32_t layer)
{
    uint64_t           n;
    dsa_bf16_t        *p;
    dsa_slice_t        slice;
    dsa_slice_copy_t   copy;

    dsa_shard_slice(&slice, ld->shard, cut, rows, cols);

    n = (uint64_t) slice.rows * slice.cols;
    p = dsa_load_place(ld, n * sizeof(dsa_bf16_t));

    if (p == NULL) {
        return NULL;
    }

    if (ld->random) {
        dsa_load_random(ld, dsa_cuda_random_bf16(p, n, 0, spread, ld->seed,
                                                 ld->stream));
        return p;
    }

    dsa_slice_copy_values(&copy, &slice, cols, sizeof(dsa_bf16_t));
    dsa_load_check(ld, t, DSA_BF16, name, layer);
    dsa_load_add(ld, p, t->data, &copy, DSA_READ_COPY);

    return p;
}


/* Adds the tasks of a part in INT4. */

static void
dsa_load_int4(dsa_loader_t *ld, const dsa_cuda_matrix_t *w, uint64_t at,
    const dsa_tensor_t *t, const dsa_slice_t *slice,
    const dsa_load_matrix_t *m)
{
    dsa_slice_t        part;
    dsa_bf16_t        *scale;
    dsa_slice_copy_t   copy;

    assert(slice->col % DSA_INT4_GROUP == 0);

    dsa_load_check(ld, t, DSA_INT4, m->name, m->layer);

    /* two columns in a byte, then 128 with one scale */

    part = *slice;
    part.col /= 2;
    part.cols /= 2;

    dsa_slice_copy_values(&copy, &part, m->cols / 2, 1);
    dsa_load_add(ld, (uint8_t *) w->int4.q + at * w->cols / 2, t->data, &copy,
                 DSA_READ_COPY);

    part.col = slice->col / DSA_INT4_GROUP;
    part.cols = slice->cols / DSA_INT4_GROUP;

    scale = (dsa_bf16_t *) w->int4.scale + at * (w->cols / DSA_INT4_GROUP);

    if (t->groups != NULL) {
        dsa_slice_copy_values(&copy, &part, m->cols / DSA_INT4_GROUP,
                              sizeof(dsa_bf16_t));
        dsa_load_add(ld, scale, t->groups, &copy, DSA_READ_GROUPS);
        return;
    }

    dsa_slice_copy_values(&copy, &part, m->cols / DSA_INT4_GROUP,
                          sizeof(float));
    dsa_load_add(ld, scale, t->scale, &copy, DSA_READ_NARROW);
}


/* Adds the tasks of one part, whose first row is row at of the matrix. */

static void
dsa_load_part(dsa_loader_t *ld, const dsa_cuda_matrix_t *w, uint64_t at,
    const dsa_tensor_t *t, const dsa_slice_t *slice,
    const dsa_load_matrix_t *m)
{
    uint64_t           block;
    dsa_slice_copy_t   copy;

    if (m->format == DSA_FORMAT_FLOAT) {
        dsa_load_check(ld, t, DSA_BF16, m->name, m->layer);
        dsa_slice_copy_values(&copy, slice, m->cols, sizeof(dsa_bf16_t));
        dsa_load_add(ld, (dsa_bf16_t *) w->bf16.w + at * w->cols, t->data,
                     &copy, DSA_READ_COPY);
        return;
    }

    if (m->format == DSA_FORMAT_INT4) {
        dsa_load_int4(ld, w, at, t, slice, m);
        return;
    }

    block = w->cols / DSA_FP8_GROUP;

    dsa_load_check(ld, t, DSA_E4M3, m->name, m->layer);

    dsa_slice_copy_values(&copy, slice, m->cols, sizeof(dsa_e4m3_t));
    dsa_load_add(ld, (dsa_e4m3_t *) w->fp8.q + at * w->cols, t->data, &copy,
                 t->made ? DSA_READ_MADE : DSA_READ_COPY);

    dsa_slice_copy_scales(&copy, slice, m->cols);
    dsa_load_add(ld, (float *) w->fp8.scale + at / DSA_FP8_GROUP * block,
                 t->scale, &copy, t->made ? DSA_READ_MADE : DSA_READ_SCALES);
}


/*
 * Places n elements in INT4.  A byte of two random numbers of 4 bits is a
 * random byte; these have a root mean square of 4.6.
 */

static void
dsa_load_room_int4(dsa_loader_t *ld, dsa_cuda_matrix_t *w, uint64_t n)
{
    uint8_t     *q;
    dsa_bf16_t  *scale;

    q = dsa_load_place(ld, n / 2);
    scale = dsa_load_place(ld, n / DSA_INT4_GROUP * sizeof(dsa_bf16_t));

    w->int4.q = q;
    w->int4.scale = scale;

    if (q != NULL && ld->random) {
        dsa_load_random(ld, dsa_cuda_random_e4m3(q, n / 2, ld->seed,
                                                 ld->stream));
        dsa_load_random(ld, dsa_cuda_random_bf16(scale, n / DSA_INT4_GROUP,
                                                 1 / (4.6f
                                                      * sqrtf((float)
                                                              w->cols)),
                                                 0, ld->seed, ld->stream));
    }
}


/*
 * Places m->n matrices of w->rows rows and w->cols columns.  Random values keep
 * the result of a product over some thousand columns as large as its operand,
 * so that no layer overflows: e4m3 codes have a root mean square of about 102,
 * and BF16 a uniform distribution with the variance 1 / columns.
 */

static void
dsa_load_room(dsa_loader_t *ld, dsa_cuda_matrix_t *w,
    const dsa_load_matrix_t *m)
{
    float       *scale;
    uint64_t     n, scales;
    dsa_bf16_t  *v;
    dsa_e4m3_t  *q;

    n = (uint64_t) w->rows * w->cols * m->n;

    w->fp8.rows = w->rows;
    w->fp8.cols = w->cols;
    w->bf16.rows = w->rows;
    w->bf16.cols = w->cols;
    w->int4.rows = w->rows;
    w->int4.cols = w->cols;

    if (m->format == DSA_FORMAT_INT4) {
        dsa_load_room_int4(ld, w, n);
        return;
    }

    if (m->format == DSA_FORMAT_FLOAT) {
        v = dsa_load_place(ld, n * sizeof(dsa_bf16_t));
        w->bf16.w = v;

        if (v != NULL && ld->random) {
            dsa_load_random(ld, dsa_cuda_random_bf16(v, n, 0,
                                                     sqrtf(3.0f
                                                           / (float) w->cols),
                                                     ld->seed, ld->stream));
        }

        return;
    }

    scales = dsa_load_round_up(w->rows, DSA_FP8_GROUP) / DSA_FP8_GROUP
             * (w->cols / DSA_FP8_GROUP) * m->n;

    q = dsa_load_place(ld, n);
    scale = dsa_load_place(ld, scales * sizeof(float));

    w->fp8.q = q;
    w->fp8.scale = scale;

    if (q != NULL && ld->random) {
        dsa_load_random(ld, dsa_cuda_random_e4m3(q, n, ld->seed, ld->stream));
        dsa_load_random(ld, dsa_cuda_random_f32(scale, scales, 0x1p-13f, 0,
                                                ld->seed, ld->stream));
    }
}


/* Moves w, which is one of several matrices, to the next one. */

static void
dsa_load_next(dsa_cuda_matrix_t *w, const dsa_load_matrix_t *m)
{
    uint64_t  n, scales;

    n = (uint64_t) w->rows * w->cols;

    if (m->format == DSA_FORMAT_FLOAT) {
        w->bf16.w += n;
        return;
    }

    if (m->format == DSA_FORMAT_INT4) {
        w->int4.q += n / 2;
        w->int4.scale += n / DSA_INT4_GROUP;
        return;
    }

    scales = dsa_load_round_up(w->rows, DSA_FP8_GROUP) / DSA_FP8_GROUP
             * (w->cols / DSA_FP8_GROUP);

    w->fp8.q += n;
    w->fp8.scale += scales;
}


void
dsa_load_matrix(dsa_loader_t *ld, dsa_cuda_matrix_t *w,
    const dsa_load_matrix_t *m)
{
    uint32_t           i, j;
    uint64_t           at, rows, cols;
    dsa_slice_t        slice[3];
    dsa_cuda_matrix_t  one;

    assert(m->parts >= 1 && m->parts <= 3);

    rows = 0;
    cols = 0;

    for (i = 0; i < m->parts; i++) {
        dsa_shard_slice(&slice[i], ld->shard, m->cut, m->rows[i], m->cols);
        rows = dsa_load_round_up(rows, DSA_FP8_GROUP) + slice[i].rows;
        cols = slice[i].cols;
    }

    w->rows = (uint32_t) (rows + m->spare);
    w->cols = (uint32_t) cols;

    dsa_load_room(ld, w, m);

    if (ld->memory == NULL || ld->random) {
        return;
    }

    one = *w;

    for (j = 0; j < m->n; j++) {
        for (i = 0, at = 0; i < m->parts; i++) {
            at = dsa_load_round_up(at, DSA_FP8_GROUP);
            dsa_load_part(ld, &one, at, m->tensor[j * m->parts + i],
                          &slice[i], m);
            at += slice[i].rows;
        }

        dsa_load_next(&one, m);
    }
}
