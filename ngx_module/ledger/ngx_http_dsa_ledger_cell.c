
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <assert.h>

#include "ngx_http_dsa_ledger_cell.h"


static ngx_int_t ngx_http_dsa_ledger_cell_text(char *to, uint8_t *len,
    dsa_str_t s);


ngx_int_t
ngx_http_dsa_ledger_cell_fill(ngx_http_dsa_ledger_cell_t *cell,
    const dsa_schema_entry_t *entry)
{
    ngx_memzero(cell, sizeof(ngx_http_dsa_ledger_cell_t));

    if (ngx_http_dsa_ledger_cell_text(cell->request, &cell->request_len,
                                      entry->request)
        != NGX_OK
        || ngx_http_dsa_ledger_cell_text(cell->tenant, &cell->tenant_len,
                                         entry->tenant)
           != NGX_OK
        || ngx_http_dsa_ledger_cell_text(cell->model, &cell->model_len,
                                         entry->model)
           != NGX_OK)
    {
        return NGX_DECLINED;
    }

    assert(entry->key.len <= NGX_HTTP_DSA_LEDGER_KEY);

    cell->key_len = entry->key.len;

    if (entry->key.len != 0) {
        ngx_memcpy(cell->key, entry->key.data, entry->key.len);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_ledger_cell_text(char *to, uint8_t *len, dsa_str_t s)
{
    if (s.len == 0 || s.len > NGX_HTTP_DSA_LEDGER_TEXT) {
        return NGX_DECLINED;
    }

    *len = s.len;
    ngx_memcpy(to, s.data, s.len);

    return NGX_OK;
}


void
ngx_http_dsa_ledger_cell_begin(ngx_http_dsa_ledger_cell_t *cell,
    uint64_t sender, uint64_t number, const dsa_schema_entry_t *entry)
{
    cell->sender = sender;
    cell->number = number;
    cell->crc = ngx_http_dsa_ledger_file_crc(cell);
    ngx_http_dsa_ledger_cell_counts(&cell->counts[0], entry, cell->crc);
}


void
ngx_http_dsa_ledger_cell_counts(ngx_http_dsa_ledger_counts_t *counts,
    const dsa_schema_entry_t *entry, uint32_t crc)
{
    counts->time = entry->time;
    counts->prompt_tokens = entry->prompt_tokens;
    counts->cached_tokens = entry->cached_tokens;
    ngx_memcpy(counts->tier_tokens, entry->tier_tokens + DSA_TIER_HOST,
               sizeof(counts->tier_tokens));
    counts->completion_tokens = entry->completion_tokens;
    counts->reasoning_tokens = entry->reasoning_tokens;
    counts->cost_miss = entry->cost_miss;
    counts->cost_hit = entry->cost_hit;
    counts->cost_output = entry->cost_output;
    counts->check = ngx_http_dsa_ledger_file_check(counts, crc);
}


ngx_int_t
ngx_http_dsa_ledger_cell_read(ngx_http_dsa_ledger_cell_t *copy,
    dsa_schema_entry_t *entry)
{
    ngx_http_dsa_ledger_counts_t  *counts;

    if (copy->crc != ngx_http_dsa_ledger_file_crc(copy)
        || copy->request_len > NGX_HTTP_DSA_LEDGER_TEXT
        || copy->tenant_len > NGX_HTTP_DSA_LEDGER_TEXT
        || copy->model_len > NGX_HTTP_DSA_LEDGER_TEXT
        || copy->key_len > NGX_HTTP_DSA_LEDGER_KEY
        || copy->sender == 0
        || copy->number == 0
        || copy->number > DSA_SCHEMA_NUMBER_MAX
        || copy->current > 1)
    {
        return NGX_ERROR;
    }

    counts = &copy->counts[copy->current];

    if (counts->check != ngx_http_dsa_ledger_file_check(counts, copy->crc)) {
        return NGX_ERROR;
    }

    ngx_memzero(entry, sizeof(dsa_schema_entry_t));

    entry->sender = copy->sender;
    entry->number = copy->number;
    entry->request = dsa_str(copy->request, copy->request_len);
    entry->tenant = dsa_str(copy->tenant, copy->tenant_len);
    entry->model = dsa_str(copy->model, copy->model_len);
    entry->key = dsa_str(copy->key, copy->key_len);
    entry->time = counts->time;
    entry->prompt_tokens = counts->prompt_tokens;
    entry->cached_tokens = counts->cached_tokens;
    ngx_memcpy(entry->tier_tokens + DSA_TIER_HOST, counts->tier_tokens,
               sizeof(counts->tier_tokens));
    entry->completion_tokens = counts->completion_tokens;
    entry->reasoning_tokens = counts->reasoning_tokens;
    entry->cost_miss = counts->cost_miss;
    entry->cost_hit = counts->cost_hit;
    entry->cost_output = counts->cost_output;

    return dsa_schema_entry_ok(entry) ? NGX_OK : NGX_ERROR;
}
