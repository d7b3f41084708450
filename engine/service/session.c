
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/wake.h"
#include "engine/service/records.h"
#include "engine/service/session.h"


/* requests that are read in one round, while the other sessions wait */

#define DSA_SESSION_REQUESTS    256
#define DSA_SESSION_BYTES       (256 * 1024)


struct dsa_session_s {
    dsa_sessions_t         *all;
    int                     own_wake;   /* wakes the replica */
    int                     peer_wake;  /* wakes the worker */
    pid_t                   pid;        /* of the worker, for the log */
    void                   *base;
    size_t                  mapped;
    dsa_link_t              link;
    dsa_request_t         **slot;       /* [slots] */
    dsa_request_t           requests;   /* head of the ring */
    uint32_t                n_requests;
    dsa_request_t          *ready;      /* requests with something to write */
    dsa_request_t         **ready_end;
};


static dsa_session_t *dsa_session_alloc(dsa_sessions_t *all, int fd);
static void dsa_session_hello(const dsa_session_t *s, uint32_t version,
    dsa_link_hello_t *hello);
static int dsa_session_segment(dsa_session_t *s, int *memfd, dsa_err_t *err);
static int dsa_session_request(dsa_session_t *s,
    const dsa_link_record_t *record, const void *payload, dsa_err_t *err);
static void dsa_session_submit(dsa_session_t *s, dsa_request_t *r);
static uint32_t dsa_session_weight(uint32_t weight);
static void dsa_session_end(dsa_request_t *r, dsa_link_finish_e finish);
static int dsa_session_write(dsa_session_t *s, dsa_request_t *r);
static int dsa_session_write_early(dsa_session_t *s, const dsa_request_t *r);
static int dsa_session_write_last(dsa_session_t *s, const dsa_request_t *r);
static void dsa_session_remove(dsa_session_t *s, dsa_request_t *r);
static void dsa_session_publish_tier(dsa_link_tier_t *to,
    const dsa_tier_stats_t *from);


_Static_assert(sizeof(dsa_link_tier_t) == sizeof(dsa_tier_stats_t),
               "the link has each count of a tier");


dsa_session_t *
dsa_session_create(dsa_sessions_t *all, int fd, uint32_t version,
    dsa_err_t *err)
{
    int                rc, fds[DSA_LINK_FDS];
    dsa_session_t     *s;
    dsa_link_hello_t   hello;

    s = dsa_session_alloc(all, fd);

    if (s == NULL) {
        (void) dsa_error(err, "out of memory for a session");
        return NULL;
    }

    fds[0] = -1;

    if (dsa_session_segment(s, &fds[0], err) != DSA_OK) {
        goto failed;
    }

    s->own_wake = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);
    s->peer_wake = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

    if (s->own_wake == -1 || s->peer_wake == -1) {
        (void) dsa_error(err, "eventfd(): %s", strerror(errno));
        goto failed;
    }

    dsa_session_hello(s, version, &hello);

    rc = dsa_link_attach(&s->link, s->base, s->mapped, &hello);

    if (rc != 0) {
        (void) dsa_error(err, "a segment of %zu bytes does not fit its hello",
                         s->mapped);
        goto failed;
    }

    /* the worker may read the counts as soon as it has the hello */

    dsa_session_publish(s, dsa_clock_ms(), 0);

    fds[1] = s->own_wake;
    fds[2] = s->peer_wake;

    if (dsa_link_send_hello(fd, &hello, fds) != 0) {
        (void) dsa_error(err, "sendmsg(): %s", strerror(errno));
        goto failed;
    }

    (void) close(fds[0]);

    dsa_log_debug("session with worker %d: open, %u slots, version %u",
                  (int) dsa_session_pid(s), hello.slots, version);

    return s;

failed:

    if (fds[0] != -1) {
        (void) close(fds[0]);
    }

    dsa_session_destroy(s);

    return NULL;
}


