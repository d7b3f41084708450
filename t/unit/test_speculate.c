
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/cpu/model.h"
#include "kernels/attention/cache.h"


/*
 * How many drafts of the draft layer are accepted, and that the text is the one
 * without drafts: of a prompt that is computed as a whole, in chunks, behind
 * pages that are found or loaded, on several ranks, after a preemption, and
 * where another replica continues.  The bits of the draft layer depend on the
 * tokens before only, so the numbers are the same.
 */

#define GOLDEN  "t/data/golden/"
#define PROMPT  260
#define ANSWER  65          /* one token, and 64 with drafts */
#define DRAFTS  3
#define BUDGET  512
#define PAGES   40
#define FEW_PAGES   6
#define VOCAB   256
#define SEEDS   24          /* texts, for a share of accepted drafts */

#include "t/unit/ahead.h"
#include "t/unit/collect.h"


typedef struct {
    answer_t            answer;
    uint32_t            prompt[PROMPT + 2 * ANSWER];
    uint32_t            n_prompt;
    uint32_t            n_resume;       /* of prompt, tokens of the answer */
    uint32_t            max_tokens;
    float               temperature;
    uint64_t            seed;
    uint32_t            modulus;        /* token i of the answer has id %
                                           modulus == i % modulus; 0: any id */
    uint32_t            drafts;         /* that were verified */
    uint32_t            accepted;
    uint32_t            drafts_at[ANSWER + 1];      /* before the token that a
                                                       step begins with; else
                                                       UINT32_MAX */
    uint32_t            accepted_at[ANSWER + 1];
} client_t;


typedef struct {
    dsa_backend_t      *backend;
    dsa_host_t          host;
    dsa_sched_t        *sched;
} engine_t;


static const char   sparse[] = GOLDEN "drafts";
static const char  *model = sparse;
static uint32_t     depth;              /* of the backends: 2 as on a GPU */

/* of the backends whose pages lose the hidden state on their way out */

static int  (*move)(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n, dsa_err_t *err);


/*
 * The threads of a backend, instead of as many as there are CPUs.  Steps are so
 * small that threads spend most of their time in waiting for each other, so
 * only several ranks have several.
 */

uint32_t __wrap_dsa_threads_cpus(void);

static uint32_t  threads;


uint32_t
__wrap_dsa_threads_cpus(void)
{
    return threads;
}


