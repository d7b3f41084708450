
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_MODELS_H_INCLUDED_
#define _NGX_HTTP_DSA_MODELS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_pool.h"


/*
 * Names of models.  An engine serves the name in its hello, and every engine
 * serves the names of the API ("deepseek-chat", "deepseek-reasoner").
 */


/* The names that chats may ask for, added to names (of ngx_str_t). */
ngx_int_t ngx_http_dsa_models(ngx_http_dsa_pool_t *pool, ngx_array_t *names);

/*
 * Tokens of the largest context among the engines that serve or served the
 * name; 0 if there is none.
 */
uint32_t ngx_http_dsa_models_context(ngx_http_dsa_pool_t *pool,
    ngx_str_t *name);

/* 1: any engine serves the name. */
ngx_uint_t ngx_http_dsa_models_any(const ngx_str_t *name);

/*
 * NGX_OK: an engine serves or served the name.  NGX_DECLINED: no engine does.
 * NGX_AGAIN: this worker has not had a session with every engine yet, and one
 * of the others may serve it; a worker may start while an engine restarts.
 */
ngx_int_t ngx_http_dsa_models_known(ngx_http_dsa_pool_t *pool,
    const ngx_str_t *name);


#endif /* _NGX_HTTP_DSA_MODELS_H_INCLUDED_ */
