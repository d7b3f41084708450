
/*
 * Copyright (C) The nginx-dsa authors
 *
 * All that a follower reads after the leader has proved that it has the secret:
 * PLAN, STEP, COPY, DATA, MOVE, TIER and BYE in any order, in a loop of the
 * follower with a backend and a tier of this program.
 *
 * The first byte of an input:
 *
 *     bit 0        the backend has two steps in flight, and reports their ends
 *     bit 1        it exchanges DATA in each step
 *     bits 2-3     how often a move, or an operation of the tier, is looked at
 *                  before it has ended
 *     bit 4        the tier accepts no operation
 *     bit 5        the rest begins with STEP: PLAN is sent by this program
 *
 * and the rest is what the leader sends.
 */


#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/tiers.h"
#include "engine/hosts/follower.h"
#include "engine/hosts/plan.h"
#include "t/fuzz/hosts.h"


#define PAGES       8               /* of a rank */
#define PAGE_BYTES  256
#define HOST_PAGES  4
#define DEPTH       2
#define MOST        8192            /* bytes of an input */


/* The backend, which only records what it is called with. */

typedef struct {
    dsa_backend_hosts_t hosts;
    uint32_t            first;          /* rank of this host */
    uint32_t            ranks;          /* of it */
    uint32_t            max_seqs;
    dsa_batch_seq_t    *last[DEPTH];    /* entries of the steps in flight */
    uint32_t            started;
    uint32_t            ended;
    uint32_t            looks;          /* at what has not ended */
    uint64_t            moves[DSA_MAX_GPUS][DSA_MOVES];
    uint64_t            moved[DSA_MAX_GPUS][DSA_MOVES];
    uint8_t             page[DSA_MAX_GPUS][PAGES][PAGE_BYTES];
} fuzz_backend_t;


typedef struct {
    uint32_t            open;
    uint32_t            looks;
    uint32_t            sum;            /* of the bytes that were written */
    dsa_tier_op_t      *first;          /* that have not ended */
    void              (*wake)(void *data);
    void               *wake_data;
} fuzz_tier_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
dsa_hosts_memory_t *__wrap_dsa_hosts_memory_open(
    const dsa_hosts_memory_conf_t *conf, dsa_err_t *err);
dsa_hosts_memory_t *__real_dsa_hosts_memory_open(
    const dsa_hosts_memory_conf_t *conf, dsa_err_t *err);
int __wrap_dsa_host_open_part(dsa_host_t *h, uint64_t size,
    uint64_t page_bytes, uint32_t hosts, dsa_err_t *err);
void __wrap_dsa_host_close(dsa_host_t *h);


static uint8_t              fuzz_flags;
static int                  fuzz_never;     /* for a test: 1: no move ends */
static fuzz_tier_t          fuzz_tier;
static dsa_backend_t       *fuzz_open;
static dsa_hosts_memory_t  *fuzz_memory;


/*
 * A follower that fails leaves its backend and its memory to the end of the
 * process, and here there are many followers in one.
 */

dsa_hosts_memory_t *
__wrap_dsa_hosts_memory_open(const dsa_hosts_memory_conf_t *conf,
    dsa_err_t *err)
{
    fuzz_memory = __real_dsa_hosts_memory_open(conf, err);

    return fuzz_memory;
}


/* Memory that is quick to get, and behind which a sanitizer looks. */

int
__wrap_dsa_host_open_part(dsa_host_t *h, uint64_t size, uint64_t page_bytes,
    uint32_t hosts, dsa_err_t *err)
{
    memset(h, 0, sizeof(dsa_host_t));

    h->slabs = 2;
    h->page_bytes = page_bytes;

    h->slab[0].pages = HOST_PAGES;
    h->slab[0].bytes = HOST_PAGES * page_bytes;
    h->slab[0].memory = calloc(HOST_PAGES, page_bytes);
    h->slab[1].pages = 1;
    h->slab[1].bytes = page_bytes;
    h->slab[1].memory = calloc(1, page_bytes);

    must(h->slab[0].memory != NULL && h->slab[1].memory != NULL);

    return DSA_OK;
}


void
__wrap_dsa_host_close(dsa_host_t *h)
{
    free(h->slab[0].memory);
    free(h->slab[1].memory);
}


static uint32_t
fuzz_looks(void)
{
    return fuzz_flags >> 2 & 3;
}


