
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PROGRESS_STREAM_H_INCLUDED_
#define _DSA_PROGRESS_STREAM_H_INCLUDED_


#include "base/buf.h"
#include "progress.h"


/*
 * The events of a response, out of the chunks in which Redis has them.  An
 * event ends with an empty line; it may begin in a chunk and end in a later
 * one.  A comment, or an event without "sequence_number", is not an event of
 * the response.
 */

typedef struct {
    int64_t      last;      /* number of the last event; -1: none yet */
    size_t       bytes;     /* of all chunks */
    dsa_buf_t    rest;      /* the begin of an event */
} dsa_progress_stream_t;


void dsa_progress_stream_init(dsa_progress_stream_t *s);
void dsa_progress_stream_free(dsa_progress_stream_t *s);

/*
 * Adds the next chunk, and appends to out those of its events whose number is
 * above after.  DSA_OK, also if out has failed; DSA_ERROR: out of memory, or
 * the chunks together have more than DSA_PROGRESS_EVENTS bytes, which the
 * scripts never store.
 */
int dsa_progress_stream_add(dsa_progress_stream_t *s, dsa_buf_t *out,
    dsa_str_t chunk, int64_t after, dsa_err_t *err);


#endif /* _DSA_PROGRESS_STREAM_H_INCLUDED_ */
