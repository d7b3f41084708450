
/*
 * Copyright (C) The nginx-dsa authors
 *
 * All that a leader reads after its followers have proved that they have the
 * secret: READY, MOVED, TIERED, DATA, RESULT and FAULT in any order, while a
 * caller starts steps, moves and copies pages, and uses a tier.  Its backend is
 * one of this program.
 *
 * The first byte of an input:
 *
 *     bit 0        there are two followers, and not one
 *     bit 1        the leader has no host memory, and thus no tier
 *     bit 2        the hosts exchange DATA in each step
 *     bit 3        READY comes from the input: the messages in front of the
 *                  first call; otherwise this program sends it
 *
 * The rest is what happens: a byte whose lower half is what, and whose upper
 * half is its argument, which for a message is its follower:
 *
 *     0            a message: its type, its number, the length of its content,
 *                  a byte each, and the content
 *     1            the same, with another length in its head, which follows as
 *                  4 bytes
 *     2            bytes: their number, a byte, and they
 *     3            the follower closes its side
 *     4            start()    with as many entries as the argument, and one
 *     5            wait()
 *     6            move()     of bit 0 way, bits 1-3 rank
 *     7            moved()    the same
 *     8            moved()    the same, and it waits
 *     9            submit()   of bit 0 WRITE, bits 1-2 host
 *     10           cancel()   of all
 *     11           collect()
 *     12           copy()
 *     13           check()
 *
 * Before a call that waits all followers close their sides, unless bit 3 of the
 * argument is set, because nothing more would come.
 */


#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/tiers.h"
#include "engine/hosts/connect.h"
#include "engine/hosts/leader.h"
#include "engine/hosts/plan.h"
#include "t/fuzz/hosts.h"


#define FOLLOWERS   2
#define PAGES       8               /* of a rank */
#define PAGE_BYTES  4096
#define HOST_PAGES  4
#define ENTRIES     6               /* of a step */
#define OPS         32              /* operations of the tier, at once */
#define DEPTH       2
#define TOP         20              /* alternatives of a sample */
#define LIMIT_MS    20
#define MOST        8192            /* bytes of an input */


/* What the caller has in flight; its memory ends with it. */

typedef struct {
    uint32_t           *lost;           /* [1] */
} fuzz_call_t;


typedef struct {
    dsa_backend_t      *b;
    dsa_host_t          memory;
    dsa_tier_t          tier;
    uint32_t            hosts;
    int                 fd[FOLLOWERS + 1];      /* of the followers' sides */
    dsa_sample_t       *sample[DEPTH];          /* [ENTRIES] */
    uint32_t            n[DEPTH];
    uint32_t            started;
    uint32_t            ended;
    fuzz_call_t         call[FOLLOWERS + 1][DSA_MOVES][DSA_MOVE_CALLS];
    uint64_t            moves[FOLLOWERS + 1][DSA_MOVES];
    uint64_t            moved[FOLLOWERS + 1][DSA_MOVES];
    dsa_tier_op_t      *op[OPS];
    dsa_digest_t        digest;
    const uint8_t      *pos;
    const uint8_t      *end;
} fuzz_lead_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __wrap_dsa_hosts_connect(dsa_hosts_wire_t *w, const char *address,
    const dsa_hosts_secret_t *secret, dsa_err_t *err);


static uint8_t                  fuzz_flags;
static int                      fuzz_connected;         /* to connect to */
static int                      fuzz_to[FOLLOWERS + 1];
static dsa_backend_hosts_t      fuzz_hosts;


/* The followers are in this process. */

int
__wrap_dsa_hosts_connect(dsa_hosts_wire_t *w, const char *address,
    const dsa_hosts_secret_t *secret, dsa_err_t *err)
{
    (void) snprintf(w->name, sizeof(w->name), "host %s", address);
    w->fd = fuzz_to[++fuzz_connected];

    return DSA_OK;
}


static int
fuzz_exchange(dsa_err_t *err)
{
    char         in[FOLLOWERS + 1][8];
    void        *to[FOLLOWERS + 1];
    uint32_t     i, n;
    uint64_t     bytes[(FOLLOWERS + 1) * (FOLLOWERS + 1)];
    const void  *from[FOLLOWERS + 1];

    n = fuzz_hosts.n;

    for (i = 0; i < n; i++) {
        from[i] = "8 bytes";
        to[i] = in[i];
    }

    for (i = 0; i < n * n; i++) {
        bytes[i] = i / n != i % n ? 1 + i % 8 : 0;
    }

    return fuzz_hosts.exchange(fuzz_hosts.data, from, to, bytes, err);
}


