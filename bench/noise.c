
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mask.h"
#include "engine/cpu/model.h"
#include "kernels/sample/noise.h"
#include "kernels/sample/sample.h"


/*
 * How often a draft is the token that the model draws, if both are drawn with
 * the same noise, for two kinds of noise:
 *
 *     build/bench/noise [MODEL]
 *
 * Without MODEL, logits are Gaussian with a deviation of 1 to 8.  With MODEL,
 * they are those of a text that the model samples.  Draft logits are those of
 * its draft layer; if it has none, and without MODEL, they are the logits plus
 * Gaussian noise of 0.3.
 *
 * The expected shares are computed from the distributions p of the model and q
 * of the draft, after temperature and top_p:
 *
 *     most probable   p of the most probable draft
 *     one number      both by inverse CDF in id order with the same number: the
 *                     overlap of the intervals of each id
 *     gumbel          both by the rule of kernels/sample/noise.h: the sum over
 *                     i of 1 / (sum over j of max(p_j / p_i, q_j / q_i))
 *     rejection       sum of min(p, q), the best that is possible (Leviathan et
 *                     al., "Fast Inference from Transformers via Speculative
 *                     Decoding", 2023)
 *
 * and "drawn" counts draws of dsa_sample().
 */

#define BENCH_IDS       4000        /* of a row without a model */
#define BENCH_ROWS      160
#define BENCH_DRAWS     64          /* of a row */
#define BENCH_NOISE     0.3
#define BENCH_LEAST     1e-9        /* less probable ids are left out */
#define BENCH_HEATS     3
#define BENCH_TOP_P     2


typedef struct {
    double              best;
    double              interval;
    double              gumbel;
    double              rejection;
    double              drawn;
} bench_share_t;


typedef struct {
    uint32_t            n;          /* ids */
    uint32_t            rows;
    float              *logits;     /* of the model, and then of the draft */
    float              *scratch;
    double             *p;
    double             *q;
    bench_share_t       sum[BENCH_HEATS][BENCH_TOP_P];
} bench_noise_t;


static const float  heat[BENCH_HEATS] = { 0.3f, 0.6f, 1 };
static const float  top_p[BENCH_TOP_P] = { 1, 0.95f };


static void
fatal(const char *text)
{
    (void) fprintf(stderr, "bench/noise: %s\n", text);
    exit(1);
}


/* A uniform number of (0, 1), the same in every run. */

static double
number(void)
{
    uint32_t         x[4];
    static uint64_t  n;

    dsa_noise_words(x, 2026, n++, 0, 0);

    return ((double) x[0] + 0.5) / 4294967296.0;
}


/* Box and Muller, "A Note on the Generation of Random Normal Deviates" 1958. */

static double
gaussian(void)
{
    double  radius;

    radius = sqrt(-2 * log(number()));

    return radius * cos(2 * M_PI * number());
}


/*
 * Sets p to the distribution from which a token is drawn, and token to the
 * draws of the seeds from 0 on.
 */

static void
draw(bench_noise_t *b, double *p, uint32_t token[BENCH_DRAWS],
    const float *logits, float temperature, float keep)
{
    double          max, sum;
    uint32_t        i, words, *kept;
    dsa_draw_t      how;
    dsa_sample_t    out;
    dsa_sampling_t  s;

    memset(&s, 0, sizeof(s));
    s.temperature = temperature;
    s.top_p = keep;

    words = (b->n + 31) / 32;
    kept = calloc(words, sizeof(uint32_t));

    if (kept == NULL) {
        fatal("out of memory");
    }

    for (i = 0; i < BENCH_DRAWS; i++) {
        s.seed = i;
        dsa_sample_draw(&out, &how, i == 0 ? kept : NULL, &s, NULL, logits,
                        b->n, b->n, NULL, NULL, 0, b->rows, b->scratch);
        token[i] = out.token;

        if (i == 0 && how.n_kept == DSA_KEPT_ALL) {
            memset(kept, 0xff, words * sizeof(uint32_t));
        }
    }

    for (i = 0, max = -INFINITY; i < b->n; i++) {
        max = logits[i] > max ? logits[i] : max;
    }

    for (i = 0, sum = 0; i < b->n; i++) {
        p[i] = dsa_mask_has(kept, i)
               ? exp(((double) logits[i] - max) / (double) temperature) : 0;
        sum += p[i];
    }

    for (i = 0; i < b->n; i++) {
        p[i] /= sum;
    }

    free(kept);
}


static double
gumbel(const bench_noise_t *b)
{
    double    sum, share, p, q;
    uint32_t  i, j;

    share = 0;

    for (i = 0; i < b->n; i++) {
        if (b->p[i] < BENCH_LEAST || b->q[i] < BENCH_LEAST) {
            continue;
        }

        sum = 0;

        for (j = 0; j < b->n; j++) {
            p = b->p[j] / b->p[i];
            q = b->q[j] / b->q[i];
            sum += p > q ? p : q;
        }

        share += 1 / sum;
    }

    return share;
}


static void
add(bench_noise_t *b, bench_share_t *s, float temperature, float keep)
{
    double    p, q, low, high;
    uint32_t  i, best, token[2][BENCH_DRAWS];

    draw(b, b->p, token[0], b->logits, temperature, keep);
    draw(b, b->q, token[1], b->logits + b->n, temperature, keep);

    p = 0;
    q = 0;
    best = 0;

    for (i = 0; i < b->n; i++) {
        low = p > q ? p : q;
        p += b->p[i];
        q += b->q[i];
        high = p < q ? p : q;
        s->interval += high > low ? high - low : 0;
        s->rejection += b->p[i] < b->q[i] ? b->p[i] : b->q[i];
        best = b->q[i] > b->q[best] ? i : best;
    }

    s->best += b->p[best];
    s->gumbel += gumbel(b);

    for (i = 0; i < BENCH_DRAWS; i++) {
        s->drawn += (double) (token[0][i] == token[1][i]) / BENCH_DRAWS;
    }
}


