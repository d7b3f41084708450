
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "engine/checkpoint/generation_config.h"
#include "engine/checkpoint/prompts.h"
#include "engine/checkpoint/weights.h"
#include "engine/hosts/door.h"
#include "engine/service/check.h"
#include "engine/service/listen.h"
#include "engine/tokenizer/tokenizer.h"


static int dsa_check_model(const dsa_conf_t *conf, dsa_model_config_t *config,
    dsa_err_t *err);
static int dsa_check_follower(const dsa_conf_t *conf,
    dsa_model_config_t *config, dsa_err_t *err);
static int dsa_check_directory(const dsa_conf_t *conf, dsa_err_t *err);
static int dsa_check_memory(const dsa_conf_t *conf, dsa_err_t *err);
static int dsa_check_tokenizer(const dsa_conf_t *conf,
    const dsa_model_config_t *config, dsa_err_t *err);
static int dsa_check_plan(const dsa_conf_t *conf, dsa_err_t *err);
static void dsa_check_print(const dsa_conf_t *conf, uint32_t replica,
    const char *text);
static int dsa_check_weights(const dsa_conf_t *conf, dsa_err_t *err);
static int dsa_check_sockets(const dsa_conf_t *conf, dsa_err_t *err);


int
dsa_check(const dsa_conf_t *conf, dsa_err_t *err)
{
    dsa_model_config_t       config;
    dsa_generation_config_t  generation;

    if (conf->follow != NULL) {
        return dsa_check_follower(conf, &config, err);
    }

    if (dsa_check_model(conf, &config, err) != DSA_OK
        || dsa_generation_config_read(&generation, conf->model, err) != DSA_OK
        || dsa_check_tokenizer(conf, &config, err) != DSA_OK
        || dsa_check_plan(conf, err) != DSA_OK
        || dsa_check_memory(conf, err) != DSA_OK
        || dsa_check_weights(conf, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_check_sockets(conf, err);
}


/*
 * A host that follows has no tokenizer and no socket.  How it uses its memory
 * depends on what its leader plans.
 */

static int
dsa_check_follower(const dsa_conf_t *conf, dsa_model_config_t *config,
    dsa_err_t *err)
{
    dsa_hosts_door_t  *door;

    if (dsa_check_model(conf, config, err) != DSA_OK
        || dsa_check_weights(conf, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    /* the address is in use while the engine runs with the old file */

    door = dsa_hosts_door_open(conf->follow, &conf->secret, err);

    if (door == NULL && errno != EADDRINUSE) {
        return DSA_ERROR;
    }

    dsa_hosts_door_close(door);

    (void) fprintf(stderr, "dsa-engine: follows the leader that connects to "
                   "%s\n", conf->follow);

    return DSA_OK;
}


int
dsa_check_start(const dsa_conf_t *conf, dsa_err_t *err)
{
    dsa_model_config_t  config;

    if (dsa_check_model(conf, &config, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_check_memory(conf, err);
}


static int
dsa_check_model(const dsa_conf_t *conf, dsa_model_config_t *config,
    dsa_err_t *err)
{
    if (dsa_check_directory(conf, err) != DSA_OK
        || dsa_model_config_read(config, conf->model, err) != DSA_OK
        || dsa_prompts_resolve(&config->prompt, conf->model,
                               conf->prompt_format, err)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (conf->context_length > config->max_position_embeddings) {
        return dsa_error(err, "\"context_length\" is %u, but the model has at "
                         "most %u tokens (\"max_position_embeddings\" of "
                         "%s/config.json); expected at most %u",
                         conf->context_length,
                         config->max_position_embeddings, conf->model,
                         config->max_position_embeddings);
    }

    return DSA_OK;
}


static int
dsa_check_directory(const dsa_conf_t *conf, dsa_err_t *err)
{
    struct stat  st;
    const char  *why;

    why = NULL;

    if (stat(conf->model, &st) == -1) {
        why = strerror(errno);

    } else if (!S_ISDIR(st.st_mode)) {
        why = "not a directory";
    }

    if (why == NULL) {
        return DSA_OK;
    }

    return dsa_error(err, "\"model\" is \"%s\": %s; expected a directory with "
                     "config.json, tokenizer.json and safetensors files",
                     conf->model, why);
}


/*
 * Checks that the machine has the memory for pages.  The null backend has no
 * pages, and GPUs have memory of their own.
 */

static int
dsa_check_memory(const dsa_conf_t *conf, dsa_err_t *err)
{
    uint32_t     ranks;
    uint64_t     memory, kv, host, room;
    const char  *name;

    memory = (uint64_t) sysconf(_SC_PHYS_PAGES)
             * (uint64_t) sysconf(_SC_PAGESIZE);
    ranks = conf->attention == DSA_ATTENTION_DATA ? conf->gpus : 1;

    /* both directives are at most 2^48, and there are few replicas and ranks */

    kv = conf->backend == DSA_BACKEND_CPU
         ? conf->kv_memory * ranks * conf->replicas : 0;
    host = conf->host_memory * conf->replicas;

    if (kv + host <= memory) {
        return DSA_OK;
    }

    if (host > kv) {
        name = "host_memory";
        room = kv < memory ? (memory - kv) / conf->replicas : 0;

    } else {
        name = "kv_memory";
        room = host < memory ? (memory - host) / conf->replicas / ranks : 0;
    }

    return dsa_error(err, "\"%s\" is too large: with it, %u replica%s of %u "
                     "rank%s need%s %.2f GB for pages, but this machine has "
                     "%.2f GB of memory; expected at most %llum",
                     name, conf->replicas, conf->replicas != 1 ? "s" : "",
                     ranks, ranks != 1 ? "s" : "",
                     conf->replicas != 1 ? "" : "s",
                     (double) (kv + host) * 1e-9, (double) memory * 1e-9,
                     (unsigned long long) room >> 20);
}


int
dsa_check_vocabulary(const dsa_conf_t *conf, uint32_t ids, uint32_t vocab,
    dsa_err_t *err)
{
    if (ids > vocab) {
        return dsa_error(err, "%s/tokenizer.json has ids up to %u, but "
                         "vocab_size in config.json is %u; expected the files "
                         "of one model", conf->model, ids - 1, vocab);
    }

    return DSA_OK;
}


static int
dsa_check_tokenizer(const dsa_conf_t *conf, const dsa_model_config_t *config,
    dsa_err_t *err)
{
    int               rc;
    char              path[PATH_MAX];
    dsa_tokenizer_t  *tokenizer;

    if (dsa_file_path(path, conf->model, dsa_strz("tokenizer.json"), err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    tokenizer = dsa_tokenizer_open(path, err);

    if (tokenizer == NULL) {
        return DSA_ERROR;
    }

    rc = dsa_check_vocabulary(conf, dsa_tokenizer_size(tokenizer),
                              config->vocab_size, err);
    dsa_tokenizer_close(tokenizer);

    return rc;
}


/* Prints the memory that each replica would allocate. */

static int
dsa_check_plan(const dsa_conf_t *conf, dsa_err_t *err)
{
    int                  rc;
    uint32_t             i;
    dsa_buf_t            text;
    dsa_backend_conf_t   backend;

    rc = DSA_OK;

    if (conf->followers != 0) {
        (void) fprintf(stderr, "dsa-engine: leads %u other host%s, %u GPUs in "
                       "all; the memory of each host is:\n", conf->followers,
                       conf->followers != 1 ? "s" : "",
                       conf->gpus * (conf->followers + 1));
    }

    for (i = 0; i < conf->replicas && rc == DSA_OK; i++) {
        memset(&text, 0, sizeof(text));
        dsa_conf_backend_of(conf, i, &backend);

        rc = dsa_backend_plan(conf->backend, &backend, &text, err);
        dsa_buf_add(&text, "", 1);

        if (text.failed) {
            dsa_buf_free(&text);
            return dsa_error(err, "out of memory");
        }

        dsa_check_print(conf, i, text.data);
        dsa_buf_free(&text);
    }

    return rc;
}


static void
dsa_check_print(const dsa_conf_t *conf, uint32_t replica, const char *text)
{
    const char  *line, *next;

    for (line = text; *line != '\0'; line = next) {
        next = strchr(line, '\n') + 1;

        (void) fprintf(stderr, "dsa-engine: ");

        if (conf->replicas > 1) {
            (void) fprintf(stderr, "replica %u: ", replica);
        }

        (void) fprintf(stderr, "%.*s", (int) (next - line), line);
    }
}


static int
dsa_check_weights(const dsa_conf_t *conf, dsa_err_t *err)
{
    dsa_weights_t  *weights;

    if (conf->backend == DSA_BACKEND_NULL || conf->random) {
        return DSA_OK;
    }

    weights = dsa_weights_open_unread(conf->model, err);

    if (weights == NULL) {
        return DSA_ERROR;
    }

    dsa_weights_close(weights);

    return DSA_OK;
}


static int
dsa_check_sockets(const dsa_conf_t *conf, dsa_err_t *err)
{
    char      path[sizeof(((struct sockaddr_un *) 0)->sun_path)];
    uint32_t  i;

    for (i = 0; i < conf->replicas; i++) {
        if (dsa_conf_socket(conf, i, path, sizeof(path)) != DSA_OK) {
            return dsa_error(err, "%s: the path is too long", conf->listen);
        }

        if (dsa_listen_check(path, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}
