
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "engine/cpu/model.h"
#include "engine/checkpoint/safetensors.h"
#include "t/unit/numbers.h"
#include "t/unit/ranks.h"


/*
 * The CPU model with several ranks: however the work is shared out, a sequence
 * has the logits that it has on one rank, up to the rounding of the sums that
 * the ranks exchange.  golden.t compares them with other implementations.
 */

#define PAGES       64          /* of a rank */
#define TABLE       8           /* pages of a sequence */
#define TOKENS      300         /* of a test sequence */
#define DECODE      250         /* where its tokens are computed singly */
#define ANSWER      48          /* greedy tokens */

#define BOUND       5e-6        /* float32 sums in another order */
#define NOISE       0.1         /* served: the distance from exact */


typedef struct {
    const char         *name;
    dsa_weights_t      *weights;
    uint32_t            vocab;
    uint32_t            tokens[TOKENS + ANSWER];
    float              *want;           /* [TOKENS + ANSWER, vocab] */
    float              *got;
} fixture_t;


/* The block tables of a sequence, other pages on each rank. */

typedef struct {
    uint32_t            pages[DSA_MAX_GPUS][TABLE];
    const uint32_t     *copies[DSA_MAX_GPUS];
} tables_t;


/* The tokens are those of golden outputs, or the same beyond any vocabulary. */

static void
fixture_open(fixture_t *f, const char *dir)
{
    uint32_t                i;
    dsa_st_t               *st;
    dsa_err_t               err;
    const dsa_st_tensor_t  *t;

    memset(f, 0, sizeof(fixture_t));

    f->name = dir;
    f->weights = dsa_weights_open(dir, &err);
    must(f->weights != NULL ? DSA_OK : DSA_ERROR, &err);
    f->vocab = f->weights->config.vocab_size;

    st = dsa_st_open(GOLDEN "a-fp8/golden.safetensors", &err);
    must(st != NULL ? DSA_OK : DSA_ERROR, &err);

    t = dsa_st_find(st, dsa_strz("tokens"));
    assert_non_null(t);

    for (i = 0; i < TOKENS; i++) {
        memcpy(&f->tokens[i],
               (const char *) t->data + i % t->shape[0] * sizeof(uint32_t),
               sizeof(uint32_t));
        f->tokens[i] %= f->vocab;
    }

    dsa_st_close(st);

    f->want = calloc(TOKENS + ANSWER, f->vocab * sizeof(float));
    f->got = calloc(TOKENS + ANSWER, f->vocab * sizeof(float));
    assert_true(f->want != NULL && f->got != NULL);
}


static void
fixture_close(fixture_t *f)
{
    dsa_weights_close(f->weights);
    free(f->want);
    free(f->got);
}


static dsa_model_t *
model_open(const fixture_t *f, dsa_precision_e precision, split_t split,
    uint32_t threads)
{
    dsa_err_t          err;
    dsa_model_t       *model;
    dsa_model_conf_t   conf;

    memset(&conf, 0, sizeof(conf));
    conf.precision = precision;
    conf.kv_memory = dsa_model_kv_memory(&f->weights->config, precision,
                                         0, PAGES * DSA_PAGE_TOKENS);
    conf.max_tokens = 512;
    conf.threads = threads;
    conf.gpus = split.gpus;
    conf.attention = split.attention;

    model = dsa_model_open(f->weights, &conf, &err);
    must(model != NULL ? DSA_OK : DSA_ERROR, &err);

    assert_int_equal(dsa_model_pages(model), PAGES);
    assert_int_equal(dsa_model_ranks(model),
                     split.attention == DSA_ATTENTION_DATA ? split.gpus : 1);

    return model;
}


/* No two ranks have the same table, so that a mistaken rank has other pages. */

static void
tables_fill(tables_t *t, uint32_t first)
{
    uint32_t  r, i;

    for (r = 0; r < DSA_MAX_GPUS; r++) {
        t->copies[r] = t->pages[r];

        for (i = 0; i < TABLE; i++) {
            t->pages[r][i] = (first + 7 * i + 3 * r) % PAGES;
        }
    }
}


static void
rows_fill(dsa_rows_t *rows, const uint32_t *tokens, uint32_t start,
    uint32_t n, uint32_t rank, const tables_t *t, int copies)
{
    memset(rows, 0, sizeof(dsa_rows_t));
    rows->tokens = tokens + start;
    rows->start = start;
    rows->n = n;
    rows->n_logits = n;
    rows->rank = rank;
    rows->pages = t->pages[rank];
    rows->copies = copies ? t->copies : NULL;
}


