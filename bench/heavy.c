
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What requests with long bodies cost the others:
 *
 *     heavy PORT SECONDS SENDERS [FILE]
 *
 * A process sends the bytes of FILE, a whole HTTP request, on so many
 * connections to a port of 127.0.0.1, each time as soon as the last answer has
 * come.  Another one reads a stream of a chat, and sends short chats one after
 * the other.  Prints the answers to the requests each second and their status;
 * the number of short chats, and the median, the 99th percentile and the
 * greatest of their times to the first token, in ms; the number of events of
 * the stream, and by how many ms the greatest distance of two events exceeds
 * their median.
 */


#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>


#define SENDERS  64
#define TIMES    100000
#define PAUSE    5                      /* ms between two short chats */


typedef struct {
    int          fd;
    off_t        sent;
    size_t       got;
    char         head[4096];            /* of the answer */
    size_t       left;                  /* of its body; head is complete */
    int          complete;              /* the head */
} sender_t;


typedef struct {
    long         answers;
    int          status;
} sum_t;


typedef struct {
    size_t       n;
    double       ms[TIMES];
} times_t;


static void
fail(const char *what)
{
    perror(what);
    exit(1);
}


static double
now(void)
{
    struct timespec  t;

    clock_gettime(CLOCK_MONOTONIC, &t);

    return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}


static int
dial(int port)
{
    int                 fd;
    struct sockaddr_in  sin;

    memset(&sin, 0, sizeof(sin));
    sin.sin_family = AF_INET;
    sin.sin_port = htons((uint16_t) port);
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd == -1 || connect(fd, (struct sockaddr *) &sin, sizeof(sin)) == -1) {
        fail("connect");
    }

    return fd;
}


static void
watch(int epoll, sender_t *s, uint32_t events, int op)
{
    struct epoll_event  ee;

    ee.events = events;
    ee.data.ptr = s;

    if (epoll_ctl(epoll, op, s->fd, &ee) == -1) {
        fail("epoll_ctl");
    }
}


/* Returns 1 if the request is sent. */

static int
send_more(sender_t *s, int file, off_t size)
{
    ssize_t  n;

    while (s->sent < size) {
        n = sendfile(s->fd, file, &s->sent, (size_t) (size - s->sent));

        if (n == -1 && errno == EAGAIN) {
            return 0;
        }

        if (n <= 0) {
            fail("sendfile");
        }
    }

    return 1;
}


/* Reads of the answer.  Returns 1 at its end. */

static int
receive(sender_t *s, sum_t *sum)
{
    char     *end, *len, body[65536];
    ssize_t   n;

    if (!s->complete) {
        n = recv(s->fd, s->head + s->got, sizeof(s->head) - 1 - s->got, 0);

        if (n <= 0) {
            fail("recv");
        }

        s->got += (size_t) n;
        s->head[s->got] = '\0';

        end = strstr(s->head, "\r\n\r\n");
        len = strstr(s->head, "Content-Length: ");

        if (end == NULL) {
            return 0;
        }

        if (len == NULL || len > end) {
            (void) fprintf(stderr, "no Content-Length: %s\n", s->head);
            exit(1);
        }

        s->complete = 1;
        s->left = strtoul(len + 16, NULL, 10)
                  - (s->got - (size_t) (end + 4 - s->head));
        sum->status = atoi(s->head + 9);

    } else {
        n = recv(s->fd, body, s->left < sizeof(body) ? s->left : sizeof(body),
                 0);

        if (n <= 0) {
            fail("recv");
        }

        s->left -= (size_t) n;
    }

    return s->left == 0;
}


/* The process that sends.  Writes its sum to out at the end. */

static void
send_all(int port, double until, int n, const char *name, int out)
{
    int                 i, k, epoll, file;
    sum_t               sum;
    sender_t           *s, *all;
    struct stat         st;
    struct epoll_event  events[SENDERS];

    file = open(name, O_RDONLY);

    if (file == -1 || fstat(file, &st) == -1) {
        fail(name);
    }

    /* on other machines clients would not take the cores of nginx */

    if (nice(10) == -1) {
        fail("nice");
    }

    memset(&sum, 0, sizeof(sum));

    epoll = epoll_create1(0);
    all = calloc((size_t) n, sizeof(sender_t));

    if (epoll == -1 || all == NULL) {
        fail("epoll_create1");
    }

    for (i = 0; i < n; i++) {
        all[i].fd = dial(port);
        (void) fcntl(all[i].fd, F_SETFL, O_NONBLOCK);
        watch(epoll, &all[i], EPOLLIN|EPOLLOUT, EPOLL_CTL_ADD);
    }

    while (now() < until) {
        k = epoll_wait(epoll, events, SENDERS, 50);

        for (i = 0; i < k; i++) {
            s = events[i].data.ptr;

            if (events[i].events & EPOLLOUT) {
                if (send_more(s, file, st.st_size)) {
                    watch(epoll, s, EPOLLIN, EPOLL_CTL_MOD);
                }
            }

            if ((events[i].events & EPOLLIN) && receive(s, &sum)) {
                sum.answers++;
                s->sent = 0;
                s->got = 0;
                s->complete = 0;
                watch(epoll, s, EPOLLIN|EPOLLOUT, EPOLL_CTL_MOD);
            }
        }
    }

    if (write(out, &sum, sizeof(sum)) != sizeof(sum)) {
        fail("write");
    }

    exit(0);
}


