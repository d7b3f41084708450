
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "bench/gpu.h"
#include "kernels/sample/random.h"
#include "kernels/sample/sample.h"


#define DSA_BENCH_VOCAB     129280      /* DeepSeek-V3.2 */
#define DSA_BENCH_VOCAB_GLM 154880      /* GLM-5.x */
#define DSA_BENCH_MAX_ROWS  512
#define DSA_BENCH_ANSWER    1000        /* tokens, where penalties count */
#define DSA_BENCH_COLD      (100 << 20)


typedef struct {
    void                   *work;
    float                  *logits;
    uint32_t                rows;
    uint32_t                vocab;
    uint32_t               *history;
    dsa_cuda_sample_t      *out;
    dsa_cuda_sample_row_t  *row;
} dsa_bench_sample_t;


static int
dsa_bench_sample_call(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_sample_t  *t = ctx;

    return dsa_cuda_sample(t->out, t->row,
                           t->logits + (size_t) set * t->rows * t->vocab,
                           t->vocab, t->rows, t->vocab, t->vocab, t->history,
                           NULL, NULL, t->work, b->stream);
}


/*
 * Logits are uniform in -10 .. 10: a nucleus of 0.95 then has about 19,000
 * ids, many more than a model's distribution usually has.  Several inputs
 * alternate, more than the L2 holds.
 */

static void
dsa_bench_sample_shape(dsa_bench_t *b, const char *shape, uint32_t rows,
    uint32_t vocab, const dsa_cuda_sample_row_t *row)
{
    int                    rc, sets;
    size_t                 n;
    uint32_t               i, history[DSA_BENCH_ANSWER];
    dsa_bench_sample_t     t;
    dsa_cuda_sample_row_t  s[DSA_BENCH_MAX_ROWS];

    n = (size_t) rows * vocab;
    sets = (int) (DSA_BENCH_COLD / (n * sizeof(float))) + 1;
    sets = sets > 32 ? 32 : sets;

    t.rows = rows;
    t.vocab = vocab;
    t.logits = dsa_bench_alloc(b, n * sets * sizeof(float));
    t.out = dsa_bench_alloc(b, rows * sizeof(dsa_cuda_sample_t));
    t.row = dsa_bench_alloc(b, sizeof(s));
    t.work = dsa_bench_alloc(b, dsa_cuda_sample_work(rows, vocab));
    t.history = NULL;

    if (row->n_history != 0) {
        t.history = dsa_bench_alloc(b, sizeof(history));
    }

    if (t.logits == NULL || t.out == NULL || t.row == NULL
        || t.work == NULL || (row->n_history != 0 && t.history == NULL))
    {
        goto done;
    }

    for (i = 0; i < DSA_BENCH_MAX_ROWS; i++) {
        s[i] = *row;
        s[i].sampling.seed = i;
        s[i].position = 1000 + i;
    }

    for (i = 0; i < DSA_BENCH_ANSWER; i++) {
        history[i] = i * i % vocab;
    }

    rc = dsa_cuda_random_f32(t.logits, n * sets, 0, 10, 1, b->stream);
    rc = rc != 0 ? rc : (int) cudaMemcpyAsync(t.row, s, sizeof(s),
                                              cudaMemcpyHostToDevice,
                                              b->stream);

    if (t.history != NULL) {
        rc = rc != 0 ? rc : (int) cudaMemcpyAsync(t.history, history,
                                                  sizeof(history),
                                                  cudaMemcpyHostToDevice,
                                                  b->stream);
    }

    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(b->stream);

    if (rc != 0) {
        (void) fprintf(stderr, "dsa bench: sample: %s\n", dsa_cuda_error(rc));
        b->failed = 1;
        goto done;
    }

    dsa_bench_row(b, "sample", shape,
                  dsa_bench_time(b, dsa_bench_sample_call, &t, sets), 0, 0,
                  (double) n * sizeof(float));

done:

    dsa_bench_free_all(b);
}


/* Rows of a step's size, for each published vocabulary. */

static void
dsa_bench_sample_rows(dsa_bench_t *b, const char *name,
    const dsa_cuda_sample_row_t *row)
{
    char      shape[64];
    uint32_t  i, j;

    static const uint32_t  rows[] = { 1, 32, 128, 256, 512 };
    static const uint32_t  vocab[] = { DSA_BENCH_VOCAB, DSA_BENCH_VOCAB_GLM };

    for (i = 0; i < sizeof(vocab) / sizeof(vocab[0]); i++) {
        for (j = 0; j < sizeof(rows) / sizeof(rows[0]); j++) {
            (void) snprintf(shape, sizeof(shape), "%s, %u ids, %u row%s",
                            name, vocab[i], rows[j], rows[j] != 1 ? "s" : "");
            dsa_bench_sample_shape(b, shape, rows[j], vocab[i], row);
        }
    }
}


void
dsa_bench_sample(dsa_bench_t *b)
{
    dsa_cuda_sample_row_t  s;

    memset(&s, 0, sizeof(s));
    s.sampling.top_p = 1;

    dsa_bench_sample_rows(b, "greedy", &s);

    s.sampling.logprobs = 1;
    s.sampling.top_logprobs = DSA_SAMPLE_MAX_TOP;

    dsa_bench_sample_shape(b, "greedy, 20 logprobs, 1 row", 1,
                           DSA_BENCH_VOCAB, &s);
    dsa_bench_sample_shape(b, "greedy, 20 logprobs, 128 rows", 128,
                           DSA_BENCH_VOCAB, &s);

    s.sampling.logprobs = 0;
    s.sampling.top_logprobs = 0;
    s.sampling.temperature = 1;

    dsa_bench_sample_rows(b, "temperature 1", &s);

    s.sampling.top_p = 0.95f;

    dsa_bench_sample_rows(b, "top_p 0.95", &s);

    /* a nucleus of the size that a model's distribution has */

    s.sampling.temperature = 0.002f;

    dsa_bench_sample_rows(b, "top_p 0.95, few ids kept", &s);

    s.sampling.temperature = 1;
    s.n_history = DSA_BENCH_ANSWER;
    s.sampling.frequency_penalty = 0.1f;

    dsa_bench_sample_shape(b, "top_p 0.95, penalties, 128 rows", 128,
                           DSA_BENCH_VOCAB, &s);
}
