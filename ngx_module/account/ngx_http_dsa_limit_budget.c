
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_limit_budget.h"


static ngx_http_dsa_sums_t  *ngx_http_dsa_limit_sums;


void
ngx_http_dsa_limit_budget_start(ngx_http_dsa_sums_t *sums)
{
    ngx_http_dsa_limit_sums = sums;
}


void
ngx_http_dsa_limit_budget_charge(ngx_http_dsa_limit_t *limit, int64_t cost)
{
    time_t  now;

    if (ngx_http_dsa_limit_sums == NULL) {
        now = time(NULL);
        dsa_sums_charge(&limit->sums, cost, now, now);
    }
}


ngx_uint_t
ngx_http_dsa_limit_budget_spent(const ngx_http_dsa_limit_t *limit,
    int64_t spent[DSA_KEY_PERIODS])
{
    if (ngx_http_dsa_limit_sums != NULL) {
        return ngx_http_dsa_sums_spent(ngx_http_dsa_limit_sums, limit->id,
                                       spent);
    }

    (void) dsa_sums_spent(&limit->sums, time(NULL), spent);

    return 1;
}


ngx_int_t
ngx_http_dsa_limit_budget_check(ngx_http_dsa_limit_t *limit,
    ngx_http_dsa_limit_view_t *view)
{
    int64_t                  number;
    ngx_uint_t               i;
    const dsa_key_budget_t  *conf;

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        conf = &limit->conf.budget[i];

        if (conf->soft >= 0 && view->spent[i] >= conf->soft) {
            view->warn |= 1 << i;

            number = dsa_sums_number(i, time(NULL));

            if (limit->warned[i] != number) {
                limit->warned[i] = number;
                view->first |= 1 << i;
            }
        }

        /*
         * of several spent budgets the last one is reported: its period ends
         * last
         */

        if (conf->hard >= 0 && view->spent[i] >= conf->hard) {
            view->refused = NGX_HTTP_DSA_LIMIT_BUDGET;
            view->period = i;
        }
    }

    if (!view->known && ngx_http_dsa_limit_budget_any(&limit->conf, 1)) {
        view->refused = NGX_HTTP_DSA_LIMIT_UNKNOWN;
        view->retry = 1;
    }

    return view->refused == NGX_HTTP_DSA_LIMIT_NONE ? NGX_OK : NGX_DECLINED;
}


ngx_uint_t
ngx_http_dsa_limit_budget_any(const dsa_key_limits_t *conf, ngx_uint_t hard)
{
    ngx_uint_t  i;

    for (i = 0; i < DSA_KEY_PERIODS; i++) {
        if (conf->budget[i].hard >= 0
            || (!hard && conf->budget[i].soft >= 0))
        {
            return 1;
        }
    }

    return 0;
}
