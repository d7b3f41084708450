
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Threads that share a grammar get the masks that one thread gets alone, and
 * the thread for masks makes those that take long.
 */


#include <pthread.h>
#include <stdatomic.h>

#include "engine/service/mask_thread.h"
#include "grammar.h"


#define TOKENS      20000
#define SIZE        (TOKENS + 1)
#define MASK_WORDS  ((SIZE + 31) / 32)
#define THREADS     4
#define ANSWERS     6
#define STEPS       40


typedef struct {
    dsa_grammar_t       *grammar;
    uint64_t             sums[ANSWERS][STEPS];
} answers_t;


static dsa_vocabulary_t  *v;

static const char  spec[] =
    "{\"type\":\"json_schema\",\"schema\":{\"type\":\"array\",\"items\":{"
    "\"anyOf\":[{\"type\":\"string\",\"pattern\":\"^[a-z]{2}[^e]*$\"},"
    "{\"type\":\"string\",\"maxLength\":30},{\"type\":\"object\"}]}}}";


static uint32_t
dice(uint64_t *seed, uint32_t n)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;

    return (uint32_t) ((*seed * 0x2545f4914f6cdd1d) >> 32) % n;
}


static int
make_vocabulary(void **state)
{
    char      word[10];
    uint32_t  i, k, n, end;
    uint64_t  seed;

    seed = 20260118;
    v = dsa_vocabulary_create(SIZE);
    assert_non_null(v);

    for (i = 0; i < TOKENS; i++) {
        n = i < 256 ? 1 : 2 + dice(&seed, 9);

        for (k = 0; k < n; k++) {
            word[k] = i < 256 ? (char) i
                              : "aetonirs du,\"{}[]:"[dice(&seed, 19)];
        }

        assert_int_equal(dsa_vocabulary_add(v, i, dsa_str(word, n)), 0);
    }

    end = TOKENS;

    assert_int_equal(dsa_vocabulary_add_control(v, end, dsa_strz("<end>")), 0);
    assert_int_equal(dsa_vocabulary_end(v, &end, 1), 0);
    assert_int_equal(dsa_vocabulary_seal(v), 0);

    return 0;
}


static int
free_vocabulary(void **state)
{
    dsa_vocabulary_free(v);

    return 0;
}


/* A matcher inside a string, whose mask takes long. */

static dsa_matcher_t *
inside_string(dsa_grammar_t *g)
{
    dsa_matcher_t  *m;

    m = dsa_matcher_create(g, v, dsa_str(NULL, 0));
    assert_non_null(m);
    assert_int_equal(dsa_matcher_accept(m, '['), 0);
    assert_int_equal(dsa_matcher_accept(m, '"'), 0);

    return m;
}


/* Answers that are drawn from their masks, and a sum of each mask. */

static void *
run_answers(void *data)
{
    uint32_t        i, k, step, id, n, mask[MASK_WORDS];
    uint64_t        seed, sum;
    answers_t      *a;
    dsa_matcher_t  *m;

    a = data;

    for (i = 0; i < ANSWERS; i++) {
        seed = i + 1;
        m = dsa_matcher_create(a->grammar, v, dsa_str(NULL, 0));

        for (step = 0; m != NULL && step < STEPS; step++) {
            if (i % 2 == 0) {
                (void) dsa_matcher_ready(m);
            }

            memset(mask, 0xff, sizeof(mask));
            dsa_matcher_mask(m, mask, MASK_WORDS);

            sum = 0;
            n = 0;

            for (k = 0; k < MASK_WORDS; k++) {
                sum = (sum ^ mask[k]) * 0x100000001b3;
                n += (uint32_t) __builtin_popcount(mask[k]);
            }

            a->sums[i][step] = sum;
            n = dice(&seed, n);

            for (id = 0; (mask[id / 32] >> id % 32 & 1) == 0 || n-- != 0;
                 id++)
            {
                /* void */
            }

            if (id == TOKENS || dsa_matcher_accept(m, id) != DSA_OK) {
                break;
            }
        }

        dsa_matcher_free(m);
    }

    return NULL;
}


static void
test_shared(void **state)
{
    uint32_t   i;
    answers_t  alone, a[THREADS];
    pthread_t  thread[THREADS];

    memset(&alone, 0, sizeof(alone));
    memset(a, 0, sizeof(a));

    alone.grammar = grammar_of(spec);
    (void) run_answers(&alone);

    a[0].grammar = grammar_of(spec);

    for (i = 0; i < THREADS; i++) {
        a[i].grammar = a[0].grammar;
        assert_int_equal(pthread_create(&thread[i], NULL, run_answers, &a[i]),
                         0);
    }

    for (i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_memory_equal(a[i].sums, alone.sums, sizeof(alone.sums));
    }

    dsa_grammar_free(a[0].grammar);
    dsa_grammar_free(alone.grammar);
}