static dsa_session_t *
dsa_session_alloc(dsa_sessions_t *all, int fd)
{
    socklen_t       len;
    struct ucred    peer;
    dsa_session_t  *s;

    s = calloc(1, sizeof(dsa_session_t));

    if (s == NULL) {
        return NULL;
    }

    s->slot = calloc(all->service->link.slots, sizeof(dsa_request_t *));

    if (s->slot == NULL) {
        free(s);
        return NULL;
    }

    s->all = all;
    s->own_wake = -1;
    s->peer_wake = -1;
    s->requests.prev = &s->requests;
    s->requests.next = &s->requests;
    s->ready_end = &s->ready;

    len = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0) {
        s->pid = peer.pid;
    }

    return s;
}


static void
dsa_session_hello(const dsa_session_t *s, uint32_t version,
    dsa_link_hello_t *hello)
{
    const dsa_service_t  *service;

    service = s->all->service;
    memset(hello, 0, sizeof(dsa_link_hello_t));

    hello->magic = DSA_LINK_MAGIC;
    hello->version = version;
    hello->version_min = DSA_LINK_VERSION_MIN;
    hello->version_max = DSA_LINK_VERSION_MAX;
    hello->slots = service->link.slots;
    hello->segment_size = s->mapped;
    hello->submit_size = service->link.submit;
    hello->event_size = service->link.event;
    hello->context_length = service->context;
    hello->page_tokens = DSA_PAGE_TOKENS;
    hello->pid = (uint32_t) getpid();
    hello->replica = service->replica;
    hello->epoch = service->epoch;
    hello->ids = service->ids;
    hello->temperature = service->generation.temperature;
    hello->top_p = service->generation.top_p;

    (void) snprintf(hello->model, sizeof(hello->model), "%s",
                    service->conf->name);
    (void) snprintf(hello->fingerprint, sizeof(hello->fingerprint), "%s",
                    service->fingerprint);
    (void) snprintf(hello->family, sizeof(hello->family), "%s",
                    service->prompt.name);
}


/*
 * Creates the segment.  It is sealed, because the replica would get SIGBUS if
 * a worker shrank it.
 */

static int
dsa_session_segment(dsa_session_t *s, int *memfd, dsa_err_t *err)
{
    uint64_t                size;
    const dsa_link_size_t  *link;

    link = &s->all->service->link;
    size = dsa_link_segment_size(link->slots, link->submit, link->event);

    *memfd = memfd_create("dsa-link", MFD_CLOEXEC|MFD_ALLOW_SEALING);

    if (*memfd == -1) {
        return dsa_error(err, "memfd_create(): %s", strerror(errno));
    }

    if (ftruncate(*memfd, (off_t) size) == -1
        || fcntl(*memfd, F_ADD_SEALS, F_SEAL_SHRINK|F_SEAL_GROW|F_SEAL_SEAL)
           == -1)
    {
        return dsa_error(err, "a segment of %llu bytes: %s",
                         (unsigned long long) size, strerror(errno));
    }

    s->base = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_SHARED, *memfd, 0);

    if (s->base == MAP_FAILED) {
        s->base = NULL;
        return dsa_error(err, "mmap() of %llu bytes: %s",
                         (unsigned long long) size, strerror(errno));
    }

    s->mapped = size;

    return DSA_OK;
}


void
dsa_session_destroy(dsa_session_t *s)
{
    dsa_request_t  *r;

    dsa_log_debug("session with worker %d: closed", (int) dsa_session_pid(s));

    while (s->requests.next != &s->requests) {
        r = s->requests.next;

        if (r->state == DSA_REQUEST_STEP && !r->cancelled) {
            dsa_step_cancel(s->all->step, r, DSA_LINK_FINISH_CANCELLED);
            r->cancelled = 1;
        }

        if (r->state != DSA_REQUEST_TOKENIZE) {
            dsa_journal_left(s->all->service->journal, r);
        }

        dsa_session_remove(s, r);
    }

    dsa_journal_flush(s->all->service->journal, dsa_clock_ms());

    if (s->base != NULL) {
        (void) munmap(s->base, s->mapped);
    }

    if (s->own_wake != -1) {
        (void) close(s->own_wake);
    }

    if (s->peer_wake != -1) {
        (void) close(s->peer_wake);
    }

    free(s->slot);
    free(s);
}


int
dsa_session_wake_fd(const dsa_session_t *s)
{
    return s->own_wake;
}


