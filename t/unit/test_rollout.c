
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/backend.h"
#include "kernels/sample/sample.h"
#include "engine/service/rollout.h"
#include "ngx_module/engine/ngx_http_dsa_record_check.h"


/*
 * How tokens were drawn, against a sort of the probabilities; the rows that
 * report it, read back; and the experts of a prompt that is split over ranks.
 */

#define VOCAB       4096
#define WORDS       (VOCAB / 32)
#define PUBLISHED   129280
#define CONTEXT     163840
#define GOLDEN      "t/data/golden/"


/* Whether nginx accepts the rows of an answer. */

static int
passes(const void *rows, uint32_t length)
{
    dsa_link_submit_t      head;
    dsa_link_accepted_t    accepted;
    ngx_http_dsa_wrong_t   wrong;
    ngx_http_dsa_expect_t  expect;

    memset(&head, 0, sizeof(head));
    memset(&accepted, 0, sizeof(accepted));
    head.flags = DSA_LINK_SAMPLES;
    accepted.prompt_tokens = 1;

    ngx_http_dsa_expect(&expect, &head, CONTEXT, PUBLISHED);
    assert_int_equal(ngx_http_dsa_record_check(&expect, DSA_LINK_ACCEPTED,
                                               &accepted, sizeof(accepted),
                                               &wrong),
                     0);

    return ngx_http_dsa_record_check(&expect, DSA_LINK_ROLLOUT, rows, length,
                                     &wrong)
           == 0;
}


/* Numbers that look random. */

static uint32_t
noise(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;

    return *state >> 8;
}


typedef struct {
    uint32_t    id;
    double      weight;
} weight_t;


static int
heavier(const void *a, const void *b)
{
    const weight_t  *x = a;
    const weight_t  *y = b;

    if (x->weight != y->weight) {
        return x->weight < y->weight ? 1 : -1;
    }

    return x->id < y->id ? -1 : 1;
}


/* The kept ids by a sort: sets kept, and returns the sum of their weights. */

static double
kept_by_sort(uint32_t *kept, uint32_t *n_kept, const float *logits,
    uint32_t allowed, const uint32_t *mask, const dsa_sampling_t *s)
{
    double           sum, total;
    float            max;
    uint32_t         i, n;
    static weight_t  w[VOCAB];

    max = -INFINITY;
    n = 0;

    for (i = 0; i < allowed; i++) {
        if ((mask == NULL || dsa_mask_has(mask, i)) && logits[i] > -INFINITY) {
            max = logits[i] > max ? logits[i] : max;
        }
    }

    for (i = 0; i < allowed; i++) {
        if ((mask == NULL || dsa_mask_has(mask, i)) && logits[i] > -INFINITY) {
            w[n].id = i;
            w[n++].weight = exp(((double) logits[i] - (double) max)
                                / (double) s->temperature);
        }
    }

    qsort(w, n, sizeof(weight_t), heavier);

    total = 0;

    for (i = 0; i < n; i++) {
        total += w[i].weight;
    }

    memset(kept, 0, WORDS * sizeof(uint32_t));
    sum = 0;

    for (i = 0; i < n; i++) {
        if (s->top_p < 1 && i != 0 && sum >= (double) s->top_p * total) {
            break;
        }

        sum += w[i].weight;
        kept[w[i].id / 32] |= 1U << w[i].id % 32;
    }

    *n_kept = i;

    return sum;
}


