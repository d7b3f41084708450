
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The engine's end of the link for tests, with nothing behind it: every word
 * it says is dictated by the test.
 *
 *     fake_engine SOCKET [name=value ...]
 *
 *     model= fingerprint= context= slots= submit= event= temperature= top_p=
 *                           of the hello; submit and event are the rings' sizes
 *     hello=magic|version|size|heat|top|unsealed|plain|silent  a faulty one
 *     script=FILE           for every request without a script of its own
 *     rate=MS               between two records of a request
 *
 * A request whose last text is "!fake" and lines is answered by these lines:
 *
 *     t TEXT          one token              T A|B|C   tokens in one record
 *     r N TEXT        N records of a token   b N TEXT  a record of N tokens
 *     x TEXT          text without a token   rate MS   from here on
 *     wait            for a "go"             hold      for ever
 *     more            prompt is a lower bound in an error
 *     deaf            a cancel is ignored    cancel    waits for one
 *     noaccept        (first) ACCEPT comes with     accept
 *     prompt N        cached N        completion N     to be reported
 *     done stop|length|cancelled|deadline
 *     error invalid|context|overloaded|draining|internal TEXT
 *     corrupt KIND    see corrupt()          die       by SIGKILL
 *
 * In TEXT \n, \\, \s (a space) and \xNN are escapes.  After the last line the
 * answer is done.  Without a script the answer is "echo: " and the text, a
 * token a word.
 *
 * Commands come by the stream socket SOCKET.ctl, a line each, answered by a
 * line: go [N], drain 0|1, heartbeat 0|1, load RUNNING WAITING, corrupt KIND,
 * mute 0|1 (no bell is rung), close (all sessions), live (requests), sessions.
 *
 * What happens is told on stdout, a line each.
 */


#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "engine/link.h"


#define MAX_SESSIONS   64
#define MAX_CONTROLS   16
#define MAX_TOKENS     4096


typedef struct {
    uint64_t         id;
    char            *script;        /* NULL: the slot is free */
    char            *pc;
    uint64_t         next;          /* ms; not before */
    uint64_t         rate;
    uint32_t         repeat;        /* of the line at pc, what is left */
    uint32_t         max_tokens;
    uint32_t         top;
    uint32_t         prompt;
    uint32_t         cached;
    uint32_t         completion;
    uint32_t         sent;
    unsigned         logprobs:1;
    unsigned         accepted:1;
    unsigned         manual:1;
    unsigned         more:1;        /* of an error's prompt */
    unsigned         deaf:1;
    unsigned         reported:1;    /* completion is the script's */
} request_t;


typedef struct {
    int              fd;            /* -1: free */
    int              bell;          /* ours */
    int              ring;          /* the worker's */
    void            *segment;
    dsa_link_t       link;
    request_t       *requests;      /* [slots] */
} session_t;


static dsa_link_hello_t  hello;
static session_t         sessions[MAX_SESSIONS];
static int               controls[MAX_CONTROLS];
static const char       *fault = "";
static char             *default_script;
static uint64_t          default_rate;
static unsigned          permits;
static int               draining, heartbeat = 1, mute, blocked;
static uint32_t          load_running, load_waiting;


static void
die(const char *what)
{
    perror(what);
    exit(1);
}


static void
say(const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);

    putchar('\n');
    fflush(stdout);
}


static uint64_t
now_ms(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}


static void
ring(session_t *s)
{
    uint64_t  one = 1;

    if (!mute && write(s->ring, &one, sizeof(one)) == -1 && errno != EAGAIN) {
        die("write to eventfd");
    }
}


static void
close_session(session_t *s)
{
    uint32_t  i;

    for (i = 0; i < hello.slots; i++) {
        free(s->requests[i].script);
    }

    free(s->requests);
    munmap(s->segment, hello.segment_size);
    close(s->fd);
    close(s->bell);
    close(s->ring);

    s->fd = -1;

    say("session closed");
}


