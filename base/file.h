
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_FILE_H_INCLUDED_
#define _DSA_FILE_H_INCLUDED_


#include <limits.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"


/* Files that are read.  Every error begins with the path of the file. */

/*
 * Opens a regular file for reading and sets *size to its bytes.  Returns the
 * descriptor, -1 with err.  A FIFO or a device is an error, at once: opening it
 * does not wait.
 */
int dsa_file_open(const char *path, uint64_t *size, dsa_err_t *err);

/*
 * Appends a whole file of at most limit bytes to out, which the caller frees
 * with dsa_buf_free() in any case.
 */
int dsa_file_read(const char *path, size_t limit, dsa_buf_t *out,
    dsa_err_t *err);

/*
 * What a file is instead of its contents, if a download went wrong in a usual
 * way: a phrase that follows "the file is"; NULL if it is not such a file.
 */
const char *dsa_file_foreign(dsa_str_t text);

/* DIR/NAME; DSA_ERROR when it is longer than a path may be. */
int dsa_file_path(char path[PATH_MAX], const char *dir, dsa_str_t name,
    dsa_err_t *err);


#endif /* _DSA_FILE_H_INCLUDED_ */
