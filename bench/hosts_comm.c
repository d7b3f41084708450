
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/hosts.h"


/*
 * dsa bench comm --conf FILE: the exchange of a layer with experts between
 * hosts, by size.  The backend has the dimensions of config.json and no
 * weights: a step exchanges as many tokens of each rank as its entries have,
 * several times, and then their sums.
 *
 * With "backend cpu" the exchange is that of engine/cpu/hosts.c in number and
 * bytes: a call each for the rows, the experts and their weights, and one for
 * the sums of each rank, all by engine/hosts/exchange.c.  With "backend cuda"
 * it is that of engine/cuda/nccl.c.
 */

#define DSA_COMM_SAMPLES    15
#define DSA_COMM_MOST       (256 << 20) /* bytes of all samples, if less */
#define DSA_COMM_LEAST      3           /* samples */
#define DSA_COMM_SMALL      4           /* bytes of the smallest message, */
#define DSA_COMM_LARGE      (16 << 20)  /* and of the largest one */
#define DSA_COMM_LINKS      8           /* times that each is sent */
#define DSA_COMM_TOKENS     4096        /* most of a rank */


static const uint32_t  dsa_comm_tokens[] = { 1, 8, 64, 512, 4096 };


/* The backend of this host.  A program has one. */

typedef struct {
    dsa_backend_e       kind;
    dsa_backend_conf_t  conf;
    dsa_model_config_t  config;
    char               *out;            /* what is sent to each host */
    char               *in;             /* [hosts] parts of size bytes */
    uint64_t            size;
    uint32_t            steps;
    double              small;          /* seconds of the smallest message */
    double              rate;           /* bytes/s of messages, at most, */
    uint64_t            fast;           /* which is with so many bytes */
    double              tokens;         /* seconds of the step's exchanges */
    double              sums;
#if (DSA_CUDA)
    dsa_bench_gpus_t   *gpus;
#endif
} dsa_comm_hosts_t;


static void dsa_comm_plan(dsa_backend_conf_t *conf);
static dsa_backend_t *dsa_comm_open(dsa_backend_e kind,
    const dsa_backend_conf_t *conf, dsa_err_t *err);
static int dsa_comm_open_memory(dsa_comm_hosts_t *c, dsa_err_t *err);
static int dsa_comm_start(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n,
    dsa_err_t *err);
static int dsa_comm_links(dsa_comm_hosts_t *c, dsa_err_t *err);
static int dsa_comm_link(dsa_comm_hosts_t *c, uint64_t size, double *seconds,
    dsa_err_t *err);
static int dsa_comm_wait(dsa_backend_t *b, dsa_err_t *err);
static int dsa_comm_copy(dsa_backend_t *b, const dsa_page_copy_t *copy,
    uint32_t n, dsa_err_t *err);
static void dsa_comm_close(dsa_backend_t *b);
static int dsa_comm_time(dsa_comm_hosts_t *c, uint32_t tokens, int sums,
    double *seconds, dsa_err_t *err);
static int dsa_comm_once(dsa_comm_hosts_t *c, uint32_t tokens, int sums,
    dsa_err_t *err);
static int dsa_comm_sizes(const dsa_comm_hosts_t *c, uint32_t tokens, int sums,
    uint64_t *size);
static int dsa_comm_exchange(dsa_comm_hosts_t *c, uint64_t size,
    dsa_err_t *err);
static void dsa_comm_bytes(const dsa_comm_hosts_t *c, uint64_t size,
    uint64_t *bytes);
static uint64_t dsa_comm_full(const dsa_comm_hosts_t *c, uint64_t size);
static int dsa_comm_compare(const void *a, const void *b);
static int dsa_comm_lead(dsa_bench_hosts_t *h, dsa_backend_t *b,
    dsa_err_t *err);
static int dsa_comm_step(dsa_backend_t *b, uint32_t tokens, dsa_err_t *err);
static void dsa_comm_head(const dsa_bench_hosts_t *h, double rate);
static void dsa_comm_cells(const dsa_bench_hosts_t *h, uint32_t tokens,
    int sums, double seconds, double rate);


static dsa_comm_hosts_t  dsa_comm;


int
dsa_bench_hosts_comm(int argc, char **argv, const char *usage)
{
    static const dsa_bench_command_t  command = {
        "comm", dsa_comm_plan, dsa_comm_open, dsa_comm_lead
    };

    return dsa_bench_hosts(&command, argc, argv, usage);
}


/* A sequence on each rank, as long as the largest exchange. */