static int
local_start(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n, dsa_err_t *err)
{
    return (fuzz_flags & 4) != 0 ? fuzz_exchange(err) : DSA_OK;
}


static int
local_wait(dsa_backend_t *b, dsa_err_t *err)
{
    return DSA_OK;
}


static int
local_copy(dsa_backend_t *b, const dsa_page_copy_t *copy, uint32_t n,
    dsa_err_t *err)
{
    return DSA_OK;
}


static int
local_move(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n, dsa_err_t *err)
{
    must(rank == 0);

    return DSA_OK;
}


static int
local_moved(dsa_backend_t *b, dsa_move_e way, uint32_t rank, int wait,
    uint64_t *calls, dsa_err_t *err)
{
    must(rank == 0);
    *calls = 0;

    return DSA_OK;
}


static void
local_close(dsa_backend_t *b)
{
    free(b);
}


static dsa_backend_t *
local_open(dsa_backend_e kind, const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    dsa_backend_t  *b;

    b = calloc(1, sizeof(dsa_backend_t));
    must(b != NULL);

    fuzz_hosts = conf->hosts;

    memset(b->fingerprint, 'f', 32);
    b->config.max_position_embeddings = 256;
    b->config.vocab_size = 96;
    b->ranks = conf->hosts.n;
    b->pages = PAGES;
    b->page_bytes = PAGE_BYTES;
    b->rank_tokens = 16;
    b->depth = DEPTH;
    b->start = local_start;
    b->wait = local_wait;
    b->copy = local_copy;
    b->pin = dsa_backend_pin;
    b->move = local_move;
    b->moved = local_moved;
    b->close = local_close;

    return b;
}


/* A tier without anything: all that the caller uses is on other hosts. */

static int
tier_on(void *data)
{
    return 1;
}


static int
tier_submit(void *data, dsa_tier_op_t *op)
{
    return DSA_AGAIN;
}


static void
tier_cancel(void *data, const void *owner)
{
}


static dsa_tier_op_t *
tier_collect(void *data)
{
    return NULL;
}


static void
tier_close(void *data)
{
}


static void
lead_nothing(void *data)
{
}


static void
lead_abort(void *data, const char *text)
{
    fuzz_hosts_text(text);
}


static uint8_t
fuzz_byte(fuzz_lead_t *l)
{
    return l->pos != l->end ? *l->pos++ : 0;
}


static size_t
fuzz_take(fuzz_lead_t *l, size_t n, const uint8_t **data)
{
    *data = l->pos;
    n = n < (size_t) (l->end - l->pos) ? n : (size_t) (l->end - l->pos);
    l->pos += n;

    return n;
}


static void
fuzz_send(fuzz_lead_t *l, uint8_t host, const void *data, size_t n)
{
    /* the follower may have closed its side before */

    (void) send(l->fd[host], data, n, MSG_NOSIGNAL|MSG_DONTWAIT);
}


static void
fuzz_message(fuzz_lead_t *l, uint8_t host, int other)
{
    size_t            n, taken;
    uint32_t          bytes;
    const uint8_t    *data;
    dsa_hosts_head_t  head;

    head.type = fuzz_byte(l);
    head.number = fuzz_byte(l);
    head.bytes = fuzz_byte(l);
    n = head.bytes;

    if (other) {
        bytes = 0;
        taken = fuzz_take(l, sizeof(bytes), &data);
        memcpy(&bytes, data, taken);
        head.bytes = bytes;
    }

    n = fuzz_take(l, n, &data);
    fuzz_send(l, host, &head, sizeof(head));
    fuzz_send(l, host, data, n);
}


/* What a follower sends; returns 0 if the byte is a call. */

static int
fuzz_follower(fuzz_lead_t *l, uint8_t what, uint8_t argument)
{
    size_t          n;
    uint8_t         host;
    const uint8_t  *data;

    host = 1 + argument % (l->hosts - 1);

    switch (what) {

    case 0:
    case 1:
        fuzz_message(l, host, what);
        return 1;

    case 2:
        n = fuzz_byte(l);
        n = fuzz_take(l, n, &data);
        fuzz_send(l, host, data, n);
        return 1;

    case 3:
        (void) shutdown(l->fd[host], SHUT_WR);
        return 1;

    default:
        return 0;
    }
}


