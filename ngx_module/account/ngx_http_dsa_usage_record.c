
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <assert.h>

#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_module/store/ngx_http_dsa_ledger_queue.h"
#include "ngx_http_dsa_usage_record.h"


static ngx_int_t ngx_http_dsa_usage_record_store(
    ngx_http_dsa_usage_record_t *record, const ngx_http_dsa_turn_t *turn,
    const char **why);
static void ngx_http_dsa_usage_record_charge(
    ngx_http_dsa_usage_record_t *record);
static ngx_int_t ngx_http_dsa_usage_record_cost(
    ngx_http_dsa_usage_record_t *record);
static void ngx_http_dsa_usage_record_update(
    ngx_http_dsa_usage_record_t *record);
static void ngx_http_dsa_usage_record_counts(
    ngx_http_dsa_usage_record_t *record);
static ngx_uint_t ngx_http_dsa_usage_record_final(
    const ngx_http_dsa_usage_record_t *record);


void
ngx_http_dsa_usage_record_init(ngx_http_dsa_usage_record_t *record,
    ngx_http_dsa_redis_t *redis, ngx_str_t *tenant, ngx_str_t *id)
{
    assert(id->len != 0 && id->len <= NGX_HTTP_DSA_ID_LEN);
    assert(tenant->len == 0 || tenant->len == NGX_HTTP_DSA_TENANT_LEN);

    record->cell = NGX_ERROR;
    ngx_memcpy(record->id, id->data, id->len);
    record->entry.request = dsa_str(record->id, id->len);

    if (tenant->len != 0) {
        record->redis = redis;
        ngx_memcpy(record->tenant, tenant->data, tenant->len);
        record->entry.tenant = dsa_str(record->tenant, tenant->len);
    }
}


void
ngx_http_dsa_usage_record_prices(ngx_http_dsa_usage_record_t *record,
    ngx_http_dsa_prices_t *prices, time_t start)
{
    record->prices = prices;
    record->start = start;
}


void
ngx_http_dsa_usage_record_key(ngx_http_dsa_usage_record_t *record,
    const u_char *id)
{
    ngx_memcpy(record->key, id, DSA_KEY_ID_LEN);
    record->entry.key = dsa_str(record->key, DSA_KEY_ID_LEN);
}


void
ngx_http_dsa_usage_record_model(ngx_http_dsa_usage_record_t *record,
    ngx_str_t *model)
{
    assert(model->len < sizeof(record->model));
    assert(!record->priced);

    ngx_memcpy(record->model, model->data, model->len);
    record->entry.model = dsa_str(record->model, model->len);
}


ngx_int_t
ngx_http_dsa_usage_record_begin(ngx_http_dsa_usage_record_t *record,
    const char **why)
{
    if (record->redis == NULL) {
        return NGX_OK;
    }

    ngx_http_dsa_usage_record_counts(record);

    record->cell = ngx_http_dsa_ledger_queue_reserve(record->redis,
                                                     &record->entry, why);

    return record->cell >= 0 ? NGX_OK : NGX_DECLINED;
}


void
ngx_http_dsa_usage_record_submitted(ngx_http_dsa_usage_record_t *record)
{
    if (record->tenant[0] != '\0' && record->row.row == NULL) {
        ngx_http_dsa_tenants_wait(&record->row, record->tenant, record->key);
    }
}


void
ngx_http_dsa_usage_record_accepted(ngx_http_dsa_usage_part_t *part,
    const dsa_link_accepted_t *accepted)
{
    if (part->record == NULL || !part->prompt) {
        return;
    }

    part->record->prompt_tokens = accepted->prompt_tokens;
    part->record->cached_tokens = ngx_min(accepted->cached_tokens,
                                          accepted->prompt_tokens);
}


/*
 * Sets the prompt's part of usage to what ACCEPTED reported, and adds that of
 * the earlier requests to engines.
 */

void
ngx_http_dsa_usage_record_prompt(const ngx_http_dsa_usage_record_t *record,
    ngx_http_dsa_usage_t *usage)
{
    const ngx_http_dsa_usage_t  *before = &record->before;

    usage->prompt = before->prompt + record->prompt_tokens;
    usage->cached = before->cached + record->cached_tokens;

    ngx_memcpy(usage->tier, before->tier, sizeof(usage->tier));
    usage->tier[DSA_TIER_GPU] += record->cached_tokens;
}


