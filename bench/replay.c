
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "bench/http.h"
#include "bench/replay_prompt.h"
#include "bench/replay_results.h"


/*
 * Replays a trace of requests against an nginx on loopback.  Prints hits of the
 * prefix cache, time to the first token, throughput and cost.  Token counts are
 * those of the server's usage.
 *
 * With a speed, requests are sent at their times of arrival, divided by the
 * speed.  A request that finds all connections in use waits for one, and this
 * time is a part of its time to the first token, as it is for a user.  Without
 * a speed, each connection sends its next request when one has ended.  In
 * either case a request waits until the one before it in its conversation has
 * ended; this time is not a part of it.
 */

#define REPLAY_EVENTS       256
#define REPLAY_ADDED        3           /* <User>, <Assistant>, </think> */
#define REPLAY_TIMEOUT_MS   600000      /* without any event */


typedef struct {
    http_t              http;
    dsa_buf_t           request;
    replay_result_t    *result;         /* of its request; NULL: idle */
    uint64_t            begun;          /* ns: arrival */
    int                 first;          /* 1: a token has arrived */
    int                 done;           /* 1: "[DONE]" */
    int                 usage;          /* 1: the usage has arrived */
} replay_stream_t;


typedef struct {
    int                 port;
    int                 ep;
    uint32_t            limit;
    uint32_t            concurrency;
    uint32_t            added;          /* tokens of the template for a further
                                           message, or PROMPT_ONE */
    double              speed;          /* 0: times of arrival are ignored */
    const char         *file;
    const char         *tokenizer;
    const char         *uri;
    const char         *model;
    const char         *label;
    const char         *list;
    replay_prices_t     prices;
    prompt_words_t      words;
    trace_t             trace;
    replay_result_t    *result;         /* [trace.n] */
    replay_stream_t    *stream;         /* [concurrency] */
    uint32_t            running;
    uint32_t            waiting;        /* requests that have not begun */
    uint32_t            first;          /* all requests before it have begun */
    uint64_t            start;          /* ns */
    uint32_t            seconds;        /* most of the run; 0: any number */
    int                 reported;       /* 1: a failure was reported */
} replay_t;


static int replay_options(replay_t *r, int argc, char **argv);
static int replay_value(replay_t *r, int option);
static int replay_count(const char *text, uint32_t max, uint32_t *out);
static int replay_speed(const char *text, double *out);
static int replay_prices(const char *text, replay_prices_t *out);
static int replay_init(replay_t *r);
static int replay_run(replay_t *r);
static int replay_begin_all(replay_t *r, uint64_t now, int *timeout);
static uint64_t replay_arrival(const replay_t *r, uint32_t i);
static replay_stream_t *replay_idle(replay_t *r);
static int replay_begin(replay_t *r, replay_stream_t *s, uint32_t i,
    uint64_t begun);
static int replay_request(replay_t *r, replay_stream_t *s,
    const trace_request_t *request);
static void replay_line(void *data, const char *line, uint64_t now);
static void replay_end(replay_t *r, replay_stream_t *s);
static void replay_report(replay_t *r, const replay_stream_t *s,
    const trace_request_t *request);
static void replay_free(replay_t *r);


static const char  replay_usage[] =
"usage: replay --port PORT --tokenizer FILE [OPTION ...] TRACE\n"
"\n"
"TRACE has a JSON object on each line; - is stdin, *.xz is unpacked.\n"
"\n"
"  --speed X          divide times of arrival by X; max (the default) ignores\n"
"                     them\n"
"  --concurrency N    most requests at a time (default 16)\n"
"  --requests N       only the first N requests\n"
"  --seconds N        end after N seconds; only requests that have ended then\n"
"                     are counted\n"
"  --prices M,H,O     USD for a million tokens: miss, hit, output\n"
"                     (default 0.28,0.028,0.42)\n"
"  --messages N|one   a message ends where prompts of the trace part, and the\n"
"                     template adds N tokens for each (default 3); one: a\n"
"                     prompt is one message, so that nginx finds no prefix to\n"
"                     choose a replica by\n"
"  --uri URI          default /v1/chat/completions\n"
"  --model NAME       in requests (default model)\n"
"  --label TEXT       the first columns of the rows that are printed\n"
"  --list FILE        write a line of CSV for each request\n";


