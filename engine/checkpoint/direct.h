
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_DIRECT_H_INCLUDED_
#define _DSA_DIRECT_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>

#include "base/error.h"


/*
 * Reads a large file once without filling the page cache: by direct I/O, or,
 * if the file system does not support it, through the page cache, whose pages
 * are dropped after each read.
 */

#define DSA_DIRECT_ALIGN    4096        /* of memory, offsets and sizes */


typedef struct {
    const char     *path;               /* owned by the caller */
    uint64_t        size;
    int             fd;                 /* -1: closed */
    int             direct;             /* 0: through the page cache */
} dsa_direct_t;


/*
 * Opens the file at path, which must have size bytes.  DSA_ERROR with err,
 * which begins with path; f is then closed.
 */
int dsa_direct_open(dsa_direct_t *f, const char *path, uint64_t size,
    dsa_err_t *err);
void dsa_direct_close(dsa_direct_t *f);         /* also if it is closed */

/*
 * Reads n bytes at offset to memory that has room for n rounded up to
 * DSA_DIRECT_ALIGN.  to and offset are multiples of DSA_DIRECT_ALIGN; n is
 * too, unless the file ends there.  DSA_ERROR with err: an I/O error, or the
 * file has another size than when it was opened.
 */
int dsa_direct_read(dsa_direct_t *f, uint8_t *to, uint64_t offset, size_t n,
    dsa_err_t *err);


#endif /* _DSA_DIRECT_H_INCLUDED_ */
