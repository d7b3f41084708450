
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <time.h>


/* Ranks share a GPU when the machine has fewer. */

#define MOVES_GPU(rank)     ((rank) % gpus())


static unsigned int
gpus(void)
{
    int  n;

    n = 0;

    return cudaGetDeviceCount(&n) == cudaSuccess && n > 0 ? (unsigned int) n
                                                          : 1;
}


#include "engine/cuda/group.h"
#include "t/gpu/spin.h"
#include "t/unit/moves.h"


/* Moves of pages between GPUs and host memory. */

#define ROUNDS      60              /* steps with moves beside them */

#define LAYERS      61              /* of a page of DeepSeek-V3.2 */
#define PAGE_BYTES  (64ULL * (656 + 132) * LAYERS)
#define SLOT_BYTES  3080192ULL      /* the next multiple of 4096 */
#define RATE_PAGES  256             /* 788 MB */
#define RATE_CALL   64              /* pages of a call */
#define FLIGHT_CALL 32              /* the same beside steps */
#define BULK_BYTES  (1ULL << 30)
#define TIMED       200             /* steps */
#define DELAY_MS    3.0             /* most by which moves delay a step */


static void
test_elsewhere(void **state)
{
    uint32_t  i;
    setup_t   s;

    const setup_t  setups[] = {
        { DSA_BACKEND_CUDA, GOLDEN "a-fp8", DSA_SERVED, one },
        { DSA_BACKEND_CUDA, GOLDEN "a-fp8", DSA_SERVED, data2 },
        { DSA_BACKEND_CUDA, GOLDEN "a-fp8", DSA_SERVED, data4 },
        { DSA_BACKEND_CUDA, GOLDEN "glm-5.2", DSA_SERVED, one },
        { DSA_BACKEND_CUDA, GOLDEN "glm-5.2", DSA_SERVED, data2 },
        { DSA_BACKEND_CUDA, wide, DSA_SERVED, tensor2 },
        { DSA_BACKEND_CUDA, wide, DSA_SERVED, tensor4 }
    };

    for (i = 0; i < sizeof(setups) / sizeof(setups[0]); i++) {
        s = setups[i];
        check_moves(&s);
    }
}


/*
 * Models that attend to all positions have pages of two layers of latents in
 * BF16, without scales and index keys.
 */

static void
test_dense(void **state)
{
    uint32_t        i;
    setup_t         s;
    dsa_backend_t  *b;

    const setup_t  setups[] = {
        { DSA_BACKEND_CUDA, GOLDEN "v3-wide", DSA_SERVED, one },
        { DSA_BACKEND_CUDA, GOLDEN "joyai-wide", DSA_SERVED, data2 },
        { DSA_BACKEND_CUDA, GOLDEN "glm-4.7-flash-wide", DSA_SERVED, data2 },
        { DSA_BACKEND_CUDA, GOLDEN "moonlight-wide", DSA_SERVED, one },
        { DSA_BACKEND_CUDA, GOLDEN "moonlight-wide", DSA_SERVED, data4 },
        { DSA_BACKEND_CUDA, wide_dense, DSA_SERVED, tensor2 }
    };

    for (i = 0; i < sizeof(setups) / sizeof(setups[0]); i++) {
        s = setups[i];

        b = backend_open(&s, 0);
        assert_int_equal(b->kv_bf16, 1);
        assert_int_equal(b->page_bytes, 64 * 2 * (512 + 64) * 2);
        b->close(b);

        check_moves(&s);
    }
}


static void
test_limits(void **state)
{
    const setup_t  data = { DSA_BACKEND_CUDA, GOLDEN "a-fp8", DSA_SERVED,
                            data2 };

    check_limits(&data);
}


/* Starts a decode of the token at this position, without waiting for it. */

