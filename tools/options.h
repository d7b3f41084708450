
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOOLS_OPTIONS_H_INCLUDED_
#define _DSA_TOOLS_OPTIONS_H_INCLUDED_


#include "base/error.h"
#include "base/options.h"


/*
 * The options of a command.  The table is that of getopt_long().  Its numbers
 * begin at DSA_OPTIONS_FIRST, because smaller ones are those of letters.  It
 * ends with DSA_OPTIONS_END, which adds --help.
 */

#define DSA_OPTIONS_FIRST  256

#define DSA_OPTIONS_END                                                       \
    { "help", no_argument, NULL, 'h' },                                       \
    { NULL, 0, NULL, 0 }

typedef struct {
    const char           *command;      /* in errors: "usage", "key create" */
    const char           *usage;        /* what --help prints */
    const struct option  *table;

    /*
     * Stores an option.  opt is its number in the table; value is a string of
     * argv, or NULL if the option has none.  DSA_ERROR with what would be
     * accepted.
     */
    int                 (*set)(void *data, int opt, const char *value,
                               dsa_err_t *err);

    /*
     * Is called after the last option with the n arguments that are not
     * options.  DSA_ERROR if one of them is invalid or if something is missing.
     */
    int                 (*complete)(void *data, int n, char **args,
                                    dsa_err_t *err);
} dsa_options_t;


/*
 * Reads the arguments behind argv[0] into data with the functions of o.
 * Returns -1 if the command is to run.  Otherwise returns its exit status: 0
 * after the usage on stdout, 1 if that could not be written, 2 after an error
 * on stderr.  An option that is not in the table is named without its value,
 * which can be a secret.
 */
int dsa_options_read(const dsa_options_t *o, void *data, int argc,
    char **argv);


#endif /* _DSA_TOOLS_OPTIONS_H_INCLUDED_ */
