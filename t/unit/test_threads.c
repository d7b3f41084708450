
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What the threads of a replica are for: a long step and a long prompt delay
 * nothing else, and requests end cleanly wherever they are.
 */


#include "t/unit/engine.h"


#define STREAMS     32
#define RUNS        5
#define TOKENS      60          /* of each stream in a measurement */
#define RATE        50          /* steps in a second */
#define MOST        (STREAMS * 4000)

#define LARGE       (7 << 20)   /* bytes of a prompt over the context */
#define SMALL       (2 << 20)   /* of one that fits a context of CONTEXT */
#define CONTEXT     4194304


/* Times between the tokens of a stream, in microseconds. */

typedef struct {
    uint64_t    last[STREAMS];
    uint32_t    n;
    uint32_t    gap[MOST];
} gaps_t;


static uint64_t
now_us(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}


static uint64_t
step_started(link_client_t *c)
{
    return atomic_load(&c->link.control->step_started_ms);
}


/* A step of 1 s: the heartbeat goes on, and what needs no step is done. */

static void
test_long_step(void **state)
{
    reply_t            reply;
    engine_t           e;
    uint32_t           beats;
    uint64_t           end, step, alive, last, most;
    link_submit_t      s;
    link_client_t      c, d;

    engine_start(&e, "step.sock", "rate=1;");
    connect_to(&c, e.sock);
    connect_to(&d, e.sock);

    /* the first step of the backend is not paced */

    send_text(&c, dsa_link_id(1, 0), "abc", 4);
    end = link_client_now() + DEADLINE;
    step = 0;

    do {
        assert_true(link_client_now() < end);
        nap();
        step = step_started(&c);
    } while (step == 0 || atomic_load(&c.link.control->completion_tokens) != 1);

    memset(&reply, 0, sizeof(reply));
    link_submit_init(&s, 0);
    link_submit_text(&s, "hello");
    assert_int_equal(link_client_count(&d, dsa_link_id(1, 0), &s), 0);
    assert_int_equal(collect(&d, &reply, 1), 0);
    assert_int_equal(reply.counted.prompt_tokens, 5);
    assert_int_equal(step_started(&c), step);

    /* a cancel is not necessary to reject a prompt */

    memset(&reply, 0, sizeof(reply));
    send_text(&d, dsa_link_id(2, 0), "hello", UINT32_MAX);
    assert_int_equal(collect(&d, &reply, 1), 0);
    assert_int_equal(reply.error, DSA_LINK_E_CONTEXT);
    assert_int_equal(step_started(&c), step);

    last = atomic_load(&c.link.control->alive_ms);
    most = 0;

    for (beats = 0; step_started(&c) == step; /* void */) {
        assert_true(link_client_now() < end);
        alive = atomic_load(&c.link.control->alive_ms);

        if (alive != last) {
            most = alive - last > most ? alive - last : most;
            last = alive;
            beats++;
        }

        nap();
    }

    assert_true(beats >= 10);
    assert_true(most < 500);

    link_client_close(&c);
    link_client_close(&d);
    engine_stop(&e);
}


/* A token at a time of each stream; returns when none is left in the ring. */

static void
gaps_read(gaps_t *g, link_client_t *c, uint32_t *tokens, int ms)
{
    void               *payload;
    uint32_t            slot;
    uint64_t            now;
    dsa_link_record_t   record;

    while (link_client_next(c, &record, &payload, ms) == 1) {
        ms = 0;
        slot = dsa_link_slot(record.id);
        assert_true(record.type == DSA_LINK_TOKENS
                    || record.type == DSA_LINK_ACCEPTED);

        if (record.type == DSA_LINK_TOKENS) {
            now = now_us();

            if (g->last[slot] != 0 && g->n < MOST) {
                g->gap[g->n++] = (uint32_t) (now - g->last[slot]);
            }

            g->last[slot] = now;
            *tokens += ((dsa_link_tokens_t *) payload)->n_tokens;
        }

        free(payload);
    }
}


static int
gap_order(const void *a, const void *b)
{
    uint32_t  x, y;

    x = *(const uint32_t *) a;
    y = *(const uint32_t *) b;

    return x < y ? -1 : x > y;
}


/* Sends a prompt of len bytes that no cache has. */

static void
send_long(link_client_t *c, uint64_t id, size_t len, uint32_t run)
{
    char           *text;
    link_submit_t   s;

    size_t          i;

    text = malloc(len + 32);
    assert_non_null(text);

    for (i = 0; i < len; /* void */) {
        i += (size_t) sprintf(text + i, "word %u of %zu ", run, i);
    }

    text[len] = '\0';

    link_submit_init(&s, 1);
    s.head.tenant[0] = (uint8_t) (2 + dsa_link_slot(id));
    link_submit_text(&s, text);
    assert_int_equal(link_client_submit(c, id, &s), 0);
    free(text);
}


/* The events of the two long prompts that have arrived. */

