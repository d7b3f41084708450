
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SHARDS_H_INCLUDED_
#define _DSA_SHARDS_H_INCLUDED_


#include "base/error.h"
#include "engine/checkpoint/safetensors.h"


#define DSA_SHARDS_ALL      UINT32_MAX      /* layers */


/* The safetensors files of a checkpoint. */

typedef struct {
    dsa_st_t      **file;           /* [n], sorted by name */
    char          **path;           /* [n], of each file */
    uint32_t        n;
} dsa_shards_t;


/*
 * Opens the files that model.safetensors.index.json names, or, where there is
 * no such index, model.safetensors.  Each tensor must be in the file that the
 * index names for it, but those of the layers from number layers on may be
 * missing, and so may a file of nothing else.  DSA_ERROR with err, which begins
 * with the path of the directory or file.  The caller closes the shards in any
 * case.
 */
int dsa_shards_open(dsa_shards_t *shards, const char *dir, uint32_t layers,
    dsa_err_t *err);
void dsa_shards_close(dsa_shards_t *shards);

/* Returns the name of file i without its directory. */
const char *dsa_shards_name(const dsa_shards_t *shards, uint32_t i);

/*
 * Returns the index of the file whose mapping contains the address byte, and
 * sets *offset to the offset in that file.  The byte itself is not read.
 */
uint32_t dsa_shards_find(const dsa_shards_t *shards, const void *byte,
    uint64_t *offset);


#endif /* _DSA_SHARDS_H_INCLUDED_ */
