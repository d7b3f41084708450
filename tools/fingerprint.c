
/*
 * Copyright (C) The nginx-dsa authors
 *
 * dsa fingerprint: the full fingerprint of a checkpoint.  Equal ones mean that
 * two copies have the same bytes in config.json, in the files that describe the
 * formats of weights if it does not, and in all weights.
 */


#include <stdio.h>

#include "base/options.h"
#include "engine/checkpoint/scan.h"
#include "tools/dsa.h"


static const char  dsa_fingerprint_usage[] =
    "usage: dsa fingerprint --model DIR\n"
    "\n"
    "Reads config.json, the files that describe the formats of weights if\n"
    "it does not, and every byte of the weights, and prints the fingerprint\n"
    "that \"backend cuda\" computes when it loads them.\n";


static int dsa_fingerprint_options(const char **model, int argc, char **argv);


int
dsa_cmd_fingerprint(int argc, char **argv)
{
    int             rc;
    char            fingerprint[DSA_FULL_LEN + 1];
    dsa_err_t       err;
    const char     *model;
    dsa_weights_t  *w;

    rc = dsa_fingerprint_options(&model, argc, argv);

    if (rc != -1) {
        return rc;
    }

    w = dsa_weights_open_unread(model, &err);

    rc = w != NULL ? dsa_scan(w, NULL, 0, fingerprint, &err) : DSA_ERROR;

    dsa_weights_close(w);

    if (rc != DSA_OK) {
        (void) fprintf(stderr, "dsa fingerprint: %s\n", err.text);
        return 1;
    }

    return printf("%s\n", fingerprint) > 0 && fflush(stdout) == 0 ? 0 : 1;
}


/* Returns -1 when the command is to run, else the exit status. */

static int
dsa_fingerprint_options(const char **model, int argc, char **argv)
{
    int  opt;

    static const struct option  options[] = {
        { "model", required_argument, NULL, 'm' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    *model = NULL;

    for ( ;; ) {
        opt = dsa_option("dsa fingerprint", argc, argv, "h", options);

        if (opt == -1) {
            break;
        }

        switch (opt) {

        case 'm':
            *model = optarg;
            break;

        case 'h':
            return fputs(dsa_fingerprint_usage, stdout) != EOF ? 0 : 1;

        default:
            return 2;
        }
    }

    if (*model == NULL || optind != argc) {
        (void) fputs(dsa_fingerprint_usage, stderr);
        return 2;
    }

    return -1;
}
