
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <sys/stat.h>

#include "base/file.h"
#include "engine/checkpoint/config_parts.h"


#define DSA_FORMATS_LAYERS      "quant_cfg.json"
#define DSA_FORMATS_MAX         (16 * 1024 * 1024)      /* bytes */
#define DSA_FORMATS_LAYERS_MAX  (1024 * 1024)


static int dsa_formats_find(char path[PATH_MAX], const char *dir,
    const char *name, uint32_t *there, dsa_err_t *err);
static int dsa_formats_nvidia(dsa_model_config_t *config, const char *dir,
    const char *path, dsa_buf_t *text, dsa_err_t *err);
static int dsa_formats_layers(dsa_model_config_t *config, const char *dir,
    const char *path, dsa_buf_t *text, dsa_err_t *err);
static void dsa_formats_append(dsa_buf_t *text, const dsa_buf_t *file);


int
dsa_config_formats(dsa_model_config_t *config, const char *dir,
    dsa_buf_t *text, dsa_err_t *err)
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
        || (there && dsa_formats_nvidia(config, dir, path, text, err)
                     != DSA_OK))
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


static int
dsa_formats_nvidia(dsa_model_config_t *config, const char *dir,
    const char *path, dsa_buf_t *text, dsa_err_t *err)
{
    int        rc;
    uint32_t   mixed;
    dsa_buf_t  file;

    mixed = 0;
    memset(&file, 0, sizeof(dsa_buf_t));

    rc = dsa_file_read(path, DSA_FORMATS_MAX, &file, err);

    if (rc == DSA_OK) {
        rc = dsa_config_mixed(&mixed, path, dsa_str(file.data, file.len),
                              err);
    }

    if (rc == DSA_OK && mixed) {
        dsa_formats_append(text, &file);
        rc = dsa_formats_layers(config, dir, path, text, err);
    }

    dsa_buf_free(&file);

    return rc;
}


/* path is that of hf_quant_config.json. */

static int
dsa_formats_layers(dsa_model_config_t *config, const char *dir,
    const char *path, dsa_buf_t *text, dsa_err_t *err)
{
    int        rc;
    char       layers[PATH_MAX];
    uint32_t   there;
    dsa_buf_t  file;

    if (dsa_formats_find(layers, dir, DSA_FORMATS_LAYERS, &there, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (!there) {
        return dsa_error(err, "%s: \"quantization.quant_algo\" is "
                         "\"" DSA_MIXED_PRECISION "\", and "
                         DSA_FORMATS_LAYERS " is missing; expected that file, "
                         "or " DSA_FORMATS_EXPECTED, path);
    }

    memset(&file, 0, sizeof(dsa_buf_t));

    rc = dsa_file_read(layers, DSA_FORMATS_LAYERS_MAX, &file, err);

    if (rc == DSA_OK) {
        rc = dsa_config_mixed_layers(config, layers,
                                     dsa_str(file.data, file.len), err);
    }

    if (rc == DSA_OK) {
        dsa_formats_append(text, &file);
        rc = dsa_config_as_w4afp8(config, dir, err);
    }

    dsa_buf_free(&file);

    return rc;
}


static void
dsa_formats_append(dsa_buf_t *text, const dsa_buf_t *file)
{
    if (text != NULL) {
        dsa_buf_add(text, file->data, file->len);
    }
}
