
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "bench/counts.h"
#include "bench/draft_share.h"
#include "bench/http.h"
#include "bench/stream_times.h"
#include "engine/backend.h"


/*
 * Chats over HTTP against an nginx on loopback: so many streams at once, each
 * of which begins its next request when one ends.  With a rate, requests arrive
 * at random times with this mean, at most so many at once; one that finds all
 * streams in use waits, and this time is a part of its time to the first token.
 *
 * Prints a row of a Markdown table: output tokens per second, and the times of
 * bench/stream_times.h.  Token counts are those of the server's usage.
 *
 * With a number of seconds the row ends then, and has what was measured until
 * then.  Requests that still run are aborted and are not counted as requests,
 * but tokens per second include their tokens: these are the difference of the
 * engines' counters between begin and end (bench/counts.h).
 */

#define CHAT_TIMEOUT_MS 60000       /* without any event */
#define CHAT_PROMPT     1024        /* most tokens of a prompt, and with its */
#define CHAT_TOTAL      2048        /* answer, where lengths vary */


typedef struct {
    http_t          http;
    char           *request;
    size_t          request_len;
    int             done;           /* 1: "[DONE]" */
    uint32_t        prompt_tokens;
    uint32_t        tokens;
    stream_time_t   time;
} chat_stream_t;


typedef struct {
    int             port;
    uint32_t        streams;
    uint32_t        requests;
    uint32_t        prompt;         /* tokens, about */
    uint32_t        answer;         /* tokens */
    int             spread;         /* 1: lengths vary, with these means */
    double          rate;           /* requests per second; 0: each stream
                                       begins the next one at once */
    double          seconds;        /* that the row takes at most; 0: any */
    double          temperature;
    const char     *uri;
    int             text;           /* 1: text completions */
    const char     *model;
} chat_conf_t;


/* Each is a token of the demonstration model, behind a space. */

static const char *const  chat_word[] = {
    "paper", "house", "river", "school", "music", "city", "people", "voice",
    "story", "table", "summer", "mountain", "friend", "letter", "road",
    "island", "history", "machine", "market", "window"
};

static chat_conf_t      conf = { .uri = "/v1/chat/completions",
                                 .model = "model", .streams = 1,
                                 .requests = 1, .prompt = 1000,
                                 .answer = 256, .temperature = 1 };
static uint64_t         seed = 1;
static uint32_t         begun, ended, failed;
static uint64_t         prompt_tokens, tokens;
static stream_times_t   times;
static uint64_t        *arrival;    /* [requests] ns, with a rate */
static chat_stream_t  **idle;       /* [streams] */
static uint32_t         n_idle;
static int              ep;


/* splitmix64 */

static uint64_t
draw(void)
{
    uint64_t  z;

    seed += 0x9e3779b97f4a7c15;
    z = seed;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;

    return z ^ z >> 31;
}


/*
 * A length from a log-normal distribution with this mean and a sigma of 1, as
 * lengths of chats are spread; at least 4.  The limits are those of vLLM's and
 * SGLang's benchmarks, which leave longer chats of ShareGPT out.  Without them
 * the longest of 1,000 answers, which ends alone, decides the time of a row.
 * They lower the means a little: a row has the means of its chats.
 */

static uint32_t
length(uint32_t mean, uint32_t most)
{
    double  u, v, x;

    if (!conf.spread) {
        return mean;
    }

    u = ((double) (draw() >> 11) + 1) / 9007199254740993.0;
    v = (double) (draw() >> 11) / 9007199254740992.0;
    x = mean * exp(sqrt(-2 * log(u)) * cos(2 * M_PI * v) - 0.5);
    x = x < 4 ? 4 : x > most ? most : x;

    return (uint32_t) x;
}


/* A prompt of words in an order of its own from the first one on. */

