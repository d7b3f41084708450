
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/str.h"
#include "t/fake/fake.h"


static void session_map(session_t *s, int fds[DSA_LINK_FDS]);
static void submit(session_t *s, const dsa_link_record_t *record,
    const char *p);
static void count(session_t *s, const dsa_link_record_t *record,
    const char *p);
static char *count_script(dsa_str_t last, int grammar);
static char *script_of(dsa_str_t last);
static char *log_bias(char *out, const dsa_link_field_t *field,
    const char *p);
static char *log_tenant(char *out, const uint8_t tenant[32], uint32_t weight);
static char *log_submit(char *out, uint64_t id, const dsa_link_submit_t *h);
static char *log_resume(char *out, const dsa_link_field_t *field,
    const char *p);
static char *log_field(char *out, const dsa_link_field_t *field,
    const char *p);


void
session_accept(int listener)
{
    int         i, fd;
    session_t  *s;

    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd == -1) {
        return;
    }

    for (i = 0; i < FAKE_SESSIONS; i++) {
        s = &fake.sessions[i];

        if (s->fd == -1) {
            memset(s, 0, sizeof(session_t));
            s->fd = fd;
            return;
        }
    }

    close(fd);
}


/* The worker has sent a datagram, which must be an offer. */

void
session_offer(session_t *s)
{
    int                rc, fds[DSA_LINK_FDS];
    uint32_t           max;
    dsa_link_hello_t   h;
    dsa_link_offer_t   offer;

    struct {
        dsa_link_hello_t  hello;
        char              more[64];
    } longer;

    rc = dsa_link_recv_offer(s->fd, &offer);

    if (rc != 1) {
        if (rc == -1) {
            close(s->fd);
            s->fd = -1;
        }

        return;
    }

    h = fake.hello;
    max = offer.version_max < h.version_max ? offer.version_max
                                            : h.version_max;
    h.version = max >= offer.version_min && max >= h.version_min ? max : 0;

    print_event("offer %u,%u version %u", offer.version_min,
                offer.version_max, h.version);

    if (h.version == 0) {
        if (dsa_link_send_hello(s->fd, &h, NULL) == -1) {
            perror("hello");
        }

        close(s->fd);
        s->fd = -1;
        return;
    }

    fake.hello.version = h.version;
    session_map(s, fds);

    if (strcmp(fake.fault, "magic") == 0) {
        h.magic++;

    } else if (strcmp(fake.fault, "version") == 0) {
        h.version = DSA_LINK_VERSION_MAX + 1;

    } else if (strcmp(fake.fault, "size") == 0) {
        h.segment_size += 4096;

    } else if (strcmp(fake.fault, "heat") == 0) {
        h.temperature = NAN;

    } else if (strcmp(fake.fault, "top") == 0) {
        h.top_p = 0;
    }

    if (strcmp(fake.fault, "silent") == 0) {
        print_event("session silent");

    } else if (strcmp(fake.fault, "plain") == 0
               || fake.version_max > DSA_LINK_VERSION_MAX)
    {
        /* no descriptors, or the longer hello of a later version */

        memset(&longer, 0x5a, sizeof(longer));
        longer.hello = h;

        rc = fake.fault[0] != '\0'
             ? (int) send(s->fd, &h, sizeof(h), MSG_NOSIGNAL)
             : dsa_link_send_fds(s->fd, &longer, sizeof(longer), fds);

        if (rc == -1) {
            perror("send");
        }

    } else if (dsa_link_send_hello(s->fd, &h, fds) == -1) {
        perror("hello");
    }

    close(fds[0]);

    print_event("session open");
}


