
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The strings of a schema, as an automaton over their characters.
 */


#include "grammar/regex.h"
#include "grammar/schema.h"


#define DSA_TEXT_STATES     16384       /* about as many for the lengths of a
                                           pattern */
#define DSA_TEXT_SHORT      28          /* a maxLength is not lowered below */


static const dsa_json_t *dsa_part_format(const dsa_json_t *format,
    const char **pattern);
static dsa_dfa_t *dsa_part_text(dsa_schema_t *s, const dsa_part_t *part,
    dsa_dfa_t *dfa);
static dsa_dfa_t *dsa_schema_other_texts(dsa_schema_t *s, dsa_dfa_t *dfa,
    const dsa_json_t *first, int list);
static dsa_dfa_t *dsa_schema_sized(dsa_schema_t *s, dsa_dfa_t *dfa,
    uint32_t min, uint32_t max);
static dsa_dfa_t *dsa_schema_chosen_names(dsa_schema_t *s,
    const dsa_parts_t *p, uint32_t k, uint32_t n);
static dsa_dfa_t *dsa_schema_listed_names(dsa_schema_t *s,
    const dsa_parts_t *p, const dsa_json_t *list);


int
dsa_schema_text_is_free(const dsa_parts_t *p)
{
    uint32_t           i;
    const char        *pattern;
    const dsa_part_t  *part;

    for (i = 0; i < p->n; i++) {
        part = &p->part[i];

        if (dsa_part_get(part, "pattern") != NULL
            || dsa_part_format(dsa_part_get(part, "format"), &pattern) != NULL
            || dsa_part_not(part, "pattern") != NULL
            || dsa_part_not(part, "format") != NULL
            || dsa_part_not(part, "const") != NULL
            || dsa_part_not(part, "enum") != NULL)
        {
            return 0;
        }
    }

    return 1;
}


dsa_dfa_t *
dsa_schema_text(dsa_schema_t *s, const dsa_parts_t *p, uint32_t min,
    uint32_t max)
{
    uint32_t    i;
    dsa_dfa_t  *dfa;

    dfa = dsa_dfa_lengths(0, UINT32_MAX);

    for (i = 0; i < p->n && !s->failed; i++) {
        dfa = dsa_part_text(s, &p->part[i], dfa);
    }

    if (min != 0 || max != DSA_AUTOMATON_MANY) {
        dfa = dsa_schema_sized(s, dfa, min, max);
    }

    if (dfa == NULL && dsa_schema_skip(s)) {
        dfa = dsa_dfa_lengths(0, UINT32_MAX);
    }

    if (dfa == NULL || s->failed) {
        dsa_dfa_free(dfa);
        dsa_schema_fail(s, NULL, "pattern, format, minLength and maxLength "
                        "together need too much memory; expected smaller "
                        "lengths or a simpler pattern");
        return NULL;
    }

    dsa_schema_charge(s, dfa);

    return dfa;
}


/* The keyword, and the pattern of its format; NULL: none is known. */

static const dsa_json_t *
dsa_part_format(const dsa_json_t *format, const char **pattern)
{
    *pattern = format != NULL && format->type == DSA_JSON_STRING
               ? dsa_format_pattern(format->text) : NULL;

    return *pattern != NULL ? format : NULL;
}


/* What a part permits; consumes dfa. */

static dsa_dfa_t *
dsa_part_text(dsa_schema_t *s, const dsa_part_t *part, dsa_dfa_t *dfa)
{
    const char        *pattern;
    const dsa_json_t  *v;

    dsa_schema_at(s, part);
    v = dsa_part_get(part, "pattern");

    if (v != NULL) {
        dfa = dsa_dfa_intersect(dfa, dsa_schema_pattern(s, v));
    }

    v = dsa_part_format(dsa_part_get(part, "format"), &pattern);

    if (v != NULL) {
        dfa = dsa_dfa_intersect(dfa, dsa_dfa_copy(dsa_schema_regex(s, v,
                                                  dsa_strz(pattern))));
    }

    v = dsa_part_not(part, "pattern");

    if (v != NULL) {
        dfa = dsa_dfa_intersect(dfa, dsa_dfa_complement(
                                    dsa_schema_pattern(s, v)));
    }

    v = dsa_part_not(part, "format");

    if (v != NULL) {
        v = dsa_part_format(v, &pattern);
        dfa = dsa_dfa_intersect(dfa, dsa_dfa_complement(v != NULL
                  ? dsa_dfa_copy(dsa_schema_regex(s, v, dsa_strz(pattern)))
                  : dsa_dfa_lengths(0, UINT32_MAX)));
    }

    v = dsa_part_not(part, "const");

    if (v != NULL) {
        dfa = dsa_schema_other_texts(s, dfa, v, 0);
    }

    v = dsa_part_not(part, "enum");

    return v != NULL ? dsa_schema_other_texts(s, dfa, v->first, 1) : dfa;
}


