
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_PROMETHEUS_TEXT_H_INCLUDED_
#define _NGX_HTTP_DSA_PROMETHEUS_TEXT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/buf.h"

#include "ngx_module/core/ngx_http_dsa_metrics.h"


/* The text format of Prometheus, version 0.0.4. */

/* The two lines before the samples of a metric. */
void ngx_http_dsa_prometheus_head(dsa_buf_t *b, const char *name,
    const char *type, const char *help);

/* A metric with one sample, which has no labels. */
void ngx_http_dsa_prometheus_one(dsa_buf_t *b, const char *name,
    const char *type, const char *help, uint64_t value);

/* A sample with one label; text has no character that needs an escape. */
void ngx_http_dsa_prometheus_sample(dsa_buf_t *b, const char *name,
    const char *label, const char *text, uint64_t value);

/* A histogram of milliseconds, reported in seconds. */
void ngx_http_dsa_prometheus_histogram(dsa_buf_t *b,
    const ngx_http_dsa_bounds_t *bounds, const ngx_http_dsa_hist_t *hist);

/* The value of a label, with its escapes and without quotes. */
void ngx_http_dsa_prometheus_label(dsa_buf_t *b, const ngx_str_t *s);


#endif /* _NGX_HTTP_DSA_PROMETHEUS_TEXT_H_INCLUDED_ */
