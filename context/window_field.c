
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The field of a request that selects what leaves the prompt of a long
 * history: "context_management": {"strategy": "discard_75"}.
 */


#include <stdio.h>

#include "context/read.h"
#include "context/window.h"


#define DSA_WINDOW_EXPECTED  "one of `none`, `discard_75`, `discard_all`, " \
                             "`summary`"


static int dsa_window_members(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj);


int
dsa_read_window(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t     at = { NULL, "context_management", 0 };
    dsa_at_t     strategy_at = { &at, "strategy", 0 };
    dsa_json_t  *v, *strategy;

    if (dsa_read_any(root, "context_management", &v) == 0) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(r->refusal, &at, v,
                               "{\"strategy\": a string}");
    }

    if (dsa_window_members(r, &at, v) != DSA_OK) {
        return DSA_ERROR;
    }

    strategy = dsa_json_get(v, "strategy");

    if (strategy == NULL || strategy->type != DSA_JSON_STRING) {
        return dsa_refuse_type(r->refusal, &strategy_at, strategy,
                               DSA_WINDOW_EXPECTED);
    }

    if (dsa_window_find(strategy->text, &r->chat->window) != DSA_OK) {
        return dsa_refuse_variant(r->refusal, &strategy_at, strategy,
                                  DSA_WINDOW_EXPECTED);
    }

    return DSA_OK;
}


/* "edits" and other members of other servers would change the answer. */

static int
dsa_window_members(dsa_reader_t *r, const dsa_at_t *up, const dsa_json_t *obj)
{
    char               name[64];
    dsa_at_t           at = { up, name, 0 };
    const dsa_json_t  *v;

    for (v = obj->first; v != NULL; v = v->next) {
        if (dsa_str_eqz(v->key, "strategy")) {
            continue;
        }

        (void) snprintf(name, sizeof(name), "%.*s", dsa_read_shown(v->key),
                        v->key.data);

        return dsa_refuse_at(r->refusal, &at, "this member is not supported; "
                             "expected strategy only");
    }

    return DSA_OK;
}
