
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The I/O side of a replica with the null backend, and its workers, in one
 * thread: host_round() does in order what the threads of a replica do at the
 * same time.
 */


#ifndef _DSA_T_HOST_H_INCLUDED_
#define _DSA_T_HOST_H_INCLUDED_


#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/log.h"
#include "engine/link_event.h"
#include "engine/service/io.h"
#include "t/lib/link_client.h"
#include "t/lib/small_model.h"


#define WORKERS     3


typedef struct {
    dsa_conf_t          conf;
    dsa_service_t       service;
    dsa_vitals_t        vitals;
    dsa_listen_t        listen;
    dsa_pool_t         *pool;
    dsa_step_t         *step;
    dsa_io_t            io;
    int                 wake;
    dsa_session_t      *session[WORKERS];   /* NULL: closed */
    link_client_t       client[WORKERS];
} host_t;


/* An answer, collected from its events. */

typedef struct {
    uint32_t            accepted;
    uint32_t            prompt_tokens;
    uint32_t            cached_tokens;      /* when it was accepted */
    uint32_t            vocabulary;
    uint32_t            more;
    uint32_t            counted;
    uint32_t            records;
    uint32_t            tokens;
    char               *text;
    size_t              len;
    uint32_t            finish;
    uint32_t            error;
    char                path[256];          /* of the error */
    char                reason[512];
    dsa_link_done_t     done;
    dsa_link_logprob_t  logprob;            /* the last one */
    uint32_t            n_top;
    dsa_link_token_t    token[64];          /* the first; ends: in text */
} answer_t;


static char  model_dir[] = "/tmp/dsa-test-XXXXXX";


/* Replaces base/log.c: the lines since the last host_open(). */

static char  host_log[4096];
_Atomic int  dsa_log_limit = DSA_LOG_INFO;


void
dsa_log_level(dsa_log_level_e level)
{
    dsa_log_limit = level;
}


void
dsa_log(dsa_log_level_e level, const char *fmt, ...)
{
    size_t   len;
    va_list  args;

    len = strlen(host_log);

    va_start(args, fmt);
    (void) vsnprintf(host_log + len, sizeof(host_log) - len, fmt, args);
    va_end(args);

    len = strlen(host_log);
    (void) snprintf(host_log + len, sizeof(host_log) - len, "\n");
}


/* Bytes of the ring of a worker; a test may change it before it starts. */

static uint64_t  host_submit = 1 << 20;


static void
host_open(host_t *h, const char *more)
{
    char                 text[1024];
    dsa_err_t            err;
    dsa_backend_t       *b;
    dsa_sched_conf_t     sched;
    dsa_backend_conf_t   backend;

    memset(h, 0, sizeof(host_t));
    host_log[0] = '\0';

    (void) snprintf(text, sizeof(text), "model %s; name m; listen unix:/x; "
                    "backend null rate=0; %s %s", model_dir,
                    strstr(more, "context_length") == NULL
                    ? "context_length 40000;" : "", more);

    if (dsa_conf_parse(&h->conf, "conf", text, strlen(text), &err)
        != DSA_OK)
    {
        fail_msg("%s", err.text);
    }

    memset(&backend, 0, sizeof(backend));
    backend.model = model_dir;
    backend.kv_memory = h->conf.kv_memory;
    backend.gpus = 1;
    backend.max_tokens = h->conf.token_budget;

    (void) snprintf(text, sizeof(text), "%s/tokenizer.json", model_dir);

    h->wake = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);
    h->service.conf = &h->conf;
    h->service.replica = 3;
    h->service.epoch = 0x89abcdef;
    h->service.generation.temperature = 0.75f;
    h->service.generation.top_p = 0.5f;
    h->service.tokenizer = dsa_tokenizer_open(text, &err);
    assert_non_null(h->service.tokenizer);

    b = dsa_backend_null_open(&backend, &err);

    if (b == NULL) {
        fail_msg("%s", err.text);
    }

    memset(&sched, 0, sizeof(sched));
    sched.max_running = h->conf.max_running;
    sched.token_budget = h->conf.token_budget;
    sched.max_waiting = h->conf.max_waiting;
    sched.max_waiting_per_tenant = h->conf.max_waiting_per_tenant;
    sched.context = h->conf.context_length;

    h->step = dsa_step_create(h->wake, &h->vitals, &err);
    assert_non_null(h->step);
    assert_int_equal(dsa_step_attach(h->step, b, &sched, &err), DSA_OK);

    h->service.context = dsa_step_context(h->step);

    /* rings that a test can fill */

    dsa_link_size(&h->service.link, dsa_conf_running(&h->conf),
                  h->conf.max_waiting, h->service.context);
    h->service.link.submit = host_submit;
    h->service.link.event = 65536;

    h->service.ids = dsa_step_config(h->step)->vocab_size;
    h->service.prompt = dsa_step_config(h->step)->prompt;
    h->service.grammars = dsa_grammars_create(h->service.tokenizer,
                                              dsa_step_config(h->step));
    assert_non_null(h->service.grammars);
    (void) snprintf(h->service.fingerprint, sizeof(h->service.fingerprint),
                    "%s", dsa_step_identity(h->step));

    h->pool = dsa_pool_create(&h->service, h->wake, &err);
    assert_non_null(h->pool);

    (void) snprintf(text, sizeof(text), "%s/sock", model_dir);
    assert_int_equal(dsa_listen_open(&h->listen, text, (gid_t) -1, &err),
                     DSA_OK);
    assert_int_equal(dsa_io_open(&h->io, &h->service, h->pool, h->step,
                                 &h->listen, &h->vitals, h->wake, &err),
                     DSA_OK);
}


