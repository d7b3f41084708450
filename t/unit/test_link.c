
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The rings, and sessions over them, with the null backend: both ends in one
 * process, turn by turn.
 */


#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "engine/service/answer.h"
#include "engine/service/session.h"
#include "t/lib/link_client.h"
#include "t/lib/small_model.h"


#define WORKERS     3


typedef struct {
    dsa_conf_t          conf;
    dsa_service_t       service;
    dsa_session_t      *session[WORKERS];
    int                 fd[WORKERS];        /* the replica's ends */
    link_client_t       client[WORKERS];
    int                 broken[WORKERS];    /* closed by the replica */
    char                error[512];
} host_t;


/* All of an answer, gathered from its events. */

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
    char                reason[512];
    dsa_link_done_t     done;
    dsa_link_logprob_t  logprob;            /* the last one */
    uint32_t            n_top;
    dsa_link_token_t    token[64];          /* the first; ends in all text */
} answer_t;


static char  model_dir[] = "/tmp/dsa-test-XXXXXX";


static void
host_start(host_t *h, const char *more)
{
    int                  i, fds[2];
    char                 text[1024];
    dsa_err_t            err;
    dsa_sched_conf_t     sched;
    dsa_backend_conf_t   backend;

    memset(h, 0, sizeof(host_t));

    (void) snprintf(text, sizeof(text), "model %s; name m; listen unix:/x; "
                    "backend null rate=0; event_ring 64k; submit_ring 1m; "
                    "%s %s", model_dir,
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

    (void) snprintf(text, sizeof(text), "%s/tokenizer.json", model_dir);

    h->service.conf = &h->conf;
    h->service.replica = 3;
    h->service.generation.temperature = 0.75f;
    h->service.generation.top_p = 0.5f;
    h->service.tokenizer = dsa_tokenizer_open(text, &err);
    assert_non_null(h->service.tokenizer);
    h->service.work = dsa_tokenizer_work_create(h->service.tokenizer);
    assert_non_null(h->service.work);
    h->service.backend = dsa_backend_null_open(&backend, &err);

    if (h->service.backend == NULL) {
        fail_msg("%s", err.text);
    }

    sched.max_running = h->conf.max_running;
    sched.token_budget = h->conf.token_budget;
    sched.max_waiting = h->conf.max_waiting;
    sched.max_waiting_per_tenant = h->conf.max_waiting_per_tenant;
    sched.context = h->conf.context_length;

    h->service.sched = dsa_sched_create(h->service.backend, &sched,
                                        &dsa_session_handler, &err);
    assert_non_null(h->service.sched);

    for (i = 0; i < WORKERS; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
        h->fd[i] = fds[0];
        h->session[i] = dsa_session_create(&h->service, fds[0],
                                           DSA_LINK_VERSION_MAX, &err);
        assert_non_null(h->session[i]);
        assert_int_equal(link_client_attach(&h->client[i], fds[1], 1000), 0);
    }
}


static void
host_close(host_t *h, int i)
{
    if (h->session[i] != NULL) {
        dsa_session_destroy(h->session[i]);
        h->session[i] = NULL;
        (void) close(h->fd[i]);
    }
}


static void
host_stop(host_t *h)
{
    int                 i;
    dsa_err_t           err;
    dsa_sched_stats_t   stats;

    for (i = 0; i < WORKERS; i++) {
        host_close(h, i);
        link_client_close(&h->client[i]);
    }

    if (dsa_sched_audit(h->service.sched, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    dsa_sched_stats(h->service.sched, &stats);
    assert_int_equal(stats.pages_used, 0);

    dsa_sched_destroy(h->service.sched);
    h->service.backend->close(h->service.backend);
    dsa_tokenizer_work_destroy(h->service.work);
    dsa_tokenizer_close(h->service.tokenizer);
    dsa_conf_free(&h->conf);
}


/* What the loop of a replica does in a turn; a step when anything is to do. */

static void
host_turn(host_t *h)
{
    int                 i, rc;
    uint64_t            now;
    dsa_err_t           err;
    dsa_sched_stats_t   stats;

    now = link_client_now();

    for (i = 0; i < WORKERS; i++) {
        if (h->session[i] == NULL) {
            continue;
        }

        do {
            rc = dsa_session_read(h->session[i], &err);
        } while (rc == DSA_AGAIN);

        if (rc == DSA_ERROR) {
            strcpy(h->error, err.text);
            h->broken[i] = 1;
            host_close(h, i);
            continue;
        }

        dsa_session_poll(h->session[i], now);
    }

    if (dsa_sched_busy(h->service.sched)) {
        assert_int_equal(dsa_sched_step(h->service.sched, &err), DSA_OK);
    }

    dsa_sched_stats(h->service.sched, &stats);

    for (i = 0; i < WORKERS; i++) {
        if (h->session[i] == NULL) {
            continue;
        }

        dsa_session_publish(h->session[i], &stats, now);

        if (dsa_session_flush(h->session[i], &err) == DSA_ERROR) {
            strcpy(h->error, err.text);
            h->broken[i] = 1;
            host_close(h, i);
        }
    }
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


/* Adds an event to the answer of its slot; checks every length in it. */

static void
answer_event(answer_t *answers, uint32_t n, const dsa_link_record_t *record,
    const uint8_t *p)
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
        assert_int_equal(record->length, sizeof(dsa_link_done_t));
        memcpy(&a->done, p, sizeof(dsa_link_done_t));
        a->finish = a->done.finish;
        break;

    case DSA_LINK_ERROR:
        assert_true(record->length >= sizeof(dsa_link_failure_t));
        f = (const void *) p;
        assert_int_equal(record->length,
                         sizeof(dsa_link_failure_t) + f->text_len);
        assert_true(f->text_len < sizeof(a->reason));
        a->error = f->code;
        a->prompt_tokens = f->prompt_tokens;
        a->more = f->more;
        memcpy(a->reason, f + 1, f->text_len);
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
        answer_event(answers, n, &record, payload);
        free(payload);
    }
}


/* Turns until the request in slot 0 of worker 0 is over. */

static answer_t
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
        host_turn(h);
        assert_int_equal(h->broken[0], 0);
        take_events(h, 0, &a, 1);
    }

    assert_true(a.finish != 0 || a.error != 0 || a.counted != 0);

    if (a.text == NULL) {
        a.text = strdup("");
    }

    return a;
}


