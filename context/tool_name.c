
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "base/error.h"
#include "context/tool_name.h"


int
dsa_tool_name_split(dsa_str_t *space, dsa_str_t *name)
{
    size_t       len;
    const char  *dot;

    dot = name->len != 0 ? memchr(name->data, '.', name->len) : NULL;

    if (dot == NULL) {
        return 0;
    }

    len = (size_t) (dot - name->data);

    if (len == 0 || len + 1 == name->len) {
        return 0;
    }

    *space = dsa_str(name->data, len);
    *name = dsa_str(dot + 1, name->len - len - 1);

    return 1;
}


int
dsa_tool_name_join(dsa_arena_t *arena, dsa_str_t space, dsa_str_t *name)
{
    char  *p;

    if (space.len == 0) {
        return DSA_OK;
    }

    p = dsa_arena_alloc(arena, space.len + 1 + name->len);
    if (p == NULL) {
        return DSA_ERROR;
    }

    memcpy(p, space.data, space.len);
    p[space.len] = '.';

    if (name->len != 0) {
        memcpy(p + space.len + 1, name->data, name->len);
    }

    *name = dsa_str(p, space.len + 1 + name->len);

    return DSA_OK;
}
