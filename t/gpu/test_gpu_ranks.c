
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "engine/cuda/group.h"
#include "kernels/index/indexer.h"
#include "kernels/moe/moe.h"
#include "kernels/sample/random.h"
#include "t/gpu/gpu.h"


/*
 * Several ranks of one process on one GPU: what runs in one stream has the
 * same bits whether or not the other one is busy, and no rank writes into
 * another one's counters.
 */

#define STREAMS     2
#define ROUNDS      20

/*
 * A decode launch has 4 blocks on each of 132 multiprocessors, and draws
 * tickets from 8 pages a block on: 8192 pages are 15 a block.
 */
#define INDEX_ROWS  32
#define INDEX_KEYS  16384
#define INDEX_PAGES (INDEX_KEYS / 64)
#define INDEX_HEADS 64
#define PAGE        (64 * (DSA_CUDA_RECORD + DSA_CUDA_INDEX + 4))

/* 256 tiles for 66 clusters, each expert's rows not a multiple of a tile. */
#define EXPERTS     16
#define PAIRS       300             /* of an expert */
#define PLACES      (EXPERTS * 304)
#define COLS        512
#define FEATURES    2048

#define MODEL       "t/data/golden/a-fp8"
#define TOKENS      96              /* prompt of a rank's sequence */
#define ANSWER      8               /* tokens after it, one at a time */
#define CONTEXT     512


/* One stream's operands and results. */

typedef struct {
    cudaStream_t        stream;
    dsa_cuda_state_t    state;

    dsa_cuda_cache_t    cache;
    int32_t            *pages;          /* [INDEX_ROWS, INDEX_PAGES] */
    int32_t            *keys;           /* [INDEX_ROWS] */
    dsa_e4m3_t         *q;
    float              *q_weight;
    float              *score[2];       /* [INDEX_ROWS, INDEX_KEYS] */

    dsa_moe_plan_t      plan;
    dsa_fp8_rows_t      x;
    dsa_fp8_weight_t    w;
    dsa_bf16_t         *y[2];           /* [PLACES, FEATURES] */
} job_t;


#define SCORE_BYTES  ((size_t) INDEX_ROWS * INDEX_KEYS * sizeof(float))
#define Y_BYTES      ((size_t) PLACES * FEATURES * sizeof(dsa_bf16_t))


static void *
get(size_t size)
{
    void  *p;

    p = malloc(size);
    assert_non_null(p);

    return p;
}


static void
open_index(job_t *v, uint64_t seed)
{
    size_t    n;
    int32_t  *pages, keys[INDEX_ROWS];
    uint32_t  i;

    v->cache.base = gpu_alloc((size_t) INDEX_PAGES * PAGE);
    v->cache.page = PAGE;
    v->cache.keys = 64 * DSA_CUDA_RECORD;
    v->cache.pages = INDEX_PAGES;
    v->cache.bf16 = 0;
    gpu_ok(dsa_cuda_random_cache(&v->cache, 1, seed, NULL));

    n = (size_t) INDEX_ROWS * INDEX_PAGES;
    pages = get(n * sizeof(int32_t));

    for (i = 0; i < n; i++) {
        pages[i] = (int32_t) ((i * 7 + i / INDEX_PAGES) % INDEX_PAGES);
    }

    for (i = 0; i < INDEX_ROWS; i++) {
        keys[i] = INDEX_KEYS;
    }

    v->pages = gpu_upload(pages, n * sizeof(int32_t));
    v->keys = gpu_upload(keys, sizeof(keys));
    free(pages);

    n = INDEX_ROWS * INDEX_HEADS;
    v->q = gpu_alloc(n * DSA_CUDA_INDEX);
    v->q_weight = gpu_alloc(n * sizeof(float));
    gpu_ok(dsa_cuda_random_e4m3(v->q, n * DSA_CUDA_INDEX, seed + 1, NULL));
    gpu_ok(dsa_cuda_random_f32(v->q_weight, n, 0, 0.01f, seed + 2, NULL));

    v->score[0] = gpu_alloc(SCORE_BYTES);
    v->score[1] = gpu_alloc(SCORE_BYTES);
}