static void
fuzz_ready(fuzz_lead_t *l)
{
    uint8_t  i;

    struct {
        dsa_hosts_head_t   head;
        dsa_hosts_ready_t  ready;
    } m;

    memset(&m, 0, sizeof(m));
    m.head.type = DSA_HOSTS_READY;
    m.head.bytes = sizeof(m.ready);
    memset(m.ready.fingerprint, 'f', 32);
    m.ready.pages = PAGES;
    m.ready.page_bytes = PAGE_BYTES;
    m.ready.slabs = (fuzz_flags & 2) == 0;
    m.ready.slab_pages[0] = HOST_PAGES;

    for (i = 1; i < l->hosts; i++) {
        fuzz_send(l, i, &m, sizeof(m));
    }
}


/* The leader never waits for a follower to read. */

static void
fuzz_drain(fuzz_lead_t *l)
{
    char      skip[4096];
    uint32_t  i;

    for (i = 1; i < l->hosts; i++) {
        while (recv(l->fd[i], skip, sizeof(skip), MSG_DONTWAIT) > 0) {
            /* void */
        }
    }
}


static void
fuzz_last(fuzz_lead_t *l, uint8_t argument)
{
    uint32_t  i;

    for (i = 1; i < l->hosts && (argument & 8) == 0; i++) {
        (void) shutdown(l->fd[i], SHUT_WR);
    }
}


static int
fuzz_start(fuzz_lead_t *l, uint8_t argument, dsa_err_t *err)
{
    uint32_t         i, n, at, page, tokens[1];
    dsa_sampling_t   sampling;
    dsa_batch_seq_t  seq[ENTRIES];

    if (l->started - l->ended == DEPTH) {
        return DSA_OK;
    }

    if ((fuzz_flags & 4) != 0) {
        fuzz_last(l, argument);
    }

    memset(seq, 0, sizeof(seq));
    memset(&sampling, 0, sizeof(sampling));
    sampling.top_p = 1;
    sampling.logprobs = 1;
    sampling.top_logprobs = TOP;
    page = 3;
    tokens[0] = 5;

    at = l->started % DEPTH;
    n = 1 + argument % 8 % ENTRIES;
    l->n[at] = n;
    l->sample[at] = calloc(n, sizeof(dsa_sample_t));
    must(l->sample[at] != NULL);

    for (i = 0; i < n; i++) {
        seq[i].tokens = tokens;
        seq[i].n_input = 1;
        seq[i].n_prompt = 1;
        seq[i].input_from = DSA_INPUT_KNOWN;
        seq[i].rank = i % l->hosts;
        seq[i].pages = &page;
        seq[i].n_pages = 1;
        seq[i].sampling = i != 1 ? &sampling : NULL;
        seq[i].sample = &l->sample[at][i];
    }

    l->started++;

    return l->b->start(l->b, seq, n, err);
}


static int
fuzz_wait(fuzz_lead_t *l, uint8_t argument, dsa_err_t *err)
{
    int            rc;
    uint32_t       i, j, at;
    dsa_sample_t  *s;

    if (l->started == l->ended) {
        return DSA_OK;
    }

    fuzz_last(l, argument);
    at = l->ended++ % DEPTH;
    rc = l->b->wait(l->b, err);

    for (i = 0; rc == DSA_OK && i < l->n[at]; i++) {
        s = &l->sample[at][i];

        must(s->token < 96 && s->n_top <= TOP && !(s->logprob > FLT_MAX));

        for (j = 0; j < s->n_top; j++) {
            must(s->top[j] < 96 && !(s->top_logprob[j] > FLT_MAX));
        }
    }

    free(l->sample[at]);
    l->sample[at] = NULL;

    return rc;
}


static int
fuzz_move(fuzz_lead_t *l, uint8_t argument, dsa_err_t *err)
{
    uint32_t         way, rank;
    fuzz_call_t     *call;
    dsa_page_move_t  move[1];

    way = argument & 1;
    rank = (argument >> 1) % l->hosts;

    if (rank == 0 || (fuzz_flags & 2) != 0
        || l->moves[rank][way] - l->moved[rank][way] == DSA_MOVE_CALLS)
    {
        return DSA_OK;
    }

    call = &l->call[rank][way][l->moves[rank][way] % DSA_MOVE_CALLS];
    call->lost = calloc(1, sizeof(uint32_t));
    must(call->lost != NULL);

    memset(move, 0, sizeof(move));
    move[0].page = 2;
    move[0].index = 1;
    move[0].tag = &l->digest;
    move[0].lost = call->lost;

    l->moves[rank][way]++;

    return l->b->move(l->b, (dsa_move_e) way, rank, move, 1, err);
}


