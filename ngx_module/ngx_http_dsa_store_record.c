
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_dsa_ledger_queue.h"
#include "ngx_http_dsa_metrics.h"
#include "ngx_http_dsa_store.h"


static ngx_int_t ngx_http_dsa_store_turn(ngx_http_dsa_redis_t *redis,
    const ngx_http_dsa_record_t *record, const dsa_schema_record_t *entry,
    const char **why);
static void ngx_http_dsa_store_entry(dsa_schema_record_t *entry,
    const ngx_http_dsa_record_t *record);
static dsa_str_t ngx_http_dsa_store_str(const ngx_str_t *s);


ngx_int_t
ngx_http_dsa_store_reserve(ngx_http_dsa_redis_t *redis,
    const ngx_http_dsa_record_t *record, const char **why)
{
    dsa_schema_record_t  entry;

    ngx_http_dsa_store_entry(&entry, record);

    return ngx_http_dsa_ledger_queue_reserve(redis, &entry, why);
}


void
ngx_http_dsa_store_update(ngx_http_dsa_redis_t *redis,
    const ngx_http_dsa_record_t *record)
{
    dsa_schema_record_t  entry;

    ngx_http_dsa_store_entry(&entry, record);

    ngx_http_dsa_ledger_update(ngx_http_dsa_redis_ledger(redis), record->slot,
                               &entry);
}


void
ngx_http_dsa_store_cancel(ngx_http_dsa_redis_t *redis, ngx_uint_t slot)
{
    ngx_http_dsa_ledger_free(ngx_http_dsa_redis_ledger(redis), slot);
}


ngx_int_t
ngx_http_dsa_store_record(ngx_http_dsa_redis_t *redis,
    const ngx_http_dsa_record_t *record, const char **why)
{
    ngx_int_t            rc;
    dsa_schema_record_t  entry;

    ngx_http_dsa_store_entry(&entry, record);

    if (record->conversation.len == 0) {
        (void) ngx_http_dsa_ledger_queue_add(redis, record->slot, &entry,
                                             NULL, why);
        return NGX_OK;
    }

    rc = ngx_http_dsa_store_turn(redis, record, &entry, why);

    if (rc != NGX_OK) {
        ngx_http_dsa_metrics_add(redis_refused, 1);

        ngx_log_error(NGX_LOG_ERR, record->request->connection->log, 0,
                      "dsa: the turn of request \"%V\" is not stored: %s",
                      &record->request_id, *why);
    }

    return rc;
}


/* The entry is written even if there is no memory for the turn. */

static ngx_int_t
ngx_http_dsa_store_turn(ngx_http_dsa_redis_t *redis,
    const ngx_http_dsa_record_t *record, const dsa_schema_record_t *entry,
    const char **why)
{
    ngx_http_dsa_save_t  *turn;

    turn = ngx_http_dsa_save_create(record->request, &record->conversation,
                                    record->version, record->messages,
                                    record->handler);

    if (ngx_http_dsa_ledger_queue_add(redis, record->slot, entry, turn, why)
        != NGX_OK)
    {

        if (turn != NULL) {
            ngx_http_dsa_save_free(turn);
        }

        return NGX_DECLINED;
    }

    if (turn == NULL) {
        *why = "nginx is out of memory";
        return NGX_DECLINED;
    }

    return NGX_OK;
}


static void
ngx_http_dsa_store_entry(dsa_schema_record_t *entry,
    const ngx_http_dsa_record_t *record)
{
    ngx_memzero(entry, sizeof(dsa_schema_record_t));

    entry->request = ngx_http_dsa_store_str(&record->request_id);
    entry->tenant = ngx_http_dsa_store_str(&record->tenant);
    entry->model = ngx_http_dsa_store_str(&record->model);
    entry->time = record->time;
    entry->prompt_tokens = record->prompt_tokens;
    entry->cached_tokens = record->cached_tokens;
    entry->host_tokens = record->host_tokens;
    entry->redis_tokens = record->redis_tokens;
    entry->completion_tokens = record->completion_tokens;
    entry->reasoning_tokens = record->reasoning_tokens;
    entry->key = ngx_http_dsa_store_str(&record->key);
    entry->cost_miss = record->cost.miss;
    entry->cost_hit = record->cost.hit;
    entry->cost_output = record->cost.output;
}


static dsa_str_t
ngx_http_dsa_store_str(const ngx_str_t *s)
{
    return dsa_str(s->data, s->len);
}
