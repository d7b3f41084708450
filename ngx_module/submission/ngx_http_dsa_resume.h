
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_RESUME_H_INCLUDED_
#define _NGX_HTTP_DSA_RESUME_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/buf.h"

#include "ngx_module/core/ngx_http_dsa_failure.h"
#include "ngx_module/engine/ngx_http_dsa_slots.h"
#include "ngx_module/engine/ngx_http_dsa_pool.h"
#include "ngx_http_dsa_submit.h"


/*
 * A copy of a submitted request, with which another engine can continue an
 * answer when the first engine is lost.  The body, its tree and the stored
 * messages are freed when engines have accepted the request, so the prompt has
 * to be copied, into one block of memory.
 *
 * The other engine gets the prompt and the tokens that were received.
 * Sampling noise is a function of seed and position, so it continues with the
 * same tokens as the first engine would have.  This requires the same weights,
 * so the engine must have the same fingerprint.
 */

typedef struct ngx_http_dsa_resume_s  ngx_http_dsa_resume_t;


/*
 * Copies a request that an engine has just accepted.  The copy can be
 * submitted for each of its choices.  NULL: out of memory.
 */
ngx_http_dsa_resume_t *ngx_http_dsa_resume_create(
    const ngx_http_dsa_submit_t *submit, const ngx_http_dsa_session_t *s,
    ngx_log_t *log);

void ngx_http_dsa_resume_free(ngx_http_dsa_resume_t *resume);

/* Returns 1 if an answer of this engine can be continued from the copy. */
ngx_uint_t ngx_http_dsa_resume_fits(const ngx_http_dsa_resume_t *resume,
    const ngx_http_dsa_session_t *s);

/*
 * Submits a choice to the least busy engine that can continue it and is not in
 * the mask *tried, and adds the engine to the mask.  ids: the uint32_t ids of
 * the tokens that were received.  NGX_OK: it has a session; NGX_ERROR: no
 * engine can continue the choice.
 */
ngx_int_t ngx_http_dsa_resume_submit(ngx_http_dsa_resume_t *resume,
    ngx_http_dsa_pool_t *pool, uint64_t *tried, uint32_t index,
    const dsa_buf_t *ids, ngx_http_dsa_link_request_t *lr);


#endif /* _NGX_HTTP_DSA_RESUME_H_INCLUDED_ */
