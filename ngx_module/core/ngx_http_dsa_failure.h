
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_FAILURE_H_INCLUDED_
#define _NGX_HTTP_DSA_FAILURE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "context/chat.h"


/* Why a request cannot be answered.  The first failure counts. */

typedef struct {
    ngx_uint_t                status;       /* HTTP status; 0: no failure */
    const char               *param;        /* the field at fault, or NULL */
    const char               *code;         /* of the error; NULL: the default
                                               of the status */

    ngx_uint_t                retry;        /* Retry-After of a 429 or 503, in
                                               seconds; 0: the default */

    /*
     * If the prompt, or the prompt and the answer, exceed the context;
     * otherwise context is 0.
     */
    uint32_t                  prompt_tokens;
    uint32_t                  max_tokens;
    uint32_t                  context;

    char                      text[640];    /* UTF-8, NUL-terminated */
} ngx_http_dsa_failure_t;


/*
 * Sets a failure, unless one is set already.  param must live as long as the
 * request, and so must the code, which the caller sets.
 */
void ngx_http_dsa_failure_set(ngx_http_dsa_failure_t *failure,
    ngx_uint_t status, const char *param, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Sets the failure for a field that was refused; its name is copied to pool. */
void ngx_http_dsa_failure_refused(ngx_http_dsa_failure_t *failure,
    ngx_pool_t *pool, const dsa_refusal_t *refusal);

/* Sets the failure for a failed allocation. */
void ngx_http_dsa_failure_memory(ngx_http_dsa_failure_t *failure);


#endif /* _NGX_HTTP_DSA_FAILURE_H_INCLUDED_ */
