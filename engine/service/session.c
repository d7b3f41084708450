
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
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/service/records.h"
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
    uint32_t                logprobs;

    /* what waits for room in the ring, in this order */

    uint32_t                accept;     /* 1: an ACCEPTED */
    dsa_link_accepted_t     accepted;
    dsa_answer_t            answer;     /* TOKENS */
    dsa_link_type_e         last;       /* DONE, ERROR, COUNTED */
    dsa_link_done_t         done;
    dsa_link_counted_t      counted;
    dsa_link_failure_t      failure;
    char                   *reason;
    uint32_t                stopped;    /* by a stop string */
};


struct dsa_session_s {
    dsa_service_t          *service;
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
static int dsa_session_submit(dsa_session_t *s,
    const dsa_link_record_t *record, const void *payload, dsa_err_t *err);
static void dsa_request_start(dsa_request_t *r, dsa_link_type_e type,
    const void *copy, size_t len);
static int dsa_request_prompt(dsa_request_t *r, const dsa_submit_t *submit,
    dsa_tokens_t *tokens);
static int dsa_request_context(dsa_request_t *r, const dsa_submit_t *submit,
    uint32_t *max_tokens);
static int dsa_request_resume(dsa_request_t *r, const dsa_submit_t *submit,
    dsa_tokens_t *tokens);
static void dsa_request_add(dsa_request_t *r, const dsa_submit_t *submit,
    dsa_tokens_t *tokens, uint32_t max_tokens);
static void dsa_request_complete(dsa_request_t *r, dsa_link_finish_e finish);
static void dsa_request_refuse(dsa_request_t *r, dsa_link_error_e code,
    const char *reason);
static int dsa_request_token(void *owner, const dsa_sample_t *sample);
static void dsa_request_logprob(dsa_request_t *r, dsa_link_logprob_t *entry,
    uint32_t token, float logprob);
static void dsa_request_done(void *owner, const dsa_link_done_t *done);
static void dsa_request_dropped(void *owner);
static int dsa_request_flush(dsa_request_t *r);
static int dsa_request_last(dsa_request_t *r);
static void dsa_request_free(dsa_request_t *r);


const dsa_sched_handler_t  dsa_session_handler = {
    dsa_request_token,
    dsa_request_done,
    dsa_request_dropped
};


dsa_session_t *
dsa_session_create(dsa_service_t *service, int fd, uint32_t version,
    dsa_err_t *err)
{
    int                fds[DSA_LINK_FDS];
    dsa_session_t     *s;
    dsa_link_hello_t   hello;

    s = calloc(1, sizeof(dsa_session_t));

    if (s == NULL) {
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    s->service = service;
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
    hello.version = version;
    hello.version_min = DSA_LINK_VERSION_MIN;
    hello.version_max = DSA_LINK_VERSION_MAX;
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

        if (record.type != DSA_LINK_SUBMIT && record.type != DSA_LINK_COUNT) {
            return dsa_error(err, "a record of type %u in the submit ring",
                             record.type);
        }

        bytes += record.length;

        if (dsa_session_submit(s, &record, payload, err) != DSA_OK) {
            return DSA_ERROR;
        }

        dsa_link_release(&s->link.submit);
    }

    return DSA_AGAIN;
}


static int
dsa_session_submit(dsa_session_t *s, const dsa_link_record_t *record,
    const void *payload, dsa_err_t *err)
{
    size_t          len;
    uint32_t        slot;
    dsa_request_t  *r;

    len = record->length;
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
    r->id = record->id;

    r->next = &s->requests;
    r->prev = s->requests.prev;
    r->prev->next = r;
    s->requests.prev = r;

    s->slot[slot] = r;
    s->n_requests++;

    if (s->service->draining) {
        dsa_request_refuse(r, DSA_LINK_E_DRAINING,
                           "the replica accepts no new requests");
        return DSA_OK;
    }

    if (len != 0) {
        memcpy(s->copy, payload, len);
    }

    dsa_request_start(r, (dsa_link_type_e) record->type, s->copy, len);

    if (s->copy_size > DSA_SESSION_COPY) {
        free(s->copy);
        s->copy = NULL;
        s->copy_size = 0;
    }

    return DSA_OK;
}


static void
dsa_request_start(dsa_request_t *r, dsa_link_type_e type, const void *copy,
    size_t len)
{
    uint32_t       max_tokens;
    dsa_err_t      err;
    dsa_tokens_t   tokens;
    dsa_submit_t   submit;

    memset(&tokens, 0, sizeof(tokens));

    if (dsa_submit_decode(&submit, type, copy, len, &err) != DSA_OK) {
        dsa_request_refuse(r, DSA_LINK_E_INVALID, err.text);
        return;
    }

    r->accepted.vocabulary
                 = dsa_submit_vocabulary(&submit, r->session->service->tokenizer);

    if (dsa_request_prompt(r, &submit, &tokens) == DSA_OK
        && type == DSA_LINK_SUBMIT
        && dsa_request_context(r, &submit, &max_tokens) == DSA_OK
        && dsa_request_resume(r, &submit, &tokens) == DSA_OK)
    {
        dsa_request_add(r, &submit, &tokens, max_tokens);
    }

    free(tokens.ids);
}


/* The prompt's ids and their number.  That is all that a count needs. */

static int
dsa_request_prompt(dsa_request_t *r, const dsa_submit_t *submit,
    dsa_tokens_t *tokens)
{
    int             rc;
    uint32_t        context, most;
    dsa_err_t       err;
    dsa_service_t  *service;

    service = r->session->service;
    context = dsa_sched_context(service->sched);
    most = context > DSA_SESSION_COUNT ? context : DSA_SESSION_COUNT;

    rc = dsa_submit_tokenize(submit, service->tokenizer, service->work, most,
                             tokens, &err);

    if (rc == DSA_ERROR) {
        dsa_request_refuse(r, DSA_LINK_E_INVALID, err.text);
        return DSA_ERROR;
    }

    r->counted.more = rc == DSA_AGAIN;
    r->counted.prompt_tokens = r->counted.more ? most : tokens->n;
    r->last = DSA_LINK_COUNTED;

    return DSA_OK;
}


/* Whether prompt and answer fit, and the most tokens of the answer. */

static int
dsa_request_context(dsa_request_t *r, const dsa_submit_t *submit,
    uint32_t *max_tokens)
{
    uint32_t   context, prompt, max;
    dsa_err_t  err;

    context = dsa_sched_context(r->session->service->sched);
    prompt = r->counted.prompt_tokens;
    max = submit->head.max_tokens;

    if (prompt >= context || max > context - prompt) {
        (void) dsa_error(&err, "the prompt has %s%u tokens, max_tokens is %u, "
                         "together %u are possible",
                         r->counted.more ? "more than " : "", prompt, max,
                         context);
        dsa_request_refuse(r, DSA_LINK_E_CONTEXT, err.text);
        return DSA_ERROR;
    }

    *max_tokens = max != 0 ? max : context - prompt;

    if (submit->n_resume > *max_tokens) {
        (void) dsa_error(&err, "there are %u tokens to resume from; expected "
                         "at most max_tokens, %u", submit->n_resume,
                         *max_tokens);
        dsa_request_refuse(r, DSA_LINK_E_INVALID, err.text);
        return DSA_ERROR;
    }

    return DSA_OK;
}


/*
 * The answer as it was when the other replica ended.  DSA_ERROR: the request
 * is over.
 */

static int
dsa_request_resume(dsa_request_t *r, const dsa_submit_t *submit,
    dsa_tokens_t *tokens)
{
    int               rc;
    uint32_t          i, id;
    dsa_err_t         err;
    dsa_tokenizer_t  *t;

    t = r->session->service->tokenizer;

    if (dsa_answer_init(&r->answer, submit->stop, submit->n_stop) != DSA_OK) {
        goto failed;
    }

    for (i = 0; i < submit->n_resume; i++) {
        id = submit->resume[i];

        if (id >= dsa_tokenizer_size(t)) {
            (void) dsa_error(&err, "token %u to resume from is %u; expected "
                             "less than %u", i, id, dsa_tokenizer_size(t));
            dsa_request_refuse(r, DSA_LINK_E_INVALID, err.text);
            return DSA_ERROR;
        }

        rc = dsa_answer_add(&r->answer, id, dsa_token_bytes(t, id),
                            dsa_token_is_special(t, id));

        if (rc == DSA_ERROR || dsa_tokens_push(tokens, id) != DSA_OK) {
            goto failed;
        }

        dsa_answer_resume(&r->answer);

        if (rc == DSA_AGAIN) {
            dsa_request_complete(r, DSA_LINK_FINISH_STOP);
            return DSA_ERROR;
        }
    }

    return DSA_OK;

failed:

    dsa_request_refuse(r, DSA_LINK_E_INTERNAL, "out of memory");

    return DSA_ERROR;
}


static void
dsa_request_add(dsa_request_t *r, const dsa_submit_t *submit,
    dsa_tokens_t *tokens, uint32_t max_tokens)
{
    const dsa_link_submit_t  *head;
    dsa_sched_request_t       request;

    head = &submit->head;

    if (submit->n_resume == max_tokens) {
        dsa_request_complete(r, DSA_LINK_FINISH_LENGTH);
        return;
    }

    memset(&request, 0, sizeof(request));

    request.tokens = tokens->ids;
    request.n_tokens = tokens->n;
    request.n_resume = submit->n_resume;
    request.max_tokens = max_tokens - submit->n_resume;
    request.weight = head->weight;
    request.ignore_eos = (head->flags & DSA_LINK_IGNORE_EOS) != 0;
    request.private = (head->flags & DSA_LINK_PRIVATE) != 0;
    request.owner = r;

    memcpy(request.tenant, head->tenant, sizeof(request.tenant));

    request.sampling.temperature = head->temperature;
    request.sampling.top_p = head->top_p;
    request.sampling.frequency_penalty = head->frequency_penalty;
    request.sampling.presence_penalty = head->presence_penalty;
    request.sampling.seed = head->seed;
    request.sampling.logprobs = (head->flags & DSA_LINK_LOGPROBS) != 0;
    request.sampling.top_logprobs = head->top_logprobs;

    r->logprobs = request.sampling.logprobs;
    r->deadline = head->deadline_ms;
    r->seq = dsa_sched_add(r->session->service->sched, &request);

    if (r->seq == NULL) {
        if (errno == EAGAIN) {
            dsa_request_refuse(r, DSA_LINK_E_OVERLOADED,
                               "too many requests wait already");

        } else {
            dsa_request_refuse(r, DSA_LINK_E_INTERNAL, strerror(errno));
        }

        return;
    }

    tokens->ids = NULL;

    r->accept = 1;
    r->accepted.prompt_tokens = r->counted.prompt_tokens;
    r->accepted.cached_tokens
                     = dsa_sched_cached(r->session->service->sched, r->seq);
}


/* The tokens to resume from are the whole answer. */

static void
dsa_request_complete(dsa_request_t *r, dsa_link_finish_e finish)
{
    r->accept = 1;
    r->accepted.prompt_tokens = r->counted.prompt_tokens;
    r->last = DSA_LINK_DONE;
    r->done.finish = finish;
}


static void
dsa_request_refuse(dsa_request_t *r, dsa_link_error_e code,
    const char *reason)
{
    free(r->reason);

    r->last = DSA_LINK_ERROR;
    r->reason = strdup(reason);     /* NULL: an error without a text */

    r->failure.code = code;
    r->failure.prompt_tokens = r->counted.prompt_tokens;
    r->failure.more = r->counted.more;
    r->failure.text_len = r->reason != NULL ? (uint32_t) strlen(reason) : 0;
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
    dsa_request_t       *r;
    dsa_tokenizer_t     *t;
    dsa_link_logprob_t  *entry;

    r = owner;
    t = r->session->service->tokenizer;

    if (r->logprobs && r->answer.row == 0) {
        r->answer.row = 1 + sample->n_top;
    }

    rc = dsa_answer_add(&r->answer, sample->token,
                        dsa_token_bytes(t, sample->token),
                        dsa_token_is_special(t, sample->token));

    if (rc == DSA_ERROR) {
        dsa_request_refuse(r, DSA_LINK_E_INTERNAL, "out of memory");
        return DSA_LINK_FINISH_CANCELLED;
    }

    if (r->logprobs) {
        entry = dsa_answer_logprobs(&r->answer);

        dsa_request_logprob(r, entry++, sample->token, sample->logprob);

        for (i = 0; i < r->answer.row - 1; i++) {
            token = i < sample->n_top ? sample->top[i] : sample->token;
            dsa_request_logprob(r, entry++, token,
                                i < sample->n_top ? sample->top_logprob[i]
                                                  : sample->logprob);
        }
    }

    if (rc == DSA_AGAIN) {
        r->stopped = 1;
        return DSA_LINK_FINISH_STOP;
    }

    return 0;
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

    if (r->last == DSA_LINK_ERROR) {
        return;
    }

    r->last = DSA_LINK_DONE;

    if (!r->stopped && dsa_answer_end(&r->answer) != DSA_OK) {
        dsa_request_refuse(r, DSA_LINK_E_INTERNAL, "out of memory");
    }
}


/* The sequence made room in the queue. */

static void
dsa_request_dropped(void *owner)
{
    dsa_request_t  *r;

    r = owner;

    r->seq = NULL;
    r->accept = 0;      /* if it is not sent, the worker may try elsewhere */

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

        /* the next round starts with the request that did not fit */

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


/* All records of a request; DSA_AGAIN if the ring has no room for them. */

static int
dsa_request_flush(dsa_request_t *r)
{
    int               rc;
    dsa_link_ring_t  *ring;

    ring = &r->session->link.event;

    if (r->accept) {
        rc = dsa_record_accepted(ring, r->id, &r->accepted);

        if (rc != DSA_OK) {
            return rc;
        }

        r->accept = 0;
    }

    while (r->answer.n_ready != 0
           || (r->answer.ready != 0 && r->seq == NULL))
    {
        rc = dsa_record_tokens(ring, r->id, &r->answer);

        if (rc != DSA_OK) {
            return rc;
        }
    }

    return r->seq == NULL ? dsa_request_last(r) : DSA_OK;
}


static int
dsa_request_last(dsa_request_t *r)
{
    dsa_link_ring_t  *ring;

    ring = &r->session->link.event;

    switch (r->last) {

    case DSA_LINK_DONE:
        return dsa_record_done(ring, r->id, &r->done);

    case DSA_LINK_COUNTED:
        return dsa_record_counted(ring, r->id, &r->counted);

    default:
        return dsa_record_error(ring, r->id, &r->failure, r->reason);
    }
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
    atomic_store_explicit(&c->alive_ms, now, memory_order_release);
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
    free(r->reason);
    free(r);
}