int
main(int argc, char **argv)
{
    int               rc;
    replay_t          r;
    dsa_err_t         err;

    memset(&r, 0, sizeof(r));
    r.ep = -1;
    r.limit = UINT32_MAX;
    r.concurrency = 16;
    r.added = REPLAY_ADDED;
    r.uri = "/v1/chat/completions";
    r.model = "model";
    r.label = "";
    r.prices.miss = 0.28;
    r.prices.hit = 0.028;
    r.prices.output = 0.42;

    if (replay_options(&r, argc, argv) == -1) {
        (void) fprintf(stderr, "%s", replay_usage);
        return 2;
    }

    if (trace_read(&r.trace, r.file, r.limit, &err) != DSA_OK
        || prompt_words(&r.words, r.tokenizer, &err) != DSA_OK)
    {
        (void) fprintf(stderr, "replay: %s\n", err.text);
        trace_free(&r.trace);
        return 1;
    }

    rc = 1;

    if (replay_init(&r) == 0 && replay_run(&r) == 0) {
        rc = replay_print(&r.trace, r.result, r.label, &r.prices,
                          (double) (http_now() - r.start) * 1e-9) != 0;
    }

    if (r.list != NULL && r.result != NULL
        && replay_list(&r.trace, r.result, r.list) == -1)
    {
        (void) fprintf(stderr, "replay: %s: %s\n", r.list, strerror(errno));
        rc = 1;
    }

    replay_free(&r);

    return rc;
}


static int
replay_options(replay_t *r, int argc, char **argv)
{
    int  c;

    static const struct option  options[] = {
        { "port", required_argument, NULL, 'p' },
        { "tokenizer", required_argument, NULL, 't' },
        { "speed", required_argument, NULL, 's' },
        { "concurrency", required_argument, NULL, 'c' },
        { "requests", required_argument, NULL, 'n' },
        { "seconds", required_argument, NULL, 'e' },
        { "prices", required_argument, NULL, 'd' },
        { "messages", required_argument, NULL, 'a' },
        { "uri", required_argument, NULL, 'u' },
        { "model", required_argument, NULL, 'm' },
        { "label", required_argument, NULL, 'l' },
        { "list", required_argument, NULL, 'o' },
        { NULL, 0, NULL, 0 }
    };

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (replay_value(r, c) == -1) {
            return -1;
        }
    }

    if (r->port == 0 || r->tokenizer == NULL || optind != argc - 1) {
        return -1;
    }

    r->file = argv[optind];

    return 0;
}


static int
replay_value(replay_t *r, int option)
{
    uint32_t  port;

    switch (option) {

    case 'p':
        if (replay_count(optarg, UINT16_MAX, &port) == -1) {
            return -1;
        }

        r->port = (int) port;
        return 0;

    case 't':
        r->tokenizer = optarg;
        return 0;

    case 's':
        return replay_speed(optarg, &r->speed);

    case 'c':
        return replay_count(optarg, INT32_MAX, &r->concurrency);

    case 'n':
        return replay_count(optarg, INT32_MAX, &r->limit);

    case 'e':
        return replay_count(optarg, INT32_MAX, &r->seconds);

    case 'd':
        return replay_prices(optarg, &r->prices);

    case 'a':
        if (strcmp(optarg, "one") == 0) {
            r->added = PROMPT_ONE;
            return 0;
        }

        return replay_count(optarg, TRACE_BLOCK - 1, &r->added);

    case 'u':
        r->uri = optarg;
        return 0;

    case 'm':
        r->model = optarg;
        return 0;

    case 'l':
        r->label = optarg;
        return 0;

    case 'o':
        r->list = optarg;
        return 0;
    }

    return -1;
}


