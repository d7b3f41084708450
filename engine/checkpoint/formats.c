
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <sys/stat.h>

#include "base/fields.h"
#include "base/file.h"
#include "engine/checkpoint/formats.h"


#define DSA_FORMATS_MAX     (16 * 1024 * 1024)

#define DSA_FORMATS_EXPECTED                                                  \
    "\"quantization_config\" in config.json, with the quant_method "          \
    DSA_FORMATS_METHODS


static int dsa_formats_find(char path[PATH_MAX], const char *dir,
    const char *name, uint32_t *there, dsa_err_t *err);
static int dsa_formats_nvidia(const char *path, dsa_err_t *err);


int
dsa_formats_check(const char *dir, dsa_err_t *err)
{
    char      path[PATH_MAX];
    uint32_t  i, there;

    static const struct {
        const char  *name;
        const char  *what;
    } format[] = {
        { "quant_config.json", "AutoAWQ" },
        { "quantize_config.json", "AutoGPTQ" }
    };

    if (dsa_formats_find(path, dir, "hf_quant_config.json", &there, err)
        != DSA_OK
        || (there && dsa_formats_nvidia(path, err) != DSA_OK))
    {
        return DSA_ERROR;
    }

    for (i = 0; i < sizeof(format) / sizeof(format[0]); i++) {
        if (dsa_formats_find(path, dir, format[i].name, &there, err) != DSA_OK)
        {
            return DSA_ERROR;
        }

        if (there) {
            return dsa_error(err, "%s: the file describes a format of %s; "
                             "expected " DSA_FORMATS_EXPECTED, path,
                             format[i].what);
        }
    }

    return DSA_OK;
}


static int
dsa_formats_find(char path[PATH_MAX], const char *dir, const char *name,
    uint32_t *there, dsa_err_t *err)
{
    struct stat  st;

    if (dsa_file_path(path, dir, dsa_strz(name), err) != DSA_OK) {
        return DSA_ERROR;
    }

    /* lstat(), because a link to a missing file is an error */

    *there = lstat(path, &st) == 0 || errno != ENOENT;

    return DSA_OK;
}


/* DSA_OK: the file names no quantization of weights. */

static int
dsa_formats_nvidia(const char *path, dsa_err_t *err)
{
    int                rc;
    dsa_buf_t          text;
    dsa_fields_t       top, f;
    const dsa_json_t  *v;

    memset(&text, 0, sizeof(dsa_buf_t));
    memset(&top, 0, sizeof(dsa_fields_t));

    rc = dsa_file_read(path, DSA_FORMATS_MAX, &text, err);

    if (rc == DSA_OK) {
        rc = dsa_fields_open(&top, path, dsa_str(text.data, text.len), err);

        if (rc == DSA_OK) {
            rc = dsa_fields_inner(&f, &top, "quantization", "quantization.");
        }

        v = rc == DSA_OK ? dsa_field(&f, "quant_algo") : NULL;

        if (v != NULL) {
            rc = dsa_field_reject(&f, "quant_algo", v, DSA_FORMATS_EXPECTED);
        }

        dsa_fields_close(&top);
    }

    dsa_buf_free(&text);

    return rc;
}
