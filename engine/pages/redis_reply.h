
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_REDIS_REPLY_H_INCLUDED_
#define _DSA_REDIS_REPLY_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>

#include "base/error.h"


/*
 * The first line of a reply of Redis: a whole status, error or integer, or the
 * length of a string, whose bytes follow.  Arrays are not accepted.
 */

#define DSA_REDIS_LINE      1024        /* most bytes of a line, with CRLF */


typedef enum {
    DSA_REPLY_STATUS = '+',
    DSA_REPLY_ERROR = '-',
    DSA_REPLY_INTEGER = ':',
    DSA_REPLY_STRING = '$'
} dsa_redis_reply_e;


typedef struct {
    dsa_redis_reply_e   type;
    int64_t             number;         /* INTEGER; STRING: its bytes, or -1:
                                           there is none */
    size_t              size;           /* of the line, with CRLF */
    char                text[DSA_REDIS_LINE];   /* STATUS, ERROR: with a NUL;
                                           "?" for each byte that is not
                                           printable ASCII */
} dsa_redis_reply_t;


/*
 * Parses the line at the beginning of n bytes.  DSA_AGAIN: the line is not
 * complete; DSA_ERROR with err: this is not such a line, or it is longer than
 * DSA_REDIS_LINE.  A wrong first byte is an error before the line is complete.
 */
int dsa_redis_reply(dsa_redis_reply_t *r, const char *in, size_t n,
    dsa_err_t *err);

/*
 * Returns 1 if the reply is an error whose first word is code, for example
 * "MOVED".
 */
int dsa_redis_reply_is(const dsa_redis_reply_t *r, const char *code);


#endif /* _DSA_REDIS_REPLY_H_INCLUDED_ */
