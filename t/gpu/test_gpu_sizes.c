
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "base/clock.h"
#include "engine/backend.h"
#include "engine/cuda/group.h"
#include "t/gpu/gpu.h"


/*
 * Random steps of all sizes and forms on two GPUs at the published widths:
 * decode tokens, prompts by MHA prefill and by absorbed MQA in chunks of any
 * size, steps without samples, moves to and from host memory beside the steps,
 * and with "attention data" prompts that the GPUs share out and page copies
 * between the GPUs.
 *
 * A rank that waits for the host while another rank waits for it would stop
 * both until the time limit.  The backend has loaded and allocated all that
 * steps need when it is open; otherwise the free memory of a GPU would change.
 * Results are not compared here: test_gpu_group.c and test_gpu_moves.c do.
 */

#define MODEL       "bench/v3.2"
#define GPUS        2
#define LAYERS      4               /* the last one has experts */
#define CONTEXT     16384
#define TABLE       (CONTEXT / DSA_PAGE_TOKENS)
#define PAGES       2048            /* of a rank, that steps use */
#define MOVED       8               /* pages of a copy or a move */
#define BUDGET      4096            /* tokens of a rank in a step */
#define SEQS        64              /* of a rank in a step */
#define STEPS       1000
#define SLOWEST     1000            /* ms of a step */


typedef struct {
    uint32_t            n;
    uint32_t            tokens[GPUS];   /* of each rank */
    uint32_t            entries[GPUS];  /* of each rank */
    dsa_batch_seq_t     seq[GPUS * SEQS];
    dsa_sample_t        sample[GPUS * SEQS];
    const uint32_t     *copies[GPUS * SEQS][GPUS];
} step_t;


static uint32_t  ranks;             /* that the scheduler sees */
static uint64_t  number = 1;
static uint32_t  tokens[CONTEXT];
static uint32_t  table[PAGES + TABLE];      /* a block table begins anywhere */


static const dsa_sampling_t  samplings[] = {
    { .top_p = 1 },
    { .temperature = 1, .top_p = 1, .seed = 3, .logprobs = 1,
      .top_logprobs = DSA_SAMPLE_MAX_TOP },
    { .temperature = 0.7f, .top_p = 0.9f, .frequency_penalty = 0.5f,
      .seed = 4 }
};


/* 0 .. n-1; the same numbers in each run. */

static uint32_t
pick(uint32_t n)
{
    number = number * 6364136223846793005ULL + 1442695040888963407ULL;

    return (uint32_t) (number >> 33) % n;
}


/* 1 .. most, small numbers as often as large ones. */

static uint32_t
length(uint32_t most)
{
    uint32_t  n;

    n = 1 + pick(1U << pick(15));

    return n < most ? n : most;
}


/* An entry of a step, if its ranks have room. */

static void
add(step_t *s, uint32_t rank, uint32_t prompt, uint32_t start, uint32_t n,
    int shared)
{
    uint32_t          r, part;
    dsa_batch_seq_t  *seq;

    part = shared ? (n + ranks - 1) / ranks : n;

    for (r = 0; r < ranks; r++) {
        if ((shared || r == rank)
            && (s->tokens[r] + part > BUDGET || s->entries[r] == SEQS))
        {
            return;
        }
    }

    for (r = 0; r < ranks; r++) {
        if (shared || r == rank) {
            s->tokens[r] += part;
            s->entries[r]++;
        }

        s->copies[s->n][r] = &table[pick(PAGES)];
    }

    seq = &s->seq[s->n];
    memset(seq, 0, sizeof(dsa_batch_seq_t));

    seq->tokens = tokens;
    seq->start = start;
    seq->n_input = n;
    seq->input_from = DSA_INPUT_KNOWN;
    seq->n_prompt = prompt;
    seq->rank = rank;
    seq->pages = s->copies[s->n][rank];
    seq->copies = shared ? s->copies[s->n] : NULL;
    seq->sampling = start + n >= prompt ? &samplings[pick(3)] : NULL;
    seq->sample = &s->sample[s->n];

    s->n++;
}


/* A chunk of a prompt. */