static void
decode(dsa_backend_t *b, const uint32_t *pages, uint32_t position,
    dsa_sample_t *sample)
{
    dsa_err_t        err;
    dsa_batch_seq_t  seq;

    static const dsa_sampling_t  sampling = {
        .top_p = 1, .logprobs = 1, .top_logprobs = DSA_SAMPLE_MAX_TOP
    };

    memset(&seq, 0, sizeof(seq));
    seq.tokens = prompt;
    seq.start = position;
    seq.n_input = 1;
    seq.input_from = DSA_INPUT_KNOWN;
    seq.n_prompt = PROMPT;
    seq.pages = pages;
    seq.sampling = &sampling;
    seq.sample = sample;

    must(b->start(b, &seq, 1, &err), &err);
}


/*
 * A copy from another rank is ordered behind a step that runs, then the page
 * that it writes is moved out, without a wait between the three.
 */

static void
test_after_copy(void **state)
{
    uint32_t         i;
    uint8_t         *host, *copied;
    dsa_err_t        err;
    dsa_sample_t     sample;
    dsa_backend_t   *b;
    dsa_page_move_t  move[FULL];
    dsa_page_copy_t  copy[FULL];

    static const uint32_t  pages[] = { 3, 1, 6 };
    static const setup_t   s = { DSA_BACKEND_CUDA, GOLDEN "a-fp8", DSA_SERVED,
                                 { 2, DSA_ATTENTION_DATA } };

    b = backend_open(&s, 0);
    host = host_open(b);
    copied = host + FULL * b->page_bytes;

    make_prompt(71);
    compute(b, 0, pages, 0, PROMPT, NULL);
    move2(b, DSA_MOVE_OUT, 0, pages, host);

    for (i = 0; i < FULL; i++) {
        copy[i].from_rank = 0;
        copy[i].from_page = pages[i];
        copy[i].to_rank = 1;
        copy[i].to_page = 4 + i;
        move[i].page = 4 + i;
        move[i].host = copied + i * b->page_bytes;
    }

    decode(b, pages, PROMPT - 1, &sample);
    must(b->copy(b, copy, FULL, &err), &err);
    must(b->move(b, DSA_MOVE_OUT, 1, move, FULL, &err), &err);
    must(b->wait(b, &err), &err);
    assert_int_equal(moved(b, DSA_MOVE_OUT, 1, 1), 1);
    assert_memory_equal(copied, host, FULL * b->page_bytes);

    b->close(b);
    free(host);
}


/*
 * Moves the pages out while a step runs, then into the pages next, with a call
 * for each page.  The step that runs reads the pages.
 */

static void
move_on(dsa_backend_t *b, uint8_t *host, const uint32_t *pages,
    const uint32_t *next)
{
    uint32_t         j;
    dsa_err_t        err;
    dsa_page_move_t  move[FULL];

    move2(b, DSA_MOVE_OUT, 0, pages, host);

    for (j = 0; j < FULL; j++) {
        move[j].page = next[j];
        move[j].host = host + j * b->page_bytes;
        must(b->move(b, DSA_MOVE_IN, 0, &move[j], 1, &err), &err);
    }
}


/* Waits until so many calls have ended; their count never falls. */

static void
wait_in(dsa_backend_t *b, uint64_t want)
{
    uint64_t  calls, before;

    before = moved(b, DSA_MOVE_IN, 0, 0);

    while (before != want) {
        calls = moved(b, DSA_MOVE_IN, 0, 1);
        assert_true(calls > before && calls <= want);
        before = calls;
    }
}


/*
 * The same token is decoded again and again.  With host memory, the full pages
 * are moved during each step, and the next step reads the moved ones.
 */

