
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "engine/link_hello.h"
#include "engine/service/conf_parts.h"


#define DSA_CONF_DAY        (24 * 3600 * 1000ULL)   /* ms */


typedef struct {
    const char         *name;
    dsa_conf_set_pt     set;
    unsigned            min_args;
    unsigned            max_args;
    size_t              offset;
    uint64_t            min;
    uint64_t            max;
} dsa_directive_t;


static int dsa_conf_directive(dsa_conf_reader_t *r, unsigned *seen);
static int dsa_conf_unknown(dsa_conf_reader_t *r);
static int dsa_conf_finish(dsa_conf_reader_t *r);
static int dsa_conf_tiers(dsa_conf_reader_t *r);
static int dsa_conf_shares(dsa_conf_reader_t *r);
static uint32_t dsa_conf_ranks(const dsa_conf_t *conf);
static int dsa_conf_batch(dsa_conf_reader_t *r);
static int dsa_conf_name(dsa_conf_reader_t *r);
static int dsa_conf_requests(dsa_conf_reader_t *r);


#define DSA_CONF_OFFSET(field)  offsetof(dsa_conf_t, field)

/*
 * The most drafts with "speculate auto" and one GPU: the logits of each take
 * memory of the GPU, and more than 5 are seldom accepted.  Several GPUs have
 * none unless their number is configured, because with drafts they do not share
 * out long prompts.
 */
#define DSA_CONF_CUDA_DRAFTS    5


static const dsa_directive_t  dsa_directives[] = {

    { "model", dsa_conf_string, 1, 1, DSA_CONF_OFFSET(model), 0, 0 },

    { "name", dsa_conf_string, 1, 1, DSA_CONF_OFFSET(name), 1,
      sizeof(((dsa_link_hello_t *) 0)->model) - 1 },

    { "prompt_format", dsa_conf_string, 1, 1,
      DSA_CONF_OFFSET(prompt_format), 0, 0 },

    { "listen", dsa_conf_listen, 1, 1, DSA_CONF_OFFSET(listen), 0, 0 },

    { "backend", dsa_conf_backend, 1, 2, DSA_CONF_OFFSET(backend), 0, 0 },

    { "hosts", dsa_conf_hosts, 1, DSA_MAX_GPUS - 1, 0, 0, 0 },

    { "host_secret", dsa_conf_string, 1, 1, DSA_CONF_OFFSET(host_secret),
      0, 0 },

    { "journal", dsa_conf_string, 1, 1, DSA_CONF_OFFSET(journal), 0, 0 },

    { "precision", dsa_conf_precision, 1, 1, DSA_CONF_OFFSET(precision),
      0, 0 },

    { "kv", dsa_conf_kv, 1, 1, DSA_CONF_OFFSET(kv), 0, 0 },

    { "weights", dsa_conf_weights, 1, 1, 0, 0, 0 },

    { "log_level", dsa_conf_log_level, 1, 1, DSA_CONF_OFFSET(log_level),
      0, 0 },

    { "replicas", dsa_conf_number, 1, 1, DSA_CONF_OFFSET(replicas),
      1, DSA_CONF_REPLICAS },

    { "gpus", dsa_conf_gpus, 1, 1, 0, 1, DSA_MAX_GPUS },

    { "attention", dsa_conf_attention, 1, 1, 0, 0, 0 },

    { "speculate", dsa_conf_speculate, 1, 1, DSA_CONF_OFFSET(drafts),
      1, DSA_MAX_OUTPUTS - 1 },

    { "kv_memory", dsa_conf_size, 1, 1, DSA_CONF_OFFSET(kv_memory),
      1, 1ULL << 48 },

    { "max_running", dsa_conf_number, 1, 1, DSA_CONF_OFFSET(max_running),
      1, 1U << 20 },

    { "token_budget", dsa_conf_number, 1, 1, DSA_CONF_OFFSET(token_budget),
      1, 1U << 20 },

    { "max_waiting", dsa_conf_waiting, 1, 2, 0, 0, 1U << 20 },

    { "context_length", dsa_conf_number, 1, 1,
      DSA_CONF_OFFSET(context_length), 2, 1U << 30 },

    { "drain_timeout", dsa_conf_time, 1, 1, DSA_CONF_OFFSET(drain_timeout_ms),
      0, DSA_CONF_DAY },

    { "token_target", dsa_conf_time, 1, 1, DSA_CONF_OFFSET(token_target_ms),
      0, 60 * 1000 },

    { "first_token_target", dsa_conf_time, 1, 1,
      DSA_CONF_OFFSET(first_token_target_ms), 0, 60 * 60 * 1000 },

    { "step_timeout", dsa_conf_time, 1, 1, DSA_CONF_OFFSET(step_timeout_ms),
      0, DSA_CONF_DAY },

    { "start_timeout", dsa_conf_time, 1, 1,
      DSA_CONF_OFFSET(start_timeout_ms), 0, DSA_CONF_DAY },

    { "socket_group", dsa_conf_group, 1, 1, DSA_CONF_OFFSET(socket_group),
      0, 0 },

    { "host_memory", dsa_conf_size, 1, 1, DSA_CONF_OFFSET(host_memory),
      0, 1ULL << 48 },

    { "redis_cache", dsa_conf_redis_cache, 1, DSA_CONF_ARGS - 1, 0, 0, 0 }
};


