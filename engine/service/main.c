
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <signal.h>
#include <stdio.h>

#include "base/log.h"
#include "base/options.h"
#include "base/version.h"
#include "engine/service/check.h"
#include "engine/service/fit.h"
#include "engine/service/supervisor.h"


static const char  dsa_engine_usage[] =
    "usage: dsa-engine -c FILE [-t]\n"
    "       dsa-engine -t --gpu-memory SIZE --gpus N MODEL\n"
    "       dsa-engine -t --gpu-memory SIZE -c FILE\n"
    "       dsa-engine --version\n"
    "\n"
    "  -c FILE     the configuration\n"
    "  -t          only checks it, with the files of the model (of the\n"
    "              weights only names, shapes and sizes), and prints how the\n"
    "              memory of the GPUs would be used\n"
    "  --gpu-memory SIZE\n"
    "              only prints whether the model fits GPUs of this size, such\n"
    "              as 139g, and how many tokens they hold for each format of\n"
    "              the KV cache.  Of the model only config.json is read\n"
    "  --gpus N    the number of GPUs, for a MODEL without a configuration:\n"
    "              its directory or its config.json\n"
    "  --help      prints this\n"
    "  --version   prints the version\n";


static int dsa_engine_fit(const char *file, const char *gpus,
    const char *memory, const char *model);


int
main(int argc, char **argv)
{
    int            c, rc, test;
    dsa_err_t      err;
    dsa_conf_t     conf;
    const char    *file, *gpus, *memory;

    static const struct option  options[] = {
        { "gpu-memory", required_argument, NULL, 'm' },
        { "gpus", required_argument, NULL, 'g' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'V' },
        { NULL, 0, NULL, 0 }
    };

    file = NULL;
    gpus = NULL;
    memory = NULL;
    test = 0;

    for ( ;; ) {
        c = dsa_option("dsa-engine", argc, argv, "c:th", options);

        if (c == -1) {
            break;
        }

        switch (c) {

        case 'c':
            file = optarg;
            break;

        case 't':
            test = 1;
            break;

        case 'm':
            memory = optarg;
            break;

        case 'g':
            gpus = optarg;
            break;

        case 'h':
            (void) fputs(dsa_engine_usage, stdout);
            return 0;

        case 'V':
            (void) printf("dsa-engine %s\n", DSA_VERSION);
            return 0;

        default:
            return 2;
        }
    }

    /* a configuration, or a model without one */

    if ((file != NULL) == (gpus != NULL)
        || argc - optind != (gpus != NULL ? 1 : 0)
        || (gpus != NULL && memory == NULL) || (memory != NULL && !test))
    {
        (void) fputs(dsa_engine_usage, stderr);
        return 2;
    }

    if (memory != NULL) {
        return dsa_engine_fit(file, gpus, memory, argv[optind]);
    }

    /* calls return EPIPE when a worker is gone */

    (void) signal(SIGPIPE, SIG_IGN);

    rc = dsa_conf_read(&conf, file, &err);

    if (rc == DSA_OK) {
        rc = test ? dsa_check(&conf, &err)
                  : dsa_check_start(&conf, &err);
    }

    if (rc != DSA_OK) {
        (void) fprintf(stderr, "dsa-engine: %s\n", err.text);
        dsa_conf_free(&conf);
        return 1;
    }

    if (test) {
        (void) fprintf(stderr, "dsa-engine: configuration file %s is valid\n",
                       file);

    } else {
        dsa_log_level(conf.log_level);
        rc = dsa_supervisor_run(&conf);
    }

    dsa_conf_free(&conf);

    return rc;
}


/* Checks whether a model fits: that of a configuration, or another one. */

static int
dsa_engine_fit(const char *file, const char *gpus, const char *memory,
    const char *model)
{
    int         rc;
    dsa_err_t   err;
    dsa_conf_t  conf;

    rc = file != NULL ? dsa_conf_read(&conf, file, &err)
                      : dsa_fit_conf(&conf, model, gpus, &err);

    if (rc == DSA_OK) {
        rc = dsa_fit(&conf, memory, &err);
    }

    if (rc != DSA_OK) {
        (void) fprintf(stderr, "dsa-engine: %s\n", err.text);
    }

    dsa_conf_free(&conf);

    return rc == DSA_OK ? 0 : 1;
}
