
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "engine/checkpoint/safetensors.h"
#include "t/unit/ranks.h"


/*
 * Moves of pages between ranks and host memory, on the CPU and on the null
 * backend.  The oracle is a sequence that continues on the pages which its
 * prompt was computed on.
 */

#define PROMPT      130             /* tokens: two full pages and two tokens,
                                       more than index_topk (64) */
#define FULL        2               /* full pages of it */
#define ANSWER      6
#define PAGES       8               /* of a rank */
#define SLOTS       4               /* pages in host memory */


typedef struct {
    dsa_backend_e       kind;
    const char         *model;
    dsa_precision_e     precision;
    split_t             split;
} setup_t;


static uint32_t  prompt[PROMPT + ANSWER];


static dsa_backend_t *
backend_open(const setup_t *s, uint32_t persistent)
{
    dsa_err_t           err;
    dsa_backend_t      *b;
    dsa_backend_conf_t  conf;

    memset(&conf, 0, sizeof(conf));
    conf.model = s->model;
    conf.precision = s->precision;
    conf.gpus = s->split.gpus;
    conf.attention = s->split.attention;
    conf.kv_memory = 8 << 20;
    conf.max_tokens = 256 * s->split.gpus;
    conf.max_seqs = 2;
    conf.allowed = 1024;
    conf.persistent = persistent;

    b = dsa_backend_open(s->kind, &conf, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);
    assert_true(b->pages >= PAGES);

    return b;
}


/* Host memory for SLOTS pages of a backend, and not one byte more. */

static uint8_t *
host_open(dsa_backend_t *b)
{
    uint8_t    *host;
    dsa_err_t   err;

    host = malloc(SLOTS * b->page_bytes);
    assert_non_null(host);
    memset(host, 0xa5, SLOTS * b->page_bytes);
    must(b->pin(b, host, SLOTS * b->page_bytes, &err), &err);

    return host;
}


static uint64_t
moved(dsa_backend_t *b, dsa_move_e way, uint32_t rank, int wait)
{
    uint64_t   calls;
    dsa_err_t  err;

    calls = UINT64_MAX;
    must(b->moved(b, way, rank, wait, &calls, &err), &err);

    return calls;
}


/* Moves two pages, and waits for them. */

static void
move2(dsa_backend_t *b, dsa_move_e way, uint32_t rank, const uint32_t *page,
    uint8_t *host)
{
    uint32_t         i;
    uint64_t         calls;
    dsa_err_t        err;
    dsa_page_move_t  move[FULL];

    for (i = 0; i < FULL; i++) {
        move[i].page = page[i];
        move[i].host = host + i * b->page_bytes;
    }

    calls = moved(b, way, rank, 0);
    must(b->move(b, way, rank, move, FULL, &err), &err);
    assert_int_equal(moved(b, way, rank, 1), calls + 1);
}


static void
compute(dsa_backend_t *b, uint32_t rank, const uint32_t *pages, uint32_t start,
    uint32_t n, dsa_sample_t *sample)
{
    dsa_err_t        err;
    dsa_sampling_t   sampling;
    dsa_batch_seq_t  seq;

    memset(&seq, 0, sizeof(seq));
    memset(&sampling, 0, sizeof(sampling));
    sampling.top_p = 1;
    sampling.logprobs = 1;
    sampling.top_logprobs = DSA_SAMPLE_MAX_TOP;

    seq.tokens = prompt;
    seq.start = start;
    seq.n_input = n;
    seq.input_from = DSA_INPUT_KNOWN;
    seq.n_prompt = PROMPT;
    seq.rank = rank;
    seq.pages = pages;
    seq.sampling = sample != NULL ? &sampling : NULL;
    seq.sample = sample;

    must(b->start(b, &seq, 1, &err), &err);
    must(b->wait(b, &err), &err);
}


/* The rest of the prompt after its full pages, and an answer. */

static void
answer(dsa_backend_t *b, uint32_t rank, const uint32_t *pages,
    dsa_sample_t sample[ANSWER])
{
    uint32_t  i, start;

    memset(sample, 0, ANSWER * sizeof(dsa_sample_t));
    start = FULL * DSA_PAGE_TOKENS;
    compute(b, rank, pages, start, PROMPT - start, &sample[0]);

    for (i = 1; i < ANSWER; i++) {
        prompt[PROMPT + i - 1] = sample[i - 1].token;
        compute(b, rank, pages, PROMPT + i - 1, 1, &sample[i]);
    }
}


