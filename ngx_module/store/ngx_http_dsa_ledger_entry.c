
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <assert.h>

#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_http_dsa_ledger_entry.h"


_Static_assert(DSA_SCHEMA_RESEND + 3600 <= DSA_SCHEMA_DONE_TTL,
               "the marker outlives the last attempt");


ngx_http_dsa_ledger_entry_t *
ngx_http_dsa_ledger_entry_read(ngx_http_dsa_ledger_entries_t *entries,
    ngx_uint_t cell, const char **why)
{
    ngx_http_dsa_ledger_entry_t  *e;

    e = ngx_calloc(sizeof(ngx_http_dsa_ledger_entry_t), ngx_cycle->log);
    if (e == NULL) {
        *why = "nginx is out of memory";
        return NULL;
    }

    if (ngx_http_dsa_ledger_read(entries->ledger, cell, &e->copy, &e->entry)
        != NGX_OK)
    {
        *why = "its cell in the queue is damaged";
        ngx_free(e);
        return NULL;
    }

    ngx_queue_init(&e->queue);

    e->owner = entries;
    e->cell = cell;
    e->unconfirmed = (e->copy.sent != 0);
    entries->n++;

    return e;
}


void
ngx_http_dsa_ledger_entry_free(ngx_http_dsa_ledger_entry_t *e)
{
    assert(e->owner->n != 0);

    ngx_queue_remove(&e->queue);
    e->owner->n--;

    ngx_free(e);
}


void
ngx_http_dsa_ledger_entry_sent(ngx_http_dsa_ledger_entry_t *e, time_t when)
{
    e->copy.sent = when;
    ngx_http_dsa_ledger_sent(e->owner->ledger, e->cell, when);
}


/*
 * Redis may have executed an earlier attempt, and the marker of the entry may
 * have expired since then: one more attempt could count the entry again.
 */

ngx_uint_t
ngx_http_dsa_ledger_entry_stale(const ngx_http_dsa_ledger_entry_t *e)
{
    return e->turn == NULL && e->copy.sent != 0
           && ngx_time() - (time_t) e->copy.sent > DSA_SCHEMA_RESEND;
}


/* The error log is the last place where the figures are kept. */

void
ngx_http_dsa_ledger_entry_lost(const dsa_schema_entry_t *entry,
    const char *why)
{
    u_char      *p, tiers[DSA_TIERS * 64];
    ngx_uint_t   i;

    p = tiers;

    for (i = DSA_TIER_HOST; i < DSA_TIERS; i++) {
        p = ngx_slprintf(p, tiers + sizeof(tiers), ", cached %s %uL",
                         dsa_tier_names[i].name, entry->tier_tokens[i]);
    }

    ngx_http_dsa_metrics_add(redis_lost, 1);

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "dsa: a ledger entry is lost: %s; request \"%*s\", "
                  "tenant \"%*s\", model \"%*s\", time %T, prompt %uL, "
                  "cached %uL%*s, completion %uL, reasoning %uL, "
                  "key \"%*s\", cost miss %L, hit %L, output %L",
                  why, entry->request.len, entry->request.data,
                  entry->tenant.len, entry->tenant.data,
                  entry->model.len, entry->model.data,
                  (time_t) entry->time, entry->prompt_tokens,
                  entry->cached_tokens, (size_t) (p - tiers), tiers,
                  entry->completion_tokens, entry->reasoning_tokens,
                  entry->key.len, entry->key.data,
                  entry->cost_miss, entry->cost_hit, entry->cost_output);
}


void
ngx_http_dsa_ledger_turn_end(ngx_http_dsa_save_t *turn, const char *why)
{
    if (why != NULL) {
        ngx_http_dsa_metrics_add(redis_refused, 1);

        ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                      "dsa: a turn of conversation \"%*s\" is not stored: %s",
                      turn->conversation.len, turn->conversation.data, why);
    }

    ngx_http_dsa_save_end(turn, why);
}
