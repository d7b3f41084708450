
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_FILE_H_INCLUDED_
#define _DSA_FILE_H_INCLUDED_


#include "base/error.h"
#include "base/json.h"


/*
 * Appends a whole file of at most limit bytes to out, which the caller frees
 * with dsa_buf_free() in any case.  DSA_ERROR names the file and the reason.
 */
int dsa_file_read(const char *path, size_t limit, dsa_buf_t *out,
    dsa_err_t *err);


#endif /* _DSA_FILE_H_INCLUDED_ */
