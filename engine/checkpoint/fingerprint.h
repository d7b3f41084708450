
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_FINGERPRINT_H_INCLUDED_
#define _DSA_FINGERPRINT_H_INCLUDED_


#include "base/error.h"
#include "base/str.h"
#include "engine/checkpoint/tensor_table.h"


/*
 * Cached pages are valid for one checkpoint only, so two checkpoints that
 * differ must have different fingerprints.  config.json here is its text
 * and those of the files beside it that set formats, one after another
 * (dsa_model_config_beside()).  There are two kinds, and their values are not
 * comparable:
 *
 *     sampled   is computed when a checkpoint is opened.  It covers
 *               config.json, the headers of all files, and with them the sizes
 *               of the files, and the first 4 KiB of every F32 tensor (norms,
 *               biases, scales), of the scales of INT4 experts and of their
 *               activations, and of every tensor outside of the experts.
 *               Training changes all of these.
 *     full      is computed while all files are read.  It covers config.json
 *               and every byte of the files.
 */

#define DSA_SAMPLED_LEN     32              /* hex digits */
#define DSA_FULL_LEN        64

#define DSA_LEAF_SIZE       (8U << 20)      /* bytes; the last leaf of a file
                                               may have fewer */
#define DSA_LEAF_HASH       32              /* bytes */


/*
 * Writes the sampled fingerprint and a NUL to out.  dir is for errors.
 * DSA_ERROR with err.
 */
int dsa_fingerprint_sampled(char out[DSA_SAMPLED_LEN + 1], const char *dir,
    dsa_str_t config, const dsa_shards_t *shards,
    const dsa_tensor_table_t *table, dsa_err_t *err);

/*
 * Computes the SHA-256 of n bytes: of a leaf, or of config.json.  DSA_ERROR
 * with err.
 */
int dsa_fingerprint_leaf(uint8_t out[DSA_LEAF_HASH], const void *data,
    size_t n, dsa_err_t *err);

/* Returns the number of leaves of a file of size bytes. */

static inline uint64_t
dsa_fingerprint_leaves(uint64_t size)
{
    return (size + DSA_LEAF_SIZE - 1) / DSA_LEAF_SIZE;
}

/*
 * Writes the full fingerprint and a NUL to out.  It is the SHA-256 of
 *
 *     the SHA-256 of config.json, 32 bytes
 *     the number of files
 *     for each file, sorted by name:
 *         the length of its name, and the name without its directory
 *         its size in bytes
 *         the SHA-256 of each of its leaves, 32 bytes each
 *
 * where numbers are 64-bit little-endian.  leaf has the hashes of the leaves
 * of all files in this order; in which order they were computed does not
 * matter.  DSA_ERROR with err.
 */
int dsa_fingerprint_full(char out[DSA_FULL_LEN + 1],
    const uint8_t config[DSA_LEAF_HASH], const dsa_shards_t *shards,
    const uint8_t (*leaf)[DSA_LEAF_HASH], dsa_err_t *err);


#endif /* _DSA_FINGERPRINT_H_INCLUDED_ */