static void
open_session(int listener)
{
    int                i, fd, fds[DSA_LINK_FDS];
    session_t         *s;
    dsa_link_hello_t   h;

    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd == -1) {
        return;
    }

    for (s = NULL, i = 0; i < MAX_SESSIONS; i++) {
        if (sessions[i].fd == -1) {
            s = &sessions[i];
            break;
        }
    }

    if (s == NULL) {
        close(fd);
        return;
    }

    memset(s, 0, sizeof(session_t));

    fds[0] = memfd_create("dsa-fake", MFD_CLOEXEC|MFD_ALLOW_SEALING);
    fds[1] = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);
    fds[2] = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

    if (fds[0] == -1 || fds[1] == -1 || fds[2] == -1
        || ftruncate(fds[0], hello.segment_size) == -1)
    {
        die("segment");
    }

    if (strcmp(fault, "unsealed") != 0
        && fcntl(fds[0], F_ADD_SEALS, F_SEAL_SHRINK|F_SEAL_GROW|F_SEAL_SEAL)
           == -1)
    {
        die("seals");
    }

    s->segment = mmap(NULL, hello.segment_size, PROT_READ|PROT_WRITE,
                      MAP_SHARED, fds[0], 0);
    if (s->segment == MAP_FAILED) {
        die("mmap");
    }

    if (dsa_link_attach(&s->link, s->segment, hello.segment_size, &hello)
        != 0)
    {
        die("attach");
    }

    s->requests = calloc(hello.slots, sizeof(request_t));
    if (s->requests == NULL) {
        die("calloc");
    }

    s->fd = fd;
    s->bell = fds[1];
    s->ring = fds[2];

    atomic_store(&s->link.control->heartbeat, now_ms());
    atomic_store(&s->link.control->draining, draining);
    atomic_store(&s->link.control->pages, 100);
    atomic_store(&s->link.control->pages_used, 25);

    h = hello;

    if (strcmp(fault, "magic") == 0) {
        h.magic++;

    } else if (strcmp(fault, "version") == 0) {
        h.version++;

    } else if (strcmp(fault, "size") == 0) {
        h.segment_size += 4096;

    } else if (strcmp(fault, "heat") == 0) {
        h.temperature = NAN;

    } else if (strcmp(fault, "top") == 0) {
        h.top_p = 0;
    }

    if (strcmp(fault, "silent") == 0) {
        say("session silent");

    } else if (strcmp(fault, "plain") == 0) {
        if (send(fd, &h, sizeof(h), MSG_NOSIGNAL) == -1) {
            perror("send");
        }

    } else if (dsa_link_send_hello(fd, &h, fds) == -1) {
        perror("hello");
    }

    close(fds[0]);

    say("session open");
}


/* How a ring can be wrong; what the worker must survive. */