static void
fuzz_check_step(const dsa_backend_t *b, const dsa_batch_seq_t *seq, uint32_t n)
{
    uint32_t               i, own;
    dsa_hosts_limits_t     limits;
    const fuzz_backend_t  *f = b->data;

    limits.context = b->config.max_position_embeddings;
    limits.vocab = b->config.vocab_size;
    limits.pages = b->pages;

    for (i = 0; i < n; i++) {
        own = seq[i].rank - f->first < f->ranks;

        must(seq[i].rank < b->ranks && seq[i].n_draft == 0
             && seq[i].copies == NULL && seq[i].rollout == NULL
             && seq[i].next == NULL);

        /* an entry can follow another one only if both are in flight at once */

        must(seq[i].input_from == DSA_INPUT_KNOWN
             || (b->depth > 1 && f->started != 0));

        if (own) {
            fuzz_hosts_entry(&seq[i], &limits);

        } else {
            must(seq[i].sampling == NULL && seq[i].sample == NULL);
        }
    }
}


static int
fuzz_exchange(fuzz_backend_t *f, dsa_err_t *err)
{
    char         in[DSA_MAX_GPUS][8];
    void        *to[DSA_MAX_GPUS];
    uint32_t     i, n;
    uint64_t     bytes[DSA_MAX_GPUS * DSA_MAX_GPUS];
    const void  *from[DSA_MAX_GPUS];

    n = f->hosts.n;

    for (i = 0; i < n; i++) {
        from[i] = "8 bytes";
        to[i] = in[i];
    }

    for (i = 0; i < n * n; i++) {
        bytes[i] = i / n != i % n ? 1 + i % 8 : 0;
    }

    return f->hosts.exchange(f->hosts.data, from, to, bytes, err);
}


static int
fuzz_start(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n, dsa_err_t *err)
{
    uint32_t         i;
    dsa_sample_t    *sample;
    fuzz_backend_t  *f = b->data;

    must(f->started - f->ended < b->depth);

    if (n > f->max_seqs * b->ranks) {
        return dsa_error(err, "too many sequences");
    }

    fuzz_check_step(b, seq, n);

    for (i = 0; i < n; i++) {
        if (seq[i].sampling == NULL) {
            continue;
        }

        sample = seq[i].sample;
        sample->token = 7;
        sample->logprob = -1;
        sample->n_top = seq[i].sampling->top_logprobs;
    }

    f->started++;
    f->looks = 0;

    return (fuzz_flags & 2) != 0 ? fuzz_exchange(f, err) : DSA_OK;
}


static int
fuzz_wait(dsa_backend_t *b, dsa_err_t *err)
{
    fuzz_backend_t  *f = b->data;

    must(f->started != f->ended);
    f->ended++;
    f->looks = 0;

    return DSA_OK;
}


static int
fuzz_ended(dsa_backend_t *b)
{
    fuzz_backend_t  *f = b->data;

    return f->looks++ >= fuzz_looks();
}


static int
fuzz_copy(dsa_backend_t *b, const dsa_page_copy_t *copy, uint32_t n,
    dsa_err_t *err)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        if (copy[i].from_rank >= b->ranks || copy[i].to_rank >= b->ranks
            || copy[i].from_page >= b->pages || copy[i].to_page >= b->pages)
        {
            return dsa_error(err, "no such page");
        }
    }

    return DSA_OK;
}


static int
fuzz_move(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n, dsa_err_t *err)
{
    uint8_t         *page;
    uint32_t         i;
    fuzz_backend_t  *f = b->data;

    must(way < DSA_MOVES && rank - f->first < f->ranks && n != 0);
    must(f->moves[rank][way] - f->moved[rank][way] < DSA_MOVE_CALLS);
    must(dsa_backend_check_moves(b, rank, move, n, err) == DSA_OK);

    for (i = 0; i < n; i++) {
        page = f->page[rank][move[i].page];

        if (way == DSA_MOVE_OUT) {
            memcpy(move[i].host, page, PAGE_BYTES);

        } else {
            memcpy(page, move[i].host, PAGE_BYTES);
        }
    }

    f->moves[rank][way]++;

    return DSA_OK;
}


static int
fuzz_moved(dsa_backend_t *b, dsa_move_e way, uint32_t rank, int wait,
    uint64_t *calls, dsa_err_t *err)
{
    fuzz_backend_t  *f = b->data;

    must(way < DSA_MOVES && rank - f->first < f->ranks);

    if (f->moved[rank][way] < f->moves[rank][way] && !fuzz_never
        && (wait || f->looks++ >= fuzz_looks()))
    {
        f->looks = 0;
        f->moved[rank][way]++;
    }

    *calls = f->moved[rank][way];

    return DSA_OK;
}


