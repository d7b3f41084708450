
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
#include <sys/random.h>
#include <unistd.h>

#include "engine/service/answer.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/service/session.h"
#include "engine/service/submit.h"


/* of one session in a turn: a step of the others waits meanwhile */

#define DSA_SESSION_SUBMITS     256
#define DSA_SESSION_BYTES       (256 * 1024)

#define DSA_SESSION_COPY        (1024 * 1024)   /* a larger one is not kept */

/*
 * Tokens of a prompt over the context are counted up to here, for the error:
 * a client that has to shorten its prompt needs the number.  The tokenizer
 * makes some 1.6 million tokens a second, so this holds up the other requests
 * for 80 ms at most.
 */

#define DSA_SESSION_COUNT       131072

#define DSA_LEAST_LOGPROB       -9999.0f        /* JSON has no infinity */


typedef struct dsa_request_s  dsa_request_t;

struct dsa_request_s {
    dsa_request_t          *prev;       /* of the session, in a ring */
    dsa_request_t          *next;
    dsa_session_t          *session;
    dsa_seq_t              *seq;        /* NULL: nothing more will come */
    uint64_t                id;
    uint64_t                deadline;
    uint32_t                prompt_tokens;
    uint32_t                more;       /* 1: at least so many */
    uint32_t                logprobs;
    uint32_t                n_top;      /* as the first token had them */

    /* what waits for room in the ring, in this order */

    uint32_t                accept;     /* 1: an ACCEPT */
    uint32_t                n_tokens;   /* with answer.text */
    uint32_t                size;       /* of end[] and of logprob[] */
    uint32_t               *end;
    dsa_link_logprob_t     *logprob;    /* [size][1 + n_top] */
    uint32_t                error;      /* dsa_link_error_e; else a DONE */
    char                   *reason;
    dsa_link_done_t         done;

    dsa_answer_t            answer;
    uint32_t                stopped;    /* by a stop string */
};


struct dsa_session_s {
    dsa_service_t          *service;
    int                     fd;
    int                     own_event;  /* wakes the replica */
    int                     peer_event; /* wakes the worker */
    void                   *base;
    size_t                  mapped;
    dsa_link_t              link;
    dsa_request_t         **slot;       /* [slots] */
    dsa_request_t           requests;   /* head of the ring */
    uint32_t                n_requests;
    void                   *copy;       /* of a submit's payload */
    size_t                  copy_size;
};


static int dsa_session_segment(dsa_session_t *s, int *memfd, dsa_err_t *err);
static int dsa_session_submit(dsa_session_t *s, uint64_t id,
    const void *payload, size_t len, dsa_err_t *err);
static int dsa_request_start(dsa_request_t *r, const void *copy, size_t len);
static void dsa_request_refuse(dsa_request_t *r, dsa_link_error_e code,
    const char *reason);
static int dsa_request_token(void *owner, const dsa_sample_t *sample);
static int dsa_request_reserve(dsa_request_t *r);
static void dsa_request_logprob(dsa_request_t *r, dsa_link_logprob_t *entry,
    uint32_t token, float logprob);
static void dsa_request_done(void *owner, const dsa_link_done_t *done);
static void dsa_request_dropped(void *owner);
static int dsa_request_flush(dsa_request_t *r);
static int dsa_request_tokens(dsa_request_t *r);
static int dsa_request_record(dsa_request_t *r, uint32_t n, uint32_t len);
static int dsa_request_last(dsa_request_t *r);
static void dsa_request_free(dsa_request_t *r);


const dsa_sched_handler_t  dsa_session_handler = {
    dsa_request_token,
    dsa_request_done,
    dsa_request_dropped
};