static void
add_prompt(step_t *s, uint32_t rank, int shared)
{
    uint32_t  n, start, prompt;

    prompt = length(CONTEXT);
    start = pick(2) ? 0 : pick(prompt);
    n = length(BUDGET);
    n = n < prompt - start ? n : prompt - start;

    add(s, rank, prompt, start, n, shared);
}


static void
make(step_t *s)
{
    uint32_t  i, r, n, decodes;

    s->n = 0;
    memset(s->tokens, 0, sizeof(s->tokens));
    memset(s->entries, 0, sizeof(s->entries));

    decodes = pick(3) == 0;

    for (r = 0; r < ranks; r++) {
        n = pick(4) == 0 ? 0 : length(SEQS);

        for (i = 0; i < n; i++) {
            add(s, r, 1, 1 + pick(CONTEXT - 1), 1, 0);
        }

        n = decodes || pick(4) == 0 ? 0 : length(8);

        for (i = 0; i < n; i++) {
            add_prompt(s, r, 0);
        }
    }

    if (ranks > 1 && !decodes && pick(3) == 0) {
        add_prompt(s, pick(ranks), 1);
    }

    if (s->n == 0) {
        add(s, pick(ranks), 1, 1 + pick(CONTEXT - 1), 1, 0);
    }
}


/* Pages from one rank to the other. */

