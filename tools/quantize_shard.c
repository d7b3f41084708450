
/*
 * Copyright (C) The nginx-dsa authors
 *
 * dsa quantize: one shard.
 */


#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "engine/checkpoint/safetensors_write.h"
#include "tools/quantize.h"


#define DSA_QUANTIZE_WEIGHT     ".weight"
#define DSA_QUANTIZE_SCALE      ".weight_scale_inv"
#define DSA_QUANTIZE_SHOW_MS    5000    /* between two lines */


/* A matrix of an expert of which the shard has the weight or the scales. */

typedef struct {
    dsa_tensor_t            fp8;
    uint8_t                *q;
    uint16_t               *scale;
} dsa_quantize_matrix_t;


typedef struct {
    dsa_quantize_t         *quantize;
    const dsa_st_t         *file;
    const char             *name;
    dsa_st_tensor_t        *tensor;     /* [count] of the new file */
    uint32_t                count;
    dsa_quantize_matrix_t  *matrix;     /* [matrices] */
    uint32_t                matrices;
    dsa_map_t               names;      /* index of matrix[] by the name without
                                           its end */
    uint32_t                number;     /* of the shard, from 1 */
} dsa_quantize_shard_t;


static int dsa_quantize_plan(dsa_quantize_shard_t *s);
static int dsa_quantize_find(dsa_quantize_shard_t *s, dsa_str_t name,
    dsa_quantize_matrix_t *m);
static int dsa_quantize_same(const dsa_quantize_shard_t *s, const char *path);
static int dsa_quantize_compute(dsa_quantize_shard_t *s);
static void dsa_quantize_free(dsa_quantize_shard_t *s);


int
dsa_quantize_shard(dsa_quantize_t *q, uint32_t i)
{
    int                   rc, there;
    char                  path[PATH_MAX], part[PATH_MAX];
    uint32_t              k;
    dsa_quantize_shard_t  s;

    memset(&s, 0, sizeof(s));

    s.quantize = q;
    s.file = q->weights->shards->file[i];
    s.name = dsa_shards_name(q->weights->shards, i);
    s.number = i + 1;

    rc = dsa_file_path(path, q->out, dsa_strz(s.name), q->err);
    rc = rc != DSA_OK ? rc : dsa_quantize_part(part, path, q->err);
    rc = rc != DSA_OK ? rc : dsa_quantize_plan(&s);

    there = rc == DSA_OK && access(path, F_OK) == 0;

    if (there) {
        rc = dsa_quantize_same(&s, path);
    }

    if (rc == DSA_OK && !there) {
        rc = dsa_quantize_compute(&s);

        if (rc == DSA_OK) {
            rc = dsa_st_write(part, s.tensor, s.count, q->err);

            if (rc != DSA_OK) {
                (void) unlink(part);
            }
        }

        rc = rc != DSA_OK ? rc : dsa_quantize_name(path, q->err);
    }

    if (rc == DSA_OK) {
        for (k = 0; k < s.count; k++) {
            q->bytes += s.tensor[k].size;
        }

        (void) printf("%s: %u of %u, %u matrices of experts%s\n", s.name,
                      s.number, q->weights->shards->n, s.matrices,
                      there ? ", was there" : "");
        (void) fflush(stdout);
    }

    dsa_quantize_free(&s);

    return rc;
}


/*
 * Returns 1 if the tensor is the weight, or 2 if it is the scales of a matrix
 * of a routed expert, and sets base to its name without that end.
 */

static int
dsa_quantize_expert(dsa_str_t *base, dsa_str_t name)
{
    size_t  i, len;

    static const char *const  ends[] = {
        DSA_QUANTIZE_WEIGHT, DSA_QUANTIZE_SCALE
    };

    if (memmem(name.data, name.len, ".mlp.experts.", 13) == NULL) {
        return 0;
    }

    for (i = 0; i < 2; i++) {
        len = strlen(ends[i]);

        if (name.len > len
            && memcmp(name.data + name.len - len, ends[i], len) == 0)
        {
            *base = dsa_str(name.data, name.len - len);
            return (int) i + 1;
        }
    }

    return 0;
}


