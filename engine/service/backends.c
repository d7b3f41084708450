
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "engine/backend.h"


/*
 * A change of what a page contains must change this name, because pages of
 * the old and the new layout would otherwise be taken for the same.
 */

#define DSA_BACKEND_LAYOUT  "layout 1"


int
dsa_backend_named(dsa_backend_e *kind, const char *name)
{
    size_t  i;

    static const char  *names[] = { "cpu", "cuda", "null" };

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            *kind = (dsa_backend_e) i;
            return DSA_OK;
        }
    }

    return DSA_ERROR;
}


dsa_backend_t *
dsa_backend_open(dsa_backend_e kind, const dsa_backend_conf_t *conf,
    dsa_err_t *err)
{
    switch (kind) {

    case DSA_BACKEND_CPU:
        return dsa_backend_cpu_open(conf, err);

    case DSA_BACKEND_NULL:
        return dsa_backend_null_open(conf, err);

    case DSA_BACKEND_CUDA:
#if (DSA_CUDA)
        return dsa_backend_cuda_open(conf, err);
#else
        break;
#endif
    }

    (void) dsa_error(err, "backend \"cuda\" is not available because this "
                     "program was built without nvcc; expected \"cpu\" or "
                     "\"null\"");

    return NULL;
}


int
dsa_backend_plan(dsa_backend_e kind, const dsa_backend_conf_t *conf,
    dsa_buf_t *text, dsa_err_t *err)
{
    dsa_shard_t         shard;
    dsa_model_config_t  config;

#if (DSA_CUDA)
    if (kind == DSA_BACKEND_CUDA) {
        return dsa_backend_cuda_plan(conf, text, err);
    }
#endif

    if (kind != DSA_BACKEND_CPU) {

        /* "backend null" splits nothing */

        return DSA_OK;
    }

    if (dsa_model_config_read(&config, conf->model, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_shard_init(&shard, &config, 0, conf->gpus, conf->attention,
                          err);
}


void
dsa_backend_fingerprint(dsa_backend_t *b, const char *model,
    dsa_precision_e precision)
{
    int             n;
    char            text[128];
    XXH128_hash_t   h;

    n = snprintf(text, sizeof(text), "%s %s %s", model,
                 precision == DSA_SERVED ? "served" : "exact",
                 DSA_BACKEND_LAYOUT);

    h = XXH3_128bits(text, (size_t) n);

    (void) snprintf(b->fingerprint, sizeof(b->fingerprint), "%016llx%016llx",
                    (unsigned long long) h.high64,
                    (unsigned long long) h.low64);
}
