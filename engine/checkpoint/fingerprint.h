
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_FINGERPRINT_H_INCLUDED_
#define _DSA_FINGERPRINT_H_INCLUDED_


#include "base/error.h"
#include "base/str.h"
#include "engine/checkpoint/tensor_table.h"


#define DSA_FINGERPRINT_LEN     32              /* hex digits */


/*
 * Writes the fingerprint of a checkpoint and a NUL to out.  Cached pages are
 * valid for one checkpoint only, so two checkpoints that differ must have
 * different fingerprints.
 *
 * The fingerprint covers config.json, the headers of all files, and with them
 * the sizes of the files, and the first 4 KiB of every F32 tensor (norms,
 * biases, scales) and of every tensor outside of the experts.  Training changes
 * all of these; to read every byte of the weights would take minutes.
 *
 * dir is for errors.  DSA_ERROR with err.
 */
int dsa_fingerprint(char out[DSA_FINGERPRINT_LEN + 1], const char *dir,
    dsa_str_t config, const dsa_shards_t *shards,
    const dsa_tensor_table_t *table, dsa_err_t *err);


#endif /* _DSA_FINGERPRINT_H_INCLUDED_ */
