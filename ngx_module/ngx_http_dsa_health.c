
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/json_write.h"
#include "ngx_http_dsa_module.h"


/*
 * 200 while this worker could hand a chat to some engine of the pool, 503
 * otherwise; what is known of each engine is in the body.
 */

ngx_int_t
ngx_http_dsa_health_handler(ngx_http_request_t *r)
{
    dsa_buf_t                 b;
    ngx_int_t                 rc;
    ngx_uint_t                i, ok;
    ngx_http_dsa_pool_t      *pool;
    dsa_link_control_t       *control;
    ngx_http_dsa_session_t   *s;
    ngx_http_dsa_loc_conf_t  *dlcf;

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_ALLOWED, "GET, HEAD",
                                       "Only GET and HEAD are accepted here.");
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);
    pool = dlcf->health;

    ok = ngx_http_dsa_pool_pick(pool, 0, NULL, 0) != NULL;

    ngx_memzero(&b, sizeof(dsa_buf_t));

    dsa_buf_printf(&b, "{\"status\":\"%s\",\"pool\":\"",
                   ok ? "ok" : "unavailable");
    dsa_json_escape(&b, dsa_str(pool->name.data, pool->name.len));
    dsa_buf_addz(&b, "\",\"engines\":[");

    s = pool->sessions.elts;

    for (i = 0; i < pool->sessions.nelts; i++) {
        dsa_buf_addz(&b, i == 0 ? "{\"engine\":\"" : ",{\"engine\":\"");
        dsa_json_escape(&b, dsa_str(s[i].name.data, s[i].name.len));

        if (s[i].state != NGX_HTTP_DSA_READY) {
            dsa_buf_addz(&b, "\",\"up\":false}");
            continue;
        }

        control = s[i].link.control;

        dsa_buf_addz(&b, "\",\"up\":true,\"model\":\"");
        dsa_json_escape(&b, dsa_strz(s[i].hello.model));
        dsa_buf_printf(&b, "\",\"draining\":%s,\"heartbeat_age_ms\":%llu,"
                       "\"running\":%u,\"waiting\":%u}",
                       control->draining ? "true" : "false",
                       (unsigned long long) ngx_http_dsa_session_age(&s[i]),
                       control->running, control->waiting);
    }

    dsa_buf_addz(&b, "]}\n");

    return ngx_http_dsa_send_json(r, ok ? NGX_HTTP_OK
                                        : NGX_HTTP_SERVICE_UNAVAILABLE, &b);
}
