
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>

#include "base/escape.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/json_write.h"


#define DSA_FIELDS_DEPTH    32
#define DSA_FIELDS_SHOWN    60          /* bytes of a value in an error */
#define DSA_FIELDS_NAME     128         /* bytes of a name in an error */


static int dsa_fields_not_json(const char *file, dsa_str_t json,
    const dsa_err_t *reason, dsa_err_t *err);


int
dsa_fields_open(dsa_fields_t *top, const char *file, dsa_str_t json,
    dsa_err_t *err)
{
    dsa_err_t  reason;

    memset(top, 0, sizeof(dsa_fields_t));

    top->file = file;
    top->prefix = "";
    top->err = err;

    /* "0," takes two bytes of text and 80 of the arena */

    top->arena = dsa_arena_create(json.len * 64 + 1024 * 1024);
    if (top->arena == NULL) {
        return dsa_error(err, "%s: out of memory", file);
    }

    top->object = dsa_json_parse(top->arena, json.data, json.len,
                                 DSA_FIELDS_DEPTH, &reason);

    if (top->object == NULL) {
        return dsa_fields_not_json(file, json, &reason, err);
    }

    if (top->object->type != DSA_JSON_OBJECT) {
        return dsa_error(err, "%s: the text is not a JSON object", file);
    }

    return DSA_OK;
}


static int
dsa_fields_not_json(const char *file, dsa_str_t json, const dsa_err_t *reason,
    dsa_err_t *err)
{
    const char  *foreign;

    foreign = dsa_file_foreign(json);

    if (foreign != NULL) {
        return dsa_error(err, "%s: the file is %s", file, foreign);
    }

    if (json.len == 0) {
        return dsa_error(err, "%s: the file is empty; expected a JSON object",
                         file);
    }

    if (strstr(reason->text, "premature EOF") != NULL) {
        return dsa_error(err, "%s: truncated: the JSON object has no end, and "
                         "the file has %zu bytes", file, json.len);
    }

    return dsa_error(err, "%s: not JSON: %s", file, reason->text);
}


void
dsa_fields_close(dsa_fields_t *top)
{
    dsa_arena_destroy(top->arena);
}


int
dsa_fields_inner(dsa_fields_t *inner, const dsa_fields_t *f, const char *name,
    const char *prefix)
{
    *inner = *f;

    inner->prefix = prefix;
    inner->object = dsa_field(f, name);

    if (inner->object != NULL && inner->object->type != DSA_JSON_OBJECT) {
        return dsa_field_reject(f, name, inner->object, "an object");
    }

    return DSA_OK;
}


const dsa_json_t *
dsa_field(const dsa_fields_t *f, const char *name)
{
    const dsa_json_t  *v;

    v = f->object != NULL ? dsa_json_get(f->object, name) : NULL;

    return v != NULL && v->type != DSA_JSON_NULL ? v : NULL;
}


int
dsa_field_bool(const dsa_fields_t *f, const char *name, uint32_t *out)
{
    const dsa_json_t  *v;

    v = dsa_field(f, name);

    if (v == NULL
        || (v->type != DSA_JSON_TRUE && v->type != DSA_JSON_FALSE))
    {
        return dsa_field_reject(f, name, v, "true or false");
    }

    *out = (v->type == DSA_JSON_TRUE);

    return DSA_OK;
}


int
dsa_field_flag(const dsa_fields_t *f, const char *name, uint32_t absent,
    uint32_t *out)
{
    if (dsa_field(f, name) == NULL) {
        *out = absent;
        return DSA_OK;
    }

    return dsa_field_bool(f, name, out);
}


int
dsa_field_integer(const dsa_fields_t *f, const char *name, uint32_t min,
    uint32_t max, uint32_t *out)
{
    char               expected[64];
    int64_t            n;
    const dsa_json_t  *v;

    v = dsa_field(f, name);

    if (dsa_json_int(v, &n) != DSA_OK || n < (int64_t) min
        || n > (int64_t) max)
    {
        (void) snprintf(expected, sizeof(expected),
                        "an integer from %u to %u", min, max);

        return dsa_field_reject(f, name, v, expected);
    }

    *out = (uint32_t) n;

    return DSA_OK;
}


