
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/checkpoint/config.h"
#include "engine/checkpoint/tensor_table.h"


/* F32 numbers that are 0 and infinite in BF16: halfway, and ties to even. */

#define DSA_TENSORS_ZERO        0x1p-134f
#define DSA_TENSORS_INFINITE    0x1.ffp127f


typedef enum {
    DSA_TENSOR_VECTOR = 0,          /* F32, BF16 */
    DSA_TENSOR_MATRIX,              /* F32, BF16 */
    DSA_TENSOR_LINEAR               /* F32, BF16, F8_E4M3 with its scale */
} dsa_tensor_kind_e;


static int dsa_tensors_copy(const dsa_tensor_table_t *table,
    const dsa_st_tensor_t *t);
static void dsa_tensors_get(dsa_tensor_table_t *table, dsa_tensor_t *t,
    const char *name, dsa_tensor_kind_e kind, uint32_t rows, uint32_t cols);
static int dsa_tensors_dtype(dsa_tensor_table_t *table,
    const dsa_st_tensor_t *s, dsa_tensor_kind_e kind, dsa_dtype_e *dtype);
static void dsa_tensors_scale(dsa_tensor_table_t *table, dsa_tensor_t *t,
    const char *name, const dsa_st_tensor_t *scale);
static void dsa_tensors_groups(dsa_tensor_table_t *table, dsa_tensor_t *t,
    const dsa_st_tensor_t *scale);
static void dsa_tensors_input(dsa_tensor_table_t *table, dsa_tensor_t *t,
    const dsa_st_tensor_t *input);
static const dsa_st_tensor_t *dsa_tensors_find(dsa_tensor_table_t *table,
    const char *name);