static answer_t
ask(host_t *h, link_submit_t *s)
{
    return ask_as(h, DSA_LINK_SUBMIT, s);
}


static void
test_ring(void **state)
{
    int                   rc;
    void                 *p;
    uint8_t              *data;
    uint32_t              i, n, sent, taken;
    const void           *payload;
    const uint8_t        *bytes;
    dsa_link_ring_t       in, out;
    dsa_link_record_t     record;
    dsa_link_indices_t   *indices;

    data = calloc(1, 4096);
    indices = aligned_alloc(64, sizeof(dsa_link_indices_t));
    assert_non_null(data);
    assert_non_null(indices);

    memset(indices, 0, sizeof(dsa_link_indices_t));
    memset(&in, 0, sizeof(in));

    in.shared = indices;
    in.data = data;
    in.size = 4096;
    out = in;

    assert_null(dsa_link_reserve(&in, DSA_LINK_SUBMIT, 1,
                                 dsa_link_max_payload(&in) + 1));
    assert_int_equal(errno, EMSGSIZE);

    /* everything that is sent comes, whole and in order */

    sent = taken = 0;
    payload = NULL;

    for (i = 0; i < 200000; i++) {
        if (i * 2654435761U % 7 < 4) {
            n = i * 40503 % ((uint32_t) dsa_link_max_payload(&in) + 1);
            p = dsa_link_reserve(&in, DSA_LINK_SUBMIT, sent, n);

            if (p != NULL) {
                memset(p, (int) (sent & 0xff), n);
                sent++;

                if (i % 3 == 0) {
                    (void) dsa_link_commit(&in);
                }

                continue;
            }

            assert_int_equal(errno, 0);
        }

        (void) dsa_link_commit(&in);
        rc = dsa_link_peek(&out, &record, &payload);
        assert_true(rc >= 0);

        if (rc == 0) {
            assert_int_equal(sent, taken);
            continue;
        }

        assert_int_equal(record.id, taken);
        bytes = payload;

        for (n = 0; n < record.length; n++) {
            assert_int_equal(bytes[n], taken & 0xff);
        }

        taken++;
        dsa_link_release(&out);
    }

    assert_true(taken > 10000);

    /* the longest one fits wherever an empty ring happens to stand */

    while (dsa_link_peek(&out, &record, &payload) == 1) {
        dsa_link_release(&out);
    }

    for (i = 0; i < 1000; i++) {
        assert_non_null(dsa_link_reserve(&in, DSA_LINK_SUBMIT, i, i % 100));
        (void) dsa_link_commit(&in);
        assert_int_equal(dsa_link_peek(&out, &record, &payload), 1);
        dsa_link_release(&out);

        assert_non_null(dsa_link_reserve(&in, DSA_LINK_SUBMIT, i,
                                         dsa_link_max_payload(&in)));
        (void) dsa_link_commit(&in);
        assert_int_equal(dsa_link_peek(&out, &record, &payload), 1);
        dsa_link_release(&out);
    }

    /* only a consumer that sleeps is woken, and once */

    assert_int_equal(dsa_link_peek(&out, &record, &payload), 0);
    assert_int_equal(dsa_link_sleep(&out), 1);
    assert_non_null(dsa_link_reserve(&in, DSA_LINK_SUBMIT, 1, 8));
    assert_int_equal(dsa_link_commit(&in), 1);
    assert_non_null(dsa_link_reserve(&in, DSA_LINK_SUBMIT, 1, 8));
    assert_int_equal(dsa_link_commit(&in), 0);
    assert_int_equal(dsa_link_sleep(&out), 0);

    free(data);
    free(indices);
}


/* What a hello may say, up to its bounds; the rest of it is right. */

static void
test_hello(void **state)
{
    size_t             i;
    dsa_link_t         link;
    dsa_link_hello_t   hello;

    _Alignas(DSA_LINK_ALIGN)
    static uint8_t     segment[4 * DSA_LINK_ALIGN];

    static const struct {
        float  temperature;
        float  top_p;
        int    rc;
    } t[] = {
        { 1, 1, 0 }, { 0, 1e-38f, 0 }, { 2, 0.95f, 0 },
        { -0.01f, 1, -1 }, { 2.01f, 1, -1 }, { INFINITY, 1, -1 },
        { NAN, 1, -1 }, { 1, 0, -1 }, { 1, -1, -1 }, { 1, 1.01f, -1 },
        { 1, NAN, -1 }
    };

    /* sizes of messages are part of the link, as those of records are */

    assert_int_equal(sizeof(dsa_link_offer_t), 16);
    assert_int_equal(sizeof(hello), 184);

    memset(&hello, 0, sizeof(hello));
    hello.magic = DSA_LINK_MAGIC;
    hello.version = DSA_LINK_VERSION_MAX;
    hello.slots = 4;
    hello.submit_size = DSA_LINK_ALIGN;
    hello.event_size = DSA_LINK_ALIGN;
    hello.segment_size = dsa_link_segment_size(4, DSA_LINK_ALIGN,
                                               DSA_LINK_ALIGN);
    assert_int_equal(hello.segment_size, sizeof(segment));

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        hello.temperature = t[i].temperature;
        hello.top_p = t[i].top_p;

        if (dsa_link_attach(&link, segment, hello.segment_size, &hello)
            != t[i].rc)
        {
            fail_msg("temperature %g, top_p %g", (double) t[i].temperature,
                     (double) t[i].top_p);
        }
    }
}