static void
session_map(session_t *s, int fds[DSA_LINK_FDS])
{
    dsa_link_hello_t  *h = &fake.hello;

    fds[0] = memfd_create("dsa-fake", MFD_CLOEXEC|MFD_ALLOW_SEALING);
    fds[1] = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);
    fds[2] = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

    if (fds[0] == -1 || fds[1] == -1 || fds[2] == -1
        || ftruncate(fds[0], h->segment_size) == -1)
    {
        die("segment");
    }

    if (strcmp(fake.fault, "unsealed") != 0
        && fcntl(fds[0], F_ADD_SEALS, F_SEAL_SHRINK|F_SEAL_GROW|F_SEAL_SEAL)
           == -1)
    {
        die("seals");
    }

    s->segment = mmap(NULL, h->segment_size, PROT_READ|PROT_WRITE, MAP_SHARED,
                      fds[0], 0);
    if (s->segment == MAP_FAILED) {
        die("mmap");
    }

    if (dsa_link_attach(&s->link, s->segment, h->segment_size, h) != 0) {
        die("attach");
    }

    s->requests = calloc(h->slots, sizeof(request_t));
    if (s->requests == NULL) {
        die("calloc");
    }

    s->own_wake = fds[1];
    s->peer_wake = fds[2];
    s->open = 1;

    atomic_store(&s->link.control->alive_ms, now_ms());
    atomic_store(&s->link.control->draining, fake.draining);
    atomic_store(&s->link.control->ended, fake.ended);
    atomic_store(&s->link.control->pages, 100);
    atomic_store(&s->link.control->pages_used, 25);
}


void
session_close(session_t *s)
{
    uint32_t  i;

    if (s->open) {
        for (i = 0; i < fake.hello.slots; i++) {
            script_free(&s->requests[i]);
        }

        free(s->requests);
        munmap(s->segment, fake.hello.segment_size);
        close(s->own_wake);
        close(s->peer_wake);

        print_event("session closed");
    }

    close(s->fd);

    s->fd = -1;
    s->open = 0;
}


static void
submit(session_t *s, const dsa_link_record_t *record, const char *p)
{
    char                *log, *out;
    uint32_t             i, kind, context;
    request_t           *r;
    dsa_str_t            last;
    dsa_link_field_t     field;
    dsa_link_submit_t    head;

    memcpy(&head, p, sizeof(head));
    p += sizeof(head);

    r = &s->requests[dsa_link_slot(record->id)];

    if (r->script != NULL) {
        print_event("slot %u is taken", dsa_link_slot(record->id));
        exit(1);
    }

    script_free(r);
    memset(r, 0, sizeof(request_t));

    out = log = malloc((size_t) record->length * 4 + 1024);
    if (log == NULL) {
        die("malloc");
    }

    out = log_submit(out, record->id, &head);

    last = dsa_str("", 0);
    kind = 0;

    for (i = 0; i < head.n_fields; i++) {
        memcpy(&field, p, sizeof(field));
        p += sizeof(field);

        if (field.type == DSA_LINK_FIELD_STOP) {
            out += sprintf(out, kind == DSA_LINK_FIELD_STOP ? "|" : " stop=");
        }

        if (field.type == DSA_LINK_FIELD_QUERY) {
            if (r->n_queries == FAKE_QUERIES) {
                print_event("too many queries");
                exit(1);
            }

            r->query[r->n_queries++] = strndup(p, field.length);

        } else if (field.type == DSA_LINK_FIELD_GRAMMAR) {
            out += sprintf(out, " grammar=");
            out = log_field(out, &field, p);

        } else if (field.type == DSA_LINK_FIELD_BIAS) {
            out = log_bias(out, &field, p);

        } else if (field.type == DSA_LINK_FIELD_RESUME) {
            out = log_resume(out, &field, p);

        } else if (field.type == DSA_LINK_FIELD_TRACE
                   || field.type == DSA_LINK_FIELD_CLIENT)
        {
            out += sprintf(out, " %s=", field.type == DSA_LINK_FIELD_TRACE
                                        ? "traceparent" : "client");
            out = log_field(out, &field, p);

        } else if (field.type != DSA_LINK_FIELD_REQUEST) {

            /* the id is random, and no part of what a test expects */

            out = log_field(out, &field, p);
        }

        if (field.type == DSA_LINK_FIELD_TEXT) {
            r->prompt += field.length;
            last = dsa_str(p, field.length);

        } else if (field.type == DSA_LINK_FIELD_CONTROL) {
            r->prompt++;
        }

        kind = field.type;
        p += dsa_link_pad(field.length, 8);
    }

    *out = '\0';
    print_event("%s", log);
    free(log);

    r->id = record->id;
    r->seed = head.sampling.seed;
    r->rate = fake.rate;
    r->logprobs = head.sampling.logprobs;
    r->top = head.sampling.top_logprobs;

    context = fake.hello.context_length;

    if (fake.draining) {
        (void) send_error(s, record->id, DSA_LINK_E_DRAINING, 0, 0, "",
                          "draining");
        return;
    }

    if (r->prompt >= context
        || ((head.flags & DSA_LINK_WHOLE) != 0
            && r->prompt + head.max_tokens > context))
    {
        (void) send_error(s, record->id, DSA_LINK_E_CONTEXT, r->prompt, 0,
                          "", "over the context");
        return;
    }

    r->max_tokens = context - r->prompt;

    if (head.max_tokens != 0 && head.max_tokens < r->max_tokens) {
        r->max_tokens = head.max_tokens;
    }

    r->script = script_of(last);

    if (r->script == NULL && fake.script != NULL) {
        r->script = strdup(fake.script);

    } else if (r->script == NULL) {
        r->script = script_echo(last.data, last.len);
    }

    r->pc = r->script;
}