static void
corrupt(session_t *s, const char *kind)
{
    void                *p;
    uint32_t             i, word;
    uint64_t             id;
    dsa_link_ring_t     *ev = &s->link.event;
    dsa_link_done_t      done;
    dsa_link_tokens_t    tokens;

    memset(&done, 0, sizeof(done));
    memset(&tokens, 0, sizeof(tokens));
    id = 0;

    if (strcmp(kind, "head") == 0) {            /* further than the ring */
        atomic_store(&ev->shared->head, ev->own + ev->size * 2 + 8);

    } else if (strcmp(kind, "odd") == 0) {      /* between records */
        atomic_store(&ev->shared->head, ev->own + 3);

    } else if (strcmp(kind, "length") == 0) {   /* longer than what is there */
        p = dsa_link_reserve(ev, DSA_LINK_DONE, 0, sizeof(done));
        ((dsa_link_record_t *) p - 1)->length = 0xfffffff0;
        dsa_link_commit(ev);

    } else if (strcmp(kind, "type") == 0) {
        (void) dsa_link_reserve(ev, 77, 0, 8);
        dsa_link_commit(ev);

    } else if (strcmp(kind, "slot") == 0) {     /* no such slot */
        p = dsa_link_reserve(ev, DSA_LINK_DONE, dsa_link_id(1, 0xffffff),
                             sizeof(done));
        memcpy(p, &done, sizeof(done));
        dsa_link_commit(ev);

    } else if (strcmp(kind, "tail") == 0) {     /* of the submit ring */
        atomic_store(&s->link.submit.shared->tail, 12345);

    } else {                                    /* of the first request */
        for (i = 0; i < hello.slots; i++) {
            if (s->requests[i].script != NULL) {
                id = s->requests[i].id;
                break;
            }
        }

        if (strcmp(kind, "huge") == 0) {        /* all that is left of it */
            p = dsa_link_reserve(ev, DSA_LINK_TOKENS, id, sizeof(tokens));
            ((dsa_link_record_t *) p - 1)->length =
                (uint32_t) (ev->size - ev->own - sizeof(dsa_link_record_t));
            ev->pending = ev->size;

        } else if (strcmp(kind, "short") == 0) {    /* a payload cut off */
            (void) dsa_link_reserve(ev, DSA_LINK_DONE, id, 4);

        } else if (strcmp(kind, "count") == 0) {    /* more than there is */
            tokens.n_tokens = 0x40000000;
            p = dsa_link_reserve(ev, DSA_LINK_TOKENS, id, sizeof(tokens));
            memcpy(p, &tokens, sizeof(tokens));

        } else if (strcmp(kind, "ends") == 0) {     /* past the text */
            tokens.n_tokens = 1;
            tokens.text_len = 4;
            word = 9;
            p = dsa_link_reserve(ev, DSA_LINK_TOKENS, id,
                                 sizeof(tokens) + 8);
            memcpy(p, &tokens, sizeof(tokens));
            memcpy((char *) p + sizeof(tokens), &word, 4);
            memcpy((char *) p + sizeof(tokens) + 4, "text", 4);

        } else if (strcmp(kind, "stale") == 0) {    /* harmless: an old id */
            p = dsa_link_reserve(ev, DSA_LINK_DONE, id - (1ULL << 32),
                                 sizeof(done));
            memcpy(p, &done, sizeof(done));

        } else {
            say("unknown corruption %s", kind);
            return;
        }

        dsa_link_commit(ev);
    }

    ring(s);
}


static int
hex(int c)
{
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}


/* Unescapes in place of out; the length. */

static size_t
unescape(char *out, const char *text, size_t len)
{
    char        *p = out;
    const char  *end = text + len;

    while (text < end) {
        if (*text != '\\' || text + 1 == end) {
            *p++ = *text++;
            continue;
        }

        text++;

        if (*text == 'x' && text + 2 < end) {
            *p++ = (char) (hex(text[1]) << 4 | hex(text[2]));
            text += 3;
            continue;
        }

        *p++ = *text == 'n' ? '\n' : *text == 's' ? ' ' : *text;
        text++;
    }

    return p - out;
}


/* One record of n tokens with their ends within text; 0: no room. */

static int
send_tokens(session_t *s, request_t *r, uint32_t n, const uint32_t *ends,
    const char *text, uint32_t len)
{
    char                *p;
    uint32_t             i, k, start, size;
    dsa_link_tokens_t    tokens;
    dsa_link_logprob_t   entry;

    tokens.n_tokens = n;
    tokens.text_len = len;
    tokens.logprobs = r->logprobs;
    tokens.n_top = r->logprobs ? r->top : 0;

    size = sizeof(tokens) + n * 4 + len;

    if (r->logprobs) {
        size += n * (1 + r->top) * sizeof(entry);
    }

    p = dsa_link_reserve(&s->link.event, DSA_LINK_TOKENS, r->id, size);

    if (p == NULL) {
        blocked = 1;
        return 0;
    }

    memcpy(p, &tokens, sizeof(tokens));
    p += sizeof(tokens);
    memcpy(p, ends, n * 4);
    p += n * 4;

    for (start = 0, i = 0; r->logprobs && i < n; i++) {
        memset(&entry, 0, sizeof(entry));
        entry.token = i;
        entry.logprob = -0.25f * (float) (r->sent + i);
        entry.len = ends[i] - start;

        if (entry.len > sizeof(entry.bytes)) {
            entry.len = sizeof(entry.bytes);
        }

        memcpy(entry.bytes, text + start, entry.len);
        memcpy(p, &entry, sizeof(entry));
        p += sizeof(entry);
        start = ends[i];

        for (k = 0; k < r->top; k++) {
            memset(&entry, 0, sizeof(entry));
            entry.token = k;
            entry.logprob = -1.0f - (float) k;
            entry.len = (uint32_t) snprintf(entry.bytes, sizeof(entry.bytes),
                                            "alt%u", k);
            memcpy(p, &entry, sizeof(entry));
            p += sizeof(entry);
        }
    }

    memcpy(p, text, len);

    r->sent += n;

    return 1;
}