static void
make_prompt(uint32_t step)
{
    uint32_t  i;

    for (i = 0; i < PROMPT; i++) {
        prompt[i] = 100 + i * step % 900;
    }
}


/*
 * The full pages of a prompt are moved out from the last rank.  They are then
 * used under other numbers on each rank, and on a backend that was opened
 * later.
 */

static void
check_moves(const setup_t *s)
{
    uint32_t        rank, from;
    uint8_t        *host, *later;
    dsa_sample_t    want[ANSWER], other[ANSWER], got[ANSWER];
    dsa_backend_t  *b, *b2;

    static const uint32_t  pages[] = { 3, 1, 6 };
    static const uint32_t  elsewhere[] = { 4, 7, 0 };

    b = backend_open(s, 0);
    host = host_open(b);
    from = b->ranks - 1;

    /* another prompt on the same pages first: host memory has the last one */

    make_prompt(53);
    compute(b, from, pages, 0, FULL * DSA_PAGE_TOKENS, NULL);
    move2(b, DSA_MOVE_OUT, from, pages, host);
    answer(b, from, pages, other);

    make_prompt(71);
    compute(b, from, pages, 0, FULL * DSA_PAGE_TOKENS, NULL);
    move2(b, DSA_MOVE_OUT, from, pages, host);
    answer(b, from, pages, want);

    assert_memory_not_equal(want, other, sizeof(want));

    for (rank = 0; rank < b->ranks; rank++) {
        move2(b, DSA_MOVE_IN, rank, elsewhere, host);
        answer(b, rank, elsewhere, got);
        assert_memory_equal(got, want, sizeof(want));
    }

    /* the counts are of a rank and way */

    assert_int_equal(moved(b, DSA_MOVE_OUT, from, 0), 2);
    assert_int_equal(moved(b, DSA_MOVE_IN, from, 0), 1);

    if (b->ranks > 1) {
        assert_int_equal(moved(b, DSA_MOVE_OUT, 0, 0), 0);
        assert_int_equal(moved(b, DSA_MOVE_IN, 0, 0), 1);
    }

    b2 = backend_open(s, 0);
    assert_string_equal(b2->fingerprint, b->fingerprint);
    assert_int_equal(b2->page_bytes, b->page_bytes);

    later = host_open(b2);
    memcpy(later, host, FULL * b->page_bytes);
    b->close(b);
    free(host);

    move2(b2, DSA_MOVE_IN, 0, elsewhere, later);
    answer(b2, 0, elsewhere, got);
    assert_memory_equal(got, want, sizeof(want));

    /* a page that was moved in is moved out with the same bytes */

    host = later + FULL * b2->page_bytes;
    move2(b2, DSA_MOVE_OUT, 0, elsewhere, host);
    assert_memory_equal(host, later, FULL * b2->page_bytes);

    b2->close(b2);
    free(later);
}


static void
test_cpu(void **state)
{
    uint32_t  i;
    setup_t   s;

    const setup_t  setups[] = {
        { DSA_BACKEND_CPU, GOLDEN "a-fp8", DSA_EXACT, one },
        { DSA_BACKEND_CPU, GOLDEN "a-fp8", DSA_SERVED, one },
        { DSA_BACKEND_CPU, GOLDEN "a-fp8", DSA_EXACT, data2 },
        { DSA_BACKEND_CPU, GOLDEN "a-fp8", DSA_SERVED, data2 },
        { DSA_BACKEND_CPU, wide, DSA_EXACT, tensor2 },
        { DSA_BACKEND_CPU, wide, DSA_SERVED, tensor2 }
    };

    for (i = 0; i < sizeof(setups) / sizeof(setups[0]); i++) {
        s = setups[i];
        check_moves(&s);
    }
}


static void
test_null(void **state)
{
    const setup_t  data = { DSA_BACKEND_NULL, DEMO, DSA_SERVED, data2 };
    const setup_t  tensor = { DSA_BACKEND_NULL, DEMO, DSA_SERVED, tensor2 };

    check_moves(&data);
    check_moves(&tensor);
}


/* The bytes of a page: 64 tokens of 3 layers, latents and index keys. */