static int
chat_request(chat_stream_t *s)
{
    FILE      *f;
    char      *body;
    size_t     len;
    uint32_t   i, n;

    f = open_memstream(&body, &len);

    if (f == NULL) {
        return -1;
    }

    n = length(conf.prompt, CHAT_PROMPT);

    (void) fprintf(f, "{\"model\":\"%s\",\"stream\":true,\"stream_options\":"
                   "{\"include_usage\":true},\"temperature\":%.4f,\"top_p\":1,"
                   "\"seed\":%u,\"ignore_eos\":true,\"max_tokens\":%u,%s",
                   conf.model, conf.temperature, begun,
                   length(conf.answer, CHAT_TOTAL - n),
                   conf.text ? "\"prompt\":\""
                   : "\"messages\":[{\"role\":\"user\",\"content\":\"");

    for (i = 0; i < n; i++) {
        (void) fprintf(f, "%s%s", i > 0 ? " " : "",
                       chat_word[draw() % (sizeof(chat_word)
                                           / sizeof(chat_word[0]))]);
    }

    (void) fprintf(f, conf.text ? "\"}" : "\"}]}");

    if (fclose(f) != 0) {
        return -1;
    }

    free(s->request);

    n = (uint32_t) asprintf(&s->request, "POST %s HTTP/1.1\r\nHost: localhost"
                            "\r\nContent-Type: application/json\r\n"
                            "Content-Length: %zu\r\nConnection: close\r\n\r\n"
                            "%s", conf.uri, len, body);
    free(body);
    s->request_len = n;

    return n == UINT32_MAX ? -1 : 0;
}


static int
chat_begin(chat_stream_t *s)
{
    uint64_t  at;

    if (chat_request(s) == -1) {
        return -1;
    }

    at = conf.rate > 0 ? arrival[begun] : http_now();
    begun++;
    s->done = 0;
    s->prompt_tokens = 0;
    s->tokens = 0;
    stream_begin(&s->time, at);

    return http_open(&s->http, ep, conf.port, s->request, s->request_len, s);
}


static int
chat_end(chat_stream_t *s)
{
    if (s->http.status != 200 || !s->done || s->tokens == 0) {
        if (failed++ == 0) {
            (void) fprintf(stderr, "chat: status %d, %u tokens, %s: %.300s\n",
                           s->http.status, s->tokens,
                           s->done ? "done" : "cut", s->http.line);
        }
    }

    if (s->done) {
        stream_end(&times, &s->time, http_now(), s->tokens);
    }

    http_close(&s->http);
    ended++;
    prompt_tokens += s->prompt_tokens;
    tokens += s->tokens;

    if (conf.rate > 0) {
        idle[n_idle++] = s;
        return 0;
    }

    return begun < conf.requests ? chat_begin(s) : 0;
}


/* Draws the times of arrival: exponential, with the mean of the rate. */

static void
chat_arrivals(uint64_t start)
{
    double    u;
    uint32_t  i;

    for (i = 0; i < conf.requests; i++) {
        u = ((double) (draw() >> 11) + 1) / 9007199254740993.0;
        start += (uint64_t) (-log(u) / conf.rate * 1e9);
        arrival[i] = start;
    }
}


/*
 * Begins the requests that have arrived, as far as streams are idle.  Returns
 * the time to the next arrival in ms, or -1 after an error.
 */

static int
chat_arrive(void)
{
    uint64_t  now;

    for ( ;; ) {
        now = http_now();

        if (begun == conf.requests || n_idle == 0) {
            return CHAT_TIMEOUT_MS;
        }

        if (arrival[begun] > now) {
            return (int) ((arrival[begun] - now) / 1000000) + 1;
        }

        if (chat_begin(idle[--n_idle]) == -1) {
            return -1;
        }
    }
}


/* A line of the response. */

static void
chat_line(void *data, const char *line, uint64_t now)
{
    chat_stream_t  *s;

    s = data;

    if (strncmp(line, "data: ", 6) != 0) {
        return;
    }

    if (strcmp(line + 6, "[DONE]") == 0) {
        s->done = 1;
        return;
    }

    if (http_has_text(line)) {
        stream_text(&times, &s->time, now);
    }

    if (strstr(line, "\"usage\":{") != NULL) {
        s->prompt_tokens = (uint32_t) http_number(line, "\"prompt_tokens\":");
        s->tokens = (uint32_t) http_number(line, "\"completion_tokens\":");
    }
}


