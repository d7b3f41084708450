
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_T_JOIN_H_INCLUDED_
#define _DSA_T_JOIN_H_INCLUDED_


#include "t/unit/numbers.h"
#include "t/unit/ranks.h"


/*
 * The scheduler on a backend with several ranks.  Requests join and leave at
 * random, share prefixes, and need more pages than there are; everything is
 * audited after each step.  A test defines before it includes this file:
 *
 *     JOIN_BACKEND     the kind of backend
 *     JOIN_PRECISION   DSA_EXACT: each answer is the greedy one that the
 *                      request has alone on one rank.  DSA_SERVED: roundings
 *                      change tokens of an answer, and then the rest of it is
 *                      another text, so that only first tokens are counted
 *     JOIN_MODEL       the model that answers the requests alone
 *     JOIN_PAGE        bytes of a page
 *     JOIN_GPU(rank)   the number of the GPU of a rank
 *
 * and, if dsa_backend_open() does not open the backend:
 *
 *     JOIN_OPEN        the function that does
 */

#ifndef JOIN_OPEN
#define JOIN_OPEN   dsa_backend_open
#endif

#define REQUESTS    32
#define PREFIXES    3           /* that requests share, of a tenant each */
#define PREFIX      130         /* tokens of a prefix */
#define PROMPT      220         /* most tokens of a prompt */
#define ANSWER      60          /* most tokens of an answer */
#define RUNNING     4           /* on a rank */
#define PAGES       13          /* of a rank */
#define BUDGET      96

#include "t/unit/collect.h"


typedef struct {
    uint32_t            prompt[PROMPT];
    uint32_t            n_prompt;
    uint32_t            max_tokens;
    uint32_t            prefix;
    uint32_t            join;           /* the step before which it is added */
    uint32_t            leave;          /* it is cancelled so many steps later;
                                           0: never */
    uint32_t            want[ANSWER];   /* [max_tokens] */
} request_t;


typedef struct {
    answer_t            answer;
    dsa_seq_t          *seq;            /* NULL before */
} client_t;


static request_t  requests[REQUESTS];

static uint32_t  join_drafts;           /* of the backends */
static dsa_host_t  *join_host;          /* of the schedulers; NULL: none */
static uint32_t  first_tokens;          /* of all answers, and */
static uint32_t  equal_tokens;          /* of them, those of one rank */


static void
make_requests(uint32_t vocab)
{
    uint32_t    i, j;
    request_t  *r;

    for (i = 0; i < REQUESTS; i++) {
        r = &requests[i];

        r->prefix = dsa_t_random(PREFIXES);
        r->n_prompt = 1 + dsa_t_random(PROMPT);
        r->max_tokens = 1 + dsa_t_random(ANSWER);
        r->join = dsa_t_random(40);
        r->leave = dsa_t_random(4) == 0 ? 1 + dsa_t_random(20) : 0;

        for (j = 0; j < r->n_prompt; j++) {
            r->prompt[j] = j < PREFIX ? (j * 37 + r->prefix * 11) % vocab
                                      : dsa_t_random(vocab);
        }
    }
}


static dsa_backend_t *
backend_open(const char *dir, split_t split)
{
    uint32_t             i;
    dsa_err_t            err;
    dsa_backend_t       *b;
    dsa_backend_conf_t   conf;

    memset(&conf, 0, sizeof(conf));
    conf.model = dir;
    conf.precision = JOIN_PRECISION;
    conf.gpus = split.gpus;
    conf.attention = split.attention;
    conf.kv_memory = PAGES * (uint64_t) JOIN_PAGE;
    conf.drafts = join_drafts;
    conf.max_tokens = BUDGET;
    conf.max_seqs = RUNNING;
    conf.allowed = UINT32_MAX;
    conf.context = PAGES * DSA_PAGE_TOKENS;

    for (i = 0; i < split.gpus; i++) {
        conf.gpu[i] = JOIN_GPU(i);
    }

    b = JOIN_OPEN(JOIN_BACKEND, &conf, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);
    assert_int_equal(b->pages, PAGES);

    return b;
}


static dsa_sched_t *
sched_open(dsa_backend_t *b)
{
    dsa_err_t          err;
    dsa_sched_t       *s;
    dsa_sched_conf_t   conf;

    memset(&conf, 0, sizeof(conf));
    conf.max_running = RUNNING;
    conf.token_budget = BUDGET;
    conf.max_waiting = REQUESTS;
    conf.max_waiting_per_tenant = REQUESTS;
    conf.context = PAGES * DSA_PAGE_TOKENS;
    conf.host = join_host;

    s = dsa_sched_create(b, &conf, &handler, &err);
    must(s != NULL ? DSA_OK : DSA_ERROR, &err);

    return s;
}


