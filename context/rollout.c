
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The field of a request for what the trainer of a policy needs of its answer,
 * an extension of this server: "rollout": {"mask": true, "experts": true,
 * "prompt": true}.  All members are optional.
 */


#include <stdio.h>

#include "context/read.h"


#define DSA_ROLLOUT_EXPECTED                                                  \
    "an object with the optional members mask, experts and prompt, each true " \
    "or false"


int
dsa_read_rollout(dsa_reader_t *r, const dsa_json_t *root)
{
    int                mask, experts, prompt;
    char               name[64];
    dsa_at_t           at = { NULL, "rollout", 0 };
    dsa_at_t           member = { &at, name, 0 };
    dsa_json_t        *v;
    const dsa_json_t  *child;

    if (dsa_read_any(root, "rollout", &v) == 0) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(r->refusal, &at, v, DSA_ROLLOUT_EXPECTED);
    }

    for (child = v->first; child != NULL; child = child->next) {
        if (dsa_str_eqz(child->key, "mask")
            || dsa_str_eqz(child->key, "experts")
            || dsa_str_eqz(child->key, "prompt"))
        {
            continue;
        }

        (void) snprintf(name, sizeof(name), "%.*s",
                        dsa_read_shown(child->key), child->key.data);

        return dsa_refuse_at(r->refusal, &member, "this member is not "
                             "supported; expected mask, experts or prompt");
    }

    mask = 0;
    experts = 0;
    prompt = 0;

    if (dsa_read_bool(r, &at, v, "mask", &mask) == DSA_ERROR
        || dsa_read_bool(r, &at, v, "experts", &experts) == DSA_ERROR
        || dsa_read_bool(r, &at, v, "prompt", &prompt) == DSA_ERROR)
    {
        return DSA_ERROR;
    }

    r->chat->rollout = 1;
    r->chat->rollout_mask = mask;
    r->chat->rollout_experts = experts;
    r->chat->rollout_prompt = prompt;

    return DSA_OK;
}