static void
copy(dsa_backend_t *b)
{
    uint32_t         i, from;
    dsa_err_t        err;
    dsa_page_copy_t  page[MOVED];

    if (ranks == 1) {
        return;
    }

    from = pick(ranks);

    for (i = 0; i < MOVED; i++) {
        page[i].from_rank = from;
        page[i].from_page = table[pick(PAGES)];
        page[i].to_rank = 1 - from;
        page[i].to_page = i * (PAGES / MOVED) + pick(PAGES / MOVED);
    }

    if (b->copy(b, page, MOVED, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }
}


/* A call for each rank and way, unless one is in flight. */

static void
move(dsa_backend_t *b, uint8_t *host, uint64_t calls[GPUS][DSA_MOVES])
{
    uint32_t         i, r, way;
    uint64_t         ended;
    dsa_err_t        err;
    dsa_page_move_t  page[MOVED];

    for (r = 0; r < ranks; r++) {
        for (way = 0; way < DSA_MOVES; way++) {
            if (b->moved(b, way, r, 0, &ended, &err) != DSA_OK) {
                fail_msg("%s", err.text);
            }

            if (ended != calls[r][way]) {
                continue;
            }

            for (i = 0; i < MOVED; i++) {
                page[i].page = PAGES + way * MOVED + i;
                page[i].host = host + ((r * DSA_MOVES + way) * MOVED + i)
                                      * b->page_bytes;
            }

            if (b->move(b, way, r, page, MOVED, &err) != DSA_OK) {
                fail_msg("%s", err.text);
            }

            calls[r][way]++;
        }
    }
}


static void
wait_moves(dsa_backend_t *b, uint64_t calls[GPUS][DSA_MOVES])
{
    uint32_t   r, way;
    uint64_t   ended;
    dsa_err_t  err;

    for (r = 0; r < ranks; r++) {
        for (way = 0; way < DSA_MOVES; way++) {
            if (b->moved(b, way, r, 1, &ended, &err) != DSA_OK) {
                fail_msg("%s", err.text);
            }

            assert_int_equal(ended, calls[r][way]);
        }
    }
}


static void
check_loading(void)
{
    CUmoduleLoadingMode                   mode;
    enum cudaDriverEntryPointQueryResult  found;

    union {
        void      *entry;
        CUresult  (*mode)(CUmoduleLoadingMode *);
    } get;

    gpu_ok(cudaGetDriverEntryPointByVersion("cuModuleGetLoadingMode",
                                            &get.entry, 11070,
                                            cudaEnableDefault, &found));
    assert_int_equal(found, cudaDriverEntryPointSuccess);
    assert_int_equal(get.mode(&mode), CUDA_SUCCESS);
    assert_int_equal(mode, CU_MODULE_EAGER_LOADING);
}


static void
free_memory(size_t left[GPUS])
{
    size_t  all;
    int     i;

    for (i = 0; i < GPUS; i++) {
        gpu_ok(cudaSetDevice(i));
        gpu_ok(cudaMemGetInfo(&left[i], &all));
    }
}


static dsa_backend_t *
backend_open(dsa_attention_e attention)
{
    dsa_err_t            err;
    dsa_backend_t       *b;
    dsa_backend_conf_t   conf;

    memset(&conf, 0, sizeof(conf));

    conf.model = MODEL;
    conf.random = 1;
    conf.layers = LAYERS;
    conf.precision = DSA_SERVED;
    conf.gpus = GPUS;
    conf.gpu[1] = 1;
    conf.attention = attention;
    conf.context = CONTEXT;
    conf.kv_memory = (PAGES + DSA_MOVES * MOVED) * DSA_PAGE_TOKENS
                     * (uint64_t) LAYERS * (656 + 132);
    conf.max_tokens = ranks * BUDGET;
    conf.max_seqs = SEQS;
    conf.allowed = UINT32_MAX;

    b = dsa_backend_cuda_open(&conf, &err);

    if (b == NULL) {
        fail_msg("%s", err.text);
    }

    assert_int_equal(b->ranks, ranks);
    assert_int_equal(b->rank_tokens, BUDGET);
    assert_int_equal(b->pages, PAGES + DSA_MOVES * MOVED);

    return b;
}


static void
wait_step(dsa_backend_t *b, uint64_t *begin, uint64_t *slowest)
{
    uint64_t   now;
    dsa_err_t  err;

    if (b->wait(b, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    now = dsa_clock_ms();
    *slowest = now - *begin > *slowest ? now - *begin : *slowest;
    *begin = now;
}


static void
check(dsa_attention_e attention)
{
    int             n;
    size_t          size, before[GPUS], after[GPUS];
    step_t         *step;
    uint8_t        *host;
    uint32_t        i;
    uint64_t        begin, slowest, calls[GPUS][DSA_MOVES];
    dsa_err_t       err;
    dsa_backend_t  *b;

    n = 0;

    if (cudaGetDeviceCount(&n) != 0 || n < GPUS) {
        skip();
    }

    ranks = attention == DSA_ATTENTION_DATA ? GPUS : 1;

    for (i = 0; i < CONTEXT; i++) {
        tokens[i] = pick(100000);
    }

    for (i = 0; i < PAGES + TABLE; i++) {
        table[i] = i % PAGES;
    }

    step = calloc(2, sizeof(step_t));
    assert_non_null(step);

    b = backend_open(attention);
    check_loading();

    size = (ranks * DSA_MOVES * MOVED * b->page_bytes + 4095) / 4096 * 4096;
    host = aligned_alloc(4096, size);
    assert_non_null(host);
    memset(host, 0, size);

    if (b->pin(b, host, size, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    /*
     * The thread that orders copies and moves may allocate: it does so between
     * two steps, of which each rank has what the others wait for.
     */

    memset(calls, 0, sizeof(calls));
    copy(b);
    move(b, host, calls);
    wait_moves(b, calls);

    free_memory(before);
    slowest = 0;
    begin = dsa_clock_ms();

    for (i = 0; i < STEPS; i++) {
        make(&step[i % 2]);

        if (i % 4 == 0) {
            copy(b);
        }

        if (b->start(b, step[i % 2].seq, step[i % 2].n, &err) != DSA_OK) {
            fail_msg("step %u: %s", i, err.text);
        }

        move(b, host, calls);

        if (i != 0) {
            wait_step(b, &begin, &slowest);
        }
    }

    wait_step(b, &begin, &slowest);
    wait_moves(b, calls);
    free_memory(after);

    print_message("%u ranks, %d steps, the slowest took %llu ms\n", ranks,
                  STEPS, (unsigned long long) slowest);

    assert_in_range(slowest, 0, SLOWEST);
    assert_memory_equal(after, before, sizeof(before));

    b->close(b);
    free(host);
    free(step);
}


static void
test_data(void **state)
{
    check(DSA_ATTENTION_DATA);
}


static void
test_tensor(void **state)
{
    check(DSA_ATTENTION_TENSOR);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_tensor)
    };

    dsa_cuda_load_all();

    return cmocka_run_group_tests(tests, NULL, NULL);
}