static void
test_echo(void **state)
{
    host_t         h;
    answer_t       a;
    link_submit_t  s;

    host_start(&h, "");

    assert_string_equal(h.client[0].hello.model, "m");
    assert_int_equal(h.client[0].hello.replica, 3);
    assert_int_equal(h.client[0].hello.context_length, 40000);
    assert_int_equal(h.client[0].hello.page_tokens, 64);
    assert_true(h.client[0].hello.temperature == 0.75f);
    assert_true(h.client[0].hello.top_p == 0.5f);
    assert_int_equal(strlen(h.client[0].hello.fingerprint), 32);

    link_submit_init(&s, 17);
    link_submit_control(&s, "<bos>");
    link_submit_control(&s, "<user>");
    link_submit_text(&s, "Hello, ");
    link_submit_control(&s, "<user>");
    link_submit_text(&s, "w<eos>");

    a = ask(&h, &s);

    assert_int_equal(a.prompt_tokens, 16);
    assert_string_equal(a.text, "Hello, w<eos>Hell");
    assert_int_equal(a.tokens, 17);
    assert_int_equal(a.records, 17);
    assert_int_equal(a.finish, DSA_LINK_FINISH_LENGTH);
    assert_int_equal(a.done.prompt_tokens, 16);
    assert_int_equal(a.done.completion_tokens, 17);
    assert_int_equal(a.done.cached_tokens, 0);
    free(a.text);

    /* nothing to echo: the end token at once */

    link_submit_init(&s, 5);
    link_submit_control(&s, "<bos>");
    a = ask(&h, &s);
    assert_string_equal(a.text, "");
    assert_int_equal(a.tokens, 0);
    assert_int_equal(a.finish, DSA_LINK_FINISH_STOP);
    assert_int_equal(a.done.completion_tokens, 1);
    free(a.text);

    /* ... which is but a token where it does not count */

    link_submit_init(&s, 3);
    s.head.flags = DSA_LINK_IGNORE_EOS;
    link_submit_control(&s, "<bos>");
    a = ask(&h, &s);
    assert_string_equal(a.text, "<eos><eos><eos>");
    assert_int_equal(a.finish, DSA_LINK_FINISH_LENGTH);
    free(a.text);

    /* no max_tokens: to the end of the context */

    link_submit_init(&s, 0);
    link_submit_text(&s, "ab");
    a = ask(&h, &s);
    assert_int_equal(a.done.completion_tokens, 40000 - 2);
    assert_int_equal(a.len, 40000 - 2);
    free(a.text);

    host_stop(&h);
}


/* The null backend answers right only through the right pages. */

static void
test_long_echo(void **state)
{
    char           *text;
    host_t          h;
    answer_t        a;
    uint32_t        i, n;
    link_submit_t   s;

    n = 3000;
    host_start(&h, "token_budget 70; max_running 4;");

    text = malloc(n + 1);
    assert_non_null(text);

    for (i = 0; i < n; i++) {
        text[i] = (char) (' ' + i * 7919 % 91);
    }

    text[n] = '\0';

    for (i = 0; i < 2; i++) {
        link_submit_init(&s, n + 500);
        link_submit_control(&s, "<bos>");
        link_submit_text(&s, text);
        a = ask(&h, &s);

        assert_int_equal(a.len, n + 500);
        assert_memory_equal(a.text, text, n);
        assert_memory_equal(a.text + n, text, 500);
        assert_int_equal(a.done.cached_tokens, i == 0 ? 0 : 3000 / 64 * 64);
        free(a.text);
    }

    free(text);
    host_stop(&h);
}


/* A character of several tokens comes whole, one that is none as U+FFFD. */

static void
test_characters(void **state)
{
    host_t         h;
    answer_t       a;
    link_submit_t  s;

    host_start(&h, "");

    link_submit_init(&s, 15);
    link_submit_text(&s, "h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80!");
    a = ask(&h, &s);
    assert_string_equal(a.text, "h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80!h"
                        "\xef\xbf\xbd");
    assert_int_equal(a.tokens, 15);
    free(a.text);

    link_submit_init(&s, 6);
    link_submit_text(&s, "a\xff\xe2\x82" "b\x80");
    a = ask(&h, &s);
    assert_string_equal(a.text, "a\xef\xbf\xbd\xef\xbf\xbd" "b\xef\xbf\xbd");
    free(a.text);

    host_stop(&h);
}


static void
check_stop(host_t *h, const char *prompt, const char *const *stop,
    const char *want, uint32_t tokens)
{
    answer_t       a;
    link_submit_t  s;

    link_submit_init(&s, 30);
    link_submit_text(&s, prompt);

    while (*stop != NULL) {
        link_submit_stop(&s, *stop++);
    }

    a = ask(h, &s);

    assert_string_equal(a.text, want);
    assert_int_equal(a.finish, tokens < 30 ? DSA_LINK_FINISH_STOP
                                           : DSA_LINK_FINISH_LENGTH);
    assert_int_equal(a.tokens, tokens);
    assert_int_equal(a.done.completion_tokens, tokens);
    free(a.text);
}


static void
test_stop(void **state)
{
    host_t  h;

    host_start(&h, "");

    check_stop(&h, "hello world, and more",
               (const char *[]) { "lo wo", NULL }, "hel", 8);

    /* at the very beginning, and across the end of the prompt */

    check_stop(&h, "abc", (const char *[]) { "ab", NULL }, "", 2);
    check_stop(&h, "abcd", (const char *[]) { "cdab", NULL }, "ab", 6);

    /* the first that is complete; of two with the same end the longer one */

    check_stop(&h, "one two three", (const char *[]) { "three", "wo", NULL },
               "one t", 7);
    check_stop(&h, "one two three", (const char *[]) { "wo", "two", NULL },
               "one ", 7);

    /* a false start, also one that overlaps the right one */

    check_stop(&h, "aaaaaab", (const char *[]) { "aaab", NULL }, "aaa", 7);
    check_stop(&h, "ababac", (const char *[]) { "abac", NULL }, "ab", 6);

    /* held back to the end, for nothing */

    check_stop(&h, "0123456789", (const char *[]) { "789x", "90", NULL },
               "012345678", 11);
    check_stop(&h, "0123456789", (const char *[]) { "789x", NULL },
               "012345678901234567890123456789", 30);

    /* a stop string of characters, of which a token is a part */

    check_stop(&h, "1\xe2\x82\xac" "2", (const char *[]) { "\xe2\x82\xac",
               NULL }, "1", 4);

    host_stop(&h);
}


