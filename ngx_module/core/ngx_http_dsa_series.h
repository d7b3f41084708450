
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_SERIES_H_INCLUDED_
#define _NGX_HTTP_DSA_SERIES_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/*
 * Durations of the requests of pools by labels: a table in shared memory with a
 * row for each combination.  Its bounds are the explicit bucket boundaries that
 * OpenTelemetry's semantic conventions of generative AI give for the metrics of
 * model servers.
 *
 * The table has NGX_HTTP_DSA_SERIES rows, and no row is ever removed, because a
 * counter must not disappear.  A tenant gets a row of its own while fewer than
 * NGX_HTTP_DSA_SERIES_NAMED rows are in use, and the tenant "other" later.  The
 * last row is for all that finds the table full: its labels are all "other".
 */

#define NGX_HTTP_DSA_SERIES         256
#define NGX_HTTP_DSA_SERIES_NAMED   192
#define NGX_HTTP_DSA_SERIES_TEXT    64      /* bytes of a label and a NUL */
#define NGX_HTTP_DSA_SERIES_BOUNDS  16      /* of a histogram, at most */


typedef enum {
    NGX_HTTP_DSA_SERIES_DURATION = 0,   /* arrival to end */
    NGX_HTTP_DSA_SERIES_FIRST,          /* arrival to the first token */
    NGX_HTTP_DSA_SERIES_TOKEN,          /* of each token after the first */
    NGX_HTTP_DSA_SERIES_HISTOGRAMS
} ngx_http_dsa_series_histogram_e;


typedef enum {
    NGX_HTTP_DSA_SERIES_POOL = 0,
    NGX_HTTP_DSA_SERIES_MODEL,
    NGX_HTTP_DSA_SERIES_ENDPOINT,
    NGX_HTTP_DSA_SERIES_TENANT,
    NGX_HTTP_DSA_SERIES_ERROR,
    NGX_HTTP_DSA_SERIES_LABELS
} ngx_http_dsa_series_label_e;


typedef struct {
    uint64_t                  bucket[NGX_HTTP_DSA_SERIES_BOUNDS + 1];
                                            /* the one after the last bound is
                                               for longer durations */
    uint64_t                  count;
    uint64_t                  sum;          /* microseconds */
} ngx_http_dsa_series_hist_t;


typedef struct {
    u_char                    label[NGX_HTTP_DSA_SERIES_LABELS]
                                   [NGX_HTTP_DSA_SERIES_TEXT];
                                            /* NUL-terminated */
    ngx_http_dsa_series_hist_t  histogram[NGX_HTTP_DSA_SERIES_HISTOGRAMS];
} ngx_http_dsa_series_t;


/* A request that has ended.  A duration of 0 is not counted. */

typedef struct {
    ngx_str_t                 label[NGX_HTTP_DSA_SERIES_LABELS];
                                            /* each is cut to the bytes that a
                                               row has for it */
    uint64_t                  us[NGX_HTTP_DSA_SERIES_HISTOGRAMS];
} ngx_http_dsa_series_sample_t;


/* In configuration: the zone of the table.  NULL: out of memory. */
ngx_shm_zone_t *ngx_http_dsa_series_zone(ngx_conf_t *cf);

/* Counts a request. */
void ngx_http_dsa_series_add(ngx_shm_zone_t *zone,
    const ngx_http_dsa_series_sample_t *sample);

/*
 * Copies the rows of a pool to rows, which has room for all of the table, and
 * returns their number.  The last row of the table counts as one of every pool.
 */
ngx_uint_t ngx_http_dsa_series_read(ngx_shm_zone_t *zone,
    const ngx_str_t *pool, ngx_http_dsa_series_t *rows);

/* The bounds of a histogram in microseconds; n is set to their number. */
const uint64_t *ngx_http_dsa_series_bounds(
    ngx_http_dsa_series_histogram_e which, ngx_uint_t *n);


#endif /* _NGX_HTTP_DSA_SERIES_H_INCLUDED_ */