static int
replay_count(const char *text, uint32_t max, uint32_t *out)
{
    char           *end;
    unsigned long   n;

    errno = 0;
    n = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0
        || n == 0 || n > max)
    {
        (void) fprintf(stderr, "replay: \"%s\" is not a number; expected an "
                       "integer from 1 to %u\n", text, max);
        return -1;
    }

    *out = (uint32_t) n;

    return 0;
}


static int
replay_speed(const char *text, double *out)
{
    char  *end;

    if (strcmp(text, "max") == 0) {
        *out = 0;
        return 0;
    }

    *out = strtod(text, &end);

    if (end == text || *end != '\0' || !(*out >= 1e-6 && *out <= 1e9)) {
        (void) fprintf(stderr, "replay: the speed is \"%s\"; expected a "
                       "number from 0.000001 to 1e9, or max\n", text);
        return -1;
    }

    return 0;
}


static int
replay_prices(const char *text, replay_prices_t *out)
{
    int  n;

    n = -1;

    if (sscanf(text, "%lf,%lf,%lf%n", &out->miss, &out->hit, &out->output, &n)
        != 3 || n == -1 || text[n] != '\0'
        || !(out->miss >= 0 && out->hit >= 0 && out->output >= 0))
    {
        (void) fprintf(stderr, "replay: the prices are \"%s\"; expected three "
                       "numbers with commas: miss, hit, output\n", text);
        return -1;
    }

    return 0;
}


static int
replay_init(replay_t *r)
{
    uint32_t  i;

    if (r->concurrency > r->trace.n) {
        r->concurrency = r->trace.n;
    }

    r->result = calloc(r->trace.n, sizeof(replay_result_t));
    r->stream = calloc(r->concurrency, sizeof(replay_stream_t));
    r->ep = epoll_create1(EPOLL_CLOEXEC);

    if (r->result == NULL || r->stream == NULL || r->ep == -1) {
        (void) fprintf(stderr, "replay: %s\n", strerror(errno));
        return -1;
    }

    for (i = 0; i < r->concurrency; i++) {
        r->stream[i].http.fd = -1;
    }

    for (i = 0; i < r->concurrency; i++) {
        if (http_init(&r->stream[i].http, replay_line, &r->stream[i]) == -1) {
            (void) fprintf(stderr, "replay: out of memory\n");
            return -1;
        }
    }

    r->waiting = r->trace.n;
    r->start = http_now();

    return 0;
}


/* Returns 0 when all requests, or the seconds of the run, have ended. */