/* Adds a connection with an offer.  Returns its session, or NULL. */

static dsa_session_t *
host_add(host_t *h, int fd)
{
    dsa_err_t  err;

    assert_int_equal(dsa_peers_add(&h->io.peers, fd, &err), DSA_OK);

    return h->io.peers.first->session;
}


/* Connects a worker that accepts these versions of the link. */

static void
host_connect(host_t *h, int worker, uint32_t min, uint32_t max)
{
    int               fds[2];
    dsa_link_offer_t  offer;

    offer.magic = DSA_LINK_MAGIC;
    offer.version_min = min;
    offer.version_max = max;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    assert_int_equal(send(fds[1], &offer, sizeof(offer), 0), sizeof(offer));

    h->session[worker] = host_add(h, fds[0]);
    assert_non_null(h->session[worker]);
    assert_int_equal(link_client_hello(&h->client[worker], fds[1], 1000), 0);
}


static inline void
host_start(host_t *h, const char *more)
{
    int  i;

    host_open(h, more);

    for (i = 0; i < WORKERS; i++) {
        host_connect(h, i, DSA_LINK_VERSION_MIN, DSA_LINK_VERSION_MAX);
    }
}


static void
host_io(host_t *h)
{
    /* otherwise cancel words are read only once per millisecond */

    h->io.polled_ms = 0;
    assert_int_equal(dsa_io_round(&h->io, 0), DSA_OK);
}


/* Does the work of all threads once: tokenize, a step if needed, write. */

static void
host_round(host_t *h)
{
    host_io(h);
    dsa_pool_run(h->pool);
    host_io(h);
    assert_int_equal(dsa_step_round(h->step), DSA_OK);
    host_io(h);
}


/* 1: the replica has closed the connection. */

static int
host_broken(host_t *h, int i)
{
    char  c;

    return recv(h->client[i].fd, &c, 1, MSG_DONTWAIT|MSG_PEEK) == 0;
}


static inline uint32_t
host_requests(host_t *h, int i)
{
    return dsa_session_requests(h->session[i]);
}


static uint32_t
host_sequences(host_t *h)
{
    return h->io.sessions.stats.running + h->io.sessions.stats.waiting;
}


/* The worker disconnects. */

static void
host_close(host_t *h, int i)
{
    if (h->session[i] != NULL) {
        (void) shutdown(h->client[i].fd, SHUT_RDWR);
        h->session[i] = NULL;
        host_io(h);
    }
}


/* Asserts that nothing remains of any request. */

