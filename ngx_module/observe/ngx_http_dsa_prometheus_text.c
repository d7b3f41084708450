
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <inttypes.h>

#include "ngx_http_dsa_prometheus_text.h"


void
ngx_http_dsa_prometheus_head(dsa_buf_t *b, const char *name, const char *type,
    const char *help)
{
    dsa_buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}


void
ngx_http_dsa_prometheus_one(dsa_buf_t *b, const char *name, const char *type,
    const char *help, uint64_t value)
{
    ngx_http_dsa_prometheus_head(b, name, type, help);

    dsa_buf_printf(b, "%s %" PRIu64 "\n", name, value);
}


void
ngx_http_dsa_prometheus_sample(dsa_buf_t *b, const char *name,
    const char *label, const char *text, uint64_t value)
{
    dsa_buf_printf(b, "%s{%s=\"%s\"} %" PRIu64 "\n", name, label, text,
                   value);
}


void
ngx_http_dsa_prometheus_histogram(dsa_buf_t *b,
    const ngx_http_dsa_bounds_t *bounds, const ngx_http_dsa_hist_t *hist)
{
    uint64_t    count;
    ngx_uint_t  i;

    ngx_http_dsa_prometheus_head(b, bounds->name, "histogram", bounds->help);

    count = 0;

    for (i = 0; i < NGX_HTTP_DSA_BUCKETS; i++) {
        count += hist->bucket[i];

        dsa_buf_printf(b, "%s_bucket{le=\"%.9g\"} %" PRIu64 "\n",
                       bounds->name, (double) bounds->bounds[i] / 1000, count);
    }

    count += hist->bucket[i];

    dsa_buf_printf(b, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %.3f\n"
                   "%s_count %" PRIu64 "\n",
                   bounds->name, count,
                   bounds->name, (double) hist->sum / 1000,
                   bounds->name, count);
}


void
ngx_http_dsa_prometheus_label(dsa_buf_t *b, const ngx_str_t *s)
{
    size_t  i;

    for (i = 0; i < s->len; i++) {
        if (s->data[i] == '"' || s->data[i] == '\\') {
            dsa_buf_add(b, "\\", 1);
        }

        if (s->data[i] == '\n') {
            dsa_buf_add(b, "\\n", 2);
            continue;
        }

        dsa_buf_add(b, &s->data[i], 1);
    }
}