static int
replay_run(replay_t *r)
{
    int                  i, n, timeout;
    uint64_t             now, end;
    replay_stream_t     *s;
    struct epoll_event   ev[REPLAY_EVENTS];

    end = r->seconds == 0 ? UINT64_MAX
                          : r->start + r->seconds * 1000000000ULL;

    for ( ;; ) {
        now = http_now();

        if (replay_begin_all(r, now, &timeout) == -1) {
            (void) fprintf(stderr, "replay: %s\n", strerror(errno));
            return -1;
        }

        if ((r->running == 0 && r->waiting == 0) || now >= end) {
            return 0;
        }

        if ((end - now) / 1000000 < (uint64_t) timeout) {
            timeout = (int) ((end - now) / 1000000) + 1;
        }

        n = epoll_wait(r->ep, ev, REPLAY_EVENTS, timeout);

        if (n == -1 && errno != EINTR) {
            (void) fprintf(stderr, "replay: epoll_wait: %s\n",
                           strerror(errno));
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
    }
}


/*
 * Begins all requests that can begin now.  *timeout is set to the ms until the
 * next arrival, or to REPLAY_TIMEOUT_MS.
 */

static int
replay_begin_all(replay_t *r, uint64_t now, int *timeout)
{
    uint32_t          i, previous;
    uint64_t          begun, wait_ms;
    replay_stream_t  *s;

    *timeout = REPLAY_TIMEOUT_MS;

    while (r->first < r->trace.n
           && r->result[r->first].state != REPLAY_WAITING)
    {
        r->first++;
    }

    for (i = r->first; i < r->trace.n && r->running < r->concurrency; i++) {

        if (r->result[i].state != REPLAY_WAITING) {
            continue;
        }

        begun = replay_arrival(r, i);

        if (begun > now) {
            wait_ms = (begun - now) / 1000000 + 1;

            if (wait_ms < REPLAY_TIMEOUT_MS) {
                *timeout = (int) wait_ms;
            }

            break;
        }

        previous = r->trace.request[i].previous;

        if (previous != TRACE_NONE) {
            if (r->result[previous].state < REPLAY_ENDED) {
                continue;
            }

            if (r->result[previous].ended > begun) {
                begun = r->result[previous].ended;
            }
        }

        s = replay_idle(r);

        if (replay_begin(r, s, i, r->speed != 0 ? begun : now) == -1) {
            return -1;
        }
    }

    return 0;
}


/* The time of arrival, ns; without a speed that of the start. */

static uint64_t
replay_arrival(const replay_t *r, uint32_t i)
{
    if (r->speed == 0) {
        return r->start;
    }

    return r->start + (uint64_t) (r->trace.request[i].arrival_ms * 1e6
                                  / r->speed);
}


static replay_stream_t *
replay_idle(replay_t *r)
{
    uint32_t  i;

    for (i = 0; i < r->concurrency; i++) {
        if (r->stream[i].result == NULL) {
            return &r->stream[i];
        }
    }

    assert(r->running == r->concurrency);

    return NULL;
}


static int
replay_begin(replay_t *r, replay_stream_t *s, uint32_t i, uint64_t begun)
{
    uint32_t  k;

    if (replay_request(r, s, &r->trace.request[i]) == -1) {
        errno = ENOMEM;
        return -1;
    }

    s->result = &r->result[i];
    s->result->state = REPLAY_RUNNING;
    s->begun = begun;
    s->first = 0;
    s->done = 0;
    s->usage = 0;

    for (k = 0; k < REPLAY_TIERS; k++) {
        s->result->tier[k] = -1;
    }

    r->running++;
    r->waiting--;

    return http_open(&s->http, r->ep, r->port, s->request.data,
                     s->request.len, s);
}


static int
replay_request(replay_t *r, replay_stream_t *s, const trace_request_t *request)
{
    dsa_buf_t  body;

    memset(&body, 0, sizeof(body));

    /* with one seed, answers that flat logits have would be the same tokens */

    dsa_buf_printf(&body, "{\"model\":\"%s\",\"stream\":true,"
                   "\"stream_options\":{\"include_usage\":true},"
                   "\"temperature\":1,\"top_p\":1,\"seed\":%zu,"
                   "\"ignore_eos\":true,\"max_tokens\":%u,\"messages\":",
                   r->model, (size_t) (request - r->trace.request),
                   request->output);
    prompt_messages(&r->words, &r->trace, request, r->added, &body);
    dsa_buf_addz(&body, "}");

    s->request.len = 0;
    dsa_buf_printf(&s->request, "POST %s HTTP/1.1\r\nHost: localhost\r\n"
                   "Content-Type: application/json\r\nContent-Length: %zu\r\n"
                   "Connection: close\r\n", r->uri, body.len);

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

    if (!s->first && http_has_text(line)) {
        s->first = 1;
        result->first_ms = (float) (now - s->begun) * 1e-6f;
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
    const trace_request_t  *request;

    request = &r->trace.request[s->result - r->result];
    s->result->ended = http_now();
    s->result->total_ms = (float) (s->result->ended - s->begun) * 1e-6f;

    if (s->http.status == 200 && s->done && s->usage && s->first
        && s->result->output == request->output
        && s->result->prompt >= request->input)
    {
        s->result->state = REPLAY_ENDED;

    } else {
        s->result->state = REPLAY_FAILED;
        replay_report(r, s, request);
    }

    http_close(&s->http);
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
                       s->first ? "the answer has text"
                                : "the answer has no text", request->input);
    }
}


static void
replay_free(replay_t *r)
{
    uint32_t  i;

    for (i = 0; r->stream != NULL && i < r->concurrency; i++) {
        http_free(&r->stream[i].http);
        dsa_buf_free(&r->stream[i].request);
    }

    free(r->stream);
    free(r->result);
    trace_free(&r->trace);
}