void
ngx_http_dsa_usage_record_tokens(ngx_http_dsa_usage_part_t *part, uint32_t n)
{
    ngx_http_dsa_usage_record_t  *record;

    record = part->record;

    if (ngx_http_dsa_usage_record_final(record)) {
        return;
    }

    part->completion += n;
    record->usage.completion += n;

    ngx_http_dsa_tenants_run(&record->row);

    /* tokens of others may come after DONE of the first has set the prompt */

    if (part->prompt && part->completion != 0) {
        ngx_http_dsa_usage_record_prompt(record, &record->usage);
    }

    ngx_http_dsa_usage_record_update(record);
}


/* Returns 1 if the counts do not change any more. */

static ngx_uint_t
ngx_http_dsa_usage_record_final(const ngx_http_dsa_usage_record_t *record)
{
    return record == NULL || record->waived || record->written;
}


void
ngx_http_dsa_usage_record_whole(ngx_http_dsa_usage_record_t *record)
{
    record->whole = 1;
}


void
ngx_http_dsa_usage_record_waive(ngx_http_dsa_usage_record_t *record)
{
    if (record->written) {
        return;
    }

    ngx_memzero(&record->usage, sizeof(ngx_http_dsa_usage_t));
    ngx_memzero(&record->before, sizeof(ngx_http_dsa_usage_t));

    ngx_http_dsa_usage_record_update(record);

    record->waived = 1;
}


/* Before anything of this is sent to the client. */

static void
ngx_http_dsa_usage_record_update(ngx_http_dsa_usage_record_t *record)
{
    if (record->cell < 0 || record->whole) {
        return;
    }

    (void) ngx_http_dsa_usage_record_cost(record);
    ngx_http_dsa_usage_record_counts(record);

    ngx_http_dsa_ledger_update(ngx_http_dsa_redis_ledger(record->redis),
                               record->cell, &record->entry);
}


void
ngx_http_dsa_usage_record_done(ngx_http_dsa_usage_part_t *part,
    const dsa_link_done_t *done)
{
    ngx_uint_t                    i;
    ngx_http_dsa_usage_t         *usage;
    const ngx_http_dsa_usage_t   *before;
    ngx_http_dsa_usage_record_t  *record;

    record = part->record;

    if (ngx_http_dsa_usage_record_final(record)) {
        return;
    }

    usage = &record->usage;
    before = &record->before;

    usage->completion += done->completion_tokens - part->completion;
    usage->reasoning = ngx_min(usage->reasoning, usage->completion);

    usage->drafts += done->draft_tokens;
    usage->accepted += done->accepted_tokens;

    part->completion = done->completion_tokens;

    if (!part->prompt) {
        ngx_http_dsa_usage_record_update(record);
        return;
    }

    usage->prompt = before->prompt + done->prompt_tokens;
    usage->cached = before->cached + dsa_link_cached(done);

    for (i = 0; i < DSA_TIERS; i++) {
        usage->tier[i] = before->tier[i] + done->cached_tokens[i];
    }

    ngx_http_dsa_usage_record_update(record);

    ngx_http_dsa_metrics_observe(NGX_HTTP_DSA_QUEUE, done->queue_ms, 1);
}


void
ngx_http_dsa_usage_record_move(ngx_http_dsa_usage_part_t *part,
    ngx_uint_t begun)
{
    part->completion = 0;

    if (begun) {
        part->prompt = 0;
    }
}


void
ngx_http_dsa_usage_record_next(ngx_http_dsa_usage_part_t *part)
{
    ngx_http_dsa_usage_record_t  *record;

    record = part->record;

    record->before = record->usage;
    record->prompt_tokens = 0;
    record->cached_tokens = 0;

    part->completion = 0;
}


ngx_int_t
ngx_http_dsa_usage_record_write(ngx_http_dsa_usage_record_t *record,
    const ngx_http_dsa_turn_t *turn, const char **why)
{
    ngx_int_t              rc;
    ngx_http_dsa_usage_t  *usage;

    assert(!record->written);

    record->written = 1;

    usage = &record->usage;

    if (usage->prompt != 0 || usage->completion != 0) {
        ngx_http_dsa_usage_record_charge(record);
    }

    /*
     * The ledger charges the budgets before the permit is released, because
     * another request may be admitted then.
     */

    rc = ngx_http_dsa_usage_record_store(record, turn, why);

    ngx_http_dsa_limit_end(&record->permit, usage->prompt + usage->completion,
                           ngx_http_dsa_price_sum(&record->cost));
    ngx_http_dsa_tenants_end(&record->row, usage,
                             ngx_http_dsa_price_sum(&record->cost));

    return rc;
}


