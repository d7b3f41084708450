
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "tools/check.h"


static void dsa_check_refused(dsa_check_t *c, const dsa_buf_t *errors);


void
dsa_check_nginx(dsa_check_t *c)
{
    int         rc;
    char       *argv[] = { "nginx", "-T", NULL, NULL, NULL };
    dsa_err_t   err;
    dsa_buf_t   out, errors;
    dsa_str_t   line;

    memset(&out, 0, sizeof(dsa_buf_t));
    memset(&errors, 0, sizeof(dsa_buf_t));

    if (c->nginx != NULL) {
        argv[2] = "-c";
        argv[3] = (char *) c->nginx;
    }

    rc = dsa_check_run(argv, &out, &errors, &err);

    if (rc == -1) {
        dsa_check_line(c, DSA_CHECK_FAIL, "nginx", "%s", err.text);

    } else if (rc == DSA_CHECK_MISSING) {
        dsa_check_line(c, DSA_CHECK_FAIL, "nginx", "it is not installed; "
                       "install the package nginx");

    } else if (rc == DSA_CHECK_KILLED) {
        line = dsa_check_last(&errors);
        dsa_check_line(c, DSA_CHECK_FAIL, "nginx", "%.*s while it read its "
                       "configuration; expected no file that includes itself",
                       (int) line.len, line.data);

    } else if (rc != 0) {
        dsa_check_refused(c, &errors);

    } else if (dsa_statements_read(&c->conf, c->arena,
                                   dsa_str(dsa_arena_dup(c->arena,
                                               dsa_str(out.data, out.len)),
                                           out.len), &err)
               != DSA_OK)
    {
        memset(&c->conf, 0, sizeof(dsa_statements_t));
        dsa_check_line(c, DSA_CHECK_WARN, "nginx", "it accepts its "
                       "configuration, but this program does not read it: %s; "
                       "nothing in it was checked", err.text);

    } else {
        dsa_check_line(c, DSA_CHECK_OK, "nginx", "it accepts its "
                       "configuration");

        if (dsa_statements_find(&c->conf, "dsa_pool", 0) == NULL) {
            dsa_check_line(c, DSA_CHECK_FAIL, "nginx", "its configuration has "
                           "no dsa_pool; expected one with the sockets of the "
                           "engines");
        }
    }

    dsa_buf_free(&out);
    dsa_buf_free(&errors);
}


/* The first line with an error has the reason; the last one is a summary. */

static void
dsa_check_refused(dsa_check_t *c, const dsa_buf_t *errors)
{
    uint32_t     i;
    dsa_str_t    line;
    const char  *start, *end;

    static const char *const  levels[] = { "[emerg]", "[alert]", "[crit]" };

    line = dsa_check_last(errors);
    start = NULL;

    for (i = 0; i < 3 && start == NULL && errors->len != 0; i++) {
        start = memmem(errors->data, errors->len, levels[i], strlen(levels[i]));
    }

    if (start != NULL) {
        end = memchr(start, '\n',
                     (size_t) (errors->data + errors->len - start));
        line = dsa_str(start, (size_t) ((end != NULL ? end : errors->data
                                                             + errors->len)
                                        - start));
    }

    dsa_check_line(c, DSA_CHECK_FAIL, "nginx", "it does not accept its "
                   "configuration: %.*s", (int) line.len, line.data);
}
