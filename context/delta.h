
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_DELTA_H_INCLUDED_
#define _DSA_DELTA_H_INCLUDED_


#include "context/parse.h"


/*
 * Inside context/: passes the parser's deltas to its callback.  Neighboring
 * pieces of one kind are joined within a feed, so that one feed makes few and
 * long deltas.
 */

#define DSA_DELTA_BUFFER  2048


/*
 * The piece that is being joined.  It lives on the stack of one feed, because
 * thousands of parsers are open at once and only one of them is fed.
 */

typedef struct {
    dsa_delta_e           what;
    size_t                len;
    char                  data[DSA_DELTA_BUFFER];
} dsa_delta_buffer_t;


/* Zeroed, with callback and ctx set, it is ready for use. */

typedef struct {
    dsa_delta_pt          callback;
    void                 *ctx;
    dsa_delta_buffer_t   *buffer;    /* NULL between feeds */
    int                   rc;        /* once it is not DSA_OK it stays, and
                                        the callback is not called again */
    uint32_t              calls;     /* begun so far */
} dsa_deltas_t;


void dsa_deltas_start(dsa_deltas_t *d, dsa_delta_buffer_t *buffer);

/* Delivers what is left in the buffer.  Returns d->rc. */
int dsa_deltas_finish(dsa_deltas_t *d);

/* Any kind but DSA_DELTA_CALL.  Arguments belong to the last call. */
void dsa_deltas_add(dsa_deltas_t *d, dsa_delta_e what, const char *data,
    size_t len);

/* Begins a call and delivers its name at once. */
void dsa_deltas_call(dsa_deltas_t *d, dsa_str_t name);

/*
 * Adds text to the arguments, escaped for the inside of a JSON string as
 * json.dumps(ensure_ascii=False) escapes it.
 */
void dsa_deltas_escape(dsa_deltas_t *d, const char *data, size_t len);


/* Adds a string literal to the arguments. */

#define dsa_deltas_arguments(d, literal)                                     \
    dsa_deltas_add(d, DSA_DELTA_ARGUMENTS, literal, sizeof(literal) - 1)


#endif /* _DSA_DELTA_H_INCLUDED_ */
