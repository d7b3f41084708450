
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>


/*
 * Chats over HTTP against an nginx on loopback: so many streams at once, each
 * of which begins its next request when one ends.  Prints a row of a Markdown
 * table: output tokens per second, time to the first token, time between
 * events with tokens.  Token counts are those of the server's usage.
 */

#define CHAT_LINE       65536       /* most bytes of a line of the response */
#define CHAT_EVENTS     (1U << 24)  /* most gaps that are kept */


typedef enum {
    CHAT_HEAD = 0,                  /* the head of the response */
    CHAT_SIZE,                      /* the line with the size of a chunk */
    CHAT_DATA,                      /* in a chunk */
    CHAT_END,                       /* the line end behind a chunk */
    CHAT_ERROR                      /* a body that is not a stream of events */
} chat_part_e;


typedef struct {
    int             fd;
    char           *request;
    size_t          request_len;
    size_t          sent;
    chat_part_e     part;
    uint64_t        chunk;          /* bytes of the chunk that are left */
    char           *line;           /* [CHAT_LINE] */
    size_t          line_len;
    int             status;         /* of HTTP */
    int             done;           /* 1: "[DONE]" */
    uint32_t        prompt_tokens;
    uint32_t        tokens;
    uint64_t        begun;          /* ns */
    uint64_t        last;           /* of the last event with tokens; 0: none */
} chat_stream_t;


typedef struct {
    int             port;
    uint32_t        streams;
    uint32_t        requests;
    uint32_t        prompt;         /* tokens, about */
    uint32_t        answer;         /* tokens */
    int             spread;         /* 1: lengths vary, with these means */
    const char     *uri;
    const char     *model;
} chat_conf_t;


static const char *const  chat_word[] = {
    "white", "along", "country", "oldest", "answered", "try", "turn",
    "machines", "work", "yesterday", "voices", "simple", "everywhere",
    "needed", "day", "sequences", "city", "often", "year", "sockets"
};

static chat_conf_t      conf = { .uri = "/v1/chat/completions",
                                 .model = "model", .streams = 1,
                                 .requests = 1, .prompt = 1000,
                                 .answer = 256 };
static uint64_t         seed = 1;
static uint32_t         begun, ended, failed;
static uint64_t         prompt_tokens, tokens;
static float           *first_ms, *gap_ms;
static uint32_t         n_first, n_gap;
static int              ep;


static uint64_t
now_ns(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}


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
 * lengths of chats are spread; at least 4, and at most 16 times the mean.
 */

static uint32_t
length(uint32_t mean)
{
    double  u, v, x;

    if (!conf.spread) {
        return mean;
    }

    u = ((double) (draw() >> 11) + 1) / 9007199254740993.0;
    v = (double) (draw() >> 11) / 9007199254740992.0;
    x = mean * exp(sqrt(-2 * log(u)) * cos(2 * M_PI * v) - 0.5);
    x = x < 4 ? 4 : x > 16.0 * mean ? 16.0 * mean : x;

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

    n = length(conf.prompt);

    (void) fprintf(f, "{\"model\":\"%s\",\"stream\":true,\"stream_options\":"
                   "{\"include_usage\":true},\"temperature\":1,\"seed\":%u,"
                   "\"ignore_eos\":true,\"max_tokens\":%u,\"messages\":"
                   "[{\"role\":\"user\",\"content\":\"", conf.model, begun,
                   length(conf.answer));

    for (i = 0; i < n; i++) {
        (void) fprintf(f, "%s%s", i > 0 ? " " : "",
                       chat_word[draw() % (sizeof(chat_word)
                                           / sizeof(chat_word[0]))]);
    }

    (void) fprintf(f, "\"}]}");

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
    s->sent = 0;

    return n == UINT32_MAX ? -1 : 0;
}


static int
chat_begin(chat_stream_t *s)
{
    int                 on;
    struct epoll_event  ev;
    struct sockaddr_in  sin;

    if (chat_request(s) == -1) {
        return -1;
    }

    begun++;
    s->part = CHAT_HEAD;
    s->chunk = 0;
    s->line[0] = '\0';
    s->line_len = 0;
    s->status = 0;
    s->done = 0;
    s->prompt_tokens = 0;
    s->tokens = 0;
    s->last = 0;
    s->begun = now_ns();

    on = 1;
    memset(&sin, 0, sizeof(sin));
    sin.sin_family = AF_INET;
    sin.sin_port = htons((uint16_t) conf.port);
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    s->fd = socket(AF_INET, SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC, 0);

    if (s->fd == -1
        || setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == -1
        || (connect(s->fd, (struct sockaddr *) &sin, sizeof(sin)) == -1
            && errno != EINPROGRESS))
    {
        return -1;
    }

    ev.events = EPOLLIN|EPOLLOUT;
    ev.data.ptr = s;

    return epoll_ctl(ep, EPOLL_CTL_ADD, s->fd, &ev);
}