static void
test_logprobs(void **state)
{
    host_t         h;
    answer_t       a;
    link_submit_t  s;

    host_start(&h, "");

    link_submit_init(&s, 4);
    s.head.flags = DSA_LINK_LOGPROBS;
    s.head.top_logprobs = 5;
    link_submit_text(&s, "ab\xc3\xa9");
    a = ask(&h, &s);

    assert_string_equal(a.text, "ab\xc3\xa9");
    assert_int_equal(a.logprob.token, SMALL_MODEL_BYTES + 0xa9);
    assert_true(a.logprob.logprob == 0);
    assert_int_equal(a.logprob.len, 1);
    assert_int_equal((uint8_t) a.logprob.bytes[0], 0xa9);
    assert_int_equal(a.n_top, 1);
    free(a.text);

    host_stop(&h);
}


static void
test_prefix_by_tenant(void **state)
{
    char            text[641];
    host_t          h;
    answer_t        a;
    uint32_t        i;
    link_submit_t   s;

    static const struct {
        uint8_t   tenant;
        uint32_t  cached;
    } order[] = {
        { 1, 0 }, { 1, 576 }, { 2, 0 }, { 1, 576 }, { 2, 576 }, { 3, 0 }
    };

    host_start(&h, "");
    memset(text, 'x', sizeof(text));
    text[640] = '\0';

    for (i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        link_submit_init(&s, 5);
        s.head.tenant[31] = order[i].tenant;
        link_submit_text(&s, text);
        a = ask(&h, &s);
        assert_int_equal(a.done.cached_tokens, order[i].cached);
        free(a.text);
    }

    host_stop(&h);
}


static void
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


static void
refused(host_t *h, link_submit_t *s, uint32_t code, const char *word)
{
    refused_as(h, DSA_LINK_SUBMIT, s, code, word);
}


/* Every field of a submit, wrong in turn; the session goes on after each. */

static void
test_hostile(void **state)
{
    char               big[2000];
    host_t             h;
    answer_t           a;
    uint32_t           i, bad, ids[6];
    link_submit_t      s;
    dsa_link_field_t   field;

    host_start(&h, "");
    memset(big, 'x', sizeof(big));
    big[1999] = '\0';
    memset(ids, 0, sizeof(ids));

#define HOSTILE(change, word)                                                 \
    link_submit_init(&s, 5);                                                  \
    link_submit_text(&s, "hello");                                            \
    change;                                                                   \
    refused(&h, &s, DSA_LINK_E_INVALID, word)

    HOSTILE(s.head.n_fields = 0; s.len = 0, "empty");
    HOSTILE(s.head.n_fields = 2, "last field");
    HOSTILE(s.head.n_fields = UINT32_MAX, "last field");
    HOSTILE(s.head.n_fields = 0, "empty");
    HOSTILE(s.head.flags = 8, "flags 0x8");
    HOSTILE(s.head.top_logprobs = 21, "top_logprobs is 21");
    HOSTILE(s.head.weight = 0, "weight");
    HOSTILE(s.head.weight = 10001, "weight");
    HOSTILE(s.head.temperature = -1, "temperature");
    HOSTILE(s.head.temperature = NAN, "temperature");
    HOSTILE(s.head.temperature = INFINITY, "temperature");
    HOSTILE(s.head.top_p = 0, "top_p");
    HOSTILE(s.head.top_p = 1.01f, "top_p");
    HOSTILE(s.head.top_p = NAN, "top_p");
    HOSTILE(s.head.frequency_penalty = 2.1f, "frequency_penalty");
    HOSTILE(s.head.frequency_penalty = -NAN, "frequency_penalty");
    HOSTILE(s.head.presence_penalty = -2.1f, "presence_penalty");
    HOSTILE(s.head.presence_penalty = INFINITY, "presence_penalty");
    HOSTILE(link_submit_control(&s, "<nobody>"), "<nobody>");
    HOSTILE(link_submit_control(&s, ""), "control token");
    HOSTILE(link_submit_control(&s, big), "control token");
    HOSTILE(link_submit_stop(&s, ""), "stop string 0");
    HOSTILE(link_submit_stop(&s, big), "stop string 0");
    HOSTILE(link_submit_stop(&s, "ok"); link_submit_stop(&s, "\xff"),
            "stop string 1");
    HOSTILE(link_submit_stop(&s, "\xed\xa0\x80"), "stop string 0");
    HOSTILE(for (i = 0; i < 17; i++) link_submit_stop(&s, "x"),
            "more than 16 stop strings");
    HOSTILE(for (i = 0; i < 33; i++) link_submit_query(&s, "x"),
            "more than 32 queries");
    HOSTILE(link_submit_field(&s, 0, "x", 1), "field 1 has type 0");
    HOSTILE(link_submit_field(&s, 6, "x", 1), "field 1 has type 6");
    HOSTILE(link_submit_field(&s, DSA_LINK_FIELD_RESUME, ids, 6),
            "have 6 bytes");
    HOSTILE(link_submit_resume(&s, ids, 1); link_submit_resume(&s, ids, 0),
            "more than one field");
    HOSTILE(link_submit_resume(&s, ids, 6), "6 tokens to resume from");
    HOSTILE(ids[1] = SMALL_MODEL_BYTES + 256; link_submit_resume(&s, ids, 2),
            "token 1 to resume from is 259");
    HOSTILE(ids[1] = UINT32_MAX; link_submit_resume(&s, ids, 2),
            "token 1 to resume from");
    HOSTILE(link_submit_text(&s, "x"); s.head.n_fields--, "follow");
    HOSTILE(s.len -= 8, "a field has 5 bytes");
    HOSTILE(s.len -= 9, "last field");
    HOSTILE(s.len = 1, "last field");
    HOSTILE(s.len = 0, "last field");

    for (i = 0; i < 4; i++) {
        bad = i == 0 ? 9 : i == 1 ? 0xffffffff : i == 2 ? 0xfffffff8 : 100;
        HOSTILE(memcpy(&field, s.fields, sizeof(field)); field.length = bad;
                memcpy(s.fields, &field, sizeof(field)), "a field has");
    }

#undef HOSTILE

    /* an empty text is an empty prompt */

    link_submit_init(&s, 5);
    link_submit_text(&s, "");
    refused(&h, &s, DSA_LINK_E_INVALID, "empty");

    link_submit_init(&s, 5);
    link_submit_query(&s, "<bos>");
    refused(&h, &s, DSA_LINK_E_INVALID, "empty");

    /* a count has no answer, so it cannot have fields about one */

    link_submit_init(&s, 5);
    link_submit_text(&s, "hello");
    link_submit_stop(&s, "x");
    refused_as(&h, DSA_LINK_COUNT, &s, DSA_LINK_E_INVALID, "type 3");

    link_submit_init(&s, 5);
    link_submit_text(&s, "hello");
    link_submit_resume(&s, ids, 1);
    refused_as(&h, DSA_LINK_COUNT, &s, DSA_LINK_E_INVALID, "type 4");

    /* shorter than its head */

    {
        uint8_t  *p;

        memset(&a, 0, sizeof(a));
        p = dsa_link_reserve(&h.client[0].link.submit, DSA_LINK_SUBMIT,
                             dsa_link_id(9999, 0), 3);
        assert_non_null(p);
        (void) dsa_link_commit(&h.client[0].link.submit);
        host_turn(&h);
        take_events(&h, 0, &a, 1);
        assert_int_equal(a.error, DSA_LINK_E_INVALID);
    }

    link_submit_init(&s, 5);
    link_submit_text(&s, "hello");
    a = ask(&h, &s);
    assert_string_equal(a.text, "hello");
    free(a.text);

    host_stop(&h);
}