dsa_dfa_t *
dsa_schema_pattern(dsa_schema_t *s, const dsa_json_t *v)
{
    if (v->type != DSA_JSON_STRING) {
        dsa_schema_fail(s, "pattern", "it is not a string; expected a "
                        "regular expression");
        return NULL;
    }

    return dsa_dfa_copy(dsa_schema_regex(s, v, v->text));
}


/* Removes constants; consumes dfa. */

static dsa_dfa_t *
dsa_schema_other_texts(dsa_schema_t *s, dsa_dfa_t *dfa,
    const dsa_json_t *first, int list)
{
    dsa_buf_t          b;
    dsa_err_t          error;
    dsa_dfa_t         *texts;
    const dsa_json_t  *v;

    memset(&b, 0, sizeof(dsa_buf_t));
    dsa_buf_addz(&b, "^(?:[]");

    for (v = first; v != NULL; v = list ? v->next : NULL) {
        if (v->type == DSA_JSON_STRING) {
            dsa_buf_addz(&b, "|");
            dsa_schema_literal(&b, v->text);
        }
    }

    dsa_buf_addz(&b, ")$");

    texts = b.failed ? NULL : dsa_regex(dsa_str(b.data, b.len), &s->work,
                                        &error);
    dsa_buf_free(&b);

    return dsa_dfa_intersect(dfa, dsa_dfa_complement(texts));
}


/*
 * Limits the length; consumes dfa.  Each length takes states of its own.  If
 * those up to max are too many, the strings are shorter than they could be.
 */

static dsa_dfa_t *
dsa_schema_sized(dsa_schema_t *s, dsa_dfa_t *dfa, uint32_t min, uint32_t max)
{
    uint32_t  most;

    if (dfa == NULL || (min == 0 && dsa_dfa_longest(dfa) <= max)) {
        return dfa;
    }

    most = DSA_TEXT_STATES / dfa->n_states;
    most = most > min ? most : min;

    if (max != DSA_AUTOMATON_MANY && max > most) {
        if (most < DSA_TEXT_SHORT) {
            dsa_dfa_free(dfa);
            return NULL;
        }

        max = most;
    }

    return dsa_dfa_intersect(dfa, dsa_dfa_lengths(min, max));
}


dsa_dfa_t *
dsa_schema_names(dsa_schema_t *s, const dsa_parts_t *p)
{
    uint32_t           k, n, min, max;
    const dsa_json_t  *list;

    list = dsa_parts_enum(p);

    if (list != NULL || p->never) {
        return dsa_schema_listed_names(s, p, list);
    }

    k = dsa_parts_choice(p, &n);

    if (k != p->n) {
        return dsa_schema_chosen_names(s, p, k, n);
    }

    dsa_parts_refuse(s, p, DSA_TYPE_STRING);

    if ((dsa_parts_types(s, p) & DSA_TYPE_STRING) == 0
        || dsa_parts_range(s, p, "minLength", "maxLength", &min, &max)
           != DSA_OK)
    {
        return s->failed ? NULL : dsa_schema_listed_names(s, p, NULL);
    }

    return dsa_schema_text(s, p, min, max);
}


static dsa_dfa_t *
dsa_schema_chosen_names(dsa_schema_t *s, const dsa_parts_t *p, uint32_t k,
    uint32_t n)
{
    uint32_t     i;
    dsa_dfa_t   *dfa;
    dsa_parts_t  q;

    dfa = dsa_schema_listed_names(s, p, NULL);

    for (i = 0; i < n && dfa != NULL; i++) {
        if (dsa_parts_choose(s, p, k, i, &q)) {
            dfa = dsa_dfa_either(dfa, dsa_schema_names(s, &q));
        }
    }

    return dfa;
}


/* The names of a list that p permits; list NULL: there are none. */

static dsa_dfa_t *
dsa_schema_listed_names(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_json_t *list)
{
    dsa_buf_t          b;
    dsa_dfa_t         *dfa;
    dsa_err_t          error;
    const dsa_json_t  *v;

    memset(&b, 0, sizeof(dsa_buf_t));
    dsa_buf_addz(&b, "^(?:[]");

    v = list != NULL && dsa_str_eqz(list->key, "enum") ? list->first : list;

    for ( /* void */ ; v != NULL; v = v != list ? v->next : NULL) {
        if (v->type == DSA_JSON_STRING && dsa_parts_valid(s, p, v)) {
            dsa_buf_addz(&b, "|");
            dsa_schema_literal(&b, v->text);
        }
    }

    dsa_buf_addz(&b, ")$");

    dfa = b.failed ? NULL : dsa_regex(dsa_str(b.data, b.len), &s->work,
                                      &error);
    dsa_buf_free(&b);

    if (dfa == NULL) {
        dsa_schema_fail(s, NULL, "its names are too long; expected fewer or "
                        "shorter ones");
    }

    return dfa;
}
