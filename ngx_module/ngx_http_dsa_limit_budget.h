
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LIMIT_BUDGET_H_INCLUDED_
#define _NGX_HTTP_DSA_LIMIT_BUDGET_H_INCLUDED_


#include "ngx_http_dsa_limit_types.h"


/* The budgets of a key.  The lock of its limits is held. */

/* Starts the periods of t, if they are not the ones of the budgets. */
void ngx_http_dsa_limit_budget_periods(ngx_http_dsa_limit_t *limit, time_t t);

/*
 * Finds a budget whose hard limit is reached: NGX_DECLINED with view->refused,
 * or NGX_OK.  Sets view->warn and view->first.
 */
ngx_int_t ngx_http_dsa_limit_budget_check(ngx_http_dsa_limit_t *limit,
    ngx_http_dsa_limit_view_t *view);

void ngx_http_dsa_limit_budget_charge(ngx_http_dsa_limit_t *limit,
    int64_t cost);

/*
 * What Redis has of the periods of t.  Pending is what was charged since this
 * was read, because a request is in the ledger within a second.
 */
void ngx_http_dsa_limit_budget_read(ngx_http_dsa_limit_t *limit,
    const int64_t spent[DSA_KEY_PERIODS], time_t t);

/* What is spent in a period: in Redis, as it was read last, and pending. */
int64_t ngx_http_dsa_limit_budget_spent(
    const ngx_http_dsa_limit_budget_t *budget);

/* 1: the key has a budget. */
ngx_uint_t ngx_http_dsa_limit_budget_any(const ngx_http_dsa_limit_t *limit);


#endif /* _NGX_HTTP_DSA_LIMIT_BUDGET_H_INCLUDED_ */