static void
send_chat(int fd, const char *key, int max)
{
    int   len;
    char  body[512], text[1024];

    len = snprintf(body, sizeof(body), "{\"model\":\"deepseek-chat\","
                   "\"stream\":true,\"max_tokens\":%d,\"ignore_eos\":true,"
                   "\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}",
                   max);
    len = snprintf(text, sizeof(text), "POST /v1/chat/completions HTTP/1.1\r\n"
                   "Host: x\r\nAuthorization: Bearer %s\r\n"
                   "Content-Type: application/json\r\n"
                   "Content-Length: %d\r\n\r\n%s", key, len, body);

    if (send(fd, text, (size_t) len, MSG_NOSIGNAL) != len) {
        fail("send");
    }
}


static void
add(times_t *times, double ms)
{
    if (times->n < TIMES) {
        times->ms[times->n++] = ms;
    }
}


static int
compare(const void *a, const void *b)
{
    double  x = *(const double *) a, y = *(const double *) b;

    return x < y ? -1 : x > y;
}


/* Reads of the stream.  Notes how long after the last event it came. */

static void
read_stream(int fd, double t, times_t *gaps)
{
    char           text[65536];
    static double  last;

    if (recv(fd, text, sizeof(text), 0) <= 0) {
        (void) fprintf(stderr, "the stream has ended\n");
        exit(1);
    }

    if (last != 0) {
        add(gaps, t - last);
    }

    last = t;
}


/* Reads of a short chat that was sent at some time.  Returns 1 at its end. */

static int
read_chat(int fd, double sent, double t, times_t *times)
{
    ssize_t        n;
    static int     first = 1;
    static char    text[65536];
    static size_t  len;

    n = recv(fd, text + len, sizeof(text) - 1 - len, 0);

    if (n <= 0) {
        (void) fprintf(stderr, "a short chat has no answer\n");
        exit(1);
    }

    len += (size_t) n;
    text[len] = '\0';

    if (first && strstr(text, "data: ") != NULL) {
        add(times, t - sent);
        first = 0;
    }

    if (strstr(text, "\r\n0\r\n\r\n") == NULL) {
        return 0;
    }

    first = 1;
    len = 0;

    return 1;
}


/* Reads a stream and sends short chats. */

static void
observe(int port, double until, times_t *times, times_t *gaps)
{
    int            waits;
    double         sent, t;
    struct pollfd  stream, light, fds[2];

    stream.fd = dial(port);
    stream.events = POLLIN;
    light.fd = dial(port);
    light.events = POLLIN;

    send_chat(stream.fd, "stream", 100000);

    sent = 0;
    waits = 0;

    for (t = now(); t < until; t = now()) {

        if (!waits && t >= sent + PAUSE) {
            send_chat(light.fd, "light", 1);
            sent = now();
            waits = 1;
        }

        fds[0] = stream;
        fds[1] = light;

        if (poll(fds, 2, 1) == -1) {
            fail("poll");
        }

        t = now();

        if (fds[0].revents) {
            read_stream(stream.fd, t, gaps);
        }

        if (fds[1].revents && read_chat(light.fd, sent, t, times)) {
            sent = t;
            waits = 0;
        }
    }
}


int
main(int argc, char **argv)
{
    int      port, n, out[2];
    pid_t    pid;
    sum_t    sum;
    double   until, seconds;

    static times_t  times, gaps;

    if (argc < 4) {
        (void) fprintf(stderr, "usage: heavy PORT SECONDS SENDERS [FILE]\n");
        return 2;
    }

    port = atoi(argv[1]);
    seconds = atof(argv[2]);
    n = atoi(argv[3]);
    n = n > SENDERS ? SENDERS : n;

    memset(&sum, 0, sizeof(sum));

    if (pipe(out) == -1) {
        fail("pipe");
    }

    until = now() + seconds * 1e3;
    pid = 0;

    if (n != 0 && argc > 4) {
        pid = fork();

        if (pid == -1) {
            fail("fork");
        }

        if (pid == 0) {
            send_all(port, until, n, argv[4], out[1]);
        }
    }

    observe(port, until, &times, &gaps);

    if (pid != 0 && (read(out[0], &sum, sizeof(sum)) != sizeof(sum)
                     || waitpid(pid, NULL, 0) == -1))
    {
        fail("the senders");
    }

    if (times.n == 0 || gaps.n == 0) {
        (void) fprintf(stderr, "no answers\n");
        return 1;
    }

    qsort(times.ms, times.n, sizeof(double), compare);
    qsort(gaps.ms, gaps.n, sizeof(double), compare);

    (void) printf("%.1f %d %zu %.2f %.2f %.2f %zu %.2f\n",
                  (double) sum.answers / seconds, sum.status, times.n,
                  times.ms[times.n / 2], times.ms[times.n * 99 / 100],
                  times.ms[times.n - 1], gaps.n,
                  gaps.ms[gaps.n - 1] - gaps.ms[gaps.n / 2]);

    return 0;
}