static int
send_done(session_t *s, request_t *r, uint32_t finish)
{
    dsa_link_done_t  *done;

    done = dsa_link_reserve(&s->link.event, DSA_LINK_DONE, r->id,
                            sizeof(dsa_link_done_t));
    if (done == NULL) {
        blocked = 1;
        return 0;
    }

    memset(done, 0, sizeof(dsa_link_done_t));

    done->finish = finish;
    done->prompt_tokens = r->prompt;
    done->cached_tokens = r->cached;
    done->completion_tokens = r->reported ? r->completion
                              : r->sent + (finish == DSA_LINK_FINISH_STOP);
    done->queue_ms = 1;
    done->prefill_ms = 2;
    done->decode_ms = 3;

    say("done %llx finish=%u sent=%u", (unsigned long long) r->id, finish,
        r->sent);

    free(r->script);
    r->script = NULL;

    return 1;
}


static int
send_error(session_t *s, uint64_t id, uint32_t code, uint32_t prompt,
    uint32_t more, const char *text)
{
    dsa_link_failure_t  *failure;

    failure = dsa_link_reserve(&s->link.event, DSA_LINK_ERROR, id,
                               sizeof(dsa_link_failure_t) + strlen(text));
    if (failure == NULL) {
        blocked = 1;
        return 0;
    }

    failure->code = code;
    failure->prompt_tokens = prompt;
    failure->text_len = (uint32_t) strlen(text);
    failure->more = more;
    memcpy(failure + 1, text, strlen(text));

    say("error %llx code=%u", (unsigned long long) id, code);

    return 1;
}


static int
send_accept(session_t *s, request_t *r)
{
    dsa_link_accept_t  *accept;

    accept = dsa_link_reserve(&s->link.event, DSA_LINK_ACCEPT, r->id,
                              sizeof(dsa_link_accept_t));
    if (accept == NULL) {
        blocked = 1;
        return 0;
    }

    accept->prompt_tokens = r->prompt;
    accept->reserved = 0;
    r->accepted = 1;

    return 1;
}


static uint32_t
word_of(const char *names, const char *word, size_t len)
{
    uint32_t     n;
    const char  *p;

    for (n = 1, p = names; *p != '\0'; n++) {
        if (strncmp(p, word, len) == 0 && (p[len] == ' ' || p[len] == '\0')) {
            return n;
        }

        p += strcspn(p, " ");
        p += strspn(p, " ");
    }

    return 0;
}


/* One line of a script; 1: go on with the next, 0: that is all for now. */

