
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SAFETENSORS_H_INCLUDED_
#define _DSA_SAFETENSORS_H_INCLUDED_


#include "base/error.h"
#include "base/str.h"


/*
 * One safetensors file: an 8-byte little-endian header length, a JSON header
 * of { name: { dtype, shape, data_offsets } }, then the data.  Read by mmap;
 * every offset is checked against dtype, shape and the file's size before
 * anything is handed out.
 */

#define DSA_ST_MAX_DIMS     4


typedef struct {
    dsa_str_t       name;
    dsa_str_t       dtype;                      /* as written: F32, BF16,
                                                   F8_E4M3, I32, ... */
    uint32_t        n_dims;
    uint64_t        shape[DSA_ST_MAX_DIMS];
    uint64_t        size;                       /* bytes */
    const void     *data;
} dsa_st_tensor_t;


typedef struct dsa_st_s  dsa_st_t;


/*
 * Maps a file.  NULL with err when it is truncated, or anything in its header
 * is not as the format has it: overlaps and gaps between tensors, names that
 * stand twice, sizes that do not follow from dtype and shape, data that is not
 * aligned to its element.  Tensors and their data live until dsa_st_close().
 * A file that is truncated while it is mapped raises SIGBUS, as any mapped
 * file does.
 */
dsa_st_t *dsa_st_open(const char *path, dsa_err_t *err);
void dsa_st_close(dsa_st_t *st);                    /* NULL is allowed */

/*
 * Reads a file's image from memory, which must outlive st (tests, fuzzing).
 * name stands in errors.
 */
dsa_st_t *dsa_st_read(const char *name, const void *image, uint64_t size,
    dsa_err_t *err);

uint32_t dsa_st_count(const dsa_st_t *st);
const dsa_st_tensor_t *dsa_st_at(const dsa_st_t *st, uint32_t i);
const dsa_st_tensor_t *dsa_st_find(const dsa_st_t *st, dsa_str_t name);

/* The header's bytes, for a fingerprint. */
dsa_str_t dsa_st_header(const dsa_st_t *st);


/*
 * Writes a file: tensor data are written from t[i].data, in an order that
 * keeps each aligned to its element; size has to follow from dtype and shape.
 * DSA_OK, or DSA_ERROR with err; what a failed write leaves behind is refused
 * by dsa_st_open(), since the header comes first.
 */
int dsa_st_write(const char *path, const dsa_st_tensor_t *t, uint32_t n,
    dsa_err_t *err);


#endif /* _DSA_SAFETENSORS_H_INCLUDED_ */