#define DSA_N_DIRECTIVES  (sizeof(dsa_directives) / sizeof(dsa_directives[0]))


int
dsa_conf_read(dsa_conf_t *conf, const char *path, dsa_err_t *err)
{
    int        rc;
    dsa_buf_t  text;

    memset(conf, 0, sizeof(dsa_conf_t));
    memset(&text, 0, sizeof(dsa_buf_t));

    rc = dsa_file_read(path, DSA_CONF_SIZE, &text, err);

    if (rc == DSA_OK) {
        rc = dsa_conf_parse(conf, path, text.data, text.len, err);
    }

    dsa_buf_free(&text);

    return rc;
}


int
dsa_conf_parse(dsa_conf_t *conf, const char *path, const char *text,
    size_t len, dsa_err_t *err)
{
    int                 rc;
    size_t              i;
    unsigned            seen[DSA_N_DIRECTIVES];
    dsa_conf_reader_t  *r;

    memset(conf, 0, sizeof(dsa_conf_t));
    memset(seen, 0, sizeof(seen));

    r = calloc(1, sizeof(dsa_conf_reader_t));
    if (r == NULL) {
        return dsa_error(err, "%s: out of memory", path);
    }

    conf->rate = 50;
    conf->precision = DSA_SERVED;
    conf->log_level = DSA_LOG_INFO;
    conf->replicas = 1;
    conf->gpus = 1;
    conf->attention = DSA_ATTENTION_DATA;
    conf->adapt_drafts = 1;
    conf->drain_timeout_ms = 30 * 1000;
    conf->token_target_ms = 100;
    conf->first_token_target_ms = 2 * 1000;
    conf->step_timeout_ms = 60 * 1000;
    conf->start_timeout_ms = 30 * 60 * 1000;
    conf->max_waiting = UINT32_MAX;
    conf->max_waiting_per_tenant = UINT32_MAX;
    conf->socket_group = (gid_t) -1;

    r->file = path;
    r->pos = text;
    r->end = text == NULL ? NULL : text + len;
    r->line = 1;
    r->conf = conf;
    r->err = err;

    do {
        rc = dsa_conf_directive(r, seen);
    } while (rc == DSA_AGAIN);

    for (i = 0; i < DSA_N_DIRECTIVES && rc == DSA_OK && conf->follow != NULL;
         i++)
    {
        rc = seen[i] == 0 ? DSA_OK
             : dsa_conf_follows(r, dsa_directives[i].name, seen[i]);
    }

    if (rc == DSA_OK) {
        rc = dsa_conf_finish(r);
    }

    free(r);

    return rc;
}


void
dsa_conf_free(dsa_conf_t *conf)
{
    uint32_t  i;

    free(conf->model);
    free(conf->name);
    free(conf->prompt_format);
    free(conf->listen);
    free(conf->follow);
    free(conf->host_secret);
    free(conf->journal);

    for (i = 0; i < conf->followers; i++) {
        free(conf->host[i]);
    }

    dsa_hosts_secret_clear(&conf->secret);
    dsa_conf_cache_free(&conf->cache);

    memset(conf, 0, sizeof(dsa_conf_t));
}


