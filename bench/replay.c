
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "bench/http.h"
#include "bench/replay_options.h"
#include "bench/replay_order.h"
#include "bench/replay_prompt.h"
#include "bench/replay_results.h"


/*
 * Replays a trace of requests against an nginx on loopback.  Prints hits of the
 * prefix cache, times of tokens, rates and cost.
 *
 * Requests are sent when they are due (bench/replay_order.h), as long as there
 * are connections: one that finds all of them in use waits, and with a speed
 * this time is a part of its time to the first token, as it is for a user.
 *
 * What is measured begins some seconds after the start (--warm) and ends with
 * the trace, after so many seconds (--seconds), or when an agent finds no
 * further conversation.  Requests that run then are aborted.
 */

#define REPLAY_EVENTS       256
#define REPLAY_TIMEOUT_MS   600000      /* without any event */


typedef struct {
    http_t              http;
    dsa_buf_t           request;
    replay_result_t    *result;         /* of its request; NULL: idle */
    stream_times_t     *times;          /* of the replay */
    stream_time_t       time;
    int                 done;           /* 1: "[DONE]" */
    int                 usage;          /* 1: the usage has arrived */
} replay_stream_t;


typedef struct {
    int                 ep;
    replay_options_t    options;
    prompt_words_t      words;
    trace_t             trace;
    replay_order_t      order;
    replay_window_t     window;
    replay_result_t    *result;         /* [trace.n] */
    replay_stream_t    *stream;         /* [concurrency] */
    uint32_t            running;
    uint64_t            start;          /* ns */
    uint64_t            completion;     /* tokens of answers that are wholly
                                           in the window */
    int                 reported;       /* 1: a failure was reported */
} replay_t;


static int replay_init(replay_t *r);
static int replay_run(replay_t *r);
static int replay_wait(replay_t *r, uint64_t until);
static int replay_measure(replay_t *r);
static int replay_is_over(const replay_t *r, uint64_t now);
static int replay_begin_all(replay_t *r, uint64_t now, uint64_t *until);
static replay_stream_t *replay_idle(replay_t *r);
static int replay_begin(replay_t *r, replay_stream_t *s, uint32_t i,
    uint64_t due);
static int replay_request(replay_t *r, replay_stream_t *s,
    const trace_request_t *request);
static void replay_line(void *data, const char *line, uint64_t now);
static void replay_end(replay_t *r, replay_stream_t *s);
static void replay_report(replay_t *r, const replay_stream_t *s,
    const trace_request_t *request);
static void replay_free(replay_t *r);


int
main(int argc, char **argv)
{
    int        rc;
    replay_t   r;
    dsa_err_t  err;

    memset(&r, 0, sizeof(r));
    r.ep = -1;

    if (replay_options(&r.options, argc, argv) == -1) {
        return 2;
    }

    if (trace_read(&r.trace, r.options.file, r.options.limit, &err) != DSA_OK
        || prompt_words(&r.words, r.options.tokenizer, &err) != DSA_OK)
    {
        (void) fprintf(stderr, "replay: %s\n", err.text);
        trace_free(&r.trace);
        return 1;
    }

    rc = 1;

    if (replay_init(&r) == 0 && replay_run(&r) == 0) {
        rc = replay_print(&r.trace, r.result, &r.window, &r.options) != 0;
    }

    if (r.options.list != NULL && r.result != NULL
        && replay_list(&r.trace, r.result, r.start, r.options.list) == -1)
    {
        (void) fprintf(stderr, "replay: %s: %s\n", r.options.list,
                       strerror(errno));
        rc = 1;
    }

    replay_free(&r);

    return rc;
}


