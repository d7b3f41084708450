
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>
#include <string.h>

#include "bench/stream_times.h"


static void stream_add(stream_times_t *t, stream_series_t *series,
    uint64_t ns, double tokens);
static int stream_order(const void *a, const void *b);


void
stream_begin(stream_time_t *s, uint64_t now)
{
    s->begun = now;
    s->first = 0;
    s->last = 0;
}


void
stream_text(stream_times_t *t, stream_time_t *s, uint64_t now)
{
    int  first;

    first = s->first == 0;

    if (now >= t->from) {
        stream_add(t, first ? &t->first : &t->interval,
                   now - (first ? s->begun : s->last), 1);
    }

    if (first) {
        s->first = now;
    }

    s->last = now;
}


void
stream_end(stream_times_t *t, const stream_time_t *s, uint64_t now,
    uint32_t tokens)
{
    if (now >= t->from && tokens > 1 && s->last > s->first) {
        stream_add(t, &t->token, s->last - s->first, tokens - 1);
    }
}


static void
stream_add(stream_times_t *t, stream_series_t *series, uint64_t ns,
    double tokens)
{
    float     *ms;
    uint32_t   size;

    if (series->n == series->size) {
        size = series->size != 0 ? 2 * series->size : 4096;
        ms = realloc(series->ms, size * sizeof(float));

        if (ms == NULL) {
            t->failed = 1;
            return;
        }

        series->ms = ms;
        series->size = size;
    }

    series->ms[series->n++] = (float) ((double) ns * 1e-6 / tokens);
}


double
stream_quantile(stream_series_t *series, double q)
{
    if (series->n == 0) {
        return 0;
    }

    qsort(series->ms, series->n, sizeof(float), stream_order);

    return (double) series->ms[(uint32_t) (q * (series->n - 1))];
}


static int
stream_order(const void *a, const void *b)
{
    float  x, y;

    x = *(const float *) a;
    y = *(const float *) b;

    return (x > y) - (x < y);
}


void
stream_times_free(stream_times_t *t)
{
    free(t->first.ms);
    free(t->interval.ms);
    free(t->token.ms);
    memset(t, 0, sizeof(stream_times_t));
}
