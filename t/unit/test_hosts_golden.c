
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <sys/mman.h>
#include <sys/socket.h>

#include "engine/checkpoint/safetensors.h"
#include "engine/cpu/model.h"
#include "engine/hosts/exchange.h"
#include "t/unit/hosts.h"


/*
 * The logits of two hosts, which are two processes with a rank each, are those
 * of two ranks in one process, to the bit: for all tokens of the golden texts,
 * as chunks of a prompt and one by one.  t/golden.t compares those of one
 * process with transformers.
 */

#define TOKENS      200
#define DECODE      180         /* where tokens are computed singly */
#define CHUNK       70
#define HOSTS       2
#define TABLE       4           /* pages of a sequence */


typedef struct {
    dsa_weights_t      *weights;
    uint32_t            vocab;
    uint32_t            tokens[HOSTS][TOKENS];  /* of the sequence of a rank */
    uint32_t            pages[HOSTS][TABLE];
    float              *logits;         /* [HOSTS][TOKENS][vocab], in memory
                                           that processes share */
} fixture_t;


static void
fixture_open(fixture_t *f, const char *dir)
{
    char                    file[256];
    uint32_t                i, j;
    dsa_st_t               *st;
    dsa_err_t               err;
    const uint32_t         *text;
    const dsa_st_tensor_t  *t;

    memset(f, 0, sizeof(fixture_t));
    f->weights = dsa_weights_open(dir, &err);
    must(f->weights != NULL ? DSA_OK : DSA_ERROR, &err);
    f->vocab = f->weights->config.vocab_size;

    (void) snprintf(file, sizeof(file), "%s/golden.safetensors", dir);
    st = dsa_st_open(file, &err);
    must(st != NULL ? DSA_OK : DSA_ERROR, &err);

    t = dsa_st_find(st, dsa_strz("tokens"));
    assert_non_null(t);
    assert_true(t->shape[0] >= TOKENS);
    text = t->data;

    /* the second sequence has the text backwards */

    for (i = 0; i < TOKENS; i++) {
        memcpy(&f->tokens[0][i], &text[i], sizeof(uint32_t));
        memcpy(&f->tokens[1][i], &text[TOKENS - 1 - i], sizeof(uint32_t));
    }

    dsa_st_close(st);

    for (i = 0; i < HOSTS; i++) {
        for (j = 0; j < TABLE; j++) {
            f->pages[i][j] = (3 * j + i) % (2 * TABLE - 1);
        }
    }

    f->logits = mmap(NULL, HOSTS * TOKENS * f->vocab * sizeof(float),
                     PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    assert_true(f->logits != MAP_FAILED);
}


static void
fixture_close(fixture_t *f)
{
    (void) munmap(f->logits, HOSTS * TOKENS * f->vocab * sizeof(float));
    dsa_weights_close(f->weights);
}


/* A step of both sequences; the logits of the ranks of this host, in order. */

static int
step(fixture_t *f, dsa_model_t *m, uint32_t first, uint32_t ranks,
    uint32_t start, uint32_t n, float *room, dsa_err_t *err)
{
    uint32_t    i;
    dsa_rows_t  rows[HOSTS];

    memset(rows, 0, sizeof(rows));

    for (i = 0; i < HOSTS; i++) {
        rows[i].tokens = f->tokens[i] + start;
        rows[i].start = start;
        rows[i].n = n;
        rows[i].n_logits = n;
        rows[i].rank = i;
        rows[i].pages = f->pages[i];
    }

    if (dsa_model_forward(m, rows, HOSTS, room, err) != DSA_OK) {
        return DSA_ERROR;
    }

    for (i = 0; i < ranks; i++) {
        memcpy(f->logits + ((first + i) * TOKENS + start) * f->vocab,
               room + i * n * f->vocab, n * f->vocab * sizeof(float));
    }

    return DSA_OK;
}


/*
 * Computes all tokens on the ranks of one host, or of both; returns DSA_ERROR
 * with err, because a child process must not report to cmocka.
 */

static int
compute(fixture_t *f, dsa_precision_e precision,
    const dsa_backend_hosts_t *hosts, dsa_err_t *err)
{
    int                rc;
    float             *room;
    uint32_t           at, n, ranks;
    dsa_model_t       *m;
    dsa_model_conf_t   conf;

    ranks = hosts->n == HOSTS ? 1 : HOSTS;

    memset(&conf, 0, sizeof(conf));
    conf.precision = precision;
    conf.kv_memory = dsa_model_kv_memory(&f->weights->config, precision, 0,
                                         2 * TABLE * DSA_PAGE_TOKENS);
    conf.max_tokens = HOSTS * CHUNK;
    conf.threads = 1;
    conf.gpus = ranks;
    conf.hosts = *hosts;

    m = dsa_model_open(f->weights, &conf, err);
    room = malloc(HOSTS * CHUNK * f->vocab * sizeof(float));

    if (m == NULL || room == NULL) {
        return DSA_ERROR;
    }

    rc = DSA_OK;

    for (at = 0; at < TOKENS && rc == DSA_OK; at += n) {
        n = at < DECODE ? CHUNK : 1;
        n = at < DECODE && at + n > DECODE ? DECODE - at : n;
        rc = step(f, m, hosts->host, ranks, at, n, room, err);
    }

    free(room);
    dsa_model_close(m);

    return rc;
}


/* The part of a host, over a connection to the other one. */

static int
host(fixture_t *f, dsa_precision_e precision, uint32_t number, int fd,
    dsa_err_t *err)
{
    int                    rc;
    dsa_hosts_wire_t       w[HOSTS];
    dsa_backend_hosts_t    hosts;
    dsa_hosts_exchange_t   x;

    memset(w, 0, sizeof(w));
    memset(&x, 0, sizeof(x));
    memset(&hosts, 0, sizeof(hosts));

    w[1 - number].fd = fd;
    dsa_hosts_wire_limit(&w[1 - number], HOSTS_STEP_MS);
    (void) snprintf(w[1 - number].name, DSA_HOSTS_NAME, "host %u", 1 - number);

    x.n = HOSTS;
    x.host = number;
    x.wire = w;

    hosts.n = HOSTS;
    hosts.host = number;
    hosts.exchange = dsa_hosts_exchange;
    hosts.data = &x;

    rc = compute(f, precision, &hosts, err);
    dsa_hosts_exchange_close(&x);

    return rc;
}


static void
two_hosts(fixture_t *f, dsa_precision_e precision)
{
    int         fds[2];
    dsa_err_t   err;
    follower_t  other;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM|SOCK_NONBLOCK, 0, fds),
                     0);

    other.pid = fork();
    assert_true(other.pid != -1);

    if (other.pid == 0) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) close(fds[0]);
        _exit(host(f, precision, 1, fds[1], &err) == DSA_OK ? 0 : 1);
    }

    (void) close(fds[1]);
    must(host(f, precision, 0, fds[0], &err), &err);
    assert_int_equal(follower_ended(&other), 0);
    (void) close(fds[0]);
}


