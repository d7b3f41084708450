
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend.h"
#include "base/clock.h"
#include "engine/cuda/model.h"
#include "base/log.h"


/*
 * Steps on one GPU.  A step's arrays are made in pinned memory, copied in
 * stream order, and its samples copied back behind it; two steps may be under
 * way, so that the host makes the second while the first runs.
 *
 * A step of nothing but decode rows is a CUDA graph, captured at the start for
 * some numbers of rows and bounds of contexts; a step takes the next larger
 * one and pads itself with rows that see nothing and write nothing.
 */

#define DSA_CUDA_DEPTH      2
#define DSA_CUDA_ROWS       40          /* numbers of rows of graphs, at most */
#define DSA_CUDA_BOUNDS     4           /* bounds of contexts */


/* Host memory of a step under way. */

typedef struct {
    uint8_t                *input;      /* pinned; as dsa_cuda_input_t lies */
    int32_t                *pages;      /* pinned [max_seqs, ld_pages] */
    uint32_t               *history;    /* pinned [max_seqs, context] */
    dsa_cuda_sample_t      *sample;     /* pinned [max_seqs] */
    dsa_sample_t          **out;        /* [max_seqs] where samples go */
    cudaEvent_t             ended;
    uint32_t                samples;
} dsa_cuda_flight_t;


typedef struct {
    dsa_weights_t          *weights;
    dsa_cuda_model_t       *model;

    dsa_cuda_flight_t       flight[DSA_CUDA_DEPTH];
    uint32_t                first;      /* the oldest under way */
    uint32_t                flights;
    uint32_t               *sample_of;  /* [max_seqs] of the entries of the
                                           step started last */
    uint32_t               *sample_now; /* the same of the step being made */

    dsa_cuda_seq_t         *seq;        /* [2 * max_seqs] */
    uint32_t               *order;      /* [max_seqs] entries, decode first */

    uint32_t                rows[DSA_CUDA_ROWS];
    uint32_t                n_rows;
    uint32_t                bound[DSA_CUDA_BOUNDS];
    uint32_t                n_bounds;
    cudaGraphExec_t         graph[DSA_CUDA_ROWS][DSA_CUDA_BOUNDS];
} dsa_backend_cuda_t;


/* The arrays of a step in host memory, laid out as those on the GPU. */

typedef struct {
    int32_t                *token;
    int32_t                *position;
    int32_t                *slot;
    int32_t                *keys;
    int32_t                *owner;
    int32_t                *feed;
    int32_t                *last;
    dsa_cuda_sampling_t    *sampling;
} dsa_cuda_host_t;


static int dsa_cuda_open_device(uint32_t device, dsa_err_t *err);
static int dsa_cuda_open_weights(dsa_backend_t *b, dsa_backend_cuda_t *c,
    const dsa_backend_conf_t *conf, dsa_err_t *err);
static int dsa_cuda_open_flights(dsa_backend_cuda_t *c, uint32_t max_seqs,
    dsa_err_t *err);
static int dsa_cuda_open_graphs(dsa_backend_cuda_t *c, dsa_err_t *err);
static int dsa_cuda_capture(dsa_backend_cuda_t *c, uint32_t rows,
    uint32_t bound, cudaGraphExec_t *exec, dsa_err_t *err);
static int dsa_backend_cuda_start(dsa_backend_t *b, dsa_batch_seq_t *seq,
    uint32_t n_seqs, dsa_err_t *err);
static int dsa_backend_cuda_wait(dsa_backend_t *b, dsa_err_t *err);
static void dsa_backend_cuda_close(dsa_backend_t *b);