static void
open_moe(job_t *v, uint64_t seed)
{
    size_t    n;
    int32_t   offset[EXPERTS + 1], count[EXPERTS];
    uint32_t  i;

    for (i = 0; i < EXPERTS; i++) {
        offset[i] = (int32_t) i * (PLACES / EXPERTS);
        count[i] = PAIRS;
    }

    offset[EXPERTS] = PLACES;

    memset(&v->plan, 0, sizeof(v->plan));
    v->plan.offset = gpu_upload(offset, sizeof(offset));
    v->plan.count = gpu_upload(count, sizeof(count));
    v->plan.places = PLACES;
    v->plan.align = DSA_MOE_ALIGN;

    n = (size_t) EXPERTS * FEATURES * COLS;
    v->w.rows = FEATURES;
    v->w.cols = COLS;
    v->w.q = gpu_alloc(n);
    v->w.scale = gpu_alloc(n / 16384 * sizeof(float));
    gpu_ok(dsa_cuda_random_e4m3((dsa_e4m3_t *) v->w.q, n, seed + 3, NULL));
    gpu_ok(dsa_cuda_random_f32((float *) v->w.scale, n / 16384, 2e-4f, 1e-4f,
                               seed + 4, NULL));

    n = (size_t) PLACES * COLS;
    v->x.ld = PLACES;
    v->x.q = gpu_alloc(n);
    v->x.scale = gpu_alloc(n / 128 * sizeof(float));
    gpu_ok(dsa_cuda_random_e4m3(v->x.q, n, seed + 5, NULL));
    gpu_ok(dsa_cuda_random_f32(v->x.scale, n / 128, 0.02f, 0.01f, seed + 6,
                               NULL));

    v->y[0] = gpu_alloc(Y_BYTES);
    v->y[1] = gpu_alloc(Y_BYTES);
}


static void
poison(job_t *v)
{
    uint32_t  i;

    for (i = 0; i < 2; i++) {
        gpu_poison(v->score[i], SCORE_BYTES);
        gpu_poison(v->y[i], Y_BYTES);
    }
}


/* Both ops that draw from counters. */

static void
launch(job_t *v, uint32_t i)
{
    gpu_ok(dsa_cuda_index_score_decode(&v->state, v->score[i], INDEX_KEYS,
                                       v->q, v->q_weight, &v->cache, v->pages,
                                       INDEX_PAGES, v->keys, INDEX_ROWS,
                                       INDEX_KEYS, INDEX_HEADS, v->stream));
    gpu_ok(dsa_cuda_moe_gemm(&v->state, v->y[i], &v->x, &v->w, &v->plan,
                             EXPERTS, EXPERTS * PAIRS, v->stream));
}


/* The padding between experts is not written, and stays poison. */

static void
same(job_t *v, const uint8_t *score, const uint8_t *y)
{
    void      *p;
    uint32_t   i;

    p = get(Y_BYTES > SCORE_BYTES ? Y_BYTES : SCORE_BYTES);

    for (i = 0; i < 2; i++) {
        gpu_download(p, v->score[i], SCORE_BYTES);
        assert_memory_equal(p, score, SCORE_BYTES);
        gpu_download(p, v->y[i], Y_BYTES);
        assert_memory_equal(p, y, Y_BYTES);
    }

    free(p);
}


static void
test_streams(void **state)
{
    job_t                job[STREAMS];
    uint8_t              *score[STREAMS], *y[STREAMS];
    uint32_t              i, j, round;
    dsa_cuda_counters_t   counters;

    static const dsa_cuda_counters_t  zero;

    for (i = 0; i < STREAMS; i++) {
        gpu_ok(cudaStreamCreateWithFlags(&job[i].stream,
                                         cudaStreamNonBlocking));
        gpu_init(&job[i].state);
        open_index(&job[i], 100 * i);
        open_moe(&job[i], 100 * i);
        poison(&job[i]);
        gpu_sync();

        /* alone */

        launch(&job[i], 0);
        score[i] = get(SCORE_BYTES);
        y[i] = get(Y_BYTES);
        gpu_download(score[i], job[i].score[0], SCORE_BYTES);
        gpu_download(y[i], job[i].y[0], Y_BYTES);
    }

    assert_memory_not_equal(score[0], score[1], SCORE_BYTES);
    assert_memory_not_equal(y[0], y[1], Y_BYTES);

    for (round = 0; round < ROUNDS; round++) {
        for (i = 0; i < STREAMS; i++) {
            poison(&job[i]);
        }

        gpu_sync();

        for (j = 0; j < 2; j++) {
            for (i = 0; i < STREAMS; i++) {
                launch(&job[i], j);
            }
        }

        for (i = 0; i < STREAMS; i++) {
            same(&job[i], score[i], y[i]);
            gpu_download(&counters, job[i].state.counters, sizeof(counters));
            assert_memory_equal(&counters, &zero, sizeof(counters));
        }
    }

    for (i = 0; i < STREAMS; i++) {
        gpu_ok(cudaStreamDestroy(job[i].stream));
        free(score[i]);
        free(y[i]);
    }
}


