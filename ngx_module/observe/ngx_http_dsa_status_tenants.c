
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/money.h"

#include "ngx_module/account/ngx_http_dsa_tenants.h"
#include "ngx_http_dsa_status_tenants.h"


#define NGX_HTTP_DSA_STATUS_ROWS  100


static void ngx_http_dsa_status_row(dsa_json_writer_t *w,
    const ngx_http_dsa_tenant_t *row, ngx_http_dsa_keys_t *keys);
static void ngx_http_dsa_status_key(dsa_json_writer_t *w, const u_char *id,
    ngx_http_dsa_keys_t *keys);
static void ngx_http_dsa_status_money(dsa_json_writer_t *w, const char *key,
    int64_t amount);


void
ngx_http_dsa_status_tenants(dsa_json_writer_t *w, ngx_shm_zone_t *tenants,
    ngx_http_dsa_keys_t *keys)
{
    ngx_uint_t             i, n;
    ngx_http_dsa_tenant_t  rows[NGX_HTTP_DSA_STATUS_ROWS];

    n = ngx_http_dsa_tenants_read(tenants, rows, NGX_HTTP_DSA_STATUS_ROWS);

    dsa_json_key(w, "tenants");
    dsa_json_array(w);

    for (i = 0; i < n; i++) {
        ngx_http_dsa_status_row(w, &rows[i], keys);
    }

    dsa_json_array_end(w);
}


static void
ngx_http_dsa_status_row(dsa_json_writer_t *w, const ngx_http_dsa_tenant_t *row,
    ngx_http_dsa_keys_t *keys)
{
    dsa_json_object(w);
    dsa_json_key(w, "tenant");
    dsa_json_string(w, dsa_str(row->tenant, NGX_HTTP_DSA_TENANT_LEN));

    if (row->key[0] != '\0') {
        ngx_http_dsa_status_key(w, row->key, keys);
    }

    ngx_http_dsa_status_uint(w, "running", row->running);
    ngx_http_dsa_status_uint(w, "waiting", row->waiting);
    ngx_http_dsa_status_uint(w, "requests", row->requests);
    ngx_http_dsa_status_uint(w, "tokens", row->prompt + row->completion);
    ngx_http_dsa_status_uint(w, "prompt", row->prompt);
    ngx_http_dsa_status_uint(w, "cached", row->cached);
    ngx_http_dsa_status_uint(w, "completion", row->completion);
    ngx_http_dsa_status_amount(w, "cost", row->cost);
    dsa_json_object_end(w);
}


/*
 * A key that was removed has only its id, and one whose sums are not known does
 * not have them.
 */

static void
ngx_http_dsa_status_key(dsa_json_writer_t *w, const u_char *id,
    ngx_http_dsa_keys_t *keys)
{
    ngx_uint_t                  i;
    ngx_http_dsa_key_report_t   report;

    static const char *const  periods[DSA_KEY_PERIODS] = {
        "day", "month", "total"
    };

    dsa_json_key(w, "key");
    dsa_json_string(w, dsa_str(id, DSA_KEY_ID_LEN));

    if (keys == NULL
        || ngx_http_dsa_keys_read(keys, id, &report) != NGX_OK)
    {
        return;
    }

    dsa_json_key(w, "name");
    dsa_json_string(w, dsa_str(report.name, report.name_len));

    if (!report.limits.known) {
        return;
    }

    dsa_json_key(w, "spent");
    dsa_json_object(w);

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        ngx_http_dsa_status_money(w, periods[i], report.limits.spent[i]);
    }

    dsa_json_object_end(w);
}


void
ngx_http_dsa_status_uint(dsa_json_writer_t *w, const char *key, uint64_t value)
{
    dsa_json_key(w, key);
    dsa_json_uint(w, value);
}


void
ngx_http_dsa_status_amount(dsa_json_writer_t *w, const char *key,
    uint64_t amount)
{
    /* after 9.2 million units it begins again, like any counter */

    ngx_http_dsa_status_money(w, key, (int64_t) (amount & INT64_MAX));
}


static void
ngx_http_dsa_status_money(dsa_json_writer_t *w, const char *key,
    int64_t amount)
{
    char    text[DSA_MONEY_LEN];
    size_t  len;

    len = dsa_money_print(text, amount, 0);

    dsa_json_key(w, key);
    dsa_json_string(w, dsa_str(text, len));
}
