
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>

#include "engine/tokenizer/load.h"


static int dsa_load_one_stage(dsa_loader_t *l, const dsa_fields_t *f,
    uint32_t *last);
static int dsa_load_split(dsa_loader_t *l, const dsa_fields_t *f);
static int dsa_load_behavior(const dsa_fields_t *f,
    dsa_split_behavior_e *behavior);
static int dsa_load_pattern(const dsa_fields_t *f, pcre2_code **code);
static pcre2_code *dsa_load_literal(const char *where, dsa_str_t text,
    dsa_err_t *err);
static int dsa_load_byte_level(dsa_loader_t *l, const dsa_fields_t *f);
static dsa_split_stage_t *dsa_load_stage(dsa_loader_t *l,
    const dsa_fields_t *f);


/*
 * Reads pre_tokenizer: one stage, or a Sequence of them.  ByteLevel is the
 * last.
 */

int
dsa_load_stages(dsa_loader_t *l)
{
    char               prefix[64];
    uint32_t           n, last;
    dsa_fields_t       pre, f;
    const dsa_json_t  *list, *v;

    if (dsa_fields_inner(&pre, &l->top, "pre_tokenizer", "pre_tokenizer.")
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (pre.object == NULL) {
        return dsa_field_reject(&l->top, "pre_tokenizer", NULL, "an object");
    }

    last = 0;

    if (!dsa_field_is(&pre, "type", "Sequence")) {
        if (dsa_load_one_stage(l, &pre, &last) != DSA_OK) {
            return DSA_ERROR;
        }

    } else {
        list = dsa_field(&pre, "pretokenizers");

        if (list == NULL || list->type != DSA_JSON_ARRAY) {
            return dsa_field_reject(&pre, "pretokenizers", list, "an array");
        }

        f = pre;
        f.prefix = prefix;

        v = list->first;

        for (n = 0; v != NULL; v = v->next, n++) {
            (void) snprintf(prefix, sizeof(prefix),
                            "pre_tokenizer.pretokenizers[%u].", n);
            f.object = v;

            if (dsa_load_one_stage(l, &f, &last) != DSA_OK) {
                return DSA_ERROR;
            }
        }
    }

    if (!last) {
        return dsa_error(l->top.err, "%s: \"pre_tokenizer\" ends without a "
                         "ByteLevel; expected one, because the vocabulary is "
                         "of bytes", l->top.file);
    }

    return DSA_OK;
}


/* Reads a stage.  *last is set to 1 by a ByteLevel. */

static int
dsa_load_one_stage(dsa_loader_t *l, const dsa_fields_t *f, uint32_t *last)
{
    if (*last) {
        return dsa_error(l->top.err, "%s: \"%stype\" follows a ByteLevel; "
                         "expected that ByteLevel is the last", l->top.file,
                         f->prefix);
    }

    if (dsa_field_is(f, "type", "Split")) {
        return dsa_load_split(l, f);
    }

    if (dsa_field_is(f, "type", "ByteLevel")) {
        *last = 1;
        return dsa_load_byte_level(l, f);
    }

    return dsa_field_reject(f, "type", dsa_field(f, "type"), "\"Split\", "
                            "\"ByteLevel\" or a \"Sequence\" of them");
}


static int
dsa_load_split(dsa_loader_t *l, const dsa_fields_t *f)
{
    dsa_split_stage_t         *stage;

    static const char  *const  names[] = {
        "type", "pattern", "behavior", "invert", NULL
    };

    if (dsa_fields_known(f, names) != DSA_OK) {
        return DSA_ERROR;
    }

    stage = dsa_load_stage(l, f);
    if (stage == NULL) {
        return DSA_ERROR;
    }

    if (dsa_field_flag(f, "invert", 0, &stage->invert) != DSA_OK
        || dsa_load_behavior(f, &stage->behavior) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_load_pattern(f, &stage->code);
}


static int
dsa_load_behavior(const dsa_fields_t *f, dsa_split_behavior_e *behavior)
{
    uint32_t            i;

    static const char  *name[] = {
        "Isolated", "Removed", "MergedWithPrevious", "MergedWithNext",
        "Contiguous"
    };

    _Static_assert(DSA_SPLIT_CONTIGUOUS + 1 == sizeof(name) / sizeof(name[0]),
                   "a behavior has no name");

    for (i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
        if (dsa_field_is(f, "behavior", name[i])) {
            *behavior = (dsa_split_behavior_e) i;
            return DSA_OK;
        }
    }

    return dsa_field_reject(f, "behavior", dsa_field(f, "behavior"),
                            "Isolated, Removed, MergedWithPrevious, "
                            "MergedWithNext or Contiguous");
}


static int
dsa_load_pattern(const dsa_fields_t *f, pcre2_code **code)
{
    char               where[256];
    dsa_fields_t       pattern;
    const dsa_json_t  *regex, *literal;

    if (dsa_fields_inner(&pattern, f, "pattern", "") != DSA_OK) {
        return DSA_ERROR;
    }

    regex = dsa_field(&pattern, "Regex");
    literal = dsa_field(&pattern, "String");

    (void) snprintf(where, sizeof(where), "%s: \"%spattern\"", f->file,
                    f->prefix);

    if (regex != NULL && regex->type == DSA_JSON_STRING && literal == NULL) {
        *code = dsa_split_compile(where, regex->text, f->err);

    } else if (literal != NULL && literal->type == DSA_JSON_STRING
               && regex == NULL)
    {
        *code = dsa_load_literal(where, literal->text, f->err);

    } else {
        return dsa_field_reject(f, "pattern", pattern.object,
                                "an object with \"Regex\" or \"String\"");
    }

    return (*code != NULL) ? DSA_OK : DSA_ERROR;
}


/* Compiles a pattern that matches exactly this text. */

static pcre2_code *
dsa_load_literal(const char *where, dsa_str_t text, dsa_err_t *err)
{
    char        *escaped, *p;
    size_t       i;
    pcre2_code  *code;

    escaped = malloc(2 * text.len + 1);
    if (escaped == NULL) {
        (void) dsa_error(err, "%s: out of memory", where);
        return NULL;
    }

    p = escaped;

    for (i = 0; i < text.len; i++) {

        if (text.data[i] != '\0'
            && strchr("\\^$.[]|()?*+{}", text.data[i]) != NULL)
        {
            *p++ = '\\';
        }

        *p++ = text.data[i];
    }

    code = dsa_split_compile(where, dsa_str(escaped, (size_t) (p - escaped)),
                             err);
    free(escaped);

    return code;
}


static int
dsa_load_byte_level(dsa_loader_t *l, const dsa_fields_t *f)
{
    char                       where[256];
    uint32_t                   use_regex;
    dsa_split_stage_t         *stage;

    static const char  *const  names[] = {
        "type", "add_prefix_space", "trim_offsets", "use_regex", NULL
    };

    /* use_regex selects the pattern of GPT-2 */

    static const char          pattern[] =
        "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
        "|\\s+(?!\\S)|\\s+";

    if (dsa_fields_known(f, names) != DSA_OK) {
        return DSA_ERROR;
    }

    stage = dsa_load_stage(l, f);
    if (stage == NULL) {
        return DSA_ERROR;
    }

    if (dsa_field_flag(f, "add_prefix_space", 1, &stage->prefix_space)
        != DSA_OK
        || dsa_field_flag(f, "use_regex", 1, &use_regex) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (use_regex) {
        (void) snprintf(where, sizeof(where), "%s: \"%suse_regex\"", f->file,
                        f->prefix);

        stage->code = dsa_split_compile(where, dsa_strz(pattern), f->err);

        return (stage->code != NULL) ? DSA_OK : DSA_ERROR;
    }

    /* a stage that neither cuts nor adds a space has no effect */

    if (!stage->prefix_space) {
        l->t->n_stages--;
    }

    return DSA_OK;
}


static dsa_split_stage_t *
dsa_load_stage(dsa_loader_t *l, const dsa_fields_t *f)
{
    if (l->t->n_stages == DSA_TOKENIZER_MAX_STAGE) {
        (void) dsa_error(l->top.err, "%s: \"%stype\": too many stages; "
                         "expected at most %d", l->top.file, f->prefix,
                         DSA_TOKENIZER_MAX_STAGE);
        return NULL;
    }

    return &l->t->stage[l->t->n_stages++];
}
