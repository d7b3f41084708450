
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/file.h"
#include "base/options.h"
#include "engine/checkpoint/generation_config.h"
#include "engine/schedule/scheduler.h"
#include "engine/tokenizer/tokenizer.h"
#include "tools/dsa.h"


/*
 * dsa generate: continues a prompt with the engine's scheduler and a backend,
 * without a server.
 */

#define DSA_GENERATE_TOKENS 512         /* of a step */


typedef struct {
    const char             *model;
    const char             *prompt;
    const char             *ids;
    uint32_t                n;
    dsa_backend_e           backend;
    dsa_precision_e         precision;
    uint32_t                gpus;
    dsa_attention_e         attention;
    dsa_sampling_t          sampling;   /* NAN: as generation_config.json */
    int                     seeded;
    int                     special;
} dsa_generate_conf_t;


typedef struct {
    dsa_tokenizer_t         *tokenizer;  /* NULL with --ids */
    dsa_backend_t           *backend;
    dsa_sched_t             *sched;
    dsa_tokens_t             tokens;
    dsa_detokenizer_t        detokenizer;
    dsa_generation_config_t  defaults;   /* of the model */
    int                      printed;    /* 1: an id was printed */
    int                      failed;
} dsa_generate_t;


static int dsa_generate_options(dsa_generate_conf_t *conf, int argc,
    char **argv);
static int dsa_generate_seed(dsa_generate_conf_t *conf, const char *text);
static int dsa_generate_number(const char *name, const char *text,
    double most, double *out);
static int dsa_generate_open(dsa_generate_t *g,
    const dsa_generate_conf_t *conf, dsa_err_t *err);
static int dsa_generate_ids(dsa_generate_t *g, const char *text,
    uint32_t vocab, dsa_err_t *err);
static int dsa_generate_text(dsa_generate_t *g,
    const dsa_generate_conf_t *conf, const dsa_model_config_t *config,
    dsa_err_t *err);
static int dsa_generate_run(dsa_generate_t *g,
    const dsa_generate_conf_t *conf, dsa_err_t *err);
static int dsa_generate_tokens(void *owner, const dsa_sample_t *samples,
    uint32_t n);
static int dsa_generate_token(dsa_generate_t *g, uint32_t token);
static void dsa_generate_done(void *owner, const dsa_sched_usage_t *usage);


static const char  dsa_generate_usage[] =
    "usage: dsa generate --model DIR [--prompt TEXT | --ids \"0 5 7\"] -n N\n"
    "                    [--greedy] [--temperature T] [--top-p P] [--seed S]\n"
    "                    [--special] [--exact] [--backend cpu|cuda]\n"
    "                    [--gpus N] [--attention data|tensor]\n"
    "\n"
    "  --prompt TEXT   continues the text after the model's BOS token,\n"
    "                  which GLM does not have; prints text\n"
    "  --ids \"0 5 7\"   continues exactly these ids; prints ids\n"
    "  -n N            generates at most N tokens\n"
    "  --greedy        always takes the most probable token; the same as\n"
    "                  --temperature 0\n"
    "  --temperature T, --top-p P\n"
    "                  default: the values in the model's\n"
    "                  generation_config.json, or 1\n"
    "  --special       recognizes added tokens in TEXT, and puts no BOS\n"
    "                  token before it\n"
    "  --exact         computes in float32 instead of the served precision;\n"
    "                  on the CPU only\n"
    "  --gpus N        computes on N GPUs; --backend cpu computes what they\n"
    "                  would, with the sums of each\n"
    "  --attention M   how N GPUs share the work: data (the default) or\n"
    "                  tensor\n";


int
dsa_cmd_generate(int argc, char **argv)
{
    int                   rc;
    dsa_err_t             err;
    dsa_generate_t        g;
    dsa_generate_conf_t   conf;

    memset(&g, 0, sizeof(g));

    rc = dsa_generate_options(&conf, argc, argv);

    if (rc != DSA_OK) {
        return rc == DSA_AGAIN ? 0 : 2;
    }

    rc = dsa_generate_open(&g, &conf, &err);

    if (rc == DSA_OK) {
        rc = dsa_generate_run(&g, &conf, &err);
    }

    if (rc != DSA_OK) {
        (void) fprintf(stderr, "dsa generate: %s\n", err.text);
    }

    dsa_sched_destroy(g.sched);

    if (g.backend != NULL) {
        g.backend->close(g.backend);
    }

    dsa_tokenizer_close(g.tokenizer);
    free(g.tokens.ids);

    return rc == DSA_OK ? 0 : 1;
}