static int
chat_end(chat_stream_t *s)
{
    if (s->status != 200 || !s->done || s->tokens == 0) {
        if (failed++ == 0) {
            (void) fprintf(stderr, "chat: status %d, %u tokens, %s: %.300s\n",
                           s->status, s->tokens, s->done ? "done" : "cut",
                           s->line);
        }
    }

    (void) close(s->fd);
    s->fd = -1;
    ended++;
    prompt_tokens += s->prompt_tokens;
    tokens += s->tokens;

    return begun < conf.requests ? chat_begin(s) : 0;
}


static uint32_t
chat_number(const char *line, const char *name)
{
    const char  *p;

    p = strstr(line, name);

    return p != NULL ? (uint32_t) strtoul(p + strlen(name), NULL, 10) : 0;
}


/* A line of the response, with \0 at its end. */

static void
chat_line(chat_stream_t *s, uint64_t now)
{
    char  *p;

    if (strncmp(s->line, "data: ", 6) != 0) {
        return;
    }

    if (strcmp(s->line + 6, "[DONE]") == 0) {
        s->done = 1;
        return;
    }

    p = strstr(s->line, "content\":\"");

    if (p != NULL && p[10] != '"') {
        if (s->last == 0) {
            first_ms[n_first++] = (float) (now - s->begun) * 1e-6f;

        } else if (n_gap < CHAT_EVENTS) {
            gap_ms[n_gap++] = (float) (now - s->last) * 1e-6f;
        }

        s->last = now;
    }

    if (strstr(s->line, "\"usage\":{") != NULL) {
        s->prompt_tokens = chat_number(s->line, "\"prompt_tokens\":");
        s->tokens = chat_number(s->line, "\"completion_tokens\":");
    }
}


/* 1: a whole line is in s->line; its end is left out. */

static int
chat_collect(chat_stream_t *s, char c)
{
    if (c == '\n') {
        if (s->line_len > 0 && s->line[s->line_len - 1] == '\r') {
            s->line_len--;
        }

        s->line[s->line_len] = '\0';
        s->line_len = 0;

        return 1;
    }

    if (s->line_len < CHAT_LINE - 1) {
        s->line[s->line_len++] = c;
    }

    return 0;
}


