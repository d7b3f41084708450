
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include "options.h"


#define DSA_OPTION_LETTERS  32


static size_t dsa_nearest_distance(const char *a, size_t n, const char *b,
    size_t m);
static size_t dsa_nearest_min(size_t a, size_t b);


void
dsa_nearest_init(dsa_nearest_t *nearest, const char *word, size_t len)
{
    nearest->word = word;
    nearest->len = len;
    nearest->name = NULL;
    nearest->distance = 1 + (len < 3 ? 0 : len < 9 ? len / 3 : 3);
}


void
dsa_nearest_try(dsa_nearest_t *nearest, const char *name)
{
    size_t  distance;

    if (nearest->len > DSA_NEAREST_MAX || strlen(name) > DSA_NEAREST_MAX) {
        return;
    }

    distance = dsa_nearest_distance(nearest->word, nearest->len, name,
                                    strlen(name));

    if (nearest->len >= 3 && strncmp(name, nearest->word, nearest->len) == 0) {
        distance = dsa_nearest_min(distance, 1);
    }

    if (distance < nearest->distance) {
        nearest->distance = distance;
        nearest->name = name;
    }
}


/* row[i % 3][j] is the distance of the first i letters of a and j of b. */

static size_t
dsa_nearest_distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t  i, j, d, row[3][DSA_NEAREST_MAX + 1];

    for (j = 0; j <= m; j++) {
        row[0][j] = j;
    }

    for (i = 1; i <= n; i++) {
        row[i % 3][0] = i;

        for (j = 1; j <= m; j++) {
            d = row[(i - 1) % 3][j - 1] + (a[i - 1] != b[j - 1]);
            d = dsa_nearest_min(d, row[(i - 1) % 3][j] + 1);
            d = dsa_nearest_min(d, row[i % 3][j - 1] + 1);

            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
            {
                d = dsa_nearest_min(d, row[(i - 2) % 3][j - 2] + 1);
            }

            row[i % 3][j] = d;
        }
    }

    return row[n % 3][m];
}


static size_t
dsa_nearest_min(size_t a, size_t b)
{
    return a < b ? a : b;
}


int
dsa_option(const char *program, int argc, char **argv, const char *letters,
    const struct option *table)
{
    int        opt;
    char       all[DSA_OPTION_LETTERS];
    dsa_err_t  err;

    /* with the colon, an option without its value is ':' and not '?' */

    (void) snprintf(all, sizeof(all), ":%s", letters);

    opterr = 0;
    opt = getopt_long(argc, argv, all, table, NULL);

    if (opt == ':' || opt == '?') {
        (void) dsa_option_error(&err, program, opt, argv, table);
        (void) fprintf(stderr, "%s: %s\n", program, err.text);
        return '?';
    }

    return opt;
}


/*
 * optopt is the number of an option of the table, a letter, or 0 for an unknown
 * long option.  A number can be the same as a letter.  After a letter optind
 * can still be that of the argument before; that one was correct, so it is not
 * one whose value is missing or too much.
 */

int
dsa_option_error(dsa_err_t *err, const char *program, int opt, char **argv,
    const struct option *table)
{
    int                   is_long;
    size_t                len;
    const char           *arg;
    dsa_nearest_t         nearest;
    const struct option  *known;

    arg = argv[optind - 1];
    len = strcspn(arg, "=");
    is_long = strncmp(arg, "--", 2) == 0 && (opt == ':' || arg[len] == '=');

    for (known = table; known->name != NULL; known++) {
        if (is_long && known->val == optopt) {
            return dsa_error(err, "--%s %s; \"%s --help\" prints the options",
                             known->name,
                             opt == ':' ? "has no value; expected one"
                                        : "has a value; expected none",
                             program);
        }
    }

    if (optopt != 0) {
        return dsa_error(err, "\"-%c\" %s; \"%s --help\" prints the options",
                         optopt,
                         opt == ':' ? "has no value; expected one"
                                    : "is not an option", program);
    }

    dsa_nearest_init(&nearest, arg + 2, len - 2);

    for (known = table; known->name != NULL; known++) {
        dsa_nearest_try(&nearest, known->name);
    }

    if (nearest.name != NULL) {
        return dsa_error(err, "\"%.*s\" is not an option; the nearest one is "
                         "\"--%s\"", (int) len, arg, nearest.name);
    }

    return dsa_error(err, "\"%.*s\" is not an option; \"%s --help\" prints the "
                     "options", (int) len, arg, program);
}
