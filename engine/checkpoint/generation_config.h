
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GENERATION_CONFIG_H_INCLUDED_
#define _DSA_GENERATION_CONFIG_H_INCLUDED_


#include <stddef.h>

#include "base/error.h"


/*
 * How a model wants to be sampled where nobody says otherwise, from its
 * generation_config.json: both 1 where the file does not say, temperature 0
 * where its do_sample is false.
 */

typedef struct {
    float       temperature;        /* [0, 2]; 0: the most probable token */
    float       top_p;              /* (0, 1] */
} dsa_generation_config_t;


/*
 * Reads dir/generation_config.json, which need not be there.  DSA_ERROR names
 * the file, the field, its value and what would be accepted.
 */
int dsa_generation_config_read(dsa_generation_config_t *generation,
    const char *dir, dsa_err_t *err);

/* The same for a file in memory; name stands in errors. */
int dsa_generation_config_parse(dsa_generation_config_t *generation,
    const char *name, const void *json, size_t len, dsa_err_t *err);


#endif /* _DSA_GENERATION_CONFIG_H_INCLUDED_ */