static void
rounds(dsa_backend_t *b, uint8_t *host, dsa_sample_t *sample)
{
    uint32_t   i, j, pages[FULL + 1], next[FULL + 1];
    dsa_err_t  err;

    pages[0] = 3;
    pages[1] = 1;
    pages[2] = 6;

    make_prompt(71);
    compute(b, 0, pages, 0, PROMPT, NULL);

    for (i = 0; i < ROUNDS; i++) {
        decode(b, pages, PROMPT - 1, &sample[i]);

        if (host == NULL) {
            must(b->wait(b, &err), &err);
            continue;
        }

        memcpy(next, pages, sizeof(pages));

        for (j = 0; j < FULL; j++) {
            next[j] = 8 + (2 * i + j) % 16;
        }

        move_on(b, host + i % 2 * FULL * b->page_bytes, pages, next);
        must(b->wait(b, &err), &err);
        wait_in(b, (uint64_t) FULL * (i + 1));

        memcpy(pages, next, sizeof(pages));
    }
}


static void
check_beside(const setup_t *s)
{
    uint8_t        *host;
    uint32_t        i;
    dsa_sample_t    want[ROUNDS], got[ROUNDS];
    dsa_backend_t  *b;

    memset(want, 0, sizeof(want));
    memset(got, 0, sizeof(got));

    b = backend_open(s, 0);
    rounds(b, NULL, want);
    host = host_open(b);
    rounds(b, host, got);

    for (i = 0; i < ROUNDS; i++) {
        assert_memory_equal(&got[i], &want[0], sizeof(got[i]));
        assert_memory_equal(&want[i], &want[0], sizeof(want[i]));
    }

    assert_memory_equal(host, host + FULL * b->page_bytes,
                        FULL * b->page_bytes);

    b->close(b);
    free(host);
}


static void
test_beside(void **state)
{
    const setup_t  alone = { DSA_BACKEND_CUDA, GOLDEN "a-fp8", DSA_SERVED,
                             one };
    const setup_t  data = { DSA_BACKEND_CUDA, GOLDEN "a-fp8", DSA_SERVED,
                            data2 };
    const setup_t  tensor = { DSA_BACKEND_CUDA, wide, DSA_SERVED, tensor2 };
    const setup_t  glm = { DSA_BACKEND_CUDA, GOLDEN "glm-5.2", DSA_SERVED,
                           one };

    check_beside(&alone);
    check_beside(&data);
    check_beside(&tensor);
    check_beside(&glm);
}


/*
 * Pages of another prompt are moved into the pages that a step in flight still
 * reads: they arrive after it, and the next step has the other prompt's answer.
 * The step does not get on before the pages were moved out, which needs as long
 * as moving them in: what was moved out are the old pages.
 */

static void
check_overwrite(const setup_t *s)
{
    volatile int     *end;
    uint8_t          *host, *other, *old;
    uint32_t          i;
    uint64_t          in;
    dsa_err_t         err;
    dsa_sample_t      want[2], got[2];
    cudaStream_t      stream;
    dsa_backend_t    *b;
    dsa_page_move_t   move[FULL];

    static const uint32_t  pages[] = { 3, 1, 6 };

    memset(want, 0, sizeof(want));
    b = backend_open(s, 0);
    host = host_open(b);
    other = host + FULL * b->page_bytes;

    assert_int_equal(cudaSetDevice((int) MOVES_GPU(0)), 0);
    assert_int_equal(cudaStreamCreateWithFlags(&stream,
                                               cudaStreamNonBlocking), 0);
    assert_int_equal(cudaMallocHost((void **) &end, sizeof(int)), 0);
    old = host_open(b);

    /* page 6 keeps the last tokens of the second prompt */

    make_prompt(53);
    compute(b, 0, pages, 0, FULL * DSA_PAGE_TOKENS, NULL);
    move2(b, DSA_MOVE_OUT, 0, pages, other);

    make_prompt(71);
    compute(b, 0, pages, 0, PROMPT, NULL);
    move2(b, DSA_MOVE_OUT, 0, pages, host);

    decode(b, pages, PROMPT - 1, &want[0]);
    must(b->wait(b, &err), &err);
    move2(b, DSA_MOVE_IN, 0, pages, other);
    decode(b, pages, PROMPT - 1, &want[1]);
    must(b->wait(b, &err), &err);
    assert_memory_not_equal(&want[0], &want[1], sizeof(want[0]));

    for (i = 0; i < ROUNDS; i++) {
        memset(got, 0, sizeof(got));
        move2(b, DSA_MOVE_IN, 0, pages, host);
        in = moved(b, DSA_MOVE_IN, 0, 0);

        move[0].page = pages[0];
        move[0].host = other;
        move[1].page = pages[1];
        move[1].host = other + b->page_bytes;

        *end = 0;
        assert_int_equal(gpu_spin(end, stream), 0);

        decode(b, pages, PROMPT - 1, &got[0]);
        must(b->move(b, DSA_MOVE_IN, 0, move, FULL, &err), &err);
        move2(b, DSA_MOVE_OUT, 0, pages, old);

        *end = 1;
        must(b->wait(b, &err), &err);
        wait_in(b, in + 1);
        decode(b, pages, PROMPT - 1, &got[1]);
        must(b->wait(b, &err), &err);

        assert_memory_equal(got, want, sizeof(want));
        assert_memory_equal(old, host, FULL * b->page_bytes);
    }

    assert_int_equal(cudaStreamDestroy(stream), 0);
    assert_int_equal(cudaFreeHost((void *) end), 0);
    b->close(b);
    free(host);
    free(old);
}


