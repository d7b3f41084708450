
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "engine/checkpoint/safetensors_write.h"
#include "engine/quantize.h"
#include "tools/dsa.h"
#include "tools/logits.h"


/*
 * dsa logits: computes a file of tokens and writes the logits, and with --trace
 * intermediate results, to a file of tensors, for comparison with other
 * implementations.
 */

#define DSA_LOGITS_TOKENS   2048        /* of a step, without --chunk */

static int dsa_logits_options(dsa_logits_conf_t *conf, int argc,
    char **argv);
static int dsa_logits_backend(dsa_logits_conf_t *conf, const char *backend,
    int argc);
static int dsa_logits_kv(dsa_kv_e *kv, const char *text);
static int dsa_logits_number(uint32_t *out, const char *option,
    const char *text);
static int dsa_logits_steps(uint32_t *out, const char *text);
static int dsa_logits_run(dsa_logits_t *l, const dsa_logits_conf_t *conf,
    dsa_err_t *err);
static int dsa_logits_open(dsa_logits_t *l, const dsa_logits_conf_t *conf,
    dsa_err_t *err);
static int dsa_logits_forward(dsa_logits_t *l, const dsa_logits_conf_t *conf,
    const dsa_rows_t *rows, float *logits, dsa_err_t *err);
static int dsa_logits_hidden(dsa_logits_t *l, uint32_t n, float *hidden,
    dsa_err_t *err);
static int dsa_logits_read(dsa_logits_t *l, const char *path, dsa_err_t *err);
static int dsa_logits_selections(dsa_logits_t *l, const char *path,
    dsa_err_t *err);
static const dsa_st_tensor_t *dsa_logits_topk(const dsa_logits_t *l,
    uint32_t layer);
static int32_t dsa_logits_position(const dsa_st_tensor_t *t, uint32_t row,
    uint32_t i);
static void dsa_logits_select(void *ctx, uint32_t layer, uint32_t rows,
    uint32_t cols, int32_t *pick, uint32_t *n_pick);
static void dsa_logits_note(void *ctx, const char *name, uint32_t layer,
    uint32_t rows, uint32_t cols, const void *data);
static int dsa_logits_write(const dsa_logits_t *l, const char *path,
    dsa_err_t *err);


static const char  dsa_logits_usage[] =
    "usage: dsa logits --model DIR --tokens FILE --out FILE [--exact]\n"
    "                  [--fp8] [--backend cpu|cuda] [--kv fp8|bf16]\n"
    "                  [--trace] [--chunk N] [--decode-from N]\n"
    "                  [--select FILE] [--gpus N]\n"
    "                  [--attention data|tensor] [--drafts N]\n"
    "\n"
    "Reads the tensor \"tokens\", 32-bit integers, from the safetensors file\n"
    "of --tokens and writes \"logits\", float32 [tokens, vocabulary], to that\n"
    "of --out.\n"
    "\n"
    "  --exact          compute in float32 instead of the FP8 of serving; on\n"
    "                   the CPU only\n"
    "  --fp8            quantize BF16 weights, as \"weights fp8\" does\n"
    "  --kv F           with --backend cuda, the format of cached latents;\n"
    "                   bf16 is the default for models without an indexer,\n"
    "                   and for these only\n"
    "  --trace          write hidden.L, attn_out.L, topk.L, gap.L, expert.L\n"
    "                   and expert_weight.L of every layer L as well; gap.L\n"
    "                   on the CPU only\n"
    "  --chunk N        compute at most N tokens in a step; default 2048\n"
    "  --decode-from N  compute one token in a step from position N on\n"
    "  --select FILE    attend to the positions in topk.L of FILE, which are\n"
    "                   ascending and then -1, instead of those that the\n"
    "                   indexer selects\n"
    "  --gpus N         compute on N GPUs; --backend cpu computes what they\n"
    "                   would, with the sums of each\n"
    "  --attention M    how N GPUs share the work: data (the default) or\n"
    "                   tensor.  With data, one GPU computes the attention of\n"
    "                   all tokens; --backend cpu shares out the tokens of a\n"
    "                   step before the position of --decode-from\n"
    "  --drafts N       compute N steps of the draft layer behind each token,\n"
    "                   1 to 7; on one GPU.  Step K of row I drafts the\n"
    "                   token I + 1 + K: draft_logits.K follows the tokens of\n"
    "                   FILE, free_logits.K and free_tokens.K follow the most\n"
    "                   probable drafts.  With --trace also draft_in.K,\n"
    "                   draft_out.K, draft_hidden.K, draft_topk.K,\n"
    "                   draft_gap.K and draft_expert.K; draft_gap.K on the\n"
    "                   CPU only\n";