/* Tokens start .. start+n-1 of f with their logits, in f->got. */

static void
run(fixture_t *f, dsa_model_t *m, uint32_t start, uint32_t n, uint32_t rank,
    const tables_t *t, int copies)
{
    dsa_err_t   err;
    dsa_rows_t  rows;

    rows_fill(&rows, f->tokens, start, n, rank, t, copies);
    must(dsa_model_forward(m, &rows, 1, f->got + (uint64_t) start * f->vocab,
                           &err),
         &err);
}


/* Prefill in chunks, then single tokens.  The tokens of copies are shared. */

static void
run_all(fixture_t *f, dsa_model_t *m, uint32_t rank, const tables_t *t,
    int copies)
{
    uint32_t  at;

    memset(f->got, 0, (uint64_t) TOKENS * f->vocab * sizeof(float));

    run(f, m, 0, 101, rank, t, copies);
    run(f, m, 101, DECODE - 101, rank, t, copies);

    for (at = DECODE; at < TOKENS; at++) {
        run(f, m, at, 1, rank, t, 0);
    }
}


static void
keep(fixture_t *f)
{
    memcpy(f->want, f->got, (uint64_t) TOKENS * f->vocab * sizeof(float));
}


static double
distance(const fixture_t *f, uint32_t row)
{
    double        d, sum, norm;
    uint32_t      i;
    const float  *a, *b;

    a = f->got + (uint64_t) row * f->vocab;
    b = f->want + (uint64_t) row * f->vocab;
    sum = 0;
    norm = 0;

    for (i = 0; i < f->vocab; i++) {
        d = (double) a[i] - b[i];
        sum += d * d;
        norm += (double) b[i] * b[i];
    }

    return sqrt(sum / norm);
}


static void
close_to(const fixture_t *f, split_t split, const char *what)
{
    double    d;
    uint32_t  row;

    for (row = 0; row < TOKENS; row++) {
        d = distance(f, row);

        if (!(d <= BOUND)) {
            fail_msg("%s, %u GPUs, attention %d, %s: row %u is off by %g",
                     f->name, split.gpus, (int) split.attention, what, row, d);
        }
    }
}


static void
same_bits(const fixture_t *f, uint32_t first, const char *what)
{
    uint32_t  row;
    uint64_t  at;

    for (row = first; row < TOKENS; row++) {
        at = (uint64_t) row * f->vocab;

        if (memcmp(f->got + at, f->want + at, f->vocab * sizeof(float)) != 0) {
            fail_msg("%s, %s: row %u has other bits", f->name, what, row);
        }
    }
}


/* want: of one rank; got: of split, on its last rank. */

static void
check_exact(const char *dir, split_t split)
{
    uint32_t      rank;
    tables_t      t;
    fixture_t     f;
    dsa_model_t  *m;

    fixture_open(&f, dir);
    tables_fill(&t, 5);

    m = model_open(&f, DSA_EXACT, one, 0);
    run_all(&f, m, 0, &t, 0);
    keep(&f);
    dsa_model_close(m);

    m = model_open(&f, DSA_EXACT, split, 0);
    rank = dsa_model_ranks(m) - 1;

    run_all(&f, m, rank, &t, 0);
    close_to(&f, split, "on one rank");

    tables_fill(&t, 31);
    run_all(&f, m, rank, &t, 1);
    close_to(&f, split, "shared out");

    dsa_model_close(m);
    fixture_close(&f);
}


static void
test_exact(void **state)
{
    check_exact(GOLDEN "a-fp8", data2);
    check_exact(GOLDEN "a-fp8", data4);
    check_exact(GOLDEN "b-bf16", data2);
    check_exact(GOLDEN "b-bf16", data4);
    check_exact(GOLDEN "v3", data2);
    check_exact(GOLDEN "joyai", data4);
    check_exact(GOLDEN "glm-4.7-flash", data2);
    check_exact(GOLDEN "moonlight", data2);
    check_exact(wide, tensor2);
    check_exact(wide, tensor4);
    check_exact(wide_dense, tensor2);
}


/* The wide model is the narrow one, so the sum over slices is that of all. */