static int
chat_options(int argc, char **argv)
{
    int  c;

    while ((c = getopt(argc, argv, "p:c:n:i:o:r:u:m:a:t:lxs:")) != -1) {
        switch (c) {

        case 'p':
            conf.port = atoi(optarg);
            break;

        case 'c':
            conf.streams = (uint32_t) atoi(optarg);
            break;

        case 'n':
            conf.requests = (uint32_t) atoi(optarg);
            break;

        case 'i':
            conf.prompt = (uint32_t) atoi(optarg);
            break;

        case 'o':
            conf.answer = (uint32_t) atoi(optarg);
            break;

        case 'r':
            conf.rate = atof(optarg);
            break;

        case 'u':
            conf.uri = optarg;
            break;

        case 'm':
            conf.model = optarg;
            break;

        case 'x':
            conf.text = 1;
            conf.uri = "/v1/completions";
            break;

        case 'a':
            conf.temperature = bench_draft_temperature(atof(optarg),
                                                       DSA_RANDOM_LOGITS);
            break;

        case 't':
            conf.seconds = atof(optarg);
            break;

        case 'l':
            conf.spread = 1;
            break;

        case 's':
            seed = strtoull(optarg, NULL, 10);
            break;

        default:
            return -1;
        }
    }

    return conf.port > 0 && conf.streams > 0 && conf.prompt > 0
           && conf.answer > 0 && conf.rate >= 0 && conf.temperature > 0
           && conf.seconds >= 0
           && (conf.requests >= conf.streams
               || (conf.rate > 0 && conf.requests > 0))
           && optind == argc ? 0 : -1;
}


/* The engines' counters; -1: they cannot be read. */

static int
chat_count(counts_t *counts)
{
    memset(counts, 0, sizeof(counts_t));

    if (counts_read(counts, conf.port, NULL) == -1) {
        (void) fprintf(stderr, "chat: /metrics: %s\n", strerror(errno));
        return -1;
    }

    return 0;
}


/* The row's tokens; all: those of the engines, and not of complete requests. */