typedef struct {
    pthread_mutex_t     mutex;
    pthread_cond_t      cond;
    uint32_t            n;
} event_t;


static void
on_event(void *data)
{
    event_t  *e = data;

    (void) pthread_mutex_lock(&e->mutex);
    e->n++;
    (void) pthread_cond_signal(&e->cond);
    (void) pthread_mutex_unlock(&e->mutex);
}


static void
wait_for(event_t *e, uint32_t n)
{
    (void) pthread_mutex_lock(&e->mutex);

    while (e->n < n) {
        (void) pthread_cond_wait(&e->cond, &e->mutex);
    }

    (void) pthread_mutex_unlock(&e->mutex);
}


static void
test_jobs(void **state)
{
    event_t            woken, freed;
    uint32_t           i, dropped, want[MASK_WORDS], mask[MASK_WORDS];
    dsa_err_t          err;
    dsa_grammar_t     *g[8], *same;
    dsa_matcher_t     *m[8], *other;
    dsa_mask_job_t     job[8];
    dsa_mask_thread_t  t;

    memset(&woken, 0, sizeof(woken));
    memset(&freed, 0, sizeof(freed));
    (void) pthread_mutex_init(&woken.mutex, NULL);
    (void) pthread_cond_init(&woken.cond, NULL);
    (void) pthread_mutex_init(&freed.mutex, NULL);
    (void) pthread_cond_init(&freed.cond, NULL);

    memset(job, 0, sizeof(job));
    dsa_mask_thread_init(&t);

    for (i = 0; i < 8; i++) {
        g[i] = grammar_of(spec);
        m[i] = inside_string(g[i]);
        job[i].matcher = m[i];
        job[i].free = on_event;
        job[i].owner = &freed;
        assert_int_equal(dsa_matcher_ready(m[i]), 0);
        assert_int_equal(dsa_mask_thread_done(&t, &job[i]), 1);
    }

    /* before the thread runs, jobs wait in their order; one is taken back */

    for (i = 0; i < 4; i++) {
        dsa_mask_thread_push(&t, &job[i]);
        assert_int_equal(dsa_mask_thread_done(&t, &job[i]), 0);
    }

    dsa_mask_thread_cancel(&t, &job[3]);
    dsa_mask_thread_cancel(&t, &job[1]);
    assert_int_equal(dsa_mask_thread_done(&t, &job[1]), 1);
    dsa_mask_thread_push(&t, &job[4]);

    assert_int_equal(dsa_mask_thread_start(&t, on_event, &woken, &err), 0);
    wait_for(&woken, 3);

    for (i = 0; i < 8; i++) {
        assert_int_equal(dsa_mask_thread_done(&t, &job[i]), 1);
        assert_int_equal(dsa_matcher_ready(m[i]), i % 2 == 0 && i < 6);
    }

    same = grammar_of(spec);
    other = inside_string(same);
    memset(want, 0xff, sizeof(want));
    dsa_matcher_mask(other, want, MASK_WORDS);
    memset(mask, 0xff, sizeof(mask));
    dsa_matcher_mask(m[2], mask, MASK_WORDS);
    assert_memory_equal(mask, want, sizeof(want));
    dsa_matcher_free(other);
    dsa_grammar_free(same);

    /* wherever the thread is, each job is dropped once */

    dropped = 0;

    for (i = 5; i < 8; i++) {
        dsa_mask_thread_push(&t, &job[i]);
        dropped += (uint32_t) dsa_mask_thread_drop(&t, &job[i]);
    }

    wait_for(&freed, 3 - dropped);

    /* a job that is waited for is done, or will not be */

    dsa_mask_thread_push(&t, &job[1]);
    dsa_mask_thread_cancel(&t, &job[1]);
    assert_int_equal(dsa_mask_thread_done(&t, &job[1]), 1);

    dsa_mask_thread_stop(&t);
    assert_int_equal(freed.n, 3 - dropped);
    dsa_mask_thread_destroy(&t);

    for (i = 0; i < 8; i++) {
        dsa_matcher_free(m[i]);
        dsa_grammar_free(g[i]);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_jobs)
    };

    return cmocka_run_group_tests(tests, make_vocabulary, free_vocabulary);
}