static void
test_page_bytes(void **state)
{
    dsa_backend_t  *b;

    const setup_t  served = { DSA_BACKEND_CPU, GOLDEN "a-fp8", DSA_SERVED,
                              data2 };
    const setup_t  exact = { DSA_BACKEND_CPU, GOLDEN "a-fp8", DSA_EXACT, one };

    b = backend_open(&served, 0);
    assert_int_equal(b->page_bytes, 64 * 3 * (656 + 132));
    assert_int_equal(b->node[0], -1);
    assert_int_equal(b->node[1], -1);
    b->close(b);

    b = backend_open(&exact, 0);
    assert_int_equal(b->page_bytes, 64 * 3 * (512 + 64 + 128) * 4);
    b->close(b);
}


static void
move_fails(dsa_backend_t *b, dsa_move_e way, uint32_t rank, uint32_t page,
    void *host, const char *why)
{
    uint64_t         calls;
    dsa_err_t        err;
    dsa_page_move_t  move;

    calls = rank < b->ranks ? moved(b, way, rank, 0) : 0;
    move.page = page;
    move.host = host;

    assert_int_equal(b->move(b, way, rank, &move, 1, &err), DSA_ERROR);

    if (strstr(err.text, why) == NULL) {
        fail_msg("\"%s\" does not contain \"%s\"", err.text, why);
    }

    if (rank < b->ranks) {
        assert_int_equal(moved(b, way, rank, 0), calls);
    }
}


static void
check_limits(const setup_t *s)
{
    uint32_t        i;
    uint8_t        *host, more[16];
    dsa_err_t       err;
    dsa_backend_t  *b;

    b = backend_open(s, 0);
    host = host_open(b);

    for (i = 0; i < DSA_MOVES; i++) {
        move_fails(b, i, b->ranks, 0, host, "expected a page below");
        move_fails(b, i, 0, b->pages, host, "expected a page below");
        move_fails(b, i, 0, 0, host - 1, "not pinned");
        move_fails(b, i, 0, 0, host + (SLOTS - 1) * b->page_bytes + 1,
                   "not pinned");
        move_fails(b, i, 0, 0, more, "not pinned");
    }

    assert_int_equal(b->pin(b, host, 0, &err), DSA_ERROR);
    assert_int_equal(b->pin(b, NULL, 1, &err), DSA_ERROR);

    for (i = 1; i < DSA_PIN_REGIONS; i++) {
        must(b->pin(b, more, sizeof(more), &err), &err);
    }

    assert_int_equal(b->pin(b, more, sizeof(more), &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "16 regions"));

    b->close(b);
    free(host);
}


static void
test_limits(void **state)
{
    const setup_t  cpu = { DSA_BACKEND_CPU, GOLDEN "a-fp8", DSA_SERVED, data2 };
    const setup_t  null = { DSA_BACKEND_NULL, DEMO, DSA_SERVED, data2 };

    check_limits(&cpu);
    check_limits(&null);
}


/*
 * Answers of the null backend: the prompt again.  Wrong, foreign and unfinished
 * pages are errors.
 */

