
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The engine's end of the link for tests, with nothing behind it: the test
 * dictates everything that it sends.
 *
 *     fake_engine SOCKET [name=value ...]
 *
 *     model= fingerprint= family= context= slots= submit= event= temperature=
 *     top_p= pid=           of the hello; submit and event are the rings' sizes
 *     hello=magic|version|size|heat|top|unsealed|plain|silent  a faulty one
 *     versions=MIN,MAX      of the link that it accepts
 *     vocabulary=0|1        1 (the default): its vocabulary has the names that
 *                           a request queries as control tokens
 *     script=FILE           for every request without a script of its own
 *     rate=MS               between two records of a request
 *
 * A request is answered by a script if its last text, or the last tool result
 * in it, is "!fake" and lines:
 *
 *     t TEXT          one token              T A|B|C   tokens in one record
 *     s TEXT          one token that is never a control token
 *     r N TEXT        N records of a token   b N TEXT  a record of N tokens
 *     x TEXT          text without a token   rate MS   from here on
 *     wait            for a "go"             hold      for ever
 *     more            prompt is a lower bound in an error
 *     deaf            a cancel is ignored    cancel    waits for one
 *     noaccept        (first) ACCEPTED comes with     accept
 *     prompt N        cached N        completion N     to be reported
 *     tiers HOST REDIS                of the cached ones, in DONE only
 *     done stop|length|cancelled|deadline
 *     error invalid|context|overloaded|draining|internal|
 *           tenant TEXT
 *     error grammar PATH TEXT         PATH with escapes
 *     corrupt KIND    see corrupt.c          die       by SIGKILL
 *     record TYPE FIELD NUMBER        a record that is good but for this field,
 *                                     see corrupt.c
 *     end             without another record, because one was the last
 *     only SEED LINE  a line for a request that has this seed
 *
 * In TEXT \n, \\, \s (a space) and \xNN are escapes.  Behind "<>" in it are the
 * token's own bytes, which its logprob has.  A token is a control token if its
 * text ends with a name that the request queried.  After the last line the
 * answer is done.  Without a script the answer is "echo: " and the text, one
 * token per word.
 *
 * A COUNT is answered at once, unless its last text is "!fake" and the line
 * "hold" or "record", or it has a grammar and a script with "error grammar".
 *
 * Commands arrive at the stream socket SOCKET.ctl, one per line, and each is
 * answered by a line: go [N], drain 0|1, alive 0|1|2 (0: alive_ms stops in the
 * past; 2: in the future), step AGE LIMIT (ms: since when a step runs, 0: none,
 * and how long it may), load RUNNING WAITING [ENDED], corrupt KIND, mute 0|1
 * (1: the worker is not woken), page BYTES, tier N V..., times N... US (classes
 * of dsa_engine_token_seconds and their sum), rows N FULLEST (of experts),
 * close (all sessions), live (requests), sessions, script FILE (as script=).
 * "tier" sets the words of a tier in all control blocks, in their order, also
 * in a session whose version of the link has no tiers.
 *
 * Each event is one line on stdout.
 */


#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "t/fake/fake.h"


#define MAX_CONTROLS   16


static char *read_script(const char *path);


fake_t      fake;
static int  controls[MAX_CONTROLS];


void
die(const char *what)
{
    perror(what);
    exit(1);
}


void
print_event(const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);

    putchar('\n');
    fflush(stdout);
}


uint64_t
now_ms(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}


static void
stop_alive(uint64_t alive_ms)
{
    int  i;

    for (i = 0; i < FAKE_SESSIONS; i++) {
        if (fake.sessions[i].open) {
            atomic_store(&fake.sessions[i].link.control->alive_ms, alive_ms);
        }
    }
}


static void
set_step(const char *text)
{
    int       i;
    uint64_t  age, limit;

    if (sscanf(text, "%lu %lu", &age, &limit) != 2) {
        print_event("step needs AGE LIMIT");
        exit(1);
    }

    for (i = 0; i < FAKE_SESSIONS; i++) {
        if (fake.sessions[i].open) {
            atomic_store(&fake.sessions[i].link.control->step_started_ms,
                         age != 0 ? now_ms() - age : 0);
            atomic_store(&fake.sessions[i].link.control->step_timeout_ms,
                         limit);
        }
    }
}