static void
test_overwrite(void **state)
{
    const setup_t  alone = { DSA_BACKEND_CUDA, GOLDEN "a-fp8", DSA_SERVED,
                             one };
    const setup_t  data = { DSA_BACKEND_CUDA, GOLDEN "a-fp8", DSA_SERVED,
                            data2 };
    const setup_t  tensor = { DSA_BACKEND_CUDA, wide, DSA_SERVED, tensor4 };

    check_overwrite(&alone);
    check_overwrite(&data);
    check_overwrite(&tensor);
}


/* As many calls as may be in flight end in their order. */

static void
test_calls(void **state)
{
    uint32_t         i, turn;
    uint64_t         calls, before;
    uint8_t         *host;
    dsa_err_t        err;
    dsa_backend_t   *b;
    dsa_page_move_t  move;

    static const uint32_t  pages[] = { 3, 1, 6 };
    static const setup_t   s = { DSA_BACKEND_CUDA, GOLDEN "a-fp8", DSA_SERVED,
                                 { 1, DSA_ATTENTION_DATA } };

    b = backend_open(&s, 0);
    host = host_open(b);
    make_prompt(71);
    compute(b, 0, pages, 0, FULL * DSA_PAGE_TOKENS, NULL);
    move.page = 3;
    move.host = host;
    before = 0;

    for (turn = 1; turn <= 10; turn++) {
        for (i = 0; i < DSA_MOVE_CALLS; i++) {
            must(b->move(b, DSA_MOVE_OUT, 0, &move, 1, &err), &err);
        }

        do {
            calls = moved(b, DSA_MOVE_OUT, 0, 1);
            assert_true(calls > before);
            before = calls;
        } while (calls < turn * DSA_MOVE_CALLS);

        assert_int_equal(calls, turn * DSA_MOVE_CALLS);
    }

    assert_int_equal(moved(b, DSA_MOVE_OUT, 0, 1), calls);
    assert_int_equal(moved(b, DSA_MOVE_IN, 0, 1), 0);

    b->close(b);
    free(host);
}


static double
now(void)
{
    struct timespec  t;

    (void) clock_gettime(CLOCK_MONOTONIC, &t);

    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}


/* GB/s of one copy of BULK_BYTES by the runtime, the best of five. */

