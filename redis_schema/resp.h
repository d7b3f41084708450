
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_RESP_H_INCLUDED_
#define _DSA_RESP_H_INCLUDED_


#include <hiredis/hiredis.h>

#include "base/error.h"
#include "base/str.h"


/*
 * Replies of Redis out of a stream of bytes: hiredis' reader with bounds on
 * what one reply may take.  The reader alone collects a string of any
 * announced length and allocates an array of any announced number of
 * elements.
 */

typedef struct dsa_resp_s  dsa_resp_t;


/*
 * bytes: most bytes of one reply; elements: most elements of all its arrays
 * together, which bounds their nesting, too.  NULL when out of memory.
 */
dsa_resp_t *dsa_resp_create(size_t bytes, size_t elements);
void dsa_resp_destroy(dsa_resp_t *resp);            /* NULL is allowed */

/*
 * Adds bytes, in pieces of any size.  Take out every reply before adding
 * more: what was not taken counts as the beginning of one reply.  After an
 * error of either function the stream cannot go on.
 */
int dsa_resp_feed(dsa_resp_t *resp, const void *data, size_t len,
    dsa_err_t *err);

/*
 * DSA_OK: *reply is the caller's, for freeReplyObject(); DSA_AGAIN: more
 * bytes are needed; DSA_ERROR: not RESP, or beyond the bounds.
 */
int dsa_resp_next(dsa_resp_t *resp, redisReply **reply, dsa_err_t *err);


/*
 * An error that says that this Redis cannot serve us at all, whatever the
 * command: the reason in a few words, for a log and for a client; NULL for
 * any other reply.
 */
const char *dsa_resp_refusal(const redisReply *reply);

/*
 * Text that came from Redis, for a log line: at most 200 bytes of it, with
 * "?" in place of each byte that is not printable ASCII.  buf has
 * DSA_RESP_TEXT bytes; returns buf, with a terminating NUL.
 */
#define DSA_RESP_TEXT  (200 + sizeof("..."))

const char *dsa_resp_text(char *buf, const char *text, size_t len);

/* The first word of an error's text: "NOSCRIPT", "OOM". */
int dsa_resp_is_error(const redisReply *reply, const char *code);


#endif /* _DSA_RESP_H_INCLUDED_ */
