
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/hosts.h"


/*
 * dsa bench engine --conf FILE: steps of the model over several hosts, through
 * the backend of the leader.  A follower may also be a dsa-engine.
 *
 * What passes between hosts is counted on the leader with "backend cpu", whose
 * exchange calls a function of the leader, and computed with "backend cuda",
 * where NCCL exchanges.  The time in exchanges has the wait for the other hosts
 * in it, which compute meanwhile.
 */

#define DSA_STEPS_DECODE    24          /* that are measured */
#define DSA_STEPS_WARM      3
#define DSA_STEPS_ROUNDS    3           /* of a prompt */
#define DSA_STEPS_LONG      2.0         /* s: no longer prompts than that, */
#define DSA_STEPS_PREPARE   20.0        /* nor more work before a row */


static const uint32_t  dsa_steps_prompt[] = { 64, 256, 1024, 4096 };
static const uint32_t  dsa_steps_batch[] = { 1, 4, 16, 64 };
static const uint32_t  dsa_steps_context[] = { 256, 4096 };


/* What has passed between hosts through the leader's function. */

typedef struct {
    dsa_backend_hosts_t hosts;          /* of the leader */
    uint64_t            calls;
    uint64_t            bytes;          /* of the fullest host */
    double              seconds;
} dsa_traffic_t;


/* The arrays of the steps, for the most sequences. */

typedef struct {
    dsa_backend_t      *b;
    uint32_t            gpus;           /* of a host */
    uint32_t            max_seqs;       /* of a rank */
    uint32_t            pages;          /* of a sequence, at most */
    uint32_t           *token;          /* [context] the same ones for all */
    uint32_t           *page;           /* [max_seqs, pages] of any rank */
    dsa_batch_seq_t    *seq;            /* [max_seqs * ranks] */
    dsa_sample_t       *sample;         /* [2, max_seqs * ranks] */
    dsa_sampling_t      sampling;
    uint32_t            context;
    uint32_t            batch;          /* sequences of a rank now */
} dsa_steps_t;


static dsa_backend_t *dsa_steps_backend(dsa_backend_e kind,
    const dsa_backend_conf_t *conf, dsa_err_t *err);
static int dsa_traffic_exchange(void *data, const void *const *out,
    void *const *in, const uint64_t *bytes, dsa_err_t *err);
static int dsa_steps_lead(dsa_bench_hosts_t *h, dsa_backend_t *b,
    dsa_err_t *err);
static int dsa_steps_open(dsa_steps_t *s, const dsa_bench_hosts_t *h,
    dsa_backend_t *b, dsa_err_t *err);
static void dsa_steps_close(dsa_steps_t *s);
static void dsa_steps_head(const dsa_bench_hosts_t *h, const dsa_steps_t *s);
static int dsa_steps_prefill(dsa_bench_hosts_t *h, dsa_steps_t *s,
    dsa_err_t *err);
static int dsa_steps_prompts(dsa_steps_t *s, uint32_t batch, uint32_t tokens,
    dsa_err_t *err);
static int dsa_steps_fit(const dsa_steps_t *s, uint32_t batch,
    uint32_t context);
static void dsa_steps_entry(dsa_steps_t *s, uint32_t rank, uint32_t i,
    uint32_t start, uint32_t n);
static int dsa_steps_decode(dsa_bench_hosts_t *h, dsa_steps_t *s,
    dsa_err_t *err);
static int dsa_steps_run(dsa_steps_t *s, uint32_t batch, uint32_t start,
    uint32_t steps, dsa_err_t *err);
static void dsa_steps_row(const dsa_bench_hosts_t *h, const dsa_steps_t *s,
    const char *name, uint32_t tokens, uint32_t steps, double seconds);


static dsa_traffic_t  dsa_traffic;


int
dsa_bench_hosts_engine(int argc, char **argv, const char *usage)
{
    static const dsa_bench_command_t  command = {
        "engine", NULL, dsa_steps_backend, dsa_steps_lead
    };

    return dsa_bench_hosts(&command, argc, argv, usage);
}