static double
bulk_rate(void *device, void *host, enum cudaMemcpyKind kind)
{
    double    begin, rate, best;
    uint32_t  i;

    best = 0;

    for (i = 0; i < 5; i++) {
        begin = now();
        assert_int_equal(cudaMemcpyAsync(kind == cudaMemcpyHostToDevice
                                         ? device : host,
                                         kind == cudaMemcpyHostToDevice
                                         ? host : device, BULK_BYTES, kind, 0),
                         0);
        assert_int_equal(cudaStreamSynchronize(0), 0);
        rate = (double) BULK_BYTES * 1e-9 / (now() - begin);
        best = rate > best ? rate : best;
    }

    return best;
}


/*
 * GB/s of RATE_PAGES pages that are not in order, each way in ways [DSA_MOVES]
 * that is 1 at the same time; the best of five.
 */

static double
page_rate(dsa_backend_t *b, uint8_t *host, const int *ways)
{
    double           begin, rate, best;
    uint32_t         i, j, turn, way, n;
    dsa_err_t        err;
    dsa_page_move_t  move[RATE_CALL];

    best = 0;

    for (turn = 0; turn < 5; turn++) {
        begin = now();
        n = 0;

        for (i = 0; i < RATE_PAGES; i += RATE_CALL) {
            for (way = 0; way < DSA_MOVES; way++) {
                if (!ways[way]) {
                    continue;
                }

                for (j = 0; j < RATE_CALL; j++) {
                    move[j].page = (i + j) * 37 % RATE_PAGES
                                   + way * RATE_PAGES;
                    move[j].host = host + ((i + j) * 91 % RATE_PAGES
                                           + way * RATE_PAGES) * SLOT_BYTES;
                }

                must(b->move(b, way, 0, move, RATE_CALL, &err), &err);
                n += RATE_CALL;
            }
        }

        for (way = 0; way < DSA_MOVES; way++) {
            for (i = 0; ways[way] && i < RATE_PAGES / RATE_CALL; i++) {
                (void) moved(b, way, 0, 1);
            }
        }

        rate = n * PAGE_BYTES * 1e-9 / (now() - begin);
        best = rate > best ? rate : best;
    }

    return best;
}


/* As many moves as may be in flight, of pages that no step uses. */

static void
fill(dsa_backend_t *b, uint8_t *host, uint64_t *ordered)
{
    uint32_t         i, way;
    dsa_err_t        err;
    dsa_page_move_t  move[FLIGHT_CALL];

    for (way = 0; way < DSA_MOVES; way++) {
        while (ordered[way] - moved(b, way, 0, 0) < DSA_MOVE_CALLS) {
            for (i = 0; i < FLIGHT_CALL; i++) {
                move[i].page = FLIGHT_CALL + i + way * RATE_PAGES;
                move[i].host = host + (i + way * RATE_PAGES) * SLOT_BYTES;
            }

            must(b->move(b, way, 0, move, FLIGHT_CALL, &err), &err);
            ordered[way]++;
        }
    }
}


/* Mean ms of a step; host: with moves in both ways beside all steps. */

static double
step_ms(dsa_backend_t *b, uint8_t *host)
{
    double        begin, end;
    uint32_t      i, way;
    uint64_t      ordered[DSA_MOVES];
    dsa_err_t     err;
    dsa_sample_t  sample;

    static const uint32_t  pages[] = { 3, 1, 6 };

    for (way = 0; way < DSA_MOVES; way++) {
        ordered[way] = moved(b, way, 0, 0);
    }

    begin = now();

    for (i = 0; i < TIMED; i++) {
        decode(b, pages, PROMPT - 1, &sample);

        if (host != NULL) {
            fill(b, host, ordered);
        }

        must(b->wait(b, &err), &err);
    }

    end = now();

    for (way = 0; way < DSA_MOVES; way++) {
        while (moved(b, way, 0, 1) != ordered[way]) {
            /* void */
        }
    }

    return (end - begin) * 1000 / TIMED;
}