static void
test_null_faults(void **state)
{
    uint32_t         i;
    uint8_t         *host;
    dsa_err_t        err;
    dsa_sample_t     sample[ANSWER];
    dsa_backend_t   *b;
    dsa_batch_seq_t  seq;

    static const uint32_t  pages[] = { 3, 1, 6 };
    static const uint32_t  order[] = { 1, 3 };
    static const setup_t   s = { DSA_BACKEND_NULL, DEMO, DSA_SERVED,
                                 { 1, DSA_ATTENTION_DATA } };

    b = backend_open(&s, 0);
    host = host_open(b);
    make_prompt(71);

    /* the last token of a page is missing */

    compute(b, 0, pages, 0, DSA_PAGE_TOKENS - 1, NULL);
    move_fails(b, DSA_MOVE_OUT, 0, 3, host, "its last token");
    compute(b, 0, pages, DSA_PAGE_TOKENS - 1, DSA_PAGE_TOKENS + 1, NULL);
    move2(b, DSA_MOVE_OUT, 0, pages, host);

    answer(b, 0, pages, sample);

    for (i = 0; i < ANSWER; i++) {
        assert_int_equal(sample[i].token, prompt[i]);
    }

    /* host memory that was never written, and one changed byte */

    move_fails(b, DSA_MOVE_IN, 0, 3, host + 3 * b->page_bytes,
               "holds no page");

    for (i = 0; i < b->page_bytes; i++) {
        host[i] ^= 1;
        move_fails(b, DSA_MOVE_IN, 0, 3, host, "holds no page");
        host[i] ^= 1;
    }

    /* pages in the wrong order, and those of another prompt */

    memset(&seq, 0, sizeof(seq));
    seq.tokens = prompt;
    seq.start = FULL * DSA_PAGE_TOKENS;
    seq.n_input = 1;
    seq.input_from = DSA_INPUT_KNOWN;
    seq.n_prompt = PROMPT;
    seq.pages = pages;

    move2(b, DSA_MOVE_IN, 0, order, host);
    assert_int_equal(b->start(b, &seq, 1, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "page 3 of rank 0 came from host memory "
                           "with other tokens than those of the sequence from "
                           "position 0 on"));

    move2(b, DSA_MOVE_IN, 0, pages, host);
    prompt[DSA_PAGE_TOKENS - 1]++;
    assert_int_equal(b->start(b, &seq, 1, &err), DSA_ERROR);
    prompt[DSA_PAGE_TOKENS - 1]--;
    prompt[DSA_PAGE_TOKENS]++;
    assert_int_equal(b->start(b, &seq, 1, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "position 64 on"));
    prompt[DSA_PAGE_TOKENS]--;
    must(b->start(b, &seq, 1, &err), &err);
    must(b->wait(b, &err), &err);

    b->close(b);
    free(host);
}


/* Flips a bit in the last byte of a tensor of an expert. */

static void
change_expert(const char *dir)
{
    char                    path[256];
    FILE                   *f;
    uint64_t                size;
    dsa_st_t               *st;
    dsa_err_t               err;
    const dsa_st_tensor_t  *t;
    int                     byte;
    long                    offset;

    (void) snprintf(path, sizeof(path), "%s/model.safetensors", dir);
    st = dsa_st_open(path, &err);
    must(st != NULL ? DSA_OK : DSA_ERROR, &err);

    t = dsa_st_find(st, dsa_strz("model.layers.2.mlp.experts.3.up_proj"
                                 ".weight"));
    assert_non_null(t);
    offset = (const uint8_t *) t->data - dsa_st_image(st, &size)
             + (long) t->size - 1;
    dsa_st_close(st);

    f = fopen(path, "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, offset, SEEK_SET), 0);
    byte = fgetc(f);
    assert_int_equal(fseek(f, offset, SEEK_SET), 0);
    assert_int_not_equal(fputc(byte ^ 1, f), EOF);
    assert_int_equal(fclose(f), 0);
}


/*
 * With persistent set, any changed byte of the weights is another fingerprint.
 * Without, a byte of an expert is not covered.
 */

static void
test_fingerprint(void **state)
{
    char            first[2][36];
    uint32_t        i;
    dsa_backend_t  *b;

    const setup_t  cpu = { DSA_BACKEND_CPU, wide, DSA_SERVED, one };
    const setup_t  exact = { DSA_BACKEND_CPU, wide, DSA_EXACT, one };
    const setup_t  null = { DSA_BACKEND_NULL, DEMO, DSA_SERVED, one };

    for (i = 0; i < 2; i++) {
        b = backend_open(&cpu, i);
        assert_int_equal(b->sampled, !i);
        assert_int_equal(strlen(b->fingerprint), 32);
        (void) strcpy(first[i], b->fingerprint);
        b->close(b);

        b = backend_open(&exact, i);
        assert_string_not_equal(b->fingerprint, first[i]);
        b->close(b);

        b = backend_open(&null, i);
        assert_int_equal(b->sampled, 0);
        b->close(b);
    }

    assert_string_not_equal(first[0], first[1]);
    change_expert(wide);

    b = backend_open(&cpu, 0);
    assert_string_equal(b->fingerprint, first[0]);
    b->close(b);

    b = backend_open(&cpu, 1);
    assert_string_not_equal(b->fingerprint, first[1]);
    b->close(b);

    change_expert(wide);
    b = backend_open(&cpu, 1);
    assert_string_equal(b->fingerprint, first[1]);
    b->close(b);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_page_bytes),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_null_faults),
        cmocka_unit_test(test_fingerprint)
    };

    return cmocka_run_group_tests(tests, wide_make, wide_remove);
}