/* A group of one rank with a sequence of its own, in a thread of its own. */

typedef struct {
    dsa_cuda_group_t   *group;
    uint32_t            token[TOKENS + ANSWER];
    uint32_t            pages[CONTEXT / DSA_PAGE_TOKENS];
    float              *logits;         /* [TOKENS + ANSWER, vocab] */
    int                 rc;
    dsa_err_t           err;
} member_t;


/* The prompt by MHA prefill, then token by token by absorbed MQA. */

static void *
compute(void *data)
{
    uint32_t     i, vocab;
    member_t    *m = data;
    dsa_rows_t   seq;

    vocab = m->group->rank[0]->config.vocab_size;

    memset(&seq, 0, sizeof(seq));
    seq.tokens = m->token;
    seq.n = TOKENS;
    seq.pages = m->pages;
    seq.n_logits = TOKENS;

    m->rc = dsa_cuda_group_forward(m->group, &seq, TOKENS, m->logits, &m->err);

    for (i = 0; i < ANSWER && m->rc == DSA_OK; i++) {
        seq.tokens = m->token + TOKENS + i;
        seq.start = TOKENS + i;
        seq.n = 1;
        seq.n_logits = 1;

        m->rc = dsa_cuda_group_forward(m->group, &seq, TOKENS, m->logits
                                       + (size_t) (TOKENS + i) * vocab,
                                       &m->err);
    }

    return NULL;
}


static void
computed(const member_t *m)
{
    if (m->rc != DSA_OK) {
        fail_msg("%s", m->err.text);
    }
}


static void
open_member(member_t *m, const dsa_weights_t *weights, uint32_t seed)
{
    uint32_t         i;
    dsa_err_t        err;
    dsa_cuda_conf_t  conf;

    memset(&conf, 0, sizeof(conf));

    conf.weights = weights;
    conf.config = weights->config;
    conf.gpus = 1;
    conf.context = CONTEXT;
    conf.kv_memory = 32 << 20;
    conf.max_tokens = TOKENS;
    conf.max_seqs = TOKENS;
    conf.allowed = weights->config.vocab_size;

    m->group = dsa_cuda_group_open(&conf, &err);

    if (m->group == NULL) {
        fail_msg("%s", err.text);
    }

    for (i = 0; i < TOKENS + ANSWER; i++) {
        m->token[i] = (i * i * 31 + i * 7 + seed)
                      % weights->config.vocab_size;
    }

    for (i = 0; i < CONTEXT / DSA_PAGE_TOKENS; i++) {
        m->pages[i] = (i + seed) % (CONTEXT / DSA_PAGE_TOKENS);
    }

    m->logits = get((TOKENS + ANSWER) * (size_t) weights->config.vocab_size
                    * sizeof(float));
}


static void
test_ranks(void **state)
{
    float          *alone[STREAMS];
    size_t          size;
    uint32_t        i, round;
    dsa_err_t       err;
    member_t        member[STREAMS];
    pthread_t       thread[STREAMS];
    dsa_weights_t  *weights;

    weights = dsa_weights_open(MODEL, &err);

    if (weights == NULL) {
        fail_msg("%s", err.text);
    }

    size = (TOKENS + ANSWER) * (size_t) weights->config.vocab_size
           * sizeof(float);

    for (i = 0; i < STREAMS; i++) {
        open_member(&member[i], weights, 3 + i);
        (void) compute(&member[i]);
        computed(&member[i]);

        alone[i] = get(size);
        memcpy(alone[i], member[i].logits, size);
    }

    assert_memory_not_equal(alone[0], alone[1], size);

    for (round = 0; round < ROUNDS; round++) {
        for (i = 0; i < STREAMS; i++) {
            memset(member[i].logits, 0xff, size);
            assert_int_equal(pthread_create(&thread[i], NULL, compute,
                                            &member[i]), 0);
        }

        for (i = 0; i < STREAMS; i++) {
            assert_int_equal(pthread_join(thread[i], NULL), 0);
            computed(&member[i]);
            assert_memory_equal(member[i].logits, alone[i], size);
        }
    }

    for (i = 0; i < STREAMS; i++) {
        dsa_cuda_group_close(member[i].group);
        free(member[i].logits);
        free(alone[i]);
    }

    dsa_weights_close(weights);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_streams, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test(test_ranks)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