static void
test_draws(void **state)
{
    float             max;
    double            sum, want;
    uint32_t          i, round, n, allowed, seed, kept[WORDS], sorted[WORDS];
    dsa_draw_t        draw;
    dsa_sample_t      out, plain;
    dsa_sampling_t    s;
    static float      logits[VOCAB], scratch[VOCAB];
    static uint32_t   mask[WORDS];
    const uint32_t   *use;

    static const float  top_p[] = { 1, 0.999f, 0.9f, 0.5f, 0.1f, 1e-6f };
    static const float  heat[] = { 1, 0.3f, 2.5f };

    seed = 7;

    for (round = 0; round < 400; round++) {
        memset(&s, 0, sizeof(s));
        s.temperature = heat[round % 3];
        s.top_p = top_p[round / 3 % 6];
        s.seed = round;

        allowed = round % 5 == 0 ? VOCAB - 100 : VOCAB;
        use = round % 4 == 1 ? mask : NULL;

        /* few different values: many ids have equal probabilities */

        for (i = 0; i < VOCAB; i++) {
            logits[i] = (float) (noise(&seed) % (round % 2 == 0 ? 40 : 60000))
                        / (round % 2 == 0 ? 4 : 6000);
            logits[i] = noise(&seed) % 50 == 0 ? -INFINITY : logits[i];
        }

        for (i = 0; i < WORDS; i++) {
            mask[i] = noise(&seed) & noise(&seed);
        }

        dsa_sample(&plain, &s, NULL, logits, VOCAB, allowed, use, NULL, 0,
                   round, scratch);

        memset(kept, 0xa5, sizeof(kept));
        dsa_sample_draw(&out, &draw, kept, &s, NULL, logits, VOCAB, allowed,
                        use, NULL, 0, round, scratch);

        assert_int_equal(out.token, plain.token);

        sum = kept_by_sort(sorted, &n, logits, allowed, use, &s);

        if (draw.n_kept == DSA_KEPT_ALL) {
            assert_int_equal(n, allowed);

        } else {
            assert_int_equal(draw.n_kept, n);
            assert_memory_equal(kept, sorted, sizeof(kept));
        }

        max = -INFINITY;

        for (i = 0; i < allowed; i++) {
            if (dsa_mask_has(sorted, i) && logits[i] > max) {
                max = logits[i];
            }
        }

        want = ((double) logits[out.token] - (double) max)
               / (double) s.temperature - log(sum);
        assert_true(fabs(want - (double) draw.logprob) < 1e-5);

        /* without the set the probability is the same */

        want = draw.logprob;
        dsa_sample_draw(&out, &draw, NULL, &s, NULL, logits, VOCAB, allowed,
                        use, NULL, 0, round, scratch);
        assert_true(want == (double) draw.logprob);
    }
}


/* Where one id has all of the probability. */

static void
test_certain(void **state)
{
    float           logits[40], scratch[40];
    uint32_t        i, kept[2], mask[2] = { 0, 0x30 };
    dsa_bias_t      bias[2] = { { 3, 100 }, { 7, -100 } };
    dsa_draw_t      draw;
    dsa_biases_t    b;
    dsa_sample_t    out;
    dsa_sampling_t  s;

    memset(&s, 0, sizeof(s));
    s.top_p = 0.5f;

    for (i = 0; i < 40; i++) {
        logits[i] = (float) (i * 7 % 40);
    }

    /* temperature 0: 17 * 7 % 40 is 39 */

    dsa_sample_draw(&out, &draw, kept, &s, NULL, logits, 40, 40, NULL, NULL, 0,
                    0, scratch);
    assert_int_equal(out.token, 17);
    assert_int_equal(draw.n_kept, 1);
    assert_true(draw.logprob == 0);
    assert_int_equal(kept[0], 1U << 17);
    assert_int_equal(kept[1], 0);

    /* an infinite logit */

    s.temperature = 1;
    logits[35] = INFINITY;
    dsa_sample_draw(&out, &draw, kept, &s, NULL, logits, 40, 40, NULL, NULL, 0,
                    0, scratch);
    assert_int_equal(out.token, 35);
    assert_int_equal(draw.n_kept, 1);
    assert_true(draw.logprob == 0);
    assert_int_equal(kept[1], 8);

    /* ids 36 and 37 are permitted, but have no probability: the first one */

    logits[36] = -INFINITY;
    logits[37] = NAN;
    dsa_sample_draw(&out, &draw, kept, &s, NULL, logits, 40, 40, mask, NULL, 0,
                    0, scratch);
    assert_int_equal(out.token, 36);
    assert_int_equal(draw.n_kept, 1);
    assert_true(draw.logprob == 0);
    assert_int_equal(kept[0], 0);
    assert_int_equal(kept[1], 0x10);

    /* a ban, and a forced id */

    s.top_p = 1;
    b.bias = &bias[1];
    b.n = 1;
    logits[35] = 0;
    dsa_sample_draw(&out, &draw, kept, &s, &b, logits, 35, 35, NULL, NULL, 0,
                    0, scratch);
    assert_int_equal(draw.n_kept, 34);
    assert_int_equal(kept[0], ~(1U << 7));
    assert_int_equal(kept[1], 7);

    b.bias = bias;
    b.n = 2;
    dsa_sample_draw(&out, &draw, kept, &s, &b, logits, 35, 35, NULL, NULL, 0,
                    0, scratch);
    assert_int_equal(out.token, 3);
    assert_int_equal(draw.n_kept, 1);
    assert_true(draw.logprob == 0);
    assert_int_equal(kept[0], 8);
}


