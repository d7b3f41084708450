
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_T_MOVES_H_INCLUDED_
#define _DSA_T_MOVES_H_INCLUDED_


#include "t/unit/ranks.h"


/*
 * Moves of pages between ranks and host memory, of any backend.  The oracle is
 * a sequence that continues on the pages which its prompt was computed on.
 *
 * MOVES_GPU(rank), which a test defines before it includes this file, is the
 * number of the GPU of a rank.
 */

#define PROMPT      130             /* tokens: two full pages and two tokens,
                                       more than index_topk (64) */
#define FULL        2               /* full pages of it */
#define ANSWER      6
#define PAGES       8               /* of a rank */
#define SLOTS       4               /* pages in host memory */
#define CONTEXT     1024


typedef struct {
    dsa_backend_e       kind;
    const char         *model;
    dsa_precision_e     precision;
    split_t             split;
} setup_t;


static uint32_t  prompt[PROMPT + ANSWER];


static inline dsa_backend_t *
backend_open(const setup_t *s, uint32_t persistent)
{
    uint32_t            i;
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
    conf.context = CONTEXT;
    conf.persistent = persistent;

    for (i = 0; i < s->split.gpus; i++) {
        conf.gpu[i] = MOVES_GPU(i);
    }

    b = dsa_backend_open(s->kind, &conf, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);
    assert_true(b->pages >= PAGES);

    return b;
}


/*
 * Host memory for SLOTS pages of a backend, and not one byte more.  A GPU
 * registers whole pages of the system, of which each may be registered once.
 */

static inline uint8_t *
host_open(dsa_backend_t *b)
{
    uint8_t    *host;
    dsa_err_t   err;

    host = aligned_alloc(4096, (SLOTS * b->page_bytes + 4095) / 4096 * 4096);
    assert_non_null(host);
    memset(host, 0xa5, SLOTS * b->page_bytes);
    must(b->pin(b, host, SLOTS * b->page_bytes, &err), &err);

    return host;
}


static inline uint64_t
moved(dsa_backend_t *b, dsa_move_e way, uint32_t rank, int wait)
{
    uint64_t   calls;
    dsa_err_t  err;

    calls = UINT64_MAX;
    must(b->moved(b, way, rank, wait, &calls, &err), &err);

    return calls;
}


/* Moves two pages, and waits for them. */

static inline void
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


static inline void
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

static inline void
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


static inline void
make_prompt(uint32_t step)
{
    uint32_t  i;

    for (i = 0; i < PROMPT; i++) {
        prompt[i] = 100 + i * step % 150;
    }
}


/*
 * The full pages of a prompt are moved out from the last rank.  They are then
 * used under other numbers on each rank, and on a backend that was opened
 * later.
 */

static inline void
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


static inline void
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


static inline void
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

    b->close(b);
    free(host);
}


#endif /* _DSA_T_MOVES_H_INCLUDED_ */
