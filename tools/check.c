
/*
 * Copyright (C) The nginx-dsa authors
 *
 * dsa check: a host's configurations of nginx and of engines, together and with
 * what they need.
 */


#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "tools/check.h"
#include "tools/dsa.h"
#include "tools/options.h"


#define DSA_CHECK_ARENA   (64 * 1024 * 1024)
#define DSA_CHECK_FILES   "/etc/dsa/*.conf"
#define DSA_CHECK_RATE    1000000           /* requests/s, at most */
#define DSA_CHECK_TEXT    8192              /* bytes of a line, at most */


static const char  dsa_check_usage[] =
    "usage: dsa check [--nginx FILE] [--engine FILE]... [--rate N]\n"
    "\n"
    "Checks nginx.conf and the configurations of this host's engines\n"
    "together, with their sockets, files, disks and Redis.  Prints a line for\n"
    "each check: ok, warn (it works, and should be changed) or FAIL, and what\n"
    "to do.  Run it as root, as nginx and the engines are started.\n"
    "\n"
    "  --nginx FILE    nginx.conf; by default the one that nginx uses\n"
    "  --engine FILE   the configuration of an engine; may be repeated; by\n"
    "                  default " DSA_CHECK_FILES "\n"
    "  --rate N        the requests per second that the host shall serve: is\n"
    "                  the queue of dsa_redis large enough, and Redis?\n"
    "\n"
    "The exit status is 0 without a FAIL, and otherwise 1.\n";


enum {
    DSA_CHECK_OPT_NGINX = DSA_OPTIONS_FIRST,
    DSA_CHECK_OPT_ENGINE,
    DSA_CHECK_OPT_RATE
};


static int dsa_check_option(void *data, int opt, const char *value,
    dsa_err_t *err);
static int dsa_check_complete(void *data, int n, char **args, dsa_err_t *err);
static void dsa_check_default(dsa_check_t *c);


static const struct option  dsa_check_table[] = {
    { "nginx", required_argument, NULL, DSA_CHECK_OPT_NGINX },
    { "engine", required_argument, NULL, DSA_CHECK_OPT_ENGINE },
    { "rate", required_argument, NULL, DSA_CHECK_OPT_RATE },
    DSA_OPTIONS_END
};

static const dsa_options_t  dsa_check_options = {
    "check", dsa_check_usage, dsa_check_table, dsa_check_option,
    dsa_check_complete
};


int
dsa_cmd_check(int argc, char **argv)
{
    int           rc;
    dsa_check_t  *c;

    c = calloc(1, sizeof(dsa_check_t));

    if (c != NULL) {
        c->arena = dsa_arena_create(DSA_CHECK_ARENA);
    }

    if (c == NULL || c->arena == NULL) {
        (void) fputs("dsa check: out of memory\n", stderr);
        free(c);
        return 1;
    }

    rc = dsa_options_read(&dsa_check_options, c, argc, argv);

    if (rc == -1) {
        dsa_check_default(c);

        dsa_check_nginx(c);
        dsa_check_engines(c);
        dsa_check_sockets(c);
        dsa_check_shared(c);
        dsa_check_queue(c);
        dsa_check_redis(c);

        (void) printf("%u failed, %u warnings\n", c->failed, c->warned);

        rc = c->failed != 0 || fflush(stdout) != 0;
    }

    dsa_arena_destroy(c->arena);
    free(c);

    return rc;
}


static int
dsa_check_option(void *data, int opt, const char *value, dsa_err_t *err)
{
    char           *end;
    dsa_check_t    *c = data;
    unsigned long   n;

    switch (opt) {

    case DSA_CHECK_OPT_NGINX:
        c->nginx = value;
        return DSA_OK;

    case DSA_CHECK_OPT_ENGINE:
        if (c->n_engines == DSA_CHECK_ENGINES) {
            return dsa_error(err, "more than %d engines", DSA_CHECK_ENGINES);
        }

        c->engine[c->n_engines++].file = value;
        return DSA_OK;

    default: /* DSA_CHECK_OPT_RATE */
        n = strtoul(value, &end, 10);

        if (*value < '0' || *value > '9' || *end != '\0' || n == 0
            || n > DSA_CHECK_RATE)
        {
            return dsa_error(err, "--rate \"%s\" is not a number of requests "
                             "per second; expected 1 to %d", value,
                             DSA_CHECK_RATE);
        }

        c->rate = n;
        return DSA_OK;
    }
}


static int
dsa_check_complete(void *data, int n, char **args, dsa_err_t *err)
{
    return n == 0 ? DSA_OK
                  : dsa_error(err, "unexpected argument \"%s\"", args[0]);
}


/* The configurations of the unit dsa-engine@NAME, if none are given. */

static void
dsa_check_default(dsa_check_t *c)
{
    size_t   i;
    glob_t   found;

    if (c->n_engines != 0 || glob(DSA_CHECK_FILES, 0, NULL, &found) != 0) {
        return;
    }

    for (i = 0; i < found.gl_pathc && c->n_engines < DSA_CHECK_ENGINES; i++) {
        c->engine[c->n_engines].file =
            dsa_arena_dup(c->arena, dsa_strz(found.gl_pathv[i]));
        c->n_engines += c->engine[c->n_engines].file != NULL;
    }

    globfree(&found);
}


void
dsa_check_line(dsa_check_t *c, dsa_check_e kind, const char *what,
    const char *fmt, ...)
{
    char     text[DSA_CHECK_TEXT], line[4 * DSA_CHECK_TEXT];
    size_t   n;
    va_list  args;

    static const char *const  kinds[] = { "ok", "warn", "FAIL" };

    c->warned += kind == DSA_CHECK_WARN;
    c->failed += kind == DSA_CHECK_FAIL;

    va_start(args, fmt);
    (void) vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    /* files and servers have texts of others, and this may be a terminal */

    n = dsa_escape(line, sizeof(line), what, strlen(what));
    (void) printf("%-4s  %.*s: ", kinds[kind], (int) n, line);

    n = dsa_escape(line, sizeof(line), text, strlen(text));
    (void) printf("%.*s\n", (int) n, line);
}


int
dsa_check_size(uint64_t *size, const char *text)
{
    char                *end;
    unsigned             shift;
    unsigned long long   n;

    n = strtoull(text, &end, 10);

    switch (*end) {

    case 'k':
    case 'K':
        shift = 10;
        break;

    case 'm':
    case 'M':
        shift = 20;
        break;

    case 'g':
    case 'G':
        shift = 30;
        break;

    default:
        shift = 0;
        break;
    }

    if (*text < '0' || *text > '9' || end[shift != 0] != '\0'
        || n > UINT64_MAX >> shift)
    {
        return DSA_ERROR;
    }

    *size = (uint64_t) n << shift;

    return DSA_OK;
}