pid_t
dsa_session_pid(const dsa_session_t *s)
{
    return s->pid;
}


int
dsa_session_read(dsa_session_t *s, dsa_err_t *err)
{
    int                 rc;
    size_t              n, bytes;
    const void         *payload;
    dsa_link_record_t   record;

    bytes = 0;

    for (n = 0; n < DSA_SESSION_REQUESTS && bytes < DSA_SESSION_BYTES; n++) {
        rc = dsa_link_peek(&s->link.submit, &record, &payload);

        if (rc == 0) {
            return DSA_OK;
        }

        if (rc < 0) {
            return dsa_error(err, "the submit ring is corrupt");
        }

        if (record.type != DSA_LINK_SUBMIT && record.type != DSA_LINK_COUNT) {
            return dsa_error(err, "a record of type %u in the submit ring",
                             record.type);
        }

        bytes += record.length;
        rc = dsa_session_request(s, &record, payload, err);

        if (rc != DSA_OK) {
            return rc;
        }

        dsa_link_release(&s->link.submit);
    }

    return DSA_AGAIN;
}


static int
dsa_session_request(dsa_session_t *s, const dsa_link_record_t *record,
    const void *payload, dsa_err_t *err)
{
    uint32_t        slot;
    dsa_request_t  *r;

    slot = dsa_link_slot(record->id);

    if (slot >= s->link.slots || dsa_link_epoch(record->id) == 0
        || s->slot[slot] != NULL)
    {
        return dsa_error(err, "a request for slot %u of %u, epoch %u, which "
                         "is %s", slot, s->link.slots,
                         dsa_link_epoch(record->id),
                         slot < s->link.slots && s->slot[slot] != NULL
                         ? "in use" : "not possible");
    }

    r = dsa_request_create((dsa_link_type_e) record->type, record->id,
                           payload, record->length);

    if (r == NULL) {
        return dsa_error(err, "out of memory for a request of %u bytes",
                         record->length);
    }

    r->session = s;
    r->worker = s->pid;
    r->next = &s->requests;
    r->prev = s->requests.prev;
    r->prev->next = r;
    s->requests.prev = r;

    s->slot[slot] = r;
    s->n_requests++;

    dsa_session_submit(s, r);

    return DSA_OK;
}


static void
dsa_session_submit(dsa_session_t *s, dsa_request_t *r)
{
    int                rc;
    dsa_link_count_t   count;
    dsa_link_submit_t  head;

    if (s->all->draining) {
        dsa_request_reject(r, DSA_LINK_E_DRAINING,
                           "the replica accepts no new requests");
        dsa_session_ready(r);
        return;
    }

    if (r->type == DSA_LINK_SUBMIT && r->len >= sizeof(head)) {
        memcpy(&head, r->copy, sizeof(head));
        memcpy(r->tenant, head.tenant, sizeof(r->tenant));
        r->weight = dsa_session_weight(head.weight);
        r->deadline_ms = head.deadline_ms;
    }

    if (r->type == DSA_LINK_COUNT && r->len >= sizeof(count)) {
        memcpy(&count, r->copy, sizeof(count));
        memcpy(r->tenant, count.tenant, sizeof(r->tenant));
        r->weight = dsa_session_weight(count.weight);
    }

    dsa_log_debug("request %d/%u.%u: %s of %zu bytes waits to be tokenized",
                  (int) dsa_session_pid(s), dsa_link_slot(r->id),
                  dsa_link_epoch(r->id),
                  r->type == DSA_LINK_COUNT ? "a count" : "a prompt",
                  (size_t) r->len);

    rc = dsa_pool_push(s->all->pool, r);

    if (rc != DSA_OK) {
        dsa_request_reject(r, rc == DSA_AGAIN ? DSA_LINK_E_TENANT
                                              : DSA_LINK_E_OVERLOADED,
                           rc == DSA_AGAIN
                           ? "too many prompts of this tenant wait to be "
                             "tokenized"
                           : "out of memory");
        dsa_session_ready(r);
    }
}


/* A weight from the ring; a wrong one is rejected with the record. */

