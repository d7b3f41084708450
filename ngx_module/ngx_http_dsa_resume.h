
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_RESUME_H_INCLUDED_
#define _NGX_HTTP_DSA_RESUME_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/buf.h"

#include "ngx_http_dsa_call.h"
#include "ngx_http_dsa_failure.h"
#include "ngx_http_dsa_pool.h"
#include "ngx_http_dsa_submit.h"


/*
 * A copy of what was submitted, with which another engine continues an answer
 * when the engine that computed it is gone.  The body, its tree and the stored
 * messages are freed when the engines have accepted the request, so the copy is
 * all that is left of the prompt: one block with its bytes.
 *
 * The other engine gets the prompt and the tokens that were received.  Its
 * sampling noise is a function of seed and position, so it continues with the
 * tokens that would have come.  This holds for the same weights only, so the
 * engine has to have the same fingerprint.
 */

typedef struct ngx_http_dsa_resume_s  ngx_http_dsa_resume_t;


/*
 * The copy of a request that an engine has just accepted, from which it is
 * submitted for any of its choices.  NULL: no memory.
 */
ngx_http_dsa_resume_t *ngx_http_dsa_resume_create(
    const ngx_http_dsa_submit_t *submit, const ngx_http_dsa_session_t *s,
    ngx_log_t *log);

void ngx_http_dsa_resume_free(ngx_http_dsa_resume_t *resume);

/* 1: an answer of this engine may be continued. */
ngx_uint_t ngx_http_dsa_resume_fits(const ngx_http_dsa_resume_t *resume,
    const ngx_http_dsa_session_t *s);

/*
 * Submits a choice to the least busy engine that can continue it and is not in
 * the mask *tried, to which it is added.  ids: the uint32_t ids of the tokens
 * that were received.  NGX_OK: call has a session; NGX_ERROR: there is no such
 * engine.
 */
ngx_int_t ngx_http_dsa_resume_submit(ngx_http_dsa_resume_t *resume,
    ngx_http_dsa_pool_t *pool, uint64_t *tried, uint32_t index,
    const dsa_buf_t *ids, ngx_http_dsa_call_t *call);


#endif /* _NGX_HTTP_DSA_RESUME_H_INCLUDED_ */