int
dsa_conf_socket(const dsa_conf_t *conf, uint32_t replica, char *out,
    size_t size)
{
    int          n;
    const char  *mark;

    mark = strstr(conf->listen, "%n");

    if (mark == NULL) {
        n = snprintf(out, size, "%s", conf->listen);

    } else {
        n = snprintf(out, size, "%.*s%u%s", (int) (mark - conf->listen),
                     conf->listen, replica, mark + 2);
    }

    return n > 0 && (size_t) n < size ? DSA_OK : DSA_ERROR;
}


uint32_t
dsa_conf_running(const dsa_conf_t *conf)
{
    return conf->max_running * dsa_conf_ranks(conf);
}


void
dsa_conf_backend_of(const dsa_conf_t *conf, uint32_t replica,
    dsa_backend_conf_t *backend)
{
    uint32_t  i, n;

    memset(backend, 0, sizeof(dsa_backend_conf_t));

    backend->model = conf->model;
    backend->precision = conf->precision;
    backend->kv = conf->kv;
    backend->kv_memory = conf->kv_memory;
    backend->host_memory = conf->host_memory;
    backend->persistent = conf->cache.addresses != 0;
    backend->max_tokens = conf->token_budget;
    backend->max_seqs = conf->max_running;
    backend->rate = conf->rate;
    backend->random = conf->random;
    backend->quantize = conf->quantize;
    backend->context = conf->context_length;
    backend->gpus = conf->gpus;
    backend->hosts.n = conf->followers + 1;
    backend->attention = conf->attention;
    backend->drafts = conf->drafts;
    backend->drafts_if_any = conf->adapt_drafts;

    for (i = 0; i < conf->gpus; i++) {
        n = replica * conf->gpus + i;
        backend->gpu[i] = conf->listed != 0 ? conf->gpu[n] : n;
    }
}


/* Reads a directive.  DSA_AGAIN: one was read; DSA_OK: end of the text. */

static int
dsa_conf_directive(dsa_conf_reader_t *r, unsigned *seen)
{
    int                     rc;
    size_t                  i;
    const dsa_directive_t  *d;

    rc = dsa_conf_words(r);

    if (rc != DSA_AGAIN) {
        return rc;
    }

    for (i = 0; i < DSA_N_DIRECTIVES; i++) {
        d = &dsa_directives[i];

        if (strcmp(r->arg[0], d->name) != 0) {
            continue;
        }

        if (seen[i] != 0) {
            return dsa_conf_fail(r, "\"%s\" is repeated; the first is in line "
                                 "%u", d->name, seen[i]);
        }

        seen[i] = r->start;

        if (r->n - 1 < d->min_args || r->n - 1 > d->max_args) {
            return dsa_conf_fail(r, d->min_args == d->max_args
                                    ? "\"%s\" has %u values; expected %u"
                                    : "\"%s\" has %u values; expected %u to "
                                      "%u",
                                 d->name, r->n - 1, d->min_args, d->max_args);
        }

        rc = d->set(r, d->offset, d->min, d->max);

        return rc == DSA_OK ? DSA_AGAIN : rc;
    }

    return dsa_conf_old(r) == DSA_OK ? dsa_conf_unknown(r) : DSA_ERROR;
}


static int
dsa_conf_unknown(dsa_conf_reader_t *r)
{
    char    names[sizeof(dsa_err_t)];
    size_t  i, n;

    n = 0;
    names[0] = '\0';

    for (i = 0; i < DSA_N_DIRECTIVES && n < sizeof(names); i++) {
        n += (size_t) snprintf(names + n, sizeof(names) - n, "%s%s",
                               i != 0 ? ", " : "", dsa_directives[i].name);
    }

    return dsa_conf_fail(r, "\"%.40s\" is not a directive; expected one of "
                         "%s", r->arg[0], names);
}


/* Sets defaults, and checks combinations of directives. */