static int
line(session_t *s, request_t *r)
{
    char        *p, *arg, *text, *piece, *end;
    size_t       len, n;
    uint32_t     i, count, ends[MAX_TOKENS];
    const char  *op;

    if (!r->accepted && !r->manual && strncmp(r->pc, "noaccept", 8) != 0) {
        if (!send_accept(s, r)) {
            return 0;
        }
    }

    if (*r->pc == '\0') {
        (void) send_done(s, r, DSA_LINK_FINISH_STOP);
        return 0;
    }

    op = r->pc;
    end = r->pc + strcspn(r->pc, "\n");
    p = r->pc + strcspn(r->pc, " \n");
    n = p - r->pc;
    arg = *p == ' ' ? p + 1 : p;
    len = end - arg;

    text = malloc((len + 1) * MAX_TOKENS + 1);
    if (text == NULL) {
        die("malloc");
    }

#define is(name)  (n == sizeof(name) - 1 && memcmp(op, name, n) == 0)

    if (is("t") || is("r") || is("x") || is("b") || is("T")) {

        if (is("r") && r->repeat == 0) {
            r->repeat = (uint32_t) strtoul(arg, NULL, 10);
        }

        count = is("b") ? (uint32_t) strtoul(arg, NULL, 10) : 1;

        if (is("r") || is("b")) {
            piece = memchr(arg, ' ', len);
            piece = piece != NULL ? piece + 1 : end;
            len = end - piece;
            arg = piece;
        }

        if (is("x")) {
            n = unescape(text, arg, len);

            if (!send_tokens(s, r, 0, ends, text, (uint32_t) n)) {
                goto later;
            }

        } else if (is("T")) {
            count = 0;
            p = text;

            for (piece = arg; piece <= end; piece += n + 1) {
                n = strcspn(piece, "|\n");

                if (piece + n > end) {
                    n = end - piece;
                }

                p += unescape(p, piece, n);
                ends[count++] = (uint32_t) (p - text);
            }

            if (!send_tokens(s, r, count, ends, text,
                             (uint32_t) (p - text)))
            {
                goto later;
            }

        } else {
            for (p = text, i = 0; i < count; i++) {
                p += unescape(p, arg, len);
                ends[i] = (uint32_t) (p - text);
            }

            if (!send_tokens(s, r, count, ends, text,
                             (uint32_t) (p - text)))
            {
                goto later;
            }
        }

        r->next = now_ms() + r->rate;

        if (r->max_tokens != 0 && r->sent >= r->max_tokens) {
            r->pc = end;
            free(text);
            free(r->script);
            r->script = r->pc = strdup("done length\n");
            return r->rate == 0;
        }

        if (r->repeat != 0 && --r->repeat != 0) {
            free(text);
            return 0;
        }

        r->pc = *end != '\0' ? end + 1 : end;
        free(text);
        return 0;
    }

    if (is("rate")) {
        r->rate = strtoul(arg, NULL, 10);

    } else if (is("wait")) {
        if (permits == 0) {
            goto later;
        }

        permits--;

    } else if (is("hold")) {
        goto later;

    } else if (is("more")) {
        r->more = 1;

    } else if (is("deaf")) {
        r->deaf = 1;

    } else if (is("cancel")) {
        if (!dsa_link_cancelled(&s->link, r->id)) {
            goto later;
        }

    } else if (is("noaccept")) {
        r->manual = 1;

    } else if (is("accept")) {
        if (!send_accept(s, r)) {
            goto later;
        }

    } else if (is("prompt")) {
        r->prompt = (uint32_t) strtoul(arg, NULL, 10);

    } else if (is("cached")) {
        r->cached = (uint32_t) strtoul(arg, NULL, 10);

    } else if (is("completion")) {
        r->completion = (uint32_t) strtoul(arg, NULL, 10);
        r->reported = 1;

    } else if (is("done")) {
        (void) send_done(s, r, word_of("stop length cancelled deadline", arg,
                                       len));
        goto later;

    } else if (is("error")) {
        n = strcspn(arg, " \n");
        text[unescape(text, arg, len)] = '\0';

        if (send_error(s, r->id,
                       word_of("invalid context overloaded draining internal",
                               arg, n),
                       r->prompt, r->more, text))
        {
            free(r->script);
            r->script = NULL;
        }

        goto later;

    } else if (is("corrupt")) {
        memcpy(text, arg, len);
        text[len] = '\0';
        r->pc = *end != '\0' ? end + 1 : end;
        dsa_link_commit(&s->link.event);
        corrupt(s, text);
        goto later;

    } else if (is("die")) {
        if (dsa_link_commit(&s->link.event)) {
            ring(s);
        }

        raise(SIGKILL);

    } else if (n != 0) {
        say("unknown line %.*s", (int) (end - op), op);
    }

#undef is

    r->pc = *end != '\0' ? end + 1 : end;
    free(text);

    return 1;

later:

    free(text);

    return 0;
}


/* "echo: " and the text's words, as a script */

static char *
echo(const char *text, size_t len)
{
    char        *script, *p;
    size_t       i;

    script = p = malloc(len * 6 + 32);
    if (script == NULL) {
        die("malloc");
    }

    p += sprintf(p, "t echo:");

    for (i = 0; i <= len; i++) {
        if (i == 0 || (i < len && text[i] == ' ')) {
            p += sprintf(p, "\nt \\s");

            if (i != 0) {
                continue;
            }
        }

        if (i == len) {
            break;
        }

        if (text[i] == '\n') {
            p += sprintf(p, "\\n");

        } else if (text[i] == '\\') {
            p += sprintf(p, "\\\\");

        } else {
            *p++ = text[i];
        }
    }

    *p = '\0';

    return script;
}