/* Returns the number of open sessions, or of requests in them. */

static int
count(int requests)
{
    int        i, n;
    uint32_t   k;
    session_t  *s;

    n = 0;

    for (i = 0; i < FAKE_SESSIONS; i++) {
        s = &fake.sessions[i];

        if (!s->open) {
            continue;
        }

        if (!requests) {
            n++;
            continue;
        }

        for (k = 0; k < fake.hello.slots; k++) {
            n += s->requests[k].script != NULL;
        }
    }

    return n;
}


static void
set_tier(const char *text)
{
    int                i;
    char              *p;
    size_t             n, tier;
    uint64_t           value;
    _Atomic uint64_t  *word;

    tier = strtoul(text, &p, 10);

    if (tier >= DSA_TIERS) {
        print_event("there is no tier %zu", tier);
        exit(1);
    }

    for (n = 0; *p != '\0' && n < sizeof(dsa_link_tier_t) / 8; n++) {
        value = strtoull(p, &p, 10);

        for (i = 0; i < FAKE_SESSIONS; i++) {
            if (fake.sessions[i].open) {
                word = &fake.sessions[i].link.control->tier[tier].pages;
                atomic_store(word + n, value);
            }
        }
    }
}


/* The tokens of each class of times, and the sum of the times in us. */

static void
set_times(const char *text)
{
    int                  i;
    char                *p;
    size_t               n;
    uint64_t             value;
    dsa_link_control_t  *control;

    p = (char *) text;

    for (n = 0; n <= DSA_TOKEN_TIMES + 1; n++) {
        value = strtoull(p, &p, 10);

        for (i = 0; i < FAKE_SESSIONS; i++) {
            if (!fake.sessions[i].open) {
                continue;
            }

            control = fake.sessions[i].link.control;

            if (n <= DSA_TOKEN_TIMES) {
                atomic_store(&control->token_times[n], value);

            } else {
                atomic_store(&control->token_us, value);
            }
        }
    }
}


/* The rows of experts, and those of the fullest GPU. */

static void
set_rows(const char *text)
{
    int            i;
    unsigned long  rows, fullest;

    rows = 0;
    fullest = 0;
    (void) sscanf(text, "%lu %lu", &rows, &fullest);

    for (i = 0; i < FAKE_SESSIONS; i++) {
        if (fake.sessions[i].open) {
            atomic_store(&fake.sessions[i].link.control->expert_rows, rows);
            atomic_store(&fake.sessions[i].link.control->fullest_rows,
                         fullest);
        }
    }
}


static void
command(int fd, char *text)
{
    int   i;
    char  answer[64];

    text[strcspn(text, "\r\n")] = '\0';
    strcpy(answer, "ok\n");

    if (strncmp(text, "go", 2) == 0) {
        fake.permits += text[2] == ' ' ? (unsigned) atoi(text + 3) : 1;

    } else if (strncmp(text, "script ", 7) == 0) {
        free(fake.script);
        fake.script = read_script(text + 7);

    } else if (strncmp(text, "drain ", 6) == 0) {
        fake.draining = atoi(text + 6);

    } else if (strncmp(text, "alive ", 6) == 0) {
        fake.alive = text[6] == '1';

        if (!fake.alive) {
            stop_alive(text[6] == '0' ? 1 : UINT64_MAX);
        }

    } else if (strncmp(text, "step ", 5) == 0) {
        set_step(text + 5);

    } else if (strncmp(text, "load ", 5) == 0) {
        (void) sscanf(text + 5, "%u %u %lu", &fake.running, &fake.waiting,
                      &fake.ended);

    } else if (strncmp(text, "corrupt ", 8) == 0) {
        for (i = 0; i < FAKE_SESSIONS; i++) {
            if (fake.sessions[i].open) {
                corrupt(&fake.sessions[i], text + 8);
            }
        }

    } else if (strncmp(text, "tier ", 5) == 0) {
        set_tier(text + 5);

    } else if (strncmp(text, "times ", 6) == 0) {
        set_times(text + 6);

    } else if (strncmp(text, "rows ", 5) == 0) {
        set_rows(text + 5);

    } else if (strncmp(text, "page ", 5) == 0) {
        for (i = 0; i < FAKE_SESSIONS; i++) {
            if (fake.sessions[i].open) {
                atomic_store(&fake.sessions[i].link.control->page_bytes,
                             strtoull(text + 5, NULL, 10));
            }
        }

    } else if (strncmp(text, "mute ", 5) == 0) {
        fake.mute = text[5] == '1';

    } else if (strcmp(text, "close") == 0) {
        for (i = 0; i < FAKE_SESSIONS; i++) {
            if (fake.sessions[i].fd != -1) {
                session_close(&fake.sessions[i]);
            }
        }

    } else if (strcmp(text, "live") == 0) {
        sprintf(answer, "%d\n", count(1));

    } else if (strcmp(text, "sessions") == 0) {
        sprintf(answer, "%d\n", count(0));

    } else {
        strcpy(answer, "unknown\n");
    }

    (void) !write(fd, answer, strlen(answer));
}


