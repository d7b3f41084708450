
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/replay_results.h"


#define REPLAY_MILLION      1e6


typedef struct {
    uint32_t            ended;
    uint32_t            failed;
    uint64_t            prompt;         /* tokens */
    uint64_t            output;
    uint64_t            cached;
    uint64_t            best;           /* of the trace */
    uint64_t            input;          /* of the trace */
    int64_t             tier[REPLAY_TIERS];     /* -1: not known */
    uint32_t            added_min;      /* tokens of prompts beyond the text */
    uint32_t            added_max;
} replay_sum_t;


static void replay_add(replay_sum_t *sum, const trace_request_t *request,
    const replay_result_t *result);
static void replay_hits(const replay_sum_t *sum, const char *label);
static void replay_times(const replay_sum_t *sum, replay_window_t *w,
    const replay_options_t *o);
static void replay_rates(const replay_window_t *w, const replay_options_t *o);
static double replay_cpu(void);


uint32_t
replay_print(const trace_t *t, const replay_result_t *result,
    replay_window_t *w, const replay_options_t *o)
{
    uint32_t       i;
    replay_sum_t   sum;

    memset(&sum, 0, sizeof(sum));
    sum.added_min = UINT32_MAX;

    for (i = 0; i < t->n; i++) {
        sum.failed += result[i].state == REPLAY_FAILED;

        if (result[i].state == REPLAY_ENDED
            && result[i].ended >= w->times.from)
        {
            replay_add(&sum, &t->request[i], &result[i]);
        }
    }

    if (w->times.failed) {
        (void) fprintf(stderr, "replay: out of memory\n");
        return t->n;
    }

    if (sum.ended == 0 && w->times.first.n == 0 && w->times.interval.n == 0) {
        (void) fprintf(stderr, sum.failed != 0
                               ? "replay: all requests failed\n"
                               : "replay: no token has arrived\n");
        return t->n;
    }

    replay_hits(&sum, o->label);
    replay_times(&sum, w, o);
    replay_rates(w, o);

    return sum.failed;
}


static void
replay_add(replay_sum_t *sum, const trace_request_t *request,
    const replay_result_t *result)
{
    uint32_t  i, added;

    sum->ended++;
    sum->prompt += result->prompt;
    sum->output += result->output;
    sum->cached += result->cached;
    sum->best += request->best;
    sum->input += request->input;

    for (i = 0; i < REPLAY_TIERS; i++) {
        if (result->tier[i] == -1) {
            sum->tier[i] = -1;

        } else if (sum->tier[i] != -1) {
            sum->tier[i] += result->tier[i];
        }
    }

    added = result->prompt - request->input;

    if (added < sum->added_min) {
        sum->added_min = added;
    }

    if (added > sum->added_max) {
        sum->added_max = added;
    }
}


static void
replay_hits(const replay_sum_t *sum, const char *label)
{
    uint32_t  i;

    (void) printf("| %s | %u | %llu |", label, sum->ended,
                  (unsigned long long) sum->prompt);

    if (sum->ended == 0) {
        (void) printf(" - | - | - | - | - | - | %u |\n", sum->failed);
        return;
    }

    (void) printf(" %.2f |",
                  100.0 * (double) sum->cached / (double) sum->prompt);

    for (i = 0; i < REPLAY_TIERS; i++) {
        if (sum->tier[i] == -1) {
            (void) printf(" |");

        } else {
            (void) printf(" %.2f |", 100.0 * (double) sum->tier[i]
                                     / (double) sum->prompt);
        }
    }

    (void) printf(" %.2f |", 100.0 * (double) sum->best
                             / (double) sum->input);

    if (sum->added_min == sum->added_max) {
        (void) printf(" %u |", sum->added_min);

    } else {
        (void) printf(" %u to %u |", sum->added_min, sum->added_max);
    }

    (void) printf(" %u |\n", sum->failed);
}


static void
replay_times(const replay_sum_t *sum, replay_window_t *w,
    const replay_options_t *o)
{
    double           miss, cost, most;
    stream_times_t  *t;

    t = &w->times;
    miss = (double) (sum->prompt - sum->cached);
    cost = miss * o->prices.miss + (double) sum->cached * o->prices.hit
           + (double) sum->output * o->prices.output;
    most = (double) sum->prompt * o->prices.miss
           + (double) sum->output * o->prices.output;

    (void) printf("| %s | %.1f / %.1f / %.1f | %.1f / %.1f | ", o->label,
                  stream_quantile(&t->first, 0.5),
                  stream_quantile(&t->first, 0.9),
                  stream_quantile(&t->first, 0.99),
                  stream_quantile(&t->interval, 0.5),
                  stream_quantile(&t->interval, 0.99));

    if (t->token.n != 0) {
        (void) printf("%.2f / %.2f", stream_quantile(&t->token, 0.5),
                      stream_quantile(&t->token, 0.99));

    } else {
        (void) printf("-");
    }

    (void) printf(" | %.4f | %.4f | %.1f |\n", cost / REPLAY_MILLION,
                  most / REPLAY_MILLION, replay_cpu());
}


/* By the engines' counters, for each GPU. */

static void
replay_rates(const replay_window_t *w, const replay_options_t *o)
{
    double           gpu;
    const counts_t  *c;

    c = &w->counts;
    gpu = w->seconds * o->gpus;

    (void) printf("| %s | ", o->label);

    if (o->agents != 0) {
        (void) printf("%u", o->agents);

    } else {
        (void) printf("-");
    }

    (void) printf(" | %u | ", o->gpus);

    if (w->counted) {
        (void) printf("%.1f | %.1f | %.1f | %.1f",
                      (double) c->completion / gpu,
                      (double) (c->prompt + c->completion) / gpu,
                      (double) c->cached / gpu,
                      (double) (c->prompt - c->cached) / gpu);

    } else {
        (void) printf("- | - | - | -");
    }

    (void) printf(" | %.1f |\n", w->seconds);
}


/* CPU time of this process, s. */

static double
replay_cpu(void)
{
    struct rusage  use;

    (void) getrusage(RUSAGE_SELF, &use);

    return (double) (use.ru_utime.tv_sec + use.ru_stime.tv_sec)
           + (double) (use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}


int
replay_list(const trace_t *t, const replay_result_t *result, uint64_t start,
    const char *path)
{
    int                     rc;
    FILE                   *f;
    uint32_t                i, k;
    const replay_result_t  *r;

    f = fopen(path, "w");

    if (f == NULL) {
        return -1;
    }

    (void) fprintf(f, "ok,input,best,prompt,cached,gpu,host,redis,output,"
                   "due_ms,first_ms,total_ms\n");

    for (i = 0; i < t->n; i++) {
        r = &result[i];

        (void) fprintf(f, "%d,%u,%u,%u,%u", r->state == REPLAY_ENDED,
                       t->request[i].input, t->request[i].best, r->prompt,
                       r->cached);

        for (k = 0; k < REPLAY_TIERS; k++) {
            if (r->tier[k] == -1) {
                (void) fprintf(f, ",");

            } else {
                (void) fprintf(f, ",%lld", (long long) r->tier[k]);
            }
        }

        (void) fprintf(f, ",%u,%.2f,%.2f,%.2f\n", r->output,
                       r->due != 0 ? (double) (r->due - start) * 1e-6 : 0,
                       (double) r->first_ms,
                       r->ended != 0 ? (double) (r->ended - r->due) * 1e-6
                                     : 0);
    }

    rc = ferror(f) ? -1 : 0;

    return fclose(f) == 0 ? rc : -1;
}
