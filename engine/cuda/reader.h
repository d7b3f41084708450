
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CUDA_READER_H_INCLUDED_
#define _DSA_CUDA_READER_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/checkpoint/shard.h"


/* A tensor, or a slice of one, and the place on the GPU where it belongs. */

typedef struct {
    uint8_t            *to;             /* device memory */
    const uint8_t      *from;           /* the tensor in host memory */
    dsa_slice_copy_t    copy;           /* the bytes of from */
    uint64_t            bytes;          /* of the destination */
    int                 widen;          /* 1: from BF16 to float32; the source
                                           is then in one piece */
} dsa_read_task_t;


/*
 * Copies n tasks of bytes in all to the current device.  Several threads read
 * at the same time, because a disk, or the page cache, is faster than one
 * thread; progress is logged.  Returns when everything is on the GPU.
 */
int dsa_cuda_read(const dsa_read_task_t *task, size_t n, uint64_t bytes,
    dsa_err_t *err);


#endif /* _DSA_CUDA_READER_H_INCLUDED_ */