static void
chat_print(double seconds, const counts_t *all)
{
    double         cpu, whole;
    counts_t       sum;
    struct rusage  use;

    (void) getrusage(RUSAGE_SELF, &use);
    cpu = (double) (use.ru_utime.tv_sec + use.ru_stime.tv_sec)
          + (double) (use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;

    sum.prompt = prompt_tokens;
    sum.completion = tokens;
    whole = ended != 0 ? ended : 1;

    (void) printf("| %u | %u", conf.streams, ended);

    if (all != NULL) {
        (void) printf(" of %u", conf.requests);
        sum = *all;
    }

    (void) printf(" | %.0f / %.0f | %.0f | %.0f | %.0f / %.0f | %.1f "
                  "/ %.1f | %.2f / %.2f | %.1f | %u | %.2f |\n",
                  (double) prompt_tokens / whole, (double) tokens / whole,
                  (double) sum.completion / seconds,
                  (double) (sum.prompt + sum.completion) / seconds,
                  stream_quantile(&times.first, 0.5),
                  stream_quantile(&times.first, 0.99),
                  stream_quantile(&times.interval, 0.5),
                  stream_quantile(&times.interval, 0.99),
                  stream_quantile(&times.token, 0.5),
                  stream_quantile(&times.token, 0.99), seconds, failed,
                  cpu / seconds);
}


/*
 * Waits for events until all requests have ended, until the time end, or until
 * nothing arrives any more.  Returns 1 when some are left, or -1 after an
 * error; *now is the time of the return.
 */

static int
chat_loop(uint64_t end, uint64_t *now)
{
    int                  i, n, wait;
    uint64_t             left;
    chat_stream_t       *ready;
    struct epoll_event   ev[256];

    while (ended < (conf.rate > 0 ? conf.requests : begun)) {
        wait = conf.rate > 0 ? chat_arrive() : CHAT_TIMEOUT_MS;
        *now = http_now();

        if (*now >= end) {
            return 1;
        }

        left = (end - *now) / 1000000 + 1;
        n = wait == -1 ? -1
            : epoll_wait(ep, ev, 256, left < (uint64_t) wait ? (int) left
                                                             : wait);

        if (n == 0 && wait == CHAT_TIMEOUT_MS && left > CHAT_TIMEOUT_MS) {
            (void) fprintf(stderr, "chat: nothing arrived for 60 s\n");
            failed++;
            *now = http_now();

            return 1;
        }

        if (n == -1 && errno != EINTR) {
            return -1;
        }

        for (i = 0; i < n; i++) {
            ready = ev[i].data.ptr;

            if (http_io(&ready->http, ep, ev[i].events, ready) == 1
                && chat_end(ready) == -1)
            {
                return -1;
            }
        }
    }

    *now = http_now();

    return 0;
}


/*
 * Runs the load and prints its row.  -1 with errno, or 1: the counters cannot
 * be read.
 */

static int
chat_run(chat_stream_t *s)
{
    int        rc;
    uint32_t   k;
    uint64_t   start, end, now;
    counts_t   before, after;

    for (k = 0; k < conf.streams; k++) {
        if (http_init(&s[k].http, chat_line, &s[k]) == -1) {
            return -1;
        }
    }

    if (conf.seconds > 0 && chat_count(&before) == -1) {
        return 1;
    }

    start = http_now();
    end = conf.seconds > 0 ? start + (uint64_t) (conf.seconds * 1e9)
                           : UINT64_MAX;

    if (conf.rate > 0) {
        chat_arrivals(start);
    }

    for (k = 0; k < conf.streams; k++) {
        if (conf.rate == 0 && chat_begin(&s[k]) == -1) {
            return -1;
        }

        idle[n_idle++] = &s[k];
    }

    rc = chat_loop(end, &now);

    if (rc == 1 && conf.seconds > 0) {
        if (chat_count(&after) == -1) {
            return 1;
        }

        if (counts_since(&after, &before) == -1) {
            (void) fprintf(stderr, "chat: an engine has ended\n");
            return 1;
        }
    }

    if (rc != -1) {
        chat_print((double) (now - start) * 1e-9,
                   rc == 1 && conf.seconds > 0 ? &after : NULL);
    }

    return rc == -1 ? -1 : 0;
}


int
main(int argc, char **argv)
{
    int             rc;
    uint32_t        k;
    chat_stream_t  *s;

    if (chat_options(argc, argv) == -1) {
        (void) fprintf(stderr, "usage: chat -p PORT [-c STREAMS] [-n REQUESTS]"
                       " [-i PROMPT_WORDS] [-o ANSWER_TOKENS] [-l] [-x]\n"
                       "            [-r RATE] [-u URI] [-m MODEL] [-s SEED]"
                       " [-t SECONDS] [-a SHARE]\n"
                       "-l: lengths vary around the given means\n"
                       "-x: text completions instead of chats\n"
                       "-r: requests arrive so many times a second\n"
                       "-t: the row ends after so many seconds\n"
                       "-a: this share of the drafts of random weights is "
                       "right, above 0 to 0.92\n"
                       "prints: streams | requests | mean prompt / answer | "
                       "output tokens/s | all tokens/s |\n"
                       "        TTFT ms median / 99th | between events ms "
                       "median / 99th |\n"
                       "        ms per token of a request median / 99th | "
                       "seconds | failed | CPU\n");
        return 2;
    }

    s = calloc(conf.streams, sizeof(chat_stream_t));
    arrival = calloc(conf.requests, sizeof(uint64_t));
    idle = calloc(conf.streams, sizeof(chat_stream_t *));
    ep = epoll_create1(EPOLL_CLOEXEC);

    if (s == NULL || arrival == NULL || idle == NULL || ep == -1) {
        (void) fprintf(stderr, "chat: no memory\n");
        return 1;
    }

    rc = chat_run(s);

    if (rc == -1 || times.failed) {
        (void) fprintf(stderr, "chat: %s\n",
                       strerror(rc == -1 ? errno : ENOMEM));
    }

    for (k = 0; k < conf.streams; k++) {
        http_free(&s[k].http);
        free(s[k].request);
    }

    free(s);
    free(arrival);
    free(idle);
    rc = rc != 0 || failed != 0 || times.failed;
    stream_times_free(&times);

    return rc;
}
