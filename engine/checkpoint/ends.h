
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ENDS_H_INCLUDED_
#define _DSA_ENDS_H_INCLUDED_


#include <stdint.h>

#include "base/fields.h"


#define DSA_MODEL_ENDS      16


/* The ids that end an answer, each once, in the order of the files. */

typedef struct {
    uint32_t    id[DSA_MODEL_ENDS];
    uint32_t    n;
} dsa_ends_t;


/* Returns 1 if id ends an answer. */

static inline int
dsa_ends_has(const dsa_ends_t *ends, uint32_t id)
{
    uint32_t  i;

    for (i = 0; i < ends->n; i++) {
        if (ends->id[i] == id) {
            return 1;
        }
    }

    return 0;
}


/* Adds an id.  DSA_ERROR: there are DSA_MODEL_ENDS others already. */
int dsa_ends_add(dsa_ends_t *ends, uint32_t id);

/*
 * Adds the ids of the field eos_token_id, an integer or a list of integers, to
 * ends.  DSA_ERROR with f->err: the field is missing or has another value, or
 * there are more than DSA_MODEL_ENDS ids.
 */
int dsa_ends_read(dsa_ends_t *ends, const dsa_fields_t *f);


#endif /* _DSA_ENDS_H_INCLUDED_ */
