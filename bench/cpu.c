
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/backend.h"


/*
 * Measures the CPU backend without a server: a prompt of 3,000 tokens in
 * steps of 512, then one stream, then 16 streams.  The prompt is arbitrary and
 * the most probable token is sampled, so every run does the same work.
 *
 *     build/bench/cpu MODEL [RUNS]
 *
 * Prints a line for each run.  Compare the best of the runs, because other
 * processes on the machine only make a run slower.
 */

#define BENCH_PROMPT        3000
#define BENCH_BUDGET        512
#define BENCH_STREAMS       16
#define BENCH_START         100     /* tokens of a stream's prompt */
#define BENCH_TOKENS        200     /* tokens of a stream's answer */
#define BENCH_PAGES         64      /* of a sequence, of 64 tokens each */


typedef struct {
    dsa_backend_t      *backend;
    uint32_t            tokens[BENCH_STREAMS][BENCH_PAGES * 64];
    uint32_t            pages[BENCH_STREAMS][BENCH_PAGES];
    dsa_sample_t        sample[BENCH_STREAMS];
    dsa_batch_seq_t     seq[BENCH_STREAMS];
    dsa_sampling_t      sampling;
} bench_t;


static void
fatal(const char *text)
{
    (void) fprintf(stderr, "bench/cpu: %s\n", text);
    exit(1);
}


static double
now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}


static void
step(bench_t *b, uint32_t n_seqs)
{
    dsa_err_t  err;

    if (b->backend->start(b->backend, b->seq, n_seqs, &err) != DSA_OK
        || b->backend->wait(b->backend, &err) != DSA_OK)
    {
        fatal(err.text);
    }
}


static void
entry(bench_t *b, uint32_t at, uint32_t stream, uint32_t start, uint32_t n,
    int sampled)
{
    dsa_batch_seq_t  *s;

    s = &b->seq[at];

    memset(s, 0, sizeof(dsa_batch_seq_t));
    s->tokens = b->tokens[stream];
    s->start = start;
    s->n_input = n;
    s->input_from = DSA_INPUT_KNOWN;
    s->n_prompt = start + n;
    s->pages = b->pages[stream];
    s->sampling = sampled ? &b->sampling : NULL;
    s->sample = &b->sample[stream];
}


/* Seconds for n tokens of a stream, from its beginning. */

static double
prompt(bench_t *b, uint32_t stream, uint32_t n)
{
    double    start;
    uint32_t  at, chunk;

    start = now();

    for (at = 0; at < n; at += chunk) {
        chunk = n - at < BENCH_BUDGET ? n - at : BENCH_BUDGET;
        entry(b, 0, stream, at, chunk, at + chunk == n);
        step(b, 1);
    }

    b->tokens[stream][n] = b->sample[stream].token;

    return now() - start;
}


/* Tokens a second of all streams together. */

static double
decode(bench_t *b, uint32_t streams)
{
    double    start;
    uint32_t  i, at;

    for (i = 0; i < streams; i++) {
        (void) prompt(b, i, BENCH_START);
    }

    start = now();

    for (at = BENCH_START; at < BENCH_START + BENCH_TOKENS; at++) {
        for (i = 0; i < streams; i++) {
            entry(b, i, i, at, 1, 1);
        }

        step(b, streams);

        for (i = 0; i < streams; i++) {
            b->tokens[i][at + 1] = b->sample[i].token;
        }
    }

    return streams * (double) BENCH_TOKENS / (now() - start);
}


int
main(int argc, char **argv)
{
    bench_t             *b;
    double               seconds, one, many;
    uint32_t             i, j, runs, state;
    dsa_err_t            err;
    dsa_backend_conf_t   conf;

    if (argc < 2) {
        fatal("usage: build/bench/cpu MODEL [RUNS]");
    }

    runs = argc > 2 ? (uint32_t) atoi(argv[2]) : 5;
    b = calloc(1, sizeof(bench_t));

    if (b == NULL) {
        fatal("no memory");
    }

    memset(&conf, 0, sizeof(dsa_backend_conf_t));
    conf.model = argv[1];
    conf.precision = DSA_SERVED;
    conf.gpus = 1;
    conf.max_tokens = BENCH_BUDGET;
    conf.max_seqs = BENCH_STREAMS;
    conf.allowed = UINT32_MAX;

    b->sampling.top_p = 1;
    b->backend = dsa_backend_cpu_open(&conf, &err);

    if (b->backend == NULL) {
        fatal(err.text);
    }

    if (b->backend->pages < BENCH_STREAMS * BENCH_PAGES) {
        fatal("the backend has too few pages");
    }

    state = 1;

    for (i = 0; i < BENCH_STREAMS; i++) {
        for (j = 0; j < BENCH_PAGES; j++) {
            b->pages[i][j] = i * BENCH_PAGES + j;
        }

        for (j = 0; j < BENCH_PAGES * 64; j++) {
            state = state * 1664525 + 1013904223;
            b->tokens[i][j] = (state >> 8) % b->backend->config.vocab_size;
        }
    }

    for (i = 0; i < runs; i++) {
        seconds = prompt(b, 0, BENCH_PROMPT);
        one = decode(b, 1);
        many = decode(b, BENCH_STREAMS);

        (void) printf("prompt of %d tokens %.3f s, one stream %.0f tokens/s, "
                      "%d streams %.0f tokens/s\n", BENCH_PROMPT, seconds,
                      one, BENCH_STREAMS, many);
        (void) fflush(stdout);
    }

    b->backend->close(b->backend);
    free(b);

    return 0;
}
