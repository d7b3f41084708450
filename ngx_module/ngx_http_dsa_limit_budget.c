
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <assert.h>

#include "ngx_http_dsa_limit_budget.h"


#define NGX_HTTP_DSA_LIMIT_DAY   86400

/* the most of each of two amounts, so that their sum does not overflow */

#define NGX_HTTP_DSA_LIMIT_MOST  (INT64_MAX / 2)


static uint32_t ngx_http_dsa_limit_budget_number(dsa_key_period_e period,
    time_t t);


/*
 * Periods are in UTC, as in the ledger.  A new period begins with nothing
 * spent; what other hosts have spent in it is added by the next read from
 * Redis.
 */

void
ngx_http_dsa_limit_budget_periods(ngx_http_dsa_limit_t *limit, time_t t)
{
    uint32_t                      number;
    ngx_uint_t                    i;
    ngx_http_dsa_limit_budget_t  *budget;

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        budget = &limit->budget[i];
        number = ngx_http_dsa_limit_budget_number(i, t);

        /* the cached time of another worker may be ahead of this worker's */

        if (budget->number >= number) {
            continue;
        }

        budget->number = number;
        budget->spent = 0;
        budget->pending = 0;
        budget->since = 0;
        budget->warned = 0;
    }
}


/* Returns the number of a period.  Numbers grow with time and are never 0. */

static uint32_t
ngx_http_dsa_limit_budget_number(dsa_key_period_e period, time_t t)
{
    ngx_tm_t  tm;

    switch (period) {

    case DSA_KEY_DAY:
        return t / NGX_HTTP_DSA_LIMIT_DAY + 1;

    case DSA_KEY_MONTH:
        ngx_gmtime(t, &tm);
        return tm.ngx_tm_year * 12 + tm.ngx_tm_mon;

    default: /* DSA_KEY_TOTAL */
        return 1;
    }
}


ngx_int_t
ngx_http_dsa_limit_budget_check(ngx_http_dsa_limit_t *limit,
    ngx_http_dsa_limit_view_t *view)
{
    int64_t                       spent;
    ngx_int_t                     rc;
    ngx_uint_t                    i;
    const dsa_key_budget_t       *conf;
    ngx_http_dsa_limit_budget_t  *budget;

    rc = NGX_OK;

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        conf = &limit->conf.budget[i];
        budget = &limit->budget[i];
        spent = ngx_http_dsa_limit_budget_spent(budget);

        if (conf->soft >= 0 && spent >= conf->soft) {
            view->warn |= 1 << i;

            if (budget->warned == 0) {
                budget->warned = 1;
                view->first |= 1 << i;
            }
        }

        /*
         * of several spent budgets the last one is reported: its period ends
         * last
         */

        if (conf->hard >= 0 && spent >= conf->hard) {
            view->refused = NGX_HTTP_DSA_LIMIT_BUDGET;
            view->period = i;
            rc = NGX_DECLINED;
        }
    }

    return rc;
}


void
ngx_http_dsa_limit_budget_charge(ngx_http_dsa_limit_t *limit, int64_t cost)
{
    ngx_uint_t                    i;
    ngx_http_dsa_limit_budget_t  *budget;

    assert(cost >= 0);

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        budget = &limit->budget[i];

        cost = ngx_min(cost, NGX_HTTP_DSA_LIMIT_MOST - budget->pending);

        budget->pending += cost;
        budget->since += cost;
    }
}


int64_t
ngx_http_dsa_limit_budget_spent(const ngx_http_dsa_limit_budget_t *budget)
{
    return budget->spent + budget->pending;
}


void
ngx_http_dsa_limit_budget_read(ngx_http_dsa_limit_t *limit,
    const int64_t spent[DSA_KEY_PERIODS], time_t t)
{
    ngx_uint_t                    i;
    ngx_http_dsa_limit_budget_t  *budget;

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        budget = &limit->budget[i];

        if (budget->number == ngx_http_dsa_limit_budget_number(i, t)) {
            budget->spent = ngx_min(spent[i], NGX_HTTP_DSA_LIMIT_MOST);
            budget->pending = budget->since;
        }
    }
}


ngx_uint_t
ngx_http_dsa_limit_budget_any(const ngx_http_dsa_limit_t *limit)
{
    ngx_uint_t  i;

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        if (limit->conf.budget[i].soft >= 0 || limit->conf.budget[i].hard >= 0)
        {
            return 1;
        }
    }

    return 0;
}
