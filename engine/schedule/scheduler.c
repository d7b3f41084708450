
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "engine/schedule/parts.h"


static int dsa_sched_room(const dsa_sched_t *s,
    const dsa_sched_request_t *request, dsa_tenant_t **crowd);
static void dsa_sched_wait(dsa_sched_t *s, dsa_seq_t *seq, int first);
static void dsa_sched_drop(dsa_sched_t *s, dsa_seq_t *seq);
static int dsa_sched_ahead(const dsa_sched_t *s);
static int dsa_sched_start(dsa_sched_t *s, dsa_err_t *err);
static int dsa_sched_collect(dsa_sched_t *s, dsa_err_t *err);
static void dsa_sched_decodes(dsa_sched_t *s, uint32_t *rows);
static int dsa_sched_grow(dsa_sched_t *s, dsa_seq_t *seq);
static void dsa_sched_compact(dsa_sched_t *s);
static void dsa_sched_prefills(dsa_sched_t *s, uint32_t rows);
static void dsa_sched_rows(dsa_sched_t *s, dsa_seq_t *seq, uint32_t n);
static int dsa_sched_computed(dsa_sched_t *s, dsa_seq_t *seq, uint32_t n);
static void dsa_sched_count(dsa_sched_t *s, dsa_seq_t *seq, int found);
static int dsa_sched_sampled(dsa_sched_t *s, dsa_seq_t *seq,
    const dsa_sample_t *sample, uint64_t now);
static void dsa_sched_stop(dsa_sched_t *s, dsa_seq_t *seq);
static void dsa_sched_finish(dsa_sched_t *s, dsa_seq_t *seq,
    dsa_link_finish_e finish, uint64_t now);


