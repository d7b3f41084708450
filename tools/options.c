
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include "tools/options.h"


#define DSA_OPTIONS_PROGRAM  64     /* bytes of "dsa COMMAND" */


static int dsa_options_each(const dsa_options_t *o, void *data, int argc,
    char **argv, dsa_err_t *err);


int
dsa_options_read(const dsa_options_t *o, void *data, int argc, char **argv)
{
    int        rc;
    dsa_err_t  err;

    rc = dsa_options_each(o, data, argc, argv, &err);

    if (rc == DSA_AGAIN) {
        return fputs(o->usage, stdout) != EOF && fflush(stdout) == 0 ? 0 : 1;
    }

    if (rc == DSA_OK) {
        rc = o->complete(data, argc - optind, argv + optind, &err);
    }

    if (rc != DSA_OK) {
        (void) fprintf(stderr, "dsa %s: %s\n", o->command, err.text);
        return 2;
    }

    return -1;
}


/* DSA_AGAIN: --help was given. */

static int
dsa_options_each(const dsa_options_t *o, void *data, int argc, char **argv,
    dsa_err_t *err)
{
    int   opt;
    char  program[DSA_OPTIONS_PROGRAM];

    (void) snprintf(program, sizeof(program), "dsa %s", o->command);

    opterr = 0;

    /* with the colon, an option without its value is ':' and not '?' */

    while ((opt = getopt_long(argc, argv, ":h", o->table, NULL)) != -1) {

        if (opt == 'h') {
            return DSA_AGAIN;
        }

        if (opt == ':' || opt == '?') {
            return dsa_option_error(err, program, opt, argv, o->table);
        }

        if (o->set(data, opt, optarg, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}
