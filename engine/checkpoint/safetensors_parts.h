
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SAFETENSORS_PARTS_H_INCLUDED_
#define _DSA_SAFETENSORS_PARTS_H_INCLUDED_


#include "base/arena.h"
#include "base/map.h"
#include "engine/checkpoint/safetensors.h"


/* Shared by the files that read and write the format. */

#define DSA_ST_PREFIX           8               /* the header's length */


typedef struct {
    const char         *name;
    uint32_t            size;                   /* bytes of an element */
} dsa_st_dtype_t;


struct dsa_st_s {
    void               *mapping;                /* NULL after dsa_st_read() */
    uint64_t            size;
    const uint8_t      *image;
    dsa_str_t           header;
    dsa_arena_t        *arena;                  /* of the names */
    dsa_map_t           names;                  /* to an index of tensor[] */
    dsa_st_tensor_t    *tensor;                 /* in the header's order */
    uint32_t            n;
    uint32_t            alloc;
};


/*
 * safetensors_header.c.  Reads st->header into st->tensor and st->names, and
 * checks each tensor on its own.  DSA_ERROR with err.
 */
int dsa_st_parse_header(dsa_st_t *st, const char *file, dsa_err_t *err);

/* safetensors.c.  Returns NULL if the dtype is not supported. */
const dsa_st_dtype_t *dsa_st_dtype(dsa_str_t name);

/* Computes the bytes of a tensor.  DSA_ERROR: they exceed 63 bits. */
int dsa_st_bytes(const dsa_st_tensor_t *t, uint32_t element, uint64_t *bytes);


#endif /* _DSA_SAFETENSORS_PARTS_H_INCLUDED_ */
