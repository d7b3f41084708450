
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "bench/bench.h"
#include "bench/engine.h"
#include "bench/node.h"


/* Which tables are made: bits; 0: all. */

#define DSA_NODE_DECODE     1
#define DSA_NODE_PREFILL    2
#define DSA_NODE_COST       4
#define DSA_NODE_OPS        8
#define DSA_NODE_EXCHANGE   16          /* a file for --exchange; alone */
#define DSA_NODE_HOSTS      32          /* without a GPU; alone */
#define DSA_NODE_CHATS      64          /* the same */


#define DSA_NODE_MODELS     4


typedef struct {
    const char             *model[DSA_NODE_MODELS];
    uint32_t                models;
    dsa_kv_e                kv;
    const char             *exchange;   /* file; NULL: left out */
    const char             *csv;        /* file; NULL: none */
    uint32_t                gpus;
    double                  zipf;
    dsa_attention_e         attention;
    const char             *n_hosts;
    const char             *network;
    dsa_node_hosts_t        hosts;      /* of these two, and gpus */
    dsa_node_chats_t        chats;
    unsigned                tables;
} dsa_node_options_t;


static int dsa_node_options(dsa_node_options_t *o, int argc, char **argv);
static int dsa_node_options_fit(dsa_node_options_t *o);
static int dsa_node_hosts_options(dsa_node_options_t *o);
static int dsa_node_chats_options(dsa_node_options_t *o);
static int dsa_node_alone(const dsa_node_options_t *o, dsa_err_t *err);
static int dsa_node_models(const dsa_node_options_t *o, dsa_err_t *err);
static int dsa_node_tables(const dsa_node_options_t *o, dsa_node_t *n,
    const dsa_node_exchange_t *x, FILE *csv, dsa_err_t *err);
static int dsa_node_ops_tables(dsa_node_t *n, dsa_err_t *err);


int
dsa_bench_node(int argc, char **argv, const char *usage)
{
    int                     rc;
    dsa_err_t               err;
    dsa_node_options_t      o;
    struct cudaDeviceProp   prop;

    rc = dsa_node_options(&o, argc, argv);

    if (rc != DSA_OK) {
        (void) fputs(rc == DSA_AGAIN ? "" : usage, stderr);
        return 2;
    }

    if (o.tables & (DSA_NODE_EXCHANGE | DSA_NODE_HOSTS | DSA_NODE_CHATS)) {
        rc = dsa_node_alone(&o, &err);

        if (rc != DSA_OK) {
            (void) fprintf(stderr, "dsa bench: %s\n", err.text);
        }

        return rc == DSA_OK && fflush(stdout) == 0 ? 0 : 1;
    }

    rc = cudaGetDeviceProperties(&prop, 0);

    if (rc != 0) {
        (void) fprintf(stderr, "dsa bench: %s\n", dsa_cuda_error(rc));
        return 1;
    }

    (void) printf("%s.  One of %u GPUs, random weights, the fullest GPU's "
                  "work with random routing", prop.name, o.gpus);

    if (o.zipf != 0) {
        (void) printf(" like Zipf's with exponent %g", o.zipf);
    }

    (void) printf(".  Bounds: HBM %.0f GB/s, FP8 %.0f and BF16 %.0f TFLOPS, "
                  "link %.0f GB/s, as measured on two H200.\n",
                  DSA_BENCH_HBM, DSA_BENCH_FP8, DSA_BENCH_BF16,
                  DSA_BENCH_LINK);

    rc = dsa_node_models(&o, &err);

    if (rc != DSA_OK) {
        (void) fprintf(stderr, "dsa bench: %s\n", err.text);
    }

    return rc == DSA_OK && fflush(stdout) == 0 ? 0 : 1;
}


/* The tables that are made alone. */

static int
dsa_node_alone(const dsa_node_options_t *o, dsa_err_t *err)
{
    switch (o->tables) {

    case DSA_NODE_EXCHANGE:
        return dsa_node_exchange_measure(o->model[0], o->gpus, err);

    case DSA_NODE_HOSTS:
        return dsa_node_hosts_table(o->model[0], &o->hosts, err);

    default:
        return dsa_node_chats_table(o->model[0], &o->chats, err);
    }
}


static int
dsa_node_table_named(unsigned *tables, const char *name)
{
    size_t  i;

    static const char *const  names[] = { "decode", "prefill", "cost",
                                          "ops", "exchange", "hosts",
                                          "chats" };

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            *tables |= 1U << i;
            return DSA_OK;
        }
    }

    return DSA_ERROR;
}


/* As dsa_node_options(), for one option. */

