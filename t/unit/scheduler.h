
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A scripted backend for tests of the scheduler.  Its cache has, for each row
 * that it was given, a hash of the row's id and of the cached row before it,
 * and the next token is a hash of all rows of the sequence as they stand in
 * that cache: a wrong block table, a row that was left out or a page that was
 * computed behind another prefix changes the answer, and what the answer has
 * to be is computed here from the prompt alone.
 */


#ifndef _SCHEDULER_H_INCLUDED_
#define _SCHEDULER_H_INCLUDED_


#include "engine/schedule/scheduler.h"


#define VOCAB       50000
#define EOS         1
#define MAX_PAGES   4096
#define MAX_ANSWER  2000
#define TENANTS     8


/* Steps under way: what was sampled is told when it is waited for. */

#define MAX_SEQS    64

typedef struct {
    uint32_t            n;
    uint32_t            token[MAX_SEQS];
    dsa_sample_t       *sample[MAX_SEQS];
} flight_t;


typedef struct {
    dsa_backend_t       base;
    flight_t            flight[2];
    uint32_t            first;
    uint32_t            flights;
    uint32_t            followed;       /* rows whose token was under way */
    uint32_t            rows[MAX_PAGES][DSA_PAGE_TOKENS];
    uint32_t            max_seqs;
    uint32_t            max_rows;
    uint32_t            eos_at;         /* this answer token is EOS; 0: none */
    uint32_t            fails;

    /* of the last step, and of all */

    uint32_t            n_seqs;
    uint32_t            n_rows;
    uint64_t            tenant_rows[TENANTS];
    uint32_t            tenant_seqs[TENANTS];
} fake_t;


typedef struct {
    dsa_seq_t          *seq;
    uint32_t           *prompt;
    uint32_t            n_prompt;
    uint32_t            n;
    uint32_t            answer[MAX_ANSWER];
    uint32_t            stop_at;        /* the handler ends it there */
    uint64_t            seed;
    uint32_t            finish;         /* 0: not yet */
    uint32_t            dropped;
    uint32_t            private;
    dsa_link_done_t     done;
} client_t;


/* What the cache has of a row; before is that of the row before it. */

static inline uint32_t
row_of(uint32_t before, uint32_t token)
{
    uint64_t  h;

    h = ((uint64_t) before << 32 | token) * 0x9e3779b97f4a7c15ULL;

    return (uint32_t) (h >> 31);
}


static inline uint32_t
token_of(const uint32_t *rows, uint32_t n, uint64_t seed)
{
    uint32_t  i;
    uint64_t  h;

    h = seed * 0x9e3779b97f4a7c15ULL + n;

    for (i = 0; i < n; i++) {
        h = (h ^ rows[i]) * 0x100000001b3ULL;
        h ^= h >> 29;
    }

    return 100 + (uint32_t) (h % (VOCAB - 100));
}


static uint32_t  depth;     /* of the backend that tests run on */
static float     penalty;   /* presence penalty of what is submitted */

static uint64_t  billed_prompt;     /* by all done() */
static uint64_t  billed_cached;

static uint32_t  max_waiting = 100000;
static uint32_t  max_per_tenant = 100000;


