
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_RECORDS_H_INCLUDED_
#define _NGX_HTTP_DSA_RECORDS_H_INCLUDED_


#include "ngx_http_dsa_slots.h"


/* Reads the event ring of a session: copies, checks and dispatches records. */

typedef struct {
    u_char                   *copy;         /* of one payload */
    size_t                    size;

    /* after NGX_ERROR */

    const char               *fault;        /* what is wrong, or NULL: */
    ngx_http_dsa_wrong_t      wrong;        /* with this record, */
    uint64_t                  id;           /* of this request */
} ngx_http_dsa_records_t;


/*
 * Reads records from the ring, up to a limit, so that other events of the
 * worker are not delayed.  NGX_OK: the ring is empty, and the engine writes to
 * the wake fd for the next record; NGX_AGAIN: there are more records;
 * NGX_ERROR: a record or the ring is wrong, or there is no memory, and records
 * has the reason.
 */
ngx_int_t ngx_http_dsa_records_read(ngx_http_dsa_records_t *records,
    dsa_link_t *link, ngx_http_dsa_slots_t *slots);

/* Frees the buffer. */
void ngx_http_dsa_records_free(ngx_http_dsa_records_t *records);


#endif /* _NGX_HTTP_DSA_RECORDS_H_INCLUDED_ */