static void
submit(session_t *s, const dsa_link_record_t *record, const char *p)
{
    char                *log, *out;
    size_t               n;
    uint32_t             i, bytes, specials, context;
    request_t           *r;
    const char          *last;
    dsa_link_run_t       run;
    dsa_link_submit_t    head;
    size_t               last_len;

    memcpy(&head, p, sizeof(head));
    p += sizeof(head);

    r = &s->requests[dsa_link_slot(record->id)];

    if (r->script != NULL) {
        say("slot %u is taken", dsa_link_slot(record->id));
        exit(1);
    }

    out = log = malloc((size_t) record->length * 4 + 1024);
    if (log == NULL) {
        die("malloc");
    }

    out += sprintf(out, "submit %llx max=%u temperature=%g top_p=%g "
                   "frequency=%g presence=%g seed=%llu flags=%x top=%u "
                   "deadline=%s tenant=",
                   (unsigned long long) record->id, head.max_tokens,
                   (double) head.temperature, (double) head.top_p,
                   (double) head.frequency_penalty,
                   (double) head.presence_penalty,
                   (unsigned long long) head.seed, head.flags,
                   head.top_logprobs,
                   head.deadline > now_ms() ? "later" : "past");

    for (i = 0; i < sizeof(head.tenant); i++) {
        out += sprintf(out, "%02x", head.tenant[i]);
    }

    out += sprintf(out, " prompt=");

    bytes = specials = 0;
    last = "";
    last_len = 0;

    for (i = 0; i < head.n_runs + head.n_stop; i++) {
        memcpy(&run, p, sizeof(run));
        p += sizeof(run);

        if (i == head.n_runs) {
            out += sprintf(out, " stop=");
        }

        if (run.kind == DSA_LINK_SPECIAL) {
            specials++;
            *out++ = '[';

        } else if (i < head.n_runs) {
            bytes += run.length;
            last = p;
            last_len = run.length;

        } else if (i > head.n_runs) {
            *out++ = '|';
        }

        for (n = 0; n < run.length; n++) {
            if (p[n] == '\n') {
                *out++ = '\\';
                *out++ = 'n';
                continue;
            }

            *out++ = p[n];
        }

        if (run.kind == DSA_LINK_SPECIAL) {
            *out++ = ']';
        }

        p += dsa_link_pad(run.length, 8);
    }

    *out = '\0';
    say("%s", log);
    free(log);

    memset(r, 0, sizeof(request_t));

    r->id = record->id;
    r->rate = default_rate;
    r->prompt = bytes + specials;
    r->logprobs = (head.flags & DSA_LINK_LOGPROBS) != 0;
    r->top = head.top_logprobs;

    context = hello.context_length;

    if (draining) {
        (void) send_error(s, record->id, DSA_LINK_E_DRAINING, 0, 0,
                          "draining");
        return;
    }

    if (r->prompt >= context || r->prompt + head.max_tokens > context) {
        (void) send_error(s, record->id, DSA_LINK_E_CONTEXT, r->prompt, 0,
                          "over the context");
        return;
    }

    r->max_tokens = head.max_tokens != 0 ? head.max_tokens
                                         : context - r->prompt;

    if (last_len > 6 && memcmp(last, "!fake\n", 6) == 0) {
        r->script = strndup(last + 6, last_len - 6);

    } else if (default_script != NULL) {
        r->script = strdup(default_script);

    } else {
        r->script = echo(last, last_len);
    }

    r->pc = r->script;
}


