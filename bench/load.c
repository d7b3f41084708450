
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A load client.  One thread reads many streaming chats at once, each on its
 * own connection, and measures the delay of each event since the engine
 * published it.
 *
 *     load -p PORT -c STREAMS -n TOKENS [-u URI] [-m MODEL]
 *          [-o unix:ENGINE_SOCKET | -o PORT_OF_SOURCE]
 *
 * An observer (observe.c) has a stream of its own, which it reads directly
 * from the engine's ring or from the bare source.  Its tokens come from the
 * same steps as all others, so their times are the times of publication.  The
 * i-th token of a stream belongs to the i-th step after its first.
 *
 * Every token is one letter x, because the null backend answers a prompt of
 * one x in this way.  The length of a text is its number of tokens.
 *
 * The program prints "open N" when each of the N streams has received an
 * event, and one line of JSON at the end.
 */


#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/http.h"
#include "bench/observe.h"


#define LOAD_BATCH      512
#define LOAD_BUFFER     65536
#define LOAD_CONNECTING 128         /* at once; a listen queue is short */
#define LOAD_WORD       7           /* bytes that distinguish the events */


typedef enum {
    LOAD_NEW = 0,
    LOAD_SENT,
    LOAD_HEAD,
    LOAD_BODY,
    LOAD_DONE,
    LOAD_FAILED
} load_state_e;


/* the reader's position in a body */

typedef enum {
    LOAD_MARK = 0,                  /* before "\ndata: " */
    LOAD_KIND,                      /* in the first bytes after it */
    LOAD_CONTENT,                   /* before "content":" or the end of line */
    LOAD_TEXT                       /* in the content, before its quote */
} load_part_e;


typedef struct {
    int            fd;
    load_state_e   state;
    load_part_e    part;
    uint32_t       matched;         /* bytes of the string that is searched */
    uint32_t       tokens;
    uint32_t       events;          /* with a token */
    uint32_t       chunks;          /* events with JSON */
    uint32_t       in_event;        /* tokens of this event */
    char           word[LOAD_WORD + 1];
    char           head[16];
    uint32_t       head_len;
    uint32_t       head_end;        /* of "\r\n\r\n" */
    uint64_t      *times;           /* [tokens], ns */
} load_stream_t;


typedef struct {
    int            port;
    uint32_t       streams;
    uint32_t       tokens;
    const char    *uri;
    const char    *model;
    const char    *observe;
} load_conf_t;


static const char     load_mark[] = "\ndata: ";
static const char     load_content[] = "\"content\":\"";
static load_conf_t    load_conf;
static load_stream_t *load_streams;
static char           load_request[2048];
static size_t         load_request_len;
static uint32_t       load_started, load_opening, load_open, load_ended;
static uint32_t       load_failed;
static int            load_ep;


static void
load_end(load_stream_t *s, load_state_e state, const char *why)
{
    if (s->state < LOAD_BODY || (s->state == LOAD_BODY && s->chunks == 0)) {
        load_opening--;
    }

    if (state == LOAD_FAILED) {
        if (load_failed++ == 0) {
            fprintf(stderr, "load: a stream failed: %s\n", why);
        }
    }

    s->state = state;
    close(s->fd);
    s->fd = -1;
    load_ended++;
}


static int
load_start(load_stream_t *s)
{
    struct epoll_event  ev;

    s->fd = http_connect(load_conf.port);

    if (s->fd == -1) {
        return -1;
    }

    ev.events = EPOLLIN|EPOLLOUT|EPOLLET;
    ev.data.ptr = s;

    return epoll_ctl(load_ep, EPOLL_CTL_ADD, s->fd, &ev);
}


/* A line of the stream begins; its first bytes are in s->word. */

static void
load_event(load_stream_t *s)
{
    if (memcmp(s->word, "[DONE]", 6) == 0) {
        if (s->tokens == load_conf.tokens) {
            load_end(s, LOAD_DONE, NULL);

        } else {
            load_end(s, LOAD_FAILED, "fewer tokens than requested");
        }

        return;
    }

    if (memcmp(s->word, "{\"error", 7) == 0) {
        load_end(s, LOAD_FAILED, "an error in the stream");
        return;
    }

    s->part = LOAD_CONTENT;
    s->in_event = 0;

    if (s->chunks++ == 0) {

        /* the role */

        load_opening--;
        load_open++;

        if (load_open == load_conf.streams) {
            printf("open %u\n", load_open);
            fflush(stdout);
        }
    }
}


