
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SAFETENSORS_WRITE_H_INCLUDED_
#define _DSA_SAFETENSORS_WRITE_H_INCLUDED_


#include "engine/checkpoint/safetensors.h"


/*
 * Writes a safetensors file, for the command line and for tests: the engine
 * only reads the format.  The data comes from t[i].data, in an order that keeps
 * each tensor aligned to its elements; t[i].size must follow from dtype and
 * shape.  DSA_ERROR with err; dsa_st_open() rejects the incomplete file that a
 * failed write leaves, because the header comes first.
 */
int dsa_st_write(const char *path, const dsa_st_tensor_t *t, uint32_t n,
    dsa_err_t *err);


#endif /* _DSA_SAFETENSORS_WRITE_H_INCLUDED_ */
