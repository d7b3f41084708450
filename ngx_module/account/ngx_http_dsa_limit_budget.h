
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LIMIT_BUDGET_H_INCLUDED_
#define _NGX_HTTP_DSA_LIMIT_BUDGET_H_INCLUDED_


#include "ngx_module/ledger/ngx_http_dsa_sums.h"
#include "ngx_http_dsa_limit_types.h"


/*
 * The budgets of a key.  With dsa_redis, what a key has spent is in the file of
 * ngx_http_dsa_sums.h, where the ledger charges it; without, it is in the zone.
 */

/* In a worker: the sums of dsa_redis; NULL: there is none. */
void ngx_http_dsa_limit_budget_start(ngx_http_dsa_sums_t *sums);

/* The lock of the limits is held by the callers of these functions. */

/* Charges a cost, unless the ledger does. */
void ngx_http_dsa_limit_budget_charge(ngx_http_dsa_limit_t *limit,
    int64_t cost);

/* What is spent in each period.  Returns 1, or 0: more may be spent. */
ngx_uint_t ngx_http_dsa_limit_budget_spent(const ngx_http_dsa_limit_t *limit,
    int64_t spent[DSA_KEY_PERIODS]);

/*
 * Finds a budget whose hard limit is reached, by what view has: NGX_DECLINED
 * with view->refused, also if it may be reached; or NGX_OK.  Sets view->warn
 * and view->first.
 */
ngx_int_t ngx_http_dsa_limit_budget_check(ngx_http_dsa_limit_t *limit,
    ngx_http_dsa_limit_view_t *view);

/* Returns 1 if the key has a budget; hard: one with a hard limit. */
ngx_uint_t ngx_http_dsa_limit_budget_any(const dsa_key_limits_t *conf,
    ngx_uint_t hard);


#endif /* _NGX_HTTP_DSA_LIMIT_BUDGET_H_INCLUDED_ */