static void
test_tensor_narrow(void **state)
{
    tables_t      t;
    fixture_t     f;
    dsa_err_t     err;
    dsa_model_t  *m;

    fixture_open(&f, GOLDEN "a-fp8");
    tables_fill(&t, 0);

    m = model_open(&f, DSA_EXACT, one, 0);
    run_all(&f, m, 0, &t, 0);
    dsa_model_close(m);
    dsa_weights_close(f.weights);
    keep(&f);

    f.weights = dsa_weights_open(wide, &err);
    must(f.weights != NULL ? DSA_OK : DSA_ERROR, &err);
    assert_int_equal(f.weights->config.moe_intermediate_size, 512);

    m = model_open(&f, DSA_EXACT, tensor4, 0);
    run_all(&f, m, 0, &t, 0);
    dsa_model_close(m);
    close_to(&f, tensor4, "the wide model");

    fixture_close(&f);
}


/* After a shared prefill every rank continues from its own pages. */

static void
check_copies(dsa_precision_e precision, split_t split)
{
    uint32_t      r, at;
    tables_t      t;
    fixture_t     f;
    dsa_model_t  *m;

    fixture_open(&f, GOLDEN "a-fp8");
    tables_fill(&t, 11);
    m = model_open(&f, precision, split, 0);

    /* more and fewer tokens than ranks */

    run(&f, m, 0, 97, 1, &t, 1);
    run(&f, m, 97, split.gpus - 1, 1, &t, 1);
    run(&f, m, 96 + split.gpus, DECODE - 96 - split.gpus, 1, &t, 1);

    for (r = 0; r < split.gpus; r++) {
        for (at = DECODE; at < TOKENS; at++) {
            run(&f, m, at, 1, r, &t, 0);
        }

        if (r == 0) {
            keep(&f);
        }

        same_bits(&f, DECODE, "after a shared prefill");
    }

    dsa_model_close(m);
    fixture_close(&f);
}


static void
test_copies(void **state)
{
    check_copies(DSA_EXACT, data2);
    check_copies(DSA_EXACT, data4);
    check_copies(DSA_SERVED, data2);
    check_copies(DSA_SERVED, data4);
}


/* Bits do not depend on the run, the threads, or the rank of the sequence. */

static void
check_bits(const char *dir, dsa_precision_e precision, split_t split)
{
    uint32_t      rank;
    tables_t      t;
    fixture_t     f;
    dsa_model_t  *m;

    fixture_open(&f, dir);
    tables_fill(&t, 2);

    m = model_open(&f, precision, split, 1);
    run_all(&f, m, 0, &t, 0);
    keep(&f);

    for (rank = 0; rank < dsa_model_ranks(m); rank++) {
        run_all(&f, m, rank, &t, 0);
        same_bits(&f, 0, "on another rank");
    }

    run_all(&f, m, 0, &t, 1);
    keep(&f);
    dsa_model_close(m);

    m = model_open(&f, precision, split, 3);
    run_all(&f, m, 0, &t, 1);
    same_bits(&f, 0, "in another run");
    dsa_model_close(m);

    fixture_close(&f);
}


static void
test_bits(void **state)
{
    check_bits(GOLDEN "a-fp8", DSA_EXACT, data2);
    check_bits(GOLDEN "a-fp8", DSA_SERVED, data4);
    check_bits(GOLDEN "b-bf16", DSA_SERVED, data2);
    check_bits(GOLDEN "v3", DSA_SERVED, data2);
    check_bits(GOLDEN "joyai", DSA_SERVED, data2);
    check_bits(GOLDEN "glm-4.7-flash", DSA_EXACT, data4);
    check_bits(GOLDEN "moonlight", DSA_EXACT, data2);
    check_bits(wide, DSA_EXACT, tensor4);
    check_bits(wide, DSA_SERVED, tensor2);
    check_bits(wide_dense, DSA_EXACT, tensor2);
    check_bits(wide_dense, DSA_SERVED, tensor2);
}


/*
 * A sequence has the bits that it has alone beside others, of which some are
 * on its rank and one is shared out.
 */