/* Describes the tensors of the new file; data of experts is made later. */

static int
dsa_quantize_plan(dsa_quantize_shard_t *s)
{
    int                     kind;
    uint32_t                i, count;
    dsa_str_t               base;
    dsa_st_tensor_t        *t;
    dsa_quantize_matrix_t  *m, found;

    count = dsa_st_count(s->file);
    s->tensor = calloc((size_t) count + 1, sizeof(dsa_st_tensor_t));
    s->matrix = calloc((size_t) count + 1, sizeof(dsa_quantize_matrix_t));

    if (s->tensor == NULL || s->matrix == NULL
        || dsa_map_reserve(&s->names, count) != DSA_OK)
    {
        return dsa_error(s->quantize->err, "%s: out of memory", s->name);
    }

    for (i = 0; i < count; i++) {
        t = &s->tensor[s->count++];
        *t = *dsa_st_at(s->file, i);
        kind = dsa_quantize_expert(&base, t->name);

        if (kind == 0) {
            continue;
        }

        if (dsa_quantize_find(s, base, &found) != DSA_OK) {
            return DSA_ERROR;
        }

        if (dsa_map_find(&s->names, base) == NULL) {
            m = &s->matrix[s->matrices];
            *m = found;
            (void) dsa_map_add(&s->names, base, s->matrices++);
        }

        t->data = NULL;
        t->n_dims = 2;
        t->shape[0] = found.fp8.rows;

        if (kind == 1) {
            t->dtype = dsa_strz("I8");
            t->shape[1] = found.fp8.cols / 2;
            t->size = t->shape[0] * t->shape[1];

        } else {
            t->dtype = dsa_strz("BF16");
            t->shape[1] = found.fp8.cols / DSA_INT4_COLUMNS;
            t->size = t->shape[0] * t->shape[1] * sizeof(uint16_t);
        }
    }

    return DSA_OK;
}


/*
 * Finds the weight and the scales of a matrix in any shard.  Those of the
 * layers that the engine uses have been checked; this is for the others, too.
 */

static int
dsa_quantize_find(dsa_quantize_shard_t *s, dsa_str_t base,
    dsa_quantize_matrix_t *m)
{
    char                    name[256];
    uint32_t                i;
    uint64_t               *at;
    dsa_quantize_t         *q = s->quantize;
    const dsa_st_tensor_t  *t[2];

    static const char *const  ends[] = {
        DSA_QUANTIZE_WEIGHT, DSA_QUANTIZE_SCALE
    };

    for (i = 0; i < 2; i++) {
        (void) snprintf(name, sizeof(name), "%.*s%s", (int) base.len,
                        base.data, ends[i]);

        at = dsa_map_find(&q->table.names, dsa_strz(name));
        t[i] = at != NULL ? q->table.entry[*at].tensor : NULL;

        if (t[i] == NULL) {
            return dsa_error(q->err, "%s: tensor \"%s\" is missing", q->in,
                             name);
        }
    }

    memset(m, 0, sizeof(dsa_quantize_matrix_t));

    if (!dsa_str_eqz(t[0]->dtype, "F8_E4M3") || t[0]->n_dims != 2
        || t[0]->shape[0] > INT32_MAX || t[0]->shape[1] > INT32_MAX
        || t[0]->shape[1] % DSA_INT4_COLUMNS != 0)
    {
        return dsa_error(q->err, "%s: tensor \"%.*s\" is %.*s; expected "
                         "F8_E4M3 [rows, a multiple of %d]", q->in,
                         (int) t[0]->name.len, t[0]->name.data,
                         (int) t[0]->dtype.len, t[0]->dtype.data,
                         DSA_INT4_COLUMNS);
    }

    if (!dsa_str_eqz(t[1]->dtype, "F32") || t[1]->n_dims != 2
        || t[1]->shape[0] != (t[0]->shape[0] + DSA_FP8_BLOCK - 1)
                             / DSA_FP8_BLOCK
        || t[1]->shape[1] != t[0]->shape[1] / DSA_FP8_BLOCK)
    {
        return dsa_error(q->err, "%s: tensor \"%.*s\" has not the shape of the "
                         "scales of its weight; expected F32 for blocks of "
                         "128x128", q->in, (int) t[1]->name.len,
                         t[1]->name.data);
    }

    m->fp8.dtype = DSA_E4M3;
    m->fp8.rows = (uint32_t) t[0]->shape[0];
    m->fp8.cols = (uint32_t) t[0]->shape[1];
    m->fp8.data = t[0]->data;
    m->fp8.scale = t[1]->data;

    return DSA_OK;
}


