
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The scan of a body's beginning.  Against base/json.h: in a text that is JSON,
 * what is found is there.  Of a text that is cut anywhere, nothing else is
 * found than in the whole text, but for what an id replaces.
 */


#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "context/affinity.h"


#define DEPTH   128
#define MEMORY  (16 * 1024 * 1024)


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


/* 1 if a parser finds a member that explains what was found. */

static int
explains(const dsa_json_t *root, dsa_affinity_e kind)
{
    const dsa_json_t  *v;

    switch (kind) {

    case DSA_AFFINITY_CONVERSATION:
        v = dsa_json_get(root, "conversation");

        if (v != NULL && v->type == DSA_JSON_OBJECT) {
            v = dsa_json_get(v, "id");
        }

        return v != NULL && v->type == DSA_JSON_STRING;

    case DSA_AFFINITY_USER:
        v = dsa_json_get(root, "previous_response_id");

        return (dsa_json_get(root, "messages") != NULL
                || dsa_json_get(root, "input") != NULL)
               && (v == NULL || v->type != DSA_JSON_STRING);

    case DSA_AFFINITY_PROMPT:
        return dsa_json_get(root, "prompt") != NULL;

    default:
        return 1;
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t           cut;
    uint8_t          whole[16], part[16];
    dsa_json_t      *root;
    dsa_arena_t     *arena;
    dsa_affinity_e   kind, less;

    kind = dsa_affinity_scan((const char *) data, size, dsa_strz("seed"),
                             whole);

    arena = dsa_arena_create(MEMORY);

    if (arena == NULL) {
        abort();
    }

    root = dsa_json_parse(arena, data, size, DEPTH, NULL);

    if (root != NULL && size <= DSA_AFFINITY_SCAN && !explains(root, kind)) {
        abort();
    }

    dsa_arena_destroy(arena);

    cut = size != 0 ? (data[0] + 256 * (size_t) data[size - 1]) % size : 0;
    less = dsa_affinity_scan((const char *) data, cut, dsa_strz("seed"), part);

    if (less == kind && memcmp(whole, part, sizeof(whole)) != 0) {
        abort();
    }

    return 0;
}
