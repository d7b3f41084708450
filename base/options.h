
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BASE_OPTIONS_H_INCLUDED_
#define _DSA_BASE_OPTIONS_H_INCLUDED_


#include <getopt.h>
#include <stddef.h>

#include "base/error.h"


/* The words of a command line: options, and what a wrong word was meant for. */


/*
 * Finds the name that is nearest to a word.  The distance is the number of
 * letters that are missing, wrong, too many, or swapped with their neighbour;
 * a name at more than a third of the word, or more than three letters, is not
 * near.  A name that begins with the word, of three letters or more, is near.
 */

#define DSA_NEAREST_MAX  32         /* letters; a longer word has no nearest */

typedef struct {
    const char   *word;
    size_t        len;
    const char   *name;             /* NULL: no name is near */
    size_t        distance;         /* of name; without it, the first that is
                                       too far */
} dsa_nearest_t;

void dsa_nearest_init(dsa_nearest_t *nearest, const char *word, size_t len);
void dsa_nearest_try(dsa_nearest_t *nearest, const char *name);


/*
 * Returns the next option as getopt_long() does, or '?' after one line on
 * stderr about a wrong one.  program: as in "dsa key create".  letters: the
 * options of one letter, without ":" at the beginning.
 */
int dsa_option(const char *program, int argc, char **argv,
    const char *letters, const struct option *table);

/*
 * Describes the option that getopt_long() returned as opt, ':' or '?'.  It is
 * named without its value, which can be a secret.  Returns DSA_ERROR.
 */
int dsa_option_error(dsa_err_t *err, const char *program, int opt,
    char **argv, const struct option *table);


#endif /* _DSA_BASE_OPTIONS_H_INCLUDED_ */