/* The number is that of a prompt in submit(), unless there is a script. */

static void
count(session_t *s, const dsa_link_record_t *record, const char *p)
{
    char                *log, *out;
    uint32_t             i, grammar;
    request_t           *r;
    dsa_str_t            last;
    dsa_link_field_t     field;
    dsa_link_count_t     head;
    dsa_link_counted_t  *counted;

    memcpy(&head, p, sizeof(head));
    p += sizeof(head);

    r = &s->requests[dsa_link_slot(record->id)];
    script_free(r);
    memset(r, 0, sizeof(request_t));
    r->id = record->id;

    grammar = 0;
    last = dsa_str("", 0);
    out = log = malloc((size_t) record->length * 2 + 1024);

    if (log == NULL) {
        die("malloc");
    }

    out = log_tenant(out, head.tenant, head.weight);

    for (i = 0; i < head.n_fields; i++) {
        memcpy(&field, p, sizeof(field));
        p += sizeof(field);

        if (field.type == DSA_LINK_FIELD_TEXT) {
            last = dsa_str(p, field.length);
            r->prompt += field.length;

        } else if (field.type == DSA_LINK_FIELD_CONTROL) {
            r->prompt++;

        } else {
            grammar = 1;
            out += sprintf(out, " grammar=");
            out = log_field(out, &field, p);
        }

        p += dsa_link_pad(field.length, 8);
    }

    *out = '\0';
    print_event("count %llx prompt=%u tenant=%s", (unsigned long long) r->id,
                r->prompt, log);
    free(log);

    r->manual = 1;
    r->script = r->pc = count_script(last, grammar);

    if (r->script != NULL) {
        return;
    }

    counted = dsa_link_reserve(&s->link.event, DSA_LINK_COUNTED, r->id,
                               sizeof(dsa_link_counted_t));
    if (counted == NULL) {
        die("dsa_link_reserve");
    }

    counted->prompt_tokens = r->prompt;
    counted->more = 0;
}


/* "hold", a record, or what is refused in a grammar; NULL: none of them. */

static char *
count_script(dsa_str_t last, int grammar)
{
    char  *script;

    script = script_of(last);

    if (script != NULL
        && (strncmp(script, "hold", 4) == 0
            || strncmp(script, "record", 6) == 0
            || (grammar && strstr(script, "error grammar") != NULL)))
    {
        return script;
    }

    free(script);

    return NULL;
}


/* The script in the last text, or in the last result in it; NULL: none. */

static char *
script_of(dsa_str_t last)
{
    char        *script;
    size_t       i;
    const char  *end;

    static const char  result[] = "<result>!fake\n";

    if (last.len > 6 && memcmp(last.data, "!fake\n", 6) == 0) {
        return strndup(last.data + 6, last.len - 6);
    }

    script = NULL;

    for (i = 0; i + sizeof(result) - 1 <= last.len; i++) {
        if (memcmp(last.data + i, result, sizeof(result) - 1) != 0) {
            continue;
        }

        i += sizeof(result) - 1;
        end = memmem(last.data + i, last.len - i, "</result>", 9);

        if (end != NULL) {
            free(script);
            script = strndup(last.data + i, end - (last.data + i));
        }
    }

    return script;
}


static char *
log_bias(char *out, const dsa_link_field_t *field, const char *p)
{
    uint32_t         i;
    dsa_bias_t       b;

    for (i = 0; i < field->length / sizeof(b); i++) {
        memcpy(&b, p + i * sizeof(b), sizeof(b));

        /* a text of 30 bytes at most, for 8 bytes of the record */

        out += sprintf(out, " bias %u=%g", b.id, (double) b.bias);
    }

    return out;
}