static int
listen_on(const char *path, int type)
{
    int                 fd;
    struct sockaddr_un  sun;

    memset(&sun, 0, sizeof(sun));
    sun.sun_family = AF_UNIX;

    if (strlen(path) >= sizeof(sun.sun_path)) {
        errno = ENAMETOOLONG;
        die(path);
    }

    strcpy(sun.sun_path, path);
    unlink(path);

    fd = socket(AF_UNIX, type|SOCK_CLOEXEC|SOCK_NONBLOCK, 0);

    if (fd == -1 || bind(fd, (struct sockaddr *) &sun, sizeof(sun)) == -1
        || listen(fd, 64) == -1)
    {
        die(path);
    }

    return fd;
}


static char *
read_script(const char *path)
{
    FILE    *f;
    char    *text;
    size_t   n;

    f = fopen(path, "r");
    text = calloc(1, 1024 * 1024);

    if (f == NULL || text == NULL) {
        die(path);
    }

    n = fread(text, 1, 1024 * 1024 - 1, f);
    text[n] = '\0';
    fclose(f);

    return text;
}


/* 0: there is no such option */

static int
option(const char *name, char *value)
{
    dsa_link_hello_t  *h = &fake.hello;

#define is(s)  (strcmp(name, s) == 0)

    if (is("model")) {
        snprintf(h->model, sizeof(h->model), "%s", value);

    } else if (is("fingerprint")) {
        snprintf(h->fingerprint, sizeof(h->fingerprint), "%s", value);

    } else if (is("family")) {
        snprintf(h->family, sizeof(h->family), "%s", value);

    } else if (is("context")) {
        h->context_length = (uint32_t) strtoul(value, NULL, 10);

    } else if (is("slots")) {
        h->slots = (uint32_t) strtoul(value, NULL, 10);

    } else if (is("submit")) {
        h->submit_size = strtoul(value, NULL, 10);

    } else if (is("event")) {
        h->event_size = strtoul(value, NULL, 10);

    } else if (is("temperature")) {
        h->temperature = strtof(value, NULL);

    } else if (is("top_p")) {
        h->top_p = strtof(value, NULL);

    } else if (is("pid")) {
        h->pid = (uint32_t) strtoul(value, NULL, 10);

    } else if (is("hello")) {
        fake.fault = value;

    } else if (is("versions")) {
        (void) sscanf(value, "%u,%u", &fake.version_min, &fake.version_max);

    } else if (is("vocabulary")) {
        fake.vocabulary = value[0] == '1';

    } else if (is("script")) {
        fake.script = read_script(value);

    } else if (is("rate")) {
        fake.rate = strtoul(value, NULL, 10);

    } else {
        return 0;
    }

#undef is

    return 1;
}


