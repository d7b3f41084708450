
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "bench/bench.h"
#include "bench/routing.h"
#include "engine/backend.h"
#include "kernels/moe/moe.h"


/*
 * dsa bench routing: what skewed routing costs.  An MoE layer of a step ends
 * when the fullest GPU has computed the rows of its experts; with few tokens
 * its time is that of reading the experts that have a row.  A replicated expert
 * is on each GPU, where it computes the rows of that GPU's own tokens, which
 * are equally many on all of them.
 */

#define DSA_SKEW_LAYERS     16
#define DSA_SKEW_TOKENS     (1U << 20)
#define DSA_SKEW_ZIPFS      8


typedef struct {
    const char         *model;
    uint32_t            gpus;
    uint32_t            tokens;         /* of a step, of all GPUs */
    double              zipf[DSA_SKEW_ZIPFS];
    uint32_t            n_zipf;
} dsa_skew_t;


/* Means over the layers. */

typedef struct {
    double              busiest;        /* rows of the busiest expert, of the
                                           mean of all experts */
    double              experts;        /* with a row, on the GPU with the most
                                           of them */
    double              rows;           /* of the fullest GPU, of the mean */
} dsa_skew_result_t;


static const uint32_t  dsa_skew_copies[] = { 0, 8, 16, 32, 64 };

#define DSA_SKEW_COPIES  (sizeof(dsa_skew_copies) / sizeof(dsa_skew_copies[0]))


static int dsa_skew_options(dsa_skew_t *k, int argc, char **argv);
static int dsa_skew_number(uint32_t *n, const char *text, uint32_t most);
static int dsa_skew_row(const dsa_skew_t *k, const dsa_model_config_t *config,
    double zipf, dsa_err_t *err);
static void dsa_skew_layer(const dsa_skew_t *k,
    const dsa_model_config_t *config, const uint32_t *rows,
    const uint32_t *order, uint32_t copies, dsa_skew_result_t *r);


int
dsa_bench_skew(int argc, char **argv, const char *usage)
{
    int                  rc;
    uint32_t             i;
    dsa_err_t            err;
    dsa_skew_t           k;
    dsa_model_config_t   config;

    rc = dsa_skew_options(&k, argc, argv);

    if (rc != DSA_OK) {
        (void) fputs(rc == DSA_AGAIN ? "" : usage, stderr);
        return 2;
    }

    rc = dsa_model_config_read(&config, k.model, &err);

    if (rc == DSA_OK && dsa_model_config_moe_layers(&config) == 0) {
        rc = dsa_error(&err, "%s: the model has no experts", k.model);
    }

    if (rc == DSA_OK) {
        rc = dsa_bench_routing_check(&config, k.gpus, &err);
    }

    if (rc == DSA_OK) {
        (void) printf("%u experts, %u of a token, on %u GPUs; a step of %u "
                      "tokens, the mean of %d layers.\n\n"
                      "| exponent | rows of the busiest expert | experts with "
                      "a row on a GPU, most | rows of the fullest GPU",
                      config.n_routed_experts, config.num_experts_per_tok,
                      k.gpus, k.tokens, DSA_SKEW_LAYERS);

        for (i = 1; i < DSA_SKEW_COPIES; i++) {
            (void) printf(" | %u experts on each GPU", dsa_skew_copies[i]);
        }

        (void) printf(" |\n|---|---|---|---");

        for (i = 1; i < DSA_SKEW_COPIES; i++) {
            (void) printf("|---");
        }

        (void) printf("|\n");
    }

    for (i = 0; i < k.n_zipf && rc == DSA_OK; i++) {
        rc = dsa_skew_row(&k, &config, k.zipf[i], &err);
    }

    if (rc == DSA_OK) {
        (void) printf("\nRows are multiples of the mean.\n");

    } else {
        (void) fprintf(stderr, "dsa bench: %s\n", err.text);
    }

    return rc == DSA_OK && fflush(stdout) == 0 ? 0 : 1;
}


/* DSA_AGAIN: an option was wrong, and the error is on stderr. */