static int
step_session(session_t *s)
{
    int                 rc, live;
    uint32_t            i;
    uint64_t            now, count;
    request_t          *r;
    const void         *payload;
    dsa_link_record_t   record;

    (void) !read(s->bell, &count, sizeof(count));

    for ( ;; ) {
        rc = dsa_link_peek(&s->link.submit, &record, &payload);

        if (rc == 0) {
            if (dsa_link_sleep(&s->link.submit)) {
                break;
            }

            continue;
        }

        if (rc == -1 || record.type != DSA_LINK_SUBMIT
            || dsa_link_slot(record.id) >= hello.slots)
        {
            say("the worker's ring is corrupt");
            exit(1);
        }

        submit(s, &record, payload);
        dsa_link_release(&s->link.submit);
    }

    now = now_ms();
    live = 0;

    for (i = 0; i < hello.slots; i++) {
        r = &s->requests[i];

        if (r->script == NULL) {
            continue;
        }

        if (!r->deaf && dsa_link_cancelled(&s->link, r->id)) {
            say("cancelled %llx sent=%u", (unsigned long long) r->id, r->sent);
            (void) send_done(s, r, DSA_LINK_FINISH_CANCELLED);
            continue;
        }

        if (r->next <= now) {
            while (r->script != NULL && line(s, r)) { /* void */ }
        }

        if (s->fd == -1) {
            return 0;
        }

        live++;
    }

    if (dsa_link_commit(&s->link.event)) {
        ring(s);
    }

    if (heartbeat) {
        atomic_store(&s->link.control->heartbeat, now);
    }

    atomic_fetch_add(&s->link.control->steps, 1);
    atomic_store(&s->link.control->draining, draining);
    atomic_store(&s->link.control->running, load_running + live);
    atomic_store(&s->link.control->waiting, load_waiting);

    return live;
}