dsa_session_t *
dsa_session_create(dsa_service_t *service, int fd, dsa_err_t *err)
{
    int                fds[DSA_LINK_FDS];
    dsa_session_t     *s;
    dsa_link_hello_t   hello;

    s = calloc(1, sizeof(dsa_session_t));

    if (s == NULL) {
        (void) close(fd);
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    s->service = service;
    s->fd = fd;
    s->own_event = -1;
    s->peer_event = -1;
    s->requests.prev = &s->requests;
    s->requests.next = &s->requests;
    fds[0] = -1;

    s->slot = calloc(service->conf->slots, sizeof(dsa_request_t *));

    if (s->slot == NULL) {
        (void) dsa_error(err, "out of memory for %u slots",
                         service->conf->slots);
        goto failed;
    }

    if (dsa_session_segment(s, &fds[0], err) != DSA_OK) {
        goto failed;
    }

    s->own_event = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);
    s->peer_event = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

    if (s->own_event == -1 || s->peer_event == -1) {
        (void) dsa_error(err, "eventfd(): %s", strerror(errno));
        goto failed;
    }

    memset(&hello, 0, sizeof(hello));

    hello.magic = DSA_LINK_MAGIC;
    hello.version = DSA_LINK_VERSION;
    hello.slots = service->conf->slots;
    hello.segment_size = s->mapped;
    hello.submit_size = service->conf->submit_ring;
    hello.event_size = service->conf->event_ring;
    hello.context_length = dsa_sched_context(service->sched);
    hello.page_tokens = DSA_PAGE_TOKENS;
    hello.pid = (uint32_t) getpid();
    hello.replica = service->replica;
    hello.temperature = service->generation.temperature;
    hello.top_p = service->generation.top_p;

    (void) snprintf(hello.model, sizeof(hello.model), "%s",
                    service->conf->name);
    (void) snprintf(hello.fingerprint, sizeof(hello.fingerprint), "%s",
                    service->backend->fingerprint);

    if (dsa_link_attach(&s->link, s->base, s->mapped, &hello) != 0) {
        (void) dsa_error(err, "a segment of %zu bytes does not fit its hello",
                         s->mapped);
        goto failed;
    }

    fds[1] = s->own_event;
    fds[2] = s->peer_event;

    if (dsa_link_send_hello(fd, &hello, fds) != 0) {
        (void) dsa_error(err, "sendmsg(): %s", strerror(errno));
        goto failed;
    }

    (void) close(fds[0]);

    return s;

failed:

    if (fds[0] != -1) {
        (void) close(fds[0]);
    }

    dsa_session_destroy(s);

    return NULL;
}


/* Sealed, so that the worker cannot take it away from under the replica. */

static int
dsa_session_segment(dsa_session_t *s, int *memfd, dsa_err_t *err)
{
    uint64_t  size;

    size = dsa_link_segment_size(s->service->conf->slots,
                                 s->service->conf->submit_ring,
                                 s->service->conf->event_ring);

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

    while (s->requests.next != &s->requests) {
        r = s->requests.next;

        if (r->seq != NULL) {
            dsa_sched_cancel(s->service->sched, r->seq,
                             DSA_LINK_FINISH_CANCELLED);
        }

        dsa_request_free(r);
    }

    if (s->base != NULL) {
        (void) munmap(s->base, s->mapped);
    }

    if (s->own_event != -1) {
        (void) close(s->own_event);
    }

    if (s->peer_event != -1) {
        (void) close(s->peer_event);
    }

    (void) close(s->fd);

    free(s->slot);
    free(s->copy);
    free(s);
}


int
dsa_session_event(const dsa_session_t *s)
{
    return s->own_event;
}


int
dsa_session_read(dsa_session_t *s, dsa_err_t *err)
{
    int                 rc;
    size_t              n, bytes;
    const void         *payload;
    dsa_link_record_t   record;

    bytes = 0;

    for (n = 0; n < DSA_SESSION_SUBMITS && bytes < DSA_SESSION_BYTES; n++) {
        rc = dsa_link_peek(&s->link.submit, &record, &payload);

        if (rc == 0) {
            return DSA_OK;
        }

        if (rc < 0) {
            return dsa_error(err, "the submit ring is corrupt");
        }

        if (record.type != DSA_LINK_SUBMIT) {
            return dsa_error(err, "a record of type %u in the submit ring",
                             record.type);
        }

        bytes += record.length;
        rc = dsa_session_submit(s, record.id, payload, record.length, err);

        if (rc != DSA_OK) {
            return rc;
        }

        dsa_link_release(&s->link.submit);
    }

    return DSA_AGAIN;
}