static void
test_count(void **state)
{
    char           *text;
    host_t          h;
    answer_t        a;
    uint32_t        i;
    link_submit_t   s;

    static const struct {
        uint32_t  len;
        uint32_t  count;
        uint32_t  more;
    } sent[] = {
        { 5, 5, 0 }, { 99, 99, 0 }, { 1000, 1000, 0 },
        { 131072, 131072, 0 }, { 131073, 131072, 1 }, { 400000, 131072, 1 }
    };

    host_start(&h, "context_length 100; max_running 1; max_waiting 1;");

    for (i = 0; i < sizeof(sent) / sizeof(sent[0]); i++) {
        text = calloc(sent[i].len + 1, 1);
        assert_non_null(text);
        memset(text, 'a', sent[i].len);

        link_submit_init(&s, 0);
        link_submit_text(&s, text);
        a = ask_as(&h, DSA_LINK_COUNT, &s);
        assert_int_equal(a.counted, 1);
        assert_int_equal(a.prompt_tokens, sent[i].count);
        assert_int_equal(a.more, sent[i].more);
        free(a.text);
        free(text);
    }

    /* a control token is one, and a query none */

    link_submit_init(&s, 0);
    link_submit_control(&s, "<bos>");
    link_submit_text(&s, "<bos>");
    link_submit_query(&s, "<bos>");
    a = ask_as(&h, DSA_LINK_COUNT, &s);
    assert_int_equal(a.prompt_tokens, 6);
    free(a.text);

    link_submit_init(&s, 0);
    link_submit_control(&s, "<nobody>");
    refused_as(&h, DSA_LINK_COUNT, &s, DSA_LINK_E_INVALID, "<nobody>");

    host_stop(&h);
}


/* Which names the tokenizer has, and how much of a prompt the cache has. */

static void
test_accepted(void **state)
{
    char           text[641];
    host_t         h;
    answer_t       a;
    uint32_t       i;
    link_submit_t  s;

    host_start(&h, "");
    memset(text, 'x', sizeof(text));
    text[640] = '\0';

    for (i = 0; i < 3; i++) {
        link_submit_init(&s, 1);
        s.head.flags = i == 2 ? DSA_LINK_PRIVATE : 0;
        link_submit_query(&s, "</think>");
        link_submit_query(&s, "<bos>");
        link_submit_text(&s, text);
        link_submit_query(&s, "<eos>");
        link_submit_query(&s, "x");
        a = ask(&h, &s);

        assert_int_equal(a.prompt_tokens, 640);
        assert_int_equal(a.cached_tokens, i == 1 ? 576 : 0);
        assert_int_equal(a.vocabulary, 6);
        free(a.text);
    }

    host_stop(&h);
}


static void
check_tokens(const answer_t *a, const dsa_link_token_t *want, uint32_t n)
{
    uint32_t  i;

    assert_int_equal(a->tokens, n);

    for (i = 0; i < n; i++) {
        assert_int_equal(a->token[i].id, want[i].id);
        assert_int_equal(a->token[i].end, want[i].end);
        assert_int_equal(a->token[i].control, want[i].control);
    }
}


#define BYTE(c)     (SMALL_MODEL_BYTES + (unsigned char) (c))


/* Each token comes with its id, the end of its text, and what it is. */

