
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ERROR_H_INCLUDED_
#define _DSA_ERROR_H_INCLUDED_


#define DSA_OK          0
#define DSA_ERROR      -1
#define DSA_AGAIN      -2


/*
 * An error as one line for a person: what is wrong, where, and what is expected
 * instead.  The function that detects the error writes it; its callers return
 * it unchanged.
 */

typedef struct {
    char  text[512];
} dsa_err_t;


/* Writes the text and returns DSA_ERROR.  err may be NULL. */

int dsa_error(dsa_err_t *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));


#endif /* _DSA_ERROR_H_INCLUDED_ */
