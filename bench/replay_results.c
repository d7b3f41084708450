
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
static void replay_times(const replay_sum_t *sum, const char *label,
    const replay_prices_t *prices, float *first, double seconds);
static double replay_cpu(void);
static int replay_order(const void *a, const void *b);
static double replay_quantile(const float *v, uint32_t n, double q);


uint32_t
replay_print(const trace_t *t, const replay_result_t *result,
    const char *label, const replay_prices_t *prices, double seconds)
{
    float         *first;
    uint32_t       i;
    replay_sum_t   sum;

    memset(&sum, 0, sizeof(sum));
    sum.added_min = UINT32_MAX;
    first = calloc(t->n, sizeof(float));

    if (first == NULL) {
        (void) fprintf(stderr, "replay: out of memory\n");
        return t->n;
    }

    for (i = 0; i < t->n; i++) {
        if (result[i].state != REPLAY_ENDED) {
            sum.failed += result[i].state == REPLAY_FAILED;
            continue;
        }

        first[sum.ended] = result[i].first_ms;
        replay_add(&sum, &t->request[i], &result[i]);
    }

    if (sum.ended == 0) {
        (void) fprintf(stderr, sum.failed != 0
                               ? "replay: all requests failed\n"
                               : "replay: no request has ended\n");
        sum.failed = t->n;

    } else {
        qsort(first, sum.ended, sizeof(float), replay_order);
        replay_hits(&sum, label);
        replay_times(&sum, label, prices, first, seconds);
    }

    free(first);

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

    (void) printf("| %s | %u | %llu | %.2f |", label, sum->ended,
                  (unsigned long long) sum->prompt,
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
replay_times(const replay_sum_t *sum, const char *label,
    const replay_prices_t *prices, float *first, double seconds)
{
    double  miss, cost, most;

    miss = (double) (sum->prompt - sum->cached);
    cost = miss * prices->miss + (double) sum->cached * prices->hit
           + (double) sum->output * prices->output;
    most = (double) sum->prompt * prices->miss
           + (double) sum->output * prices->output;

    (void) printf("| %s | %.1f / %.1f / %.1f | %.0f | %.0f | %.4f | %.4f "
                  "| %.1f | %.1f |\n", label,
                  replay_quantile(first, sum->ended, 0.5),
                  replay_quantile(first, sum->ended, 0.9),
                  replay_quantile(first, sum->ended, 0.99),
                  (double) sum->prompt / seconds,
                  (double) sum->output / seconds,
                  cost / REPLAY_MILLION, most / REPLAY_MILLION, seconds,
                  replay_cpu());
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


static int
replay_order(const void *a, const void *b)
{
    float  x, y;

    x = *(const float *) a;
    y = *(const float *) b;

    return (x > y) - (x < y);
}


/* v [n] is sorted. */

static double
replay_quantile(const float *v, uint32_t n, double q)
{
    return v[(uint32_t) (q * (n - 1))];
}


int
replay_list(const trace_t *t, const replay_result_t *result, const char *path)
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
                   "first_ms,total_ms\n");

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

        (void) fprintf(f, ",%u,%.2f,%.2f\n", r->output, r->first_ms,
                       r->total_ms);
    }

    rc = ferror(f) ? -1 : 0;

    return fclose(f) == 0 ? rc : -1;
}