static void
submit(dsa_sched_t *s, client_t *c, const request_t *r)
{
    dsa_err_t            err;
    dsa_sched_request_t  request;

    memset(&request, 0, sizeof(request));
    request.tokens = malloc(r->n_prompt * sizeof(uint32_t));
    assert_non_null(request.tokens);
    memcpy(request.tokens, r->prompt, r->n_prompt * sizeof(uint32_t));

    request.n_tokens = r->n_prompt;
    request.max_tokens = r->max_tokens;
    request.weight = 1;
    request.ignore_eos = 1;
    request.sampling.top_p = 1;
    request.tenant[0] = (uint8_t) r->prefix;
    request.owner = c;

    c->seq = dsa_sched_add(s, &request, &err);
    must(c->seq != NULL ? DSA_OK : DSA_ERROR, &err);
}


static void
step(dsa_sched_t *s)
{
    dsa_err_t  err;

    must(dsa_sched_step(s, &err), &err);
    must(dsa_sched_audit(s, &err), &err);
}


/* The answers that each request has alone on one rank. */

static void
run_alone(void)
{
    uint32_t        i;
    client_t        c;
    dsa_sched_t    *s;
    dsa_backend_t  *b;

    b = backend_open(JOIN_MODEL, one);

    for (i = 0; i < REQUESTS; i++) {
        memset(&c, 0, sizeof(client_t));
        s = sched_open(b);
        submit(s, &c, &requests[i]);

        while (dsa_sched_busy(s)) {
            step(s);
        }

        assert_int_equal(c.answer.n, requests[i].max_tokens);
        memcpy(requests[i].want, c.answer.token, sizeof(c.answer.token));
        dsa_sched_destroy(s);
    }

    b->close(b);
}


static void
check_answer(const request_t *r, const answer_t *a, uint32_t i, split_t split)
{
    uint32_t  j;

    assert_true(a->ended);

    if (a->usage.finish != DSA_FINISH_CANCELLED) {
        assert_int_equal(a->usage.finish, DSA_FINISH_LENGTH);
        assert_int_equal(a->n, r->max_tokens);
    }

    for (j = 0; JOIN_PRECISION == DSA_EXACT && j < a->n; j++) {
        if (a->token[j] != r->want[j]) {
            fail_msg("%u GPUs, attention %d: token %u of answer %u is %u, not "
                     "%u", split.gpus, (int) split.attention, j, i,
                     a->token[j], r->want[j]);
        }
    }

    first_tokens += a->n > 0;
    equal_tokens += a->n > 0 && a->token[0] == r->want[0];
}


/* Returns the statistics after all requests; c [REQUESTS] has the answers. */

static dsa_sched_stats_t
run_together(const char *dir, split_t split, client_t *c)
{
    uint32_t            i, n, cancelled;
    dsa_sched_t        *s;
    dsa_backend_t      *b;
    const request_t    *r;
    dsa_sched_stats_t   stats;

    memset(c, 0, REQUESTS * sizeof(client_t));
    b = backend_open(dir, split);
    s = sched_open(b);

    for (n = 0; n < 40 || dsa_sched_busy(s); n++) {
        for (i = 0; i < REQUESTS; i++) {
            r = &requests[i];

            if (r->join == n) {
                submit(s, &c[i], r);
            }

            if (c[i].seq != NULL && !c[i].answer.ended && r->leave != 0
                && n == r->join + r->leave)
            {
                dsa_sched_cancel(s, c[i].seq, DSA_FINISH_CANCELLED);
                assert_true(c[i].answer.ended);
            }
        }

        step(s);
    }

    cancelled = 0;

    for (i = 0; i < REQUESTS; i++) {
        check_answer(&requests[i], &c[i].answer, i, split);
        cancelled += c[i].answer.usage.finish == DSA_FINISH_CANCELLED;
    }

    assert_true(cancelled > 0);

    dsa_sched_stats(s, &stats);
    assert_int_equal(stats.pages_used, 0);

    dsa_sched_destroy(s);
    b->close(b);

    return stats;
}


#endif /* _DSA_T_JOIN_H_INCLUDED_ */