/* DSA_AGAIN: help was printed, and there is nothing to run. */

static int
dsa_generate_options(dsa_generate_conf_t *conf, int argc, char **argv)
{
    int      c, rc;
    double   value;

    static const struct option  options[] = {
        { "model", required_argument, NULL, 'm' },
        { "prompt", required_argument, NULL, 'p' },
        { "ids", required_argument, NULL, 'i' },
        { "greedy", no_argument, NULL, 'g' },
        { "temperature", required_argument, NULL, 't' },
        { "top-p", required_argument, NULL, 'P' },
        { "seed", required_argument, NULL, 's' },
        { "special", no_argument, NULL, 'S' },
        { "exact", no_argument, NULL, 'e' },
        { "backend", required_argument, NULL, 'b' },
        { "gpus", required_argument, NULL, 'G' },
        { "attention", required_argument, NULL, 'A' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    memset(conf, 0, sizeof(dsa_generate_conf_t));

    conf->precision = DSA_SERVED;
    conf->gpus = 1;
    conf->sampling.temperature = NAN;
    conf->sampling.top_p = NAN;

    rc = DSA_OK;
    optind = 1;

    while (rc == DSA_OK
           && (c = dsa_option("dsa generate", argc, argv, "hn:", options))
              != -1)
    {
        value = 0;

        switch (c) {

        case 'm':
            conf->model = optarg;
            break;

        case 'p':
            conf->prompt = optarg;
            break;

        case 'i':
            conf->ids = optarg;
            break;

        case 'n':
            rc = dsa_generate_number("-n", optarg, 1e9, &value);
            conf->n = (uint32_t) value;
            break;

        case 'g':
            conf->sampling.temperature = 0;
            break;

        case 't':
            rc = dsa_generate_number("--temperature", optarg, 100, &value);
            conf->sampling.temperature = (float) value;
            break;

        case 'P':
            rc = dsa_generate_number("--top-p", optarg, 1, &value);
            conf->sampling.top_p = (float) value;
            break;

        case 's':
            rc = dsa_generate_seed(conf, optarg);
            break;

        case 'S':
            conf->special = 1;
            break;

        case 'e':
            conf->precision = DSA_EXACT;
            break;

        case 'b':
            rc = dsa_backend_named(&conf->backend, optarg);
            break;

        case 'G':
            rc = dsa_gpus_option(&conf->gpus, "generate", optarg);
            break;

        case 'A':
            rc = dsa_attention_option(&conf->attention, "generate", optarg);
            break;

        case 'h':
            (void) printf("%s", dsa_generate_usage);
            return DSA_AGAIN;

        default:
            return DSA_ERROR;
        }
    }

    if (rc == DSA_OK
        && (optind != argc || conf->model == NULL || conf->n == 0
            || conf->sampling.top_p == 0
            || (conf->prompt == NULL) == (conf->ids == NULL)))
    {
        (void) fputs("dsa generate: expected --model, -n with at least 1, and "
                     "either --prompt or --ids; --top-p is above 0, and "
                     "nothing follows the options\n", stderr);
        rc = DSA_ERROR;
    }

    if (rc != DSA_OK) {
        (void) fputs(dsa_generate_usage, stderr);
    }

    return rc;
}


static int
dsa_generate_seed(dsa_generate_conf_t *conf, const char *text)
{
    char  *end;

    errno = 0;
    conf->sampling.seed = strtoull(text, &end, 10);
    conf->seeded = 1;

    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0) {
        (void) fprintf(stderr, "dsa generate: --seed \"%s\" is not a number; "
                       "expected one from 0 to 2^64 - 1\n", text);
        return DSA_ERROR;
    }

    return DSA_OK;
}


static int
dsa_generate_number(const char *name, const char *text, double most,
    double *out)
{
    char  *end;

    *out = strtod(text, &end);

    if (strspn(text, "0123456789.") != strlen(text) || end == text
        || *end != '\0' || *out > most)
    {
        (void) fprintf(stderr, "dsa generate: %s \"%s\" is not a number; "
                       "expected one from 0 to %g\n", name, text, most);
        return DSA_ERROR;
    }

    return DSA_OK;
}


static int
dsa_generate_open(dsa_generate_t *g, const dsa_generate_conf_t *conf,
    dsa_err_t *err)
{
    int                   rc;
    char                  path[PATH_MAX];
    uint32_t              i;
    uint64_t              total;
    dsa_model_config_t    config;
    dsa_sched_conf_t      sched;
    dsa_backend_conf_t    backend;

    static const dsa_sched_handler_t  handler = {
        dsa_generate_tokens,
        dsa_generate_done,
        NULL
    };

    if (dsa_model_config_read(&config, conf->model, err) != DSA_OK
        || dsa_generation_config_read(&g->defaults, conf->model, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    memset(&backend, 0, sizeof(backend));

    backend.model = conf->model;
    backend.precision = conf->precision;
    backend.gpus = conf->gpus;
    backend.attention = conf->attention;
    backend.max_tokens = DSA_GENERATE_TOKENS;
    backend.max_seqs = 1;
    backend.allowed = config.vocab_size;

    for (i = 0; i < conf->gpus; i++) {
        backend.gpu[i] = i;
    }

    if (conf->ids == NULL) {
        if (dsa_file_path(path, conf->model, dsa_strz("tokenizer.json"), err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }

        g->tokenizer = dsa_tokenizer_open(path, err);

        if (g->tokenizer == NULL) {
            return DSA_ERROR;
        }

        if (dsa_tokenizer_size(g->tokenizer) > config.vocab_size) {
            return dsa_error(err, "%s has ids up to %u; expected ids below "
                             "vocab_size of config.json, %u", path,
                             dsa_tokenizer_size(g->tokenizer) - 1,
                             config.vocab_size);
        }

        backend.allowed = dsa_tokenizer_size(g->tokenizer);
    }

    rc = conf->ids != NULL
         ? dsa_generate_ids(g, conf->ids, config.vocab_size, err)
         : dsa_generate_text(g, conf, &config, err);

    if (rc != DSA_OK) {
        return DSA_ERROR;
    }

    total = (uint64_t) g->tokens.n + conf->n;

    if (total > config.max_position_embeddings) {
        return dsa_error(err, "the prompt has %u tokens, and %u more are over "
                         "the model's context of %u", g->tokens.n, conf->n,
                         config.max_position_embeddings);
    }

    backend.context = (uint32_t) total;

    g->backend = dsa_backend_open(conf->backend, &backend, err);

    if (g->backend == NULL) {
        return DSA_ERROR;
    }

    memset(&sched, 0, sizeof(sched));

    sched.max_running = 1;
    sched.token_budget = DSA_GENERATE_TOKENS;
    sched.context = (uint32_t) total;

    g->sched = dsa_sched_create(g->backend, &sched, &handler, err);

    if (g->sched == NULL) {
        return DSA_ERROR;
    }

    if (dsa_sched_context(g->sched) < total) {
        return dsa_error(err, "the prompt has %u tokens, and %u more do not "
                         "fit the KV cache of %u tokens", g->tokens.n, conf->n,
                         dsa_sched_context(g->sched));
    }

    return DSA_OK;
}


static int
dsa_generate_ids(dsa_generate_t *g, const char *text, uint32_t vocab,
    dsa_err_t *err)
{
    char                *end;
    unsigned long long   id;

    for ( ;; ) {
        text += strspn(text, " ,\t\n[]");

        if (*text == '\0') {
            break;
        }

        errno = 0;
        id = strtoull(text, &end, 10);

        if (*text < '0' || *text > '9' || errno != 0 || id >= vocab) {
            return dsa_error(err, "--ids: \"%.20s\" does not begin with an "
                             "id; expected 0 to %u", text, vocab - 1);
        }

        if (dsa_tokens_push(&g->tokens, (uint32_t) id) != DSA_OK) {
            return dsa_error(err, "out of memory");
        }

        text = end;
    }

    if (g->tokens.n == 0) {
        return dsa_error(err, "--ids is empty; expected at least one id");
    }

    return DSA_OK;
}


static int
dsa_generate_text(dsa_generate_t *g, const dsa_generate_conf_t *conf,
    const dsa_model_config_t *config, dsa_err_t *err)
{
    int                     rc;
    dsa_tokenizer_work_t   *work;

    work = dsa_tokenizer_work_create(g->tokenizer);

    if (work == NULL
        || (!conf->special
            && config->bos_token_id != DSA_MODEL_NO_TOKEN
            && dsa_tokens_push(&g->tokens, config->bos_token_id) != DSA_OK))
    {
        dsa_tokenizer_work_destroy(work);
        return dsa_error(err, "out of memory");
    }

    rc = conf->special
         ? dsa_tokenize_special(g->tokenizer, work, dsa_strz(conf->prompt),
                                config->max_position_embeddings, &g->tokens,
                                err)
         : dsa_tokenize(g->tokenizer, work, dsa_strz(conf->prompt),
                        config->max_position_embeddings, &g->tokens, err);

    dsa_tokenizer_work_destroy(work);

    if (rc == DSA_AGAIN) {
        return dsa_error(err, "the prompt has more than %u tokens",
                         config->max_position_embeddings);
    }

    if (rc == DSA_OK && g->tokens.n == 0) {
        return dsa_error(err, "the prompt is empty");
    }

    return rc;
}


static int
dsa_generate_run(dsa_generate_t *g, const dsa_generate_conf_t *conf,
    dsa_err_t *err)
{
    dsa_sched_request_t  request;

    memset(&request, 0, sizeof(request));

    request.tokens = g->tokens.ids;
    request.n_tokens = g->tokens.n;
    request.max_tokens = conf->n;
    request.weight = 1;
    request.sampling = conf->sampling;
    request.owner = g;

    if (isnan(request.sampling.temperature)) {
        request.sampling.temperature = g->defaults.temperature;
    }

    if (isnan(request.sampling.top_p)) {
        request.sampling.top_p = g->defaults.top_p;
    }

    if (!conf->seeded
        && getrandom(&request.sampling.seed, sizeof(request.sampling.seed), 0)
           != sizeof(request.sampling.seed))
    {
        return dsa_error(err, "getrandom(): %s", strerror(errno));
    }

    if (dsa_sched_add(g->sched, &request, err) == NULL) {
        return DSA_ERROR;
    }

    /* the scheduler owns the tokens now */

    memset(&g->tokens, 0, sizeof(g->tokens));

    while (dsa_sched_busy(g->sched)) {
        if (dsa_sched_step(g->sched, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    (void) putchar('\n');

    if (g->failed || ferror(stdout) || fflush(stdout) != 0) {
        return dsa_error(err, "cannot write the answer");
    }

    return DSA_OK;
}


static int
dsa_generate_tokens(void *owner, const dsa_sample_t *samples, uint32_t n)
{
    uint32_t         i;
    dsa_generate_t  *g;

    g = owner;

    for (i = 0; i < n && !g->failed; i++) {
        if (dsa_generate_token(g, samples[i].token) != DSA_OK) {
            g->failed = 1;
        }
    }

    /* stop when the output cannot be written */

    if (fflush(stdout) != 0) {
        g->failed = 1;
    }

    return g->failed ? DSA_FINISH_CANCELLED : 0;
}


static int
dsa_generate_token(dsa_generate_t *g, uint32_t token)
{
    char       *text;
    size_t      n;
    dsa_str_t   bytes;

    if (g->tokenizer == NULL) {
        (void) printf("%s%u", g->printed ? " " : "", token);
        g->printed = 1;
        return DSA_OK;
    }

    bytes = dsa_token_bytes(g->tokenizer, token);
    text = malloc(3 + 3 * (bytes.len + 4));

    if (text == NULL) {
        return DSA_ERROR;
    }

    n = 0;

    if (dsa_token_is_special(g->tokenizer, token)) {

        /* the name of a control token does not continue a character */

        n = dsa_detokenize_end(&g->detokenizer, text);
    }

    n += dsa_detokenize(&g->detokenizer, bytes, text + n);
    (void) fwrite(text, 1, n, stdout);
    free(text);

    return DSA_OK;
}


static void
dsa_generate_done(void *owner, const dsa_sched_usage_t *usage)
{
    char             text[3];
    size_t           n;
    dsa_generate_t  *g;

    g = owner;
    n = dsa_detokenize_end(&g->detokenizer, text);
    (void) fwrite(text, 1, n, stdout);
}