static void dsa_tensors_fault(dsa_tensor_table_t *table, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void dsa_tensors_mismatch(dsa_tensor_table_t *table,
    const dsa_st_tensor_t *s, const char *dtypes, uint32_t rows,
    uint32_t cols);


static float
dsa_tensors_bf16(uint16_t v)
{
    float     f;
    uint32_t  u;

    u = (uint32_t) v << 16;
    memcpy(&f, &u, sizeof(f));

    return f;
}


int
dsa_tensors_open(dsa_tensor_table_t *table, const dsa_shards_t *shards,
    const char *dir, dsa_err_t *err)
{
    uint32_t                i, j, n;
    uint64_t                total;
    const dsa_st_tensor_t  *t;

    memset(table, 0, sizeof(dsa_tensor_table_t));

    total = 0;

    for (i = 0; i < shards->n; i++) {
        total += dsa_st_count(shards->file[i]);
    }

    if (total > INT32_MAX) {
        return dsa_error(err, "%s: the checkpoint has %llu tensors; expected "
                         "at most %d", dir, (unsigned long long) total,
                         INT32_MAX);
    }

    table->entry = calloc((size_t) total + 1, sizeof(dsa_tensor_entry_t));

    if (table->entry == NULL
        || dsa_map_reserve(&table->names, (uint32_t) total) != DSA_OK)
    {
        return dsa_error(err, "%s: out of memory", dir);
    }

    for (i = 0; i < shards->n; i++) {
        n = dsa_st_count(shards->file[i]);

        for (j = 0; j < n; j++) {
            t = dsa_st_at(shards->file[i], j);

            if (dsa_map_add(&table->names, t->name, table->n) != DSA_OK) {
                if (dsa_tensors_copy(table, t)) {
                    continue;
                }

                return dsa_error(err, "%s: tensor \"%.*s\" is in two files",
                                 dir, (int) t->name.len, t->name.data);
            }

            table->entry[table->n++].tensor = t;
        }
    }

    return DSA_OK;
}


/*
 * Returns 1 if t is a scale of activations that another file has, too.
 * TensorRT-LLM's script copies them from a file, and then copies the file.
 */

static int
dsa_tensors_copy(const dsa_tensor_table_t *table, const dsa_st_tensor_t *t)
{
    const dsa_st_tensor_t  *other;

    static const dsa_str_t  scale = dsa_string(".input_scale");

    if (t->name.len < scale.len
        || memcmp(t->name.data + t->name.len - scale.len, scale.data,
                  scale.len)
           != 0)
    {
        return 0;
    }

    other = table->entry[*dsa_map_find(&table->names, t->name)].tensor;

    return dsa_str_eq(t->dtype, other->dtype) && t->size == other->size
           && t->size <= sizeof(float)
           && memcmp(t->data, other->data, t->size) == 0;
}


void
dsa_tensors_close(dsa_tensor_table_t *table)
{
    dsa_map_free(&table->names);
    free(table->entry);
}


void
dsa_tensors_prefix(dsa_tensor_table_t *table, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(table->prefix, sizeof(table->prefix), fmt, args);
    va_end(args);
}


void
dsa_tensors_vector(dsa_tensor_table_t *table, dsa_tensor_t *t,
    const char *name, uint32_t cols)
{
    dsa_tensors_get(table, t, name, DSA_TENSOR_VECTOR, 1, cols);
}


void
dsa_tensors_matrix(dsa_tensor_table_t *table, dsa_tensor_t *t,
    const char *name, uint32_t rows, uint32_t cols)
{
    dsa_tensors_get(table, t, name, DSA_TENSOR_MATRIX, rows, cols);
}


void
dsa_tensors_linear(dsa_tensor_table_t *table, dsa_tensor_t *t,
    const char *name, uint32_t rows, uint32_t cols)
{
    dsa_tensors_get(table, t, name, DSA_TENSOR_LINEAR, rows, cols);
}


void
dsa_tensors_int4(dsa_tensor_table_t *table, dsa_tensor_t *t, const char *name,
    const char *other, uint32_t rows, uint32_t cols, uint32_t stored)
{
    char                    full[4][256];
    uint32_t                i;
    const dsa_st_tensor_t  *s[4], *input;

    const char *const  part[][2] = {
        { name, "weight" },
        { name, "weight_scale_inv" },
        { name, "input_scale" },
        { other, "input_scale" }
    };

    for (i = 0; i < 4; i++) {
        (void) snprintf(full[i], sizeof(full[i]), "%s%s.%s", table->prefix,
                        part[i][0], part[i][1]);
        s[i] = dsa_tensors_find(table, full[i]);
    }

    if (table->unused) {
        return;
    }

    for (i = 0; i < 2; i++) {
        if (s[i] == NULL) {
            dsa_tensors_fault(table, "tensor \"%s\" is missing", full[i]);
            return;
        }
    }

    input = s[2] != NULL ? s[2] : s[3];

    if (stored && input == NULL) {
        dsa_tensors_fault(table, "tensor \"%s\" is missing, and so is \"%s\"; "
                          "expected one of them", full[2], full[3]);
        return;
    }

    if (!stored && input != NULL) {
        dsa_tensors_fault(table, "tensor \"%.*s\" is unknown; expected none, "
                          "because \"moe_activation_scheme\" of config.json "
                          "is \"dynamic\"", (int) input->name.len,
                          input->name.data);
        return;
    }

    if (s[2] != NULL && s[3] != NULL) {
        dsa_tensors_fault(table, "tensor \"%s\" has the meaning of \"%s\", "
                          "which is there, too; expected one of them",
                          full[3], full[2]);
        return;
    }

    if (!dsa_str_eqz(s[0]->dtype, "I8") || s[0]->n_dims != 2
        || s[0]->shape[0] != rows || s[0]->shape[1] != cols / 2)
    {
        dsa_tensors_mismatch(table, s[0], "I8, two INT4 numbers in each,",
                             rows, cols / 2);
        return;
    }

    if ((!dsa_str_eqz(s[1]->dtype, "F32") && !dsa_str_eqz(s[1]->dtype, "BF16"))
        || s[1]->n_dims != 2 || s[1]->shape[0] != rows
        || s[1]->shape[1] != cols / DSA_INT4_COLUMNS)
    {
        dsa_tensors_mismatch(table, s[1], "F32 or BF16", rows,
                             cols / DSA_INT4_COLUMNS);
        return;
    }

    t->dtype = DSA_INT4;
    t->rows = rows;
    t->cols = cols;
    t->data = s[0]->data;

    dsa_tensors_groups(table, t, s[1]);

    if (stored) {
        dsa_tensors_input(table, t, input);
    }
}


void
dsa_tensors_try(dsa_tensor_table_t *table)
{
    memcpy(table->kept_fault, table->fault, sizeof(table->fault));

    table->kept_faults = table->faults;
    table->faults = 0;
    table->fault[0] = '\0';
}


void
dsa_tensors_tried(dsa_tensor_table_t *table, char *fault, size_t size)
{
    (void) snprintf(fault, size, "%s", table->fault);

    memcpy(table->fault, table->kept_fault, sizeof(table->fault));

    table->faults = table->kept_faults;
}


int
dsa_tensors_report(dsa_tensor_table_t *table, const char *dir, dsa_err_t *err)
{
    uint32_t          i;
    const dsa_str_t  *name;

    for (i = 0; i < table->n; i++) {
        if (!table->entry[i].known) {
            name = &table->entry[i].tensor->name;

            dsa_tensors_fault(table, "tensor \"%.*s\" is unknown; expected "
                              "those of the model that config.json "
                              "describes", (int) name->len, name->data);
        }
    }

    if (table->faults > 1) {
        return dsa_error(err, "%s: %s (and %u more %s missing, invalid or "
                         "unknown)", dir, table->fault, table->faults - 1,
                         table->faults == 2 ? "tensor is" : "tensors are");
    }

    if (table->faults == 1) {
        return dsa_error(err, "%s: %s", dir, table->fault);
    }

    return DSA_OK;
}


static void
dsa_tensors_get(dsa_tensor_table_t *table, dsa_tensor_t *t, const char *name,
    dsa_tensor_kind_e kind, uint32_t rows, uint32_t cols)
{
    int                     fits;
    char                    full[256], scale_name[256];
    dsa_dtype_e             dtype;
    const dsa_st_tensor_t  *s, *scale;

    (void) snprintf(full, sizeof(full), "%s%s%s", table->prefix, name,
                    kind == DSA_TENSOR_VECTOR ? "" : ".weight");
    (void) snprintf(scale_name, sizeof(scale_name), "%s%s.weight_scale_inv",
                    table->prefix, name);

    s = dsa_tensors_find(table, full);
    scale = kind != DSA_TENSOR_VECTOR ? dsa_tensors_find(table, scale_name)
                                      : NULL;

    if (table->unused) {
        return;
    }

    if (s == NULL) {
        dsa_tensors_fault(table, "tensor \"%s\" is missing", full);
        return;
    }

    if (kind == DSA_TENSOR_VECTOR) {
        fits = s->n_dims == 1 && s->shape[0] == cols;

    } else {
        fits = s->n_dims == 2 && s->shape[0] == rows && s->shape[1] == cols;
    }

    switch (dsa_tensors_dtype(table, s, kind, &dtype)) {

    case DSA_OK:
        break;

    case DSA_AGAIN:
        return;

    default:
        fits = 0;
    }

    if (!fits) {
        dsa_tensors_mismatch(table, s, kind == DSA_TENSOR_LINEAR && table->fp8
                                       ? "F32, BF16 or F8_E4M3"
                                       : "F32 or BF16",
                             kind == DSA_TENSOR_VECTOR ? 0 : rows, cols);
        return;
    }

    t->dtype = dtype;
    t->rows = rows;
    t->cols = cols;
    t->data = s->data;

    if (dtype == DSA_E4M3) {
        dsa_tensors_scale(table, t, scale_name, scale);

    } else if (scale != NULL) {
        dsa_tensors_fault(table, "tensor \"%s\" is the scale of a weight of "
                          "dtype %.*s; expected none, because only F8_E4M3 "
                          "has scales", scale_name, (int) s->dtype.len,
                          s->dtype.data);
    }
}


/*
 * Sets the dtype.  DSA_ERROR: it is not allowed; DSA_AGAIN: the same, and the
 * fault is recorded already.
 */

static int
dsa_tensors_dtype(dsa_tensor_table_t *table, const dsa_st_tensor_t *s,
    dsa_tensor_kind_e kind, dsa_dtype_e *dtype)
{
    if (dsa_str_eqz(s->dtype, "F32")) {
        *dtype = DSA_F32;
        return DSA_OK;
    }

    if (dsa_str_eqz(s->dtype, "BF16")) {
        *dtype = DSA_BF16;
        return DSA_OK;
    }

    if (!dsa_str_eqz(s->dtype, "F8_E4M3") || kind != DSA_TENSOR_LINEAR) {
        return DSA_ERROR;
    }

    if (!table->fp8) {
        dsa_tensors_fault(table, "tensor \"%.*s\" is F8_E4M3; expected F32 or "
                          "BF16, because config.json has no "
                          "quantization_config", (int) s->name.len,
                          s->name.data);
        return DSA_AGAIN;
    }

    *dtype = DSA_E4M3;

    return DSA_OK;
}


/*
 * Looks up the scales.  In spite of its name, weight_scale_inv is the factor
 * of a block and not its inverse.
 */

static void
dsa_tensors_scale(dsa_tensor_table_t *table, dsa_tensor_t *t, const char *name,
    const dsa_st_tensor_t *scale)
{
    uint32_t      rows, cols;
    uint64_t      i, n;
    const float  *value;

    if (scale == NULL) {
        dsa_tensors_fault(table, "tensor \"%s\" is missing", name);
        return;
    }

    rows = (t->rows + DSA_FP8_BLOCK - 1) / DSA_FP8_BLOCK;
    cols = (t->cols + DSA_FP8_BLOCK - 1) / DSA_FP8_BLOCK;

    if (!dsa_str_eqz(scale->dtype, "F32") || scale->n_dims != 2
        || scale->shape[0] != rows || scale->shape[1] != cols)
    {
        dsa_tensors_mismatch(table, scale, "F32", rows, cols);
        return;
    }

    value = scale->data;
    n = table->unread ? 0 : (uint64_t) rows * cols;

    for (i = 0; i < n; i++) {
        if (!(value[i] > 0) || isinf(value[i])) {
            dsa_tensors_fault(table, "tensor \"%s\" has the scale %g at block "
                              "[%u, %u]; expected a finite number above 0",
                              name, (double) value[i], (uint32_t) (i / cols),
                              (uint32_t) (i % cols));
            return;
        }
    }

    t->scale = value;
}


/*
 * Checks the scales of an INT4 matrix.  Those in F32 stay as they are; what
 * uses them rounds them to BF16.
 */

static void
dsa_tensors_groups(dsa_tensor_table_t *table, dsa_tensor_t *t,
    const dsa_st_tensor_t *scale)
{
    float            value;
    uint32_t         cols;
    uint64_t         i, n;
    const float     *f32;
    const uint16_t  *bf16;

    f32 = dsa_str_eqz(scale->dtype, "F32") ? scale->data : NULL;
    bf16 = f32 == NULL ? scale->data : NULL;
    cols = t->cols / DSA_INT4_COLUMNS;
    n = table->unread ? 0 : (uint64_t) t->rows * cols;

    for (i = 0; i < n; i++) {
        value = f32 != NULL ? f32[i] : dsa_tensors_bf16(bf16[i]);

        if (!(value > DSA_TENSORS_ZERO && value < DSA_TENSORS_INFINITE)) {
            dsa_tensors_fault(table, "tensor \"%.*s\" has the scale %g at "
                              "[%u, %u]; expected a finite number above 0%s",
                              (int) scale->name.len, scale->name.data,
                              (double) value, (uint32_t) (i / cols),
                              (uint32_t) (i % cols),
                              f32 != NULL ? ", also when it is rounded to BF16"
                                          : "");
            return;
        }
    }

    t->scale = f32;
    t->groups = bf16;
}


/*
 * Reads the scale of activations: one number, with or without a dimension.  It
 * is read in any case, because nothing else has it than t->input.
 */

static void
dsa_tensors_input(dsa_tensor_table_t *table, dsa_tensor_t *t,
    const dsa_st_tensor_t *input)
{
    int  f32;

    f32 = dsa_str_eqz(input->dtype, "F32");

    if ((!f32 && !dsa_str_eqz(input->dtype, "BF16"))
        || input->size != (f32 ? sizeof(float) : sizeof(uint16_t)))
    {
        dsa_tensors_mismatch(table, input, "F32 or BF16", 0, 1);
        return;
    }

    t->input = f32 ? *(const float *) input->data
                   : dsa_tensors_bf16(*(const uint16_t *) input->data);

    if (!(t->input > 0) || isinf(t->input)) {
        dsa_tensors_fault(table, "tensor \"%.*s\" is %g; expected a finite "
                          "number above 0", (int) input->name.len,
                          input->name.data, (double) t->input);
    }
}


static const dsa_st_tensor_t *
dsa_tensors_find(dsa_tensor_table_t *table, const char *name)
{
    uint64_t  *i;

    i = dsa_map_find(&table->names, dsa_strz(name));

    if (i == NULL) {
        return NULL;
    }

    table->entry[*i].known = 1;

    return table->entry[*i].tensor;
}


/* Counts a wrong tensor, and keeps the text of the first one. */

static void
dsa_tensors_fault(dsa_tensor_table_t *table, const char *fmt, ...)
{
    va_list  args;

    if (table->faults++ != 0) {
        return;
    }

    va_start(args, fmt);
    (void) vsnprintf(table->fault, sizeof(table->fault), fmt, args);
    va_end(args);
}


/* Records a wrong shape or dtype.  rows is 0 if a vector is expected. */

static void
dsa_tensors_mismatch(dsa_tensor_table_t *table, const dsa_st_tensor_t *s,
    const char *dtypes, uint32_t rows, uint32_t cols)
{
    int       n;
    char      shape[DSA_ST_MAX_DIMS * 24], expected[32];
    uint32_t  i;

    n = 0;
    shape[0] = '\0';

    for (i = 0; i < s->n_dims; i++) {
        n += snprintf(shape + n, sizeof(shape) - n, "%s%llu",
                      i != 0 ? ", " : "", (unsigned long long) s->shape[i]);
    }

    if (rows != 0) {
        (void) snprintf(expected, sizeof(expected), "%u, %u", rows, cols);

    } else {
        (void) snprintf(expected, sizeof(expected), "%u", cols);
    }

    dsa_tensors_fault(table, "tensor \"%.*s\" is %.*s [%s]; expected %s [%s]",
                      (int) s->name.len, s->name.data, (int) s->dtype.len,
                      s->dtype.data, shape, dtypes, expected);
}