static void
fuzz_close(dsa_backend_t *b)
{
    fuzz_open = NULL;
    free(b->data);
    free(b);
}


static dsa_backend_t *
fuzz_backend(dsa_backend_e kind, const dsa_backend_conf_t *conf,
    dsa_err_t *err)
{
    dsa_backend_t   *b;
    fuzz_backend_t  *f;

    must(conf->hosts.n >= 2 && conf->hosts.host >= 1
         && conf->hosts.host < conf->hosts.n && conf->gpus >= 1
         && conf->gpus * conf->hosts.n <= DSA_MAX_GPUS
         && conf->max_tokens != 0 && conf->max_seqs != 0);

    /* what a backend has no memory for, or no model */

    if (conf->max_tokens > 4096 || conf->max_seqs > 64 || conf->context > 256) {
        (void) dsa_error(err, "no memory");
        return NULL;
    }

    b = calloc(1, sizeof(dsa_backend_t));
    f = calloc(1, sizeof(fuzz_backend_t));
    must(b != NULL && f != NULL);

    f->hosts = conf->hosts;
    f->first = conf->hosts.host * conf->gpus;
    f->ranks = conf->gpus;
    f->max_seqs = conf->max_seqs;

    b->data = f;
    b->config.max_position_embeddings = 256;
    b->config.vocab_size = 96;
    b->ranks = conf->gpus * conf->hosts.n;
    b->pages = PAGES;
    b->page_bytes = PAGE_BYTES;
    b->rank_tokens = (conf->max_tokens + b->ranks - 1) / b->ranks;
    b->depth = 1 + (fuzz_flags & 1);
    b->start = fuzz_start;
    b->wait = fuzz_wait;
    b->ended = (fuzz_flags & 1) != 0 ? fuzz_ended : NULL;
    b->copy = fuzz_copy;
    b->pin = dsa_backend_pin;
    b->move = fuzz_move;
    b->moved = fuzz_moved;
    b->close = fuzz_close;

    if (conf->context != 0) {
        b->config.max_position_embeddings = conf->context;
    }

    fuzz_open = b;

    return b;
}


static int
fuzz_tier_submit(void *data, dsa_tier_op_t *op)
{
    uint32_t      i;
    fuzz_tier_t  *t = data;

    must(op->n == 1 && op->page != NULL
         && (op->kind == DSA_TIER_READ || op->kind == DSA_TIER_WRITE));

    if ((fuzz_flags & 16) != 0) {
        return DSA_AGAIN;
    }

    if (op->kind == DSA_TIER_READ) {
        memset(op->page, op->digest->byte[0], PAGE_BYTES);

    } else {
        for (i = 0; i < PAGE_BYTES; i++) {
            t->sum += op->page[i];
        }
    }

    op->result = DSA_TIER_DONE + op->digest->byte[1] % 4;
    op->next = t->first;
    t->first = op;
    t->looks = 0;
    t->wake(t->wake_data);

    return DSA_OK;
}


static void
fuzz_tier_cancel(void *data, const void *owner)
{
    fuzz_tier_t    *t = data;
    dsa_tier_op_t  *op;

    for (op = t->first; op != NULL; op = op->next) {
        if (op->owner == owner) {
            op->result = DSA_TIER_FAILED;
        }
    }
}


static dsa_tier_op_t *
fuzz_tier_collect(void *data)
{
    fuzz_tier_t    *t = data;
    dsa_tier_op_t  *op;

    if (t->first == NULL) {
        return NULL;
    }

    t->wake(t->wake_data);

    if (t->looks++ < fuzz_looks()) {
        return NULL;
    }

    op = t->first;
    t->first = NULL;

    return op;
}


static void
fuzz_tier_close(void *data)
{
    fuzz_tier_t  *t = data;

    must(t->open);
    t->open = 0;
    t->first = NULL;
}


static int
fuzz_tiers(void *data, uint32_t mask, const dsa_backend_t *b,
    void (*wake)(void *data), void *wake_data, dsa_tier_t *tier,
    dsa_err_t *err)
{
    if (mask != 1U << DSA_TIER_REDIS) {
        return dsa_error(err, "no such tiers");
    }

    fuzz_tier.open = 1;
    fuzz_tier.wake = wake;
    fuzz_tier.wake_data = wake_data;

    tier[DSA_TIER_REDIS].data = &fuzz_tier;
    tier[DSA_TIER_REDIS].submit = fuzz_tier_submit;
    tier[DSA_TIER_REDIS].cancel = fuzz_tier_cancel;
    tier[DSA_TIER_REDIS].collect = fuzz_tier_collect;
    tier[DSA_TIER_REDIS].close = fuzz_tier_close;

    return DSA_OK;
}