dsa_backend_t *
dsa_backend_cuda_open(const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    dsa_backend_t       *b;
    dsa_cuda_conf_t      model;
    dsa_backend_cuda_t  *c;

    b = calloc(1, sizeof(dsa_backend_t));
    c = calloc(1, sizeof(dsa_backend_cuda_t));

    if (b == NULL || c == NULL) {
        (void) dsa_error(err, "no memory for a backend");
        free(b);
        free(c);
        return NULL;
    }

    b->data = c;
    b->start = dsa_backend_cuda_start;
    b->wait = dsa_backend_cuda_wait;
    b->close = dsa_backend_cuda_close;
    b->depth = DSA_CUDA_DEPTH;
    b->max_outputs = 1;
    b->masks = 0;

    if (conf->precision != DSA_SERVED) {
        (void) dsa_error(err, "\"backend cuda\" computes in \"precision "
                         "served\" only, \"backend cpu\" also in \"exact\"");
        goto failed;
    }

    if (dsa_cuda_open_device(conf->device, err) != DSA_OK
        || dsa_cuda_open_weights(b, c, conf, err) != DSA_OK)
    {
        goto failed;
    }

    memset(&model, 0, sizeof(model));

    model.weights = c->weights;
    model.config = b->config;
    model.context = conf->context;
    model.kv_memory = conf->kv_memory;
    model.max_rows = conf->max_tokens;
    model.max_seqs = conf->max_seqs;
    model.allowed = conf->allowed;

    c->model = dsa_cuda_model_open(&model, err);

    if (c->model == NULL) {
        goto failed;
    }

    /* the files are not read any more */

    dsa_weights_close(c->weights);
    c->weights = NULL;

    b->pages = c->model->pages;

    if (dsa_cuda_open_flights(c, conf->max_seqs, err) != DSA_OK
        || dsa_cuda_open_graphs(c, err) != DSA_OK)
    {
        goto failed;
    }

    return b;

failed:

    dsa_backend_cuda_close(b);

    return NULL;
}


static int
dsa_cuda_open_device(uint32_t device, dsa_err_t *err)
{
    int  rc, n;

    n = 0;
    rc = cudaGetDeviceCount(&n);

    if (rc != 0 || n == 0) {
        return dsa_error(err, "no GPU can be used: %s",
                         rc != 0 ? dsa_cuda_error(rc) : "there is none");
    }

    if (device >= (uint32_t) n) {
        return dsa_error(err, "GPU %u is asked for, a replica having one of "
                         "its own, and there are %d", device, n);
    }

    rc = cudaSetDevice((int) device);

    if (rc != 0) {
        return dsa_error(err, "GPU %u: %s", device, dsa_cuda_error(rc));
    }

    return DSA_OK;
}


static int
dsa_cuda_open_weights(dsa_backend_t *b, dsa_backend_cuda_t *c,
    const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    if (conf->random) {
        if (dsa_model_config_read(&b->config, conf->model, err) != DSA_OK) {
            return DSA_ERROR;
        }

        if (conf->layers != 0) {
            b->config.num_hidden_layers = conf->layers;

            if (b->config.first_k_dense_replace > conf->layers) {
                b->config.first_k_dense_replace = conf->layers;
            }
        }

        dsa_backend_fingerprint(b, "random", conf->precision);

        return DSA_OK;
    }

    c->weights = dsa_weights_open(conf->model, err);

    if (c->weights == NULL) {
        return DSA_ERROR;
    }

    b->config = c->weights->config;
    dsa_backend_fingerprint(b, c->weights->fingerprint, conf->precision);

    return DSA_OK;
}


static uint64_t
dsa_cuda_input_size(const dsa_cuda_model_t *m)
{
    return (uint64_t) ((uint8_t *) m->input.end
                       - (uint8_t *) m->input.token);
}


static int
dsa_cuda_open_flights(dsa_backend_cuda_t *c, uint32_t max_seqs,
    dsa_err_t *err)
{
    int                 rc;
    uint32_t            i;
    dsa_cuda_model_t   *m;
    dsa_cuda_flight_t  *f;

    m = c->model;
    rc = 0;

    c->sample_of = calloc(max_seqs, sizeof(uint32_t));
    c->sample_now = calloc(max_seqs, sizeof(uint32_t));
    c->seq = calloc(2 * (size_t) max_seqs, sizeof(dsa_cuda_seq_t));
    c->order = calloc(max_seqs, sizeof(uint32_t));

    if (c->sample_of == NULL || c->sample_now == NULL || c->seq == NULL
        || c->order == NULL)
    {
        return dsa_error(err, "no memory for steps of %u sequences",
                         max_seqs);
    }

    for (i = 0; i < DSA_CUDA_DEPTH && rc == 0; i++) {
        f = &c->flight[i];
        f->out = calloc(max_seqs, sizeof(dsa_sample_t *));

        rc = f->out == NULL ? (int) cudaErrorMemoryAllocation : 0;
        rc = rc != 0 ? rc : (int) cudaMallocHost((void **) &f->input,
                                                 dsa_cuda_input_size(m));
        rc = rc != 0 ? rc : (int) cudaMallocHost((void **) &f->pages,
                                                 (size_t) max_seqs
                                                 * m->ld_pages
                                                 * sizeof(int32_t));
        rc = rc != 0 ? rc : (int) cudaMallocHost((void **) &f->history,
                                                 (size_t) max_seqs
                                                 * m->context
                                                 * sizeof(uint32_t));
        rc = rc != 0 ? rc : (int) cudaMallocHost((void **) &f->sample,
                                                 max_seqs
                                                 * sizeof(dsa_cuda_sample_t));
        rc = rc != 0 ? rc : (int) cudaEventCreateWithFlags(&f->ended,
                                                 cudaEventDisableTiming);
    }

    if (rc != 0) {
        return dsa_error(err, "pinned memory for steps of %u sequences: %s",
                         max_seqs, dsa_cuda_error(rc));
    }

    return DSA_OK;
}