static int
fuzz_moved(fuzz_lead_t *l, uint8_t argument, int wait, dsa_err_t *err)
{
    int           rc;
    uint32_t      way, rank;
    uint64_t      calls;
    fuzz_call_t  *call;

    way = argument & 1;
    rank = (argument >> 1 & 3) % l->hosts;

    if (rank == 0) {
        return DSA_OK;
    }

    if (wait) {
        fuzz_last(l, argument);
    }

    rc = l->b->moved(l->b, (dsa_move_e) way, rank, wait, &calls, err);

    if (rc != DSA_OK) {
        return rc;
    }

    must(calls >= l->moved[rank][way] && calls <= l->moves[rank][way]);

    for ( /* void */ ; l->moved[rank][way] != calls; l->moved[rank][way]++) {
        call = &l->call[rank][way][l->moved[rank][way] % DSA_MOVE_CALLS];

        must(*call->lost == 0 || (*call->lost == 1 && way == DSA_MOVE_IN));
        free(call->lost);
        call->lost = NULL;
    }

    return DSA_OK;
}


static void
fuzz_submit(fuzz_lead_t *l, uint8_t argument)
{
    uint32_t        i, host;
    dsa_tier_op_t  *op;

    host = (argument >> 1) % l->hosts;

    for (i = 0; i < OPS && l->op[i] != NULL; i++) { /* void */ }

    if (host == 0 || i == OPS) {
        return;
    }

    op = calloc(1, sizeof(dsa_tier_op_t));
    must(op != NULL);

    op->kind = (argument & 1) != 0 ? DSA_TIER_WRITE : DSA_TIER_READ;
    op->digest = &l->digest;
    op->n = 1;
    op->host = host;
    op->owner = l;

    if (l->tier.submit(l->tier.data, op) == DSA_OK) {
        l->op[i] = op;

    } else {
        free(op);
    }
}


/* Each operation is collected once. */

static void
fuzz_collect(fuzz_lead_t *l)
{
    uint32_t        i;
    dsa_tier_op_t  *op, *next;

    for (op = l->tier.collect(l->tier.data); op != NULL; op = next) {
        next = op->next;

        for (i = 0; i < OPS && l->op[i] != op; i++) { /* void */ }

        must(i < OPS && op->result >= DSA_TIER_DONE
             && op->result <= DSA_TIER_FAILED && op->begin_us <= op->end_us);

        l->op[i] = NULL;
        free(op);
    }
}


static int
fuzz_copy(fuzz_lead_t *l, dsa_err_t *err)
{
    dsa_page_copy_t  copy = { 1, 2, 0, 2 };

    return l->b->copy(l->b, &copy, 1, err);
}


static int
fuzz_call(fuzz_lead_t *l, uint8_t what, uint8_t argument, dsa_err_t *err)
{
    int  tier;

    tier = (fuzz_flags & 2) == 0;

    switch (what) {

    case 4:
        return fuzz_start(l, argument, err);

    case 5:
        return fuzz_wait(l, argument, err);

    case 6:
        return fuzz_move(l, argument, err);

    case 7:
    case 8:
        return fuzz_moved(l, argument, what == 8, err);

    case 9:
        if (tier) {
            fuzz_submit(l, argument);
        }

        return DSA_OK;

    case 10:
        if (tier) {
            l->tier.cancel(l->tier.data, l);
        }

        return DSA_OK;

    case 11:
        if (tier) {
            fuzz_collect(l);
        }

        return DSA_OK;

    case 12:
        return fuzz_copy(l, err);

    default:
        return l->b->check(l->b, err);
    }
}


