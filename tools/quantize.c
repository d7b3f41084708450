
/*
 * Copyright (C) The nginx-dsa authors
 *
 * dsa quantize: a checkpoint with INT4 experts, from one in FP8.
 */


#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "tools/dsa.h"
#include "tools/quantize.h"


static const char  dsa_quantize_usage[] =
    "usage: dsa quantize --in DIR --out DIR --experts int4\n"
    "\n"
    "Makes a checkpoint whose routed experts are INT4 in groups of 128, from\n"
    "one in FP8, and copies all other weights.  Each scale has the least\n"
    "squares of the differences.  The same command continues after an\n"
    "interruption, with the same result.\n";


static int dsa_quantize_options(dsa_quantize_t *q, int argc, char **argv);
static int dsa_quantize_check(const dsa_quantize_t *q);
static int dsa_quantize_run(dsa_quantize_t *q);


int
dsa_cmd_quantize(int argc, char **argv)
{
    int             rc;
    dsa_err_t       err;
    dsa_quantize_t  q;

    memset(&q, 0, sizeof(q));

    q.lock = -1;

    rc = dsa_quantize_options(&q, argc, argv);

    if (rc != -1) {
        return rc;
    }

    q.err = &err;
    q.weights = dsa_weights_open(q.in, &err);

    rc = q.weights != NULL
         ? dsa_tensors_open(&q.table, q.weights->shards, q.in, &err)
         : DSA_ERROR;

    if (rc == DSA_OK) {
        rc = dsa_quantize_check(&q);
    }

    if (rc == DSA_OK) {
        q.pool = dsa_threads_create(dsa_threads_cpus(), &err);
        rc = q.pool != NULL ? dsa_quantize_run(&q) : DSA_ERROR;
    }

    dsa_threads_destroy(q.pool);
    dsa_tensors_close(&q.table);
    dsa_weights_close(q.weights);

    if (q.lock != -1) {
        (void) close(q.lock);
    }

    if (rc != DSA_OK) {
        (void) fprintf(stderr, "dsa quantize: %s\n", err.text);
        return 1;
    }

    return 0;
}


static int
dsa_quantize_check(const dsa_quantize_t *q)
{
    const dsa_model_config_t  *s;

    s = &q->weights->config;

    if (s->format[DSA_MATRICES_EXPERTS] != DSA_FORMAT_FP8) {
        return dsa_error(q->err, "%s: the experts are %s; expected a "
                         "checkpoint with \"quant_method\": \"fp8\" in "
                         "config.json", q->in,
                         s->format[DSA_MATRICES_EXPERTS] == DSA_FORMAT_INT4
                         ? "INT4 already" : "not quantized");
    }

    if (s->hidden_size % DSA_INT4_COLUMNS != 0
        || s->moe_intermediate_size % DSA_INT4_COLUMNS != 0)
    {
        return dsa_error(q->err, "%s: \"hidden_size\" is %u and "
                         "\"moe_intermediate_size\" is %u; expected multiples "
                         "of %d, the columns of a scale", q->in,
                         s->hidden_size, s->moe_intermediate_size,
                         DSA_INT4_COLUMNS);
    }

    return DSA_OK;
}


static int
dsa_quantize_run(dsa_quantize_t *q)
{
    uint32_t  i;

    if (dsa_quantize_begin(q) != DSA_OK) {
        return DSA_ERROR;
    }

    for (i = 0; i < q->weights->shards->n; i++) {
        if (dsa_quantize_shard(q, i) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    if (dsa_quantize_end(q) != DSA_OK) {
        return DSA_ERROR;
    }

    if (q->loss.weights > 0) {
        (void) printf("The weights of the experts that this run has quantized "
                      "changed by %.2f %% (root mean square).\n",
                      100 * sqrt(q->loss.error / q->loss.weights));
    }

    (void) printf("%s: %.2f GB of tensors\n", q->out,
                  (double) q->bytes * 1e-9);

    return fflush(stdout) == 0 ? DSA_OK
                               : dsa_error(q->err, "stdout cannot be written");
}


/* Returns -1 when the command is to run, else the exit status. */

static int
dsa_quantize_options(dsa_quantize_t *q, int argc, char **argv)
{
    int          opt;
    const char  *experts;

    static const struct option  options[] = {
        { "in", required_argument, NULL, 'i' },
        { "out", required_argument, NULL, 'o' },
        { "experts", required_argument, NULL, 'e' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    experts = NULL;

    for ( ;; ) {
        opt = dsa_option("dsa quantize", argc, argv, "h", options);

        if (opt == -1) {
            break;
        }

        switch (opt) {

        case 'i':
            q->in = optarg;
            break;

        case 'o':
            q->out = optarg;
            break;

        case 'e':
            experts = optarg;
            break;

        case 'h':
            return fputs(dsa_quantize_usage, stdout) != EOF ? 0 : 1;

        default:
            return 2;
        }
    }

    if (q->in == NULL || q->out == NULL || experts == NULL || optind != argc) {
        (void) fputs(dsa_quantize_usage, stderr);
        return 2;
    }

    if (strcmp(experts, "int4") != 0) {
        (void) fprintf(stderr, "dsa quantize: --experts is \"%s\"; expected "
                       "int4\n", experts);
        return 2;
    }

    return -1;
}