static void
options(int argc, char **argv)
{
    int                i;
    char              *value;
    dsa_link_hello_t  *h = &fake.hello;

    fake.fault = "";
    fake.alive = 1;
    fake.vocabulary = 1;
    fake.version_min = DSA_LINK_VERSION_MIN;
    fake.version_max = DSA_LINK_VERSION_MAX;

    h->magic = DSA_LINK_MAGIC;
    h->slots = 256;
    h->submit_size = 1 << 20;
    h->event_size = 1 << 20;
    h->context_length = 163840;
    h->page_tokens = 64;
    h->ids = 1 << 20;
    h->pid = (uint32_t) getpid();

    if (getrandom(&h->epoch, sizeof(uint32_t), 0) != sizeof(uint32_t)) {
        die("getrandom");
    }

    h->temperature = 1;
    h->top_p = 1;
    strcpy(h->model, "fake-model");
    strcpy(h->fingerprint, "0123456789abcdef");
    strcpy(h->family, "deepseek");

    for (i = 2; i < argc; i++) {
        value = strchr(argv[i], '=');

        if (value != NULL) {
            *value++ = '\0';
        }

        if (value == NULL || !option(argv[i], value)) {
            fprintf(stderr, "unknown option %s\n", argv[i]);
            exit(2);
        }
    }

    h->version_min = fake.version_min;
    h->version_max = fake.version_max;
    h->segment_size = dsa_link_segment_size(h->slots, h->submit_size,
                                            h->event_size);
}


static void
read_controls(const struct pollfd *pfd)
{
    int      i;
    char     text[4096];
    ssize_t  got;

    for (i = 0; i < MAX_CONTROLS; i++) {
        if (controls[i] == -1 || pfd[i].revents == 0) {
            continue;
        }

        got = read(controls[i], text, sizeof(text) - 1);

        if (got <= 0) {
            close(controls[i]);
            controls[i] = -1;
            continue;
        }

        text[got] = '\0';
        command(controls[i], text);
    }
}


static void
accept_control(int listener)
{
    int  i, fd;

    for (i = 0; i < MAX_CONTROLS && controls[i] != -1; i++) { /* void */ }

    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

    if (i < MAX_CONTROLS) {
        controls[i] = fd;

    } else if (fd != -1) {
        close(fd);
    }
}


/*
 * Waits for the listener, the control listener, the control connections, and
 * two descriptors of each session.
 */

static int
wait_for_events(struct pollfd *pfd, int listener, int control, int busy)
{
    int         i, n;
    session_t  *s;

    n = 0;
    pfd[n++].fd = listener;
    pfd[n++].fd = control;

    for (i = 0; i < MAX_CONTROLS; i++) {
        pfd[n++].fd = controls[i];
    }

    for (i = 0; i < FAKE_SESSIONS; i++) {
        s = &fake.sessions[i];
        pfd[n++].fd = s->fd;
        pfd[n++].fd = s->open ? s->own_wake : -1;
    }

    for (i = 0; i < n; i++) {
        pfd[i].events = POLLIN;
        pfd[i].revents = 0;
    }

    return poll(pfd, n, busy ? 1 : 50) != -1 || errno == EINTR;
}


int
main(int argc, char **argv)
{
    int             i, listener, control, live;
    char            path[128];
    session_t      *s;
    struct pollfd   pfd[2 + MAX_CONTROLS + 2 * FAKE_SESSIONS];

    if (argc < 2) {
        fprintf(stderr, "usage: fake_engine SOCKET [name=value ...]\n");
        return 2;
    }

    signal(SIGPIPE, SIG_IGN);

    options(argc, argv);

    for (i = 0; i < FAKE_SESSIONS; i++) {
        fake.sessions[i].fd = -1;
    }

    for (i = 0; i < MAX_CONTROLS; i++) {
        controls[i] = -1;
    }

    snprintf(path, sizeof(path), "%s.ctl", argv[1]);

    control = listen_on(path, SOCK_STREAM);
    listener = listen_on(argv[1], SOCK_SEQPACKET);

    for (live = 0; ; ) {
        if (!wait_for_events(pfd, listener, control,
                             live != 0 || fake.blocked))
        {
            die("poll");
        }

        fake.blocked = 0;

        for (i = 0; i < FAKE_SESSIONS; i++) {
            s = &fake.sessions[i];

            if (s->fd == -1 || pfd[2 + MAX_CONTROLS + 2 * i].revents == 0) {
                continue;
            }

            if (s->open) {
                session_close(s);

            } else {
                session_offer(s);
            }
        }

        read_controls(&pfd[2]);

        if (pfd[1].revents != 0) {
            accept_control(control);
        }

        if (pfd[0].revents != 0) {
            session_accept(listener);
        }

        live = 0;

        for (i = 0; i < FAKE_SESSIONS; i++) {
            if (fake.sessions[i].open) {
                live += session_step(&fake.sessions[i]);
            }
        }
    }
}
