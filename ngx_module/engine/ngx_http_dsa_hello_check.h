
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_HELLO_CHECK_H_INCLUDED_
#define _NGX_HTTP_DSA_HELLO_CHECK_H_INCLUDED_


#include "context/family.h"
#include "engine/link_hello.h"

#include "ngx_http_dsa_wrong.h"


/*
 * Checks what a hello has beyond the layout of the segment.  0: *family is that
 * of the hello; -1: w has the reason.
 *
 * pool: the family of the other engines of the pool, or NULL if none of them is
 * ready.  A prompt is encoded before its engine is chosen, and another engine
 * may continue it, so all engines of a pool must have the same family.
 */
int ngx_http_dsa_hello_check(const dsa_link_hello_t *hello,
    const dsa_family_t *pool, const dsa_family_t **family,
    ngx_http_dsa_wrong_t *w);


#endif /* _NGX_HTTP_DSA_HELLO_CHECK_H_INCLUDED_ */