static void
check_beside(dsa_precision_e precision)
{
    float        *step;
    uint32_t      i, at, n, other[TOKENS];
    tables_t      t[4];
    fixture_t     f;
    dsa_err_t     err;
    dsa_rows_t    rows[4];
    dsa_model_t  *m;

    fixture_open(&f, GOLDEN "a-fp8");
    step = calloc(512, f.vocab * sizeof(float));
    assert_non_null(step);

    for (i = 0; i < TOKENS; i++) {
        other[i] = dsa_t_random(f.vocab);
    }

    /* a sequence has every fourth page, so that none has another's */

    for (i = 0; i < 4; i++) {
        for (at = 0; at < DSA_MAX_GPUS * TABLE; at++) {
            n = at / TABLE;
            t[i].copies[n] = t[i].pages[n];
            t[i].pages[n][at % TABLE] = ((at % TABLE + n) % TABLE) * 4 + i;
        }
    }

    m = model_open(&f, precision, data2, 0);
    run_all(&f, m, 1, &t[0], 0);
    keep(&f);
    memset(f.got, 0, (uint64_t) TOKENS * f.vocab * sizeof(float));

    for (at = 0; at < TOKENS; at += n) {
        n = at < 101 ? 101 : (at < DECODE ? DECODE - 101 : 1);

        rows_fill(&rows[0], other, at, n > 50 ? 50 : n, 0, &t[1], 0);
        rows_fill(&rows[1], other, at, n > 50 ? 50 : n, 1, &t[2], 0);
        rows_fill(&rows[2], f.tokens, at, n, 1, &t[0], 0);
        rows_fill(&rows[3], other, at, n > 50 ? 50 : n, 0, &t[3], 1);

        must(dsa_model_forward(m, rows, 4, step, &err), &err);
        memcpy(f.got + (uint64_t) at * f.vocab,
               step + 2 * (uint64_t) rows[0].n * f.vocab,
               (uint64_t) n * f.vocab * sizeof(float));
    }

    same_bits(&f, 0, "beside others");

    dsa_model_close(m);
    fixture_close(&f);
    free(step);
}


static void
test_beside(void **state)
{
    check_beside(DSA_EXACT);
    check_beside(DSA_SERVED);
}


/* A prefix that is copied continues on the other rank with the same bits. */

static void
check_page_copies(dsa_precision_e precision)
{
    uint32_t         i, at;
    tables_t         t;
    fixture_t        f;
    dsa_err_t        err;
    dsa_model_t     *m;
    dsa_page_copy_t  copy[TABLE];

    fixture_open(&f, GOLDEN "a-fp8");
    tables_fill(&t, 40);
    m = model_open(&f, precision, data4, 0);

    run_all(&f, m, 0, &t, 0);
    keep(&f);

    /* three pages by way of rank 3, the fourth directly */

    for (i = 0; i < 4; i++) {
        copy[i].from_rank = 0;
        copy[i].from_page = t.pages[0][i];
        copy[i].to_rank = i < 3 ? 3 : 2;
        copy[i].to_page = t.pages[copy[i].to_rank][i];
    }

    for (i = 4; i < 7; i++) {
        copy[i].from_rank = 3;
        copy[i].from_page = t.pages[3][i - 4];
        copy[i].to_rank = 2;
        copy[i].to_page = t.pages[2][i - 4];
    }

    must(dsa_model_copy(m, copy, 7, &err), &err);
    memset(f.got, 0, (uint64_t) TOKENS * f.vocab * sizeof(float));

    for (at = DECODE; at < TOKENS; at++) {
        run(&f, m, at, 1, 2, &t, 0);
    }

    same_bits(&f, DECODE, "after page copies");

    /* of several copies, none is made if one is out of range */

    copy[0].to_rank = 0;
    copy[0].from_rank = 1;
    copy[0].to_page = t.pages[0][0];
    copy[1].from_page = PAGES;
    assert_int_equal(dsa_model_copy(m, copy, 2, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "page 64 of rank 0; expected a page below "
                                     "64 and a rank below 4"));
    copy[1].from_page = 0;
    copy[1].to_rank = 4;
    assert_int_equal(dsa_model_copy(m, copy, 2, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "of rank 4; expected"));

    run(&f, m, DECODE, 1, 0, &t, 0);
    assert_memory_equal(f.got + (uint64_t) DECODE * f.vocab,
                        f.want + (uint64_t) DECODE * f.vocab,
                        f.vocab * sizeof(float));

    dsa_model_close(m);
    fixture_close(&f);
}


static void
test_page_copies(void **state)
{
    check_page_copies(DSA_EXACT);
    check_page_copies(DSA_SERVED);
}


/* The best logit of a row, and by how much it exceeds the second. */

static uint32_t
best_of(const float *row, uint32_t vocab, double *margin)
{
    double    second;
    uint32_t  i, best;

    for (i = 1, best = 0; i < vocab; i++) {
        best = row[i] > row[best] ? i : best;
    }

    second = -INFINITY;

    for (i = 0; i < vocab; i++) {
        second = i != best && row[i] > second ? row[i] : second;
    }

    *margin = row[best] - second;

    return best;
}