static inline int
fake_start(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n_seqs,
    dsa_err_t *err)
{
    fake_t    *f;
    uint32_t   i, j, t, n, row, token, before, *all;
    flight_t  *now, *last;

    f = (fake_t *) b;

    if (f->fails) {
        return dsa_error(err, "it fails");
    }

    assert_true(n_seqs > 0 && n_seqs <= f->max_seqs);
    assert_true(n_seqs <= MAX_SEQS && f->flights < b->depth);

    now = &f->flight[(f->first + f->flights) % 2];
    last = f->flights != 0 ? &f->flight[f->first] : NULL;
    now->n = n_seqs;
    f->flights++;

    f->n_seqs = n_seqs;
    f->n_rows = 0;
    memset(f->tenant_seqs, 0, sizeof(f->tenant_seqs));

    for (i = 0; i < n_seqs; i++) {
        n = seq[i].start + seq[i].n;
        assert_true(seq[i].n > 0);
        f->n_rows += seq[i].n;

        /* a prompt begins with its tenant */

        t = seq[i].tokens[0];
        assert_true(t < TENANTS);
        f->tenant_rows[t] += seq[i].n;
        f->tenant_seqs[t]++;

        for (row = seq[i].start; row < n; row++) {
            j = seq[i].pages[row / DSA_PAGE_TOKENS];
            assert_true(j < b->pages);
            before = row == 0 ? 0
                     : f->rows[seq[i].pages[(row - 1) / DSA_PAGE_TOKENS]]
                              [(row - 1) % DSA_PAGE_TOKENS];
            if (row + 1 == n && seq[i].follows != DSA_FOLLOWS_NONE) {
                assert_non_null(last);
                assert_true(seq[i].follows < last->n);
                token = last->token[seq[i].follows];
                f->followed++;

            } else {
                token = seq[i].tokens[row];
            }

            f->rows[j][row % DSA_PAGE_TOKENS] = row_of(before, token);
        }
    }

    assert_true(f->n_rows <= f->max_rows);

    /* after all are written: whoever writes to another one's page shows */

    for (i = 0; i < n_seqs; i++) {
        now->sample[i] = NULL;

        if (seq[i].sampling == NULL) {
            continue;
        }

        n = seq[i].start + seq[i].n;
        all = malloc(n * sizeof(uint32_t));
        assert_non_null(all);

        for (row = 0; row < n; row++) {
            j = seq[i].pages[row / DSA_PAGE_TOKENS];
            all[row] = f->rows[j][row % DSA_PAGE_TOKENS];
        }

        now->sample[i] = seq[i].sample;
        now->token[i] = token_of(all, n, seq[i].sampling->seed);

        if (f->eos_at != 0 && n - seq[i].prompt + 1 == f->eos_at) {
            now->token[i] = EOS;
        }

        free(all);
    }

    return DSA_OK;
}


static inline int
fake_wait(dsa_backend_t *b, dsa_err_t *err)
{
    fake_t    *f;
    uint32_t   i;
    flight_t  *old;

    f = (fake_t *) b;
    assert_true(f->flights > 0);

    old = &f->flight[f->first];

    for (i = 0; i < old->n; i++) {
        if (old->sample[i] != NULL) {
            memset(old->sample[i], 0, sizeof(dsa_sample_t));
            old->sample[i]->token = old->token[i];
        }
    }

    f->first = (f->first + 1) % 2;
    f->flights--;

    return DSA_OK;
}


static inline int
on_token(void *owner, const dsa_sample_t *sample)
{
    client_t  *c;

    c = owner;

    assert_true(c->n < MAX_ANSWER);
    c->answer[c->n++] = sample->token;

    return c->stop_at == c->n ? DSA_LINK_FINISH_STOP : 0;
}


static inline void
on_done(void *owner, const dsa_link_done_t *done)
{
    client_t  *c;

    c = owner;

    assert_int_equal(c->finish, 0);
    c->finish = done->finish;
    c->done = *done;
    billed_prompt += done->prompt_tokens;
    billed_cached += done->cached_tokens;
    c->seq = NULL;
}


static inline void
on_dropped(void *owner)
{
    client_t  *c;

    c = owner;

    assert_int_equal(c->finish, 0);
    assert_int_equal(c->n, 0);
    c->dropped = 1;
    c->seq = NULL;
}


static const dsa_sched_handler_t  handler = { on_token, on_done, on_dropped };


static inline dsa_sched_t *
start(fake_t **fake, uint32_t pages, uint32_t max_running, uint32_t budget)
{
    fake_t            *f;
    dsa_err_t          err;
    dsa_sched_t       *s;
    dsa_sched_conf_t   conf;

    f = calloc(1, sizeof(fake_t));
    assert_non_null(f);
    assert_true(pages <= MAX_PAGES);

    f->base.pages = pages;
    f->base.depth = depth;
    f->base.start = fake_start;
    f->base.wait = fake_wait;
    f->base.config.eos_token_id = EOS;
    f->max_seqs = max_running;
    f->max_rows = budget;
    strcpy(f->base.fingerprint, "fake");

    conf.max_running = max_running;
    conf.token_budget = budget;
    conf.max_waiting = max_waiting;
    conf.max_waiting_per_tenant = max_per_tenant;
    conf.context = 100000;

    s = dsa_sched_create(&f->base, &conf, &handler, &err);
    assert_non_null(s);

    *fake = f;

    return s;
}


