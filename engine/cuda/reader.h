
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CUDA_READER_H_INCLUDED_
#define _DSA_CUDA_READER_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/checkpoint/fingerprint.h"
#include "engine/checkpoint/shard.h"
#include "engine/checkpoint/weights.h"


typedef enum {
    DSA_READ_COPY = 0,
    DSA_READ_SCALES,                    /* float32, finite and above 0, which
                                           is checked */
    DSA_READ_WIDEN                      /* from BF16 to float32; in one run */
} dsa_read_e;


/* A tensor, or a slice of one, and the place on the GPU where it belongs. */

typedef struct {
    void               *to;             /* device memory */
    const void         *from;           /* the tensor where it is mapped, which
                                           locates it in its file; not read
                                           there */
    dsa_slice_copy_t    copy;           /* the bytes of the tensor */
    dsa_read_e          kind;
} dsa_read_task_t;


/* What is read for one rank. */

typedef struct {
    int                 device;
    dsa_read_task_t    *task;           /* [n], of malloc() */
    size_t              n;
    size_t              room;
} dsa_read_list_t;


/*
 * Reads all files of a checkpoint once (dsa_scan()) and copies to several GPUs
 * what their lists have, each byte to each GPU that needs it.  Writes the full
 * fingerprint.  Waits until everything is on the GPUs; the caller's current
 * device stays.  DSA_ERROR with err: see dsa_scan(), or a scale that is not a
 * finite number above 0, or an error of CUDA.
 */
int dsa_cuda_read(const dsa_weights_t *weights, const dsa_read_list_t *list,
    uint32_t lists, char fingerprint[DSA_FULL_LEN + 1], dsa_err_t *err);


#endif /* _DSA_CUDA_READER_H_INCLUDED_ */