static int
dsa_session_submit(dsa_session_t *s, uint64_t id, const void *payload,
    size_t len, dsa_err_t *err)
{
    int             rc;
    uint32_t        slot;
    dsa_request_t  *r;

    slot = dsa_link_slot(id);

    if (slot >= s->link.slots || dsa_link_generation(id) == 0
        || s->slot[slot] != NULL)
    {
        return dsa_error(err, "a submit in slot %u of %u, generation %u, "
                         "which is %s", slot, s->link.slots,
                         dsa_link_generation(id),
                         slot < s->link.slots && s->slot[slot] != NULL
                         ? "taken" : "not possible");
    }

    if (len > s->copy_size) {
        free(s->copy);
        s->copy = malloc(len);
        s->copy_size = s->copy != NULL ? len : 0;
    }

    r = calloc(1, sizeof(dsa_request_t));

    if (r == NULL || (s->copy == NULL && len != 0)) {
        free(r);
        return dsa_error(err, "out of memory for a submit of %zu bytes", len);
    }

    r->session = s;
    r->id = id;

    r->next = &s->requests;
    r->prev = s->requests.prev;
    r->prev->next = r;
    s->requests.prev = r;

    s->slot[slot] = r;
    s->n_requests++;

    if (s->service->draining) {
        dsa_request_refuse(r, DSA_LINK_E_DRAINING,
                           "the replica takes no new requests");
        return DSA_OK;
    }

    if (len != 0) {
        memcpy(s->copy, payload, len);
    }

    rc = dsa_request_start(r, s->copy, len);

    if (s->copy_size > DSA_SESSION_COPY) {
        free(s->copy);
        s->copy = NULL;
        s->copy_size = 0;
    }

    return rc;
}


/* DSA_OK also where the request is refused. */