static uint32_t
dsa_session_weight(uint32_t weight)
{
    if (weight == 0) {
        return 1;
    }

    return weight < DSA_LINK_MAX_WEIGHT ? weight : DSA_LINK_MAX_WEIGHT;
}


void
dsa_session_poll(dsa_session_t *s, uint64_t now_ms)
{
    dsa_request_t  *r, *next;

    for (r = s->requests.next; r != &s->requests; r = next) {
        next = r->next;

        if (dsa_link_cancelled(&s->link, r->id)) {
            dsa_session_end(r, DSA_LINK_FINISH_CANCELLED);

            if (r->state != DSA_REQUEST_TOKENIZE && !r->muted) {

                /* the worker ignores further text */

                r->muted = 1;
                r->done.finish = DSA_LINK_FINISH_CANCELLED;
                dsa_answer_free(&r->answer);
                dsa_buf_free(&r->rows);
                r->rows_sent = 0;
            }

        } else if (r->deadline_ms != 0 && now_ms >= r->deadline_ms) {
            dsa_session_end(r, DSA_LINK_FINISH_DEADLINE);
        }
    }
}


/* Ends a request that another thread has, unless it is being ended already. */

static void
dsa_session_end(dsa_request_t *r, dsa_link_finish_e finish)
{
    if (r->state == DSA_REQUEST_TOKENIZE && r->early == 0) {
        dsa_log_debug("request %d/%u.%u: ended with finish %d before it was "
                      "tokenized", (int) dsa_session_pid(r->session),
                      dsa_link_slot(r->id), dsa_link_epoch(r->id),
                      (int) finish);

        r->early = DSA_LINK_DONE;
        r->early_code = finish;
        atomic_store(&r->abandoned, 1);
        dsa_session_ready(r);
    }

    if (r->state == DSA_REQUEST_STEP && !r->cancelled) {
        dsa_log_debug("request %d/%u.%u: cancelled with finish %d",
                      (int) dsa_session_pid(r->session), dsa_link_slot(r->id),
                      dsa_link_epoch(r->id), (int) finish);

        r->cancelled = 1;
        dsa_step_cancel(r->session->all->step, r, finish);
    }
}


void
dsa_session_ready(dsa_request_t *r)
{
    dsa_session_t  *s;

    s = r->session;

    if (!r->ready) {
        r->ready = 1;
        r->next_ready = NULL;
        *s->ready_end = r;
        s->ready_end = &r->next_ready;
    }
}


int
dsa_session_flush(dsa_session_t *s, dsa_err_t *err)
{
    int             rc;
    dsa_request_t  *r;

    rc = DSA_OK;

    /* the next call starts with the request that did not fit */

    while (s->ready != NULL) {
        r = s->ready;
        rc = dsa_session_write(s, r);

        if (rc != DSA_OK) {
            break;
        }

        s->ready = r->next_ready;
        r->ready = 0;

        if (s->ready == NULL) {
            s->ready_end = &s->ready;
        }

        if (r->early != 0 || r->last != 0) {
            dsa_session_remove(s, r);
        }
    }

    return rc != DSA_ERROR ? rc : dsa_error(err, "the event ring is corrupt");
}


void
dsa_session_commit(dsa_session_t *s)
{
    if (dsa_link_commit(&s->link.event)) {
        dsa_wake(s->peer_wake);
    }
}


/* Writes all records of a request.  DSA_AGAIN: the ring has no room. */

static int
dsa_session_write(dsa_session_t *s, dsa_request_t *r)
{
    int               rc;
    uint32_t          n;
    dsa_journal_t    *journal;
    dsa_link_ring_t  *ring;

    ring = &s->link.event;
    journal = s->all->service->journal;

    if (r->early != 0) {
        return dsa_session_write_early(s, r);
    }

    if (r->accept) {
        rc = dsa_record_accepted(ring, r->id, &r->accepted);

        if (rc != DSA_OK) {
            return rc;
        }

        r->accept = 0;
        dsa_journal_accepted(journal, r);
    }

    while (r->rows_sent != r->rows.len) {
        rc = dsa_record_rows(ring, r->id, &r->rows, &r->rows_sent);

        if (rc != DSA_OK) {
            return rc;
        }
    }

    /*
     * The rest of the text, without tokens, ends an answer.  Before an ERROR
     * it is not sent: if another replica continues the answer, its tokens
     * bring this text once more.
     */

    while (r->answer.n_ready != 0
           || (r->answer.ready != 0 && r->last == DSA_LINK_DONE))
    {
        n = r->answer.n_ready;
        rc = dsa_record_tokens(ring, r->id, &r->answer);

        if (rc != DSA_OK) {
            return rc;
        }

        n -= r->answer.n_ready;
        r->sent += n;
        dsa_journal_tokens(journal, r, n);
    }

    if (r->last == 0) {
        return DSA_OK;
    }

    rc = dsa_session_write_last(s, r);

    if (rc == DSA_OK) {
        dsa_journal_last(journal, r);
    }

    return rc;
}


