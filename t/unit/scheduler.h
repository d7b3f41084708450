
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A scheduler for tests, on the backend of scheduler_backend.h and with the
 * clients of scheduler_client.h.
 */


#ifndef _SCHEDULER_H_INCLUDED_
#define _SCHEDULER_H_INCLUDED_


#include "t/unit/scheduler_client.h"


static uint32_t  max_waiting = 100000;
static uint32_t  max_per_tenant = 100000;
static uint32_t  token_target_ms;
static uint32_t  first_token_target_ms;


static inline void
fake_conf(dsa_sched_conf_t *conf, fake_t *f, uint32_t max_running,
    uint32_t budget)
{
    memset(conf, 0, sizeof(dsa_sched_conf_t));

    conf->max_running = max_running;
    conf->token_budget = budget;
    conf->max_waiting = max_waiting;
    conf->max_waiting_per_tenant = max_per_tenant;
    conf->context = 100000;
    conf->token_target_ms = token_target_ms;
    conf->first_token_target_ms = first_token_target_ms;
    conf->clock_us = fake_clock;
    conf->clock_data = f;
}


static inline dsa_sched_t *
start(fake_t **fake, uint32_t pages, uint32_t max_running, uint32_t budget)
{
    fake_t            *f;
    dsa_err_t          err;
    dsa_sched_t       *s;
    dsa_sched_conf_t   conf;

    f = calloc(1, sizeof(fake_t));
    assert_non_null(f);

    fake_init(f, pages, max_running, budget);
    fake_conf(&conf, f, max_running, budget);

    s = dsa_sched_create(&f->base, &conf, &handler, &err);
    assert_non_null(s);

    *fake = f;

    return s;
}


static inline void
finish(dsa_sched_t *s, fake_t *f)
{
    dsa_sched_destroy(s);
    free(f);
}


static inline void
audit(dsa_sched_t *s)
{
    dsa_err_t  err;

    if (dsa_sched_audit(s, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }
}


static inline void
step(dsa_sched_t *s)
{
    dsa_err_t  err;

    if (dsa_sched_step(s, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    audit(s);
}


static inline void
run(dsa_sched_t *s)
{
    uint32_t  n;

    for (n = 0; dsa_sched_busy(s); n++) {
        assert_true(n < 1000000);
        step(s);
    }
}


/* All sequences are gone, and all pages are free. */

static inline void
check_free(dsa_sched_t *s)
{
    dsa_sched_stats_t  stats;

    audit(s);
    dsa_sched_stats(s, &stats);

    assert_int_equal(stats.pages_used, 0);
    assert_int_equal(stats.running, 0);
    assert_int_equal(stats.waiting, 0);
}


#endif /* _SCHEDULER_H_INCLUDED_ */