/* A byte of a token's text. */

static void
load_text(load_stream_t *s, char c, uint64_t now)
{
    if (c == '"') {
        s->part = LOAD_MARK;
        s->matched = 0;
        return;
    }

    if (c != 'x' || s->tokens == load_conf.tokens) {
        load_end(s, LOAD_FAILED, "an unexpected token");
        return;
    }

    if (s->in_event++ == 0) {
        s->events++;
    }

    s->times[s->tokens++] = now;
}


/* Matches one more byte of a string.  1: the string is complete. */

static int
load_match(load_stream_t *s, char c, const char *what)
{
    if (c != what[s->matched]) {
        s->matched = c == what[0];
        return 0;
    }

    return what[++s->matched] == '\0';
}


static void
load_body(load_stream_t *s, const char *p, const char *last, uint64_t now)
{
    for ( /* void */ ; p < last && s->state == LOAD_BODY; p++) {

        switch (s->part) {

        case LOAD_MARK:

            if (s->matched == 0) {
                p = memchr(p, '\n', (size_t) (last - p));

                if (p == NULL) {
                    return;
                }
            }

            if (load_match(s, *p, load_mark)) {
                s->part = LOAD_KIND;
                s->matched = 0;
            }

            break;

        case LOAD_KIND:

            s->word[s->matched++] = *p;

            if (s->matched == LOAD_WORD) {
                s->matched = 0;
                load_event(s);
            }

            break;

        case LOAD_CONTENT:

            if (*p == '\n') {
                s->part = LOAD_MARK;
                s->matched = 1;

            } else if (load_match(s, *p, load_content)) {
                s->part = LOAD_TEXT;
            }

            break;

        case LOAD_TEXT:

            load_text(s, *p, now);
            break;
        }
    }
}


/* Skips the head of the response, which begins with the status. */

static const char *
load_head(load_stream_t *s, const char *p, const char *last)
{
    static const char  end[] = "\r\n\r\n";

    while (p < last && s->head_end < 4) {
        if (s->head_len < sizeof(s->head) - 1) {
            s->head[s->head_len++] = *p;
        }

        if (*p == end[s->head_end]) {
            s->head_end++;

        } else {
            s->head_end = *p == '\r';
        }

        p++;
    }

    if (s->head_end == 4) {
        if (memcmp(s->head, "HTTP/1.1 200", 12) != 0) {
            load_end(s, LOAD_FAILED, s->head);
            return last;
        }

        /* the size line of a chunk precedes the first event */

        s->state = LOAD_BODY;
        s->matched = 1;
    }

    return p;
}


static void
load_read(load_stream_t *s)
{
    ssize_t      n;
    uint64_t     now;
    const char  *p;
    static char  buffer[LOAD_BUFFER];

    while (s->state < LOAD_DONE) {
        n = read(s->fd, buffer, sizeof(buffer));

        if (n == -1) {
            if (errno == EINTR) {
                continue;
            }

            if (errno != EAGAIN) {
                load_end(s, LOAD_FAILED, strerror(errno));
            }

            return;
        }

        if (n == 0) {
            load_end(s, LOAD_FAILED, "closed before [DONE]");
            return;
        }

        now = observe_now();
        p = buffer;

        if (s->state < LOAD_BODY) {
            p = load_head(s, p, buffer + n);
        }

        load_body(s, p, buffer + n, now);

        if (n < (ssize_t) sizeof(buffer)) {
            return;
        }
    }
}


static void
load_handle(load_stream_t *s, uint32_t events)
{
    ssize_t  n;

    if (s->state == LOAD_NEW && (events & EPOLLOUT) != 0) {

        n = send(s->fd, load_request, load_request_len, MSG_NOSIGNAL);

        if (n != (ssize_t) load_request_len) {
            load_end(s, LOAD_FAILED, n == -1 ? strerror(errno) : "send");
            return;
        }

        s->state = LOAD_SENT;
    }

    if (s->state < LOAD_DONE && (events & (EPOLLIN|EPOLLERR|EPOLLHUP)) != 0) {
        load_read(s);
    }
}