/*
 * Rows: every number up to 16, then in steps of an eighth to a quarter; the
 * last is the most.  Bounds: what is selected whole, then times four, up to
 * the context.
 */

static int
dsa_cuda_open_graphs(dsa_backend_cuda_t *c, dsa_err_t *err)
{
    int                rc;
    size_t             all, before, after;
    uint32_t           i, j, n, step, bound;
    uint64_t           begin;
    dsa_cuda_model_t  *m;

    m = c->model;
    begin = dsa_clock_ms();
    rc = cudaMemGetInfo(&before, &all);

    for (n = 1; c->n_rows < DSA_CUDA_ROWS; n += step) {
        if (n > m->max_samples || c->n_rows == DSA_CUDA_ROWS - 1) {
            n = m->max_samples;
        }

        c->rows[c->n_rows++] = n;

        if (n == m->max_samples) {
            break;
        }

        for (step = 1; step < n / 8; step *= 2) {
            /* void */
        }
    }

    for (bound = m->topk; c->n_bounds < DSA_CUDA_BOUNDS; bound *= 4) {
        if (bound >= m->context || c->n_bounds == DSA_CUDA_BOUNDS - 1) {
            bound = m->context;
        }

        c->bound[c->n_bounds++] = bound;

        if (bound == m->context) {
            break;
        }
    }

    for (i = 0; i < c->n_rows; i++) {
        for (j = 0; j < c->n_bounds; j++) {
            if (dsa_cuda_capture(c, c->rows[i], c->bound[j], &c->graph[i][j],
                                 err)
                != DSA_OK)
            {
                return DSA_ERROR;
            }
        }
    }

    rc = rc != 0 ? rc : (int) cudaMemGetInfo(&after, &all);

    if (rc != 0) {
        return dsa_error(err, "the GPU's memory: %s", dsa_cuda_error(rc));
    }

    dsa_log(DSA_LOG_NOTICE, "graphs: %u for decode steps of up to %u rows, "
            "contexts up to %u, %.2f GB, %.1f s", c->n_rows * c->n_bounds,
            m->max_samples, m->context,
            (double) (before > after ? before - after : 0) * 1e-9,
            (double) (dsa_clock_ms() - begin) * 1e-3);

    return DSA_OK;
}


static void
dsa_cuda_decode_step(const dsa_cuda_model_t *m, dsa_cuda_step_t *step,
    uint32_t rows, uint32_t bound)
{
    memset(step, 0, sizeof(dsa_cuda_step_t));

    step->rows = rows;
    step->decode = rows;
    step->samples = rows;
    step->max_keys = bound;
    step->indexed = bound > m->topk;
}


static void
dsa_cuda_host(dsa_cuda_host_t *h, const dsa_cuda_model_t *m, uint8_t *base)
{
    const uint8_t  *from;

    from = (const uint8_t *) m->input.token;

#define dsa_at(p)  (void *) (base + ((const uint8_t *) m->input.p - from))

    h->token = dsa_at(token);
    h->position = dsa_at(position);
    h->slot = dsa_at(slot);
    h->keys = dsa_at(keys);
    h->owner = dsa_at(owner);
    h->feed = dsa_at(feed);
    h->last = dsa_at(last);
    h->sampling = dsa_at(sampling);

#undef dsa_at
}


/* Rows from .. to-1 that see nothing, write nothing, and sample anything. */

