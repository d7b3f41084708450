
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/pieces.h"
#include "engine/checkpoint/scan.h"
#include "engine/cuda/reader.h"
#include "kernels/core/bf16.h"
#include "kernels/core/cuda.h"
#include "kernels/core/int4.h"


/* A task with its position in the files. */

typedef struct {
    uint32_t                    file;
    uint32_t                    list;
    uint64_t                    matrix;     /* offset of the tensor */
    uint64_t                    begin;      /* offset of its first byte used */
    uint64_t                    reach;      /* the largest end of this entry
                                               and those before it in the file,
                                               so that it never decreases */
    uint8_t                    *vector;     /* DSA_READ_WIDEN: for the BF16 */
    const dsa_read_task_t      *task;
} dsa_read_entry_t;


/* Shared by the threads, which do not change it. */

typedef struct {
    const dsa_weights_t        *weights;
    const dsa_read_list_t      *list;
    uint32_t                    lists;
    uint32_t                    check;      /* 1: nothing is copied */
    dsa_read_entry_t           *entry;      /* [n], by file and begin */
    size_t                      n;
    uint8_t                    *vectors;    /* all BF16 vectors, which are
                                               small, and are widened once they
                                               are complete */
    uint64_t                    vector;     /* most bytes of one */
    uint32_t                    narrow;     /* 1: there is DSA_READ_NARROW */
} dsa_read_t;


/* The state of one thread. */

typedef struct {
    const dsa_read_t           *read;
    uint8_t                    *buffer;     /* pinned */
    dsa_bf16_t                 *narrow;     /* pinned, or NULL: the float32 at
                                               4i of the buffer, in BF16, is
                                               narrow[i] */
    cudaStream_t                stream[];   /* of each list, on its device */
} dsa_read_part_t;


static int dsa_read_all(dsa_read_t *r, char fingerprint[DSA_FULL_LEN + 1],
    dsa_err_t *err);
static int dsa_read_index(dsa_read_t *r, dsa_err_t *err);
static int dsa_read_vectors(const dsa_read_t *r, dsa_err_t *err);
static int dsa_read_made(const dsa_read_t *r, dsa_err_t *err);
static void *dsa_read_open(void *data, uint8_t **buffer, dsa_err_t *err);
static int dsa_read_block(void *data, const dsa_scan_block_t *block,
    dsa_err_t *err);
static int dsa_read_wait(void *data, dsa_err_t *err);
static void dsa_read_close(void *data);


int
dsa_cuda_read(const dsa_weights_t *weights, const dsa_read_list_t *list,
    uint32_t lists, char fingerprint[DSA_FULL_LEN + 1], dsa_err_t *err)
{
    dsa_read_t  r;

    memset(&r, 0, sizeof(r));

    r.weights = weights;
    r.list = list;
    r.lists = lists;

    return dsa_read_all(&r, fingerprint, err);
}


int
dsa_cuda_read_check(const dsa_weights_t *weights, const dsa_read_list_t *list,
    uint32_t lists, char fingerprint[DSA_FULL_LEN + 1], dsa_err_t *err)
{
    dsa_read_t  r;

    memset(&r, 0, sizeof(r));

    r.weights = weights;
    r.list = list;
    r.lists = lists;
    r.check = 1;

    return dsa_read_all(&r, fingerprint, err);
}


static int
dsa_read_all(dsa_read_t *r, char fingerprint[DSA_FULL_LEN + 1],
    dsa_err_t *err)
{
    int              rc, device;
    dsa_scan_sink_t  sink;

    sink.data = r;
    sink.open = dsa_read_open;
    sink.block = dsa_read_block;
    sink.wait = dsa_read_wait;
    sink.close = dsa_read_close;

    rc = cudaGetDevice(&device);

    if (rc != 0) {
        return dsa_error(err, "reading weights: no GPU is selected: %s",
                         dsa_cuda_error(rc));
    }

    rc = dsa_read_index(r, err);

    if (rc == DSA_OK) {
        rc = dsa_scan(r->weights, &sink, 0, fingerprint, err);
    }

    if (rc == DSA_OK && !r->check) {
        rc = dsa_read_vectors(r, err);
    }

    if (rc == DSA_OK && !r->check) {
        rc = dsa_read_made(r, err);
    }

    (void) cudaSetDevice(device);

    free(r->entry);
    free(r->vectors);

    return rc;
}