/* Reads the ids of a sample row back into a bitmap. */

static uint32_t
read_kept(uint32_t *bitmap, const dsa_link_row_t *row, const uint8_t *p)
{
    int       shift;
    uint32_t  i, id, gap, n;

    id = 0;
    n = 0;

    if (row->form == DSA_LINK_KEPT_BITS) {
        for (i = 0; i < 8 * (row->length - 28); i++) {
            if (p[i / 8] >> i % 8 & 1) {
                bitmap[i / 32] |= 1U << i % 32;
                n++;
            }
        }

        return n;
    }

    assert_int_equal(row->form, DSA_LINK_KEPT_GAPS);

    for ( /* void */ ; n < row->n; n++) {
        gap = 0;
        shift = 0;

        do {
            gap |= (uint32_t) (*p & 0x7f) << shift;
            shift += 7;
        } while (*p++ & 0x80);

        id += gap;
        bitmap[id / 32] |= 1U << id % 32;
    }

    return n;
}


/* Sets of the published vocabulary, from one id to all of them. */

static void
test_sample_rows(void **state)
{
    uint32_t         i, j, k, n, seed, gaps, bits, last;
    dsa_buf_t        rows;
    dsa_draw_t       draw;
    dsa_link_row_t   row;
    static uint32_t  kept[PUBLISHED / 32], back[PUBLISHED / 32];

    memset(&rows, 0, sizeof(rows));
    seed = 3;

    for (i = 0; i < 60; i++) {
        memset(kept, 0, sizeof(kept));
        last = PUBLISHED - 1;

        for (j = 0; j < PUBLISHED; j++) {
            k = i < 20 ? (1U << i) : i < 40 ? 1 + noise(&seed) % (i - 19) : 1;

            if (i < 40 ? noise(&seed) % k == 0 : j % (i - 38) == 0) {
                kept[j / 32] |= 1U << j % 32;
            }
        }

        if (i == 20) {
            memset(kept, 0, sizeof(kept));
            kept[last / 32] = 1U << last % 32;
        }

        n = 0;
        gaps = 0;
        bits = 0;
        last = 0;

        for (j = 0; j < PUBLISHED; j++) {
            if (dsa_mask_has(kept, j)) {
                n++;
                gaps += j - last < 128 ? 1 : j - last < 16384 ? 2 : 3;
                bits = j / 8 + 1;
                last = j;
            }
        }

        if (n == 0) {
            continue;
        }

        draw.logprob = -1.5f - (float) i;
        draw.n_kept = n;

        rows.len = 0;
        dsa_rollout_sample(&rows, 5, 77 + i, i, &draw, kept, PUBLISHED / 32);
        memcpy(&row, rows.data, sizeof(row));

        assert_int_equal(row.length, rows.len);
        assert_int_equal(row.type, DSA_LINK_ROW_SAMPLE);
        assert_int_equal(row.position, 77 + i);
        assert_int_equal(row.n, n);
        assert_int_equal(row.version, 5);
        assert_memory_equal(rows.data + 20, &i, 4);
        assert_memory_equal(rows.data + 24, &draw.logprob, 4);

        /* the smaller form, in whole words of 4 bytes */

        gaps = gaps < bits ? gaps : bits;
        assert_int_equal(row.length, 28 + (gaps + 3) / 4 * 4);

        memset(back, 0, sizeof(back));
        assert_int_equal(read_kept(back, &row, (uint8_t *) rows.data + 28), n);
        assert_memory_equal(back, kept, sizeof(back));
        assert_true(passes(rows.data, (uint32_t) rows.len));
    }

    rows.len = 0;
    draw.n_kept = DSA_KEPT_ALL;
    dsa_rollout_sample(&rows, 5, 1, 2, &draw, kept, PUBLISHED / 32);
    dsa_rollout_sample(&rows, 5, 1, 2, &draw, NULL, 0);
    memcpy(&row, rows.data, sizeof(row));
    assert_int_equal(row.length, 28);
    assert_int_equal(row.form, DSA_LINK_KEPT_ALL);
    assert_int_equal(row.n, 0);
    memcpy(&row, rows.data + 28, sizeof(row));
    assert_int_equal(row.length, 28);
    assert_int_equal(row.form, DSA_LINK_KEPT_NONE);
    assert_int_equal(row.n, 0);
    assert_true(passes(rows.data, (uint32_t) rows.len));

    dsa_buf_free(&rows);
}


