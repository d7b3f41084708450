
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GENERATION_CONFIG_H_INCLUDED_
#define _DSA_GENERATION_CONFIG_H_INCLUDED_


#include <stddef.h>

#include "base/error.h"
#include "engine/checkpoint/ends.h"


/*
 * Defaults for the sampling parameters of a request, from the model's
 * generation_config.json.  A missing field is 1; if do_sample is false, the
 * temperature is 0.  ends has eos_token_id, which adds to that of config.json.
 */

typedef struct {
    float       temperature;        /* [0, 2]; 0: the most probable token */
    float       top_p;              /* (0, 1] */
    dsa_ends_t  ends;               /* none if the field is missing */
} dsa_generation_config_t;


/*
 * Reads dir/generation_config.json, which may be missing.  DSA_ERROR: err names
 * the file, the field, its value and the values that are supported.
 */
int dsa_generation_config_read(dsa_generation_config_t *generation,
    const char *dir, dsa_err_t *err);

/* The same for a file in memory; errors begin with name. */
int dsa_generation_config_parse(dsa_generation_config_t *generation,
    const char *name, const void *json, size_t len, dsa_err_t *err);


#endif /* _DSA_GENERATION_CONFIG_H_INCLUDED_ */