static int
dsa_read_compare(const void *one, const void *two)
{
    const dsa_read_entry_t  *a = one, *b = two;

    if (a->file != b->file) {
        return a->file < b->file ? -1 : 1;
    }

    return (a->begin > b->begin) - (a->begin < b->begin);
}


static uint64_t
dsa_read_end(const dsa_read_entry_t *e)
{
    const dsa_slice_copy_t  *copy;

    copy = &e->task->copy;

    return e->begin + (copy->runs - 1) * copy->stride + copy->run;
}


/* Finds the tasks of all lists in the files, and sorts them. */

static int
dsa_read_index(dsa_read_t *r, dsa_err_t *err)
{
    size_t                  i;
    uint8_t                *vector;
    uint32_t                k;
    uint64_t                bytes, reach;
    dsa_read_entry_t       *e;
    const dsa_read_task_t  *t;

    bytes = 0;

    for (k = 0; k < r->lists; k++) {
        r->n += r->list[k].n;

        for (i = 0; i < r->list[k].n; i++) {
            t = &r->list[k].task[i];

            if (t->kind == DSA_READ_WIDEN) {
                assert(t->copy.runs == 1);
                bytes += t->copy.run;
                r->vector = t->copy.run > r->vector ? t->copy.run : r->vector;
            }

            if (t->kind == DSA_READ_NARROW) {
                r->narrow = 1;
            }
        }
    }

    r->entry = malloc(r->n * sizeof(dsa_read_entry_t) + 1);
    r->vectors = malloc(bytes + 1);

    if (r->entry == NULL || r->vectors == NULL) {
        return dsa_error(err, "no memory for a list of %zu weights", r->n);
    }

    vector = r->vectors;
    e = r->entry;

    for (k = 0; k < r->lists; k++) {
        for (i = 0; i < r->list[k].n; i++) {
            t = &r->list[k].task[i];

            if (t->kind == DSA_READ_MADE) {
                continue;
            }

            e->file = dsa_shards_find(r->weights->shards, t->from, &e->matrix);
            e->list = k;
            e->begin = e->matrix + t->copy.from;
            e->vector = vector;
            e->task = t;

            vector += t->kind == DSA_READ_WIDEN ? t->copy.run : 0;
            e++;
        }
    }

    r->n = (size_t) (e - r->entry);

    qsort(r->entry, r->n, sizeof(dsa_read_entry_t), dsa_read_compare);

    for (i = 0, reach = 0; i < r->n; i++) {
        e = &r->entry[i];

        if (i == 0 || e->file != e[-1].file) {
            reach = 0;
        }

        reach = dsa_read_end(e) > reach ? dsa_read_end(e) : reach;
        e->reach = reach;
    }

    return DSA_OK;
}


/*
 * Returns the first entry that may have bytes at or after an offset of a file.
 */

