
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/json.h"
#include "base/money.h"

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/http/ngx_http_dsa_reply.h"
#include "ngx_http_dsa_access.h"
#include "ngx_http_dsa_balance.h"
#include "ngx_http_dsa_limit.h"


static void ngx_http_dsa_balance_write(ngx_http_request_t *r, dsa_buf_t *b,
    const ngx_http_dsa_limit_view_t *view);
static void ngx_http_dsa_balance_info(dsa_json_writer_t *w,
    const ngx_str_t *currency, int64_t hard, int64_t spent);


ngx_uint_t
ngx_http_dsa_balance_find(ngx_http_request_t *r)
{
    static const char  end[] = "/user/balance";

    return r->uri.len >= sizeof(end) - 1
           && ngx_memcmp(r->uri.data + r->uri.len - (sizeof(end) - 1), end,
                         sizeof(end) - 1)
              == 0;
}


ngx_int_t
ngx_http_dsa_balance_handler(ngx_http_request_t *r)
{
    dsa_buf_t                   b;
    ngx_int_t                   rc;
    ngx_http_dsa_access_t      *access;
    ngx_http_dsa_failure_t      failure;
    ngx_http_dsa_limit_view_t   view;

    rc = ngx_http_dsa_accept_get(r);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ngx_memzero(&b, sizeof(dsa_buf_t));

    access = ngx_http_dsa_access_find(r);

    if (access == NULL) {
        ngx_http_dsa_balance_write(r, &b, NULL);
        return ngx_http_dsa_send_json(r, NGX_HTTP_OK, &b);
    }

    ngx_http_dsa_limit_read(ngx_http_dsa_keys_limits(access->keys),
                            &access->key->limit, &view);

    if (view.refused != NGX_HTTP_DSA_LIMIT_NONE) {
        ngx_memzero(&failure, sizeof(ngx_http_dsa_failure_t));
        ngx_http_dsa_limit_failure(&view, &failure);
        return ngx_http_dsa_send_failure(r, &failure);
    }

    ngx_http_dsa_balance_write(r, &b, &view);

    return ngx_http_dsa_send_json(r, NGX_HTTP_OK, &b);
}


/* view: of the key; NULL: dsa_keys is not configured. */

static void
ngx_http_dsa_balance_write(ngx_http_request_t *r, dsa_buf_t *b,
    const ngx_http_dsa_limit_view_t *view)
{
    ngx_uint_t                 i, available;
    dsa_json_writer_t          w;
    ngx_http_dsa_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    available = 1;

    for (i = 0; i < DSA_KEY_PERIODS && view != NULL; i++) {
        if (view->budget[i].hard >= 0
            && view->spent[i] >= view->budget[i].hard)
        {
            available = 0;
        }
    }

    dsa_json_writer(&w, b);
    dsa_json_object(&w);
    dsa_json_key(&w, "is_available");
    dsa_json_bool(&w, available);
    dsa_json_key(&w, "balance_infos");
    dsa_json_array(&w);

    if (view != NULL && view->budget[DSA_KEY_TOTAL].hard >= 0) {
        ngx_http_dsa_balance_info(&w, &mcf->currency,
                                  view->budget[DSA_KEY_TOTAL].hard,
                                  view->spent[DSA_KEY_TOTAL]);
    }

    dsa_json_array_end(&w);
    dsa_json_object_end(&w);
}


/* Requests that ran when the budget was spent may have exceeded it. */

static void
ngx_http_dsa_balance_info(dsa_json_writer_t *w, const ngx_str_t *currency,
    int64_t hard, int64_t spent)
{
    char     text[DSA_MONEY_LEN];
    size_t   n;
    int64_t  left;

    if (__builtin_sub_overflow(hard, spent, &left)) {
        left = INT64_MAX;
    }

    n = dsa_money_print(text, ngx_max(left, 0), 2);

    dsa_json_object(w);
    dsa_json_key(w, "currency");
    dsa_json_string(w, dsa_str(currency->data, currency->len));
    dsa_json_key(w, "total_balance");
    dsa_json_string(w, dsa_str(text, n));
    dsa_json_key(w, "granted_balance");
    dsa_json_stringz(w, "0.00");
    dsa_json_key(w, "topped_up_balance");
    dsa_json_string(w, dsa_str(text, n));
    dsa_json_object_end(w);
}