static int
dsa_node_option(dsa_node_options_t *o, int c, const char *value)
{
    char  *end;

    switch (c) {

    case 'm':
        if (o->models == DSA_NODE_MODELS) {
            return DSA_ERROR;
        }

        o->model[o->models++] = value;
        break;

    case 'k':
        if (dsa_kv_named(&o->kv, value) != DSA_OK) {
            return DSA_ERROR;
        }

        break;

    case 'g':
        o->gpus = (uint32_t) strtoul(value, &end, 10);

        if (*end != '\0' || o->gpus == 0 || o->gpus > DSA_MAX_GPUS) {
            return DSA_ERROR;
        }

        break;

    case 'a':
        if (strcmp(value, "tensor") == 0) {
            o->attention = DSA_ATTENTION_TENSOR;

        } else if (strcmp(value, "data") != 0) {
            return DSA_ERROR;
        }

        break;

    case 'x':
        o->exchange = value;
        break;

    case 'o':
        if (dsa_node_table_named(&o->tables, value) != DSA_OK) {
            return DSA_ERROR;
        }

        break;

    case 'h':
        o->n_hosts = value;
        break;

    case 'n':
        o->network = value;
        break;

    case 'c':
        o->csv = value;
        break;

    case 's':
        o->chats.steps = value;
        break;

    case 'd':
        if (dsa_bench_shares(o->chats.right, &o->chats.drafts, value)
            != DSA_OK)
        {
            return DSA_ERROR;
        }

        break;

    case 'z':
        if (dsa_bench_zipf(&o->zipf, value) != DSA_OK) {
            return DSA_ERROR;
        }

        break;

    default:
        return DSA_AGAIN;
    }

    return DSA_OK;
}


/* DSA_AGAIN: an option was wrong, and the error is on stderr. */

static int
dsa_node_options(dsa_node_options_t *o, int argc, char **argv)
{
    int  c, rc;

    static const struct option  options[] = {
        { "model", required_argument, NULL, 'm' },
        { "kv", required_argument, NULL, 'k' },
        { "gpus", required_argument, NULL, 'g' },
        { "attention", required_argument, NULL, 'a' },
        { "exchange", required_argument, NULL, 'x' },
        { "only", required_argument, NULL, 'o' },
        { "hosts", required_argument, NULL, 'h' },
        { "network", required_argument, NULL, 'n' },
        { "csv", required_argument, NULL, 'c' },
        { "zipf", required_argument, NULL, 'z' },
        { "steps", required_argument, NULL, 's' },
        { "drafts", required_argument, NULL, 'd' },
        { NULL, 0, NULL, 0 }
    };

    memset(o, 0, sizeof(dsa_node_options_t));
    optind = 1;
    o->gpus = DSA_NODE_GPUS;
    o->n_hosts = "2";
    o->network = "50";                 /* 400 Gb/s */

    for ( ;; ) {
        c = dsa_option("dsa bench node", argc, argv, "", options);

        if (c == -1) {
            break;
        }

        rc = dsa_node_option(o, c, optarg);

        if (rc != DSA_OK) {
            return rc;
        }
    }

    if (o->models == 0 || optind != argc) {
        return DSA_ERROR;
    }

    return dsa_node_options_fit(o);
}


/* Checks that options fit together, and sets those that were left out. */