static void
long_events(link_client_t *c, uint32_t *accepted, uint32_t *rejected)
{
    void               *payload;
    dsa_link_record_t   record;

    while (link_client_next(c, &record, &payload, 0) == 1) {
        if (record.type == DSA_LINK_ERROR) {
            assert_int_equal(((dsa_link_failure_t *) payload)->code,
                             DSA_LINK_E_CONTEXT);
            (*rejected)++;

        } else if (record.type == DSA_LINK_ACCEPTED) {
            assert_int_equal(dsa_link_slot(record.id), 1);
            (*accepted)++;
        }

        free(payload);
    }
}


/*
 * Median, mean and 99th percentile of the gaps of TOKENS tokens of each
 * stream.  load: a worker whose long prompts are answered meanwhile, or NULL.
 */

static void
measure(link_client_t *c, link_client_t *load, uint32_t run, double out[3])
{
    double          sum;
    uint32_t        i, tokens, accepted, rejected;
    uint64_t        end;

    static gaps_t   g;

    memset(&g, 0, sizeof(g));
    tokens = 0;
    accepted = 0;
    rejected = 0;
    end = link_client_now() + DEADLINE;

    if (load != NULL) {
        send_long(load, dsa_link_id(1 + run, 0), LARGE, run);
        send_long(load, dsa_link_id(1 + run, 1), SMALL, run);
    }

    /* what has arrived while this program did something else has no gaps */

    gaps_read(&g, c, &tokens, 0);
    g.n = 0;
    tokens = 0;

    while (tokens < STREAMS * TOKENS
           || (load != NULL && accepted + rejected < 2))
    {
        assert_true(link_client_now() < end);
        gaps_read(&g, c, &tokens, 1000);

        if (load != NULL) {
            long_events(load, &accepted, &rejected);
        }
    }

    if (load != NULL) {
        assert_int_equal(accepted, load->hello.context_length == CONTEXT);
        dsa_link_cancel(&load->link, dsa_link_id(1 + run, 1));
    }

    qsort(g.gap, g.n, sizeof(uint32_t), gap_order);

    for (sum = 0, i = 0; i < g.n; i++) {
        sum += g.gap[i];
    }

    out[0] = g.gap[g.n / 2];
    out[1] = sum / g.n;
    out[2] = g.gap[g.n - 1 - g.n / 100];
}


/*
 * Two prompts of megabytes arrive, again and again, while streams decode: one
 * is over the context, the other one fits if CONTEXT does.  Other processes
 * of the machine can only add to the times, so the lowest of all runs are
 * compared; a loop that tokenizes between two steps adds its time in every run.
 */

static void
check_long_prompts(link_client_t *c, link_client_t *load)
{
    double               alone[3], beside[3], low[2][3];
    uint32_t             i, j;
    link_submit_t        s;

    /* median, mean and 99th percentile */

    static const double  most[3] = { 1.1, 1.1, 1.5 };

    for (i = 0; i < STREAMS; i++) {
        link_submit_init(&s, 100000);
        s.head.tenant[0] = 1;
        s.head.flags = DSA_LINK_IGNORE_EOS;
        link_submit_text(&s, "a stream");
        assert_int_equal(link_client_submit(c, dsa_link_id(1, i), &s), 0);
    }

    measure(c, NULL, 0, low[0]);

    for (i = 0; i < RUNS; i++) {
        measure(c, NULL, i, alone);
        measure(c, load, i, beside);

        for (j = 0; j < 3; j++) {
            low[0][j] = alone[j] < low[0][j] ? alone[j] : low[0][j];
            low[1][j] = i == 0 || beside[j] < low[1][j] ? beside[j]
                                                        : low[1][j];
        }

        print_message("alone and beside long prompts: median %.0f, %.0f us, "
                      "mean %.0f, %.0f us, 99th percentile %.0f, %.0f us\n",
                      alone[0], beside[0], alone[1], beside[1], alone[2],
                      beside[2]);
    }

    /* a sanitizer makes all threads slower than the pace of the steps */

    for (j = 0; getenv("DSA_SANITIZED") == NULL && j < 3; j++) {
        assert_true(low[1][j] < most[j] * low[0][j]);
    }
}


static void
test_long_prompts(void **state)
{
    char            conf[128];
    engine_t        e;
    link_client_t   c, d;

    (void) snprintf(conf, sizeof(conf), "backend null rate=%d; "
                    "submit_ring 32m;", RATE);
    engine_start(&e, "null.sock", conf);
    connect_to(&c, e.sock);
    connect_to(&d, e.sock);
    assert_int_equal(c.hello.context_length, CONTEXT);

    check_long_prompts(&c, &d);

    link_client_close(&c);
    link_client_close(&d);
    engine_stop(&e);
}


