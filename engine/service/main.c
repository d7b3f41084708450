
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "engine/service/conf.h"
#include "engine/checkpoint/generation_config.h"
#include "engine/checkpoint/config.h"
#include "engine/service/supervisor.h"
#include "engine/tokenizer/tokenizer.h"


static int dsa_engine_test(const dsa_conf_t *conf, const char *file);
static int dsa_engine_plan(const dsa_conf_t *conf, dsa_err_t *err);


static const char  dsa_engine_usage[] =
    "usage: dsa-engine -c engine.conf [-t]\n"
    "\n"
    "  -c FILE   the configuration\n"
    "  -t        only checks it, and the model's config.json,\n"
    "            generation_config.json and tokenizer.json, and prints how\n"
    "            the memory of the GPUs would be used\n";


int
main(int argc, char **argv)
{
    int            c, rc, test;
    dsa_err_t      err;
    dsa_conf_t     conf;
    const char    *file;

    file = NULL;
    test = 0;

    while ((c = getopt(argc, argv, "c:th")) != -1) {
        switch (c) {

        case 'c':
            file = optarg;
            break;

        case 't':
            test = 1;
            break;

        case 'h':
            (void) fputs(dsa_engine_usage, stdout);
            return 0;

        default:
            (void) fputs(dsa_engine_usage, stderr);
            return 2;
        }
    }

    if (file == NULL || optind != argc) {
        (void) fputs(dsa_engine_usage, stderr);
        return 2;
    }

    /* calls return EPIPE when a worker is gone */

    (void) signal(SIGPIPE, SIG_IGN);

    if (dsa_conf_read(&conf, file, &err) != DSA_OK) {
        (void) fprintf(stderr, "dsa-engine: %s\n", err.text);
        dsa_conf_free(&conf);
        return 1;
    }

    dsa_log_level(conf.log_level);

    rc = test ? dsa_engine_test(&conf, file) : dsa_supervisor_run(&conf);

    dsa_conf_free(&conf);

    return rc;
}


static int
dsa_engine_test(const dsa_conf_t *conf, const char *file)
{
    int                      n;
    char                     path[4096];
    dsa_err_t                err;
    dsa_model_config_t       config;
    dsa_tokenizer_t         *tokenizer;
    dsa_generation_config_t  generation;

    n = snprintf(path, sizeof(path), "%s/tokenizer.json", conf->model);

    if (n < 0 || (size_t) n >= sizeof(path)) {
        (void) fprintf(stderr, "dsa-engine: %s: the path is too long\n",
                       conf->model);
        return 1;
    }

    tokenizer = NULL;

    if (dsa_model_config_read(&config, conf->model, &err) == DSA_OK
        && dsa_generation_config_read(&generation, conf->model, &err) == DSA_OK)
    {
        tokenizer = dsa_tokenizer_open(path, &err);
    }

    if (tokenizer == NULL) {
        (void) fprintf(stderr, "dsa-engine: %s\n", err.text);
        return 1;
    }

    dsa_tokenizer_close(tokenizer);

    if (dsa_engine_plan(conf, &err) != DSA_OK) {
        (void) fprintf(stderr, "dsa-engine: %s\n", err.text);
        return 1;
    }

    (void) fprintf(stderr, "dsa-engine: configuration file %s is valid\n",
                   file);

    return 0;
}


/* Prints the memory that each replica would allocate. */

static int
dsa_engine_plan(const dsa_conf_t *conf, dsa_err_t *err)
{
    int                  rc;
    char                *line, *next;
    uint32_t             i;
    dsa_buf_t            text;
    dsa_backend_conf_t   backend;

    rc = DSA_OK;

    for (i = 0; i < conf->replicas && rc == DSA_OK; i++) {
        memset(&text, 0, sizeof(text));
        dsa_conf_backend_of(conf, i, &backend);

        rc = dsa_backend_plan(conf->backend, &backend, &text, err);
        dsa_buf_add(&text, "", 1);

        if (text.failed) {
            dsa_buf_free(&text);
            return dsa_error(err, "out of memory");
        }

        for (line = text.data; *line != '\0'; line = next) {
            next = strchr(line, '\n') + 1;

            (void) fprintf(stderr, "dsa-engine: ");

            if (conf->replicas > 1) {
                (void) fprintf(stderr, "replica %u: ", i);
            }

            (void) fprintf(stderr, "%.*s", (int) (next - line), line);
        }

        dsa_buf_free(&text);
    }

    return rc;
}
