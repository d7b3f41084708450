
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <inttypes.h>

#include "base/str.h"

#include "ngx_http_dsa_records.h"


#define NGX_HTTP_DSA_RECORDS      1024      /* at most, at once */


static ngx_int_t ngx_http_dsa_records_one(ngx_http_dsa_records_t *records,
    dsa_link_t *link, ngx_http_dsa_slots_t *slots,
    const dsa_link_record_t *record, const void *payload);
static ngx_int_t ngx_http_dsa_records_copy(ngx_http_dsa_records_t *records,
    const dsa_link_record_t *record, const void *payload);


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
            records->fault = "its event ring is corrupt";
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
    uint64_t                      most;
    ngx_int_t                     rc;
    dsa_str_t                     rows;
    ngx_http_dsa_wrong_t         *wrong;
    ngx_http_dsa_link_request_t  *lr;

    wrong = &records->wrong;
    wrong->name = ngx_http_dsa_record_name(record->type);
    records->id = record->id;
    records->fault = NULL;
    most = dsa_link_max_payload(&link->event);

    if (record->length > most) {
        (void) ngx_http_dsa_wrong(wrong, "length", "with length %u, expected "
                                  "at most %" PRIu64, record->length, most);
        return NGX_ERROR;
    }

    rc = ngx_http_dsa_slots_find(slots, record, &lr);

    if (rc == NGX_ERROR) {
        (void) ngx_http_dsa_wrong(wrong, "id", "for a request that it does not "
                                  "have, expected one that was submitted and "
                                  "has not ended");
        return NGX_ERROR;
    }

    if (rc == NGX_DECLINED) {
        return NGX_OK;
    }

    if (ngx_http_dsa_records_copy(records, record, payload) != NGX_OK) {
        records->fault = "nginx has no memory for a record";
        return NGX_ERROR;
    }

    if (ngx_http_dsa_record_check(&lr->expect, record->type, records->copy,
                                  record->length, wrong)
        != 0)
    {
        return NGX_ERROR;
    }

    if (record->type == DSA_LINK_ROLLOUT) {
        rows = dsa_str((char *) records->copy, record->length);
        ngx_http_dsa_slots_report(slots, lr, record->type, &rows);
        return NGX_OK;
    }

    ngx_http_dsa_slots_report(slots, lr, record->type, records->copy);

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


void
ngx_http_dsa_records_free(ngx_http_dsa_records_t *records)
{
    ngx_free(records->copy);

    records->copy = NULL;
    records->size = 0;
}