static int
dsa_conf_finish(dsa_conf_reader_t *r)
{
    int          cuda;
    dsa_conf_t  *conf;

    conf = r->conf;
    r->start = r->line;

    if (conf->model == NULL) {
        return dsa_conf_fail(r, "\"model\" is missing; expected \"model "
                             "DIRECTORY;\"");
    }

    if (conf->listen == NULL && conf->follow == NULL) {
        return dsa_conf_fail(r, "\"listen\" is missing; expected \"listen "
                             "unix:PATH;\"");
    }

    if (conf->replicas > 1 && strstr(conf->listen, "%n") == NULL) {
        return dsa_conf_fail(r, "\"listen\" has no %%n, the number of the "
                             "replica, but there are %u replicas; expected a "
                             "path such as unix:/run/dsa/v32.%%n.sock",
                             conf->replicas);
    }

    if (conf->journal != NULL && conf->backend != DSA_BACKEND_NULL) {
        return dsa_conf_fail(r, "\"journal\" needs \"backend null\", because "
                             "it is for load tests");
    }

    cuda = conf->backend == DSA_BACKEND_CUDA;

#if !(DSA_CUDA)
    if (cuda) {
        return dsa_conf_fail(r, "\"backend cuda\" is not in this program, "
                             "which was built without nvcc; expected cpu "
                             "or null, or the program of the package "
                             "nginx-dsa-engine-cuda");
    }
#endif

    if (conf->random && !cuda) {
        return dsa_conf_fail(r, "\"weights random\" needs \"backend cuda\"");
    }

    if (conf->quantize && conf->backend == DSA_BACKEND_NULL) {
        return dsa_conf_fail(r, "\"weights fp8\" needs \"backend cpu\" or "
                             "\"backend cuda\"");
    }

    if (conf->precision == DSA_EXACT && cuda) {
        return dsa_conf_fail(r, "\"precision exact\" needs \"backend cpu\"");
    }

    if (conf->kv == DSA_KV_BF16 && !cuda) {
        return dsa_conf_fail(r, "\"kv bf16\" needs \"backend cuda\"; "
                             "expected kv fp8");
    }

    if (conf->kv != DSA_KV_AUTO && conf->precision == DSA_EXACT) {
        return dsa_conf_fail(r, "\"kv\" needs \"precision served\", because "
                             "\"precision exact\" keeps latents in float32");
    }

    if (conf->adapt_drafts) {
        conf->drafts = conf->backend == DSA_BACKEND_CPU ? DSA_MAX_OUTPUTS - 1
                       : cuda && conf->gpus == 1 ? DSA_CONF_CUDA_DRAFTS : 0;

    } else if (conf->drafts != 0 && conf->backend == DSA_BACKEND_NULL) {
        return dsa_conf_fail(r, "\"speculate %u\" needs \"backend cpu\" or "
                             "\"backend cuda\"; expected auto or off",
                             conf->drafts);
    }

    if (dsa_conf_tiers(r) != DSA_OK || dsa_conf_shares(r) != DSA_OK
        || dsa_conf_check_hosts(r) != DSA_OK
        || dsa_conf_batch(r) != DSA_OK || dsa_conf_requests(r) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return conf->name == NULL ? dsa_conf_name(r) : DSA_OK;
}


/* Checks the requirements of the cache in Redis. */

static int
dsa_conf_tiers(dsa_conf_reader_t *r)
{
    dsa_conf_t  *conf;

    conf = r->conf;

    /* a follower has as much host memory as its leader */

    if (conf->cache.addresses == 0 || conf->follow != NULL) {
        return DSA_OK;
    }

    if (conf->host_memory == 0) {
        return dsa_conf_fail(r, "\"redis_cache\" needs \"host_memory\", "
                             "because pages pass through host memory on "
                             "their way to and from Redis; expected a size, "
                             "such as \"host_memory 64g\"");
    }

    return DSA_OK;
}


/* Sets the number of GPUs of each replica. */

static int
dsa_conf_shares(dsa_conf_reader_t *r)
{
    dsa_conf_t  *conf;

    conf = r->conf;

    if (conf->listed == 0) {
        return DSA_OK;
    }

    if (conf->backend != DSA_BACKEND_CUDA) {
        return dsa_conf_fail(r, "a list of \"gpus\" needs \"backend cuda\"; "
                             "expected a count, which the other backends use "
                             "as the number of ranks to test with");
    }

    if (conf->listed % conf->replicas != 0) {
        return dsa_conf_fail(r, "%u \"gpus\" cannot be shared out equally to "
                             "%u replicas; expected a multiple of %u",
                             conf->listed, conf->replicas, conf->replicas);
    }

    conf->gpus = conf->listed / conf->replicas;

    if (conf->gpus > DSA_MAX_GPUS) {
        return dsa_conf_fail(r, "each replica has %u \"gpus\"; expected at "
                             "most %d", conf->gpus, DSA_MAX_GPUS);
    }

    return DSA_OK;
}


/* Returns the number of ranks of a replica (engine/backend.h). */

static uint32_t
dsa_conf_ranks(const dsa_conf_t *conf)
{
    return conf->attention == DSA_ATTENTION_DATA
           ? conf->gpus * (conf->followers + 1) : 1;
}


/*
 * Sets the limits of a step.  max_running is for each rank, and token_budget
 * is divided equally between all ranks.  The default of token_budget is
 * proportional to the number of ranks, so a step has as many tokens on each
 * GPU as a step on one GPU, and takes about as long.
 */

static int
dsa_conf_batch(dsa_conf_reader_t *r)
{
    int          cuda, null;
    uint32_t     ranks, running;
    dsa_conf_t  *conf;

    conf = r->conf;
    ranks = dsa_conf_ranks(conf);
    cuda = conf->backend == DSA_BACKEND_CUDA;
    null = conf->backend == DSA_BACKEND_NULL;

    if (conf->max_running == 0) {
        conf->max_running = null ? 16384 : cuda ? 128 : 64;

        if (conf->token_budget != 0
            && conf->token_budget / ranks < conf->max_running)
        {
            conf->max_running = conf->token_budget / ranks;

            /* a budget of less than a token for each rank is rejected below */

            conf->max_running += conf->max_running == 0;
        }
    }

    if (conf->token_budget == 0) {
        conf->token_budget = null ? 65536 : cuda ? 8192 : 512;

        if (conf->token_budget < conf->max_running) {
            conf->token_budget = conf->max_running;
        }

        conf->token_budget *= ranks;
    }

    running = dsa_conf_running(conf);

    if (conf->token_budget < running) {
        return dsa_conf_fail(r, "\"token_budget\" is %u and \"max_running\" "
                             "is %u%s, but each running sequence needs a "
                             "token in each step; expected a budget of at "
                             "least %u", conf->token_budget,
                             conf->max_running,
                             ranks > 1 ? " on each GPU" : "", running);
    }

    if (conf->max_waiting == UINT32_MAX) {
        conf->max_waiting = null ? 16384 : 1024;
    }

    if (conf->max_waiting_per_tenant == UINT32_MAX) {
        conf->max_waiting_per_tenant = conf->max_waiting;
    }

    return DSA_OK;
}


/* The default name of the model is that of its directory. */

static int
dsa_conf_name(dsa_conf_reader_t *r)
{
    size_t       len;
    const char  *base;
    dsa_conf_t  *conf;

    conf = r->conf;
    len = strlen(conf->model);

    while (len > 1 && conf->model[len - 1] == '/') {
        len--;
    }

    base = conf->model + len;

    while (base > conf->model && base[-1] != '/') {
        base--;
    }

    len -= (size_t) (base - conf->model);

    if (len == 0 || len >= sizeof(((dsa_link_hello_t *) 0)->model)
        || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
    {
        return dsa_conf_fail(r, "the directory of \"model\" cannot be used as "
                             "a name, which has 1 to %zu bytes; add \"name\"",
                             sizeof(((dsa_link_hello_t *) 0)->model) - 1);
    }

    conf->name = strndup(base, len);

    return conf->name != NULL ? DSA_OK : dsa_conf_fail(r, "out of memory");
}


/*
 * Checks that a session of the link has a slot for each request that runs or
 * waits (link_size.h), because one worker may have all of them.
 */

static int
dsa_conf_requests(dsa_conf_reader_t *r)
{
    uint32_t     most, running;
    dsa_conf_t  *conf;

    conf = r->conf;
    running = dsa_conf_running(conf);
    most = running + conf->max_waiting;

    if (most >= DSA_LINK_MAX_SLOTS) {
        return dsa_conf_fail(r, "\"max_running\" (%u%s) and \"max_waiting\" "
                             "(%u) are %u requests together; one worker may "
                             "have all of them, so expected at most %u",
                             running,
                             running != conf->max_running ? " on all GPUs"
                                                          : "",
                             conf->max_waiting, most, DSA_LINK_MAX_SLOTS - 1);
    }

    return DSA_OK;
}
