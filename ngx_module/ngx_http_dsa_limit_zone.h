
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LIMIT_ZONE_H_INCLUDED_
#define _NGX_HTTP_DSA_LIMIT_ZONE_H_INCLUDED_


#include "ngx_http_dsa_limit.h"


/* For the parts of the limits only: what all keys of a zone share. */

struct ngx_http_dsa_limits_s {
    dsa_seats_t                seats;       /* and the lock of all limits */
};


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

/* What is spent in a period, as far as this host has heard. */
int64_t ngx_http_dsa_limit_budget_spent(
    const ngx_http_dsa_limit_budget_t *budget);


#endif /* _NGX_HTTP_DSA_LIMIT_ZONE_H_INCLUDED_ */