static int
dsa_request_start(dsa_request_t *r, const void *copy, size_t len)
{
    int                    rc;
    uint32_t               context, most;
    dsa_err_t              err;
    dsa_tokens_t           tokens;
    dsa_submit_t           submit;
    dsa_service_t         *service;
    dsa_sched_request_t    request;

    service = r->session->service;
    context = dsa_sched_context(service->sched);
    memset(&tokens, 0, sizeof(tokens));

    if (dsa_submit_decode(&submit, copy, len, &err) != DSA_OK) {
        dsa_request_refuse(r, DSA_LINK_E_INVALID, err.text);
        return DSA_OK;
    }

    most = context > DSA_SESSION_COUNT ? context : DSA_SESSION_COUNT;

    rc = dsa_submit_tokenize(&submit, service->tokenizer, service->work,
                             most, &tokens, &err);

    if (rc == DSA_ERROR) {
        dsa_request_refuse(r, DSA_LINK_E_INVALID, err.text);
        goto done;
    }

    r->more = rc == DSA_AGAIN;
    r->prompt_tokens = r->more ? most : tokens.n;

    if (r->prompt_tokens >= context
        || submit.head.max_tokens > context - r->prompt_tokens)
    {
        (void) dsa_error(&err, "the prompt has %s%u tokens, max_tokens is %u, "
                         "together %u are possible",
                         r->more ? "more than " : "",
                         r->prompt_tokens, submit.head.max_tokens, context);
        dsa_request_refuse(r, DSA_LINK_E_CONTEXT, err.text);
        goto done;
    }

    if (dsa_answer_init(&r->answer, submit.stop, submit.head.n_stop)
        != DSA_OK)
    {
        dsa_request_refuse(r, DSA_LINK_E_INTERNAL, "out of memory");
        goto done;
    }

    memset(&request, 0, sizeof(request));

    request.tokens = tokens.ids;
    request.n_tokens = tokens.n;
    request.max_tokens = submit.head.max_tokens != 0
                         ? submit.head.max_tokens : context - tokens.n;
    request.weight = submit.head.weight;
    request.ignore_eos = (submit.head.flags & DSA_LINK_IGNORE_EOS) != 0;
    request.private = (submit.head.flags & DSA_LINK_PRIVATE) != 0;
    request.owner = r;

    memcpy(request.tenant, submit.head.tenant, sizeof(request.tenant));

    request.sampling.temperature = submit.head.temperature;
    request.sampling.top_p = submit.head.top_p;
    request.sampling.frequency_penalty = submit.head.frequency_penalty;
    request.sampling.presence_penalty = submit.head.presence_penalty;
    request.sampling.seed = submit.head.seed;
    request.sampling.logprobs = (submit.head.flags & DSA_LINK_LOGPROBS) != 0;
    request.sampling.top_logprobs = submit.head.top_logprobs;

    if ((submit.head.flags & DSA_LINK_HAS_SEED) == 0
        && getrandom(&request.sampling.seed, sizeof(request.sampling.seed), 0)
           != sizeof(request.sampling.seed))
    {
        dsa_request_refuse(r, DSA_LINK_E_INTERNAL, "getrandom() failed");
        goto done;
    }

    r->logprobs = request.sampling.logprobs;
    r->deadline = submit.head.deadline;
    r->seq = dsa_sched_add(service->sched, &request);

    if (r->seq == NULL) {
        if (errno == EAGAIN) {
            dsa_request_refuse(r, DSA_LINK_E_OVERLOADED,
                               "too many requests wait already");

        } else {
            dsa_request_refuse(r, DSA_LINK_E_INTERNAL, strerror(errno));
        }

        goto done;
    }

    r->accept = 1;

    return DSA_OK;

done:

    free(tokens.ids);

    return DSA_OK;
}


static void
dsa_request_refuse(dsa_request_t *r, dsa_link_error_e code,
    const char *reason)
{
    free(r->reason);

    r->error = code;
    r->reason = strdup(reason);     /* NULL: an error without a text */
}


void
dsa_session_poll(dsa_session_t *s, uint64_t now)
{
    int             cancelled;
    dsa_request_t  *r;

    for (r = s->requests.next; r != &s->requests; r = r->next) {
        cancelled = dsa_link_cancelled(&s->link, r->id);

        if (r->seq != NULL) {
            if (cancelled) {
                dsa_sched_cancel(s->service->sched, r->seq,
                                 DSA_LINK_FINISH_CANCELLED);

            } else if (r->deadline != 0 && now >= r->deadline) {
                dsa_sched_cancel(s->service->sched, r->seq,
                                 DSA_LINK_FINISH_DEADLINE);
            }
        }

        if (cancelled) {

            /* nobody waits for the text any more */

            r->done.finish = DSA_LINK_FINISH_CANCELLED;
            r->n_tokens = 0;
            dsa_answer_free(&r->answer);
        }
    }
}


/* A token of the answer. */