/* A plan of two hosts with one rank each. */

static void
fuzz_plan_set(dsa_hosts_plan_t *plan)
{
    memset(plan, 0, sizeof(dsa_hosts_plan_t));

    plan->hosts = 2;
    plan->host = 1;
    plan->gpus = 1;
    plan->max_tokens = 64;
    plan->max_seqs = 3;
    plan->allowed = 96;
    plan->tiers = 1U << DSA_TIER_REDIS;
    plan->host_memory = HOST_PAGES * PAGE_BYTES;
    plan->limit_ms = 5000;
}


static void
fuzz_plan(int fd)
{
    struct {
        dsa_hosts_head_t  head;
        dsa_hosts_plan_t  plan;
    } m;

    memset(&m, 0, sizeof(m));
    m.head.type = DSA_HOSTS_PLAN;
    m.head.bytes = sizeof(m.plan);
    fuzz_plan_set(&m.plan);

    must(send(fd, &m, sizeof(m), 0) == (ssize_t) sizeof(m));
}


/* What the follower has sent is whole messages, and a FAULT is the last one. */

static void
fuzz_answers(int fd, int rc)
{
    char              skip[512];
    ssize_t           n;
    uint32_t          last;
    dsa_hosts_head_t  head;

    last = 0;

    while (recv(fd, &head, sizeof(head), MSG_DONTWAIT)
           == (ssize_t) sizeof(head))
    {
        must(last != DSA_HOSTS_FAULT);
        last = head.type;

        must(last == DSA_HOSTS_READY || last == DSA_HOSTS_MOVED
             || last == DSA_HOSTS_TIERED || last == DSA_HOSTS_DATA
             || last == DSA_HOSTS_RESULT || last == DSA_HOSTS_FAULT);

        for ( /* void */ ; head.bytes != 0; head.bytes -= (uint64_t) n) {
            n = recv(fd, skip, head.bytes < sizeof(skip) ? head.bytes
                                                         : sizeof(skip),
                     MSG_DONTWAIT);
            must(n > 0);
        }
    }

    must((rc == DSA_OK) == (last != DSA_HOSTS_FAULT));
}


/* Follows a leader that sends so many bytes; err is "" if it ends well. */

static void
fuzz_follow(const uint8_t *data, size_t size, dsa_err_t *err)
{
    int                   rc, fds[2], room;
    dsa_hosts_wire_t      w;
    _Atomic uint64_t      step;
    dsa_hosts_follower_t  f;

    memset(&w, 0, sizeof(w));
    memset(&f, 0, sizeof(f));
    memset(&fuzz_tier, 0, sizeof(fuzz_tier));
    fuzz_memory = NULL;

    must(socketpair(AF_UNIX, SOCK_STREAM|SOCK_NONBLOCK, 0, fds) == 0);

    /* answers stay in the socket until the follower has ended */

    room = 1 << 20;
    (void) setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    (void) setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));

    if ((fuzz_flags & 32) != 0) {
        fuzz_plan(fds[1]);
    }

    must(size == 0 || send(fds[1], data, size, 0) == (ssize_t) size);
    must(shutdown(fds[1], SHUT_WR) == 0);

    w.fd = fds[0];
    (void) strcpy(w.name, "the leader");
    f.kind = DSA_BACKEND_CPU;
    f.backend.gpus = 1;
    f.open = fuzz_backend;
    f.tiers = fuzz_tiers;
    f.step_started_ms = &step;

    err->text[0] = '\0';
    rc = dsa_hosts_follow(&w, &f, err);

    fuzz_answers(fds[1], rc);

    if (rc == DSA_OK) {
        must(fuzz_open == NULL && !fuzz_tier.open && err->text[0] == '\0');

    } else {
        fuzz_hosts_text(err->text);

        dsa_hosts_memory_end_tiers(fuzz_memory);
        dsa_hosts_memory_close(fuzz_memory);

        if (fuzz_open != NULL) {
            fuzz_open->close(fuzz_open);
        }
    }

    (void) close(fds[0]);
    (void) close(fds[1]);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dsa_err_t  err;

    dsa_log_level(DSA_LOG_ERR);

    if (size >= 1 && size <= MOST) {
        fuzz_flags = data[0];
        fuzz_follow(data + 1, size - 1, &err);
    }

    return 0;
}