static int
replay_init(replay_t *r)
{
    uint32_t           i;
    replay_options_t  *o;

    o = &r->options;

    if (o->agents > r->trace.n_first) {
        (void) fprintf(stderr, "replay: --agents is %u, but the trace has %u "
                       "conversations; expected at most as many\n",
                       o->agents, r->trace.n_first);
        return -1;
    }

    if (o->concurrency > r->trace.n) {
        o->concurrency = r->trace.n;
    }

    replay_window_init(&r->window);
    r->result = calloc(r->trace.n, sizeof(replay_result_t));
    r->stream = calloc(o->concurrency, sizeof(replay_stream_t));
    r->ep = epoll_create1(EPOLL_CLOEXEC);

    if (r->result == NULL || r->stream == NULL || r->ep == -1) {
        (void) fprintf(stderr, "replay: %s\n", strerror(errno));
        return -1;
    }

    for (i = 0; i < o->concurrency; i++) {
        r->stream[i].http.fd = -1;
        r->stream[i].times = &r->window.times;
    }

    for (i = 0; i < o->concurrency; i++) {
        if (http_init(&r->stream[i].http, replay_line, &r->stream[i]) == -1) {
            (void) fprintf(stderr, "replay: out of memory\n");
            return -1;
        }
    }

    return 0;
}


/* Runs until the end of the measurement, and leaves the rest. */

static int
replay_run(replay_t *r)
{
    uint64_t  now, until;

    /* without a time before it, the measurement begins with the run */

    if (r->options.warm == 0 && replay_measure(r) == -1) {
        return -1;
    }

    r->start = http_now();

    if (replay_order_init(&r->order, &r->trace, r->options.speed,
                          r->options.agents, r->start) == -1)
    {
        (void) fprintf(stderr, "replay: out of memory\n");
        return -1;
    }

    for ( ;; ) {
        now = http_now();

        if (r->window.times.from == UINT64_MAX
            && now >= r->start + r->options.warm * 1000000000ULL
            && replay_measure(r) == -1)
        {
            return -1;
        }

        if (replay_begin_all(r, now, &until) == -1) {
            (void) fprintf(stderr, "replay: %s\n", strerror(errno));
            return -1;
        }

        if (replay_is_over(r, now)) {
            break;
        }

        if (replay_wait(r, until) == -1) {
            return -1;
        }
    }

    if (r->order.exhausted && r->options.seconds != 0) {
        (void) fprintf(stderr, "replay: an agent found no further "
                       "conversation after %.1f s\n",
                       (double) (now - r->start) * 1e-9);
    }

    if (r->window.times.from == UINT64_MAX) {
        (void) fprintf(stderr, "replay: the trace ended before the %u s of "
                       "--warm\n", r->options.warm);
        return -1;
    }

    return replay_window_end(&r->window, &r->options, now,
                             r->running == 0 ? r->completion : 0);
}


/* Begins the measurement. */

static int
replay_measure(replay_t *r)
{
    uint32_t                i, n, late;
    const trace_request_t  *request;

    n = 0;
    late = 0;

    for (i = 0; n < r->options.agents && r->options.warm != 0; i++) {
        request = &r->trace.request[i];

        if (request->previous == TRACE_NONE) {
            late += r->result[i].first_ms == 0;
            n++;
        }
    }

    if (late != 0) {
        (void) fprintf(stderr, "replay: %u of %u agents have no token when "
                       "the measurement begins\n", late, n);
    }

    return replay_window_begin(&r->window, &r->options);
}


/* 1 if nothing is left to do, or to measure. */

static int
replay_is_over(const replay_t *r, uint64_t now)
{
    uint64_t  from;

    from = r->window.times.from;

    return (r->running == 0 && replay_order_next(&r->order) == NULL)
           || r->order.exhausted
           || (r->options.seconds != 0 && from != UINT64_MAX
               && now >= from + r->options.seconds * 1000000000ULL);
}


/* Waits for events until a time, and handles them. */