static void
fuzz_calls(fuzz_lead_t *l, dsa_err_t *err)
{
    int      rc;
    uint8_t  byte;

    memset(&l->tier, 0, sizeof(l->tier));
    l->tier.on = tier_on;
    l->tier.submit = tier_submit;
    l->tier.cancel = tier_cancel;
    l->tier.collect = tier_collect;
    l->tier.close = tier_close;

    if ((fuzz_flags & 2) == 0) {
        l->memory.page_bytes = PAGE_BYTES;
        dsa_hosts_memory(l->b, &l->memory);
        dsa_hosts_tier(l->b, DSA_TIER_REDIS, &l->tier);
        must(l->memory.slabs >= l->hosts - 1);
    }

    for (rc = DSA_OK; rc == DSA_OK && l->pos != l->end; /* void */ ) {
        byte = fuzz_byte(l);

        if (!fuzz_follower(l, byte & 15, byte >> 4)) {
            rc = fuzz_call(l, byte & 15, byte >> 4, err);
            fuzz_drain(l);
        }
    }

    if (rc != DSA_OK) {
        fuzz_hosts_text(err->text);

    } else {
        err->text[0] = '\0';
    }
}


static void
fuzz_free(fuzz_lead_t *l)
{
    uint32_t  i;

    for (i = 0; i < DEPTH; i++) {
        free(l->sample[i]);
    }

    for (i = 0; i < (FOLLOWERS + 1) * DSA_MOVES * DSA_MOVE_CALLS; i++) {
        free((&l->call[0][0][0])[i].lost);
    }

    for (i = 0; i < OPS; i++) {
        free(l->op[i]);
    }

    free(l);
}


static dsa_backend_t *
fuzz_open(fuzz_lead_t *l, const dsa_hosts_leader_t *leader, dsa_err_t *err)
{
    uint8_t             byte;
    dsa_backend_t      *b;
    dsa_backend_conf_t  conf;

    memset(&conf, 0, sizeof(conf));
    conf.gpus = 1;
    conf.max_tokens = 48;
    conf.max_seqs = 3;
    conf.allowed = 96;
    conf.host_memory = (fuzz_flags & 2) == 0 ? HOST_PAGES * PAGE_BYTES : 0;

    if ((fuzz_flags & 8) == 0) {
        fuzz_ready(l);

    } else {
        while (l->pos != l->end && (*l->pos & 15) < 4) {
            byte = fuzz_byte(l);
            (void) fuzz_follower(l, byte & 15, byte >> 4);
        }

        fuzz_last(l, fuzz_flags >> 1);
    }

    b = dsa_hosts_lead(DSA_BACKEND_CPU, &conf, leader, err);

    if (b == NULL) {
        fuzz_hosts_text(err->text);
    }

    return b;
}


/* Leads as the input says; err is "" if nothing was wrong. */

static void
fuzz_lead(const uint8_t *data, size_t size, dsa_err_t *err)
{
    int                  fds[2];
    uint32_t             i;
    fuzz_lead_t         *l;
    dsa_hosts_secret_t   secret;
    dsa_hosts_leader_t   leader;

    static char *const  address[] = { "one", "two" };

    l = calloc(1, sizeof(fuzz_lead_t));
    must(l != NULL);
    memset(&secret, 0, sizeof(secret));
    memset(&leader, 0, sizeof(leader));

    l->hosts = 2 + (fuzz_flags & 1);
    l->pos = data;
    l->end = data + size;
    fuzz_connected = 0;

    for (i = 1; i < l->hosts; i++) {
        must(socketpair(AF_UNIX, SOCK_STREAM|SOCK_NONBLOCK, 0, fds) == 0);
        fuzz_to[i] = fds[0];
        l->fd[i] = fds[1];
    }

    leader.address = address;
    leader.n = l->hosts - 1;
    leader.secret = &secret;
    leader.start_ms = LIMIT_MS;
    leader.step_ms = LIMIT_MS;
    leader.tiers = (fuzz_flags & 2) == 0 ? 1U << DSA_TIER_REDIS : 0;
    leader.open = local_open;
    leader.failed = lead_nothing;
    leader.arrived = lead_nothing;
    leader.abort = lead_abort;

    l->b = fuzz_open(l, &leader, err);

    if (l->b != NULL) {
        fuzz_calls(l, err);
        l->b->close(l->b);
    }

    for (i = 1; i < l->hosts; i++) {
        (void) close(l->fd[i]);
    }

    fuzz_free(l);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dsa_err_t  err;

    dsa_log_level(DSA_LOG_ERR);

    if (size >= 1 && size <= MOST) {
        fuzz_flags = data[0];
        fuzz_lead(data + 1, size - 1, &err);
    }

    return 0;
}
