
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_RESP_H_INCLUDED_
#define _DSA_RESP_H_INCLUDED_


#include <hiredis/hiredis.h>

#include "base/error.h"
#include "base/str.h"


/*
 * Reads replies of Redis from a stream of bytes: the reader of hiredis with
 * limits on one reply.  Without limits the reader collects a string of any
 * announced length and allocates an array of any announced number of elements.
 */

typedef struct dsa_resp_s  dsa_resp_t;


/*
 * Limits of one reply.  bytes: its length; elements: the elements of all its
 * arrays together, which limits their nesting as well.  NULL: out of memory.
 */
dsa_resp_t *dsa_resp_create(size_t bytes, size_t elements);
void dsa_resp_destroy(dsa_resp_t *resp);            /* NULL is allowed */

/*
 * Adds bytes, in pieces of any size.  Call dsa_resp_next() until it returns
 * DSA_AGAIN before you add more: bytes that are still buffered count as the
 * beginning of one reply.  After DSA_ERROR of either function the stream is
 * unusable.
 */
int dsa_resp_feed(dsa_resp_t *resp, const void *data, size_t len,
    dsa_err_t *err);

/*
 * DSA_OK: *reply is set, and the caller frees it with freeReplyObject();
 * DSA_AGAIN: more bytes are needed; DSA_ERROR: the bytes are not RESP, or the
 * reply exceeds the limits.
 */
int dsa_resp_next(dsa_resp_t *resp, redisReply **reply, dsa_err_t *err);


/*
 * Some errors mean that this Redis cannot serve any command, for example
 * NOAUTH.  Returns the reason as a clause, for a log line and for a client, or
 * NULL for any other reply.  The text is static: equal reasons are the same
 * pointer.
 */
const char *dsa_resp_refusal(const redisReply *reply);

/*
 * Copies text that came from Redis for a log line: at most 200 bytes, with "?"
 * in place of each byte that is not printable ASCII, and with "..." if the
 * text was longer.  buf has DSA_RESP_TEXT bytes; returns buf, with a
 * terminating NUL.
 */
#define DSA_RESP_TEXT  (200 + sizeof("..."))

const char *dsa_resp_text(char *buf, const char *text, size_t len);

/* The bytes of all texts of a reply. */
size_t dsa_resp_bytes(const redisReply *reply);

/* 1 if the reply is an error whose first word is code, as "NOSCRIPT". */
int dsa_resp_is_error(const redisReply *reply, const char *code);


#endif /* _DSA_RESP_H_INCLUDED_ */