static void
same(const char *dir, dsa_precision_e precision)
{
    float                *want;
    uint32_t              i;
    uint64_t              row, size;
    dsa_err_t             err;
    fixture_t             f;
    dsa_backend_hosts_t   one;

    fixture_open(&f, dir);
    memset(&one, 0, sizeof(one));
    row = f.vocab * sizeof(float);
    size = HOSTS * TOKENS * row;

    must(compute(&f, precision, &one, &err), &err);

    want = malloc(size);
    assert_non_null(want);
    memcpy(want, f.logits, size);
    memset(f.logits, 0, size);

    two_hosts(&f, precision);

    for (i = 0; i < HOSTS * TOKENS; i++) {
        if (memcmp(want + (uint64_t) i * f.vocab,
                   f.logits + (uint64_t) i * f.vocab, row) != 0)
        {
            fail_msg("%s, precision %d: token %u of host %u has other bits",
                     dir, (int) precision, i % TOKENS, i / TOKENS);
        }
    }

    /* not all of them are zero, and the ranks have different texts */

    assert_memory_not_equal(want, want + TOKENS * f.vocab, row);

    free(want);
    fixture_close(&f);
}


static void
test_logits(void **state)
{
    size_t  i;

    static const char  *models[] = {
        GOLDEN "a-fp8", GOLDEN "b-bf16", GOLDEN "glm-5", GOLDEN "glm-5.2"
    };

    for (i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        same(models[i], DSA_EXACT);
        same(models[i], DSA_SERVED);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_logits)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
