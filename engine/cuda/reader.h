
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
    DSA_READ_GROUPS,                    /* the same in BF16 */
    DSA_READ_NARROW,                    /* from float32 to BF16, rounded, which
                                           is checked likewise */
    DSA_READ_WIDEN,                     /* from BF16 to float32; in one run */
    DSA_READ_MADE                       /* from memory, not from the files */
} dsa_read_e;


/* A tensor or a slice of one, and its destination on the GPU. */

typedef struct {
    void               *to;             /* device memory */
    const void         *from;           /* the mapped tensor; only its address
                                           is used, to find it in its file.
                                           DSA_READ_MADE: the tensor */
    dsa_slice_copy_t    copy;           /* the bytes of the tensor, also if
                                           others are written to the GPU */
    dsa_read_e          kind;
} dsa_read_task_t;


/* The reads for one rank. */

typedef struct {
    int                 device;
    dsa_read_task_t    *task;           /* [n], of malloc() */
    size_t              n;
    size_t              room;
} dsa_read_list_t;


/*
 * Reads all files of a checkpoint once (dsa_scan()), and copies the bytes in
 * each list to its GPU, and those of tensors in memory.  Writes the full
 * fingerprint.  All copies are complete when it returns; the caller's current
 * device is not changed.  DSA_ERROR with err: see dsa_scan(), or a scale that
 * is not a finite number above 0, also rounded to BF16 where it is, or an error
 * of CUDA.
 */
int dsa_cuda_read(const dsa_weights_t *weights, const dsa_read_list_t *list,
    uint32_t lists, char fingerprint[DSA_FULL_LEN + 1], dsa_err_t *err);

/*
 * The same without the copies: it reads all files and checks what
 * dsa_cuda_read() would, and changes nothing on the GPUs.
 */
int dsa_cuda_read_check(const dsa_weights_t *weights,
    const dsa_read_list_t *list, uint32_t lists,
    char fingerprint[DSA_FULL_LEN + 1], dsa_err_t *err);


#endif /* _DSA_CUDA_READER_H_INCLUDED_ */