/*
 * Pages of DeepSeek-V3.2's size, of a model that has its number of layers.
 * Single pages take at most a tenth longer than one large copy.  The input of a
 * step, which is read from host memory too, does not wait for all pages in
 * flight, which take 29 ms at 55 GB/s.  With PCIe full in both ways, a step of
 * 1,500 kernels took 1.1 ms longer on an H200.
 */

static void
test_rate(void **state)
{
    void                *device, *bulk;
    double               alone, beside, large[DSA_MOVES], pages[DSA_MOVES];
    uint8_t             *host;
    dsa_err_t            err;
    dsa_backend_t       *b;
    dsa_backend_conf_t   conf;

    static const int  out[] = { 1, 0 };
    static const int  in[] = { 0, 1 };
    static const int  both[] = { 1, 1 };

    memset(&conf, 0, sizeof(conf));
    conf.model = GOLDEN "a-fp8";
    conf.random = 1;
    conf.layers = LAYERS;
    conf.precision = DSA_SERVED;
    conf.gpus = 1;
    conf.context = CONTEXT;
    conf.kv_memory = DSA_MOVES * RATE_PAGES * PAGE_BYTES;
    conf.max_tokens = 64;
    conf.max_seqs = 2;
    conf.allowed = 1024;

    b = dsa_backend_cuda_open(&conf, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);
    assert_int_equal(b->page_bytes, PAGE_BYTES);
    assert_int_equal(b->pages, DSA_MOVES * RATE_PAGES);
    assert_int_equal(b->sampled, 0);

    host = aligned_alloc(4096, DSA_MOVES * RATE_PAGES * SLOT_BYTES);
    assert_non_null(host);
    memset(host, 1, DSA_MOVES * RATE_PAGES * SLOT_BYTES);
    must(b->pin(b, host, DSA_MOVES * RATE_PAGES * SLOT_BYTES, &err), &err);

    assert_int_equal(cudaMalloc(&device, BULK_BYTES), 0);
    assert_int_equal(cudaMallocHost(&bulk, BULK_BYTES), 0);
    memset(bulk, 1, BULK_BYTES);

    large[DSA_MOVE_OUT] = bulk_rate(device, bulk, cudaMemcpyDeviceToHost);
    large[DSA_MOVE_IN] = bulk_rate(device, bulk, cudaMemcpyHostToDevice);
    pages[DSA_MOVE_OUT] = page_rate(b, host, out);
    pages[DSA_MOVE_IN] = page_rate(b, host, in);

    print_message("GPU on NUMA node %d, GB/s of pages of %llu bytes, beside "
                  "one copy of 1 GiB: out %.1f (%.1f), in %.1f (%.1f), out "
                  "and in together %.1f\n", b->node[0],
                  (unsigned long long) PAGE_BYTES, pages[DSA_MOVE_OUT],
                  large[DSA_MOVE_OUT], pages[DSA_MOVE_IN],
                  large[DSA_MOVE_IN], page_rate(b, host, both));

    make_prompt(71);
    alone = step_ms(b, NULL);
    beside = step_ms(b, host);

    print_message("a step takes %.3f ms, with pages in both ways beside it "
                  "%.3f ms\n", alone, beside);

    assert_true(beside <= alone + DELAY_MS);
    assert_true(pages[DSA_MOVE_OUT] >= 0.9 * large[DSA_MOVE_OUT]);
    assert_true(pages[DSA_MOVE_IN] >= 0.9 * large[DSA_MOVE_IN]);

    assert_int_equal(cudaFree(device), 0);
    assert_int_equal(cudaFreeHost(bulk), 0);
    b->close(b);
    free(host);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_after_copy),
        cmocka_unit_test(test_beside),
        cmocka_unit_test(test_overwrite),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_rate)
    };

    /*
     * If ranks share a GPU, a kernel that spins must not hold back the streams
     * of the other ranks: by default more than 8 streams share queues.
     */

    if (setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1) == -1) {
        return 1;
    }

    dsa_cuda_load_all();

    return cmocka_run_group_tests(tests, both_make, both_remove);
}