static int
dsa_session_write_early(dsa_session_t *s, const dsa_request_t *r)
{
    dsa_link_done_t      done;
    dsa_link_failure_t   failure;

    if (r->early == DSA_LINK_DONE) {
        memset(&done, 0, sizeof(done));
        done.finish = r->early_code;

        return dsa_record_done(&s->link.event, r->id, &done);
    }

    memset(&failure, 0, sizeof(failure));
    failure.code = r->early_code;

    return dsa_record_error(&s->link.event, r->id, &failure, NULL);
}


static int
dsa_session_write_last(dsa_session_t *s, const dsa_request_t *r)
{
    dsa_link_ring_t  *ring;

    ring = &s->link.event;

    switch (r->last) {

    case DSA_LINK_DONE:
        return dsa_record_done(ring, r->id, &r->done);

    case DSA_LINK_COUNTED:
        return dsa_record_counted(ring, r->id, &r->counted);

    default:
        return dsa_record_error(ring, r->id, &r->failure, r->reason);
    }
}


/* Frees a request, or detaches it while another thread refers to it. */

static void
dsa_session_remove(dsa_session_t *s, dsa_request_t *r)
{
    dsa_request_t  *detached;

    s->slot[dsa_link_slot(r->id)] = NULL;
    s->n_requests--;

    if (r->state == DSA_REQUEST_IDLE) {
        dsa_request_free(r);
        return;
    }

    detached = &s->all->detached;

    r->prev->next = r->next;
    r->next->prev = r->prev;

    r->next = detached;
    r->prev = detached->prev;
    r->prev->next = r;
    detached->prev = r;

    r->session = NULL;
    atomic_store(&r->abandoned, 1);
}


void
dsa_session_abort(dsa_session_t *s)
{
    dsa_request_t  *r;

    for (r = s->requests.next; r != &s->requests; r = r->next) {

        if (r->state == DSA_REQUEST_TOKENIZE && r->early == 0) {
            r->early = DSA_LINK_ERROR;
            r->early_code = DSA_LINK_E_DRAINING;
            atomic_store(&r->abandoned, 1);
            dsa_session_ready(r);
        }

        if (r->state == DSA_REQUEST_STEP && r->last == 0) {
            dsa_session_end(r, DSA_LINK_FINISH_CANCELLED);
            dsa_request_reject(r, DSA_LINK_E_DRAINING, "the replica stops "
                               "before the answer is complete");
            dsa_session_ready(r);
        }
    }
}