int
dsa_field_number(const dsa_fields_t *f, const char *name, double min,
    double max, double *out)
{
    char               expected[64];
    double             d;
    const dsa_json_t  *v;

    v = dsa_field(f, name);

    if (dsa_json_double(v, &d) != DSA_OK || d < min || d > max) {
        (void) snprintf(expected, sizeof(expected), "a number from %g to %g",
                        min, max);

        return dsa_field_reject(f, name, v, expected);
    }

    *out = d;

    return DSA_OK;
}


int
dsa_field_equals(const dsa_fields_t *f, const char *name, const char *json)
{
    int                equal;
    dsa_buf_t          text;
    const dsa_json_t  *v;

    v = dsa_field(f, name);

    if (v == NULL) {
        return dsa_field_reject(f, name, v, json);
    }

    memset(&text, 0, sizeof(dsa_buf_t));

    equal = dsa_json_dump(&text, v) == DSA_OK && !text.failed
            && dsa_str_eqz(dsa_str(text.data, text.len), json);

    dsa_buf_free(&text);

    return equal ? DSA_OK : dsa_field_reject(f, name, v, json);
}


int
dsa_field_is(const dsa_fields_t *f, const char *name, const char *text)
{
    const dsa_json_t  *v;

    v = dsa_field(f, name);

    return v != NULL && v->type == DSA_JSON_STRING
           && dsa_str_eqz(v->text, text);
}


int
dsa_fields_known(const dsa_fields_t *f, const char *const *names)
{
    int                 n;
    char                key[DSA_FIELDS_NAME], list[256];
    uint32_t            i;
    const dsa_json_t   *v;

    for (v = f->object != NULL ? f->object->first : NULL; v != NULL;
         v = v->next)
    {
        if (v->type == DSA_JSON_NULL) {
            continue;
        }

        for (i = 0; names[i] != NULL; i++) {
            if (dsa_str_eqz(v->key, names[i])) {
                break;
            }
        }

        if (names[i] != NULL) {
            continue;
        }

        n = 0;

        for (i = 0; names[i] != NULL && n < (int) sizeof(list); i++) {
            n += snprintf(list + n, sizeof(list) - (size_t) n, "%s%s",
                          i == 0 ? "" : ", ", names[i]);
        }

        n = (int) dsa_escape(key, sizeof(key), v->key.data, v->key.len);

        return dsa_error(f->err, "%s: \"%s%.*s\" is not a supported field; "
                         "expected %s", f->file, f->prefix, n, key, list);
    }

    return DSA_OK;
}


int
dsa_field_reject(const dsa_fields_t *f, const char *name, const dsa_json_t *v,
    const char *expected)
{
    int        n;
    char       shown[DSA_FIELDS_NAME];
    dsa_buf_t  text;

    /* a name may be a key of the file, and so have line breaks */

    n = (int) dsa_escape(shown, sizeof(shown), name, strlen(name));

    if (v == NULL) {
        return dsa_error(f->err, "%s: \"%s%.*s\" is missing; expected %s",
                         f->file, f->prefix, n, shown, expected);
    }

    memset(&text, 0, sizeof(dsa_buf_t));

    if (dsa_json_dump(&text, v) != DSA_OK || text.failed) {

        /* v is, or contains, a number beyond the range of a double */

        dsa_buf_free(&text);
        memset(&text, 0, sizeof(dsa_buf_t));
        dsa_buf_add(&text, v->text.data, v->text.len);

        if (text.len == 0) {
            dsa_buf_addz(&text, "beyond the range of numbers");
        }
    }

    (void) dsa_error(f->err, "%s: \"%s%.*s\" is %.*s%s; expected %s", f->file,
                     f->prefix, n, shown,
                     text.len < DSA_FIELDS_SHOWN ? (int) text.len
                                                 : DSA_FIELDS_SHOWN,
                     text.data != NULL ? text.data : "",
                     text.len < DSA_FIELDS_SHOWN ? "" : "...", expected);

    dsa_buf_free(&text);

    return DSA_ERROR;
}
