
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/http.h"
#include "bench/replay_window.h"


#define WINDOW_WAIT     2000000000ULL   /* ns for the last counts */
#define WINDOW_AGAIN    20000           /* us until the next attempt */


static int replay_window_read(const replay_options_t *o, const char *end,
    counts_t *counts, int *counted);


void
replay_window_init(replay_window_t *w)
{
    memset(w, 0, sizeof(replay_window_t));
    w->times.from = UINT64_MAX;
}


int
replay_window_begin(replay_window_t *w, const replay_options_t *o)
{
    if (replay_window_read(o, "begin", &w->before, &w->counted) == -1) {
        return -1;
    }

    w->times.from = http_now();

    return 0;
}


int
replay_window_end(replay_window_t *w, const replay_options_t *o, uint64_t now,
    uint64_t completion)
{
    int  known;

    w->seconds = (double) (now - w->times.from) * 1e-9;
    known = w->counted;

    for ( ;; ) {
        if (replay_window_read(o, "end", &w->counts, &w->counted) == -1) {
            return -1;
        }

        if (!known || !w->counted) {
            w->counted = 0;
            return 0;
        }

        if (counts_since(&w->counts, &w->before) == -1) {
            (void) fprintf(stderr, "replay: an engine has ended: its tokens "
                           "are not known\n");
            w->counted = 0;
            return 0;
        }

        if (w->counts.completion >= completion
            || http_now() >= now + WINDOW_WAIT)
        {
            return 0;
        }

        (void) usleep(WINDOW_AGAIN);
    }
}


/* The sums of all nginx; *counted is 0 if one of them does not have them. */

static int
replay_window_read(const replay_options_t *o, const char *end,
    counts_t *counts, int *counted)
{
    int        rc;
    char       name[PATH_MAX];
    FILE      *keep;
    uint32_t   i;

    keep = NULL;
    memset(counts, 0, sizeof(counts_t));
    *counted = 1;

    if (o->keep != NULL) {
        (void) snprintf(name, sizeof(name), "%s.%s", o->keep, end);
        keep = fopen(name, "w");

        if (keep == NULL) {
            (void) fprintf(stderr, "replay: %s: %s\n", name, strerror(errno));
            return -1;
        }
    }

    for (i = 0; i < o->n_metrics && *counted; i++) {
        *counted = counts_read(counts, (int) o->metrics[i], keep) == 0;
    }

    rc = keep == NULL || fclose(keep) == 0 ? 0 : -1;

    if (rc == -1) {
        (void) fprintf(stderr, "replay: %s: %s\n", name, strerror(errno));
    }

    return rc;
}