void
dsa_session_publish(dsa_session_t *s, uint64_t now_ms,
    uint64_t step_started_ms)
{
    uint32_t                  i;
    dsa_link_control_t       *c;
    const dsa_sched_stats_t  *stats;

    c = s->link.control;
    stats = &s->all->stats;

    atomic_store_explicit(&c->steps, stats->steps, memory_order_relaxed);
    atomic_store_explicit(&c->prompt_tokens, stats->prompt_tokens,
                          memory_order_relaxed);
    atomic_store_explicit(&c->cached_tokens, stats->cached_tokens,
                          memory_order_relaxed);
    atomic_store_explicit(&c->completion_tokens,
                          s->all->completion_tokens, memory_order_relaxed);
    atomic_store_explicit(&c->preemptions, stats->preemptions,
                          memory_order_relaxed);
    atomic_store_explicit(&c->ended, stats->ended, memory_order_relaxed);
    atomic_store_explicit(&c->draft_tokens, stats->draft_tokens,
                          memory_order_relaxed);

    _Static_assert(DSA_LINK_DRAFTS == DSA_SPEC_MOST,
                   "the positions of drafts");

    for (i = 0; i < DSA_LINK_DRAFTS; i++) {
        atomic_store_explicit(&c->accepted_tokens[i], stats->accepted_at[i],
                              memory_order_relaxed);
    }

    atomic_store_explicit(&c->decodes, stats->decodes, memory_order_relaxed);
    atomic_store_explicit(&c->decode_tokens, stats->decode_tokens,
                          memory_order_relaxed);

    for (i = 0; i <= DSA_TOKEN_TIMES; i++) {
        atomic_store_explicit(&c->token_times[i], stats->token_times[i],
                              memory_order_relaxed);
    }

    atomic_store_explicit(&c->token_us, stats->token_us, memory_order_relaxed);
    atomic_store_explicit(&c->expert_rows, stats->expert_rows,
                          memory_order_relaxed);
    atomic_store_explicit(&c->fullest_rows, stats->fullest_rows,
                          memory_order_relaxed);
    atomic_store_explicit(&c->running, stats->running, memory_order_relaxed);
    atomic_store_explicit(&c->waiting, stats->waiting, memory_order_relaxed);
    atomic_store_explicit(&c->pages, stats->pages, memory_order_relaxed);
    atomic_store_explicit(&c->pages_used, stats->pages_used,
                          memory_order_relaxed);
    atomic_store_explicit(&c->draining, s->all->draining,
                          memory_order_relaxed);
    atomic_store_explicit(&c->page_bytes, s->all->service->page_bytes,
                          memory_order_relaxed);

    for (i = 0; i < DSA_TIERS; i++) {
        dsa_session_publish_tier(&c->tier[i], &stats->tier[i]);
    }

    atomic_store_explicit(&c->step_timeout_ms,
                          s->all->service->conf->step_timeout_ms,
                          memory_order_relaxed);
    atomic_store_explicit(&c->step_started_ms, step_started_ms,
                          memory_order_relaxed);
    atomic_store_explicit(&c->alive_ms, now_ms, memory_order_release);
}


static void
dsa_session_publish_tier(dsa_link_tier_t *to, const dsa_tier_stats_t *from)
{
    atomic_store_explicit(&to->pages, from->pages, memory_order_relaxed);
    atomic_store_explicit(&to->used, from->used, memory_order_relaxed);
    atomic_store_explicit(&to->hit_tokens, from->hit_tokens,
                          memory_order_relaxed);
    atomic_store_explicit(&to->read_pages, from->read_pages,
                          memory_order_relaxed);
    atomic_store_explicit(&to->read_bytes, from->read_bytes,
                          memory_order_relaxed);
    atomic_store_explicit(&to->read_us, from->read_us, memory_order_relaxed);
    atomic_store_explicit(&to->write_pages, from->write_pages,
                          memory_order_relaxed);
    atomic_store_explicit(&to->write_bytes, from->write_bytes,
                          memory_order_relaxed);
    atomic_store_explicit(&to->write_us, from->write_us, memory_order_relaxed);
    atomic_store_explicit(&to->abandoned, from->abandoned,
                          memory_order_relaxed);
    atomic_store_explicit(&to->invalid, from->invalid, memory_order_relaxed);
    atomic_store_explicit(&to->failed, from->failed, memory_order_relaxed);
    atomic_store_explicit(&to->lost, from->lost, memory_order_relaxed);
    atomic_store_explicit(&to->servers, from->servers, memory_order_relaxed);
    atomic_store_explicit(&to->servers_on, from->servers_on,
                          memory_order_relaxed);
}


int
dsa_session_sleep(dsa_session_t *s)
{
    return dsa_link_sleep(&s->link.submit);
}


uint32_t
dsa_session_requests(const dsa_session_t *s)
{
    return s->n_requests;
}


int
dsa_session_drained(const dsa_session_t *s)
{
    return atomic_load_explicit(&s->link.event.shared->tail,
                                memory_order_acquire)
           == s->link.event.pending;
}