static void
wait_empty(link_client_t *c)
{
    uint64_t             end;
    dsa_link_control_t  *control;

    end = link_client_now() + DEADLINE;
    control = c->link.control;

    while (atomic_load(&control->running) != 0
           || atomic_load(&control->waiting) != 0
           || atomic_load(&control->pages_used) != 0)
    {
        assert_true(link_client_now() < end);
        nap();
    }
}


/* Requests of all kinds; some end by themselves, some not for a long time. */

static void
send_mixed(link_client_t *c, uint32_t slot, uint32_t n)
{
    uint32_t        ids[3] = { SMALL_MODEL_BYTES + 'm', SMALL_MODEL_EOS,
                               SMALL_MODEL_BYTES + 'i' };
    link_submit_t   s;

    link_submit_init(&s, n % 3 == 0 ? 3000 : 1 + n % 40);
    s.head.seed = n;
    s.head.tenant[0] = (uint8_t) (n % 5);
    s.head.flags = n % 4 == 0 ? DSA_LINK_LOGPROBS : 0;
    s.head.flags |= n % 7 == 0 ? DSA_LINK_PRIVATE : 0;
    s.head.top_logprobs = n % 8;
    s.head.deadline_ms = n % 11 == 0 ? link_client_now() + n % 30 : 0;

    link_submit_control(&s, "<bos>");
    link_submit_text(&s, "a mixed lot of requests, some of them with a stop "
                     "string");

    if (n % 13 == 5) {
        assert_int_equal(link_client_count(c, dsa_link_id(1, slot), &s), 0);
        return;
    }

    if (n % 3 == 1) {
        link_submit_stop(&s, n % 2 ? "lot" : "string");
    }

    if (n % 17 == 0) {
        link_submit_resume(&s, ids, n % 3 == 0 ? 3 : n % 2);
    }

    if (n % 19 == 0) {
        link_submit_control(&s, "<nobody>");
    }

    assert_int_equal(link_client_submit(c, dsa_link_id(1, slot), &s), 0);
}


/*
 * Workers come, send requests, cancel some, read what has arrived, and go with
 * most of them in the pool, in the queue, in a step or on the way back.
 */

static void
check_churn(const char *conf, uint32_t rounds, uint32_t each)
{
    void               *payload;
    reply_t             reply;
    engine_t            e;
    uint32_t            i, round, ended;
    link_client_t       c, d;
    dsa_link_record_t   record;

    engine_start(&e, "churn.sock", conf);
    connect_to(&d, e.sock);

    for (round = 0; round < rounds; round++) {
        connect_to(&c, e.sock);

        if (round % 4 == 0) {
            send_long(&c, dsa_link_id(1, each), 300000, round);
        }

        for (i = 0; i < each; i++) {
            send_mixed(&c, i, round * 31 + i);
        }

        ended = 0;

        while (ended < round % 3 * each / 4) {
            assert_int_equal(link_client_next(&c, &record, &payload,
                                              DEADLINE), 1);
            ended += record.type != DSA_LINK_ACCEPTED
                     && record.type != DSA_LINK_TOKENS;
            free(payload);

            if (ended % 5 == 0) {
                i = (round + ended) % each;
                dsa_link_cancel(&c.link, dsa_link_id(1, i));
            }
        }

        link_client_close(&c);
    }

    wait_empty(&d);

    memset(&reply, 0, sizeof(reply));
    send_text(&d, dsa_link_id(1, 0), "abc", 5);
    assert_int_equal(collect(&d, &reply, 1), 0);
    assert_int_equal(reply.error, 0);

    link_client_close(&d);
    engine_stop(&e);
}


static void
test_churn_null(void **state)
{
    check_churn("rate=0; max_running 20; max_waiting 10; event_ring 64k;",
                24, 60);
    check_churn("rate=200; max_running 20; max_waiting 10;", 12, 60);
}


static void
test_churn_cpu(void **state)
{
    check_churn("backend cpu; kv_memory 16m; max_running 8; token_budget 64; "
                "max_waiting 40;", 6, 30);
}


/* A model whose context is larger, for the null backend. */

static int
setup_context(void **state)
{
    char   path[512], line[512];
    FILE  *in, *out;

    if (setup(state) != 0) {
        return -1;
    }

    (void) snprintf(path, sizeof(path), "%s/config.json", model_dir);
    in = fopen(path, "r");

    if (in == NULL || unlink(path) == -1) {
        return -1;
    }

    out = fopen(path, "w");

    if (out == NULL) {
        return -1;
    }

    while (fgets(line, sizeof(line), in) != NULL) {
        if (strstr(line, "\"max_position_embeddings\"") != NULL) {
            (void) fprintf(out, "  \"max_position_embeddings\": %d,\n",
                           CONTEXT);

        } else {
            (void) fputs(line, out);
        }
    }

    (void) fclose(in);

    return fclose(out);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_long_step),
        cmocka_unit_test(test_long_prompts),
        cmocka_unit_test(test_churn_null),
        cmocka_unit_test(test_churn_cpu)
    };

    return cmocka_run_group_tests(tests, setup_context, teardown);
}
