
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SAFETENSORS_H_INCLUDED_
#define _DSA_SAFETENSORS_H_INCLUDED_


#include "base/error.h"
#include "base/str.h"


/*
 * Reads one safetensors file: an 8-byte little-endian header length, a JSON
 * header of { name: { dtype, shape, data_offsets } }, then the data, which is
 * mapped, not copied.  Before any tensor is returned, every offset has been
 * checked against dtype, shape and the size of the file.
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
 * Maps a file.  NULL with err when it is truncated or violates the format:
 * overlaps and gaps between tensors, repeated names, sizes that do not follow
 * from dtype and shape, data that is not aligned to its elements.  Tensors and
 * their data live until dsa_st_close().  If the file is truncated while it is
 * mapped, reading it raises SIGBUS.
 */
dsa_st_t *dsa_st_open(const char *path, dsa_err_t *err);
void dsa_st_close(dsa_st_t *st);                    /* NULL is allowed */

/*
 * Reads the image of a file from memory, which must outlive the result (tests,
 * fuzzing).  Errors begin with name.
 */
dsa_st_t *dsa_st_read(const char *name, const void *image, uint64_t size,
    dsa_err_t *err);

/* Returns the number of tensors. */
uint32_t dsa_st_count(const dsa_st_t *st);

/*
 * Return the tensor with an index below dsa_st_count(), or with a name; NULL
 * if there is none.
 */
const dsa_st_tensor_t *dsa_st_at(const dsa_st_t *st, uint32_t i);
const dsa_st_tensor_t *dsa_st_find(const dsa_st_t *st, dsa_str_t name);

/* Returns the bytes of the header, for a fingerprint. */
dsa_str_t dsa_st_header(const dsa_st_t *st);

/*
 * Returns the address of the first byte of the file, and sets *size to its
 * size.
 */
const uint8_t *dsa_st_image(const dsa_st_t *st, uint64_t *size);


#endif /* _DSA_SAFETENSORS_H_INCLUDED_ */