static int
replay_wait(replay_t *r, uint64_t until)
{
    int                  i, n, timeout;
    uint64_t             now;
    replay_stream_t     *s;
    struct epoll_event   ev[REPLAY_EVENTS];

    now = http_now();
    timeout = REPLAY_TIMEOUT_MS;

    if (until <= now) {
        timeout = 0;

    } else if ((until - now) / 1000000 < REPLAY_TIMEOUT_MS) {
        timeout = (int) ((until - now) / 1000000) + 1;
    }

    n = epoll_wait(r->ep, ev, REPLAY_EVENTS, timeout);

    if (n == -1 && errno != EINTR) {
        (void) fprintf(stderr, "replay: epoll_wait: %s\n", strerror(errno));
        return -1;
    }

    if (n == 0 && timeout == REPLAY_TIMEOUT_MS && r->running != 0) {
        (void) fprintf(stderr, "replay: nothing arrived for %d s\n",
                       REPLAY_TIMEOUT_MS / 1000);
        return -1;
    }

    for (i = 0; i < n; i++) {
        s = ev[i].data.ptr;

        if (http_io(&s->http, r->ep, ev[i].events, s) == 1) {
            replay_end(r, s);
        }
    }

    return 0;
}


/*
 * Begins all requests that can begin now.  *until is the time of the next one,
 * or at which the measurement begins or ends.
 */

static int
replay_begin_all(replay_t *r, uint64_t now, uint64_t *until)
{
    uint64_t             end;
    replay_stream_t     *s;
    const replay_due_t  *next;

    *until = UINT64_MAX;

    while (r->running < r->options.concurrency) {
        next = replay_order_next(&r->order);

        if (next == NULL) {
            break;
        }

        if (next->due > now) {
            *until = next->due;
            break;
        }

        s = replay_idle(r);

        if (replay_begin(r, s, next->request,
                         r->options.speed != 0 ? next->due : now) == -1)
        {
            return -1;
        }
    }

    if (r->window.times.from == UINT64_MAX) {
        end = r->start + r->options.warm * 1000000000ULL;

    } else if (r->options.seconds != 0) {
        end = r->window.times.from + r->options.seconds * 1000000000ULL;

    } else {
        return 0;
    }

    if (end < *until) {
        *until = end;
    }

    return 0;
}


static replay_stream_t *
replay_idle(replay_t *r)
{
    uint32_t  i;

    for (i = 0; i < r->options.concurrency; i++) {
        if (r->stream[i].result == NULL) {
            return &r->stream[i];
        }
    }

    assert(r->running == r->options.concurrency);

    return NULL;
}


static int
replay_begin(replay_t *r, replay_stream_t *s, uint32_t i, uint64_t due)
{
    uint32_t  k;

    if (replay_request(r, s, &r->trace.request[i]) == -1) {
        errno = ENOMEM;
        return -1;
    }

    s->result = &r->result[i];
    s->result->state = REPLAY_RUNNING;
    s->result->due = due;
    stream_begin(&s->time, due);
    s->done = 0;
    s->usage = 0;

    for (k = 0; k < REPLAY_TIERS; k++) {
        s->result->tier[k] = -1;
    }

    r->running++;
    replay_order_begin(&r->order);

    return http_open(&s->http, r->ep, (int) r->options.port, s->request.data,
                     s->request.len, s);
}


static int
replay_request(replay_t *r, replay_stream_t *s, const trace_request_t *request)
{
    dsa_buf_t                body;
    const replay_options_t  *o;

    o = &r->options;
    memset(&body, 0, sizeof(body));

    /* with one seed, answers that flat logits have would be the same tokens */

    dsa_buf_printf(&body, "{\"model\":\"%s\",\"stream\":true,"
                   "\"stream_options\":{\"include_usage\":true},"
                   "\"temperature\":%.4f,\"top_p\":1,\"seed\":%zu,"
                   "\"ignore_eos\":true,\"max_tokens\":%u,\"messages\":",
                   o->model, o->temperature,
                   (size_t) (request - r->trace.request), request->output);
    prompt_messages(&r->words, &r->trace, request, o->added, &body);
    dsa_buf_addz(&body, "}");

    s->request.len = 0;
    dsa_buf_printf(&s->request, "POST %s HTTP/1.1\r\nHost: localhost\r\n"
                   "Content-Type: application/json\r\nContent-Length: %zu\r\n"
                   "Connection: close\r\n", o->uri, body.len);

    if (request->tenant != TRACE_NONE) {
        dsa_buf_printf(&s->request, "Authorization: Bearer replay-%s\r\n",
                       r->trace.tenant[request->tenant]);
    }

    dsa_buf_addz(&s->request, "\r\n");
    dsa_buf_add(&s->request, body.data, body.len);
    s->request.failed |= body.failed;
    dsa_buf_free(&body);

    return s->request.failed ? -1 : 0;
}


