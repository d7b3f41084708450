
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <float.h>
#include <math.h>
#include <sys/stat.h>

#include "base/fields.h"
#include "base/file.h"
#include "engine/checkpoint/generation_config.h"


#define DSA_GENERATION_CONFIG_MAX   (1024 * 1024)


static void dsa_generation_config_init(dsa_generation_config_t *generation);
static int dsa_generation_config_top(dsa_generation_config_t *generation,
    const dsa_fields_t *top);


int
dsa_generation_config_read(dsa_generation_config_t *generation, const char *dir,
    dsa_err_t *err)
{
    int          rc;
    char         path[PATH_MAX];
    dsa_buf_t    text;
    struct stat  st;

    dsa_generation_config_init(generation);

    if (dsa_file_path(path, dir, dsa_strz("generation_config.json"), err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    /* lstat(), because a link to a missing file is an error */

    if (lstat(path, &st) == -1 && errno == ENOENT) {
        return DSA_OK;
    }

    memset(&text, 0, sizeof(dsa_buf_t));

    rc = dsa_file_read(path, DSA_GENERATION_CONFIG_MAX, &text, err);

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
    dsa_fields_t  top;

    dsa_generation_config_init(generation);

    rc = dsa_fields_open(&top, name, dsa_str(json, len), err);

    if (rc == DSA_OK) {
        rc = dsa_generation_config_top(generation, &top);
    }

    dsa_fields_close(&top);

    return rc;
}


static void
dsa_generation_config_init(dsa_generation_config_t *generation)
{
    memset(generation, 0, sizeof(dsa_generation_config_t));

    generation->temperature = 1;
    generation->top_p = 1;
}


static int
dsa_generation_config_top(dsa_generation_config_t *generation,
    const dsa_fields_t *top)
{
    double             value;
    uint32_t           sample;
    const dsa_json_t  *v;

    if (dsa_field(top, "temperature") != NULL) {
        if (dsa_field_number(top, "temperature", 0, 2, &value) != DSA_OK) {
            return DSA_ERROR;
        }

        generation->temperature = (float) value;
    }

    v = dsa_field(top, "top_p");

    if (v != NULL) {
        if (dsa_json_double(v, &value) != DSA_OK || !(value > 0) || value > 1)
        {
            return dsa_field_reject(top, "top_p", v,
                                    "a number above 0 and up to 1");
        }

        /*
         * The smallest doubles would become 0 as a float, which is out of
         * range.
         */

        generation->top_p = fmaxf((float) value, FLT_MIN);
    }

    if (dsa_field_flag(top, "do_sample", 1, &sample) != DSA_OK) {
        return DSA_ERROR;
    }

    if (!sample) {
        generation->temperature = 0;
    }

    return dsa_field(top, "eos_token_id") != NULL
           ? dsa_ends_read(&generation->ends, top) : DSA_OK;
}
