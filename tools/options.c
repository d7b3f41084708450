
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include "tools/options.h"


static int dsa_options_each(const dsa_options_t *o, void *data, int argc,
    char **argv, dsa_err_t *err);
static int dsa_options_wrong(const dsa_options_t *o, int opt, const char *arg,
    dsa_err_t *err);


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
    int  opt;

    opterr = 0;

    /* with the colon, an option without its value is ':' and not '?' */

    while ((opt = getopt_long(argc, argv, ":h", o->table, NULL)) != -1) {

        if (opt == 'h') {
            return DSA_AGAIN;
        }

        if (opt == ':' || opt == '?') {
            return dsa_options_wrong(o, opt, argv[optind - 1], err);
        }

        if (o->set(data, opt, optarg, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/*
 * optopt is the number of an option of the table, an unknown letter, or 0 if
 * arg is an unknown long option.  After a letter optind can still be that of
 * the argument before, so that arg has no meaning then.
 */

static int
dsa_options_wrong(const dsa_options_t *o, int opt, const char *arg,
    dsa_err_t *err)
{
    const struct option  *known;

    for (known = o->table; known->name != NULL; known++) {
        if (known->val == optopt) {
            return dsa_error(err, "--%s %s; \"dsa %s --help\" prints the "
                             "options", known->name,
                             opt == ':' ? "has no value; expected one"
                                        : "has a value; expected none",
                             o->command);
        }
    }

    if (optopt != 0) {
        return dsa_error(err, "\"-%c\" is not an option; \"dsa %s --help\" "
                         "prints the options", optopt, o->command);
    }

    return dsa_error(err, "\"%.*s\" is not an option; \"dsa %s --help\" prints "
                     "the options", (int) strcspn(arg, "="), arg, o->command);
}