/*
 * Checks a file that an earlier run has made: it is complete, because only
 * complete files get their names.
 */

static int
dsa_quantize_same(const dsa_quantize_shard_t *s, const char *path)
{
    int                     same;
    uint32_t                i;
    dsa_st_t               *st;
    dsa_err_t              *err;
    const dsa_st_tensor_t  *a, *b;

    err = s->quantize->err;
    st = dsa_st_open(path, err);

    if (st == NULL) {
        return DSA_ERROR;
    }

    same = dsa_st_count(st) == s->count;

    for (i = 0; i < s->count && same; i++) {
        a = &s->tensor[i];
        b = dsa_st_find(st, a->name);
        same = b != NULL && dsa_str_eq(a->dtype, b->dtype)
               && a->size == b->size && a->n_dims == b->n_dims
               && memcmp(a->shape, b->shape, a->n_dims * sizeof(uint64_t))
                  == 0;
    }

    dsa_st_close(st);

    return same ? DSA_OK
                : dsa_error(err, "%s: the file has other tensors than this "
                            "command writes; remove it", path);
}


/* Quantizes the matrices of the shard, with a line every few seconds. */

static int
dsa_quantize_compute(dsa_quantize_shard_t *s)
{
    int                     kind;
    uint32_t                i;
    uint64_t                n, shown;
    dsa_str_t               base;
    dsa_quantize_t         *q = s->quantize;
    dsa_quantize_matrix_t  *m;

    shown = dsa_clock_ms();

    for (i = 0; i < s->matrices; i++) {
        m = &s->matrix[i];
        n = (uint64_t) m->fp8.rows * m->fp8.cols;
        m->q = malloc(n / 2 + 1);
        m->scale = malloc(n / DSA_INT4_COLUMNS * sizeof(uint16_t) + 1);

        if (m->q == NULL || m->scale == NULL) {
            return dsa_error(q->err, "%s: no memory for the experts of one "
                             "shard", s->name);
        }

        if (dsa_quantize_int4(q->pool, m->q, m->scale, &m->fp8, &q->loss)
            != DSA_OK)
        {
            return dsa_error(q->err, "%s: a weight of an expert [%u, %u] is "
                             "not a finite number", s->name, m->fp8.rows,
                             m->fp8.cols);
        }

        if (dsa_clock_ms() - shown >= DSA_QUANTIZE_SHOW_MS) {
            shown = dsa_clock_ms();
            (void) printf("%s: %u of %u, %u of %u matrices of experts\n",
                          s->name, s->number, q->weights->shards->n, i + 1,
                          s->matrices);
            (void) fflush(stdout);
        }
    }

    for (i = 0; i < s->count; i++) {
        kind = dsa_quantize_expert(&base, s->tensor[i].name);

        if (kind != 0) {
            m = &s->matrix[*dsa_map_find(&s->names, base)];
            s->tensor[i].data = kind == 1 ? (void *) m->q : (void *) m->scale;
        }
    }

    return DSA_OK;
}


static void
dsa_quantize_free(dsa_quantize_shard_t *s)
{
    uint32_t  i;

    for (i = 0; i < s->matrices; i++) {
        free(s->matrix[i].q);
        free(s->matrix[i].scale);
    }

    dsa_map_free(&s->names);
    free(s->matrix);
    free(s->tensor);
}