static int
dsa_node_options_fit(dsa_node_options_t *o)
{
    if (((o->tables & DSA_NODE_EXCHANGE) != 0
         && (o->tables != DSA_NODE_EXCHANGE || o->gpus == 1 || o->models > 1))
        || dsa_node_hosts_options(o) != DSA_OK
        || dsa_node_chats_options(o) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (o->tables == 0) {
        o->tables = DSA_NODE_DECODE | DSA_NODE_PREFILL | DSA_NODE_COST
                    | DSA_NODE_OPS;
    }

    /* prefill is projected with "data": it shares out the tokens */

    if (o->attention == DSA_ATTENTION_TENSOR
        && (o->tables & (DSA_NODE_EXCHANGE | DSA_NODE_CHATS)) == 0)
    {
        o->tables &= DSA_NODE_DECODE | DSA_NODE_OPS;
    }

    return DSA_OK;
}


/* Sets o->hosts, whose table is made alone. */

static int
dsa_node_hosts_options(dsa_node_options_t *o)
{
    char  *end;

    o->hosts.gpus = o->gpus;
    o->hosts.n = (uint32_t) strtoul(o->n_hosts, &end, 10);

    if (*end != '\0' || o->hosts.n < 2 || o->hosts.n > DSA_MAX_GPUS) {
        return DSA_ERROR;
    }

    o->hosts.network = strtod(o->network, &end);

    if (*end != '\0' || !(o->hosts.network > 0)) {
        return DSA_ERROR;
    }

    return (o->tables & DSA_NODE_HOSTS) != 0
           && (o->tables != DSA_NODE_HOSTS || o->models > 1
               || o->attention == DSA_ATTENTION_TENSOR
               || o->hosts.n * o->gpus > DSA_MAX_GPUS)
           ? DSA_ERROR : DSA_OK;
}


/* Sets o->chats, whose table is made alone. */

static int
dsa_node_chats_options(dsa_node_options_t *o)
{
    o->chats.gpus = o->gpus;
    o->chats.attention = o->attention;
    o->chats.kv = o->kv;

    if ((o->tables & DSA_NODE_CHATS) == 0) {
        return o->chats.steps == NULL && o->chats.drafts == 0 ? DSA_OK
                                                              : DSA_ERROR;
    }

    return o->tables == DSA_NODE_CHATS && o->models == 1 ? DSA_OK
                                                         : DSA_ERROR;
}


/* All tables of one model after another. */

static int
dsa_node_models(const dsa_node_options_t *o, dsa_err_t *err)
{
    int                   rc;
    FILE                 *csv;
    uint32_t              i;
    dsa_node_t            n;
    dsa_node_exchange_t   x, *exchange;

    csv = NULL;
    exchange = NULL;

    if (o->exchange != NULL) {
        exchange = &x;

        if (dsa_node_exchange_read(&x, o->exchange, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    if (o->csv != NULL) {
        csv = fopen(o->csv, "w");

        if (csv == NULL) {
            return dsa_error(err, "%s: %s", o->csv, strerror(errno));
        }

        (void) fputs("model,kv,work,attention,tokens,position,ms,exchange_ms,"
                     "bound_ms,tokens_s,usd_per_million\n", csv);
    }

    rc = DSA_OK;

    for (i = 0; i < o->models && rc == DSA_OK; i++) {
        rc = dsa_node_open(&n, o->model[i], o->gpus, o->attention, o->kv, err);

        if (rc == DSA_OK) {
            n.zipf = o->zipf;
            rc = dsa_node_tables(o, &n, exchange, csv, err);
            dsa_node_close(&n);
        }
    }

    if (csv != NULL && fclose(csv) != 0 && rc == DSA_OK) {
        rc = dsa_error(err, "%s: %s", o->csv, strerror(errno));
    }

    return rc;
}


static int
dsa_node_tables(const dsa_node_options_t *o, dsa_node_t *n,
    const dsa_node_exchange_t *x, FILE *csv, dsa_err_t *err)
{
    int  rc;

    (void) printf("\nModel %s: attention to %s, latents in %s.\n", n->model,
                  n->dense ? "all positions" : "selected positions",
                  n->kv_bf16 ? "BF16" : "FP8");

    rc = DSA_OK;

    if (o->tables & DSA_NODE_DECODE) {
        rc = dsa_node_decode_table(n, x, csv, err);
    }

    if (rc == DSA_OK && (o->tables & DSA_NODE_PREFILL)) {
        rc = dsa_node_prefill_table(n, x, csv, err);
    }

    if (rc == DSA_OK && (o->tables & DSA_NODE_COST)) {
        rc = dsa_node_cost_table(n, x, csv, err);
    }

    if (rc == DSA_OK && (o->tables & DSA_NODE_OPS)) {
        rc = dsa_node_ops_tables(n, err);
    }

    return rc;
}


/* The ops of an MoE layer and of the head in some steps, each alone. */

static int
dsa_node_ops_table(dsa_node_t *n, const dsa_node_step_t *step,
    const char *what, dsa_err_t *err)
{
    if (dsa_node_input(n, step, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (dsa_node_gathers(n)) {
        (void) printf("\nThe fullest GPU has %.0f experts with a token, and "
                      "%.2f times the mean of their rows.\n",
                      n->load.experts,
                      n->load.pairs * n->gpus
                      / ((double) n->step.batch * n->router.k));
    }

    (void) printf("\n| MoE layer, %s, %u tokens | us |\n|---|---|\n", what,
                  step->batch);
    dsa_node_time_ops(n, DSA_NODE_MOE);
    (void) fflush(stdout);

    return DSA_OK;
}


static int
dsa_node_ops_tables(dsa_node_t *n, dsa_err_t *err)
{
    size_t           i;
    dsa_node_step_t  step;

    static const uint32_t  many[][2] = { { 512, 1024 }, { 128, 32768 } };
    static const uint32_t  one[][2] = { { 1, 1024 }, { 1, 32768 } };

    for (i = 0; i < 2; i++) {
        if (dsa_node_gathers(n)) {
            dsa_node_decode(&step, n, many[i][0], many[i][1]);

        } else {
            dsa_node_decode(&step, n, one[i][0], one[i][1]);
        }

        if (dsa_node_ops_table(n, &step, i == 0 ? "decode at 1K"
                                                : "decode at 32K", err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    (void) printf("\n| embedding and head, %u samples | us |\n|---|---|\n",
                  step.samples);
    dsa_node_time_ops(n, DSA_NODE_HEAD);

    if (!dsa_node_gathers(n)) {
        return DSA_OK;
    }

    dsa_node_prefill(&step, n, DSA_NODE_TOKENS, 0, DSA_NODE_TOKENS);

    if (dsa_node_ops_table(n, &step, "prompts of 4K", err) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_node_prefill(&step, n, DSA_NODE_TOKENS, 28672, 32768);

    return dsa_node_ops_table(n, &step, "prompts of 32K, from 28K on", err);
}