static int
dsa_request_token(void *owner, const dsa_sample_t *sample)
{
    int                  rc;
    uint32_t             i, token;
    dsa_str_t            bytes;
    dsa_request_t       *r;
    dsa_link_logprob_t  *entry;

    r = owner;

    if (r->logprobs && r->end == NULL) {
        r->n_top = sample->n_top;
    }

    bytes = dsa_token_bytes(r->session->service->tokenizer, sample->token);

    if (dsa_request_reserve(r) != DSA_OK) {
        goto failed;
    }

    rc = dsa_answer_add(&r->answer, bytes);

    if (rc == DSA_ERROR) {
        goto failed;
    }

    if (r->logprobs) {
        entry = r->logprob + (size_t) r->n_tokens * (1 + r->n_top);

        dsa_request_logprob(r, entry++, sample->token, sample->logprob);

        for (i = 0; i < r->n_top; i++) {
            token = i < sample->n_top ? sample->top[i] : sample->token;
            dsa_request_logprob(r, entry++, token,
                                i < sample->n_top ? sample->top_logprob[i]
                                                  : sample->logprob);
        }
    }

    r->end[r->n_tokens++] = r->answer.ready;

    if (rc == DSA_AGAIN) {
        r->stopped = 1;
        return DSA_LINK_FINISH_STOP;
    }

    return 0;

failed:

    dsa_request_refuse(r, DSA_LINK_E_INTERNAL, "out of memory");

    return DSA_LINK_FINISH_CANCELLED;
}


/* Room for one more token. */

static int
dsa_request_reserve(dsa_request_t *r)
{
    void      *p;
    size_t     row;
    uint32_t   size;

    if (r->n_tokens < r->size) {
        return DSA_OK;
    }

    size = r->size == 0 ? 4 : r->size * 2;
    p = realloc(r->end, size * sizeof(uint32_t));

    if (p == NULL) {
        return DSA_ERROR;
    }

    r->end = p;

    if (r->logprobs) {
        row = (1 + r->n_top) * sizeof(dsa_link_logprob_t);
        p = realloc(r->logprob, size * row);

        if (p == NULL) {
            return DSA_ERROR;
        }

        r->logprob = p;
    }

    r->size = size;

    return DSA_OK;
}


static void
dsa_request_logprob(dsa_request_t *r, dsa_link_logprob_t *entry,
    uint32_t token, float logprob)
{
    dsa_str_t  bytes;

    bytes = dsa_token_bytes(r->session->service->tokenizer, token);

    memset(entry, 0, sizeof(dsa_link_logprob_t));

    entry->token = token;
    entry->logprob = logprob > DSA_LEAST_LOGPROB ? logprob
                                                 : DSA_LEAST_LOGPROB;
    entry->len = (uint32_t) bytes.len;

    if (bytes.len != 0) {
        memcpy(entry->bytes, bytes.data,
               bytes.len < sizeof(entry->bytes) ? bytes.len
                                                : sizeof(entry->bytes));
    }
}


/* The sequence is over. */

static void
dsa_request_done(void *owner, const dsa_link_done_t *done)
{
    dsa_request_t  *r;

    r = owner;

    r->seq = NULL;
    r->done = *done;

    if (r->error != 0) {
        return;
    }

    if (!r->stopped && dsa_answer_end(&r->answer) != DSA_OK) {
        dsa_request_refuse(r, DSA_LINK_E_INTERNAL, "out of memory");
        return;
    }

    if (r->n_tokens != 0) {
        r->end[r->n_tokens - 1] = r->answer.ready;
    }
}


/* The sequence made room in the queue. */

static void
dsa_request_dropped(void *owner)
{
    dsa_request_t  *r;

    r = owner;

    r->seq = NULL;
    r->accept = 0;      /* where it is not sent, the worker may go elsewhere */

    dsa_request_refuse(r, DSA_LINK_E_OVERLOADED,
                       "too many requests wait, most of them of this tenant");
}


int
dsa_session_flush(dsa_session_t *s, dsa_err_t *err)
{
    int             rc;
    uint64_t        one;
    ssize_t         n;
    dsa_request_t  *r, *next;

    rc = DSA_OK;

    for (r = s->requests.next; r != &s->requests; r = next) {
        next = r->next;
        rc = dsa_request_flush(r);

        if (rc != DSA_OK) {
            break;
        }

        if (r->seq == NULL) {
            dsa_request_free(r);
        }
    }

    if (rc == DSA_AGAIN && r != s->requests.next) {

        /* who found no room is the first the next time */

        s->requests.next->prev = s->requests.prev;
        s->requests.prev->next = s->requests.next;

        s->requests.next = r;
        s->requests.prev = r->prev;
        s->requests.prev->next = &s->requests;
        r->prev = &s->requests;
    }

    if (rc == DSA_ERROR) {
        return dsa_error(err, "the event ring is corrupt");
    }

    if (dsa_link_commit(&s->link.event)) {
        one = 1;

        do {
            n = write(s->peer_event, &one, sizeof(one));
        } while (n == -1 && errno == EINTR);

        /* EAGAIN: it is as awake as it can be */
    }

    return rc;
}