/* Long prompts are several rows. */

static void
test_prompt_rows(void **state)
{
    size_t           at;
    uint32_t         i, n, layers, k;
    uint16_t         head[2];
    dsa_buf_t        rows;
    dsa_link_row_t   row;
    static uint16_t  experts[300 * 58 * 8];
    static uint32_t  ids[20000];

    memset(&rows, 0, sizeof(rows));

    for (i = 0; i < 20000; i++) {
        ids[i] = 7 * i;
    }

    dsa_rollout_prompt(&rows, ids, 20000);

    for (at = 0, n = 0; at < rows.len; at += row.length, n += row.n) {
        memcpy(&row, rows.data + at, sizeof(row));
        assert_true(row.length <= DSA_LINK_MAX_ROW);
        assert_int_equal(row.type, DSA_LINK_ROW_PROMPT);
        assert_int_equal(row.position, n);
        assert_int_equal(row.version, 0);
        assert_memory_equal(rows.data + at + 20, ids + n, 4 * row.n);
    }

    assert_int_equal(n, 20000);
    assert_true(passes(rows.data, (uint32_t) rows.len));

    /* experts of one byte and of two */

    layers = 58;
    k = 8;

    for (i = 0; i < 300 * layers * k; i++) {
        experts[i] = (uint16_t) (i * 31 % 251);
    }

    for (i = 256; i <= 257; i++) {
        rows.len = 0;
        dsa_rollout_experts(&rows, 6, 1000, experts, 300, layers, k, i);

        for (at = 0, n = 0; at < rows.len; at += row.length, n += row.n) {
            memcpy(&row, rows.data + at, sizeof(row));
            memcpy(head, rows.data + at + 20, sizeof(head));
            assert_true(row.length <= DSA_LINK_MAX_ROW);
            assert_int_equal(row.type, DSA_LINK_ROW_EXPERTS);
            assert_int_equal(row.form, i - 255);
            assert_int_equal(row.position, 1000 + n);
            assert_int_equal(row.version, 6);
            assert_int_equal(head[0], layers);
            assert_int_equal(head[1], k);
            assert_int_equal((uint8_t) rows.data[at + 24],
                             experts[n * layers * k]);
            assert_int_equal((uint8_t) rows.data[at + 24 + row.form * 463],
                             experts[n * layers * k + 463]);
        }

        assert_int_equal(n, 300);
        assert_true(passes(rows.data, (uint32_t) rows.len));
    }

    dsa_buf_free(&rows);
}


/* What a consumer of rows rejects. */

