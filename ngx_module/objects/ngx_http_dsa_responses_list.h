
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_RESPONSES_LIST_H_INCLUDED_
#define _NGX_HTTP_DSA_RESPONSES_LIST_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

#include "ngx_module/core/ngx_http_dsa_secret.h"
#include "ngx_module/http/ngx_http_dsa_identity.h"


/* A page of the items of a stored request or of a conversation. */

typedef struct {
    ngx_uint_t    limit;
    ngx_str_t     after;        /* id of the last item of the previous page;
                                   empty: first page */

    /* of the server and of the caller, for encrypted reasoning */
    const ngx_http_dsa_secret_t *secret;
    u_char        digest[NGX_HTTP_DSA_DIGEST_LEN];

    unsigned      ascending:1;
    unsigned      encrypted:1;  /* add encrypted reasoning */
} ngx_http_dsa_responses_page_t;


/*
 * Reads the arguments of a request.  NGX_DECLINED: the request continues;
 * otherwise an argument is not valid, and the result is that of the error.
 */
ngx_int_t ngx_http_dsa_responses_page(ngx_http_request_t *r,
    ngx_http_dsa_responses_page_t *page);

/*
 * Writes the list object of a page.  input: a JSON array of items.  NGX_ERROR
 * with err: out of memory, or input is not such an array.
 */
ngx_int_t ngx_http_dsa_responses_list(dsa_buf_t *out, dsa_str_t input,
    const ngx_http_dsa_responses_page_t *page, dsa_err_t *err);

/* Writes one item. */
void ngx_http_dsa_responses_list_item(dsa_buf_t *out, const dsa_json_t *item,
    const ngx_http_dsa_responses_page_t *page);

/* Writes the list object of a page; items are n items, oldest first. */
void ngx_http_dsa_responses_list_write(dsa_buf_t *out, dsa_json_t **items,
    ngx_uint_t n, const ngx_http_dsa_responses_page_t *page);


#endif /* _NGX_HTTP_DSA_RESPONSES_LIST_H_INCLUDED_ */