static inline void
finish(dsa_sched_t *s, fake_t *f)
{
    dsa_sched_destroy(s);
    free(f);
}


static inline void
audit(dsa_sched_t *s)
{
    dsa_err_t  err;

    if (dsa_sched_audit(s, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }
}


static inline void
step(dsa_sched_t *s)
{
    dsa_err_t  err;

    if (dsa_sched_step(s, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    audit(s);
}


static inline void
run(dsa_sched_t *s)
{
    uint32_t  n;

    for (n = 0; dsa_sched_busy(s); n++) {
        assert_true(n < 1000000);
        step(s);
    }
}


/* All pages are free again. */

static inline void
check_free(dsa_sched_t *s)
{
    dsa_sched_stats_t  stats;

    audit(s);
    dsa_sched_stats(s, &stats);

    assert_int_equal(stats.pages_used, 0);
    assert_int_equal(stats.running, 0);
    assert_int_equal(stats.waiting, 0);
}


/* prompt: n ids, the first of them the tenant's number; taken over. */

static inline void
submit_ids(dsa_sched_t *s, client_t *c, uint32_t *ids, uint32_t n,
    uint32_t max_tokens, uint32_t weight)
{
    dsa_sched_request_t  request;

    memset(&request, 0, sizeof(request));
    memset(c->answer, 0, sizeof(c->answer));

    c->prompt = malloc(n * sizeof(uint32_t));
    assert_non_null(c->prompt);
    memcpy(c->prompt, ids, n * sizeof(uint32_t));
    c->n_prompt = n;
    c->n = 0;
    c->finish = 0;

    request.tokens = ids;
    request.n_tokens = n;
    request.max_tokens = max_tokens;
    request.weight = weight;
    request.private = c->private;
    request.sampling.seed = c->seed;
    request.sampling.presence_penalty = penalty;
    request.owner = c;
    request.tenant[0] = (uint8_t) ids[0];

    c->seq = dsa_sched_add(s, &request);

    if (c->seq == NULL) {
        free(ids);
    }
}


/* A prompt, malloc()ed; those with the same text begin alike. */

static inline uint32_t *
ids_of(uint32_t tenant, uint32_t text, uint32_t n)
{
    uint32_t  i, *ids;

    ids = malloc(n * sizeof(uint32_t));
    assert_non_null(ids);

    ids[0] = tenant;

    for (i = 1; i < n; i++) {
        ids[i] = 100 + (text * 7919 + i * 31) % (VOCAB - 100);
    }

    return ids;
}


static inline void
submit(dsa_sched_t *s, client_t *c, uint32_t tenant, uint32_t text,
    uint32_t n, uint32_t max_tokens, uint32_t weight)
{
    submit_ids(s, c, ids_of(tenant, text, n), n, max_tokens, weight);
    assert_non_null(c->seq);
}


/* What came is what had to come. */

static inline void
check_answer(const client_t *c)
{
    uint32_t  i, n, *rows;

    n = c->n_prompt;
    rows = malloc((n + c->n) * sizeof(uint32_t));
    assert_non_null(rows);

    for (i = 0; i < n; i++) {
        rows[i] = row_of(i == 0 ? 0 : rows[i - 1], c->prompt[i]);
    }

    for (i = 0; i < c->n; i++, n++) {
        assert_int_equal(c->answer[i], token_of(rows, n, c->seed));
        rows[n] = row_of(rows[n - 1], c->answer[i]);
    }

    free(rows);
}


static inline void
check(client_t *c, uint32_t n, uint32_t reason)
{
    assert_int_equal(c->finish, reason);
    assert_int_equal(c->n, n);
    check_answer(c);

    free(c->prompt);
    c->prompt = NULL;
}


#endif /* _SCHEDULER_H_INCLUDED_ */
