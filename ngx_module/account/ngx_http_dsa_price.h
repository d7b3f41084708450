
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_PRICE_H_INCLUDED_
#define _NGX_HTTP_DSA_PRICE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_module/core/ngx_http_dsa_usage.h"


/*
 * What requests cost.  Money is counted in 10^-12 of the unit of the currency,
 * as base/money.h describes.
 */

typedef struct {
    int64_t                   miss;         /* prompt tokens not cached */
    int64_t                   hit;          /* cached ones */
    int64_t                   output;
} ngx_http_dsa_cost_t;


/*
 * The largest value of each part of a cost.  It has as many digits as a count
 * of the ledger may have, and the sum of the three parts fits 64 bits.
 */

#define NGX_HTTP_DSA_COST_MAX  999999999999999999LL


typedef struct ngx_http_dsa_prices_s  ngx_http_dsa_prices_t;
typedef struct ngx_http_dsa_price_s   ngx_http_dsa_price_t;


/*
 * "dsa_price MODEL ..." and "dsa_price currency=NAME"; conf is the main
 * configuration.
 */
char *ngx_http_dsa_price_directive(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/*
 * After the configuration has been read: NGX_OK, or NGX_ERROR if a model has
 * prices for some hours only, which is logged.  prices may be NULL, as below.
 */
ngx_int_t ngx_http_dsa_price_check(ngx_conf_t *cf,
    const ngx_http_dsa_prices_t *prices);

/*
 * The price of a model at the time "when", which is valid as long as prices.
 * NULL: prices is NULL, or the model has no price, which is logged once.
 * Models without a price are remembered, so the model must be one that an
 * engine serves: clients could fill the memory with names that they make up.
 */
const ngx_http_dsa_price_t *ngx_http_dsa_price_find(
    ngx_http_dsa_prices_t *prices, ngx_str_t *model, time_t when);

/*
 * The cost of usage, which is 0 if price is NULL.  NGX_OK, or NGX_DECLINED:
 * a part was the maximum or more, and is the maximum.
 */
ngx_int_t ngx_http_dsa_price_cost(const ngx_http_dsa_price_t *price,
    const ngx_http_dsa_usage_t *usage, ngx_http_dsa_cost_t *cost);

/* The sum of the parts. */
int64_t ngx_http_dsa_price_sum(const ngx_http_dsa_cost_t *cost);


#endif /* _NGX_HTTP_DSA_PRICE_H_INCLUDED_ */