static dsa_backend_t *
dsa_steps_backend(dsa_backend_e kind, const dsa_backend_conf_t *conf,
    dsa_err_t *err)
{
    dsa_backend_conf_t  own;

    own = *conf;
    dsa_traffic.hosts = conf->hosts;
    own.hosts.exchange = dsa_traffic_exchange;
    own.hosts.data = &dsa_traffic;

    return dsa_backend_open(kind, &own, err);
}


static int
dsa_traffic_exchange(void *data, const void *const *out, void *const *in,
    const uint64_t *bytes, dsa_err_t *err)
{
    int             rc;
    double          begin;
    dsa_traffic_t  *t = data;

    begin = dsa_bench_hosts_now();
    rc = t->hosts.exchange(t->hosts.data, out, in, bytes, err);

    t->seconds += dsa_bench_hosts_now() - begin;
    t->bytes += dsa_bench_hosts_fullest(bytes, t->hosts.n, 1);
    t->calls++;

    return rc;
}


static void
dsa_traffic_reset(void)
{
    dsa_traffic.calls = 0;
    dsa_traffic.bytes = 0;
    dsa_traffic.seconds = 0;
}


static int
dsa_steps_lead(dsa_bench_hosts_t *h, dsa_backend_t *b, dsa_err_t *err)
{
    int          rc;
    dsa_steps_t  s;

    rc = dsa_steps_open(&s, h, b, err);

    if (rc == DSA_OK) {
        dsa_steps_head(h, &s);
    }

    if (rc == DSA_OK && (h->prefill || !h->decode)) {
        rc = dsa_steps_prefill(h, &s, err);
    }

    if (rc == DSA_OK && (h->decode || !h->prefill)) {
        rc = dsa_steps_decode(h, &s, err);
    }

    dsa_steps_close(&s);

    return rc;
}