static void
test_tokens(void **state)
{
    host_t         h;
    answer_t       a;
    dsa_answer_t   answer;
    link_submit_t  s;

    static const dsa_link_token_t  euro[] = {
        { BYTE('a'), 1, 0 }, { BYTE('\xe2'), 1, 0 }, { BYTE('\x82'), 1, 0 },
        { BYTE('\xac'), 4, 0 }, { BYTE('\xe2'), 7, 0 }
    };

    static const dsa_link_token_t  eos[] = {
        { SMALL_MODEL_EOS, 5, 5 }, { SMALL_MODEL_EOS, 10, 5 }
    };

    static const dsa_link_token_t  stop[] = {
        { BYTE('o'), 1, 0 }, { BYTE('n'), 2, 0 }, { BYTE('e'), 2, 0 },
        { BYTE(' '), 2, 0 }
    };

    host_start(&h, "");

    /* a character counts to the token that completes it */

    link_submit_init(&s, 5);
    link_submit_text(&s, "a\xe2\x82\xac\xe2");
    a = ask(&h, &s);
    assert_string_equal(a.text, "a\xe2\x82\xac\xef\xbf\xbd");
    check_tokens(&a, euro, 5);
    free(a.text);

    link_submit_init(&s, 2);
    s.head.flags = DSA_LINK_IGNORE_EOS;
    link_submit_control(&s, "<bos>");
    a = ask(&h, &s);
    check_tokens(&a, eos, 2);
    free(a.text);

    /* text that spells a control token is not one */

    link_submit_init(&s, 5);
    link_submit_text(&s, "<eos>");
    a = ask(&h, &s);
    assert_string_equal(a.text, "<eos>");
    assert_int_equal(a.token[4].end, 5);
    assert_int_equal(a.token[4].control, 0);
    free(a.text);

    /* tokens of a stop string have no text */

    link_submit_init(&s, 10);
    link_submit_text(&s, "one two");
    link_submit_stop(&s, "e ");
    a = ask(&h, &s);
    assert_string_equal(a.text, "on");
    check_tokens(&a, stop, 4);
    free(a.text);

    /* ... or a part of it, which is not the name of a control token */

    link_submit_init(&s, 10);
    s.head.flags = DSA_LINK_IGNORE_EOS;
    link_submit_control(&s, "<bos>");
    link_submit_stop(&s, "os><eos");
    link_submit_stop(&s, "os>><");
    a = ask(&h, &s);
    assert_string_equal(a.text, "<e");
    assert_int_equal(a.tokens, 2);
    assert_int_equal(a.token[0].end, 2);
    assert_int_equal(a.token[0].control, 0);
    free(a.text);

    link_submit_init(&s, 10);
    s.head.flags = DSA_LINK_IGNORE_EOS;
    link_submit_control(&s, "<bos>");
    link_submit_stop(&s, "><eo");
    a = ask(&h, &s);
    assert_string_equal(a.text, "<eos");
    free(a.text);

    host_stop(&h);

    /* bytes before a control token are not a part of its name */

    assert_int_equal(dsa_answer_init(&answer, NULL, 0), DSA_OK);
    assert_int_equal(dsa_answer_add(&answer, 7, dsa_strz("\xe2\x82"), 0),
                     DSA_OK);
    assert_int_equal(answer.n_ready, 1);
    assert_int_equal(answer.ready, 0);
    assert_int_equal(dsa_answer_add(&answer, 8, dsa_strz("\xac<x>"), 1),
                     DSA_OK);
    assert_int_equal(answer.ready, 9);
    assert_memory_equal(answer.text, "\xef\xbf\xbd\xef\xbf\xbd<x>", 9);
    dsa_answer_free(&answer);
}


/* A token is not sent before its text can no longer become a stop string. */

static void
test_delayed_tokens(void **state)
{
    uint32_t       i;
    dsa_str_t      stop;
    dsa_answer_t   a;

    static const uint32_t  ready[] = { 1, 2, 2, 2, 2, 6 };

    stop = dsa_strz("cdefx");
    assert_int_equal(dsa_answer_init(&a, &stop, 1), DSA_OK);
    a.row = 1;

    for (i = 0; i < 6; i++) {
        assert_int_equal(dsa_answer_add(&a, i, dsa_str(&"abcdeg"[i], 1), 0),
                         DSA_OK);
        dsa_answer_logprobs(&a)->token = i;
        assert_int_equal(a.n_ready, ready[i]);
        assert_int_equal(a.ready, ready[i]);
    }

    dsa_answer_sent(&a, 3, 3);
    assert_int_equal(a.n_ready, 3);
    assert_int_equal(a.token[0].id, 3);
    assert_int_equal(a.logprob[0].token, 3);
    assert_int_equal(a.token[2].end, 3);
    dsa_answer_free(&a);
}


/*
 * Wherever an answer is cut, a second request with the tokens so far gives the
 * rest of it, and bills the rest only.
 */

static void
test_resume(void **state)
{
    char            text[256];
    host_t          h;
    answer_t        whole, a;
    uint32_t        i, j, cut, ids[64];
    link_submit_t   s;

    static const struct {
        const char  *prompt;
        const char  *stop;
        uint32_t     flags;
        uint32_t     max_tokens;
    } t[] = {
        { "hello world", "xyz", 0, 20 },
        { "h\xc3\xa9 \xe2\x82\xac!", "none", 0, 17 },
        { "hello world", "o w", 0, 20 },
        { "aaaab", "aaba", 0, 20 },
        { "\xe2\x82\xac\xe2\x82", "none", 0, 12 },
        { "", "><", DSA_LINK_IGNORE_EOS, 5 }
    };

    host_start(&h, "");

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        for (cut = 0; cut == 0 || cut <= whole.tokens; cut++) {
            link_submit_init(&s, t[i].max_tokens);
            s.head.flags = t[i].flags;
            link_submit_control(&s, "<bos>");
            link_submit_text(&s, t[i].prompt);
            link_submit_stop(&s, t[i].stop);

            if (cut == 0) {
                whole = ask(&h, &s);
                assert_int_equal(whole.done.completion_tokens, whole.tokens);
                continue;
            }

            for (j = 0; j < cut; j++) {
                ids[j] = whole.token[j].id;
            }

            link_submit_resume(&s, ids, cut);
            a = ask(&h, &s);

            /* the text so far, as the first replica sent it, and the rest */

            j = cut == whole.tokens ? (uint32_t) whole.len
                                    : whole.token[cut - 1].end;
            memcpy(text, whole.text, j);
            memcpy(text + j, a.text, a.len + 1);

            assert_string_equal(text, whole.text);
            assert_int_equal(a.finish, whole.finish);
            assert_int_equal(a.tokens, whole.tokens - cut);
            assert_int_equal(a.done.completion_tokens, a.tokens);
            assert_int_equal(a.prompt_tokens, whole.prompt_tokens);

            for (j = 0; j < a.tokens; j++) {
                assert_int_equal(a.token[j].id, whole.token[cut + j].id);
            }

            free(a.text);
        }

        free(whole.text);
    }

    host_stop(&h);
}


static void
test_context(void **state)
{
    host_t         h;
    answer_t       a;
    link_submit_t  s;

    host_start(&h, "context_length 100;");

    link_submit_init(&s, 90);
    link_submit_text(&s, "0123456789");
    a = ask(&h, &s);
    assert_int_equal(a.finish, DSA_LINK_FINISH_LENGTH);
    assert_int_equal(a.len, 90);
    free(a.text);

    link_submit_init(&s, 91);
    link_submit_text(&s, "0123456789");
    a = ask(&h, &s);
    assert_int_equal(a.error, DSA_LINK_E_CONTEXT);
    assert_int_equal(a.prompt_tokens, 10);
    assert_non_null(strstr(a.reason, "100 are possible"));
    free(a.text);

    link_submit_init(&s, UINT32_MAX);
    link_submit_text(&s, "0123456789");
    refused(&h, &s, DSA_LINK_E_CONTEXT, "max_tokens");

    link_submit_init(&s, 0);
    link_submit_text(&s, "0123456789012345678901234567890123456789"
                     "0123456789012345678901234567890123456789"
                     "01234567890123456789");
    refused(&h, &s, DSA_LINK_E_CONTEXT, "100");

    host_stop(&h);
}


