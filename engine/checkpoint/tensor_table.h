
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TENSOR_TABLE_H_INCLUDED_
#define _DSA_TENSOR_TABLE_H_INCLUDED_


#include "base/error.h"
#include "base/map.h"
#include "engine/checkpoint/shards.h"
#include "engine/checkpoint/tensor.h"


/*
 * All tensors of a checkpoint by name, for the check against the tensors of a
 * model.  The caller looks up each tensor of the model with its shape, then
 * calls dsa_tensors_report(), which fails if a tensor was missing, had another
 * shape or dtype, or was never looked up.  So the error has the number of all
 * wrong tensors.
 */

typedef struct {
    const dsa_st_tensor_t      *tensor;
    uint32_t                    known;          /* 1: it was looked up */
} dsa_tensor_entry_t;


typedef struct {
    dsa_map_t                   names;          /* to an index of entry[] */
    dsa_tensor_entry_t         *entry;          /* [n] */
    uint32_t                    n;

    uint32_t                    fp8;            /* 1: F8_E4M3 is allowed
                                                   in the next look-ups */
    uint32_t                    unread;         /* 1: scales of weights are not
                                                   read, and hence not checked;
                                                   those of activations are */
    uint32_t                    unused;         /* 1: look-ups only mark the
                                                   tensor as known */
    char                        prefix[128];    /* of the names looked up */

    char                        fault[384];     /* the first one */
    uint32_t                    faults;
    char                        kept_fault[384];        /* while tensors are
                                                   tried, those before */
    uint32_t                    kept_faults;
} dsa_tensor_table_t;


/*
 * Opens a table; dir is for errors.  DSA_ERROR with err: two shards have a
 * tensor with the same name, unless it is an input_scale of the same dtype and
 * bytes in both, or out of memory.  The caller closes the table in any case.
 */
int dsa_tensors_open(dsa_tensor_table_t *table, const dsa_shards_t *shards,
    const char *dir, dsa_err_t *err);
void dsa_tensors_close(dsa_tensor_table_t *table);

/* Sets the prefix of the names in the calls below. */
void dsa_tensors_prefix(dsa_tensor_table_t *table, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Look up a tensor and set *t; *t is unchanged when the tensor is wrong.  A
 * vector has the name PREFIX NAME, a matrix PREFIX NAME .weight.  Vectors and
 * matrices are F32 or BF16.  A linear layer may be F8_E4M3, if table->fp8 is
 * 1, with the scales PREFIX NAME .weight_scale_inv, which are finite and
 * above 0.
 */
void dsa_tensors_vector(dsa_tensor_table_t *table, dsa_tensor_t *t,
    const char *name, uint32_t cols);
void dsa_tensors_matrix(dsa_tensor_table_t *table, dsa_tensor_t *t,
    const char *name, uint32_t rows, uint32_t cols);
void dsa_tensors_linear(dsa_tensor_table_t *table, dsa_tensor_t *t,
    const char *name, uint32_t rows, uint32_t cols);

/*
 * Looks up an INT4 matrix: PREFIX NAME .weight is I8 [rows, cols / 2], PREFIX
 * NAME .weight_scale_inv is F32 or BF16 [rows, cols / 128], and with stored 1
 * PREFIX NAME .input_scale, or PREFIX OTHER .input_scale instead, is one
 * number, F32 or BF16; with stored 0 it must not exist.  All scales are finite
 * and above 0, those of F32 [rows, cols / 128] also when they are rounded to
 * BF16.  cols is a multiple of 128.
 */
void dsa_tensors_int4(dsa_tensor_table_t *table, dsa_tensor_t *t,
    const char *name, const char *other, uint32_t rows, uint32_t cols,
    uint32_t stored);

/*
 * Faults of the look-ups between these calls are not errors of the checkpoint:
 * the first one is written to fault [size], which is empty if there is none.
 */
void dsa_tensors_try(dsa_tensor_table_t *table);
void dsa_tensors_tried(dsa_tensor_table_t *table, char *fault, size_t size);

/*
 * Returns DSA_ERROR with err if a look-up failed or a tensor was not looked
 * up.
 */
int dsa_tensors_report(dsa_tensor_table_t *table, const char *dir,
    dsa_err_t *err);


#endif /* _DSA_TENSOR_TABLE_H_INCLUDED_ */
