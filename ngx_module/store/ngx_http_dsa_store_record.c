
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_module/core/ngx_http_dsa_burst.h"
#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_http_dsa_ledger_queue.h"
#include "ngx_http_dsa_store.h"


static ngx_int_t ngx_http_dsa_store_turn(ngx_http_dsa_redis_t *redis,
    ngx_uint_t cell, const dsa_schema_entry_t *entry,
    const ngx_http_dsa_turn_t *turn, const char **why);


ngx_int_t
ngx_http_dsa_store_record(ngx_http_dsa_redis_t *redis, ngx_uint_t cell,
    const dsa_schema_entry_t *entry, const ngx_http_dsa_turn_t *turn,
    const char **why)
{
    ngx_int_t  rc;

    if (turn == NULL) {
        (void) ngx_http_dsa_ledger_queue_add(redis, cell, entry, NULL, why);
        return NGX_OK;
    }

    rc = ngx_http_dsa_store_turn(redis, cell, entry, turn, why);

    if (rc != NGX_OK) {
        ngx_http_dsa_metrics_add(redis_refused, 1);

        ngx_log_error(ngx_http_dsa_burst(*why),
                      turn->request->connection->log, 0,
                      "dsa: the turn of request \"%*s\" is not stored: %s",
                      entry->request.len, entry->request.data, *why);
    }

    return rc;
}


/* Creates the turn.  If it fails, the ledger entry is written without it. */

static ngx_int_t
ngx_http_dsa_store_turn(ngx_http_dsa_redis_t *redis, ngx_uint_t cell,
    const dsa_schema_entry_t *entry, const ngx_http_dsa_turn_t *turn,
    const char **why)
{
    const char           *full;
    ngx_http_dsa_save_t  *save;

    full = ngx_http_dsa_redis_full(redis);

    if (full != NULL) {
        (void) ngx_http_dsa_ledger_queue_add(redis, cell, entry, NULL, why);
        *why = full;
        return NGX_DECLINED;
    }

    save = ngx_http_dsa_save_create(turn->request, &turn->conversation,
                                    turn->version, turn->messages,
                                    turn->handler);

    if (ngx_http_dsa_ledger_queue_add(redis, cell, entry, save, why)
        != NGX_OK)
    {

        if (save != NULL) {
            ngx_http_dsa_save_free(save);
        }

        return NGX_DECLINED;
    }

    if (save == NULL) {
        *why = "nginx is out of memory";
        return NGX_DECLINED;
    }

    return NGX_OK;
}
