
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LIMIT_BUDGET_H_INCLUDED_
#define _NGX_HTTP_DSA_LIMIT_BUDGET_H_INCLUDED_


#include "ngx_http_dsa_limit_types.h"


/* The budgets of a key.  The lock of its limits is held. */

/* Starts the periods that contain t, if they have not been started. */
void ngx_http_dsa_limit_budget_periods(ngx_http_dsa_limit_t *limit, time_t t);

/*
 * Finds a budget whose hard limit is reached: NGX_DECLINED with view->refused,
 * or NGX_OK.  Sets view->warn and view->first.
 */
ngx_int_t ngx_http_dsa_limit_budget_check(ngx_http_dsa_limit_t *limit,
    ngx_http_dsa_limit_view_t *view);

/* Charges a cost to the budgets of all periods. */
void ngx_http_dsa_limit_budget_charge(ngx_http_dsa_limit_t *limit,
    int64_t cost);

/*
 * Sets what is spent in the periods that contain t, as read from Redis.
 * Pending becomes what was charged here since then, because the ledger has a
 * request within a second.
 */
void ngx_http_dsa_limit_budget_read(ngx_http_dsa_limit_t *limit,
    const int64_t spent[DSA_KEY_PERIODS], time_t t);

/* Returns what is spent in a period: as read from Redis last, plus pending. */
int64_t ngx_http_dsa_limit_budget_spent(
    const ngx_http_dsa_limit_budget_t *budget);

/* Returns 1 if the key has a budget. */
ngx_uint_t ngx_http_dsa_limit_budget_any(const ngx_http_dsa_limit_t *limit);


#endif /* _NGX_HTTP_DSA_LIMIT_BUDGET_H_INCLUDED_ */