/* All that a request has to say; DSA_AGAIN when the ring has no room for it. */

static int
dsa_request_flush(dsa_request_t *r)
{
    int                 rc;
    dsa_link_ring_t    *ring;
    dsa_link_accept_t  *accept;

    ring = &r->session->link.event;

    if (r->accept) {
        accept = dsa_link_reserve(ring, DSA_LINK_ACCEPT, r->id,
                                  sizeof(dsa_link_accept_t));

        if (accept == NULL) {
            return errno == EPROTO ? DSA_ERROR : DSA_AGAIN;
        }

        accept->prompt_tokens = r->prompt_tokens;
        accept->reserved = 0;
        r->accept = 0;
    }

    while (r->n_tokens != 0
           || (r->answer.ready != 0 && r->seq == NULL))
    {
        rc = dsa_request_tokens(r);

        if (rc != DSA_OK) {
            return rc;
        }
    }

    return r->seq == NULL ? dsa_request_last(r) : DSA_OK;
}


/*
 * One TOKENS record with as many of the tokens as there is room for.  Text
 * without a token comes from what was held back, or from a token with more of
 * it than a record holds.
 */

static int
dsa_request_tokens(dsa_request_t *r)
{
    int       rc;
    size_t    row;
    uint32_t  n, len, most;

    row = sizeof(uint32_t);

    if (r->logprobs) {
        row += (1 + r->n_top) * sizeof(dsa_link_logprob_t);
    }

    most = (uint32_t) (dsa_link_max_payload(&r->session->link.event)
                       - sizeof(dsa_link_tokens_t));

    for (n = r->n_tokens; n != 0; n /= 2) {
        len = r->end[n - 1];

        if (n > most / row || len > most - n * row) {
            continue;
        }

        rc = dsa_request_record(r, n, len);

        if (rc != DSA_AGAIN) {
            return rc;
        }
    }

    if (r->n_tokens != 0) {
        len = r->end[0];

        if (len <= most - row) {
            return DSA_AGAIN;
        }

    } else {
        len = r->answer.ready;
    }

    if (len > most) {

        /* cut before a character */

        for (len = most; len != 0; len--) {
            if (((unsigned char) r->answer.text[len] & 0xc0) != 0x80) {
                break;
            }
        }
    }

    return dsa_request_record(r, 0, len);
}


/* A record of the first n tokens and the first len bytes. */

static int
dsa_request_record(dsa_request_t *r, uint32_t n, uint32_t len)
{
    char               *p;
    size_t              row, left;
    uint32_t            i;
    dsa_link_tokens_t  *tokens;

    row = r->logprobs ? (1 + r->n_top) * sizeof(dsa_link_logprob_t) : 0;

    tokens = dsa_link_reserve(&r->session->link.event, DSA_LINK_TOKENS, r->id,
                              sizeof(dsa_link_tokens_t)
                              + n * (sizeof(uint32_t) + row) + len);

    if (tokens == NULL) {
        return errno == EPROTO ? DSA_ERROR : DSA_AGAIN;
    }

    tokens->n_tokens = n;
    tokens->text_len = len;
    tokens->logprobs = r->logprobs;
    tokens->n_top = r->n_top;

    p = (char *) (tokens + 1);

    if (n != 0) {
        memcpy(p, r->end, n * sizeof(uint32_t));
        p += n * sizeof(uint32_t);
    }

    if (n * row != 0) {
        memcpy(p, r->logprob, n * row);
        p += n * row;
    }

    if (len != 0) {
        memcpy(p, r->answer.text, len);
        dsa_answer_sent(&r->answer, len);
    }

    left = r->n_tokens - n;

    for (i = 0; i < left; i++) {
        r->end[i] = r->end[n + i] - len;
    }

    if (left != 0 && n * row != 0) {
        memmove(r->logprob, (char *) r->logprob + n * row, left * row);
    }

    r->n_tokens = (uint32_t) left;

    return DSA_OK;
}