static void
dsa_cuda_pad(dsa_cuda_host_t *h, uint32_t from, uint32_t to)
{
    uint32_t  i;

    for (i = from; i < to; i++) {
        h->token[i] = 0;
        h->position[i] = 0;
        h->slot[i] = -1;
        h->keys[i] = 0;
        h->owner[i] = (int32_t) i;
        h->feed[i] = -1;
        h->last[i] = (int32_t) i;
        memset(&h->sampling[i], 0, sizeof(dsa_cuda_sampling_t));
    }
}


static int
dsa_cuda_upload(dsa_backend_cuda_t *c, dsa_cuda_flight_t *f)
{
    return cudaMemcpyAsync(c->model->input.token, f->input,
                           dsa_cuda_input_size(c->model),
                           cudaMemcpyHostToDevice, c->model->stream);
}


/* Once as it is, so that libraries have chosen, then into a graph. */

static int
dsa_cuda_capture(dsa_backend_cuda_t *c, uint32_t rows, uint32_t bound,
    cudaGraphExec_t *exec, dsa_err_t *err)
{
    int                rc, ended;
    cudaGraph_t        graph;
    dsa_cuda_host_t    host;
    dsa_cuda_step_t    step;
    dsa_cuda_model_t  *m;

    m = c->model;

    dsa_cuda_host(&host, m, c->flight[0].input);
    dsa_cuda_pad(&host, 0, rows);
    dsa_cuda_decode_step(m, &step, rows, bound);

    rc = dsa_cuda_upload(c, &c->flight[0]);

    if (rc == 0 && dsa_cuda_model_run(m, &step, err) != DSA_OK) {
        return DSA_ERROR;
    }

    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(m->stream);
    rc = rc != 0 ? rc : (int) cudaStreamBeginCapture(m->stream,
                                             cudaStreamCaptureModeThreadLocal);
    if (rc != 0) {
        return dsa_error(err, "a decode step of %u rows: %s", rows,
                         dsa_cuda_error(rc));
    }

    rc = dsa_cuda_model_run(m, &step, err);
    ended = cudaStreamEndCapture(m->stream, &graph);

    if (ended == 0) {
        ended = rc == DSA_OK ? (int) cudaGraphInstantiate(exec, graph, 0) : 0;
        (void) cudaGraphDestroy(graph);
    }

    if (rc != DSA_OK) {
        return DSA_ERROR;
    }

    if (ended != 0) {
        return dsa_error(err, "the graph of a decode step of %u rows: %s",
                         rows, dsa_cuda_error(ended));
    }

    return DSA_OK;
}


static void
dsa_backend_cuda_close(dsa_backend_t *b)
{
    uint32_t             i, j;
    dsa_cuda_flight_t   *f;
    dsa_backend_cuda_t  *c = b->data;

    if (c->model != NULL) {
        (void) cudaStreamSynchronize(c->model->stream);
    }

    for (i = 0; i < DSA_CUDA_ROWS; i++) {
        for (j = 0; j < DSA_CUDA_BOUNDS; j++) {
            if (c->graph[i][j] != NULL) {
                (void) cudaGraphExecDestroy(c->graph[i][j]);
            }
        }
    }

    for (i = 0; i < DSA_CUDA_DEPTH; i++) {
        f = &c->flight[i];

        (void) cudaFreeHost(f->input);
        (void) cudaFreeHost(f->pages);
        (void) cudaFreeHost(f->history);
        (void) cudaFreeHost(f->sample);
        free(f->out);

        if (f->ended != NULL) {
            (void) cudaEventDestroy(f->ended);
        }
    }

    dsa_cuda_model_close(c->model);
    dsa_weights_close(c->weights);

    free(c->sample_of);
    free(c->sample_now);
    free(c->seq);
    free(c->order);
    free(c);
    free(b);
}


/* Entries of one absorbed row first: they are what graphs are made for. */

static uint32_t
dsa_cuda_order(dsa_backend_cuda_t *c, const dsa_batch_seq_t *seq,
    uint32_t n_seqs)
{
    uint32_t  i, n, decode;

    decode = 0;

    for (i = 0; i < n_seqs; i++) {
        decode += (uint32_t) dsa_cuda_model_decodes(c->model, seq[i].start,
                                                    seq[i].n_input,
                                                    seq[i].n_prompt);
    }

    for (i = 0, n = 0; i < n_seqs; i++) {
        if (dsa_cuda_model_decodes(c->model, seq[i].start, seq[i].n_input,
                                   seq[i].n_prompt))
        {
            c->order[n++] = i;

        } else {
            c->order[decode + i - n] = i;
        }
    }

    return decode;
}