dsa_sched_t *
dsa_sched_create(dsa_backend_t *backend, const dsa_sched_conf_t *conf,
    const dsa_sched_handler_t *handler, dsa_err_t *err)
{
    int                ok;
    uint32_t           i;
    uint64_t           held;
    dsa_sched_t       *s;
    dsa_sched_step_t  *step;

    if (backend->pages == 0 || backend->pages > DSA_PAGES_MAX) {
        (void) dsa_error(err, "the backend has %u pages, 1 to %u can be "
                         "used", backend->pages, DSA_PAGES_MAX);
        return NULL;
    }

    if (conf->max_running == 0 || conf->token_budget < conf->max_running
        || conf->context < 2)
    {
        (void) dsa_error(err, "a step of %u rows and %u sequences, a context "
                         "of %u tokens: too small", conf->token_budget,
                         conf->max_running, conf->context);
        return NULL;
    }

    s = calloc(1, sizeof(dsa_sched_t));

    if (s == NULL) {
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    s->backend = backend;
    s->conf = *conf;
    s->handler = *handler;

    /* the last token of an answer is never computed itself */

    held = (uint64_t) backend->pages * DSA_PAGE_TOKENS + 1;

    if (s->conf.context > held) {
        s->conf.context = (uint32_t) held;
    }

    s->pages = dsa_pages_create(backend->pages);
    s->running = calloc(conf->max_running, sizeof(dsa_seq_t *));
    ok = s->pages != NULL && s->running != NULL;

    for (i = 0; i < DSA_SCHED_DEPTH; i++) {
        step = &s->ring[i];

        step->member = calloc(conf->max_running, sizeof(dsa_seq_t *));
        step->batch = calloc(conf->max_running, sizeof(dsa_batch_seq_t));
        step->sample = calloc(conf->max_running, sizeof(dsa_sample_t));

        ok = ok && step->member != NULL && step->batch != NULL
             && step->sample != NULL;
    }

    s->now = &s->ring[0];

    if (!ok) {
        (void) dsa_error(err, "out of memory for %u pages and %u sequences",
                         backend->pages, conf->max_running);
        dsa_sched_destroy(s);
        return NULL;
    }

    s->stats.pages = backend->pages;

    return s;
}


void
dsa_sched_destroy(dsa_sched_t *s)
{
    uint32_t       i;
    dsa_seq_t     *seq;
    dsa_tenant_t  *t;

    if (s == NULL) {
        return;
    }

    while (s->turn != NULL) {
        t = s->turn;

        seq = t->waiting.first != NULL ? t->waiting.first
                                       : dsa_sched_newest(s, t);
        dsa_sched_stop(s, seq);
        dsa_sched_leave(s, t);
        dsa_seq_free(seq);
    }

    for (i = 0; i < DSA_SCHED_DEPTH; i++) {
        free(s->ring[i].member);
        free(s->ring[i].batch);
        free(s->ring[i].sample);
    }

    dsa_pages_destroy(s->pages);
    free(s->line);
    free(s->running);
    free(s);
}


uint32_t
dsa_sched_context(const dsa_sched_t *s)
{
    return s->conf.context;
}


dsa_seq_t *
dsa_sched_add(dsa_sched_t *s, const dsa_sched_request_t *request)
{
    uint32_t       i;
    dsa_seq_t     *seq;
    dsa_tenant_t  *crowd;

    if (request->n_tokens == 0 || request->max_tokens == 0
        || request->weight == 0 || request->n_resume >= request->n_tokens
        || (uint64_t) request->n_tokens + request->max_tokens
           > s->conf.context)
    {
        errno = EINVAL;
        return NULL;
    }

    if (dsa_sched_room(s, request, &crowd) != DSA_OK) {
        errno = EAGAIN;
        return NULL;
    }

    seq = calloc(1, sizeof(dsa_seq_t));

    if (seq == NULL) {
        errno = ENOMEM;
        return NULL;
    }

    seq->tokens = request->tokens;
    seq->n_tokens = request->n_tokens;
    seq->size = request->n_tokens;
    seq->prompt = request->n_tokens - request->n_resume;
    seq->max_tokens = request->max_tokens;
    seq->ignore_eos = request->ignore_eos;
    seq->sampling = request->sampling;
    seq->owner = request->owner;
    seq->submit_time = dsa_clock_ms();

    for (i = 0; i < DSA_SCHED_DEPTH; i++) {
        seq->entry[i] = DSA_NO_ENTRY;
    }

    memcpy(seq->salt, request->tenant, sizeof(seq->salt));

    if (request->private
        && getrandom(seq->salt, sizeof(seq->salt), 0) != sizeof(seq->salt))
    {
        free(seq);
        return NULL;
    }

    seq->tenant = dsa_sched_tenant(s, request->tenant, request->weight);

    if (seq->tenant == NULL) {
        seq->tokens = NULL;
        dsa_seq_free(seq);
        errno = ENOMEM;
        return NULL;
    }

    seq->tenant->seqs++;
    seq->tenant->weight = request->weight;

    /* a step may be made for the first token before that is known */

    if (dsa_seq_reserve(seq, dsa_pages_of(seq->n_tokens + 1)) != DSA_OK
        || dsa_seq_digests(s, seq, seq->n_tokens / DSA_PAGE_TOKENS) != DSA_OK)
    {
        dsa_sched_leave(s, seq->tenant);
        seq->tokens = NULL;
        dsa_seq_free(seq);
        errno = ENOMEM;
        return NULL;
    }

    if (crowd != NULL) {
        dsa_sched_drop(s, crowd->waiting.last);
    }

    /* who comes to the line starts where it is: idleness saves up nothing */

    if (seq->tenant->waiting.first == NULL
        && seq->tenant->prefill.first == NULL
        && seq->tenant->served < s->clock)
    {
        seq->tenant->served = s->clock;
    }

    dsa_sched_wait(s, seq, 0);

    return seq;
}


/*
 * Whether the request may wait.  Where the whole queue is full, *crowd is the
 * tenant that makes room for it, otherwise NULL.
 */

static int
dsa_sched_room(const dsa_sched_t *s, const dsa_sched_request_t *request,
    dsa_tenant_t **crowd)
{
    uint32_t             open, n;
    const dsa_tenant_t  *t;

    *crowd = NULL;
    t = dsa_sched_find(s, request->tenant);
    n = t != NULL ? t->n_waiting : 0;

    /* those that the next step takes do not fill the queue */

    open = s->conf.max_running - s->n_live;

    if (n >= (uint64_t) s->conf.max_waiting_per_tenant + open) {
        return DSA_AGAIN;
    }

    if (s->n_waiting < (uint64_t) s->conf.max_waiting + open) {
        return DSA_OK;
    }

    *crowd = dsa_sched_crowd(s, (double) (n + 1) / request->weight);

    /* its weight may change with this request */

    return *crowd != NULL && *crowd != t ? DSA_OK : DSA_AGAIN;
}


/* At the end of its tenant's waiting list, or as its first. */

static void
dsa_sched_wait(dsa_sched_t *s, dsa_seq_t *seq, int first)
{
    if (first) {
        dsa_seq_push_front(&seq->tenant->waiting, seq);

    } else {
        dsa_seq_push(&seq->tenant->waiting, seq);
    }

    seq->tenant->n_waiting++;
    s->n_waiting++;
}


static void
dsa_sched_drop(dsa_sched_t *s, dsa_seq_t *seq)
{
    dsa_sched_stop(s, seq);
    s->handler.dropped(seq->owner);

    dsa_sched_leave(s, seq->tenant);
    dsa_seq_free(seq);
}


uint32_t
dsa_sched_cached(const dsa_sched_t *s, const dsa_seq_t *seq)
{
    int       in_use;
    uint32_t  i, n;

    if (seq->state != DSA_SEQ_WAITING) {
        return seq->cached;
    }

    n = (seq->prompt - 1) / DSA_PAGE_TOKENS;

    for (i = 0; i < n; i++) {
        if (dsa_pages_peek(s->pages, &seq->digest[i], &in_use)
            == DSA_NO_PAGE)
        {
            break;
        }
    }

    return i * DSA_PAGE_TOKENS;
}


void
dsa_sched_cancel(dsa_sched_t *s, dsa_seq_t *seq, dsa_link_finish_e finish)
{
    dsa_sched_finish(s, seq, finish, dsa_clock_ms());
}


int
dsa_sched_busy(const dsa_sched_t *s)
{
    return s->n_live != 0 || s->n_waiting != 0 || s->started != 0;
}


/*
 * A step is made and started while the one before it is under way, where the
 * backend can, and that one is waited for afterwards.  Its samples are not
 * known yet: sequences go on as if nothing ended with them, and the row of one
 * that does is left behind.
 */

int
dsa_sched_step(dsa_sched_t *s, dsa_err_t *err)
{
    if (s->started != 0 && !dsa_sched_ahead(s)
        && dsa_sched_collect(s, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (dsa_sched_start(s, err) != DSA_OK) {
        return DSA_ERROR;
    }

    while (s->started >= s->backend->depth
           || (s->started != 0 && s->now->n_batch == 0))
    {
        if (dsa_sched_collect(s, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/* Penalties need the last token to sample the next one. */

static int
dsa_sched_ahead(const dsa_sched_t *s)
{
    uint32_t          i;
    const dsa_seq_t  *seq;

    for (i = 0; i < s->n_running; i++) {
        seq = s->running[i];

        if (seq != NULL && (seq->sampling.frequency_penalty != 0
                            || seq->sampling.presence_penalty != 0))
        {
            return 0;
        }
    }

    return 1;
}


static int
dsa_sched_start(dsa_sched_t *s, dsa_err_t *err)
{
    uint32_t           i, rows, length, before;
    dsa_seq_t         *seq;
    dsa_batch_seq_t   *b;
    dsa_sched_step_t  *step;

    /* where nothing is promised, no step needs to be before this one */

    before = (s->first + s->started + DSA_SCHED_DEPTH - 1) % DSA_SCHED_DEPTH;
    step = &s->ring[(s->first + s->started) % DSA_SCHED_DEPTH];
    step->n_batch = 0;
    s->now = step;
    rows = s->conf.token_budget;

    dsa_sched_decodes(s, &rows);
    dsa_sched_prefills(s, rows);

    for (i = 0; i < step->n_batch; i++) {
        seq = step->member[i];
        b = &step->batch[i];
        length = seq->n_tokens + seq->promised;

        b->tokens = seq->tokens;
        b->start = seq->issued;
        b->prompt = seq->prompt;
        b->pages = seq->pages;
        b->sample = &step->sample[i];
        b->sampling = seq->issued + b->n == length ? &seq->sampling : NULL;
        b->follows = seq->promised ? seq->entry[before] : DSA_FOLLOWS_NONE;
    }

    if (step->n_batch == 0) {
        return DSA_OK;
    }

    if (s->backend->start(s->backend, step->batch, step->n_batch, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    for (i = 0; i < step->n_batch; i++) {
        seq = step->member[i];

        seq->issued += step->batch[i].n;
        seq->promised = step->batch[i].sampling != NULL;
    }

    s->started++;
    s->stats.steps++;

    return DSA_OK;
}


/* The oldest step that was started ends; its tokens are told. */

static int
dsa_sched_collect(dsa_sched_t *s, dsa_err_t *err)
{
    uint32_t           i;
    uint64_t           now;
    dsa_seq_t         *seq;
    dsa_sched_step_t  *step;

    step = &s->ring[s->first];

    if (s->backend->wait(s->backend, err) != DSA_OK) {
        return DSA_ERROR;
    }

    s->first = (s->first + 1) % DSA_SCHED_DEPTH;
    s->started--;
    now = dsa_clock_ms();

    for (i = 0; i < step->n_batch; i++) {
        seq = step->member[i];

        if (seq == NULL) {
            continue;
        }

        step->member[i] = NULL;
        seq->entry[step - s->ring] = DSA_NO_ENTRY;

        if (dsa_sched_computed(s, seq, step->batch[i].n) != DSA_OK) {
            return dsa_error(err, "out of memory");
        }

        if (step->batch[i].sampling != NULL
            && dsa_sched_sampled(s, seq, &step->sample[i], now) != DSA_OK)
        {
            return dsa_error(err, "out of memory");
        }
    }

    dsa_sched_compact(s);

    return DSA_OK;
}


void
dsa_sched_stats(const dsa_sched_t *s, dsa_sched_stats_t *stats)
{
    *stats = s->stats;

    stats->running = s->n_live;
    stats->waiting = s->n_waiting;
    stats->pages_used = dsa_pages_total(s->pages) - dsa_pages_free(s->pages);
}


int
dsa_sched_audit(const dsa_sched_t *s, dsa_err_t *err)
{
    int                  rc;
    uint32_t             i, j, n, waiting, running, seqs, pages, *users;
    const dsa_seq_t     *seq;
    const dsa_tenant_t  *t;

    n = dsa_pages_total(s->pages);
    users = calloc(n, sizeof(uint32_t));

    if (users == NULL) {
        return dsa_error(err, "out of memory");
    }

    rc = DSA_OK;
    running = 0;

    for (i = 0; i < s->n_running; i++) {
        seq = s->running[i];

        if (seq == NULL) {
            continue;
        }

        running++;

        if (seq->index != i || seq->state == DSA_SEQ_WAITING
            || seq->n_pages < dsa_pages_of(seq->computed)
            || seq->computed >= seq->n_tokens
            || seq->counted < (seq->computed < seq->prompt ? seq->computed
                                                           : seq->prompt)
            || seq->counted > seq->prompt || seq->cached > seq->counted)
        {
            rc = dsa_error(err, "running sequence %u is in disorder", i);
            goto done;
        }

        for (j = 0; j < seq->n_pages; j++) {
            users[seq->pages[j]]++;
        }
    }

    waiting = 0;
    t = s->turn;

    while (t != NULL) {
        seqs = 0;
        pages = 0;

        for (seq = t->waiting.first; seq != NULL; seq = seq->next) {
            if (seq->state != DSA_SEQ_WAITING || seq->n_pages != 0
                || seq->computed != 0
                || (seq->started && seq->prev != NULL && !seq->prev->started))
            {
                rc = dsa_error(err, "a waiting sequence is in disorder");
                goto done;
            }

            waiting++;
            seqs++;
        }

        if (t->n_waiting != seqs) {
            rc = dsa_error(err, "a tenant counts %u waiting sequences, %u are "
                           "there", t->n_waiting, seqs);
            goto done;
        }

        for (i = 0; i < s->n_running; i++) {
            if (s->running[i] != NULL && s->running[i]->tenant == t) {
                pages += s->running[i]->n_pages;
                seqs++;
            }
        }

        if (t->seqs != seqs || seqs == 0 || t->pages != pages) {
            rc = dsa_error(err, "a tenant counts %u sequences with %u pages, "
                           "%u with %u are there", t->seqs, t->pages, seqs,
                           pages);
            goto done;
        }

        t = t->next != s->turn ? t->next : NULL;
    }

    if (running != s->n_live || waiting != s->n_waiting) {
        rc = dsa_error(err, "%u running and %u waiting are counted, %u and "
                       "%u are there", s->n_live, s->n_waiting, running,
                       waiting);
        goto done;
    }

    rc = dsa_pages_audit(s->pages, users, err);

done:

    free(users);

    return rc;
}


/* It decodes, and the token that it was promised is not its last one. */

static int
dsa_sched_goes_on(const dsa_seq_t *seq)
{
    return seq->state == DSA_SEQ_DECODE
           && seq->completion + seq->promised < seq->max_tokens;
}


/* One row for each sequence that lacks only its last token. */

static void
dsa_sched_decodes(dsa_sched_t *s, uint32_t *rows)
{
    uint32_t    i;
    dsa_seq_t  *seq;

    for (i = 0; i < s->n_running; i++) {
        seq = s->running[i];

        if (seq != NULL && dsa_sched_goes_on(seq)) {
            (void) dsa_sched_grow(s, seq);
        }
    }

    dsa_sched_compact(s);

    for (i = 0; i < s->n_running; i++) {
        seq = s->running[i];

        if (dsa_sched_goes_on(seq)) {
            dsa_sched_rows(s, seq, 1);
            seq->tenant->served += 1.0 / seq->tenant->weight;
            (*rows)--;
        }
    }
}


/*
 * The page of the sequence's last token.  Where there is none the heaviest
 * tenant gives up sequences until there is; DSA_AGAIN when this one was among
 * them.
 */

static int
dsa_sched_grow(dsa_sched_t *s, dsa_seq_t *seq)
{
    uint32_t  page;

    if (seq->n_pages == dsa_pages_of(seq->n_tokens + seq->promised)) {
        return DSA_OK;
    }

    for ( ;; ) {
        page = dsa_pages_alloc(s->pages);

        if (page != DSA_NO_PAGE) {
            seq->pages[seq->n_pages++] = page;
            seq->tenant->pages++;
            return DSA_OK;
        }

        dsa_sched_preempt(s, dsa_sched_newest(s, dsa_sched_heaviest(s)));

        if (seq->state == DSA_SEQ_WAITING) {
            return DSA_AGAIN;
        }
    }
}


static void
dsa_sched_compact(dsa_sched_t *s)
{
    uint32_t  i, n;

    if (s->n_live == s->n_running) {
        return;
    }

    n = 0;

    for (i = 0; i < s->n_running; i++) {
        if (s->running[i] != NULL) {
            s->running[n] = s->running[i];
            s->running[n]->index = n;
            n++;
        }
    }

    s->n_running = n;
}


/* The rows that decoding left over, to prompts. */

static void
dsa_sched_prefills(dsa_sched_t *s, uint32_t rows)
{
    uint32_t       n, entry, admitted;
    dsa_seq_t     *seq;
    dsa_tenant_t  *t;

    if (s->turn == NULL) {
        return;
    }

    admitted = s->n_live;

    if (s->n_waiting != 0) {
        dsa_sched_reclaim(s);
    }

    dsa_sched_line_up(s);

    while (rows != 0) {
        t = dsa_sched_turn(s);

        if (t == NULL) {
            break;
        }

        seq = t->prefill.first;
        n = seq->n_tokens - seq->issued;

        entry = *dsa_seq_entry(s, seq);

        if (entry != DSA_NO_ENTRY) {
            n -= s->now->batch[entry].n;
        }

        if (n > rows) {
            n = rows;
        }

        if (n > DSA_SCHED_QUANTUM) {
            n = DSA_SCHED_QUANTUM;
        }

        dsa_sched_rows(s, seq, n);
        rows -= n;

        entry = *dsa_seq_entry(s, seq);

        if (seq->issued + s->now->batch[entry].n == seq->n_tokens) {
            dsa_seq_remove(&t->prefill, seq);
            seq->state = DSA_SEQ_DECODE;
        }

        dsa_sched_charge(s, t, n);
    }

    dsa_sched_settle(s, s->n_live > admitted);
}


int
dsa_sched_fits(dsa_sched_t *s, dsa_seq_t *seq)
{
    int       in_use;
    uint32_t  i, n, need;

    if (s->n_live == s->conf.max_running) {
        return 0;
    }

    need = dsa_pages_of(seq->n_tokens);

    if (need + s->n_live <= dsa_pages_free(s->pages)) {
        return 1;
    }

    n = (seq->n_tokens - 1) / DSA_PAGE_TOKENS;

    for (i = 0; i < n; i++) {
        if (dsa_pages_peek(s->pages, &seq->digest[i], &in_use)
            == DSA_NO_PAGE)
        {
            break;
        }

        need -= (uint32_t) in_use;
    }

    return need + s->n_live <= dsa_pages_free(s->pages);
}


int
dsa_sched_admit(dsa_sched_t *s, dsa_tenant_t *t)
{
    uint32_t    i, n, page;
    dsa_seq_t  *seq;

    seq = t->waiting.first;

    if (seq == NULL || (s->claim != NULL && s->claim != t)
        || !dsa_sched_fits(s, seq))
    {
        return DSA_AGAIN;
    }

    n = (seq->n_tokens - 1) / DSA_PAGE_TOKENS;

    for (i = 0; i < n; i++) {
        page = dsa_pages_find(s->pages, &seq->digest[i]);

        if (page == DSA_NO_PAGE) {
            break;
        }

        seq->pages[i] = page;
    }

    seq->computed = i * DSA_PAGE_TOKENS;
    seq->issued = seq->computed;
    seq->published = i;

    for (n = dsa_pages_of(seq->n_tokens); i < n; i++) {
        seq->pages[i] = dsa_pages_alloc(s->pages);
    }

    seq->n_pages = n;
    t->pages += n;

    dsa_seq_remove(&t->waiting, seq);
    t->n_waiting--;
    s->n_waiting--;

    dsa_seq_push(&t->prefill, seq);
    seq->state = DSA_SEQ_PREFILL;
    t->running++;
    t->passed_by = 0;

    dsa_sched_compact(s);
    seq->index = s->n_running;
    s->running[s->n_running++] = seq;
    s->n_live++;

    if (s->claim == t) {
        s->claim = NULL;
    }

    if (!seq->started) {
        seq->started = 1;
        seq->start_time = dsa_clock_ms();
    }

    dsa_sched_count(s, seq, 1);

    return DSA_OK;
}


static void
dsa_sched_rows(dsa_sched_t *s, dsa_seq_t *seq, uint32_t n)
{
    uint32_t          *entry;
    dsa_sched_step_t  *step;

    step = s->now;
    entry = dsa_seq_entry(s, seq);

    if (*entry == DSA_NO_ENTRY) {
        *entry = step->n_batch++;
        step->member[*entry] = seq;
        step->batch[*entry].n = 0;
    }

    step->batch[*entry].n += n;
}


/* n more rows are in the cache: pages that became full can be found now. */

static int
dsa_sched_computed(dsa_sched_t *s, dsa_seq_t *seq, uint32_t n)
{
    uint32_t  full;

    seq->computed += n;
    dsa_sched_count(s, seq, 0);
    full = seq->computed / DSA_PAGE_TOKENS;

    if (full > seq->n_digests && dsa_seq_digests(s, seq, full) != DSA_OK) {
        return DSA_ERROR;
    }

    while (seq->published < full) {
        dsa_pages_publish(s->pages, seq->pages[seq->published],
                          &seq->digest[seq->published]);
        seq->published++;
    }

    return DSA_OK;
}


/*
 * The prompt's rows in the cache, each once: what is computed again after
 * preemption was counted before.  Rows of steps under way count when the step
 * ends, so that those of a sequence that is cancelled meanwhile do not.
 */

static void
dsa_sched_count(dsa_sched_t *s, dsa_seq_t *seq, int found)
{
    uint32_t  n;

    n = seq->computed < seq->prompt ? seq->computed : seq->prompt;

    if (n <= seq->counted) {
        return;
    }

    n -= seq->counted;
    seq->counted += n;
    s->stats.prompt_tokens += n;

    if (found) {
        seq->cached += n;
        s->stats.cached_tokens += n;
    }
}


static int
dsa_sched_sampled(dsa_sched_t *s, dsa_seq_t *seq, const dsa_sample_t *sample,
    uint64_t now)
{
    int        finish;
    uint32_t   size, *tokens;

    if (seq->completion++ == 0) {
        seq->first_time = now;
    }

    /* a step after this one may have promised another */

    if (seq->issued <= seq->n_tokens) {
        seq->promised = 0;
    }

    seq->last_time = now;
    s->stats.completion_tokens++;

    if (sample->token == s->backend->config.eos_token_id && !seq->ignore_eos) {
        dsa_sched_finish(s, seq, DSA_LINK_FINISH_STOP, now);
        return DSA_OK;
    }

    finish = s->handler.token(seq->owner, sample);

    if (finish == 0 && seq->completion == seq->max_tokens) {
        finish = DSA_LINK_FINISH_LENGTH;
    }

    if (finish != 0) {
        dsa_sched_finish(s, seq, (dsa_link_finish_e) finish, now);
        return DSA_OK;
    }

    if (seq->n_tokens == seq->size) {
        size = seq->size + seq->size / 2 + DSA_PAGE_TOKENS;
        tokens = realloc(seq->tokens, size * sizeof(uint32_t));

        if (tokens == NULL) {
            return DSA_ERROR;
        }

        seq->tokens = tokens;
        seq->size = size;
    }

    seq->tokens[seq->n_tokens++] = sample->token;

    return dsa_seq_reserve(seq, dsa_pages_of(seq->n_tokens + 1));
}


void
dsa_sched_preempt(dsa_sched_t *s, dsa_seq_t *seq)
{
    dsa_sched_stop(s, seq);

    seq->state = DSA_SEQ_WAITING;
    seq->computed = 0;
    seq->issued = 0;
    seq->promised = 0;
    seq->published = 0;

    dsa_sched_wait(s, seq, 1);
    s->stats.preemptions++;
}


/* Out of every list, and its pages free. */

static void
dsa_sched_stop(dsa_sched_t *s, dsa_seq_t *seq)
{
    uint32_t           i, last, entry;
    dsa_sched_step_t  *step;

    if (seq->state == DSA_SEQ_WAITING) {
        dsa_seq_remove(&seq->tenant->waiting, seq);
        seq->tenant->n_waiting--;
        s->n_waiting--;
        return;
    }

    if (seq->state == DSA_SEQ_PREFILL) {
        dsa_seq_remove(&seq->tenant->prefill, seq);
    }

    for (i = 0; i < DSA_SCHED_DEPTH; i++) {
        step = &s->ring[(s->first + i) % DSA_SCHED_DEPTH];
        entry = seq->entry[step - s->ring];

        if (entry == DSA_NO_ENTRY) {
            continue;
        }

        seq->entry[step - s->ring] = DSA_NO_ENTRY;

        if (i < s->started) {

            /*
             * What steps under way compute for it goes nowhere.  Its pages may
             * be another's at once: that one's steps come behind those.
             */

            step->member[entry] = NULL;
            continue;
        }

        /* it loses its rows of this step, the last entry takes their place */

        last = --step->n_batch;

        if (last != entry) {
            step->member[entry] = step->member[last];
            step->member[entry]->entry[step - s->ring] = entry;
            step->batch[entry] = step->batch[last];
        }
    }

    s->running[seq->index] = NULL;
    s->n_live--;
    seq->tenant->running--;
    seq->tenant->pages -= seq->n_pages;

    /* the end of a sequence is of less use to others than its beginning */

    while (seq->n_pages != 0) {
        dsa_pages_release(s->pages, seq->pages[--seq->n_pages]);
    }
}


static void
dsa_sched_finish(dsa_sched_t *s, dsa_seq_t *seq, dsa_link_finish_e finish,
    uint64_t now)
{
    dsa_link_done_t  done;

    memset(&done, 0, sizeof(done));

    done.finish = finish;
    done.prompt_tokens = seq->counted;
    done.cached_tokens = seq->cached;
    done.completion_tokens = seq->completion;
    done.queue_ms = (uint32_t) ((seq->started ? seq->start_time : now)
                                - seq->submit_time);

    if (seq->started) {
        done.prefill_ms = (uint32_t) ((seq->completion != 0 ? seq->first_time
                                                            : now)
                                      - seq->start_time);
    }

    done.decode_ms = (uint32_t) (seq->last_time - seq->first_time);

    dsa_sched_stop(s, seq);
    s->handler.done(seq->owner, &done);

    dsa_sched_leave(s, seq->tenant);
    dsa_seq_free(seq);
}
