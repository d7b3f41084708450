
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>
#include <string.h>

#include "engine/service/events.h"


#define DSA_EVENTS_LEAST    256         /* initial size */


static int dsa_events_reserve(dsa_events_t *e, uint32_t n,
    uint32_t n_samples);


dsa_event_t *
dsa_events_add(dsa_events_t *e, dsa_request_t *r, dsa_event_e kind,
    const dsa_sample_t *sample)
{
    dsa_event_t  *event;

    if (dsa_events_reserve(e, 1, sample != NULL) != DSA_OK) {
        return NULL;
    }

    event = &e->event[e->n++];
    memset(event, 0, sizeof(dsa_event_t));

    event->request = r;
    event->kind = kind;

    if (sample != NULL) {
        event->at = e->n_samples;
        e->sample[e->n_samples++] = *sample;
    }

    return event;
}


int
dsa_events_append(dsa_events_t *e, const dsa_events_t *more)
{
    uint32_t      i;
    dsa_event_t  *event;

    if (dsa_events_reserve(e, more->n, more->n_samples) != DSA_OK) {
        return DSA_ERROR;
    }

    event = e->event + e->n;
    memcpy(event, more->event, more->n * sizeof(dsa_event_t));

    for (i = 0; i < more->n; i++) {
        event[i].at += event[i].kind == DSA_EVENT_ROWS
                       ? (uint32_t) e->rows.len : e->n_samples;
    }

    if (more->n_samples != 0) {
        memcpy(e->sample + e->n_samples, more->sample,
               more->n_samples * sizeof(dsa_sample_t));
    }

    if (more->rows.len != 0) {
        dsa_buf_add(&e->rows, more->rows.data, more->rows.len);
    }

    e->n += more->n;
    e->n_samples += more->n_samples;

    return e->rows.failed ? DSA_ERROR : DSA_OK;
}


void
dsa_events_clear(dsa_events_t *e)
{
    e->n = 0;
    e->n_samples = 0;
    e->rows.len = 0;
}


void
dsa_events_swap(dsa_events_t *a, dsa_events_t *b)
{
    dsa_events_t  t;

    t = *a;
    *a = *b;
    *b = t;
}


void
dsa_events_free(dsa_events_t *e)
{
    free(e->event);
    free(e->sample);
    dsa_buf_free(&e->rows);
    memset(e, 0, sizeof(dsa_events_t));
}


/* Makes room for n more events. */

static int
dsa_events_reserve(dsa_events_t *e, uint32_t n, uint32_t n_samples)
{
    void      *p;
    uint32_t   size;

    if (e->n + n > e->size) {
        size = (e->n + n) * 2;
        size = size > DSA_EVENTS_LEAST ? size : DSA_EVENTS_LEAST;
        p = realloc(e->event, size * sizeof(dsa_event_t));

        if (p == NULL) {
            return DSA_ERROR;
        }

        e->event = p;
        e->size = size;
    }

    if (e->n_samples + n_samples > e->samples_size) {
        size = (e->n_samples + n_samples) * 2;
        p = realloc(e->sample, size * sizeof(dsa_sample_t));

        if (p == NULL) {
            return DSA_ERROR;
        }

        e->sample = p;
        e->samples_size = size;
    }

    return DSA_OK;
}