static void
test_overload_and_drain(void **state)
{
    host_t          h;
    answer_t        a[6];
    uint32_t        i;
    link_submit_t   s;

    host_start(&h, "max_running 2; token_budget 64; max_waiting 2;");
    memset(a, 0, sizeof(a));

    for (i = 0; i < 5; i++) {
        link_submit_init(&s, 10);
        link_submit_text(&s, "abcde");
        assert_int_equal(link_client_submit(&h.client[0], dsa_link_id(1, i),
                                            &s), 0);
    }

    host_turn(&h);
    take_events(&h, 0, a, 6);
    assert_int_equal(a[3].error, 0);
    assert_int_equal(a[4].error, DSA_LINK_E_OVERLOADED);

    /* what was accepted goes on while the replica drains */

    h.service.draining = 1;
    link_submit_init(&s, 10);
    link_submit_text(&s, "abcde");
    assert_int_equal(link_client_submit(&h.client[0], dsa_link_id(1, 5), &s),
                     0);

    for (i = 0; i < 30; i++) {
        host_turn(&h);
        take_events(&h, 0, a, 6);
    }

    assert_int_equal(atomic_load(&h.client[0].link.control->draining), 1);
    assert_int_equal(a[5].error, DSA_LINK_E_DRAINING);

    for (i = 0; i < 4; i++) {
        assert_int_equal(a[i].finish, DSA_LINK_FINISH_LENGTH);
        assert_string_equal(a[i].text, "abcdeabcde");
        free(a[i].text);
    }

    assert_int_equal(dsa_session_requests(h.session[0]), 0);

    host_stop(&h);
}


/* In prefill, in decode, waiting, over its deadline: gone within one turn. */

static void
test_cancel(void **state)
{
    char                text[2001];
    host_t              h;
    answer_t            a[4];
    uint32_t            i;
    link_submit_t       s;
    dsa_sched_stats_t   stats;

    host_start(&h, "max_running 3; token_budget 100;");
    memset(a, 0, sizeof(a));
    memset(text, 'x', sizeof(text));
    text[2000] = '\0';

    for (i = 0; i < 4; i++) {
        link_submit_init(&s, 1000);
        link_submit_text(&s, i == 0 ? "short" : text);

        if (i == 2) {
            s.head.deadline_ms = 1;
        }

        assert_int_equal(link_client_submit(&h.client[0], dsa_link_id(7, i),
                                            &s), 0);
    }

    host_turn(&h);
    host_turn(&h);
    take_events(&h, 0, a, 4);

    assert_int_equal(a[2].finish, DSA_LINK_FINISH_DEADLINE);
    assert_true(a[0].tokens > 0);
    assert_int_equal(a[1].tokens, 0);

    /* a cancel of an earlier request in the slot means nothing */

    dsa_link_cancel(&h.client[0].link, dsa_link_id(6, 0));
    host_turn(&h);
    take_events(&h, 0, a, 4);
    assert_int_equal(a[0].finish, 0);

    for (i = 0; i < 4; i++) {
        dsa_link_cancel(&h.client[0].link, dsa_link_id(7, i));
    }

    host_turn(&h);
    take_events(&h, 0, a, 4);

    assert_int_equal(a[0].finish, DSA_LINK_FINISH_CANCELLED);
    assert_int_equal(a[1].finish, DSA_LINK_FINISH_CANCELLED);
    assert_int_equal(a[3].finish, DSA_LINK_FINISH_CANCELLED);
    assert_int_equal(a[0].done.prompt_tokens, 5);
    assert_true(a[0].done.completion_tokens >= a[0].tokens);

    dsa_sched_stats(h.service.sched, &stats);
    assert_int_equal(stats.pages_used, 0);
    assert_int_equal(stats.running + stats.waiting, 0);
    assert_int_equal(dsa_sched_busy(h.service.sched), 0);

    for (i = 0; i < 4; i++) {
        free(a[i].text);
    }

    host_stop(&h);
}


/* A worker that is gone takes its requests along, and only those. */

static void
test_session_end(void **state)
{
    host_t              h;
    answer_t            a[1];
    uint32_t            i;
    link_submit_t       s;
    dsa_sched_stats_t   stats;

    host_start(&h, "");
    memset(a, 0, sizeof(a));

    for (i = 0; i < 20; i++) {
        link_submit_init(&s, 1000);
        link_submit_text(&s, "abc");
        assert_int_equal(link_client_submit(&h.client[1], dsa_link_id(1, i),
                                            &s), 0);
    }

    link_submit_init(&s, 50);
    link_submit_text(&s, "xyz");
    assert_int_equal(link_client_submit(&h.client[0], dsa_link_id(1, 0), &s),
                     0);

    host_turn(&h);
    host_turn(&h);
    host_close(&h, 1);

    dsa_sched_stats(h.service.sched, &stats);
    assert_int_equal(stats.running + stats.waiting, 1);

    for (i = 0; i < 60; i++) {
        host_turn(&h);
        take_events(&h, 0, a, 1);
    }

    assert_int_equal(a[0].finish, DSA_LINK_FINISH_LENGTH);
    assert_int_equal(a[0].len, 50);
    free(a[0].text);

    host_stop(&h);
}


/*
 * A worker that does not read: its ring fills, all its answers are computed
 * to their ends, another worker has each of its tokens in the step in which
 * it was sampled, and when the first one reads at last everything is there.
 */

