
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_conf.h"
#include "ngx_http_dsa_series.h"
#include "ngx_http_dsa_zone.h"


#define NGX_HTTP_DSA_SERIES_LAYOUT                                            \
    NGX_HTTP_DSA_ZONE_LAYOUT(1, ngx_http_dsa_series_table_t)


typedef struct {
    ngx_http_dsa_zone_t       zone;
    ngx_uint_t                used;         /* rows */
    ngx_http_dsa_series_t     rows[NGX_HTTP_DSA_SERIES];
} ngx_http_dsa_series_table_t;


typedef struct {
    ngx_uint_t                n;
    uint64_t                  us[NGX_HTTP_DSA_SERIES_BOUNDS];   /* rising */
} ngx_http_dsa_series_bounds_t;


static ngx_int_t ngx_http_dsa_series_init_zone(ngx_shm_zone_t *zone,
    void *data);
static ngx_http_dsa_series_t *ngx_http_dsa_series_row(
    ngx_http_dsa_series_table_t *t, const ngx_http_dsa_series_sample_t *s);
static ngx_http_dsa_series_t *ngx_http_dsa_series_find(
    ngx_http_dsa_series_table_t *t, const ngx_http_dsa_series_sample_t *s);
static ngx_http_dsa_series_t *ngx_http_dsa_series_new(
    ngx_http_dsa_series_table_t *t, const ngx_http_dsa_series_sample_t *s);
static size_t ngx_http_dsa_series_len(const ngx_str_t *label);
static void ngx_http_dsa_series_count(ngx_http_dsa_series_hist_t *hist,
    const ngx_http_dsa_series_bounds_t *bounds, uint64_t us);


/* OpenTelemetry semantic conventions, gen-ai-metrics, model server metrics */

static const ngx_http_dsa_series_bounds_t
    ngx_http_dsa_series_limits[NGX_HTTP_DSA_SERIES_HISTOGRAMS] =
{
    { 14, { 10000, 20000, 40000, 80000, 160000, 320000, 640000, 1280000,
            2560000, 5120000, 10240000, 20480000, 40960000, 81920000 } },

    { 16, { 1000, 5000, 10000, 20000, 40000, 60000, 80000, 100000, 250000,
            500000, 750000, 1000000, 2500000, 5000000, 7500000, 10000000 } },

    { 13, { 10000, 25000, 50000, 75000, 100000, 150000, 200000, 300000, 400000,
            500000, 750000, 1000000, 2500000 } }
};


static const ngx_str_t  ngx_http_dsa_series_other = ngx_string("other");


ngx_shm_zone_t *
ngx_http_dsa_series_zone(ngx_conf_t *cf)
{
    size_t           size;
    ngx_shm_zone_t  *zone;

    static ngx_str_t  name = ngx_string("dsa_series");

    /* room for the slab allocator's own pages */

    size = ngx_align(sizeof(ngx_http_dsa_series_table_t), ngx_pagesize)
           + 16 * ngx_pagesize;

    zone = ngx_shared_memory_add(cf, &name, size, &ngx_http_dsa_module);

    if (zone != NULL) {
        zone->init = ngx_http_dsa_series_init_zone;
    }

    return zone;
}


static ngx_int_t
ngx_http_dsa_series_init_zone(ngx_shm_zone_t *zone, void *data)
{
    ngx_int_t                     rc;
    ngx_http_dsa_series_table_t  *t;

    rc = ngx_http_dsa_zone_open(zone, data, NGX_HTTP_DSA_SERIES_LAYOUT,
                                sizeof(ngx_http_dsa_series_table_t), &t);
    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    zone->data = t;

    return NGX_OK;
}


void
ngx_http_dsa_series_add(ngx_shm_zone_t *zone,
    const ngx_http_dsa_series_sample_t *sample)
{
    ngx_uint_t                    i;
    ngx_slab_pool_t              *shpool;
    ngx_http_dsa_series_t        *row;

    shpool = (ngx_slab_pool_t *) zone->shm.addr;

    /* the master releases the mutex of a worker that is killed */

    ngx_shmtx_lock(&shpool->mutex);

    row = ngx_http_dsa_series_row(zone->data, sample);

    for (i = 0; i < NGX_HTTP_DSA_SERIES_HISTOGRAMS; i++) {
        if (sample->us[i] != 0) {
            ngx_http_dsa_series_count(&row->histogram[i],
                                      &ngx_http_dsa_series_limits[i],
                                      sample->us[i]);
        }
    }

    ngx_shmtx_unlock(&shpool->mutex);
}


