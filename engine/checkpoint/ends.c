
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "engine/checkpoint/ends.h"


#define DSA_ENDS_FIELD      "eos_token_id"
#define DSA_ENDS_MAX        ((1 << 24) - 1)     /* of an id */


static int dsa_ends_value(dsa_ends_t *ends, const dsa_json_t *v);


int
dsa_ends_read(dsa_ends_t *ends, const dsa_fields_t *f)
{
    const dsa_json_t  *v, *end;

    v = dsa_field(f, DSA_ENDS_FIELD);

    if (v == NULL || v->type != DSA_JSON_ARRAY) {
        if (dsa_ends_value(ends, v) != DSA_OK) {
            goto rejected;
        }

        return DSA_OK;
    }

    if (v->first == NULL) {
        goto rejected;
    }

    for (end = v->first; end != NULL; end = end->next) {
        if (dsa_ends_value(ends, end) != DSA_OK) {
            goto rejected;
        }
    }

    return DSA_OK;

rejected:

    return dsa_field_reject(f, DSA_ENDS_FIELD, v, "an integer from 0 to "
                            "16777215, or a list of 1 to 16 of them");
}


static int
dsa_ends_value(dsa_ends_t *ends, const dsa_json_t *v)
{
    int64_t  id;

    if (dsa_json_int(v, &id) != DSA_OK || id < 0 || id > DSA_ENDS_MAX) {
        return DSA_ERROR;
    }

    return dsa_ends_add(ends, (uint32_t) id);
}


int
dsa_ends_add(dsa_ends_t *ends, uint32_t id)
{
    if (dsa_ends_has(ends, id)) {
        return DSA_OK;
    }

    if (ends->n == DSA_MODEL_ENDS) {
        return DSA_ERROR;
    }

    ends->id[ends->n++] = id;

    return DSA_OK;
}