static size_t
dsa_read_first(const dsa_read_t *r, uint32_t file, uint64_t offset)
{
    size_t                   low, high, middle;
    const dsa_read_entry_t  *e;

    low = 0;
    high = r->n;

    while (low < high) {
        middle = low + (high - low) / 2;
        e = &r->entry[middle];

        if (e->file < file || (e->file == file && e->reach <= offset)) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return low;
}


/* Widens the vectors and copies them to their GPUs. */

static int
dsa_read_vectors(const dsa_read_t *r, dsa_err_t *err)
{
    int                      rc;
    size_t                   i, n;
    float                   *wide;
    uint32_t                 k;
    const dsa_read_entry_t  *e;

    wide = malloc(r->vector / sizeof(dsa_bf16_t) * sizeof(float) + 1);

    if (wide == NULL) {
        return dsa_error(err, "no memory for a vector of %llu bytes",
                         (unsigned long long) r->vector);
    }

    for (i = 0, rc = 0; i < r->n && rc == 0; i++) {
        e = &r->entry[i];

        if (e->task->kind == DSA_READ_WIDEN) {
            n = e->task->copy.run / sizeof(dsa_bf16_t);
            dsa_bf16_decode_rows(wide, e->vector, n);

            rc = cudaSetDevice(r->list[e->list].device);
            rc = rc != 0 ? rc : (int) cudaMemcpy(e->task->to, wide,
                                                 n * sizeof(float),
                                                 cudaMemcpyHostToDevice);
        }
    }

    free(wide);

    /*
     * Wait, because a copy from pageable memory may return before it is
     * complete.
     */

    for (k = 0; k < r->lists && rc == 0; k++) {
        rc = cudaSetDevice(r->list[k].device);
        rc = rc != 0 ? rc : (int) cudaStreamSynchronize(NULL);
    }

    if (rc != 0) {
        return dsa_error(err, "copying weights to the GPU: %s",
                         dsa_cuda_error(rc));
    }

    return DSA_OK;
}


/* Copies the tensors that are in memory to their GPUs. */

static int
dsa_read_made(const dsa_read_t *r, dsa_err_t *err)
{
    int                      rc;
    size_t                   i;
    uint32_t                 k;
    const dsa_read_task_t   *t;
    const dsa_slice_copy_t  *copy;

    for (k = 0; k < r->lists; k++) {
        rc = cudaSetDevice(r->list[k].device);

        for (i = 0; i < r->list[k].n && rc == 0; i++) {
            t = &r->list[k].task[i];
            copy = &t->copy;

            if (t->kind == DSA_READ_MADE) {
                rc = cudaMemcpy2D(t->to, copy->run,
                                  (const uint8_t *) t->from + copy->from,
                                  copy->runs > 1 ? copy->stride : copy->run,
                                  copy->run, copy->runs,
                                  cudaMemcpyHostToDevice);
            }
        }

        /* a copy from pageable memory may return before it is complete */

        rc = rc != 0 ? rc : (int) cudaStreamSynchronize(NULL);

        if (rc != 0) {
            return dsa_error(err, "copying weights to GPU %d: %s",
                             r->list[k].device, dsa_cuda_error(rc));
        }
    }

    return DSA_OK;
}


static void *
dsa_read_open(void *data, uint8_t **buffer, dsa_err_t *err)
{
    int                rc;
    uint32_t           i;
    dsa_read_t        *r = data;
    dsa_read_part_t   *part;

    part = calloc(1, sizeof(dsa_read_part_t)
                     + r->lists * sizeof(cudaStream_t));

    if (part == NULL) {
        (void) dsa_error(err, "no memory for a thread that reads weights");
        return NULL;
    }

    part->read = r;

    for (i = 0, rc = 0; i < r->lists && rc == 0; i++) {
        rc = cudaSetDevice(r->list[i].device);
        rc = rc != 0 ? rc
                     : (int) cudaStreamCreateWithFlags(&part->stream[i],
                                                       cudaStreamNonBlocking);
    }

    rc = rc != 0 ? rc : (int) cudaHostAlloc((void **) &part->buffer,
                                            DSA_LEAF_SIZE,
                                            cudaHostAllocPortable);

    if (rc == 0 && r->narrow) {
        rc = (int) cudaHostAlloc((void **) &part->narrow, DSA_LEAF_SIZE / 2,
                                 cudaHostAllocPortable);
    }

    if (rc != 0) {
        (void) dsa_error(err, "%u bytes of pinned memory to read weights: %s",
                         r->narrow ? DSA_LEAF_SIZE / 2 * 3 : DSA_LEAF_SIZE,
                         dsa_cuda_error(rc));
        dsa_read_close(part);
        return NULL;
    }

    *buffer = part->buffer;

    return part;
}


static void
dsa_read_close(void *data)
{
    uint32_t          i;
    dsa_read_part_t  *part = data;

    for (i = 0; i < part->read->lists; i++) {
        if (part->stream[i] != NULL) {
            (void) cudaStreamSynchronize(part->stream[i]);
            (void) cudaStreamDestroy(part->stream[i]);
        }
    }

    (void) cudaFreeHost(part->narrow);
    (void) cudaFreeHost(part->buffer);
    free(part);
}


static int
dsa_read_wait(void *data, dsa_err_t *err)
{
    int               rc;
    uint32_t          i;
    dsa_read_part_t  *part = data;

    for (i = 0, rc = 0; i < part->read->lists && rc == 0; i++) {
        rc = cudaStreamSynchronize(part->stream[i]);
    }

    if (rc != 0) {
        return dsa_error(err, "copying weights to GPU %d: %s",
                         part->read->list[i - 1].device, dsa_cuda_error(rc));
    }

    return DSA_OK;
}


/*
 * Sets err for the scale at an offset of a block, with the name of its tensor;
 * also: what else is expected of it.
 */

static int
dsa_read_bad_scale(const dsa_read_t *r, const dsa_scan_block_t *block,
    uint64_t at, float value, const char *also, dsa_err_t *err)
{
    uint32_t                i, n;
    uint64_t                size;
    dsa_str_t               name;
    const dsa_st_t         *st;
    const uint8_t          *byte;
    const dsa_st_tensor_t  *t;

    st = r->weights->shards->file[block->file];
    byte = dsa_st_image(st, &size) + block->offset + at;
    name = dsa_strz("");
    n = dsa_st_count(st);

    for (i = 0; i < n; i++) {
        t = dsa_st_at(st, i);

        if (byte >= (const uint8_t *) t->data
            && byte < (const uint8_t *) t->data + t->size)
        {
            name = t->name;
            break;
        }
    }

    return dsa_error(err, "%s: tensor \"%.*s\" has the scale %g at byte %llu "
                     "of the file; expected a finite number above 0%s",
                     r->weights->shards->path[block->file], (int) name.len,
                     name.data, (double) value,
                     (unsigned long long) (block->offset + at), also);
}


static int
dsa_read_check_scales(const dsa_read_t *r, const dsa_scan_block_t *block,
    const dsa_piece_t *piece, dsa_err_t *err)
{
    float     value;
    uint64_t  row, col, at;

    for (row = 0; row < piece->rows; row++) {
        for (col = 0; col < piece->width; col += sizeof(float)) {
            at = piece->from + row * piece->stride + col;
            memcpy(&value, block->data + at, sizeof(value));

            if (!(value > 0) || isinf(value)) {
                return dsa_read_bad_scale(r, block, at, value, "", err);
            }
        }
    }

    return DSA_OK;
}


/* The same in BF16. */

static int
dsa_read_check_groups(const dsa_read_t *r, const dsa_scan_block_t *block,
    const dsa_piece_t *piece, dsa_err_t *err)
{
    float       value;
    uint64_t    row, col, at;
    dsa_bf16_t  bits;

    for (row = 0; row < piece->rows; row++) {
        for (col = 0; col < piece->width; col += sizeof(dsa_bf16_t)) {
            at = piece->from + row * piece->stride + col;
            memcpy(&bits, block->data + at, sizeof(bits));
            value = dsa_bf16_decode(bits);

            if (!(value > 0) || isinf(value)) {
                return dsa_read_bad_scale(r, block, at, value, "", err);
            }
        }
    }

    return DSA_OK;
}


/* Rounds scales to BF16, and checks the results. */

static int
dsa_read_narrow(const dsa_read_part_t *part, const dsa_scan_block_t *block,
    const dsa_piece_t *piece, dsa_err_t *err)
{
    float     value, scale;
    uint64_t  row, col, at;

    for (row = 0; row < piece->rows; row++) {
        for (col = 0; col < piece->width; col += sizeof(float)) {
            at = piece->from + row * piece->stride + col;
            memcpy(&value, block->data + at, sizeof(value));
            scale = dsa_int4_group_scale(NULL, &value, 0);

            if (!(scale > 0) || isinf(scale)) {
                return dsa_read_bad_scale(part->read, block, at, value,
                                          ", also when it is rounded to BF16",
                                          err);
            }

            part->narrow[at / sizeof(float)] = dsa_bf16_encode(scale);
        }
    }

    return DSA_OK;
}


/* Enqueues the copies of one piece. */

static int
dsa_read_piece(dsa_read_part_t *part, const dsa_read_entry_t *e,
    const dsa_scan_block_t *block, const dsa_piece_t *piece, dsa_err_t *err)
{
    int             rc;
    uint8_t        *to;
    uint64_t        width, stride;
    const uint8_t  *from;

    to = (uint8_t *) e->task->to + piece->to;
    from = block->data + piece->from;
    width = piece->width;
    stride = piece->stride;

    switch (e->task->kind) {

    case DSA_READ_WIDEN:
        memcpy(e->vector + piece->to, from, piece->width);
        return DSA_OK;

    case DSA_READ_SCALES:
        if (dsa_read_check_scales(part->read, block, piece, err) != DSA_OK) {
            return DSA_ERROR;
        }

        break;

    case DSA_READ_GROUPS:
        if (dsa_read_check_groups(part->read, block, piece, err) != DSA_OK) {
            return DSA_ERROR;
        }

        break;

    case DSA_READ_NARROW:
        if (dsa_read_narrow(part, block, piece, err) != DSA_OK) {
            return DSA_ERROR;
        }

        to = (uint8_t *) e->task->to + piece->to / 2;
        from = (uint8_t *) part->narrow + piece->from / 2;
        width = piece->width / 2;
        stride = piece->stride / 2;
        break;

    case DSA_READ_COPY:
    case DSA_READ_MADE:
        break;
    }

    if (part->read->check) {
        return DSA_OK;
    }

    if (piece->rows == 1) {
        rc = cudaMemcpyAsync(to, from, width, cudaMemcpyHostToDevice,
                             part->stream[e->list]);

    } else {
        rc = cudaMemcpy2DAsync(to, width, from, stride, width, piece->rows,
                               cudaMemcpyHostToDevice, part->stream[e->list]);
    }

    if (rc != 0) {
        return dsa_error(err, "copying weights to GPU %d: %s",
                         part->read->list[e->list].device,
                         dsa_cuda_error(rc));
    }

    return DSA_OK;
}


static int
dsa_read_block(void *data, const dsa_scan_block_t *block, dsa_err_t *err)
{
    size_t                   i;
    uint32_t                 k, n;
    dsa_piece_t              piece[DSA_PIECES_MAX];
    dsa_read_part_t         *part = data;
    const dsa_read_t        *r;
    const dsa_read_entry_t  *e;

    r = part->read;

    for (i = dsa_read_first(r, block->file, block->offset); i < r->n; i++) {
        e = &r->entry[i];

        if (e->file != block->file
            || e->begin >= block->offset + block->size)
        {
            break;
        }

        n = dsa_pieces(piece, &e->task->copy, e->matrix, block->offset,
                       block->size);

        for (k = 0; k < n; k++) {
            if (dsa_read_piece(part, e, block, &piece[k], err) != DSA_OK) {
                return DSA_ERROR;
            }
        }
    }

    return DSA_OK;
}