static ngx_int_t
ngx_http_dsa_usage_record_store(ngx_http_dsa_usage_record_t *record,
    const ngx_http_dsa_turn_t *turn, const char **why)
{
    ngx_int_t              rc;
    ngx_http_dsa_usage_t  *usage;

    usage = &record->usage;

    if (usage->prompt == 0 && usage->completion == 0) {

        if (record->cell >= 0) {
            ngx_http_dsa_ledger_free(ngx_http_dsa_redis_ledger(record->redis),
                                     record->cell);
            record->cell = NGX_ERROR;
        }

        *why = "the engine reported no tokens";
        return NGX_DECLINED;
    }

    if (record->redis == NULL) {
        *why = "\"dsa_redis\" is not configured";
        return NGX_DECLINED;
    }

    assert(record->cell >= 0);

    ngx_http_dsa_usage_record_counts(record);

    rc = ngx_http_dsa_store_record(record->redis, record->cell, &record->entry,
                                   turn, why);

    record->cell = NGX_ERROR;

    return turn != NULL ? rc : NGX_DECLINED;
}


/* Sets the time and the counts of the entry. */

static void
ngx_http_dsa_usage_record_counts(ngx_http_dsa_usage_record_t *record)
{
    dsa_schema_entry_t          *entry;
    const ngx_http_dsa_usage_t  *usage;

    usage = &record->usage;
    entry = &record->entry;

    entry->time = ngx_time();
    entry->prompt_tokens = usage->prompt;
    entry->cached_tokens = usage->cached;
    ngx_memcpy(entry->tier_tokens, usage->tier, sizeof(usage->tier));
    entry->completion_tokens = usage->completion;
    entry->reasoning_tokens = usage->reasoning;
    entry->cost_miss = record->cost.miss;
    entry->cost_hit = record->cost.hit;
    entry->cost_output = record->cost.output;
}


/* Sets the cost, and counts the usage and the cost. */

static void
ngx_http_dsa_usage_record_charge(ngx_http_dsa_usage_record_t *record)
{
    ngx_uint_t             i;
    ngx_http_dsa_usage_t  *usage;

    usage = &record->usage;

    ngx_http_dsa_metrics_add(prompt, usage->prompt);
    ngx_http_dsa_metrics_add(cached, usage->cached);

    for (i = 0; i < DSA_TIERS; i++) {
        ngx_http_dsa_metrics_add(tier[i], usage->tier[i]);
    }

    ngx_http_dsa_metrics_add(completion, usage->completion);
    ngx_http_dsa_metrics_add(reasoning, usage->reasoning);

    if (ngx_http_dsa_usage_record_cost(record) != NGX_OK) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                      "dsa: request \"%*s\" has %uL tokens of a prompt, of "
                      "which %uL are cached, and %uL of an answer, which cost "
                      "more than can be counted; each part of its cost is "
                      "limited to a million",
                      record->entry.request.len, record->id, usage->prompt,
                      usage->cached, usage->completion);
    }

    ngx_http_dsa_metrics_add(cost_miss, (uint64_t) record->cost.miss);
    ngx_http_dsa_metrics_add(cost_hit, (uint64_t) record->cost.hit);
    ngx_http_dsa_metrics_add(cost_output, (uint64_t) record->cost.output);
}


/*
 * Sets the cost to that of the usage so far; as ngx_http_dsa_price_cost().  The
 * price is not searched before there is something to charge, because the model
 * is only then known to be one that an engine serves.
 */

static ngx_int_t
ngx_http_dsa_usage_record_cost(ngx_http_dsa_usage_record_t *record)
{
    ngx_str_t  model;

    if (!record->priced) {
        model.data = record->model;
        model.len = record->entry.model.len;

        record->price = ngx_http_dsa_price_find(record->prices, &model,
                                                record->start);
        record->priced = 1;
    }

    return ngx_http_dsa_price_cost(record->price, &record->usage,
                                   &record->cost);
}


void
ngx_http_dsa_usage_record_close(ngx_http_dsa_usage_record_t *record)
{
    const char  *why;

    (void) ngx_http_dsa_usage_record_write(record, NULL, &why);
}


int64_t
ngx_http_dsa_usage_record_charged(const ngx_http_dsa_usage_record_t *record)
{
    assert(record->written);

    return record->prices != NULL ? ngx_http_dsa_price_sum(&record->cost) : -1;
}


_Static_assert(sizeof(((ngx_http_dsa_usage_record_t *) 0)->model)
               == sizeof(((dsa_link_hello_t *) 0)->model),
               "a record holds every model name that an engine can have");
