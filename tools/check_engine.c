
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "base/file.h"
#include "base/version.h"
#include "tools/check.h"


#define DSA_CHECK_CONF  65536       /* bytes of engine.conf */


static int dsa_check_version(dsa_check_t *c);
static void dsa_check_fit(dsa_check_t *c, const dsa_check_engine_t *e);
static void dsa_check_file(dsa_check_t *c, dsa_check_engine_t *e);


void
dsa_check_engines(dsa_check_t *c)
{
    int       runs;
    uint32_t  i;

    if (c->n_engines == 0) {
        dsa_check_line(c, DSA_CHECK_WARN, "engine", "no configuration is "
                       "given, and none is in /etc/dsa; expected --engine FILE "
                       "unless the engines are on another host");
        return;
    }

    runs = dsa_check_version(c) == DSA_OK;

    for (i = 0; i < c->n_engines; i++) {
        if (runs) {
            dsa_check_fit(c, &c->engine[i]);
        }

        dsa_check_file(c, &c->engine[i]);
    }
}


static int
dsa_check_version(dsa_check_t *c)
{
    int         rc;
    char       *argv[] = { "dsa-engine", "--version", NULL };
    dsa_err_t   err;
    dsa_buf_t   out, errors;
    dsa_str_t   text;

    memset(&out, 0, sizeof(dsa_buf_t));
    memset(&errors, 0, sizeof(dsa_buf_t));

    rc = dsa_check_run(argv, &out, &errors, &err);
    text = dsa_str_trim(dsa_str(out.data, out.len));

    if (rc == -1) {
        dsa_check_line(c, DSA_CHECK_FAIL, "engine", "%s", err.text);

    } else if (rc != 0) {
        dsa_check_line(c, DSA_CHECK_FAIL, "engine", "dsa-engine is not "
                       "installed, or does not run; install the package "
                       "nginx-dsa-engine or nginx-dsa-engine-cuda");

    } else if (!dsa_str_eqz(text, "dsa-engine " DSA_VERSION)) {
        dsa_check_line(c, DSA_CHECK_WARN, "engine", "the engine is \"%.*s\", "
                       "and this program is version " DSA_VERSION "; expected "
                       "packages of one version", (int) text.len, text.data);

    } else {
        dsa_check_line(c, DSA_CHECK_OK, "engine", "%.*s", (int) text.len,
                       text.data);
    }

    dsa_buf_free(&out);
    dsa_buf_free(&errors);

    return rc == 0 ? DSA_OK : DSA_ERROR;
}


/* What "dsa-engine -t" finds: the files of the model, memory, the plan. */

static void
dsa_check_fit(dsa_check_t *c, const dsa_check_engine_t *e)
{
    int         rc;
    char       *argv[] = { "dsa-engine", "-t", "-c", (char *) e->file, NULL };
    dsa_err_t   err;
    dsa_buf_t   out, errors;
    dsa_str_t   last;

    memset(&out, 0, sizeof(dsa_buf_t));
    memset(&errors, 0, sizeof(dsa_buf_t));

    rc = dsa_check_run(argv, &out, &errors, &err);
    last = rc == -1 ? dsa_strz(err.text) : dsa_check_last(&errors);

    dsa_check_line(c, rc == 0 ? DSA_CHECK_OK : DSA_CHECK_FAIL, e->file,
                   "%.*s", (int) last.len, last.data);

    dsa_buf_free(&out);
    dsa_buf_free(&errors);
}


static void
dsa_check_file(dsa_check_t *c, dsa_check_engine_t *e)
{
    char       *copy;
    dsa_err_t   err;
    dsa_buf_t   text;

    memset(&text, 0, sizeof(dsa_buf_t));

    if (dsa_file_read(e->file, DSA_CHECK_CONF, &text, &err) != DSA_OK) {
        dsa_check_line(c, DSA_CHECK_FAIL, "engine", "%s", err.text);

    } else {
        copy = dsa_arena_dup(c->arena, dsa_str(text.data, text.len));

        if (copy == NULL
            || dsa_statements_read(&e->conf, c->arena,
                                   dsa_str(copy, text.len), &err)
               != DSA_OK)
        {
            memset(&e->conf, 0, sizeof(dsa_statements_t));
            dsa_check_line(c, DSA_CHECK_FAIL, e->file, "%s",
                           copy == NULL ? "out of memory" : err.text);
        }
    }

    dsa_buf_free(&text);
}