static inline void
host_empty(host_t *h)
{
    dsa_err_t  err;

    host_round(h);

    if (dsa_step_audit(h->step, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    assert_int_equal(host_sequences(h), 0);
    assert_int_equal(h->io.sessions.stats.pages_used, 0);
    assert_ptr_equal(h->io.sessions.detached.next, &h->io.sessions.detached);
}


static void
host_end(host_t *h)
{
    dsa_io_disconnect(&h->io);
    dsa_pool_stop(h->pool);
    dsa_step_stop(h->step);
    dsa_io_close(&h->io);
    dsa_pool_destroy(h->pool);
    dsa_step_destroy(h->step);
    dsa_listen_close(&h->listen);
    dsa_grammars_destroy(h->service.grammars);
    dsa_tokenizer_close(h->service.tokenizer);
    dsa_conf_free(&h->conf);
    (void) close(h->wake);
}


static inline void
host_stop(host_t *h)
{
    int  i;

    for (i = 0; i < WORKERS; i++) {
        host_close(h, i);
        link_client_close(&h->client[i]);
    }

    host_empty(h);
    host_end(h);
}


static int
utf8_whole(const char *text, size_t len)
{
    size_t         i;
    unsigned       n;
    unsigned char  c;

    for (i = 0; i < len; /* void */) {
        c = (unsigned char) text[i++];
        n = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;

        if (c >= 0x80 && c < 0xc0) {
            return 0;
        }

        for ( /* void */ ; n != 0; n--) {
            if (i == len || ((unsigned char) text[i++] & 0xc0) != 0x80) {
                return 0;
            }
        }
    }

    return 1;
}


static void
answer_tokens(answer_t *a, const dsa_link_record_t *record, const uint8_t *p)
{
    size_t                     want;
    uint32_t                   i, last;
    dsa_link_token_t           token;
    const dsa_link_tokens_t   *t;

    assert_int_equal(a->accepted, 1);
    assert_true(record->length >= sizeof(dsa_link_tokens_t));
    t = (const void *) p;
    p += sizeof(dsa_link_tokens_t);

    want = sizeof(dsa_link_tokens_t) + t->n_tokens * sizeof(token)
           + t->text_len;

    if (t->logprobs) {
        want += (size_t) t->n_tokens * (1 + t->n_top)
                * sizeof(dsa_link_logprob_t);
    }

    assert_int_equal(record->length, want);
    assert_true(t->n_tokens != 0 || t->text_len != 0);

    for (i = 0, last = 0; i < t->n_tokens; i++, p += sizeof(token)) {
        memcpy(&token, p, sizeof(token));
        assert_true(token.end >= last && token.end <= t->text_len);
        assert_true(token.control <= token.end - last);
        last = token.end;

        if (a->tokens < sizeof(a->token) / sizeof(a->token[0])) {
            a->token[a->tokens] = token;
            a->token[a->tokens].end += (uint32_t) a->len;
        }

        a->tokens++;
    }

    assert_true(t->n_tokens == 0 || last == t->text_len);

    if (t->logprobs && t->n_tokens != 0) {
        p += (size_t) (t->n_tokens - 1) * (1 + t->n_top)
             * sizeof(dsa_link_logprob_t);
        memcpy(&a->logprob, p, sizeof(dsa_link_logprob_t));
        p += (1 + t->n_top) * sizeof(dsa_link_logprob_t);
        a->n_top = t->n_top;
    }

    assert_true(utf8_whole((const char *) p, t->text_len));

    a->text = realloc(a->text, a->len + t->text_len + 1);
    assert_non_null(a->text);
    memcpy(a->text + a->len, p, t->text_len);
    a->len += t->text_len;
    a->text[a->len] = '\0';
    a->records++;
}


/* Adds an event to the answer of its slot, and checks every length in it. */

static void
answer_event(answer_t *answers, uint32_t n,
    const dsa_link_record_t *record, const uint8_t *p)
{
    answer_t                  *a;
    dsa_link_counted_t         counted;
    dsa_link_accepted_t        accepted;
    const dsa_link_failure_t  *f;

    assert_true(dsa_link_slot(record->id) < n);
    a = &answers[dsa_link_slot(record->id)];

    assert_int_equal(a->finish, 0);
    assert_int_equal(a->error, 0);
    assert_int_equal(a->counted, 0);

    switch (record->type) {

    case DSA_LINK_ACCEPTED:
        assert_int_equal(record->length, sizeof(dsa_link_accepted_t));
        assert_int_equal(a->accepted, 0);
        memcpy(&accepted, p, sizeof(accepted));
        a->accepted = 1;
        a->prompt_tokens = accepted.prompt_tokens;
        a->cached_tokens = accepted.cached_tokens;
        a->vocabulary = accepted.vocabulary;
        break;

    case DSA_LINK_COUNTED:
        assert_int_equal(record->length, sizeof(dsa_link_counted_t));
        assert_int_equal(a->accepted, 0);
        memcpy(&counted, p, sizeof(counted));
        a->counted = 1;
        a->prompt_tokens = counted.prompt_tokens;
        a->more = counted.more;
        break;

    case DSA_LINK_TOKENS:
        answer_tokens(a, record, p);
        break;

    case DSA_LINK_DONE:
        assert_int_equal(record->length, 48);
        memcpy(&a->done, p, sizeof(a->done));
        a->finish = a->done.finish;
        break;

    case DSA_LINK_ERROR:
        assert_true(record->length >= sizeof(dsa_link_failure_t));
        f = (const void *) p;
        assert_int_equal(record->length,
                         sizeof(dsa_link_failure_t) + f->path_len
                         + f->text_len);
        assert_true(f->path_len < sizeof(a->path));
        assert_true(f->path_len == 0 || f->code == DSA_LINK_E_GRAMMAR);
        assert_true(f->text_len < sizeof(a->reason));
        a->error = f->code;
        a->prompt_tokens = f->prompt_tokens;
        a->more = f->more;
        memcpy(a->path, f + 1, f->path_len);
        a->path[f->path_len] = '\0';
        memcpy(a->reason, (const char *) (f + 1) + f->path_len, f->text_len);
        a->reason[f->text_len] = '\0';
        break;

    default:
        fail_msg("event of type %u", record->type);
    }
}


static void
take_events(host_t *h, int worker, answer_t *answers, uint32_t n)
{
    void               *payload;
    dsa_link_record_t   record;

    while (link_client_next(&h->client[worker], &record, &payload, 0) == 1) {
        answer_event(answers, n, &record,
                     payload);
        free(payload);
    }
}


/* Runs until the request in slot 0 of worker 0 is done. */

static inline answer_t
ask_as(host_t *h, uint32_t type, link_submit_t *s)
{
    answer_t         a;
    uint32_t         i;

    static uint32_t  epoch;

    memset(&a, 0, sizeof(a));

    assert_int_equal(link_client_send(&h->client[0], type,
                                      dsa_link_id(++epoch, 0), s), 0);

    for (i = 0; i < 100000 && a.finish == 0 && a.error == 0 && a.counted == 0;
         i++)
    {
        host_round(h);
        assert_int_equal(host_broken(h, 0), 0);
        take_events(h, 0, &a, 1);
    }

    assert_true(a.finish != 0 || a.error != 0 || a.counted != 0);

    if (a.text == NULL) {
        a.text = strdup("");
    }

    return a;
}


static inline answer_t
ask(host_t *h, link_submit_t *s)
{
    return ask_as(h, DSA_LINK_SUBMIT, s);
}


static inline void
refused_as(host_t *h, uint32_t type, link_submit_t *s, uint32_t code,
    const char *word)
{
    answer_t  a;

    a = ask_as(h, type, s);

    assert_int_equal(a.error, code);
    assert_int_equal(a.accepted, 0);

    if (strstr(a.reason, word) == NULL) {
        fail_msg("\"%s\" does not contain \"%s\"", a.reason, word);
    }

    free(a.text);
}


static inline void
refused(host_t *h, link_submit_t *s, uint32_t code, const char *word)
{
    refused_as(h, DSA_LINK_SUBMIT, s, code, word);
}


static int
setup(void **state)
{
    return small_model_make(model_dir);
}


static int
teardown(void **state)
{
    small_model_remove(model_dir);

    return 0;
}


#endif /* _DSA_T_HOST_H_INCLUDED_ */