/* Adds a row: its logits and those of the draft are set. */

static void
row(bench_noise_t *b)
{
    uint32_t  i, j;

    for (i = 0; i < BENCH_HEATS; i++) {
        for (j = 0; j < BENCH_TOP_P; j++) {
            add(b, &b->sum[i][j], heat[i], top_p[j]);
        }
    }

    b->rows++;
}


static void
open_rows(bench_noise_t *b, uint32_t n)
{
    memset(b, 0, sizeof(bench_noise_t));

    b->n = n;
    b->logits = calloc(n, 2 * sizeof(float));
    b->scratch = calloc(n, sizeof(float));
    b->p = calloc(n, sizeof(double));
    b->q = calloc(n, sizeof(double));

    if (b->logits == NULL || b->scratch == NULL || b->p == NULL
        || b->q == NULL)
    {
        fatal("out of memory");
    }
}


static void
disturb(bench_noise_t *b)
{
    uint32_t  i;

    for (i = 0; i < b->n; i++) {
        b->logits[b->n + i] = (float) ((double) b->logits[i]
                                       + BENCH_NOISE * gaussian());
    }
}


static void
synthetic(bench_noise_t *b)
{
    double    spread;
    uint32_t  i;

    open_rows(b, BENCH_IDS);

    while (b->rows < BENCH_ROWS) {
        spread = 1 + 7 * number();

        for (i = 0; i < b->n; i++) {
            b->logits[i] = (float) (spread * gaussian());
        }

        disturb(b);
        row(b);
    }
}


/*
 * Samples a text with temperature 1.  Row p of the draft layer has token p and
 * the hidden state of the token before; it drafts token p + 1.
 */

static void
model(bench_noise_t *b, const char *dir)
{
    float                     *hidden;
    uint32_t                   i, n, token, pages[BENCH_ROWS];
    dsa_err_t                  err;
    dsa_rows_t                 rows;
    dsa_model_t               *m;
    dsa_sample_t               out;
    dsa_sampling_t             s;
    dsa_weights_t             *weights;
    dsa_model_conf_t           conf;
    const dsa_model_config_t  *config;

    weights = dsa_weights_open(dir, &err);

    if (weights == NULL) {
        fatal(err.text);
    }

    config = &weights->config;
    open_rows(b, config->vocab_size);

    memset(&conf, 0, sizeof(conf));
    conf.precision = DSA_SERVED;
    conf.max_tokens = 1;
    conf.gpus = 1;
    conf.drafts = config->num_nextn_predict_layers != 0;
    conf.kv_memory = dsa_model_kv_memory(config, conf.precision, conf.drafts,
                                         BENCH_ROWS + 1);

    m = dsa_model_open(weights, &conf, &err);
    hidden = calloc(config->hidden_size, sizeof(float));

    if (m == NULL || hidden == NULL) {
        fatal(m == NULL ? err.text : "out of memory");
    }

    n = dsa_model_pages(m);

    for (i = 0; i < n && i < BENCH_ROWS; i++) {
        pages[i] = i;
    }

    memset(&s, 0, sizeof(s));
    s.temperature = 1;
    s.top_p = 1;

    memset(&rows, 0, sizeof(rows));
    rows.tokens = &token;
    rows.n = 1;
    rows.n_logits = 1;
    rows.pages = pages;
    token = 0;

    for (i = 0; i <= BENCH_ROWS; i++) {
        rows.start = i;
        rows.hidden = NULL;

        if (dsa_model_forward(m, &rows, 1, b->logits, &err) != DSA_OK) {
            fatal(err.text);
        }

        rows.hidden = hidden;

        if (conf.drafts && i > 0
            && dsa_model_draft(m, &rows, 1, 0, NULL, b->logits + b->n, &err)
               != DSA_OK)
        {
            fatal(err.text);
        }

        if (!conf.drafts) {
            disturb(b);
        }

        if (i > 0) {
            row(b);
        }

        if (conf.drafts) {
            memcpy(hidden, dsa_model_hidden(m),
                   config->hidden_size * sizeof(float));
        }

        dsa_sample(&out, &s, NULL, b->logits, b->n, b->n, NULL, NULL, 0, i,
                   b->scratch);
        token = out.token;
    }

    free(hidden);
    dsa_model_close(m);
    dsa_weights_close(weights);
}


int
main(int argc, char **argv)
{
    uint32_t              i, j;
    bench_noise_t         b;
    const bench_share_t  *s;

    if (argc > 2) {
        fatal("usage: build/bench/noise [MODEL]");
    }

    if (argc == 2) {
        model(&b, argv[1]);

    } else {
        synthetic(&b);
    }

    (void) printf("| temperature | top_p | most probable | one number | gumbel "
                  "| drawn | rejection |\n|---|---|---|---|---|---|---|\n");

    for (j = 0; j < BENCH_TOP_P; j++) {
        for (i = 0; i < BENCH_HEATS; i++) {
            s = &b.sum[i][j];
            (void) printf("| %.1f | %.2f | %.3f | %.3f | %.3f | %.3f | %.3f "
                          "|\n", (double) heat[i], (double) top_p[j],
                          s->best / b.rows, s->interval / b.rows,
                          s->gumbel / b.rows, s->drawn / b.rows,
                          s->rejection / b.rows);
        }
    }

    free(b.logits);
    free(b.scratch);
    free(b.p);
    free(b.q);

    return 0;
}
