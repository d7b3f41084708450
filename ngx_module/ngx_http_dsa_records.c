
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/str.h"
#include "engine/link_request.h"
#include "engine/link_rollout.h"

#include "ngx_http_dsa_records.h"


#define NGX_HTTP_DSA_RECORDS      1024      /* at most, per call */


static ngx_int_t ngx_http_dsa_records_one(ngx_http_dsa_records_t *records,
    dsa_link_t *link, ngx_http_dsa_slots_t *slots,
    const dsa_link_record_t *record, const void *payload);
static ngx_int_t ngx_http_dsa_records_copy(ngx_http_dsa_records_t *records,
    const dsa_link_record_t *record, const void *payload);
static ngx_int_t ngx_http_dsa_records_check(const dsa_link_t *link,
    const dsa_link_record_t *record, u_char *p);
static ngx_int_t ngx_http_dsa_records_done(uint32_t version,
    const dsa_link_record_t *record, u_char *p);
static ngx_int_t ngx_http_dsa_records_tokens(const dsa_link_record_t *record,
    const u_char *p);


ngx_int_t
ngx_http_dsa_records_read(ngx_http_dsa_records_t *records, dsa_link_t *link,
    ngx_http_dsa_slots_t *slots)
{
    int                 rc;
    ngx_uint_t          n;
    const void         *payload;
    dsa_link_record_t   record;

    n = 0;

    for ( ;; ) {
        rc = dsa_link_peek(&link->event, &record, &payload);

        if (rc == 0) {
            if (dsa_link_sleep(&link->event)) {
                return NGX_OK;
            }

            continue;
        }

        if (rc == -1) {
            return NGX_ERROR;
        }

        if (n++ == NGX_HTTP_DSA_RECORDS) {
            return NGX_AGAIN;
        }

        if (ngx_http_dsa_records_one(records, link, slots, &record, payload)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        dsa_link_release(&link->event);
    }
}


static ngx_int_t
ngx_http_dsa_records_one(ngx_http_dsa_records_t *records, dsa_link_t *link,
    ngx_http_dsa_slots_t *slots, const dsa_link_record_t *record,
    const void *payload)
{
    dsa_str_t             rows;
    ngx_http_dsa_call_t  *call;

    if (dsa_link_slot(record->id) >= slots->n
        || record->length > dsa_link_max_payload(&link->event))
    {
        return NGX_ERROR;
    }

    call = ngx_http_dsa_slots_find(slots, record);

    if (call == NULL) {
        return NGX_OK;
    }

    if (record->type != DSA_LINK_ERROR
        && (record->type == DSA_LINK_COUNTED) != call->count)
    {
        return NGX_ERROR;
    }

    if (ngx_http_dsa_records_copy(records, record, payload) != NGX_OK
        || ngx_http_dsa_records_check(link, record, records->copy) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (record->type == DSA_LINK_ROLLOUT) {
        rows = dsa_str((char *) records->copy, record->length);
        ngx_http_dsa_slots_report(slots, call, record->type, &rows);
        return NGX_OK;
    }

    ngx_http_dsa_slots_report(slots, call, record->type, records->copy);

    return NGX_OK;
}


/*
 * Copies a payload before it is checked, because the engine can change the
 * ring at any time.
 */

static ngx_int_t
ngx_http_dsa_records_copy(ngx_http_dsa_records_t *records,
    const dsa_link_record_t *record, const void *payload)
{
    size_t   size;
    u_char  *p;

    if (record->length > records->size) {

        /*
         * Round up, so that every record of a fixed size fits in its newest
         * form.
         */

        size = ngx_align((size_t) record->length, 4096);

        p = ngx_alloc(size, ngx_cycle->log);
        if (p == NULL) {
            return NGX_ERROR;
        }

        ngx_free(records->copy);

        records->copy = p;
        records->size = size;
    }

    if (record->length != 0) {
        ngx_memcpy(records->copy, payload, record->length);
    }

    return NGX_OK;
}


/*
 * Checks the size and the structure of a payload.  A record of an older
 * version of the link is converted to the newest one.
 */

static ngx_int_t
ngx_http_dsa_records_check(const dsa_link_t *link,
    const dsa_link_record_t *record, u_char *p)
{
    dsa_link_failure_t  failure;

    switch (record->type) {

    case DSA_LINK_ACCEPTED:
        return record->length == sizeof(dsa_link_accepted_t) ? NGX_OK
                                                             : NGX_ERROR;

    case DSA_LINK_TOKENS:
        return ngx_http_dsa_records_tokens(record, p);

    case DSA_LINK_ROLLOUT:
        return link->version >= DSA_LINK_VERSION_ROLLOUT
               && dsa_link_rows_check(p, record->length) == 0
               ? NGX_OK : NGX_ERROR;

    case DSA_LINK_DONE:
        return ngx_http_dsa_records_done(link->version, record, p);

    case DSA_LINK_ERROR:

        if (record->length < sizeof(dsa_link_failure_t)) {
            return NGX_ERROR;
        }

        ngx_memcpy(&failure, p, sizeof(dsa_link_failure_t));

        return record->length - sizeof(dsa_link_failure_t) == failure.text_len
               ? NGX_OK : NGX_ERROR;

    case DSA_LINK_COUNTED:
        return record->length == sizeof(dsa_link_counted_t) ? NGX_OK
                                                            : NGX_ERROR;

    default:
        return NGX_ERROR;
    }
}


static ngx_int_t
ngx_http_dsa_records_done(uint32_t version, const dsa_link_record_t *record,
    u_char *p)
{
    dsa_link_done_t  done;

    if (dsa_link_done_read(&done, version, p, record->length) != 0) {
        return NGX_ERROR;
    }

    ngx_memcpy(p, &done, sizeof(dsa_link_done_t));

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_records_tokens(const dsa_link_record_t *record, const u_char *p)
{
    uint32_t            i, last;
    uint64_t            size;
    dsa_link_token_t    token;
    dsa_link_tokens_t   tokens;

    if (record->length < sizeof(dsa_link_tokens_t)) {
        return NGX_ERROR;
    }

    ngx_memcpy(&tokens, p, sizeof(dsa_link_tokens_t));

    if (tokens.logprobs > 1 || tokens.n_top > DSA_LINK_MAX_TOP) {
        return NGX_ERROR;
    }

    size = sizeof(dsa_link_tokens_t)
           + (uint64_t) tokens.n_tokens * sizeof(dsa_link_token_t)
           + tokens.text_len;

    if (tokens.logprobs) {
        size += (uint64_t) tokens.n_tokens * (1 + tokens.n_top)
                * sizeof(dsa_link_logprob_t);
    }

    if (size != record->length) {
        return NGX_ERROR;
    }

    p += sizeof(dsa_link_tokens_t);
    last = 0;

    for (i = 0; i < tokens.n_tokens; i++) {
        ngx_memcpy(&token, p, sizeof(dsa_link_token_t));
        p += sizeof(dsa_link_token_t);

        if (token.end < last || token.end > tokens.text_len
            || token.control > token.end - last)
        {
            return NGX_ERROR;
        }

        last = token.end;
    }

    return NGX_OK;
}


void
ngx_http_dsa_records_free(ngx_http_dsa_records_t *records)
{
    ngx_free(records->copy);

    records->copy = NULL;
    records->size = 0;
}
