
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/json_write.h"

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_module/engine/ngx_http_dsa_pool.h"
#include "ngx_module/http/ngx_http_dsa_reply.h"
#include "ngx_module/redis/ngx_http_dsa_redis.h"
#include "ngx_http_dsa_health.h"


static ngx_int_t ngx_http_dsa_health_send(ngx_http_request_t *r,
    ngx_uint_t ok);
static void ngx_http_dsa_health_engine(dsa_json_writer_t *w,
    ngx_http_dsa_session_t *s);
static ngx_uint_t ngx_http_dsa_health_ledger(dsa_json_writer_t *w,
    ngx_http_dsa_main_conf_t *mcf);


ngx_int_t
ngx_http_dsa_health_ready_handler(ngx_http_request_t *r)
{
    ngx_http_dsa_loc_conf_t  *dlcf;

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);

    return ngx_http_dsa_health_send(r,
               ngx_http_dsa_pool_pick(dlcf->health, 0, NULL, 0) != NULL);
}


ngx_int_t
ngx_http_dsa_health_live_handler(ngx_http_request_t *r)
{
    ngx_uint_t                i, ok;
    ngx_http_dsa_session_t   *s;
    ngx_http_dsa_loc_conf_t  *dlcf;

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);

    s = dlcf->health->sessions.elts;
    ok = 1;

    for (i = 0; i < dlcf->health->sessions.nelts; i++) {
        ok = ok && !ngx_http_dsa_session_hangs(&s[i]);
    }

    return ngx_http_dsa_health_send(r, ok);
}


static ngx_int_t
ngx_http_dsa_health_send(ngx_http_request_t *r, ngx_uint_t ok)
{
    dsa_buf_t                  b;
    ngx_int_t                  rc;
    ngx_uint_t                 i, stores;
    dsa_json_writer_t          w;
    ngx_http_dsa_pool_t       *pool;
    ngx_http_dsa_session_t    *s;
    ngx_http_dsa_loc_conf_t   *dlcf;
    ngx_http_dsa_main_conf_t  *mcf;

    rc = ngx_http_dsa_accept_get(r);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);
    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);
    pool = dlcf->health;

    ngx_memzero(&b, sizeof(dsa_buf_t));

    dsa_json_writer(&w, &b);
    dsa_json_object(&w);
    dsa_json_key(&w, "pool");
    dsa_json_string(&w, dsa_str(pool->name.data, pool->name.len));
    dsa_json_key(&w, "engines");
    dsa_json_array(&w);

    s = pool->sessions.elts;

    for (i = 0; i < pool->sessions.nelts; i++) {
        ngx_http_dsa_health_engine(&w, &s[i]);
    }

    dsa_json_array_end(&w);

    stores = mcf->redis == NULL || ngx_http_dsa_health_ledger(&w, mcf);

    dsa_json_key(&w, "status");
    dsa_json_stringz(&w, !ok ? "unavailable" : stores ? "ok" : "degraded");
    dsa_json_object_end(&w);

    dsa_buf_addz(&b, "\n");

    return ngx_http_dsa_send_json(r, ok ? NGX_HTTP_OK
                                        : NGX_HTTP_SERVICE_UNAVAILABLE, &b);
}


static void
ngx_http_dsa_health_engine(dsa_json_writer_t *w, ngx_http_dsa_session_t *s)
{
    ngx_uint_t           up;
    dsa_link_control_t  *control;

    up = ngx_http_dsa_session_up(s);

    dsa_json_object(w);
    dsa_json_key(w, "engine");
    dsa_json_string(w, dsa_str(s->name.data, s->name.len));
    dsa_json_key(w, "up");
    dsa_json_bool(w, up);

    if (s->state == NGX_HTTP_DSA_READY) {
        dsa_json_key(w, "hangs");
        dsa_json_bool(w, ngx_http_dsa_session_hangs(s));
        dsa_json_key(w, "heartbeat_age_ms");
        dsa_json_uint(w, ngx_http_dsa_session_age(s));
        dsa_json_key(w, "step_age_ms");
        dsa_json_uint(w, ngx_http_dsa_session_step(s));
    }

    if (up) {
        control = s->link.control;

        dsa_json_key(w, "model");
        dsa_json_stringz(w, s->hello.model);
        dsa_json_key(w, "draining");
        dsa_json_bool(w, control->draining != 0);
        dsa_json_key(w, "running");
        dsa_json_uint(w, control->running);
        dsa_json_key(w, "waiting");
        dsa_json_uint(w, control->waiting);
    }

    dsa_json_object_end(w);
}


/* Returns 0 if Redis does not accept what it gets, or entries have no room. */

static ngx_uint_t
ngx_http_dsa_health_ledger(dsa_json_writer_t *w, ngx_http_dsa_main_conf_t *mcf)
{
    ngx_uint_t                 writable;
    ngx_http_dsa_block_t       total;
    ngx_http_dsa_ledger_use_t  use;

    ngx_http_dsa_metrics_sum(mcf->metrics, &total);
    ngx_http_dsa_ledger_use(ngx_http_dsa_redis_ledger(mcf->redis), &use);

    writable = total.redis_up != 0 && total.redis_refuses == 0;

    dsa_json_key(w, "ledger");
    dsa_json_object(w);
    dsa_json_key(w, "capacity");
    dsa_json_uint(w, use.cells);
    dsa_json_key(w, "used");
    dsa_json_uint(w, use.used);
    dsa_json_key(w, "waiting");
    dsa_json_uint(w, use.waiting);
    dsa_json_key(w, "writable");
    dsa_json_bool(w, writable);
    dsa_json_object_end(w);

    return writable && use.used < use.cells;
}