static void
test_full_ring(void **state)
{
    char            text[64];
    host_t          h;
    answer_t        a[200], b[1];
    uint32_t        i, j, n;
    link_submit_t   s;

    n = 100;
    host_start(&h, "max_running 256;");
    memset(a, 0, sizeof(a));
    memset(b, 0, sizeof(b));

    for (i = 0; i < n; i++) {
        (void) snprintf(text, sizeof(text), "(%u)", i);
        link_submit_init(&s, 700);
        s.head.flags = i % 5 == 0 ? DSA_LINK_LOGPROBS : 0;
        s.head.top_logprobs = i % 2;
        link_submit_text(&s, text);
        assert_int_equal(link_client_submit(&h.client[0], dsa_link_id(1, i),
                                            &s), 0);
    }

    link_submit_init(&s, 500);
    link_submit_text(&s, "other");
    assert_int_equal(link_client_submit(&h.client[1], dsa_link_id(1, 0), &s),
                     0);

    for (i = 1; i <= 900; i++) {
        host_turn(&h);
        take_events(&h, 1, b, 1);
        assert_int_equal(b[0].tokens, i < 500 ? i : 500);
    }

    assert_int_equal(b[0].finish, DSA_LINK_FINISH_LENGTH);
    assert_int_equal(dsa_sched_busy(h.service.sched), 0);
    assert_true(dsa_session_requests(h.session[0]) > 0);

    for (i = 0; i < 100000 && dsa_session_requests(h.session[0]) != 0; i++) {
        take_events(&h, 0, a, n);
        host_turn(&h);
    }

    take_events(&h, 0, a, n);

    for (i = 0; i < n; i++) {
        (void) snprintf(text, sizeof(text), "(%u)", i);

        assert_int_equal(a[i].finish, DSA_LINK_FINISH_LENGTH);
        assert_int_equal(a[i].tokens, 700);
        assert_int_equal(a[i].len, 700);
        assert_int_equal(a[i].n_top, i % 10 == 5);

        for (j = 0; j < 700; j++) {
            assert_int_equal(a[i].text[j], text[j % strlen(text)]);
        }

        /* it came in a few large records, not in 700 */

        assert_true(a[i].records < 500);
        free(a[i].text);
    }

    free(b[0].text);
    host_stop(&h);
}


/* The same, and the worker gives up instead of reading. */

static void
test_full_ring_cancel(void **state)
{
    host_t          h;
    answer_t        a[100];
    uint32_t        i;
    link_submit_t   s;

    host_start(&h, "max_running 256;");
    memset(a, 0, sizeof(a));

    for (i = 0; i < 100; i++) {
        link_submit_init(&s, 5000);
        link_submit_text(&s, "abc");
        assert_int_equal(link_client_submit(&h.client[0], dsa_link_id(1, i),
                                            &s), 0);
    }

    for (i = 0; i < 200; i++) {
        host_turn(&h);
    }

    for (i = 0; i < 100; i++) {
        dsa_link_cancel(&h.client[0].link, dsa_link_id(1, i));
    }

    host_turn(&h);
    assert_int_equal(dsa_sched_busy(h.service.sched), 0);

    take_events(&h, 0, a, 100);
    host_turn(&h);
    take_events(&h, 0, a, 100);

    for (i = 0; i < 100; i++) {
        assert_int_equal(a[i].finish, DSA_LINK_FINISH_CANCELLED);
        free(a[i].text);
    }

    host_stop(&h);
}


/* A worker that breaks the rules loses its session, and nobody else. */

static void
test_corrupt(void **state)
{
    void           *p;
    host_t          h;
    answer_t        a;
    uint32_t        kind;
    link_submit_t   s;
    link_client_t  *c;

    for (kind = 0; kind < 11; kind++) {
        host_start(&h, "");
        c = &h.client[1];

        link_submit_init(&s, 100);
        link_submit_text(&s, "abc");
        assert_int_equal(link_client_submit(c, dsa_link_id(1, 0), &s), 0);
        host_turn(&h);

        if (kind != 7 && kind != 8 && kind != 9 && kind != 10) {
            p = dsa_link_reserve(&c->link.submit, DSA_LINK_SUBMIT,
                                 dsa_link_id(1, 1), 64);
            assert_non_null(p);
            memset(p, 0, 64);
            (void) dsa_link_commit(&c->link.submit);
            p = (uint8_t *) p - sizeof(dsa_link_record_t);

        } else {
            p = NULL;
        }

        switch (kind) {
        case 0:
            ((dsa_link_record_t *) p)->length = UINT32_MAX;
            break;
        case 1:
            ((dsa_link_record_t *) p)->type = 77;
            break;
        case 2:
            ((dsa_link_record_t *) p)->type = DSA_LINK_TOKENS;
            break;
        case 3:
            ((dsa_link_record_t *) p)->type = DSA_LINK_PAD;
            break;
        case 4:
            ((dsa_link_record_t *) p)->id = dsa_link_id(1, c->hello.slots);
            break;
        case 5:
            ((dsa_link_record_t *) p)->id = dsa_link_id(0, 3);
            break;
        case 6:
            ((dsa_link_record_t *) p)->id = dsa_link_id(2, 0);
            break;
        case 7:
            atomic_fetch_add(&c->link.control->submit.head, 4);
            break;
        case 8:
            atomic_fetch_add(&c->link.control->submit.head, 2 << 20);
            break;
        case 9:
            atomic_fetch_sub(&c->link.control->submit.head, 8);
            break;
        default:
            atomic_fetch_add(&c->link.control->event.tail, 1 << 20);
        }

        host_turn(&h);
        assert_int_equal(h.broken[1], 1);
        assert_true(h.error[0] != '\0');

        link_submit_init(&s, 3);
        link_submit_text(&s, "abc");
        a = ask(&h, &s);
        assert_string_equal(a.text, "abc");
        free(a.text);

        host_stop(&h);
    }
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


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_hello),
        cmocka_unit_test(test_echo),
        cmocka_unit_test(test_long_echo),
        cmocka_unit_test(test_characters),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_logprobs),
        cmocka_unit_test(test_prefix_by_tenant),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_count),
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_delayed_tokens),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_context),
        cmocka_unit_test(test_overload_and_drain),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_session_end),
        cmocka_unit_test(test_full_ring),
        cmocka_unit_test(test_full_ring_cancel),
        cmocka_unit_test(test_corrupt)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
