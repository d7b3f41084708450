
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/file.h"
#include "engine/checkpoint/generation_config.h"


#define DSA_GENERATION_MAX_FILE     (1024 * 1024)
#define DSA_GENERATION_MAX_MEMORY   (128 * 1024 * 1024)
#define DSA_GENERATION_MAX_DEPTH    16


static int dsa_generation_root(dsa_generation_config_t *generation,
    const char *name, const dsa_json_t *root, dsa_err_t *err);
static int dsa_generation_number(const char *name, const char *field,
    const dsa_json_t *v, double min, double max, const char *accepted,
    float *out, dsa_err_t *err);
static const dsa_json_t *dsa_generation_get(const dsa_json_t *root,
    const char *field);


int
dsa_generation_config_read(dsa_generation_config_t *generation, const char *dir,
    dsa_err_t *err)
{
    int          n, rc;
    char         path[PATH_MAX];
    dsa_buf_t    text;
    struct stat  st;

    generation->temperature = 1;
    generation->top_p = 1;

    n = snprintf(path, sizeof(path), "%s/generation_config.json", dir);

    if (n < 0 || (size_t) n >= sizeof(path)) {
        return dsa_error(err, "the model's directory has a name of %zu bytes, "
                         "a shorter one is accepted", strlen(dir));
    }

    /* a link that leads nowhere is a fault, not a file that is not there */

    if (lstat(path, &st) == -1 && errno == ENOENT) {
        return DSA_OK;
    }

    memset(&text, 0, sizeof(dsa_buf_t));

    rc = dsa_file_read(path, DSA_GENERATION_MAX_FILE, &text, err);

    if (rc == DSA_OK) {
        rc = dsa_generation_config_parse(generation, path, text.data, text.len,
                                         err);
    }

    dsa_buf_free(&text);

    return rc;
}


int
dsa_generation_config_parse(dsa_generation_config_t *generation,
    const char *name, const void *json, size_t len, dsa_err_t *err)
{
    int           rc;
    dsa_err_t     why;
    dsa_json_t   *root;
    dsa_arena_t  *arena;

    generation->temperature = 1;
    generation->top_p = 1;

    arena = dsa_arena_create(DSA_GENERATION_MAX_MEMORY);
    if (arena == NULL) {
        return dsa_error(err, "%s: no memory to read it", name);
    }

    root = dsa_json_parse(arena, json, len, DSA_GENERATION_MAX_DEPTH, &why);

    if (root == NULL) {
        rc = dsa_error(err, "%s: %s", name, why.text);

    } else if (root->type != DSA_JSON_OBJECT) {
        rc = dsa_error(err, "%s: the text is no object, a model's generation "
                       "defaults are accepted", name);

    } else {
        rc = dsa_generation_root(generation, name, root, err);
    }

    dsa_arena_destroy(arena);

    return rc;
}


static int
dsa_generation_root(dsa_generation_config_t *generation, const char *name,
    const dsa_json_t *root, dsa_err_t *err)
{
    const dsa_json_t  *sample;

    if (dsa_generation_number(name, "temperature",
                              dsa_generation_get(root, "temperature"), 0, 2,
                              "a number from 0 to 2",
                              &generation->temperature, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (dsa_generation_number(name, "top_p",
                              dsa_generation_get(root, "top_p"), DBL_TRUE_MIN,
                              1, "a number above 0 and up to 1",
                              &generation->top_p, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    /* a double may be too small for a float, and 0 would be refused */

    generation->top_p = fmaxf(generation->top_p, FLT_MIN);

    sample = dsa_generation_get(root, "do_sample");

    if (sample == NULL || sample->type == DSA_JSON_TRUE) {
        return DSA_OK;
    }

    if (sample->type != DSA_JSON_FALSE) {
        return dsa_error(err, "%s: \"do_sample\" is neither true nor false, "
                         "one of them is accepted", name);
    }

    generation->temperature = 0;

    return DSA_OK;
}


/* out keeps what it has where v is NULL. */

static int
dsa_generation_number(const char *name, const char *field,
    const dsa_json_t *v, double min, double max, const char *accepted,
    float *out, dsa_err_t *err)
{
    double  d;

    if (v == NULL) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_INTEGER && v->type != DSA_JSON_FLOAT) {
        return dsa_error(err, "%s: \"%s\" is no number, %s is accepted", name,
                         field, accepted);
    }

    if (dsa_json_double(v, &d) != DSA_OK || d < min || d > max) {
        return dsa_error(err, "%s: \"%s\" is %.*s%s, %s is accepted", name,
                         field, v->text.len < 60 ? (int) v->text.len : 60,
                         v->text.data, v->text.len < 60 ? "" : "...",
                         accepted);
    }

    *out = (float) d;

    return DSA_OK;
}


/* null stands for a missing field, as in the files of transformers. */

static const dsa_json_t *
dsa_generation_get(const dsa_json_t *root, const char *field)
{
    const dsa_json_t  *v;

    v = dsa_json_get(root, field);

    return v != NULL && v->type != DSA_JSON_NULL ? v : NULL;
}