static void
command(int fd, char *text)
{
    int       i, n;
    char      answer[64];
    uint32_t  k;

    text[strcspn(text, "\r\n")] = '\0';
    strcpy(answer, "ok\n");

    if (strncmp(text, "go", 2) == 0) {
        permits += text[2] == ' ' ? (unsigned) atoi(text + 3) : 1;

    } else if (strncmp(text, "drain ", 6) == 0) {
        draining = atoi(text + 6);

    } else if (strncmp(text, "heartbeat ", 10) == 0) {
        heartbeat = atoi(text + 10);

        for (i = 0; i < MAX_SESSIONS && !heartbeat; i++) {
            if (sessions[i].fd != -1) {
                atomic_store(&sessions[i].link.control->heartbeat, 1);
            }
        }

    } else if (strncmp(text, "load ", 5) == 0) {
        (void) sscanf(text + 5, "%u %u", &load_running, &load_waiting);

    } else if (strncmp(text, "corrupt ", 8) == 0) {
        for (i = 0; i < MAX_SESSIONS; i++) {
            if (sessions[i].fd != -1) {
                corrupt(&sessions[i], text + 8);
            }
        }

    } else if (strncmp(text, "mute ", 5) == 0) {
        mute = text[5] == '1';

    } else if (strcmp(text, "close") == 0) {
        for (i = 0; i < MAX_SESSIONS; i++) {
            if (sessions[i].fd != -1) {
                close_session(&sessions[i]);
            }
        }

    } else if (strcmp(text, "live") == 0 || strcmp(text, "sessions") == 0) {
        for (n = 0, i = 0; i < MAX_SESSIONS; i++) {
            if (sessions[i].fd == -1) {
                continue;
            }

            if (text[0] == 's') {
                n++;
                continue;
            }

            for (k = 0; k < hello.slots; k++) {
                n += sessions[i].requests[k].script != NULL;
            }
        }

        sprintf(answer, "%d\n", n);

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


static void
options(int argc, char **argv)
{
    int          i;
    char        *value;
    const char  *name;

    hello.magic = DSA_LINK_MAGIC;
    hello.version = DSA_LINK_VERSION;
    hello.slots = 256;
    hello.submit_size = 1 << 20;
    hello.event_size = 1 << 20;
    hello.context_length = 163840;
    hello.page_tokens = 64;
    hello.pid = (uint32_t) getpid();
    hello.temperature = 1;
    hello.top_p = 1;
    strcpy(hello.model, "fake-model");
    strcpy(hello.fingerprint, "0123456789abcdef");

    for (i = 2; i < argc; i++) {
        name = argv[i];
        value = strchr(argv[i], '=');

        if (value == NULL) {
            fprintf(stderr, "unknown argument %s\n", name);
            exit(2);
        }

        *value++ = '\0';

        if (strcmp(name, "model") == 0) {
            snprintf(hello.model, sizeof(hello.model), "%s", value);

        } else if (strcmp(name, "fingerprint") == 0) {
            snprintf(hello.fingerprint, sizeof(hello.fingerprint), "%s",
                     value);

        } else if (strcmp(name, "context") == 0) {
            hello.context_length = (uint32_t) strtoul(value, NULL, 10);

        } else if (strcmp(name, "slots") == 0) {
            hello.slots = (uint32_t) strtoul(value, NULL, 10);

        } else if (strcmp(name, "submit") == 0) {
            hello.submit_size = strtoul(value, NULL, 10);

        } else if (strcmp(name, "event") == 0) {
            hello.event_size = strtoul(value, NULL, 10);

        } else if (strcmp(name, "temperature") == 0) {
            hello.temperature = strtof(value, NULL);

        } else if (strcmp(name, "top_p") == 0) {
            hello.top_p = strtof(value, NULL);

        } else if (strcmp(name, "hello") == 0) {
            fault = value;

        } else if (strcmp(name, "script") == 0) {
            default_script = read_script(value);

        } else if (strcmp(name, "rate") == 0) {
            default_rate = strtoul(value, NULL, 10);

        } else {
            fprintf(stderr, "unknown option %s\n", name);
            exit(2);
        }
    }

    hello.segment_size = dsa_link_segment_size(hello.slots, hello.submit_size,
                                               hello.event_size);
}


int
main(int argc, char **argv)
{
    int             i, n, listener, control, live, wait;
    char            path[128], text[4096];
    ssize_t         got;
    struct pollfd   pfd[2 + MAX_CONTROLS + 2 * MAX_SESSIONS];

    if (argc < 2) {
        fprintf(stderr, "usage: fake_engine SOCKET [name=value ...]\n");
        return 2;
    }

    signal(SIGPIPE, SIG_IGN);

    options(argc, argv);

    for (i = 0; i < MAX_SESSIONS; i++) {
        sessions[i].fd = -1;
    }

    for (i = 0; i < MAX_CONTROLS; i++) {
        controls[i] = -1;
    }

    snprintf(path, sizeof(path), "%s.ctl", argv[1]);

    control = listen_on(path, SOCK_STREAM);
    listener = listen_on(argv[1], SOCK_SEQPACKET);

    for (live = 0; ; ) {
        n = 0;
        pfd[n++].fd = listener;
        pfd[n++].fd = control;

        for (i = 0; i < MAX_CONTROLS; i++) {
            pfd[n++].fd = controls[i];
        }

        for (i = 0; i < MAX_SESSIONS; i++) {
            pfd[n++].fd = sessions[i].fd;
            pfd[n++].fd = sessions[i].fd != -1 ? sessions[i].bell : -1;
        }

        for (i = 0; i < n; i++) {
            pfd[i].events = POLLIN;
            pfd[i].revents = 0;
        }

        wait = live != 0 || blocked ? 1 : 50;
        blocked = 0;

        if (poll(pfd, n, wait) == -1 && errno != EINTR) {
            die("poll");
        }

        for (i = 0; i < MAX_SESSIONS; i++) {
            if (sessions[i].fd != -1
                && pfd[2 + MAX_CONTROLS + 2 * i].revents != 0)
            {
                close_session(&sessions[i]);
            }
        }

        for (i = 0; i < MAX_CONTROLS; i++) {
            if (controls[i] != -1 && pfd[2 + i].revents != 0) {
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

        if (pfd[1].revents != 0) {
            for (i = 0; i < MAX_CONTROLS && controls[i] != -1; i++) {
                /* void */
            }

            got = accept4(control, NULL, NULL, SOCK_CLOEXEC);

            if (i < MAX_CONTROLS) {
                controls[i] = (int) got;

            } else if (got != -1) {
                close((int) got);
            }
        }

        if (pfd[0].revents != 0) {
            open_session(listener);
        }

        live = 0;

        for (i = 0; i < MAX_SESSIONS; i++) {
            if (sessions[i].fd != -1) {
                live += step_session(&sessions[i]);
            }
        }
    }
}