/* The rows of an entry, from row on, and its block table. */

static void
dsa_cuda_rows(dsa_backend_cuda_t *c, const dsa_cuda_host_t *h, int32_t *pages,
    const dsa_batch_seq_t *s, uint32_t row, uint32_t table)
{
    uint32_t  i, at, last;

    for (i = 0; i < s->n_input; i++, row++) {
        at = s->start + i;

        h->position[row] = (int32_t) at;
        h->keys[row] = (int32_t) at + 1;
        h->owner[row] = (int32_t) table;
        h->slot[row] = (int32_t) (s->pages[at / DSA_PAGE_TOKENS]
                                  * DSA_PAGE_TOKENS + at % DSA_PAGE_TOKENS);
        h->feed[row] = -1;

        if (i + 1 == s->n_input && s->input_from != DSA_INPUT_KNOWN) {
            h->token[row] = 0;
            h->feed[row] = (int32_t) c->sample_of[s->input_from];

        } else {
            h->token[row] = (int32_t) s->tokens[at];
        }
    }

    last = (s->start + s->n_input - 1) / DSA_PAGE_TOKENS;

    for (i = 0; i <= last; i++) {
        pages[(uint64_t) table * c->model->ld_pages + i]
            = (int32_t) s->pages[i];
    }
}


/* What an entry's last row is sampled with. */

static void
dsa_cuda_sampling(dsa_cuda_sampling_t *to, const dsa_batch_seq_t *s,
    uint32_t *history, uint32_t *n_history)
{
    uint32_t               end, prompt;
    const dsa_sampling_t  *from;

    from = s->sampling;
    end = s->start + s->n_input;
    prompt = s->n_prompt < end ? s->n_prompt : end;

    to->temperature = from->temperature;
    to->top_p = from->top_p;
    to->frequency_penalty = from->frequency_penalty;
    to->presence_penalty = from->presence_penalty;
    to->seed = from->seed;
    to->position = end;
    to->logprobs = from->logprobs;
    to->top_logprobs = from->top_logprobs;
    to->history = *n_history;
    to->n_history = 0;

    if (from->frequency_penalty != 0 || from->presence_penalty != 0) {
        to->n_history = end - prompt;
        memcpy(history + *n_history, s->tokens + prompt,
               to->n_history * sizeof(uint32_t));
        *n_history += to->n_history;
    }
}


/* The graph for a step of decode rows, or NULL; pads the step to it. */

static cudaGraphExec_t
dsa_cuda_graph(dsa_backend_cuda_t *c, dsa_cuda_step_t *step,
    dsa_cuda_host_t *h)
{
    uint32_t  i, j;

    if (step->n_seqs != 0) {
        return NULL;
    }

    for (i = 0; i + 1 < c->n_rows && c->rows[i] < step->rows; i++) {
        /* void */
    }

    for (j = 0; j + 1 < c->n_bounds && c->bound[j] < step->max_keys; j++) {
        /* void */
    }

    dsa_cuda_pad(h, step->rows, c->rows[i]);

    return c->graph[i][j];
}


