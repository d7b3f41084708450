
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "engine/service/conf_parts.h"
#include "engine/service/fit.h"


#define DSA_FIT_MAX         (1ULL << 48)        /* bytes of a GPU */


static int dsa_fit_format(const dsa_conf_t *conf, dsa_kv_e kv,
    uint64_t memory, dsa_err_t *err);


int
dsa_fit_conf(dsa_conf_t *conf, const char *model, const char *gpus,
    dsa_err_t *err)
{
    char    text[128];
    size_t  len, tail;

    static const char  name[] = "/config.json";

    memset(conf, 0, sizeof(dsa_conf_t));

    if (gpus[0] == '\0' || strspn(gpus, "0123456789") != strlen(gpus)
        || strlen(gpus) > 9)
    {
        return dsa_error(err, "--gpus is \"%s\"; expected a number from 1 to "
                         "%d", gpus, DSA_MAX_GPUS);
    }

    /* the text has no paths, which may contain any characters */

    (void) snprintf(text, sizeof(text), "model .; name model; listen unix:.; "
                    "backend cuda; gpus %s;", gpus);

    if (dsa_conf_parse(conf, "--gpus", text, strlen(text), err) != DSA_OK) {
        return DSA_ERROR;
    }

    len = strlen(model);
    tail = sizeof(name) - 1;

    free(conf->model);

    if (strcmp(model, name + 1) == 0) {
        conf->model = strdup(".");

    } else if (len > tail && strcmp(model + len - tail, name) == 0) {
        conf->model = strndup(model, len - tail);

    } else {
        conf->model = strdup(model);
    }

    return conf->model != NULL ? DSA_OK : dsa_error(err, "out of memory");
}


int
dsa_fit(const dsa_conf_t *conf, const char *size, dsa_err_t *err)
{
    int                 fits, bf16, fp8;
    uint64_t            memory;
    dsa_model_config_t  config;

    if (conf->backend != DSA_BACKEND_CUDA) {
        return dsa_error(err, "--gpu-memory needs \"backend cuda\"");
    }

    if (dsa_conf_bytes(size, &memory) != DSA_OK || memory == 0
        || memory > DSA_FIT_MAX)
    {
        return dsa_error(err, "--gpu-memory is \"%s\"; expected a size from 1 "
                         "to %llu bytes (units k, m, g)", size,
                         (unsigned long long) DSA_FIT_MAX);
    }

    if (dsa_model_config_read(&config, conf->model, err) != DSA_OK) {
        return DSA_ERROR;
    }

    bf16 = conf->kv == DSA_KV_BF16
           || (conf->kv == DSA_KV_AUTO && dsa_model_config_dense(&config));
    fp8 = conf->kv != DSA_KV_BF16;

    fits = bf16 && dsa_fit_format(conf, DSA_KV_BF16, memory, err) == DSA_OK;
    fits |= fp8 && dsa_fit_format(conf, DSA_KV_FP8, memory, err) == DSA_OK;

    if (fits) {
        return DSA_OK;
    }

    return dsa_error(err, "%s cannot be served by %u such GPU%s", conf->model,
                     conf->gpus, conf->gpus != 1 ? "s" : "");
}


/* Prints the plan with one format of the KV cache, or the reason against it. */

static int
dsa_fit_format(const dsa_conf_t *conf, dsa_kv_e kv, uint64_t memory,
    dsa_err_t *err)
{
    int                  rc;
    dsa_buf_t            text;
    const char          *line, *next, *name;
    dsa_backend_conf_t   backend;

    memset(&text, 0, sizeof(text));
    dsa_conf_backend_of(conf, 0, &backend);

    backend.kv = kv;
    backend.gpu_memory = memory;
    backend.host_memory = 0;
    name = kv == DSA_KV_BF16 ? "bf16" : "fp8";

    rc = dsa_backend_plan(conf->backend, &backend, &text, err);

    if (rc != DSA_OK) {
        dsa_buf_free(&text);
        (void) printf("kv %s: not possible: %s\n", name, err->text);
        return DSA_ERROR;
    }

    dsa_buf_add(&text, "", 1);

    if (text.failed) {
        dsa_buf_free(&text);
        return dsa_error(err, "out of memory");
    }

    for (line = text.data; *line != '\0'; line = next) {
        next = strchr(line, '\n') + 1;
        (void) printf("kv %s: %.*s", name, (int) (next - line), line);
    }

    dsa_buf_free(&text);

    return DSA_OK;
}