/* DONE or ERROR. */

static int
dsa_request_last(dsa_request_t *r)
{
    size_t               len;
    dsa_link_ring_t     *ring;
    dsa_link_done_t     *done;
    dsa_link_failure_t  *failure;

    ring = &r->session->link.event;

    if (r->error == 0) {
        done = dsa_link_reserve(ring, DSA_LINK_DONE, r->id,
                                sizeof(dsa_link_done_t));

        if (done == NULL) {
            return errno == EPROTO ? DSA_ERROR : DSA_AGAIN;
        }

        *done = r->done;

        return DSA_OK;
    }

    len = r->reason != NULL ? strlen(r->reason) : 0;
    failure = dsa_link_reserve(ring, DSA_LINK_ERROR, r->id,
                               sizeof(dsa_link_failure_t) + len);

    if (failure == NULL) {
        return errno == EPROTO ? DSA_ERROR : DSA_AGAIN;
    }

    failure->code = r->error;
    failure->prompt_tokens = r->prompt_tokens;
    failure->text_len = (uint32_t) len;
    failure->more = r->more;

    if (len != 0) {
        memcpy(failure + 1, r->reason, len);
    }

    return DSA_OK;
}


void
dsa_session_abort(dsa_session_t *s)
{
    dsa_request_t  *r;

    for (r = s->requests.next; r != &s->requests; r = r->next) {
        if (r->seq == NULL) {
            continue;
        }

        dsa_sched_cancel(s->service->sched, r->seq,
                         DSA_LINK_FINISH_CANCELLED);
        dsa_request_refuse(r, DSA_LINK_E_DRAINING,
                           "the replica stopped before the answer was over");
    }
}


void
dsa_session_publish(dsa_session_t *s, const dsa_sched_stats_t *stats,
    uint64_t now)
{
    dsa_link_control_t  *c;

    c = s->link.control;

    atomic_store_explicit(&c->steps, stats->steps, memory_order_relaxed);
    atomic_store_explicit(&c->prompt_tokens, stats->prompt_tokens,
                          memory_order_relaxed);
    atomic_store_explicit(&c->cached_tokens, stats->cached_tokens,
                          memory_order_relaxed);
    atomic_store_explicit(&c->completion_tokens, stats->completion_tokens,
                          memory_order_relaxed);
    atomic_store_explicit(&c->preemptions, stats->preemptions,
                          memory_order_relaxed);
    atomic_store_explicit(&c->running, stats->running, memory_order_relaxed);
    atomic_store_explicit(&c->waiting, stats->waiting, memory_order_relaxed);
    atomic_store_explicit(&c->pages, stats->pages, memory_order_relaxed);
    atomic_store_explicit(&c->pages_used, stats->pages_used,
                          memory_order_relaxed);
    atomic_store_explicit(&c->draining, s->service->draining,
                          memory_order_relaxed);
    atomic_store_explicit(&c->heartbeat, now, memory_order_release);
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
           == s->link.event.own;
}


static void
dsa_request_free(dsa_request_t *r)
{
    r->prev->next = r->next;
    r->next->prev = r->prev;

    r->session->slot[dsa_link_slot(r->id)] = NULL;
    r->session->n_requests--;

    dsa_answer_free(&r->answer);
    free(r->end);
    free(r->logprob);
    free(r->reason);
    free(r);
}