static void
test_hostile_rows(void **state)
{
    uint32_t         i;
    dsa_link_row_t   row[3];

    static const uint32_t  bad[] = { 0, 4, 16, 19, 21, 22, 44, 64,
                                     DSA_LINK_MAX_ROW + 4, UINT32_MAX };

    memset(row, 0, sizeof(row));
    row[0].length = 20;
    row[1].length = 40;

    assert_int_equal(dsa_link_rows_check(row, 0), 0);
    assert_int_equal(dsa_link_rows_check(row, 20), 0);
    assert_int_equal(dsa_link_rows_check(row, 60), 0);
    assert_int_equal(dsa_link_rows_check(row, 19), -1);
    assert_int_equal(dsa_link_rows_check(row, 40), -1);
    assert_int_equal(dsa_link_rows_check(row, 59), -1);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        row[1].length = bad[i];
        assert_int_equal(dsa_link_rows_check(row, 60), -1);
    }
}


/* The row of a type that nginx accepts, and each of its fields wrong. */

static void
test_hostile_headers(void **state)
{
    char             data[96];
    uint32_t         i;
    uint16_t         head[2];
    dsa_link_row_t   row;

    /* 2 layers, 3 experts of each token, 5 tokens: 30 bytes or 60 */

    static const struct {
        uint32_t    length;
        uint16_t    type;
        uint16_t    form;
        uint32_t    position;
        uint32_t    n;
        uint16_t    layers;
        uint16_t    k;
        int         good;
    } t[] = {
        { 56, DSA_LINK_ROW_EXPERTS, 1, 0, 5, 2, 3, 1 },
        { 84, DSA_LINK_ROW_EXPERTS, 2, 0, 5, 2, 3, 1 },
        { 56, DSA_LINK_ROW_EXPERTS, 1, CONTEXT - 5, 5, 2, 3, 1 },
        { 84, DSA_LINK_ROW_EXPERTS, 1, 0, 5, 2, 3, 0 },
        { 56, DSA_LINK_ROW_EXPERTS, 2, 0, 5, 2, 3, 0 },
        { 56, DSA_LINK_ROW_EXPERTS, 0, 0, 5, 2, 3, 0 },
        { 56, DSA_LINK_ROW_EXPERTS, 3, 0, 5, 2, 3, 0 },
        { 56, DSA_LINK_ROW_EXPERTS, 1, CONTEXT - 4, 5, 2, 3, 0 },
        { 56, DSA_LINK_ROW_EXPERTS, 1, CONTEXT, 5, 2, 3, 0 },
        { 56, DSA_LINK_ROW_EXPERTS, 1, 0, 6, 2, 3, 0 },
        { 56, DSA_LINK_ROW_EXPERTS, 1, 0, 0x20000005, 2, 3, 0 },
        { 56, DSA_LINK_ROW_EXPERTS, 1, 0, 5, 3, 3, 0 },
        { 56, DSA_LINK_ROW_EXPERTS, 1, 0, 5, 2, 4, 0 },
        { 24, DSA_LINK_ROW_EXPERTS, 1, 0, 5, 0, 3, 0 },
        { 24, DSA_LINK_ROW_EXPERTS, 1, 0, 5, 2, 0, 0 },
        { 24, DSA_LINK_ROW_EXPERTS, 1, 0, 0, 2, 3, 0 },
        { 20, DSA_LINK_ROW_EXPERTS, 1, 0, 5, 2, 3, 0 },
        { 28, DSA_LINK_ROW_SAMPLE, DSA_LINK_KEPT_ALL, 7, 0, 0, 0, 1 },
        { 32, DSA_LINK_ROW_SAMPLE, DSA_LINK_KEPT_BITS, 7, 9, 0, 0, 1 },
        { 32, DSA_LINK_ROW_SAMPLE, DSA_LINK_KEPT_GAPS, 7, PUBLISHED, 0, 0, 1 },
        { 32, DSA_LINK_ROW_SAMPLE, DSA_LINK_KEPT_GAPS, 7, PUBLISHED + 1, 0, 0,
          0 },
        { 32, DSA_LINK_ROW_SAMPLE, DSA_LINK_KEPT_GAPS, 7, 0, 0, 0, 0 },
        { 28, DSA_LINK_ROW_SAMPLE, DSA_LINK_KEPT_GAPS, 7, 1, 0, 0, 0 },
        { 28, DSA_LINK_ROW_SAMPLE, DSA_LINK_KEPT_ALL, 7, 1, 0, 0, 0 },
        { 32, DSA_LINK_ROW_SAMPLE, DSA_LINK_KEPT_NONE, 7, 0, 0, 0, 0 },
        { 28, DSA_LINK_ROW_SAMPLE, 4, 7, 0, 0, 0, 0 },
        { 24, DSA_LINK_ROW_SAMPLE, DSA_LINK_KEPT_NONE, 7, 0, 0, 0, 0 },
        { 40, DSA_LINK_ROW_PROMPT, 0, CONTEXT - 5, 5, 0, 0, 1 },
        { 40, DSA_LINK_ROW_PROMPT, 0, CONTEXT - 4, 5, 0, 0, 0 },
        { 40, DSA_LINK_ROW_PROMPT, 0, 0, 0x40000005, 0, 0, 0 }
    };

    memset(data, 0, sizeof(data));

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        row.length = t[i].length;
        row.type = t[i].type;
        row.form = t[i].form;
        row.position = t[i].position;
        row.n = t[i].n;
        row.version = 1;
        head[0] = t[i].layers;
        head[1] = t[i].k;
        memcpy(data, &row, sizeof(row));
        memcpy(data + sizeof(row), head, sizeof(head));

        if (passes(data, t[i].length) != t[i].good) {
            fail_msg("row %u of the table", i);
        }
    }
}


