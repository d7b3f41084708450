
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_USAGE_RECORD_H_INCLUDED_
#define _NGX_HTTP_DSA_USAGE_RECORD_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "engine/link.h"
#include "engine/link_event.h"
#include "redis_schema/keys.h"
#include "redis_schema/schema.h"

#include "ngx_module/core/ngx_http_dsa_usage.h"
#include "ngx_module/http/ngx_http_dsa_identity.h"
#include "ngx_module/store/ngx_http_dsa_store.h"
#include "ngx_http_dsa_limit.h"
#include "ngx_http_dsa_price.h"
#include "ngx_http_dsa_tenants.h"


/*
 * What a chat is charged with.  Each of its requests to engines has a part of
 * it, one for each choice.  The prompt is that of the first, because the others
 * use what it has computed.
 */

#define NGX_HTTP_DSA_ID_LEN       48        /* bytes of an id, at most */


typedef struct ngx_http_dsa_usage_record_s  ngx_http_dsa_usage_record_t;


typedef struct {
    ngx_http_dsa_usage_record_t  *record;   /* NULL: nothing is counted */
    uint64_t                      completion;   /* tokens from this engine */
    unsigned                      prompt:1; /* the prompt is charged as this
                                               engine reports it */
} ngx_http_dsa_usage_part_t;


struct ngx_http_dsa_usage_record_s {
    ngx_http_dsa_redis_t       *redis;      /* NULL: no ledger */
    ngx_http_dsa_permit_t       permit;     /* of the key, which is charged
                                               when the usage is written */
    ngx_http_dsa_tenant_ref_t   row;        /* of the table of tenants, where
                                               the request is in flight */
    ngx_int_t                   cell;       /* of entry; negative: none */
    dsa_schema_entry_t          entry;      /* of the ledger; its strings are
                                               model, key, tenant and id */
    ngx_http_dsa_usage_t        usage;
    ngx_http_dsa_usage_t        before;     /* of usage: what earlier requests
                                               to engines were charged with */
    ngx_http_dsa_prices_t      *prices;     /* NULL: none */
    time_t                      start;      /* of the request; its price is
                                               that of this time */
    const ngx_http_dsa_price_t *price;      /* NULL: none */
    ngx_http_dsa_cost_t         cost;       /* of usage, when the entry was
                                               last updated */
    uint32_t                    prompt_tokens;  /* of ACCEPTED */
    uint32_t                    cached_tokens;
    u_char                      model[64];
    u_char                      key[DSA_KEY_ID_LEN];    /* zeros: none */
    u_char                      tenant[NGX_HTTP_DSA_TENANT_LEN];
    u_char                      id[NGX_HTTP_DSA_ID_LEN];
    unsigned                    priced:1;   /* price is set */
    unsigned                    written:1;  /* counted, and in the ledger */
    unsigned                    whole:1;    /* the client gets nothing before
                                               the end of the answer */
    unsigned                    waived:1;   /* nothing is charged */
};


/*
 * Prepares a zeroed record.  redis is NULL without a tenant, because the ledger
 * has entries of tenants only; tenant has NGX_HTTP_DSA_TENANT_LEN digits or is
 * empty.
 */
void ngx_http_dsa_usage_record_init(ngx_http_dsa_usage_record_t *record,
    ngx_http_dsa_redis_t *redis, ngx_str_t *tenant, ngx_str_t *id);

/*
 * The prices of the request, by the time at which it began; without this call
 * it costs 0.
 */
void ngx_http_dsa_usage_record_prices(ngx_http_dsa_usage_record_t *record,
    ngx_http_dsa_prices_t *prices, time_t start);

/*
 * The API key of the request, whose id has DSA_KEY_ID_LEN bytes: its part of
 * the ledger and what it has spent are counted.
 */
void ngx_http_dsa_usage_record_key(ngx_http_dsa_usage_record_t *record,
    const u_char *id);

/* The model's name, once it is known; shorter than the record's array. */
void ngx_http_dsa_usage_record_model(ngx_http_dsa_usage_record_t *record,
    ngx_str_t *model);

/*
 * Reserves the entry of the ledger, when the model is known and before anything
 * is submitted.  From then on, another process charges the request if this one
 * is killed.  NGX_OK, or NGX_DECLINED: the request must not be served, because
 * it cannot be charged; *why is the reason, a static clause.
 */
ngx_int_t ngx_http_dsa_usage_record_begin(
    ngx_http_dsa_usage_record_t *record, const char **why);

/*
 * The answer is sent in one piece.  If this process is killed before that, the
 * client has nothing, and may repeat the request elsewhere: another process
 * charges nothing.
 */
void ngx_http_dsa_usage_record_whole(ngx_http_dsa_usage_record_t *record);

/*
 * The request fails before anything of its answer is sent, so that it may be
 * repeated at once, for example by a balancer: it costs nothing, whatever the
 * engine has computed.
 */
void ngx_http_dsa_usage_record_waive(ngx_http_dsa_usage_record_t *record);

/*
 * An engine was given the request; it is in the table of tenants from now on.
 * Nothing happens if it has no tenant, or is there already.
 */
void ngx_http_dsa_usage_record_submitted(ngx_http_dsa_usage_record_t *record);

/*
 * What an engine has reported.  Until DONE the prompt is charged with the first
 * token, because it was computed then, and with the cached tokens of ACCEPTED,
 * which count as those of the GPU.
 */
void ngx_http_dsa_usage_record_accepted(ngx_http_dsa_usage_part_t *part,
    const dsa_link_accepted_t *accepted);
void ngx_http_dsa_usage_record_prompt(
    const ngx_http_dsa_usage_record_t *record, ngx_http_dsa_usage_t *usage);
void ngx_http_dsa_usage_record_tokens(ngx_http_dsa_usage_part_t *part,
    uint32_t n);
void ngx_http_dsa_usage_record_done(ngx_http_dsa_usage_part_t *part,
    const dsa_link_done_t *done);

/*
 * The engine of a part is gone, and another one continues.  begun: tokens were
 * received.  Then the prompt stays as it is, and is not charged again.
 */
void ngx_http_dsa_usage_record_move(ngx_http_dsa_usage_part_t *part,
    ngx_uint_t begun);

/*
 * The request of the only part has ended, and another one follows: its tokens
 * are added to those of the requests before it.
 */
void ngx_http_dsa_usage_record_next(ngx_http_dsa_usage_part_t *part);

/*
 * Counts the usage and writes it to the ledger, once, together with the turn
 * (NULL: none).  NGX_OK: turn->handler will be called; NGX_DECLINED: it will
 * not be called, and *why is the reason why a turn is not stored.
 */
ngx_int_t ngx_http_dsa_usage_record_write(ngx_http_dsa_usage_record_t *record,
    const ngx_http_dsa_turn_t *turn, const char **why);

/* The same without a turn. */
void ngx_http_dsa_usage_record_close(ngx_http_dsa_usage_record_t *record);

/* What written usage costs, 10^-12 of a unit; -1 if there are no prices. */
int64_t ngx_http_dsa_usage_record_charged(
    const ngx_http_dsa_usage_record_t *record);


#endif /* _NGX_HTTP_DSA_USAGE_RECORD_H_INCLUDED_ */
