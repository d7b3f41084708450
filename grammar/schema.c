
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdarg.h>
#include <stdio.h>

#include "grammar/schema.h"


int
dsa_schema_spec(dsa_schema_t *s, const dsa_json_t *spec, uint32_t from,
    uint32_t to)
{
    dsa_parts_t        parts;
    const dsa_json_t  *type, *strict;

    type = dsa_json_get(spec, "type");

    if (type == NULL) {
        return 0;
    }

    if (dsa_str_eqz(type->text, "json_object")) {
        dsa_schema_any_object(s, from, to);
        return 1;
    }

    if (!dsa_str_eqz(type->text, "json_schema")) {
        return 0;
    }

    s->root = dsa_json_get(spec, "schema");

    if (s->root == NULL) {
        dsa_schema_fail(s, NULL, "there is no schema");
        return 1;
    }

    strict = dsa_json_get(spec, "strict");

    if (strict != NULL && strict->type == DSA_JSON_FALSE) {
        s->optional = 1;

        if (s->loose) {
            s->skipped++;
            dsa_schema_any_object(s, from, to);
            return 1;
        }
    }

    s->lenient = s->optional;

    memset(&parts, 0, sizeof(dsa_parts_t));
    dsa_parts_add(s, &parts, DSA_PART_SCHEMA, s->root,
                  s->prefix);

    dsa_schema_compile(s, &parts, DSA_VALUES_JSON, from, to);
    dsa_schema_rules(s);

    s->lenient = 0;

    return 1;
}


void
dsa_schema_fail(dsa_schema_t *s, const char *keyword, const char *fmt, ...)
{
    size_t   len;
    va_list  args;

    if (s->failed) {
        return;
    }

    s->failed = 1;

    if (keyword != NULL && keyword[0] != '\0') {
        len = strlen(s->path);
        (void) snprintf(s->path + len, sizeof(s->path) - len, "%s%s",
                        len != 0 ? "." : "", keyword);
    }

    (void) snprintf(s->error->path, sizeof(s->error->path), "%s", s->path);

    va_start(args, fmt);
    (void) vsnprintf(s->error->message, sizeof(s->error->message), fmt, args);
    va_end(args);
}


int
dsa_schema_skip(dsa_schema_t *s)
{
    if (!s->lenient || s->failed) {
        return 0;
    }

    s->skipped++;

    return 1;
}


void
dsa_schema_at(dsa_schema_t *s, const dsa_part_t *part)
{
    if (!s->failed) {
        (void) snprintf(s->path, sizeof(s->path), "%s", part->path);
    }
}


const char *
dsa_schema_path(dsa_schema_t *s, const char *path, const char *fmt, ...)
{
    char        *copy, text[sizeof(s->path)];
    size_t       len;
    va_list      args;

    len = (size_t) snprintf(text, sizeof(text), "%s", path);
    len = len < sizeof(text) ? len : sizeof(text) - 1;

    if (len != 0 && fmt[0] != '[' && fmt[0] != '\0' && len + 1 < sizeof(text))
    {
        text[len++] = '.';
    }

    va_start(args, fmt);
    (void) vsnprintf(text + len, sizeof(text) - len, fmt, args);
    va_end(args);

    copy = dsa_arena_dup(s->arena, dsa_strz(text));

    if (copy == NULL) {
        dsa_schema_fail(s, NULL, "there is no memory for it");
        return "";
    }

    return copy;
}


void
dsa_schema_spend(dsa_schema_t *s, uint32_t steps)
{
    s->work -= steps < s->work ? steps : s->work;

    if (s->work == 0) {
        dsa_schema_fail(s, NULL, "the patterns, numbers and names up to here "
                        "take too much time to compile; expected fewer or "
                        "simpler ones");
    }
}


void
dsa_schema_charge(dsa_schema_t *s, const dsa_dfa_t *dfa)
{
    dsa_schema_spend(s, dfa != NULL ? 16 * dfa->n_ranges : 0);
}