static void
dsa_comm_plan(dsa_backend_conf_t *conf)
{
    uint32_t  ranks, most;

    ranks = conf->gpus * conf->hosts.n;
    most = conf->max_tokens / ranks;

    if (most < 1) {
        most = 1;
    }

    if (most > DSA_COMM_TOKENS) {
        most = DSA_COMM_TOKENS;
    }

    conf->max_tokens = most * ranks;
    conf->max_seqs = 1;
    conf->context = most;
}


static dsa_backend_t *
dsa_comm_open(dsa_backend_e kind, const dsa_backend_conf_t *conf,
    dsa_err_t *err)
{
    dsa_backend_t     *b;
    dsa_comm_hosts_t  *c;

    c = &dsa_comm;
    c->kind = kind;
    c->conf = *conf;

    if (dsa_model_config_read(&c->config, conf->model, err) != DSA_OK
        || dsa_comm_open_memory(c, err) != DSA_OK)
    {
        return NULL;
    }

    b = calloc(1, sizeof(dsa_backend_t));

    if (b == NULL) {
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    /* hosts with other dimensions, or an engine, have other "weights" */

    (void) snprintf(b->fingerprint, sizeof(b->fingerprint), "comm_%u_%u",
                    c->config.hidden_size, c->config.num_experts_per_tok);

    b->data = c;
    b->config = c->config;
    b->ranks = conf->gpus * conf->hosts.n;
    b->pages = (conf->context + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;
    b->page_bytes = 1;
    b->rank_tokens = conf->max_tokens / b->ranks;
    b->depth = 1;
    b->max_outputs = 1;
    b->start = dsa_comm_start;
    b->wait = dsa_comm_wait;
    b->copy = dsa_comm_copy;
    b->close = dsa_comm_close;

    return b;
}


static int
dsa_comm_open_memory(dsa_comm_hosts_t *c, dsa_err_t *err)
{
    if (c->kind == DSA_BACKEND_CPU) {
        (void) dsa_comm_sizes(c, c->conf.context, 1, &c->size);

        if (c->size < DSA_COMM_LARGE) {
            c->size = DSA_COMM_LARGE;
        }

        c->out = calloc(1, c->size);
        c->in = calloc(c->conf.hosts.n, c->size);

        return c->out != NULL && c->in != NULL ? DSA_OK
               : dsa_error(err, "no memory for %u times %llu bytes",
                           c->conf.hosts.n + 1,
                           (unsigned long long) c->size);
    }

#if (DSA_CUDA)
    if (c->kind == DSA_BACKEND_CUDA) {
        c->gpus = dsa_bench_gpus_open(&c->conf, &c->config, err);

        return c->gpus != NULL ? DSA_OK : DSA_ERROR;
    }
#endif

    return dsa_error(err, "this backend exchanges nothing; expected "
                     "\"backend cpu\" or, in dsa-cuda, \"backend cuda\"");
}


static void
dsa_comm_close(dsa_backend_t *b)
{
    dsa_comm_hosts_t  *c = b->data;

#if (DSA_CUDA)
    dsa_bench_gpus_close(c->gpus);
#endif

    free(c->out);
    free(c->in);
    free(b);
}


/*
 * The same number of exchanges on all hosts, because none of them depends on
 * the time that another one has taken.
 */

static int
dsa_comm_start(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n,
    dsa_err_t *err)
{
    dsa_comm_hosts_t  *c = b->data;

    if (c->kind == DSA_BACKEND_CPU && c->steps++ == 0
        && dsa_comm_links(c, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_comm_time(c, seq[0].n_input, 0, &c->tokens, err) == DSA_OK
           ? dsa_comm_time(c, seq[0].n_input, 1, &c->sums, err) : DSA_ERROR;
}


/* The least times of messages, the smallest and four times as large ones. */

static int
dsa_comm_links(dsa_comm_hosts_t *c, dsa_err_t *err)
{
    double    rate, seconds;
    uint64_t  size;

    for (size = DSA_COMM_SMALL; size <= DSA_COMM_LARGE; size *= 4) {
        if (dsa_comm_link(c, size, &seconds, err) != DSA_OK) {
            return DSA_ERROR;
        }

        rate = (double) dsa_comm_full(c, size) / seconds;

        if (rate > c->rate) {
            c->rate = rate;
            c->fast = size;
        }

        c->small = size == DSA_COMM_SMALL ? seconds : c->small;
    }

    return DSA_OK;
}


/* The least time of a message of one size to and from each other host. */

static int
dsa_comm_link(dsa_comm_hosts_t *c, uint64_t size, double *seconds,
    dsa_err_t *err)
{
    double    begin, one;
    uint32_t  i;

    *seconds = 0;

    for (i = 0; i < DSA_COMM_LINKS; i++) {
        begin = dsa_bench_hosts_now();

        if (dsa_comm_exchange(c, size, err) != DSA_OK) {
            return DSA_ERROR;
        }

        one = dsa_bench_hosts_now() - begin;
        *seconds = i == 0 || one < *seconds ? one : *seconds;
    }

    return DSA_OK;
}


static int
dsa_comm_wait(dsa_backend_t *b, dsa_err_t *err)
{
    return DSA_OK;
}


static int
dsa_comm_copy(dsa_backend_t *b, const dsa_page_copy_t *copy, uint32_t n,
    dsa_err_t *err)
{
    return dsa_error(err, "there are no pages to copy");
}


/* Sets *seconds to the median of one exchange; the first one is left out. */

static int
dsa_comm_time(dsa_comm_hosts_t *c, uint32_t tokens, int sums, double *seconds,
    dsa_err_t *err)
{
    int       calls;
    double    begin, sample[DSA_COMM_SAMPLES];
    uint32_t  i, n;
    uint64_t  size;

    calls = dsa_comm_sizes(c, tokens, sums, &size);
    n = (uint32_t) (DSA_COMM_MOST / (size * (uint64_t) calls));
    n = n < DSA_COMM_SAMPLES ? n : DSA_COMM_SAMPLES;
    n = n > DSA_COMM_LEAST ? n : DSA_COMM_LEAST;

    if (dsa_comm_once(c, tokens, sums, err) != DSA_OK) {
        return DSA_ERROR;
    }

    for (i = 0; i < n; i++) {
        begin = dsa_bench_hosts_now();

        if (dsa_comm_once(c, tokens, sums, err) != DSA_OK) {
            return DSA_ERROR;
        }

        sample[i] = dsa_bench_hosts_now() - begin;
    }

    qsort(sample, n, sizeof(double), dsa_comm_compare);
    *seconds = sample[n / 2];

    return DSA_OK;
}


static int
dsa_comm_compare(const void *a, const void *b)
{
    double  x, y;

    x = *(const double *) a;
    y = *(const double *) b;

    return (x > y) - (x < y);
}


static int
dsa_comm_once(dsa_comm_hosts_t *c, uint32_t tokens, int sums, dsa_err_t *err)
{
    int       i, calls;
    uint64_t  size, k;

#if (DSA_CUDA)
    if (c->kind == DSA_BACKEND_CUDA) {
        return dsa_bench_gpus_exchange(c->gpus, tokens, sums, err);
    }
#endif

    calls = dsa_comm_sizes(c, tokens, sums, &size);
    k = (uint64_t) tokens * c->conf.gpus * c->config.num_experts_per_tok
        * sizeof(float);

    for (i = 0; i < calls; i++) {
        if (dsa_comm_exchange(c, sums || i == 0 ? size : k, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/*
 * Returns the calls of an exchange, and sets *size to the bytes of the first
 * one to another host: the rows of tokens, behind which come their experts and
 * weights, or sums of one rank, behind which come those of the others.
 */

static int
dsa_comm_sizes(const dsa_comm_hosts_t *c, uint32_t tokens, int sums,
    uint64_t *size)
{
    *size = (uint64_t) tokens * c->conf.gpus * c->config.hidden_size
            * sizeof(float);

    return sums ? (int) c->conf.gpus : 3;
}


/* Sends so many bytes to each other host, and receives as many. */

static int
dsa_comm_exchange(dsa_comm_hosts_t *c, uint64_t size, dsa_err_t *err)
{
    void        *in[DSA_MAX_GPUS];
    uint32_t     h;
    uint64_t     bytes[DSA_MAX_GPUS * DSA_MAX_GPUS];
    const void  *out[DSA_MAX_GPUS];

    for (h = 0; h < c->conf.hosts.n; h++) {
        out[h] = c->out;
        in[h] = c->in + h * c->size;
    }

    dsa_comm_bytes(c, size, bytes);

    return c->conf.hosts.exchange(c->conf.hosts.data, out, in, bytes, err);
}


/* Sets bytes [hosts, hosts] to size from each host to each other one. */

static void
dsa_comm_bytes(const dsa_comm_hosts_t *c, uint64_t size, uint64_t *bytes)
{
    uint32_t  f, t, n;

    n = c->conf.hosts.n;

    for (f = 0; f < n; f++) {
        for (t = 0; t < n; t++) {
            bytes[f * n + t] = f != t ? size : 0;
        }
    }
}


static uint64_t
dsa_comm_full(const dsa_comm_hosts_t *c, uint64_t size)
{
    uint64_t  bytes[DSA_MAX_GPUS * DSA_MAX_GPUS];

    dsa_comm_bytes(c, size, bytes);

    return dsa_bench_hosts_fullest(bytes, c->conf.hosts.n,
                                   c->kind == DSA_BACKEND_CPU);
}


static int
dsa_comm_lead(dsa_bench_hosts_t *h, dsa_backend_t *b, dsa_err_t *err)
{
    size_t    i;
    double    rate;
    uint32_t  tokens;

    rate = 0;

    for (i = 0; i < sizeof(dsa_comm_tokens) / sizeof(dsa_comm_tokens[0]); i++)
    {
        tokens = dsa_comm_tokens[i];

        if (tokens > b->rank_tokens) {
            break;
        }

        if (dsa_comm_step(b, tokens, err) != DSA_OK) {
            return DSA_ERROR;
        }

        if (i == 0) {
            rate = h->network != 0 ? h->network * 1e9
                   : dsa_comm.kind == DSA_BACKEND_CPU ? dsa_comm.rate
                   : DSA_BENCH_NETWORK * 1e9 * h->backend.gpus;
            dsa_comm_head(h, rate);
        }

        (void) printf("| %u", tokens);
        dsa_comm_cells(h, tokens, 0, dsa_comm.tokens, rate);
        dsa_comm_cells(h, tokens, 1, dsa_comm.sums, rate);
        (void) printf(" |\n");
        (void) fflush(stdout);
    }

    return DSA_OK;
}


/* A step with so many tokens of each rank. */

static int
dsa_comm_step(dsa_backend_t *b, uint32_t tokens, dsa_err_t *err)
{
    uint32_t         i, n;
    dsa_batch_seq_t  seq[DSA_MAX_GPUS];

    static uint32_t  ids[DSA_COMM_TOKENS];
    static uint32_t  pages[DSA_COMM_TOKENS / DSA_PAGE_TOKENS];

    n = (tokens + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;

    for (i = 0; i < n; i++) {
        pages[i] = i;
    }

    memset(seq, 0, sizeof(seq));

    for (i = 0; i < b->ranks; i++) {
        seq[i].tokens = ids;
        seq[i].n_input = tokens;
        seq[i].n_prompt = tokens;
        seq[i].input_from = DSA_INPUT_KNOWN;
        seq[i].rank = i;
        seq[i].pages = pages;
        seq[i].n_pages = n;
    }

    return b->start(b, seq, b->ranks, err) == DSA_OK ? b->wait(b, err)
                                                     : DSA_ERROR;
}


static void
dsa_comm_head(const dsa_bench_hosts_t *h, double rate)
{
    (void) printf("The exchange of a layer with experts between %u hosts with "
                  "%u rank%s each, %u columns.\n", h->hosts, h->backend.gpus,
                  h->backend.gpus > 1 ? "s" : "", dsa_comm.config.hidden_size);

    if (dsa_comm.kind == DSA_BACKEND_CPU) {
        (void) printf("A message of %d bytes to each other host takes %.1f us "
                      "at least.  The highest rate was %.3g GB/s, with "
                      "messages of %llu bytes.\n", DSA_COMM_SMALL,
                      dsa_comm.small * 1e6, dsa_comm.rate * 1e-9,
                      (unsigned long long) dsa_comm.fast);
    }

    (void) printf("Bytes are those that the fullest host sends, or receives "
                  "if that is more.  The bound is their time at %.3g GB/s.\n\n",
                  rate * 1e-9);

    (void) printf("| tokens of a rank | bytes of tokens | us | bound, us "
                  "| bytes of sums | us | bound, us |\n"
                  "|---|---|---|---|---|---|---|\n");
}


static void
dsa_comm_cells(const dsa_bench_hosts_t *h, uint32_t tokens, int sums,
    double seconds, double rate)
{
    int                        calls;
    uint64_t                   size, full;
    const dsa_model_config_t  *config;

    config = &dsa_comm.config;

    if (dsa_comm.kind == DSA_BACKEND_CPU) {
        calls = dsa_comm_sizes(&dsa_comm, tokens, sums, &size);
        size = sums ? size * (uint64_t) calls
               : size + 2 * (uint64_t) tokens * h->backend.gpus
                        * config->num_experts_per_tok * sizeof(float);

    } else {

        /* each GPU sends its own to each GPU of another host */

        size = (uint64_t) tokens * h->backend.gpus * h->backend.gpus
               * (sums ? dsa_bench_sum_bytes(config)
                       : dsa_bench_token_bytes(config));
    }

    full = dsa_comm_full(&dsa_comm, size);

    (void) printf(" | %llu | %.1f | %.1f", (unsigned long long) full,
                  seconds * 1e6, (double) full / rate * 1e6);
}