static int
dsa_steps_open(dsa_steps_t *s, const dsa_bench_hosts_t *h, dsa_backend_t *b,
    dsa_err_t *err)
{
    uint32_t  i, seqs;

    memset(s, 0, sizeof(dsa_steps_t));

    s->b = b;
    s->gpus = h->backend.gpus;
    s->max_seqs = h->backend.max_seqs;
    s->context = h->backend.context != 0
                 ? h->backend.context : b->config.max_position_embeddings;
    s->pages = (s->context + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;
    s->sampling.top_p = 1;

    seqs = s->max_seqs * b->ranks;

    s->token = calloc(s->context, sizeof(uint32_t));
    s->page = calloc((size_t) s->max_seqs * s->pages, sizeof(uint32_t));
    s->seq = calloc(seqs, sizeof(dsa_batch_seq_t));
    s->sample = calloc(2 * (size_t) seqs, sizeof(dsa_sample_t));

    if (s->token == NULL || s->page == NULL || s->seq == NULL
        || s->sample == NULL)
    {
        return dsa_error(err, "no memory for %u sequences of %u tokens", seqs,
                         s->context);
    }

    for (i = 0; i < s->context; i++) {
        s->token[i] = (uint32_t) ((uint64_t) i * 2654435761U
                                  % b->config.vocab_size);
    }

    return DSA_OK;
}


static void
dsa_steps_close(dsa_steps_t *s)
{
    free(s->token);
    free(s->page);
    free(s->seq);
    free(s->sample);
}


static void
dsa_steps_head(const dsa_bench_hosts_t *h, const dsa_steps_t *s)
{
    double  rate;

    rate = h->network != 0 ? h->network : DSA_BENCH_NETWORK * s->gpus;

    (void) printf("%u hosts with %u rank%s each.  Bytes are those that the "
                  "fullest host sends for a step, or receives if that is more. "
                  " Their bound is the time at %.3g GB/s.\n\n", h->hosts,
                  s->gpus, s->gpus > 1 ? "s" : "", rate);

    (void) printf("| step | tokens of a rank | ms | tokens/s | exchanges "
                  "| bytes | in exchanges, ms | bound, ms |\n"
                  "|---|---|---|---|---|---|---|---|\n");
}


/* A prompt on each rank. */

static int
dsa_steps_prefill(dsa_bench_hosts_t *h, dsa_steps_t *s, dsa_err_t *err)
{
    double    begin, seconds, best, exchanges;
    size_t    i;
    uint32_t  j, tokens;

    for (i = 0; i < sizeof(dsa_steps_prompt) / sizeof(dsa_steps_prompt[0]);
         i++)
    {
        tokens = h->tokens_only != 0 ? h->tokens_only : dsa_steps_prompt[i];

        if (!dsa_steps_fit(s, 1, tokens)) {
            break;
        }

        best = 0;
        exchanges = 0;

        for (j = 0; j < DSA_STEPS_ROUNDS; j++) {
            dsa_traffic_reset();
            begin = dsa_bench_hosts_now();

            if (dsa_steps_prompts(s, 1, tokens, err) != DSA_OK) {
                return DSA_ERROR;
            }

            seconds = dsa_bench_hosts_now() - begin;

            if (best == 0 || seconds < best) {
                best = seconds;
                exchanges = dsa_traffic.seconds;
            }
        }

        dsa_traffic.seconds = exchanges;
        dsa_steps_row(h, s, "prompt", tokens, 1, best);

        if (h->tokens_only != 0 || best > DSA_STEPS_LONG) {
            break;
        }
    }

    return DSA_OK;
}


/* Returns 1 if there is room for so many sequences of a rank. */

static int
dsa_steps_fit(const dsa_steps_t *s, uint32_t batch, uint32_t context)
{
    uint64_t  pages;

    pages = ((uint64_t) context + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;

    return batch <= s->max_seqs && batch <= s->b->rank_tokens
           && context <= s->context && pages * batch <= s->b->pages;
}


static void
dsa_steps_entry(dsa_steps_t *s, uint32_t rank, uint32_t i, uint32_t start,
    uint32_t n)
{
    uint32_t          j, pages, *page;
    dsa_batch_seq_t  *seq;

    pages = (start + n + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;
    page = s->page + (size_t) i * s->pages;

    for (j = 0; j < pages; j++) {
        page[j] = j * s->batch + i;
    }

    seq = &s->seq[i * s->b->ranks + rank];
    memset(seq, 0, sizeof(dsa_batch_seq_t));

    seq->tokens = s->token;
    seq->start = start;
    seq->n_input = n;
    seq->n_prompt = start + n;
    seq->input_from = DSA_INPUT_KNOWN;
    seq->rank = rank;
    seq->pages = page;
    seq->n_pages = pages;
}


/* Computes the prompts of batch sequences of each rank, one after another. */

static int
dsa_steps_prompts(dsa_steps_t *s, uint32_t batch, uint32_t tokens,
    dsa_err_t *err)
{
    uint32_t  i, at, n, rank;

    s->batch = batch;

    for (i = 0; i < batch; i++) {
        for (at = 0; at < tokens; at += n) {
            n = tokens - at < s->b->rank_tokens ? tokens - at
                                                : s->b->rank_tokens;

            for (rank = 0; rank < s->b->ranks; rank++) {
                dsa_steps_entry(s, rank, i, at, n);
            }

            if (s->b->start(s->b, &s->seq[i * s->b->ranks], s->b->ranks, err)
                != DSA_OK
                || s->b->wait(s->b, err) != DSA_OK)
            {
                return DSA_ERROR;
            }
        }
    }

    return DSA_OK;
}


static int
dsa_steps_decode(dsa_bench_hosts_t *h, dsa_steps_t *s, dsa_err_t *err)
{
    char      name[64];
    double    begin, prepare;
    size_t    i, j;
    uint32_t  batch, context;

    for (i = 0; i < sizeof(dsa_steps_context) / sizeof(dsa_steps_context[0]);
         i++)
    {
        for (j = 0; j < sizeof(dsa_steps_batch) / sizeof(dsa_steps_batch[0]);
             j++)
        {
            context = dsa_steps_context[i];
            batch = dsa_steps_batch[j];

            if (h->batch_only != 0) {
                context = h->context_only;
                batch = h->batch_only;
            }

            if (!dsa_steps_fit(s, batch, context + DSA_STEPS_WARM
                                         + DSA_STEPS_DECODE))
            {
                continue;
            }

            begin = dsa_bench_hosts_now();

            if (dsa_steps_prompts(s, batch, context, err) != DSA_OK
                || dsa_steps_run(s, batch, context, DSA_STEPS_WARM, err)
                   != DSA_OK)
            {
                return DSA_ERROR;
            }

            prepare = dsa_bench_hosts_now() - begin;
            dsa_traffic_reset();
            begin = dsa_bench_hosts_now();

            if (dsa_steps_run(s, batch, context + DSA_STEPS_WARM,
                              DSA_STEPS_DECODE, err) != DSA_OK)
            {
                return DSA_ERROR;
            }

            (void) snprintf(name, sizeof(name), "decode at %u", context);
            dsa_steps_row(h, s, name, batch, DSA_STEPS_DECODE,
                          dsa_bench_hosts_now() - begin);

            if (h->batch_only != 0) {
                return DSA_OK;
            }

            if (prepare > DSA_STEPS_PREPARE) {
                break;
            }
        }
    }

    return DSA_OK;
}


/*
 * Runs decode steps of sequences that are start tokens long: a step ahead where
 * the backend has room for it, whose inputs are then the samples before.
 */

static int
dsa_steps_run(dsa_steps_t *s, uint32_t batch, uint32_t start, uint32_t steps,
    dsa_err_t *err)
{
    uint32_t  i, n, k, rank, in_flight;

    n = batch * s->b->ranks;
    in_flight = 0;

    for (k = 0; k < steps; k++) {
        for (i = 0; i < batch; i++) {
            for (rank = 0; rank < s->b->ranks; rank++) {
                dsa_steps_entry(s, rank, i, start + k, 1);
            }
        }

        for (i = 0; i < n; i++) {
            s->seq[i].sampling = &s->sampling;
            s->seq[i].sample = &s->sample[k % 2 * n + i];
            s->seq[i].input_from = s->b->depth > 1 && k != 0
                                   ? i : DSA_INPUT_KNOWN;
        }

        if (in_flight == s->b->depth) {
            if (s->b->wait(s->b, err) != DSA_OK) {
                return DSA_ERROR;
            }

            in_flight--;
        }

        if (s->b->start(s->b, s->seq, n, err) != DSA_OK) {
            return DSA_ERROR;
        }

        in_flight++;
    }

    for ( /* void */ ; in_flight != 0; in_flight--) {
        if (s->b->wait(s->b, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static void
dsa_steps_row(const dsa_bench_hosts_t *h, const dsa_steps_t *s,
    const char *name, uint32_t tokens, uint32_t steps, double seconds)
{
    double                     rate, bytes, calls;
    uint32_t                   layers;
    const dsa_model_config_t  *config;

    config = &s->b->config;
    rate = (h->network != 0 ? h->network : DSA_BENCH_NETWORK * s->gpus) * 1e9;

    calls = (double) dsa_traffic.calls / steps;
    bytes = (double) dsa_traffic.bytes / steps;

    if (h->conf.backend == DSA_BACKEND_CUDA) {
        layers = config->num_hidden_layers - config->first_k_dense_replace;
        calls = 2 * layers;
        bytes = (double) layers * tokens * s->gpus * s->gpus * (h->hosts - 1)
                * (double) (dsa_bench_token_bytes(config)
                            + dsa_bench_sum_bytes(config));
    }

    seconds /= steps;

    (void) printf("| %s | %u | %.2f | %.0f | %.0f | %.0f | ", name, tokens,
                  seconds * 1e3, (double) tokens * s->b->ranks / seconds,
                  calls, bytes);

    if (h->conf.backend == DSA_BACKEND_CUDA) {
        (void) printf("not measured");

    } else {
        (void) printf("%.2f", dsa_traffic.seconds / steps * 1e3);
    }

    (void) printf(" | %.2f |\n", bytes / rate * 1e3);
    (void) fflush(stdout);
}