static void
chat_byte(chat_stream_t *s, char c, uint64_t now)
{
    switch (s->part) {

    case CHAT_HEAD:

        if (chat_collect(s, c)) {
            if (s->status == 0) {
                (void) sscanf(s->line, "HTTP/1.1 %d", &s->status);

            } else if (s->line[0] == '\0') {
                s->part = s->status == 200 ? CHAT_SIZE : CHAT_ERROR;
            }
        }

        break;

    case CHAT_SIZE:

        if (c == '\n') {
            s->part = s->chunk != 0 ? CHAT_DATA : CHAT_END;

        } else if (c != '\r') {
            s->chunk = s->chunk * 16
                       + (uint64_t) (c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
        }

        break;

    case CHAT_DATA:

        if (chat_collect(s, c)) {
            chat_line(s, now);
        }

        if (--s->chunk == 0) {
            s->part = CHAT_END;
        }

        break;

    case CHAT_END:

        if (c == '\n') {
            s->part = CHAT_SIZE;
        }

        break;

    case CHAT_ERROR:

        if (s->line_len < CHAT_LINE - 1) {
            s->line[s->line_len++] = c;
            s->line[s->line_len] = '\0';
        }

        break;
    }
}


static int
chat_io(chat_stream_t *s, uint32_t events)
{
    static char         buf[65536];

    ssize_t             i, n;
    uint64_t            now;
    struct epoll_event  ev;

    if (events & EPOLLOUT && s->sent < s->request_len) {
        n = send(s->fd, s->request + s->sent, s->request_len - s->sent,
                 MSG_NOSIGNAL);

        if (n > 0) {
            s->sent += (size_t) n;

        } else if (errno != EAGAIN) {
            return chat_end(s);
        }

        if (s->sent == s->request_len) {
            ev.events = EPOLLIN;
            ev.data.ptr = s;
            (void) epoll_ctl(ep, EPOLL_CTL_MOD, s->fd, &ev);
        }
    }

    if ((events & ~(uint32_t) EPOLLOUT) == 0) {
        return 0;
    }

    n = read(s->fd, buf, sizeof(buf));

    if (n == 0 || (n == -1 && errno != EAGAIN)) {
        return chat_end(s);
    }

    now = now_ns();

    for (i = 0; i < n; i++) {
        chat_byte(s, buf[i], now);
    }

    return 0;
}


static int
chat_order(const void *a, const void *b)
{
    float  x, y;

    x = *(const float *) a;
    y = *(const float *) b;

    return (x > y) - (x < y);
}


static double
chat_quantile(float *v, uint32_t n, double q)
{
    return n == 0 ? 0 : v[(uint32_t) (q * (n - 1))];
}


static int
chat_options(int argc, char **argv)
{
    int  c;

    while ((c = getopt(argc, argv, "p:c:n:i:o:u:m:ls:")) != -1) {
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

        case 'u':
            conf.uri = optarg;
            break;

        case 'm':
            conf.model = optarg;
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
           && conf.answer > 0 && conf.requests >= conf.streams
           && optind == argc ? 0 : -1;
}


static void
chat_print(double seconds)
{
    double         cpu;
    struct rusage  use;

    (void) getrusage(RUSAGE_SELF, &use);
    cpu = (double) (use.ru_utime.tv_sec + use.ru_stime.tv_sec)
          + (double) (use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;

    qsort(first_ms, n_first, sizeof(float), chat_order);
    qsort(gap_ms, n_gap, sizeof(float), chat_order);

    (void) printf("| %u | %u | %.0f / %.0f | %.0f | %.0f | %.0f / %.0f | %.1f "
                  "/ %.1f | %.1f | %u | %.2f |\n", conf.streams, ended,
                  (double) prompt_tokens / ended, (double) tokens / ended,
                  (double) tokens / seconds,
                  (double) (prompt_tokens + tokens) / seconds,
                  chat_quantile(first_ms, n_first, 0.5),
                  chat_quantile(first_ms, n_first, 0.99),
                  chat_quantile(gap_ms, n_gap, 0.5),
                  chat_quantile(gap_ms, n_gap, 0.99), seconds, failed,
                  cpu / seconds);
}


int
main(int argc, char **argv)
{
    int                  i, n;
    uint32_t             k;
    uint64_t             start;
    chat_stream_t       *s;
    struct epoll_event   ev[256];

    if (chat_options(argc, argv) == -1) {
        (void) fprintf(stderr, "usage: chat -p PORT [-c STREAMS] [-n REQUESTS]"
                       " [-i PROMPT_WORDS] [-o ANSWER_TOKENS] [-l]\n"
                       "            [-u URI] [-m MODEL] [-s SEED]\n"
                       "-l: lengths vary around the given means\n"
                       "prints: streams | requests | mean prompt / answer | "
                       "output tokens/s | all tokens/s |\n"
                       "        TTFT ms median / 99th | between events ms "
                       "median / 99th | seconds | failed | CPU\n");
        return 2;
    }

    s = calloc(conf.streams, sizeof(chat_stream_t));
    first_ms = calloc(conf.requests, sizeof(float));
    gap_ms = calloc(CHAT_EVENTS, sizeof(float));
    ep = epoll_create1(EPOLL_CLOEXEC);

    if (s == NULL || first_ms == NULL || gap_ms == NULL || ep == -1) {
        (void) fprintf(stderr, "chat: no memory\n");
        return 1;
    }

    start = now_ns();

    for (k = 0; k < conf.streams; k++) {
        s[k].line = malloc(CHAT_LINE);

        if (s[k].line == NULL || chat_begin(&s[k]) == -1) {
            (void) fprintf(stderr, "chat: %s\n", strerror(errno));
            return 1;
        }
    }

    while (ended < begun) {
        n = epoll_wait(ep, ev, 256, 60000);

        if (n == 0 || (n == -1 && errno != EINTR)) {
            (void) fprintf(stderr, "chat: %s\n",
                           n == 0 ? "nothing arrived for 60 s"
                                  : strerror(errno));
            return 1;
        }

        for (i = 0; i < n; i++) {
            if (chat_io(ev[i].data.ptr, ev[i].events) == -1) {
                (void) fprintf(stderr, "chat: %s\n", strerror(errno));
                return 1;
            }
        }
    }

    chat_print((double) (now_ns() - start) * 1e-9);

    for (k = 0; k < conf.streams; k++) {
        free(s[k].line);
        free(s[k].request);
    }

    free(s);
    free(first_ms);
    free(gap_ms);

    return failed == 0 ? 0 : 1;
}