static char *
log_tenant(char *out, const uint8_t tenant[32], uint32_t weight)
{
    size_t  i;

    for (i = 0; i < 32; i++) {
        out += sprintf(out, "%02x", tenant[i]);
    }

    return out + sprintf(out, " weight=%u", weight);
}


static char *
log_submit(char *out, uint64_t id, const dsa_link_submit_t *h)
{
    const dsa_sampling_t  *s = &h->sampling;

    out += sprintf(out, "submit %llx max=%u temperature=%g top_p=%g "
                   "frequency=%g presence=%g seed=%llu flags=%x logprobs=%u "
                   "top=%u deadline=%s tenant=",
                   (unsigned long long) id, h->max_tokens,
                   (double) s->temperature, (double) s->top_p,
                   (double) s->frequency_penalty,
                   (double) s->presence_penalty,
                   (unsigned long long) s->seed, h->flags, s->logprobs,
                   s->top_logprobs,
                   h->deadline_ms > now_ms() ? "later" : "past");

    out = log_tenant(out, h->tenant, h->weight);

    if (h->thinking_budget != 0) {
        out += sprintf(out, " budget=%u", h->thinking_budget);
    }

    return out + sprintf(out, " prompt=");
}


/* The tokens after which the answer goes on. */

static char *
log_resume(char *out, const dsa_link_field_t *field, const char *p)
{
    uint32_t  i, id;

    out += sprintf(out, " resume=");

    for (i = 0; i < field->length; i += sizeof(id)) {
        memcpy(&id, p + i, sizeof(id));
        out += sprintf(out, i == 0 ? "%u" : ",%u", id);
    }

    return out;
}


/* Logs a control token in brackets, and a newline as \n. */

static char *
log_field(char *out, const dsa_link_field_t *field, const char *p)
{
    uint32_t  n;

    if (field->type == DSA_LINK_FIELD_CONTROL) {
        *out++ = '[';
    }

    for (n = 0; n < field->length; n++) {
        if (p[n] == '\n') {
            *out++ = '\\';
            *out++ = 'n';
            continue;
        }

        *out++ = p[n];
    }

    if (field->type == DSA_LINK_FIELD_CONTROL) {
        *out++ = ']';
    }

    return out;
}


int
session_step(session_t *s)
{
    int                 rc, live;
    uint32_t            i;
    uint64_t            now, n;
    request_t          *r;
    const void         *payload;
    dsa_link_record_t   record;

    (void) !read(s->own_wake, &n, sizeof(n));

    for ( ;; ) {
        rc = dsa_link_peek(&s->link.submit, &record, &payload);

        if (rc == 0) {
            if (dsa_link_sleep(&s->link.submit)) {
                break;
            }

            continue;
        }

        if (rc == -1 || dsa_link_slot(record.id) >= fake.hello.slots
            || (record.type != DSA_LINK_SUBMIT
                && record.type != DSA_LINK_COUNT))
        {
            print_event("the worker's ring is corrupt");
            exit(1);
        }

        if (record.type == DSA_LINK_COUNT) {
            count(s, &record, payload);

        } else {
            submit(s, &record, payload);
        }

        dsa_link_release(&s->link.submit);
    }

    now = now_ms();
    live = 0;

    for (i = 0; i < fake.hello.slots; i++) {
        r = &s->requests[i];

        if (r->script == NULL) {
            continue;
        }

        if (!r->deaf && dsa_link_cancelled(&s->link, r->id)) {
            print_event("cancelled %llx sent=%u", (unsigned long long) r->id,
                        r->sent);
            (void) send_done(s, r, DSA_LINK_FINISH_CANCELLED);
            continue;
        }

        if (r->next <= now) {
            while (r->script != NULL && script_line(s, r)) { /* void */ }
        }

        if (s->fd == -1) {
            return 0;
        }

        if (r->script != NULL) {
            live++;
        }
    }

    if (fake.alive) {
        atomic_store(&s->link.control->alive_ms, now);
    }

    atomic_fetch_add(&s->link.control->steps, 1);
    atomic_store(&s->link.control->draining, fake.draining);
    atomic_store(&s->link.control->running, fake.running + live);
    atomic_store(&s->link.control->waiting, fake.waiting);
    atomic_store(&s->link.control->ended, fake.ended);

    /* last, so that nginx finds a request that has ended in no count */

    if (dsa_link_commit(&s->link.event)) {
        wake(s);
    }

    return live;
}