static int
ascending(const void *a, const void *b)
{
    const double  *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}


/* An answer of one rank, and its logits as split computes the same tokens. */

static void
run_answer(fixture_t *f, split_t split, int copies)
{
    double        margin;
    uint32_t      at;
    tables_t      t;
    dsa_model_t  *m;

    tables_fill(&t, 5);

    m = model_open(f, DSA_SERVED, one, 0);
    run(f, m, 0, TOKENS, 0, &t, 0);

    for (at = TOKENS; at < TOKENS + ANSWER; at++) {
        f->tokens[at] = best_of(f->got + (uint64_t) (at - 1) * f->vocab,
                                f->vocab, &margin);
        run(f, m, at, 1, 0, &t, 0);
    }

    memcpy(f->want, f->got,
           (uint64_t) (TOKENS + ANSWER) * f->vocab * sizeof(float));
    dsa_model_close(m);

    m = model_open(f, DSA_SERVED, split, 0);
    run(f, m, 0, TOKENS, 0, &t, copies);

    for (at = TOKENS; at < TOKENS + ANSWER; at++) {
        run(f, m, at, 1, 0, &t, 0);
    }

    dsa_model_close(m);
}


/*
 * Served precision rounds the partial sums, which a model of random weights
 * turns into other experts and other selections.  So the logits are at most as
 * far from those of one rank as these are from exact precision.
 */

static void
check_served(const char *dir, split_t split, int copies)
{
    double     distances[TOKENS + ANSWER];
    uint32_t   row;
    fixture_t  f;

    fixture_open(&f, dir);
    run_answer(&f, split, copies);

    for (row = 0; row < TOKENS + ANSWER; row++) {
        distances[row] = distance(&f, row);
    }

    qsort(distances, TOKENS + ANSWER, sizeof(double), ascending);

    if (!(distances[(TOKENS + ANSWER) / 2] <= NOISE)) {
        fail_msg("%s, %u GPUs, attention %d: half of the rows are off by %g "
                 "or more", dir, split.gpus, (int) split.attention,
                 distances[(TOKENS + ANSWER) / 2]);
    }

    fixture_close(&f);
}


static void
test_served(void **state)
{
    check_served(GOLDEN "a-fp8", data2, 0);
    check_served(GOLDEN "a-fp8", data4, 1);
    check_served(GOLDEN "b-bf16", data2, 1);
    check_served(GOLDEN "v3", data2, 1);
    check_served(GOLDEN "joyai", data2, 0);
    check_served(GOLDEN "glm-4.7-flash", data2, 0);
    check_served(GOLDEN "moonlight", data2, 1);
    check_served(wide, tensor2, 0);
    check_served(wide, tensor4, 0);
    check_served(wide_dense, tensor2, 0);
}


/*
 * The demonstration model is trained: the best token is the same, unless the
 * second is within the noise, of which each of the two has its own.
 */

static void
check_answer(split_t split, int copies)
{
    double        sum, margin;
    uint32_t      i, row, best, same;
    fixture_t     f;
    const float  *want;

    fixture_open(&f, DEMO);
    run_answer(&f, split, copies);

    for (row = TOKENS - 1, same = 0; row < TOKENS + ANSWER - 1; row++) {
        want = f.want + (uint64_t) row * f.vocab;

        for (i = 0, sum = 0; i < f.vocab; i++) {
            sum += (double) want[i] * want[i];
        }

        best = best_of(f.got + (uint64_t) row * f.vocab, f.vocab, &margin);
        (void) best_of(want, f.vocab, &margin);

        if (best == f.tokens[row + 1]) {
            same++;

        } else if (margin > 2 * NOISE * sqrt(sum / f.vocab)) {
            fail_msg("%u GPUs: token %u of the answer is %u, not %u, which is "
                     "better by %g", split.gpus, row + 1 - TOKENS, best,
                     f.tokens[row + 1], margin);
        }
    }

    assert_true(same >= ANSWER * 3 / 4);

    fixture_close(&f);
}


static void
test_answer(void **state)
{
    check_answer(data2, 0);
    check_answer(data4, 0);
    check_answer(data4, 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_tensor_narrow),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_beside),
        cmocka_unit_test(test_page_copies),
        cmocka_unit_test(test_served),
        cmocka_unit_test(test_answer)
    };

    return cmocka_run_group_tests(tests, both_make, both_remove);
}