static dsa_backend_t *
backend_open(uint32_t gpus, uint32_t drafts, uint32_t pages)
{
    dsa_err_t           err;
    dsa_backend_t       *b;
    dsa_model_config_t   config;
    dsa_backend_conf_t   conf;

    if (dsa_model_config_read(&config, model, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    memset(&conf, 0, sizeof(conf));
    conf.model = model;
    conf.precision = DSA_SERVED;
    conf.kv_memory = dsa_model_kv_memory(&config, DSA_SERVED, drafts != 0,
                                         64 * pages);
    conf.gpus = gpus;
    conf.max_tokens = BUDGET;
    conf.max_seqs = 4;
    conf.allowed = config.vocab_size;
    conf.drafts = drafts;
    threads = gpus;

    b = dsa_backend_cpu_open(&conf, &err);

    if (b == NULL) {
        fail_msg("%s", err.text);
    }

    assert_int_equal(config.vocab_size, VOCAB);
    assert_int_equal(b->pages, pages);

    return depth == 2 ? ahead_open(b) : b;
}


/* A scheduler without a page in its index; host_pages: of host memory. */

static void
start(engine_t *e, dsa_backend_t *b, uint32_t budget, uint32_t host_pages)
{
    dsa_err_t         err;
    dsa_sched_conf_t  conf;

    memset(e, 0, sizeof(engine_t));
    e->backend = b;

    memset(&conf, 0, sizeof(conf));
    conf.max_running = 4;
    conf.token_budget = budget;
    conf.max_waiting = 8;
    conf.max_waiting_per_tenant = 8;
    conf.context = PROMPT + 2 * ANSWER;

    if (host_pages != 0) {
        if (dsa_host_open(&e->host, host_pages * (b->page_bytes
                                                  + DSA_HOST_ALIGN),
                          b->page_bytes, &err) != DSA_OK)
        {
            fail_msg("%s", err.text);
        }

        conf.host = &e->host;
    }

    e->sched = dsa_sched_create(b, &conf, &handler, &err);

    if (e->sched == NULL) {
        fail_msg("%s", err.text);
    }
}


static void
stop(engine_t *e)
{
    dsa_sched_destroy(e->sched);
    dsa_host_close(&e->host);
}


static int
on_mask(void *owner, const uint32_t *drafts, uint32_t n_drafts,
    uint32_t first, uint32_t *mask, uint32_t words)
{
    uint32_t         i, id;
    const client_t  *c = owner;

    for (i = first; i <= n_drafts; i++, mask += words) {
        for (id = 0; id < VOCAB; id++) {
            if (id % c->modulus
                != (c->n_resume + c->answer.n + i) % c->modulus)
            {
                mask[id / 32] &= ~(1U << id % 32);
            }
        }
    }

    return 1;
}


static dsa_seq_t *
submit(engine_t *e, client_t *c, uint8_t tenant)
{
    dsa_seq_t            *seq;
    dsa_sched_request_t   r;

    c->answer.n = 0;
    c->answer.ended = 0;

    memset(&r, 0, sizeof(r));
    r.tokens = malloc(sizeof(c->prompt));
    assert_non_null(r.tokens);
    memcpy(r.tokens, c->prompt, sizeof(c->prompt));

    r.n_tokens = c->n_prompt + c->n_resume;
    r.n_resume = c->n_resume;
    r.max_tokens = c->max_tokens;
    r.weight = 1;
    r.ignore_eos = 1;
    r.mask = c->modulus != 0 ? on_mask : NULL;
    r.sampling.temperature = c->temperature;
    r.sampling.seed = c->seed;
    r.sampling.top_p = 1;
    r.tenant[0] = tenant;
    r.owner = c;

    seq = dsa_sched_add(e->sched, &r, NULL);
    assert_non_null(seq);

    return seq;
}


static void
step(engine_t *e)
{
    dsa_err_t  err;

    if (dsa_sched_step(e->sched, &err) != DSA_OK
        || dsa_sched_audit(e->sched, &err) != DSA_OK)
    {
        fail_msg("%s", err.text);
    }
}


/* Answers one request alone, and counts its drafts. */

static void
ask(engine_t *e, client_t *c)
{
    dsa_sched_stats_t  before, after;

    dsa_sched_stats(e->sched, &before);
    memset(c->drafts_at, 0xff, sizeof(c->drafts_at));
    (void) submit(e, c, 1);

    while (dsa_sched_busy(e->sched)) {
        step(e);

        dsa_sched_stats(e->sched, &after);
        c->drafts = (uint32_t) (after.draft_tokens - before.draft_tokens);
        c->accepted = (uint32_t) (after.accepted_tokens
                                  - before.accepted_tokens);
        c->drafts_at[c->answer.n] = c->drafts;
        c->accepted_at[c->answer.n] = c->accepted;
    }

    assert_true(c->answer.ended);
}


/* A request for all tokens of an answer. */

static void
make(client_t *c, uint32_t n_prompt, float temperature)
{
    uint32_t  i;

    memset(c, 0, sizeof(client_t));

    for (i = 0; i < n_prompt; i++) {
        c->prompt[i] = 4 + i * i % 250;
    }

    c->n_prompt = n_prompt;
    c->max_tokens = ANSWER;
    c->temperature = temperature;
    c->seed = 7;
}


/* The answer in a cache without pages. */

static void
ask_alone(dsa_backend_t *b, client_t *c)
{
    engine_t  e;

    start(&e, b, BUDGET, 0);
    ask(&e, c);
    stop(&e);

    assert_int_equal(c->answer.usage.cached_tokens, 0);
}


static void
same_text(const client_t *c, const client_t *want)
{
    assert_int_equal(c->answer.n, want->answer.n);
    assert_memory_equal(c->answer.token, want->answer.token,
                        want->answer.n * sizeof(uint32_t));
}


/* The same text, and as many drafts of it are accepted. */

static void
same(const client_t *c, const client_t *want)
{
    same_text(c, want);
    assert_int_equal(c->drafts, want->drafts);
    assert_int_equal(c->accepted, want->accepted);
}


static void
test_accepted(void **state)
{
    float           temperature;
    uint32_t        i, budget;
    client_t        plain, want, c;
    engine_t        e;
    dsa_backend_t  *without, *b;

    without = backend_open(1, 0, PAGES);
    b = backend_open(1, DRAFTS, PAGES);

    for (i = 0; i < 3; i++) {
        temperature = (float) i * 0.5f;
        make(&plain, 150, temperature);
        want = plain;
        c = plain;

        ask_alone(without, &plain);
        ask_alone(b, &want);
        same_text(&want, &plain);

        assert_true(want.accepted < want.drafts);

        /* in chunks, whose ends are at all offsets of a page */

        for (budget = 5; budget < 70; budget += 13) {
            start(&e, b, budget, 0);
            ask(&e, &c);
            same(&c, &want);
            stop(&e);
        }
    }

    without->close(without);
    b->close(b);
}


/*
 * The draft layer is good, and draws with the noise of the model.  With that of
 * another position, 0.59 of the drafts would be accepted at temperature 1.
 */

static void
test_share(void **state)
{
    float           temperature;
    uint32_t        i, drafts, accepted;
    client_t        c;
    uint64_t        seed;
    dsa_backend_t  *b;

    b = backend_open(1, DRAFTS, PAGES);

    for (i = 0; i < 3; i++) {
        temperature = (float) i * 0.5f;
        drafts = 0;
        accepted = 0;

        for (seed = 0; seed < SEEDS; seed++) {
            make(&c, 150, temperature);
            c.seed = seed;
            ask_alone(b, &c);

            drafts += c.drafts;
            accepted += c.accepted;
        }

        print_message("temperature %.1f: %u of %u drafts are accepted\n",
                      temperature, accepted, drafts);

        assert_true(8 * accepted > 5 * drafts);
    }

    b->close(b);
}


/*
 * Behind pages that are found.  The prompt ends at each offset of a page, once
 * behind one page that is found and once behind two.  The same for the next
 * turn, which finds pages that the answer filled with drafts: those of tokens
 * that were accepted, and of tokens that replaced rejected ones.
 */

static void
test_hits(void **state)
{
    uint32_t        n, by;
    client_t        c, want;
    engine_t        e;
    dsa_backend_t  *without, *b;

    without = backend_open(1, 0, PAGES);
    b = backend_open(1, DRAFTS, PAGES);

    /* all offsets with the sparse model, and a third of them otherwise */

    by = depth == 1 && model == sparse ? 1 : 3;

    for (n = 65; n < 65 + 128; n += by) {
        make(&c, n, n % 2 == 0 ? 0 : 1);

        start(&e, b, BUDGET, 0);
        ask(&e, &c);
        assert_int_equal(c.answer.usage.cached_tokens, 0);
        want = c;
        ask(&e, &c);
        assert_int_equal(c.answer.usage.cached_tokens, (n - 1) / 64 * 64);
        same(&c, &want);

        memcpy(c.prompt + n, want.answer.token, ANSWER * sizeof(uint32_t));
        c.n_prompt = n + ANSWER + 1;
        c.prompt[n + ANSWER] = 4 + n;
        want = c;

        ask(&e, &c);
        assert_int_equal(c.answer.usage.cached_tokens,
                         (n + ANSWER - 1) / 64 * 64);
        stop(&e);

        ask_alone(b, &want);
        same(&c, &want);
        ask_alone(without, &want);
        same_text(&c, &want);
    }

    without->close(without);
    b->close(b);
}


/* Two ranks compute the prompt together, each with a copy of its pages. */

static void
test_ranks(void **state)
{
    uint32_t        warm;
    client_t        plain, want, c;
    engine_t        e;
    dsa_backend_t  *without, *b;

    without = backend_open(2, 0, PAGES);
    b = backend_open(2, DRAFTS, PAGES);

    make(&plain, 150, 1);
    want = plain;
    ask_alone(without, &plain);
    ask_alone(b, &want);

    same_text(&want, &plain);
    assert_true(want.accepted != 0 && want.accepted < want.drafts);

    for (warm = 70; warm < 150; warm += 25) {
        start(&e, b, BUDGET, 0);
        make(&c, warm, 1);
        c.max_tokens = 1;
        ask(&e, &c);

        make(&c, 150, 1);
        ask(&e, &c);
        assert_int_equal(c.answer.usage.cached_tokens, warm / 64 * 64);
        same(&c, &want);
        stop(&e);
    }

    without->close(without);
    b->close(b);
}


/* Drafts are drawn with the masks of their positions. */

static void
test_masks(void **state)
{
    uint32_t        modulus, drafts, accepted;
    client_t        c, want;
    engine_t        e;
    dsa_backend_t  *without, *b;

    without = backend_open(1, 0, PAGES);
    b = backend_open(1, DRAFTS, PAGES);
    drafts = 0;
    accepted = 0;

    for (modulus = 2; modulus < 12; modulus++) {
        make(&c, 100 + modulus, modulus % 2 == 0 ? 0 : 1);
        c.modulus = modulus;
        want = c;
        ask_alone(without, &want);

        start(&e, b, BUDGET, 0);
        ask(&e, &c);
        same_text(&c, &want);
        want = c;
        ask(&e, &c);
        same(&c, &want);
        stop(&e);

        drafts += c.drafts;
        accepted += c.accepted;
    }

    /* without masks, one in modulus would be */

    print_message("with masks: %u of %u drafts are accepted\n", accepted,
                  drafts);
    assert_true(3 * accepted > drafts);

    without->close(without);
    b->close(b);
}


/*
 * The handler ends the answer within a run of accepted drafts, as a stop string
 * does; max_tokens and the end of the context; a client that leaves.  The next
 * request finds what was computed.
 */

static void
test_ends(void **state)
{
    uint32_t        n, i;
    client_t        c, want;
    engine_t        e;
    dsa_seq_t      *seq;
    dsa_backend_t  *b;

    b = backend_open(1, 7, PAGES);
    make(&want, 120, 0);
    ask_alone(b, &want);

    for (n = 1; n < ANSWER; n++) {
        start(&e, b, BUDGET, 0);
        make(&c, 120, 0);

        c.answer.stop_at = n;
        ask(&e, &c);
        assert_int_equal(c.answer.usage.finish, DSA_FINISH_STOP);
        assert_int_equal(c.answer.n, n);
        assert_memory_equal(c.answer.token, want.answer.token,
                            n * sizeof(uint32_t));

        c.answer.stop_at = 0;
        c.max_tokens = n;
        ask(&e, &c);
        assert_int_equal(c.answer.usage.finish, DSA_FINISH_LENGTH);
        assert_int_equal(c.answer.n, n);
        assert_memory_equal(c.answer.token, want.answer.token,
                            n * sizeof(uint32_t));

        c.max_tokens = ANSWER;
        seq = submit(&e, &c, 1);

        for (i = 0; c.answer.n < n && !c.answer.ended; i++) {
            step(&e);
        }

        if (!c.answer.ended) {
            dsa_sched_cancel(e.sched, seq, DSA_FINISH_CANCELLED);
        }

        assert_memory_equal(c.answer.token, want.answer.token,
                            c.answer.n * sizeof(uint32_t));

        ask(&e, &c);
        same(&c, &want);
        stop(&e);
    }

    /* the answer ends with the last token of the context */

    for (n = 120; n < 120 + 64; n++) {
        make(&c, PROMPT + 2 * ANSWER - n, 0);
        c.n_prompt = c.n_prompt > PROMPT ? PROMPT : c.n_prompt;
        c.max_tokens = ANSWER;
        ask_alone(b, &c);
        assert_int_equal(c.answer.n, ANSWER);
    }

    b->close(b);
}


/*
 * Answers a prompt again whose pages were moved to host memory in between, as
 * often as rounds.  A backend has one scheduler when it moves pages.  Returns
 * the last answer.
 */

static client_t
ask_moved(const client_t *first, uint32_t rounds,
    int (*backend_move)(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *moves, uint32_t n, dsa_err_t *err))
{
    uint32_t        i, at;
    client_t        c, other;
    engine_t        e;
    dsa_backend_t  *b;

    b = backend_open(1, DRAFTS, FEW_PAGES);

    if (backend_move != NULL) {
        move = b->move;
        b->move = backend_move;
    }

    start(&e, b, BUDGET, 60);
    c = *first;
    ask(&e, &c);

    for (i = 0; i < rounds; i++) {

        /* another prompt takes all pages */

        make(&other, PROMPT, 1);

        for (at = 0; at < PROMPT; at++) {
            other.prompt[at] = 4 + (at * (91 + i) + 17) % 250;
        }

        ask(&e, &other);

        ask(&e, &c);
        assert_int_equal(c.answer.usage.cached_tokens,
                         (c.n_prompt - 1) / 64 * 64);
        assert_int_equal(c.answer.usage.tier_tokens[DSA_TIER_HOST],
                         (c.n_prompt - 1) / 64 * 64);
    }

    stop(&e);
    b->close(b);

    return c;
}


/* Pages that are loaded from host memory have the draft layer's part. */

static void
test_loads(void **state)
{
    uint32_t        n;
    client_t        c, want;
    dsa_backend_t  *b;

    b = backend_open(1, DRAFTS, PAGES);

    for (n = 65; n < 65 + 128; n += 5) {
        make(&want, n, n % 2 == 0 ? 0 : 1);
        c = ask_moved(&want, 1, NULL);
        ask_alone(b, &want);
        same(&c, &want);
    }

    b->close(b);
}


/* Clears what a page has of the last token's hidden state. */

static int
move_without_hidden(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *moves, uint32_t n, dsa_err_t *err)
{
    int       rc;
    size_t    size;
    uint32_t  i;

    rc = move(b, way, rank, moves, n, err);
    size = sizeof(uint32_t) + b->config.hidden_size * sizeof(uint16_t);
    size = (size + DSA_CACHE_ALIGN - 1) / DSA_CACHE_ALIGN * DSA_CACHE_ALIGN;

    for (i = 0; rc == DSA_OK && way == DSA_MOVE_OUT && i < n; i++) {
        memset((uint8_t *) moves[i].host + b->page_bytes - size, 0, size);
    }

    return rc;
}


/*
 * A page that has lost the hidden state is found and used like others, again
 * and again.  A row of the draft layer is missing behind it, which may cost
 * drafts.
 */

static void
test_lost_hidden(void **state)
{
    uint32_t        n, all, lost, differ;
    client_t        c, want;
    dsa_backend_t  *b;

    b = backend_open(1, DRAFTS, PAGES);
    all = 0;
    lost = 0;
    differ = 0;

    for (n = 65; n < 65 + 128; n += 3) {
        make(&want, n, n % 2 == 0 ? 0 : 1);
        c = ask_moved(&want, 2, move_without_hidden);
        ask_alone(b, &want);
        same_text(&c, &want);

        all += want.accepted;
        lost += c.accepted;
        differ += c.drafts != want.drafts || c.accepted != want.accepted;
    }

    print_message("%u drafts are accepted, and %u without the hidden states\n",
                  all, lost);

    /* the rows really were missing, and one row means little here */

    assert_true(differ != 0);
    assert_true(50 * lost > 49 * all && 49 * lost < 50 * all);

    b->close(b);
}


/*
 * Another replica continues the answer, from each of its tokens on: from a
 * cache without pages, and from one that has those of prompt and answer.  It
 * samples the next token without drafts.  If the uncached run began a step
 * behind that token, the rest is step by step the same.
 */

static void
test_moved(void **state)
{
    uint32_t        n, begins;
    client_t        c, want, cold;
    engine_t        e;
    dsa_backend_t  *b;

    b = backend_open(1, DRAFTS, PAGES);
    begins = 0;

    make(&want, 100, 1);
    ask_alone(b, &want);

    for (n = 1; n < ANSWER; n++) {
        make(&c, 100, 1);
        c.n_resume = n;
        memcpy(c.prompt + 100, want.answer.token, n * sizeof(uint32_t));

        start(&e, b, BUDGET, 0);
        ask(&e, &c);
        assert_int_equal(c.answer.usage.cached_tokens, 0);
        assert_int_equal(c.answer.n, ANSWER - n);
        assert_memory_equal(c.answer.token, want.answer.token + n,
                            (ANSWER - n) * sizeof(uint32_t));
        cold = c;

        ask(&e, &c);
        assert_true(c.answer.usage.cached_tokens != 0);
        same(&c, &cold);
        stop(&e);

        if (want.drafts_at[n + 1] != UINT32_MAX) {
            assert_int_equal(c.drafts, want.drafts - want.drafts_at[n + 1]);
            assert_int_equal(c.accepted,
                             want.accepted - want.accepted_at[n + 1]);
            begins++;
        }
    }

    assert_true(begins > ANSWER / (DRAFTS + 1));

    b->close(b);
}


/*
 * Answers of two tenants that preempt one another, each while it has drafts.
 */

static void
test_preempted(void **state)
{
    uint32_t            i, n;
    uint64_t            preemptions, want_drafts, want_accepted;
    uint64_t            drafts, accepted;
    client_t            want[4], c[4];
    engine_t            e;
    dsa_backend_t      *b, *small;
    dsa_sched_stats_t   stats;

    b = backend_open(1, DRAFTS, PAGES);
    small = backend_open(1, DRAFTS, FEW_PAGES - 1);
    preemptions = 0;
    want_drafts = 0;
    want_accepted = 0;
    drafts = 0;
    accepted = 0;

    for (n = 0; n < 16; n++) {
        start(&e, small, BUDGET, 0);

        for (i = 0; i < 4; i++) {
            make(&c[i], 30 + n % 16 * 2 + 3 * i, 1);
            c[i].prompt[0] = i;
            want[i] = c[i];
            ask_alone(b, &want[i]);
            want_drafts += want[i].drafts;
            want_accepted += want[i].accepted;

            (void) submit(&e, &c[i], (uint8_t) (i == 3));

            while (i == 2 && c[2].answer.n < n && !c[2].answer.ended) {
                step(&e);
            }
        }

        while (dsa_sched_busy(e.sched)) {
            step(&e);
        }

        for (i = 0; i < 4; i++) {
            same_text(&c[i], &want[i]);
        }

        dsa_sched_stats(e.sched, &stats);
        preemptions += stats.preemptions;
        drafts += stats.draft_tokens;
        accepted += stats.accepted_tokens;
        stop(&e);
    }

    print_message("%u preemptions: %u of %u drafts are accepted, alone %u of "
                  "%u\n", (unsigned) preemptions, (unsigned) accepted,
                  (unsigned) drafts, (unsigned) want_accepted,
                  (unsigned) want_drafts);

    assert_true(preemptions > 20);
    assert_true(50 * accepted * want_drafts > 49 * want_accepted * drafts);
    assert_true(49 * accepted * want_drafts < 50 * want_accepted * drafts);

    b->close(b);
    small->close(small);
}


/* Models whose draft layer attends to all positions. */

static void
test_dense(void **state)
{
    size_t  i;

    static const char  *const models[] = {
        GOLDEN "drafts-v3", GOLDEN "drafts-joyai",
        GOLDEN "drafts-glm-4.7-flash"
    };

    for (i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        model = models[i];

        test_accepted(state);
        test_hits(state);
        test_ranks(state);
        test_loads(state);
        test_moved(state);
    }

    model = sparse;
}


int
main(void)
{
    int  failed;

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_hits),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_loads),
        cmocka_unit_test(test_lost_hidden),
        cmocka_unit_test(test_moved),
        cmocka_unit_test(test_preempted),
        cmocka_unit_test(test_dense)
    };

    const struct CMUnitTest  ahead[] = {
        cmocka_unit_test(test_hits),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_loads),
        cmocka_unit_test(test_preempted)
    };

    depth = 1;
    failed = cmocka_run_group_tests_name("one at a time", tests, NULL, NULL);

    depth = 2;
    failed += cmocka_run_group_tests_name("run ahead", ahead, NULL, NULL);

    return failed + (ahead_follows == 0);
}