#define ROUTES  8       /* at least: layers with experts times k */


/* The experts of a prompt whose tokens are shared out over two ranks. */

static void
test_split(void **state)
{
    uint32_t             i, gpus, routes, tokens[150], page[3] = { 4, 1, 2 };
    uint16_t             experts[2][150 * ROUTES];
    dsa_err_t            err;
    dsa_draw_t           draw[2];
    dsa_sample_t         sample;
    dsa_backend_t       *b;
    dsa_rollout_t        rollout;
    dsa_sampling_t       sampling;
    const uint32_t      *copies[2] = { page, page };
    dsa_batch_seq_t      seq;
    dsa_backend_conf_t   conf;

    memset(experts, 0xff, sizeof(experts));
    routes = 0;

    for (i = 0; i < 150; i++) {
        tokens[i] = i * 71 % 1024;
    }

    for (gpus = 1; gpus <= 2; gpus++) {
        memset(&conf, 0, sizeof(conf));
        conf.model = GOLDEN "a-fp8";
        conf.precision = DSA_EXACT;
        conf.kv_memory = 16 << 20;
        conf.gpus = gpus;
        conf.max_tokens = 512;
        conf.max_seqs = 4;
        conf.allowed = 1024;

        b = dsa_backend_cpu_open(&conf, &err);
        assert_non_null(b);

        routes = dsa_model_config_moe_layers(&b->config)
                 * b->config.num_experts_per_tok;
        assert_true(routes <= ROUTES);

        memset(&sampling, 0, sizeof(sampling));
        sampling.temperature = 1;
        sampling.top_p = 0.9f;
        memset(&rollout, 0, sizeof(rollout));
        rollout.draw = &draw[gpus - 1];
        rollout.experts = experts[gpus - 1];

        memset(&seq, 0, sizeof(seq));
        seq.tokens = tokens;
        seq.n_input = 150;
        seq.n_prompt = 150;
        seq.pages = page;
        seq.copies = gpus == 2 ? copies : NULL;
        seq.input_from = DSA_INPUT_KNOWN;
        seq.sampling = &sampling;
        seq.sample = &sample;
        seq.rollout = &rollout;

        assert_int_equal(b->start(b, &seq, 1, &err), DSA_OK);
        assert_int_equal(b->wait(b, &err), DSA_OK);
        b->close(b);
    }

    assert_memory_equal(experts[0], experts[1],
                        150 * routes * sizeof(uint16_t));
    assert_true(experts[0][150 * routes - 1] != 0xffff);
    assert_true(fabsf(draw[0].logprob - draw[1].logprob) < 1e-4f);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_certain),
        cmocka_unit_test(test_sample_rows),
        cmocka_unit_test(test_prompt_rows),
        cmocka_unit_test(test_hostile_rows),
        cmocka_unit_test(test_hostile_headers),
        cmocka_unit_test(test_split),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