static ngx_http_dsa_series_t *
ngx_http_dsa_series_row(ngx_http_dsa_series_table_t *t,
    const ngx_http_dsa_series_sample_t *s)
{
    ngx_uint_t                     i;
    ngx_http_dsa_series_t         *row;
    ngx_http_dsa_series_sample_t   other;

    row = ngx_http_dsa_series_find(t, s);

    if (row != NULL) {
        return row;
    }

    if (t->used < NGX_HTTP_DSA_SERIES_NAMED) {
        return ngx_http_dsa_series_new(t, s);
    }

    other = *s;
    other.label[NGX_HTTP_DSA_SERIES_TENANT] = ngx_http_dsa_series_other;

    row = ngx_http_dsa_series_find(t, &other);

    if (row != NULL) {
        return row;
    }

    if (t->used < NGX_HTTP_DSA_SERIES - 1) {
        return ngx_http_dsa_series_new(t, &other);
    }

    for (i = 0; i < NGX_HTTP_DSA_SERIES_LABELS; i++) {
        other.label[i] = ngx_http_dsa_series_other;
    }

    row = ngx_http_dsa_series_find(t, &other);

    return row != NULL ? row : ngx_http_dsa_series_new(t, &other);
}


/* Returns the row with these labels, or NULL. */

static ngx_http_dsa_series_t *
ngx_http_dsa_series_find(ngx_http_dsa_series_table_t *t,
    const ngx_http_dsa_series_sample_t *s)
{
    size_t                  len;
    ngx_uint_t              i, k;
    ngx_http_dsa_series_t  *row;

    for (i = 0; i < t->used; i++) {
        row = &t->rows[i];

        for (k = 0; k < NGX_HTTP_DSA_SERIES_LABELS; k++) {
            len = ngx_http_dsa_series_len(&s->label[k]);

            /* an empty label may have no data */

            if (len != 0
                && ngx_memcmp(row->label[k], s->label[k].data, len) != 0)
            {
                break;
            }

            if (row->label[k][len] != '\0') {
                break;
            }
        }

        if (k == NGX_HTTP_DSA_SERIES_LABELS) {
            return row;
        }
    }

    return NULL;
}


static ngx_http_dsa_series_t *
ngx_http_dsa_series_new(ngx_http_dsa_series_table_t *t,
    const ngx_http_dsa_series_sample_t *s)
{
    size_t                  len;
    ngx_uint_t              i;
    ngx_http_dsa_series_t  *row;

    row = &t->rows[t->used];

    /* a worker that was killed here may have left some of a row */

    ngx_memzero(row, sizeof(ngx_http_dsa_series_t));

    for (i = 0; i < NGX_HTTP_DSA_SERIES_LABELS; i++) {
        len = ngx_http_dsa_series_len(&s->label[i]);

        if (len != 0) {
            ngx_memcpy(row->label[i], s->label[i].data, len);
        }
    }

    ngx_memory_barrier();

    t->used++;

    return row;
}


/* The bytes of a label that a row has: whole characters of UTF-8. */

static size_t
ngx_http_dsa_series_len(const ngx_str_t *label)
{
    size_t  len;

    if (label->len < NGX_HTTP_DSA_SERIES_TEXT) {
        return label->len;
    }

    len = NGX_HTTP_DSA_SERIES_TEXT - 1;

    while (len != 0 && (label->data[len] & 0xc0) == 0x80) {
        len--;
    }

    return len;
}


static void
ngx_http_dsa_series_count(ngx_http_dsa_series_hist_t *hist,
    const ngx_http_dsa_series_bounds_t *bounds, uint64_t us)
{
    ngx_uint_t  i;

    for (i = 0; i < bounds->n && us > bounds->us[i]; i++) { /* void */ }

    hist->bucket[i]++;
    hist->count++;
    hist->sum += us;
}


ngx_uint_t
ngx_http_dsa_series_read(ngx_shm_zone_t *zone, const ngx_str_t *pool,
    ngx_http_dsa_series_t *rows)
{
    u_char                       *name;
    ngx_uint_t                    i, n;
    ngx_slab_pool_t              *shpool;
    ngx_http_dsa_series_table_t  *t;

    t = zone->data;
    shpool = (ngx_slab_pool_t *) zone->shm.addr;
    n = 0;

    for (i = 0; i < t->used; i++) {
        name = t->rows[i].label[NGX_HTTP_DSA_SERIES_POOL];

        if (i != NGX_HTTP_DSA_SERIES - 1
            && (ngx_strlen(name) != pool->len
                || ngx_memcmp(name, pool->data, pool->len) != 0))
        {
            continue;
        }

        /* one row at a time, because the ends of requests wait */

        ngx_shmtx_lock(&shpool->mutex);
        rows[n++] = t->rows[i];
        ngx_shmtx_unlock(&shpool->mutex);
    }

    return n;
}


const uint64_t *
ngx_http_dsa_series_bounds(ngx_http_dsa_series_histogram_e which,
    ngx_uint_t *n)
{
    *n = ngx_http_dsa_series_limits[which].n;

    return ngx_http_dsa_series_limits[which].us;
}
