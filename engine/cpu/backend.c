
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>

#include "engine/backend.h"
#include "engine/cpu/model.h"


/* Page memory where the configuration leaves it to the backend. */
#define DSA_CPU_KV_MEMORY   (1ULL << 30)


typedef struct {
    dsa_weights_t  *weights;
    dsa_model_t    *model;
    dsa_rows_t     *rows;           /* [max_seqs] */
    float          *logits;         /* [max_seqs, vocab] */
    float          *scratch;        /* [vocab] */
    uint32_t        max_seqs;
    uint32_t        allowed;
} dsa_backend_cpu_t;


static int dsa_backend_cpu_start(dsa_backend_t *b, dsa_batch_seq_t *seq,
    uint32_t n_seqs, dsa_err_t *err);
static int dsa_backend_cpu_wait(dsa_backend_t *b, dsa_err_t *err);
static void dsa_backend_cpu_sample(dsa_backend_cpu_t *cpu,
    const dsa_batch_seq_t *s, const float *logits);
static void dsa_backend_cpu_close(dsa_backend_t *b);


dsa_backend_t *
dsa_backend_cpu_open(const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    uint64_t            memory;
    dsa_backend_t      *b;
    dsa_backend_cpu_t  *cpu;

    b = calloc(1, sizeof(dsa_backend_t));
    cpu = calloc(1, sizeof(dsa_backend_cpu_t));

    if (b == NULL || cpu == NULL) {
        (void) dsa_error(err, "no memory for a backend");
        free(b);
        free(cpu);
        return NULL;
    }

    b->data = cpu;
    b->depth = 1;
    b->start = dsa_backend_cpu_start;
    b->wait = dsa_backend_cpu_wait;
    b->close = dsa_backend_cpu_close;

    cpu->weights = dsa_weights_open(conf->model, err);
    if (cpu->weights == NULL) {
        goto failed;
    }

    b->config = cpu->weights->config;

    memory = conf->kv_memory != 0 ? conf->kv_memory : DSA_CPU_KV_MEMORY;

    cpu->model = dsa_model_open(cpu->weights, conf->precision, memory,
                                conf->max_tokens, err);
    if (cpu->model == NULL) {
        goto failed;
    }

    b->pages = dsa_model_pages(cpu->model);

    cpu->max_seqs = conf->max_seqs;
    cpu->allowed = conf->allowed;
    cpu->rows = calloc(conf->max_seqs, sizeof(dsa_rows_t));
    cpu->logits = calloc(conf->max_seqs,
                         b->config.vocab_size * sizeof(float));
    cpu->scratch = calloc(b->config.vocab_size, sizeof(float));

    if (cpu->rows == NULL || cpu->logits == NULL || cpu->scratch == NULL) {
        (void) dsa_error(err, "no memory for the logits of %u sequences",
                         conf->max_seqs);
        goto failed;
    }

    dsa_backend_fingerprint(b, cpu->weights->fingerprint, conf->precision);

    return b;

failed:

    dsa_backend_cpu_close(b);

    return NULL;
}


static void
dsa_backend_cpu_close(dsa_backend_t *b)
{
    dsa_backend_cpu_t  *cpu = b->data;

    dsa_model_close(cpu->model);
    dsa_weights_close(cpu->weights);

    free(cpu->rows);
    free(cpu->logits);
    free(cpu->scratch);
    free(cpu);
    free(b);
}


static int
dsa_backend_cpu_start(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n_seqs,
    dsa_err_t *err)
{
    uint32_t            i;
    const float        *logits;
    dsa_backend_cpu_t  *cpu = b->data;

    if (n_seqs > cpu->max_seqs) {
        return dsa_error(err, "a step has %u sequences, at most %u are "
                         "accepted", n_seqs, cpu->max_seqs);
    }

    for (i = 0; i < n_seqs; i++) {
        cpu->rows[i].tokens = seq[i].tokens + seq[i].start;
        cpu->rows[i].start = seq[i].start;
        cpu->rows[i].n = seq[i].n;
        cpu->rows[i].pages = seq[i].pages;
        cpu->rows[i].n_logits = seq[i].sampling != NULL;
    }

    if (dsa_model_forward(cpu->model, cpu->rows, n_seqs, cpu->logits, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    logits = cpu->logits;

    for (i = 0; i < n_seqs; i++) {
        if (seq[i].sampling != NULL) {
            dsa_backend_cpu_sample(cpu, &seq[i], logits);
            logits += b->config.vocab_size;
        }
    }

    return DSA_OK;
}


/* A step is computed when it is started. */

static int
dsa_backend_cpu_wait(dsa_backend_t *b, dsa_err_t *err)
{
    return DSA_OK;
}


static void
dsa_backend_cpu_sample(dsa_backend_cpu_t *cpu, const dsa_batch_seq_t *s,
    const float *logits)
{
    uint32_t  end, prompt;

    end = s->start + s->n;
    prompt = s->prompt < end ? s->prompt : end;

    dsa_sample(s->sample, s->sampling, logits, cpu->weights->config.vocab_size,
               cpu->allowed, s->tokens + prompt, end - prompt, end,
               cpu->scratch);
}