static int
load_run(void)
{
    int                 i, n;
    load_stream_t      *s;
    struct epoll_event  events[LOAD_BATCH];

    while (load_ended < load_conf.streams) {

        while (load_started < load_conf.streams
               && load_opening < LOAD_CONNECTING)
        {
            s = &load_streams[load_started++];
            load_opening++;

            if (load_start(s) == -1) {
                perror("load: connect");
                return -1;
            }
        }

        n = epoll_wait(load_ep, events, LOAD_BATCH, 60000);

        if (n == 0) {
            fprintf(stderr, "load: no byte arrived for a minute\n");
            return -1;
        }

        for (i = 0; i < n; i++) {
            load_handle(events[i].data.ptr, events[i].events);
        }

        /* bench/run waits for the line "open N", which cannot follow now */

        if (load_failed > 0 && load_open < load_conf.streams) {
            fprintf(stderr, "load: a stream ended before all were open\n");
            return -1;
        }
    }

    return 0;
}


static int
load_compare(const void *a, const void *b)
{
    int64_t  x = *(const int64_t *) a;
    int64_t  y = *(const int64_t *) b;

    return (x > y) - (x < y);
}


/* The step of a token that arrived at this time: the last one before it. */

static int64_t
load_step(const uint64_t *ticks, size_t n, uint64_t time)
{
    size_t  low, high, middle;

    low = 0;
    high = n;

    while (low < high) {
        middle = low + (high - low) / 2;

        if (ticks[middle] <= time) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return (int64_t) low - 1;
}


/*
 * The delays of a stream's tokens, in ns.  The step of the first token is not
 * known.  Each token votes for one: its own step minus its number.  The
 * earliest step with more than a twentieth of the votes is taken, because late
 * tokens vote for later steps.  The observer may see a step late itself, so a
 * token may precede its step by up to a quarter of a step.  If the observer was
 * stopped near the beginning, the vote may be too early; the streams are opened
 * after its first step, which bounds it.  If a stall near the end delays many
 * tokens, the vote may be too late; it is bounded so that the last token
 * belongs to a step that the observer has seen.
 */

static size_t
load_delays(load_stream_t *s, const uint64_t *ticks, size_t n_ticks,
    int64_t *delay)
{
    int64_t   i, first;
    uint64_t  slack;

    slack = (ticks[n_ticks - 1] - ticks[0]) / n_ticks / 4;

    for (i = 0; i < (int64_t) s->tokens; i++) {
        delay[i] = load_step(ticks, n_ticks, s->times[i] + slack) - i;
    }

    qsort(delay, s->tokens, sizeof(int64_t), load_compare);
    first = delay[s->tokens / 20];

    if (first < 0) {
        first = 0;
    }

    if (first + s->tokens > (int64_t) n_ticks) {
        first = (int64_t) n_ticks - s->tokens;
    }

    if (first < 0) {
        return 0;
    }

    for (i = 0; i < (int64_t) s->tokens; i++) {
        delay[i] = (int64_t) (s->times[i] - ticks[first + i]);
    }

    return s->tokens;
}


static void
load_report(uint64_t ns)
{
    size_t           n_delays, n_ticks;
    int64_t         *delay;
    uint32_t         i, ok;
    uint64_t         events;
    const uint64_t  *ticks;

    ticks = observe_ticks(&n_ticks);
    delay = malloc(sizeof(int64_t) * load_conf.streams * load_conf.tokens);

    if (delay == NULL) {
        perror("load");
        return;
    }

    ok = 0;
    events = 0;
    n_delays = 0;

    for (i = 0; i < load_conf.streams; i++) {
        if (load_streams[i].state != LOAD_DONE) {
            continue;
        }

        ok++;
        events += load_streams[i].events;

        if (n_ticks > 1) {
            n_delays += load_delays(&load_streams[i], ticks, n_ticks,
                                    delay + n_delays);
        }
    }

    printf("{\"streams\":%u,\"ok\":%u,\"failed\":%u,\"events\":%llu,"
           "\"tokens\":%llu,\"seconds\":%.3f",
           load_conf.streams, ok, load_failed, (unsigned long long) events,
           (unsigned long long) ok * load_conf.tokens,
           (double) ns / 1e9);

    if (n_delays > 0) {
        qsort(delay, n_delays, sizeof(int64_t), load_compare);

        printf(",\"measured\":%zu,\"p50_us\":%.1f,\"p99_us\":%.1f,"
               "\"max_us\":%.1f", n_delays,
               (double) delay[n_delays / 2] / 1e3,
               (double) delay[n_delays * 99 / 100] / 1e3,
               (double) delay[n_delays - 1] / 1e3);
    }

    printf("}\n");

    free(delay);
}


static int
load_options(int argc, char **argv)
{
    int  c;

    load_conf.uri = "/v1/chat/completions";
    load_conf.model = "deepseek-chat";

    while ((c = getopt(argc, argv, "p:c:n:u:m:o:")) != -1) {
        switch (c) {
        case 'p':
            load_conf.port = atoi(optarg);
            break;
        case 'c':
            load_conf.streams = (uint32_t) strtoul(optarg, NULL, 10);
            break;
        case 'n':
            load_conf.tokens = (uint32_t) strtoul(optarg, NULL, 10);
            break;
        case 'u':
            load_conf.uri = optarg;
            break;
        case 'm':
            load_conf.model = optarg;
            break;
        case 'o':
            load_conf.observe = optarg;
            break;
        default:
            return -1;
        }
    }

    if (load_conf.port <= 0 || load_conf.streams == 0
        || load_conf.tokens == 0)
    {
        return -1;
    }

    return 0;
}


static int
load_init(void)
{
    int            n;
    char           body[512];
    uint32_t       i;
    struct rlimit  rlim;

    if (getrlimit(RLIMIT_NOFILE, &rlim) == 0) {
        rlim.rlim_cur = rlim.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &rlim);
    }

    n = snprintf(body, sizeof(body),
                 "{\"model\":\"%s\",\"stream\":true,\"max_tokens\":%u,"
                 "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}",
                 load_conf.model, load_conf.tokens);

    if (n >= (int) sizeof(body)) {
        return -1;
    }

    n = snprintf(load_request, sizeof(load_request),
                 "POST %s HTTP/1.1\r\nHost: localhost\r\n"
                 "Content-Type: application/json\r\n"
                 "Content-Length: %d\r\n\r\n%s", load_conf.uri, n, body);

    if (n >= (int) sizeof(load_request)) {
        return -1;
    }

    load_request_len = (size_t) n;
    load_streams = calloc(load_conf.streams, sizeof(load_stream_t));
    load_ep = epoll_create1(EPOLL_CLOEXEC);

    if (load_streams == NULL || load_ep == -1) {
        return -1;
    }

    for (i = 0; i < load_conf.streams; i++) {
        load_streams[i].times = calloc(load_conf.tokens, sizeof(uint64_t));

        if (load_streams[i].times == NULL) {
            return -1;
        }
    }

    return 0;
}


int
main(int argc, char **argv)
{
    int       rc;
    uint64_t  ns, started;

    if (load_options(argc, argv) == -1) {
        fprintf(stderr, "usage: load -p PORT -c STREAMS -n TOKENS [-u URI] "
                "[-m MODEL] [-o unix:ENGINE_SOCKET | -o PORT_OF_SOURCE]\n");
        return 2;
    }

    if (load_init() == -1) {
        perror("load");
        return 1;
    }

    if (load_conf.observe != NULL && observe_start(load_conf.observe) == -1) {
        perror("load: observer");
        return 1;
    }

    started = observe_now();
    rc = load_run();
    ns = observe_now() - started;

    /*
     * The last events of the streams may be here before the observer's thread
     * has run, and without the last step of a stream its delays are unknown.
     */

    if (load_conf.observe != NULL && observe_catch_up() == -1) {
        perror("load: observer");
        return 1;
    }

    load_report(ns);

    return rc == 0 && load_failed == 0 ? 0 : 1;
}