static int
dsa_skew_options(dsa_skew_t *k, int argc, char **argv)
{
    int       c, rc;
    uint32_t  i;

    static const struct option  options[] = {
        { "model", required_argument, NULL, 'm' },
        { "gpus", required_argument, NULL, 'g' },
        { "tokens", required_argument, NULL, 't' },
        { "zipf", required_argument, NULL, 'z' },
        { NULL, 0, NULL, 0 }
    };

    static const double  usual[] = { 0, 0.25, 0.5, 0.75, 1, 1.25 };

    memset(k, 0, sizeof(dsa_skew_t));
    k->gpus = 8;
    k->tokens = 1024;
    optind = 1;
    rc = DSA_OK;

    while (rc == DSA_OK) {
        c = dsa_option("dsa bench routing", argc, argv, "", options);

        if (c == -1) {
            break;
        }

        switch (c) {

        case 'm':
            k->model = optarg;
            break;

        case 'g':
            rc = dsa_skew_number(&k->gpus, optarg, DSA_MAX_GPUS);
            break;

        case 't':
            rc = dsa_skew_number(&k->tokens, optarg, DSA_SKEW_TOKENS);
            break;

        case 'z':
            rc = k->n_zipf < DSA_SKEW_ZIPFS
                 ? dsa_bench_zipf(&k->zipf[k->n_zipf++], optarg) : DSA_ERROR;
            break;

        default:
            return DSA_AGAIN;
        }
    }

    for (i = 0; k->n_zipf == 0 && i < sizeof(usual) / sizeof(usual[0]); i++) {
        k->zipf[i] = usual[i];
    }

    k->n_zipf = k->n_zipf != 0 ? k->n_zipf : i;

    return rc == DSA_OK && k->model != NULL && optind == argc ? DSA_OK
                                                              : DSA_ERROR;
}


static int
dsa_skew_number(uint32_t *n, const char *text, uint32_t most)
{
    char           *end;
    unsigned long   value;

    value = strtoul(text, &end, 10);
    *n = (uint32_t) value;

    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && value > 0
           && value <= most ? DSA_OK : DSA_ERROR;
}


static int
dsa_skew_row(const dsa_skew_t *k, const dsa_model_config_t *config,
    double zipf, dsa_err_t *err)
{
    int32_t            *expert;
    uint32_t            i, layer, pairs, copies;
    uint32_t            rows[DSA_CUDA_EXPERTS], order[DSA_CUDA_EXPERTS];
    dsa_skew_result_t   r[DSA_SKEW_COPIES];

    pairs = k->tokens * config->num_experts_per_tok;
    memset(r, 0, sizeof(r));

    expert = malloc((size_t) pairs * sizeof(int32_t));

    if (expert == NULL) {
        return dsa_error(err, "out of memory");
    }

    for (layer = 0; layer < DSA_SKEW_LAYERS; layer++) {
        if (dsa_bench_routing(expert, config, k->tokens, zipf, layer)
            != DSA_OK)
        {
            free(expert);
            return dsa_error(err, "out of memory");
        }

        memset(rows, 0, sizeof(rows));
        dsa_bench_popular(order, config->n_routed_experts, layer);

        for (i = 0; i < pairs; i++) {
            rows[expert[i]]++;
        }

        for (i = 0; i < DSA_SKEW_COPIES; i++) {
            copies = dsa_skew_copies[i] < config->n_routed_experts
                     ? dsa_skew_copies[i] : config->n_routed_experts;
            dsa_skew_layer(k, config, rows, order, copies, &r[i]);
        }
    }

    free(expert);

    (void) printf("| %g | %.2f | %.1f", zipf, r[0].busiest, r[0].experts);

    for (i = 0; i < DSA_SKEW_COPIES; i++) {
        (void) printf(" | %.2f", r[i].rows);
    }

    (void) printf(" |\n");

    return DSA_OK;
}


/* Adds a layer; the first copies experts of order are on each GPU. */

static void
dsa_skew_layer(const dsa_skew_t *k, const dsa_model_config_t *config,
    const uint32_t *rows, const uint32_t *order, uint32_t copies,
    dsa_skew_result_t *r)
{
    double    all, shared, busiest, own, fullest, used, most;
    uint32_t  i, e, gpu, each, copied[DSA_CUDA_EXPERTS];

    memset(copied, 0, sizeof(copied));
    each = config->n_routed_experts / k->gpus;
    all = (double) k->tokens * config->num_experts_per_tok;
    shared = 0;
    busiest = 0;
    fullest = 0;
    most = 0;

    for (i = 0; i < copies; i++) {
        copied[order[i]] = 1;
        shared += rows[order[i]];
    }

    for (gpu = 0; gpu < k->gpus; gpu++) {
        own = shared / k->gpus;
        used = 0;

        for (e = gpu * each; e < (gpu + 1) * each; e++) {
            own += copied[e] ? 0 : rows[e];
            used += rows[e] != 0;
            busiest = rows[e] > busiest ? rows[e] : busiest;
        }

        fullest = own > fullest ? own : fullest;
        most = used > most ? used : most;
    }

    r->busiest += busiest * config->n_routed_experts / all / DSA_SKEW_LAYERS;
    r->experts += most / DSA_SKEW_LAYERS;
    r->rows += fullest * k->gpus / all / DSA_SKEW_LAYERS;
}