int
dsa_cmd_logits(int argc, char **argv)
{
    int                rc;
    uint32_t           i;
    dsa_err_t          err;
    dsa_logits_t       l;
    dsa_logits_conf_t  conf;

    rc = dsa_logits_options(&conf, argc, argv);

    if (rc != DSA_OK) {
        return rc == DSA_AGAIN ? 0 : 2;
    }

    memset(&l, 0, sizeof(dsa_logits_t));

    rc = dsa_logits_run(&l, &conf, &err);

    if (rc != DSA_OK) {
        (void) fprintf(stderr, "dsa logits: %s\n", err.text);
    }

    for (i = 0; i < l.n_trace; i++) {
        free(l.trace[i].data);
    }

    free(l.trace);
    free(l.hidden);
    free(l.logits);
    free(l.pages);
    free(l.tokens);

    dsa_st_close(l.select);
    dsa_model_close(l.model);
#if (DSA_CUDA)
    dsa_cuda_group_close(l.cuda);
#endif
    dsa_weights_close(l.weights);

    return rc == DSA_OK ? 0 : 1;
}


/* DSA_AGAIN: help was printed, and there is nothing to run. */

static int
dsa_logits_options(dsa_logits_conf_t *conf, int argc, char **argv)
{
    int          c, rc;
    const char  *backend;

    static const struct option  options[] = {
        { "model", required_argument, NULL, 'm' },
        { "tokens", required_argument, NULL, 't' },
        { "out", required_argument, NULL, 'o' },
        { "exact", no_argument, NULL, 'e' },
        { "fp8", no_argument, NULL, 'f' },
        { "backend", required_argument, NULL, 'b' },
        { "kv", required_argument, NULL, 'k' },
        { "trace", no_argument, NULL, 'T' },
        { "chunk", required_argument, NULL, 'c' },
        { "decode-from", required_argument, NULL, 'd' },
        { "select", required_argument, NULL, 's' },
        { "gpus", required_argument, NULL, 'G' },
        { "attention", required_argument, NULL, 'A' },
        { "drafts", required_argument, NULL, 'D' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    memset(conf, 0, sizeof(dsa_logits_conf_t));

    conf->precision = DSA_SERVED;
    conf->gpus = 1;
    conf->chunk = DSA_LOGITS_TOKENS;
    conf->decode_from = UINT32_MAX;

    backend = "cpu";
    rc = DSA_OK;
    optind = 1;

    while (rc == DSA_OK
           && (c = dsa_option("dsa logits", argc, argv, "h", options)) != -1)
    {
        switch (c) {

        case 'm':
            conf->model = optarg;
            break;

        case 't':
            conf->tokens = optarg;
            break;

        case 'o':
            conf->out = optarg;
            break;

        case 's':
            conf->select = optarg;
            break;

        case 'e':
            conf->precision = DSA_EXACT;
            break;

        case 'f':
            conf->quantize = 1;
            break;

        case 'b':
            backend = optarg;
            break;

        case 'k':
            rc = dsa_logits_kv(&conf->kv, optarg);
            break;

        case 'T':
            conf->trace = 1;
            break;

        case 'c':
            rc = dsa_logits_number(&conf->chunk, "--chunk", optarg);
            break;

        case 'd':
            rc = dsa_logits_number(&conf->decode_from, "--decode-from",
                                   optarg);
            break;

        case 'G':
            rc = dsa_gpus_option(&conf->gpus, "logits", optarg);
            break;

        case 'A':
            rc = dsa_attention_option(&conf->attention, "logits", optarg);
            break;

        case 'D':
            rc = dsa_logits_steps(&conf->drafts, optarg);
            break;

        case 'h':
            (void) printf("%s", dsa_logits_usage);
            return DSA_AGAIN;

        default:
            return DSA_ERROR;
        }
    }

    return rc == DSA_OK ? dsa_logits_backend(conf, backend, argc) : DSA_ERROR;
}


static int
dsa_logits_backend(dsa_logits_conf_t *conf, const char *backend, int argc)
{
#if !(DSA_CUDA)
    if (strcmp(backend, "cuda") == 0) {
        (void) fprintf(stderr, "dsa logits: --backend cuda is not in this "
                       "program; expected cpu, or the program dsa-cuda\n");
        return DSA_ERROR;
    }
#endif

    if (dsa_backend_named(&conf->backend, backend) != DSA_OK
        || conf->backend == DSA_BACKEND_NULL || conf->model == NULL
        || conf->tokens == NULL || conf->out == NULL || optind != argc)
    {
        (void) fputs("dsa logits: expected --model, --tokens, --out, a "
                     "--backend of cpu or cuda, and nothing behind the "
                     "options\n", stderr);
        (void) fputs(dsa_logits_usage, stderr);
        return DSA_ERROR;
    }

    return DSA_OK;
}


static int
dsa_logits_kv(dsa_kv_e *kv, const char *text)
{
    if (dsa_kv_named(kv, text) != DSA_OK) {
        (void) fprintf(stderr, "dsa logits: --kv is \"%s\"; expected fp8 or "
                       "bf16\n", text);
        return DSA_ERROR;
    }

    return DSA_OK;
}


static int
dsa_logits_number(uint32_t *out, const char *option, const char *text)
{
    char          *end;
    unsigned long  n;

    errno = 0;
    n = strtoul(text, &end, 10);

    if (errno != 0 || end == text || *end != '\0' || text[0] == '-'
        || n == 0 || n > UINT32_MAX)
    {
        (void) fprintf(stderr, "dsa logits: %s \"%s\" is not a number; "
                       "expected one from 1 on\n", option, text);
        return DSA_ERROR;
    }

    *out = (uint32_t) n;

    return DSA_OK;
}


/* The value of --drafts. */

static int
dsa_logits_steps(uint32_t *out, const char *text)
{
    if (dsa_logits_number(out, "--drafts", text) != DSA_OK) {
        return DSA_ERROR;
    }

    if (*out > DSA_LOGITS_DRAFTS) {
        (void) fprintf(stderr, "dsa logits: --drafts \"%s\" is too large; "
                       "expected 1 to %u\n", text, DSA_LOGITS_DRAFTS);
        return DSA_ERROR;
    }

    return DSA_OK;
}


static int
dsa_logits_run(dsa_logits_t *l, const dsa_logits_conf_t *conf, dsa_err_t *err)
{
    uint32_t    i, n_pages;
    uint64_t    vocab, hidden;
    dsa_rows_t  rows;

    l->weights = dsa_weights_open(conf->model, err);

    if (l->weights == NULL
        || (conf->quantize && dsa_weights_quantize(l->weights, err) != DSA_OK))
    {
        return DSA_ERROR;
    }

    if (dsa_logits_read(l, conf->tokens, err) != DSA_OK) {
        return DSA_ERROR;
    }

    vocab = l->weights->config.vocab_size;
    hidden = l->weights->config.hidden_size;
    n_pages = (uint32_t) (((uint64_t) l->n + conf->drafts + DSA_PAGE_TOKENS
                           - 1)
                          / DSA_PAGE_TOKENS);

    if (dsa_logits_open(l, conf, err) != DSA_OK) {
        return DSA_ERROR;
    }

    l->pages = calloc(n_pages, sizeof(uint32_t));
    l->logits = calloc(l->n, vocab * sizeof(float));
    l->hidden = calloc(conf->drafts != 0 ? l->n : 1, hidden * sizeof(float));

    if (l->pages == NULL || l->logits == NULL || l->hidden == NULL) {
        return dsa_error(err, "out of memory for the logits of %u tokens",
                         l->n);
    }

    for (i = 0; i < n_pages; i++) {
        l->pages[i] = i;
    }

    for (i = 0; i < DSA_MAX_GPUS; i++) {
        l->copies[i] = l->pages;
    }

    memset(&rows, 0, sizeof(dsa_rows_t));

    if (conf->select != NULL) {
        if (dsa_logits_selections(l, conf->select, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    for (l->done = 0; l->done < l->n; l->done += rows.n) {
        rows.n = conf->chunk < l->n - l->done ? conf->chunk
                                              : l->n - l->done;

        if (l->done >= conf->decode_from) {
            rows.n = 1;

        } else if (rows.n > conf->decode_from - l->done) {
            rows.n = conf->decode_from - l->done;
        }

        rows.tokens = l->tokens + l->done;
        rows.start = l->done;
        rows.pages = l->pages;
        rows.n_logits = rows.n;
        rows.copies = l->done < conf->decode_from ? l->copies : NULL;

        if (dsa_logits_forward(l, conf, &rows, l->logits + l->done * vocab,
                               err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }

        if (conf->drafts != 0
            && dsa_logits_hidden(l, rows.n, l->hidden + l->done * hidden, err)
               != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    if (conf->drafts != 0 && dsa_logits_drafts(l, conf, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (l->failed) {
        return dsa_error(err, "out of memory for the trace of %u tokens",
                         l->n);
    }

    return dsa_logits_write(l, conf->out, err);
}


/* Opens the model for one backend, and registers the trace callbacks. */

static int
dsa_logits_open(dsa_logits_t *l, const dsa_logits_conf_t *conf, dsa_err_t *err)
{
    uint32_t           rows;
    dsa_model_conf_t   model;
#if (DSA_CUDA)
    uint32_t           i;
    dsa_cache_t        cache;
    dsa_cuda_conf_t    cuda;
    dsa_cuda_rank_t   *rank;
#endif

    rows = conf->chunk < l->n ? conf->chunk : l->n;
#if (DSA_CUDA)
    if (conf->backend == DSA_BACKEND_CUDA) {
        if (conf->precision != DSA_SERVED) {
            return dsa_error(err, "--exact needs --backend cpu");
        }

        if (conf->drafts != 0 && conf->gpus > 1) {
            return dsa_error(err, "--drafts with --backend cuda needs --gpus "
                             "1; the CPU can compute what several GPUs would");
        }

        memset(&cuda, 0, sizeof(cuda));

        cuda.weights = l->weights;
        cuda.config = l->weights->config;
        cuda.gpus = conf->gpus;
        cuda.attention = conf->attention;

        for (i = 0; i < conf->gpus; i++) {
            cuda.gpu[i] = i;
        }

        cuda.kv_bf16 = dsa_kv_bf16(DSA_BACKEND_CUDA, conf->kv,
                                   &cuda.config);
        cuda.max_tokens = rows;
        cuda.max_seqs = rows;
        cuda.allowed = cuda.config.vocab_size;
        cuda.drafts = conf->drafts != 0;
        cuda.context = (l->n + conf->drafts + DSA_PAGE_TOKENS - 1)
                       / DSA_PAGE_TOKENS * DSA_PAGE_TOKENS;

        dsa_cuda_cache_layout(&cache, &cuda.config, cuda.drafts, cuda.kv_bf16);
        cuda.kv_memory = cuda.context / DSA_PAGE_TOKENS * cache.page;

        l->cuda = dsa_cuda_group_open(&cuda, err);

        if (l->cuda == NULL) {
            return DSA_ERROR;
        }

        rank = l->cuda->rank[0];
        rank->trace = conf->trace ? dsa_logits_note : NULL;
        rank->trace_ctx = l;
        rank->select = conf->select != NULL ? dsa_logits_select : NULL;
        rank->select_ctx = l;

        return DSA_OK;
    }
#endif

    memset(&model, 0, sizeof(model));

    model.precision = conf->precision;
    model.kv_memory = dsa_model_kv_memory(&l->weights->config, conf->precision,
                                          conf->drafts != 0,
                                          l->n + conf->drafts);
    model.max_tokens = rows;
    model.gpus = conf->gpus;
    model.attention = conf->attention;
    model.drafts = conf->drafts != 0;

    l->model = dsa_model_open(l->weights, &model, err);

    if (l->model == NULL) {
        return DSA_ERROR;
    }

    dsa_model_trace(l->model, conf->trace ? dsa_logits_note : NULL, l);
    dsa_model_select(l->model, conf->select != NULL ? dsa_logits_select : NULL,
                     l);

    return DSA_OK;
}


static int
dsa_logits_forward(dsa_logits_t *l, const dsa_logits_conf_t *conf,
    const dsa_rows_t *rows, float *logits, dsa_err_t *err)
{
#if (DSA_CUDA)
    if (l->cuda != NULL) {
        return dsa_cuda_group_forward(l->cuda, rows,
                                      conf->decode_from < l->n
                                      ? conf->decode_from : l->n,
                                      logits, err);
    }
#endif

    return dsa_model_forward(l->model, rows, 1, logits, err);
}


/* Sets hidden to the hidden states of the n tokens of the last step. */

static int
dsa_logits_hidden(dsa_logits_t *l, uint32_t n, float *hidden, dsa_err_t *err)
{
#if (DSA_CUDA)
    if (l->cuda != NULL) {
        return dsa_cuda_group_hidden(l->cuda, n, hidden, err);
    }
#endif

    memcpy(hidden, dsa_model_hidden(l->model),
           (uint64_t) n * l->weights->config.hidden_size * sizeof(float));

    return DSA_OK;
}


void
dsa_logits_trace(dsa_logits_t *l, dsa_trace_pt trace, void *ctx)
{
#if (DSA_CUDA)
    if (l->cuda != NULL) {
        l->cuda->rank[0]->trace = trace;
        l->cuda->rank[0]->trace_ctx = ctx;
        return;
    }
#endif

    dsa_model_trace(l->model, trace, ctx);
}


int
dsa_logits_draft(dsa_logits_t *l, const dsa_rows_t *rows, uint32_t step,
    float *hidden, float *logits, dsa_err_t *err)
{
#if (DSA_CUDA)
    if (l->cuda != NULL) {
        return dsa_cuda_group_draft(l->cuda, rows, step, hidden, logits, err);
    }
#endif

    return dsa_model_draft(l->model, rows, 1, step, hidden, logits, err);
}


static int
dsa_logits_read(dsa_logits_t *l, const char *path, dsa_err_t *err)
{
    int                     rc;
    int32_t                 id;
    uint32_t                i;
    uint64_t                n;
    dsa_st_t               *st;
    const dsa_st_tensor_t  *t;

    st = dsa_st_open(path, err);
    if (st == NULL) {
        return DSA_ERROR;
    }

    rc = DSA_ERROR;
    t = dsa_st_find(st, dsa_strz("tokens"));

    if (t == NULL || !dsa_str_eqz(t->dtype, "I32") || t->n_dims != 1
        || t->shape[0] == 0)
    {
        (void) dsa_error(err, "%s: expected a tensor \"tokens\" of dtype I32 "
                         "with one dimension, which is not empty", path);
        goto done;
    }

    n = t->shape[0];

    if (n > l->weights->config.max_position_embeddings) {
        (void) dsa_error(err, "%s: %llu tokens; expected at most "
                         "max_position_embeddings, which is %u", path,
                         (unsigned long long) n,
                         l->weights->config.max_position_embeddings);
        goto done;
    }

    l->n = (uint32_t) n;
    l->tokens = calloc(l->n, sizeof(uint32_t));

    if (l->tokens == NULL) {
        (void) dsa_error(err, "out of memory for %u tokens", l->n);
        goto done;
    }

    for (i = 0; i < l->n; i++) {
        memcpy(&id, (const char *) t->data + i * sizeof(int32_t), sizeof(id));

        if (id < 0) {
            (void) dsa_error(err, "%s: token %d at position %u; expected an "
                             "id from 0 on", path, id, i);
            goto done;
        }

        l->tokens[i] = (uint32_t) id;
    }

    rc = DSA_OK;

done:

    dsa_st_close(st);

    return rc;
}


/* Opens the file, and checks every value that dsa_logits_select() reads. */

static int
dsa_logits_selections(dsa_logits_t *l, const char *path, dsa_err_t *err)
{
    int32_t                    p, last;
    uint32_t                   layer, row, i, cols;
    const dsa_model_config_t  *s;
    const dsa_st_tensor_t     *t;

    s = &l->weights->config;
    cols = dsa_model_config_topk(s);

    l->select = dsa_st_open(path, err);
    if (l->select == NULL) {
        return DSA_ERROR;
    }

    for (layer = 0; layer < s->num_hidden_layers; layer++) {
        t = dsa_logits_topk(l, layer);

        if (t == NULL || !dsa_str_eqz(t->dtype, "I32") || t->n_dims != 2
            || t->shape[0] != l->n || t->shape[1] == 0 || t->shape[1] > cols)
        {
            return dsa_error(err, "%s: expected a tensor \"topk.%u\" of dtype "
                             "I32, %u rows and 1 to %u columns", path, layer,
                             l->n, cols);
        }

        for (row = 0; row < l->n; row++) {
            last = -1;

            for (i = 0; i < t->shape[1]; i++) {
                p = dsa_logits_position(t, row, i);

                if (p == -1 && i != 0) {
                    last = (int32_t) row;       /* then only -1 is valid */
                    continue;
                }

                if (p <= last || p > (int32_t) row) {
                    return dsa_error(err, "%s: topk.%u has %d in column %u of "
                                     "row %u; expected ascending positions up "
                                     "to that of the row, then -1", path,
                                     layer, p, i, row);
                }

                last = p;
            }
        }
    }

    return DSA_OK;
}


static const dsa_st_tensor_t *
dsa_logits_topk(const dsa_logits_t *l, uint32_t layer)
{
    char  name[DSA_LOGITS_NAME];

    (void) snprintf(name, sizeof(name), "topk.%u", layer);

    return dsa_st_find(l->select, dsa_strz(name));
}


static int32_t
dsa_logits_position(const dsa_st_tensor_t *t, uint32_t row, uint32_t i)
{
    int32_t  p;

    memcpy(&p, (const char *) t->data + (row * t->shape[1] + i) * sizeof(p),
           sizeof(p));

    return p;
}


static void
dsa_logits_select(void *ctx, uint32_t layer, uint32_t rows, uint32_t cols,
    int32_t *pick, uint32_t *n_pick)
{
    int32_t                 p;
    uint32_t                i, row;
    dsa_logits_t           *l = ctx;
    const dsa_st_tensor_t  *t;

    t = dsa_logits_topk(l, layer);

    for (row = 0; row < rows; row++) {
        for (i = 0; i < t->shape[1]; i++) {
            p = dsa_logits_position(t, l->done + row, i);

            if (p == -1) {
                break;
            }

            pick[(uint64_t) row * cols + i] = p;
        }

        n_pick[row] = i;
    }
}


/* Copies the trace of a step to the tensor of all tokens. */

static void
dsa_logits_note(void *ctx, const char *name, uint32_t layer, uint32_t rows,
    uint32_t cols, const void *data)
{
    char           full[DSA_LOGITS_NAME];
    uint32_t       width;
    dsa_logits_t  *l = ctx;

    (void) snprintf(full, sizeof(full), "%s.%u", name, layer);

    /* topk has index_topk columns even when the context is shorter */

    width = strcmp(name, "topk") == 0 ? l->weights->config.index_topk : cols;

    dsa_logits_keep(l, full, l->n, width, l->done, rows, cols, data);
}


void
dsa_logits_keep(dsa_logits_t *l, const char *name, uint32_t rows,
    uint32_t width, uint32_t at, uint32_t n, uint32_t cols, const void *data)
{
    uint32_t             i;
    const uint8_t       *p;
    dsa_logits_trace_t  *t;

    for (i = 0; i < l->n_trace; i++) {
        if (strcmp(l->trace[i].name, name) == 0) {
            break;
        }
    }

    if (i == l->max_trace) {
        t = realloc(l->trace, (i + 64) * sizeof(dsa_logits_trace_t));
        if (t == NULL) {
            l->failed = 1;
            return;
        }

        l->trace = t;
        l->max_trace = i + 64;
    }

    t = &l->trace[i];

    if (i == l->n_trace) {
        t->data = malloc((uint64_t) rows * width * 4);
        if (t->data == NULL) {
            l->failed = 1;
            return;
        }

        memset(t->data, 0xff, (uint64_t) rows * width * 4);
        (void) snprintf(t->name, sizeof(t->name), "%s", name);
        t->rows = rows;
        t->cols = width;
        l->n_trace++;
    }

    p = data;

    for (i = 0; i < n; i++) {
        memcpy(t->data + ((uint64_t) at + i) * t->cols * 4,
               p + (uint64_t) i * cols * 4, (uint64_t) cols * 4);
    }
}


/* Returns 1 if a tensor has ids or positions. */

static int
dsa_logits_integers(const char *name)
{
    return strstr(name, "topk.") != NULL || strstr(name, "tokens.") != NULL
           || strstr(name, "expert.") != NULL;
}


static int
dsa_logits_write(const dsa_logits_t *l, const char *path, dsa_err_t *err)
{
    int               rc;
    uint32_t          i;
    dsa_st_tensor_t  *t;

    t = calloc((uint64_t) l->n_trace + 1, sizeof(dsa_st_tensor_t));
    if (t == NULL) {
        return dsa_error(err, "%s: out of memory", path);
    }

    for (i = 0; i <= l->n_trace; i++) {
        t[i].n_dims = 2;
        t[i].shape[0] = l->n;

        if (i == l->n_trace) {
            t[i].name = dsa_strz("logits");
            t[i].dtype = dsa_strz("F32");
            t[i].shape[1] = l->weights->config.vocab_size;
            t[i].data = l->logits;

        } else {
            t[i].name = dsa_strz(l->trace[i].name);
            t[i].dtype = dsa_strz(dsa_logits_integers(l->trace[i].name)
                                  ? "I32" : "F32");
            t[i].shape[0] = l->trace[i].rows;
            t[i].shape[1] = l->trace[i].cols;
            t[i].data = l->trace[i].data;
        }

        t[i].size = t[i].shape[0] * t[i].shape[1] * 4;
    }

    rc = dsa_st_write(path, t, l->n_trace + 1, err);

    free(t);

    return rc;
}