static int
dsa_backend_cuda_start(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n_seqs,
    dsa_err_t *err)
{
    int                   rc;
    uint32_t              i, n, row, end, width, decode, n_history, *swap;
    cudaGraphExec_t       graph;
    dsa_cuda_host_t       h;
    dsa_cuda_step_t       step;
    dsa_cuda_model_t     *m;
    dsa_cuda_flight_t    *f;
    dsa_backend_cuda_t   *c = b->data;
    dsa_cuda_sampling_t  *sampling;

    m = c->model;

    for (i = 0, n = 0; i < n_seqs; i++) {
        n += seq[i].n_input;
    }

    if (n_seqs == 0 || n_seqs > m->max_samples || n > m->max_rows
        || c->flights == DSA_CUDA_DEPTH)
    {
        return dsa_error(err, "a step has %u sequences of %u rows, at most %u "
                         "of %u are accepted, and %u steps at a time",
                         n_seqs, n, m->max_samples, m->max_rows,
                         DSA_CUDA_DEPTH);
    }

    f = &c->flight[(c->first + c->flights) % DSA_CUDA_DEPTH];
    dsa_cuda_host(&h, m, f->input);

    memset(&step, 0, sizeof(step));

    decode = dsa_cuda_order(c, seq, n_seqs);

    step.seq = c->seq;
    step.decode = decode;
    f->samples = 0;
    n_history = 0;
    width = 0;
    row = 0;

    for (i = 0; i < n_seqs; i++) {
        n = c->order[i];
        end = seq[n].start + seq[n].n_input;

        dsa_cuda_rows(c, &h, f->pages, &seq[n], row, i);

        if (i < decode) {
            step.max_keys = end > step.max_keys ? end : step.max_keys;

        } else {
            step.n_seqs += dsa_cuda_model_parts(m, &c->seq[step.n_seqs],
                                                seq[n].start, seq[n].n_input,
                                                seq[n].n_prompt, row, i);
        }

        row += seq[n].n_input;
        width = end > width ? end : width;

        /*
         * Every decode row is sampled from, as in the graphs: samples are
         * rows, and those that nobody wants have no place to go.
         */

        if (seq[n].sampling != NULL || i < decode) {
            sampling = &h.sampling[f->samples];
            memset(sampling, 0, sizeof(dsa_cuda_sampling_t));

            f->out[f->samples] = NULL;

            if (seq[n].sampling != NULL) {
                dsa_cuda_sampling(sampling, &seq[n], f->history, &n_history);
                f->out[f->samples] = seq[n].sample;
            }

            h.last[f->samples] = (int32_t) row - 1;
            c->sample_now[n] = f->samples++;
        }
    }

    step.rows = row;
    step.samples = f->samples;
    step.indexed = step.max_keys > m->topk;

    swap = c->sample_of;
    c->sample_of = c->sample_now;
    c->sample_now = swap;

    graph = dsa_cuda_graph(c, &step, &h);

    rc = dsa_cuda_upload(c, f);

    if (rc == 0) {
        rc = cudaMemcpy2DAsync(m->input.pages, m->ld_pages * sizeof(int32_t),
                               f->pages, m->ld_pages * sizeof(int32_t),
                               (width + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS
                               * sizeof(int32_t), n_seqs,
                               cudaMemcpyHostToDevice, m->stream);
    }

    if (rc == 0 && n_history != 0) {
        rc = cudaMemcpyAsync(m->input.history, f->history,
                             n_history * sizeof(uint32_t),
                             cudaMemcpyHostToDevice, m->stream);
    }

    if (rc == 0 && graph != NULL) {
        rc = cudaGraphLaunch(graph, m->stream);

    } else if (rc == 0 && dsa_cuda_model_run(m, &step, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (rc == 0 && f->samples != 0) {
        rc = cudaMemcpyAsync(f->sample, m->sample,
                             f->samples * sizeof(dsa_cuda_sample_t),
                             cudaMemcpyDeviceToHost, m->stream);
    }

    if (rc == 0) {
        rc = cudaEventRecord(f->ended, m->stream);
    }

    if (rc != 0) {
        return dsa_error(err, "a step of %u rows on the GPU: %s", row,
                         dsa_cuda_error(rc));
    }

    c->flights++;

    return DSA_OK;
}


static int
dsa_backend_cuda_wait(dsa_backend_t *b, dsa_err_t *err)
{
    int                       rc;
    uint32_t                  i, j;
    dsa_sample_t             *to;
    dsa_cuda_flight_t        *f;
    dsa_backend_cuda_t       *c = b->data;
    const dsa_cuda_sample_t  *from;

    if (c->flights == 0) {
        return dsa_error(err, "no step is under way");
    }

    f = &c->flight[c->first];
    rc = cudaEventSynchronize(f->ended);

    if (rc != 0) {
        return dsa_error(err, "a step on the GPU: %s", dsa_cuda_error(rc));
    }

    for (i = 0; i < f->samples; i++) {
        to = f->out[i];
        from = &f->sample[i];

        if (to == NULL) {
            continue;
        }

        to->token = from->token;
        to->logprob = from->logprob;
        to->n_top = from->n_top;

        for (j = 0; j < from->n_top && j < DSA_SAMPLE_MAX_TOP; j++) {
            to->top[j] = from->top[j];
            to->top_logprob[j] = from->top_logprob[j];
        }
    }

    c->first = (c->first + 1) % DSA_CUDA_DEPTH;
    c->flights--;

    return DSA_OK;
}