static void
replay_line(void *data, const char *line, uint64_t now)
{
    uint32_t          i;
    replay_result_t  *result;
    replay_stream_t  *s;

    static const char *const  tier[REPLAY_TIERS] = {
        "\"gpu_tokens\":", "\"host_tokens\":", "\"redis_tokens\":"
    };

    s = data;
    result = s->result;

    if (strncmp(line, "data: ", 6) != 0) {
        return;
    }

    if (strcmp(line + 6, "[DONE]") == 0) {
        s->done = 1;
        return;
    }

    if (http_has_text(line)) {
        stream_text(s->times, &s->time, now);
        result->first_ms = (float) (s->time.first - s->time.begun) * 1e-6f;
    }

    if (strstr(line, "\"usage\":{") != NULL) {
        s->usage = 1;
        result->prompt = (uint32_t) http_number(line, "\"prompt_tokens\":");
        result->output = (uint32_t) http_number(line,
                                                "\"completion_tokens\":");
        result->cached = (uint32_t) http_number(line, "\"cached_tokens\":");

        for (i = 0; i < REPLAY_TIERS; i++) {
            result->tier[i] = http_number(line, tier[i]);
        }
    }
}


static void
replay_end(replay_t *r, replay_stream_t *s)
{
    uint32_t                i;
    const trace_request_t  *request;

    i = (uint32_t) (s->result - r->result);
    request = &r->trace.request[i];
    s->result->ended = http_now();

    if (s->http.status == 200 && s->done && s->usage && s->time.first != 0
        && s->result->output == request->output
        && s->result->prompt >= request->input)
    {
        s->result->state = REPLAY_ENDED;
        stream_end(s->times, &s->time, s->result->ended, s->result->output);
        r->completion += s->time.begun >= s->times->from ? s->result->output
                                                         : 0;

    } else {
        s->result->state = REPLAY_FAILED;
        replay_report(r, s, request);
    }

    http_close(&s->http);
    replay_order_end(&r->order, i, s->result->ended);
    s->result = NULL;
    r->running--;
}


/* The first failure; others are only counted. */

static void
replay_report(replay_t *r, const replay_stream_t *s,
    const trace_request_t *request)
{
    uint32_t  n;

    if (r->reported) {
        return;
    }

    r->reported = 1;
    n = (uint32_t) (request - r->trace.request) + 1;

    if (s->http.status == 0) {
        (void) fprintf(stderr, "replay: request %u: the connection was closed "
                       "before a response\n", n);

    } else if (s->http.status != 200) {
        (void) fprintf(stderr, "replay: request %u: status %d: %.300s\n", n,
                       s->http.status, s->http.line);

    } else if (!s->done || !s->usage) {
        (void) fprintf(stderr, "replay: request %u: the stream ended before "
                       "its usage and [DONE]: %.300s\n", n, s->http.line);

    } else if (s->result->output != request->output) {
        (void) fprintf(stderr, "replay: request %u: the answer has %u tokens; "
                       "expected %u\n", n, s->result->output,
                       request->output);

    } else {
        (void) fprintf(stderr, "replay: request %u: the prompt has %u tokens "
                       "and %s; expected at least %u, and text\n", n,
                       s->result->prompt,
                       s->time.first != 0 ? "the answer has text"
                                : "the answer has no text", request->input);
    }
}


static void
replay_free(replay_t *r)
{
    uint32_t  i;

    for (i = 0; r->stream != NULL && i < r->options.concurrency; i++) {
        http_free(&r->stream[i].http);
        dsa_buf_free(&r->stream[i].request);
    }

    replay_order_free(&r->order);
    stream_times_free(&r->window.times);
    free(r->stream);
    free(r->result);
    trace_free(&r->trace);
}
