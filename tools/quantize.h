
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOOLS_QUANTIZE_H_INCLUDED_
#define _DSA_TOOLS_QUANTIZE_H_INCLUDED_


#include <limits.h>

#include "base/threads.h"
#include "engine/checkpoint/tensor_table.h"
#include "engine/checkpoint/weights.h"
#include "engine/quantize_int4.h"


/* The parts of dsa quantize. */

typedef struct {
    const char             *in;
    const char             *out;
    int                     lock;       /* of out, while the process lives; -1:
                                           none */
    dsa_weights_t          *weights;    /* of in */
    dsa_tensor_table_t      table;      /* of in */
    dsa_threads_t          *pool;
    dsa_quantize_loss_t     loss;       /* of the shards written by this run */
    uint64_t                bytes;      /* of all tensors of all shards */
    dsa_err_t              *err;
} dsa_quantize_t;


/*
 * quantize_shard.c.  Makes shard i of q->weights in q->out, with the same name,
 * unless it is there.  The file appears under its name when it is complete and
 * on the disk.  DSA_ERROR with q->err; then there is no new file.
 */
int dsa_quantize_shard(dsa_quantize_t *q, uint32_t i);


/*
 * quantize_files.c.  The other files of the directory.
 *
 * begin: makes the directory if there is none, locks it, and takes it for this
 * checkpoint.  DSA_ERROR with q->err: it is that of q->in, or another process
 * works on it, or it has files of another origin.
 *
 * end: copies the files beside the weights, and writes the index, and then
 * config.json, without which the directory does not load.
 */
int dsa_quantize_begin(dsa_quantize_t *q);
int dsa_quantize_end(dsa_quantize_t *q);

/*
 * Gives the complete file PATH.part, which is closed, its name, after its
 * bytes are on the disk.  DSA_ERROR with err, and PATH.part is removed.
 */
int dsa_quantize_name(const char *path, dsa_err_t *err);

/* Sets part to PATH.part. */
int dsa_quantize_part(char part[PATH_MAX], const char *path, dsa_err_t *err);


#endif /* _DSA_TOOLS_QUANTIZE_H_INCLUDED_ */
