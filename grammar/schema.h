
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCHEMA_H_INCLUDED_
#define _DSA_SCHEMA_H_INCLUDED_


#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "grammar/automaton.h"
#include "grammar/dfa.h"
#include "grammar/grammar.h"


/*
 * Inside grammar/: schemas become paths between two nodes of an automaton.
 *
 * The functions report the first error in s->error and set s->failed; later
 * calls do nothing.  s->path names the schema that is being compiled.
 */

typedef struct dsa_schema_s  dsa_schema_t;


#define DSA_SCHEMA_DEPTH        128     /* most schemas in one another */
#define DSA_SCHEMA_PROPERTIES   2000    /* most properties of an object */
#define DSA_SCHEMA_ENUM         10000   /* most values of an enum */
#define DSA_SCHEMA_BLANKS       20      /* of an indentation */


/* Which values of a schema are meant, and how they are written. */

typedef enum {
    DSA_VALUES_JSON = 0,
    DSA_VALUES_NOT_STRINGS,             /* JSON, without strings */
    DSA_VALUES_TEXT,                    /* strings only, as their text */
    DSA_VALUES_ELEMENTS                 /* objects only, as the elements of a
                                           call's parameters */
} dsa_values_e;


#define DSA_TYPE_NULL       0x01
#define DSA_TYPE_BOOLEAN    0x02
#define DSA_TYPE_INTEGER    0x04
#define DSA_TYPE_FRACTION   0x08        /* it has digits behind the point */
#define DSA_TYPE_NUMBER     0x0c
#define DSA_TYPE_STRING     0x10
#define DSA_TYPE_ARRAY      0x20
#define DSA_TYPE_OBJECT     0x40
#define DSA_TYPE_ANY        0x7f


/* What a keyword constrains: values of these types, or one of the following. */

#define DSA_KEYWORD_REF         0x100
#define DSA_KEYWORD_ALL_OF      0x200
#define DSA_KEYWORD_ANY_OF      0x400
#define DSA_KEYWORD_ONE_OF      0x800
#define DSA_KEYWORD_NOT         0x1000
#define DSA_KEYWORD_IF          0x2000
#define DSA_KEYWORD_DEPENDENT   0x4000
#define DSA_KEYWORD_ENUM        0x8000
#define DSA_KEYWORD_TYPE        0x10000
#define DSA_KEYWORD_REFUSED     0x20000     /* besides; it is not supported */
#define DSA_KEYWORD_NEGATED     0x40000     /* besides; "not" supports it */
#define DSA_KEYWORD_APART                                                     \
    (DSA_KEYWORD_PARTS | DSA_KEYWORD_REF | DSA_KEYWORD_IF)
#define DSA_KEYWORD_PARTS                                                     \
    (DSA_KEYWORD_ALL_OF | DSA_KEYWORD_ANY_OF | DSA_KEYWORD_ONE_OF             \
     | DSA_KEYWORD_NOT | DSA_KEYWORD_DEPENDENT)


/*
 * 1 if a value satisfies a keyword.  schema: that of the keyword; NULL in a
 * negation.
 */
typedef int dsa_valid_pt(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v);


typedef struct {
    const char          *name;
    uint32_t             what;
    dsa_valid_pt        *valid;         /* NULL: it is refused */
} dsa_keyword_t;


/*
 * A part is one of the conditions on a value.  All parts of a list apply, so
 * that allOf, $ref beside other keywords, and what several schemas demand of
 * one property are lists.  A part with alternatives (anyOf, for example) is
 * replaced by one of them at a time, until there is none.
 */

typedef enum {
    DSA_PART_SCHEMA = 0,        /* the whole schema */
    DSA_PART_OWN,               /* the schema without keywords that have a part
                                   of their own */
    DSA_PART_ANY_OF,            /* schema: the list */
    DSA_PART_ONE_OF,
    DSA_PART_IF,                /* if, then and else of the schema */
    DSA_PART_DEPENDENT,         /* schema: what the property of its name
                                   demands */
    DSA_PART_NOT,               /* not the schema */
    DSA_PART_NOT_KEYWORD,       /* schema: a keyword's value; not the keyword */
    DSA_PART_OBJECT,            /* an object */
    DSA_PART_REQUIRED,          /* schema: a list of required names */
    DSA_PART_PRESENT,           /* the property of the name is present, */
    DSA_PART_ABSENT,            /* or absent, if it is an object */
    DSA_PART_MEMBER_NOT,        /* the property of its name is not the schema */
    DSA_PART_OTHER              /* the object has a member that violates the
                                   schema's additionalProperties */
} dsa_part_e;


typedef struct {
    const dsa_json_t    *schema;
    uintptr_t            kind;          /* dsa_part_e */
    const char          *path;          /* of the schema */
} dsa_part_t;


typedef struct {
    dsa_part_t          *part;
    uint32_t             n;
    uint32_t             size;
    int                  never;         /* no value satisfies it */
    int                  refers;        /* a $ref was followed */
} dsa_parts_t;


/* A rule for the values of a list of parts. */

typedef struct dsa_schema_rule_s  dsa_schema_rule_t;

struct dsa_schema_rule_s {
    dsa_parts_t              parts;
    dsa_values_e             values;
    uint32_t                 entry;
    dsa_schema_rule_t       *next;      /* that is not compiled yet */
};


struct dsa_schema_s {
    dsa_automaton_t         *a;
    dsa_grammar_error_t     *error;
    dsa_arena_t             *arena;
    const struct dsa_tools_syntax_s  *syntax;   /* of calls, see tools.c */
    const dsa_json_t        *root;      /* of $ref */
    char                     prefix[128];   /* path of the root */
    char                     path[256];
    uint32_t                 depth;
    int                      failed;
    uint32_t                 work;      /* steps that are left */
    int                      loose;     /* a schema that is not strict is not
                                           enforced at all */
    int                      optional;  /* there is one */
    int                      lenient;   /* it is being compiled: what is not
                                           supported is left out */
    uint32_t                 skipped;   /* how often */
    const dsa_json_t        *listed;    /* an enum, and its value that is */
    const dsa_json_t        *candidate; /* checked against other conditions */
    uint32_t                 probing;   /* whether schemas are disjoint: the
                                           ones of a oneOf need not be */

    dsa_map_t                rules;
    dsa_map_t                patterns;  /* their automata, by their text */
    dsa_map_t                leaves;    /* entries of rules for strings and
                                           numbers, by what demands them */
    dsa_schema_rule_t       *pending;

    /* entries of rules that many schemas use; 0: not made */

    uint32_t                 blank;
    uint32_t                 any[DSA_VALUES_TEXT + 1];
    uint32_t                 string;
    uint32_t                 members;   /* of an object, each any JSON */
};


/* schema.c */

/*
 * Paths for a spec of the type json_object or json_schema.  0: it has another
 * type, or none.
 */
int dsa_schema_spec(dsa_schema_t *s, const dsa_json_t *spec, uint32_t from,
    uint32_t to);

/* Sets the error for a keyword of the current schema; NULL: the schema. */
void dsa_schema_fail(dsa_schema_t *s, const char *keyword, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));

/*
 * 1: the schema is not strict, and what is not supported is left out of it.
 * 0: the caller refuses it.
 */
int dsa_schema_skip(dsa_schema_t *s);

/* Sets the path of errors to that of a part. */
void dsa_schema_at(dsa_schema_t *s, const dsa_part_t *part);

/* A path in the arena, or "": there is no memory. */
const char *dsa_schema_path(dsa_schema_t *s, const char *path,
    const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Subtracts steps from the work; refuses a schema that needs too many. */
void dsa_schema_spend(dsa_schema_t *s, uint32_t steps);

/* The same for the steps that an automaton takes. */
void dsa_schema_charge(dsa_schema_t *s, const dsa_dfa_t *dfa);


/* schema_keyword.c */

/* NULL: it constrains nothing. */
const dsa_keyword_t *dsa_schema_keyword(dsa_str_t name);

/* The types of "type", or all; sets failed. */
uint32_t dsa_schema_types(dsa_schema_t *s, const dsa_json_t *type);

/* The value of a keyword that is a count. */
uint32_t dsa_schema_count(dsa_schema_t *s, const dsa_json_t *v);

/* The schema of a $ref and its path, or NULL: it is skipped, or failed. */
const dsa_json_t *dsa_schema_pointer(dsa_schema_t *s, const dsa_json_t *ref,
    const char **path);


/* schema_parts.c */

/* Adds a part that the list does not have yet, as it is. */
void dsa_parts_add(dsa_schema_t *s, dsa_parts_t *p, dsa_part_e kind,
    const dsa_json_t *schema, const char *path);

/* Adds the parts of a part: no schema, allOf or $ref is left. */
void dsa_parts_expand(dsa_schema_t *s, dsa_parts_t *p,
    const dsa_part_t *part);

/*
 * Adds that an object lacks a name of "required", or has a property that is not
 * its schema.
 */
void dsa_parts_add_not_member(dsa_schema_t *s, dsa_parts_t *p,
    const dsa_json_t *v, const char *path);

/* Adds that an object violates the additionalProperties of a schema. */
void dsa_parts_add_not_additional(dsa_schema_t *s, dsa_parts_t *p,
    const dsa_json_t *schema, const char *path);

/* The name of a part that has one. */
dsa_str_t dsa_part_name(const dsa_part_t *part);

/* A keyword of a part DSA_PART_OWN, or NULL. */
const dsa_json_t *dsa_part_get(const dsa_part_t *part, const char *keyword);

/* The keyword of a part DSA_PART_NOT_KEYWORD, or NULL. */
const dsa_json_t *dsa_part_not(const dsa_part_t *part, const char *keyword);


/* schema_choice.c: lists of expanded parts with alternatives */

/* The first part with alternatives, or p->n. */
uint32_t dsa_parts_choice(const dsa_parts_t *p, uint32_t *alternatives);

/*
 * Adds p to out, with one of the alternatives in place of part k.  0: the
 * alternative is a negation that is not supported.
 */
int dsa_parts_choose(dsa_schema_t *s, const dsa_parts_t *p, uint32_t k,
    uint32_t alternative, dsa_parts_t *out);

/* 0: the part is a negation that is not supported for these types. */
int dsa_part_supported(const dsa_part_t *part, uint32_t types);

/*
 * 1: no object satisfies the list, because a member that is required cannot be
 * valid; 0: this is not known.  It costs less than to compile the alternatives
 * that the other parts still have.
 */
int dsa_parts_dead(dsa_schema_t *s, const dsa_parts_t *p);

/* 1: no value satisfies the list; 0: this is not known. */
int dsa_parts_never(dsa_schema_t *s, const dsa_parts_t *p, uint32_t depth);


/* schema_merge.c: lists of expanded parts without alternatives */

uint32_t dsa_parts_types(dsa_schema_t *s, const dsa_parts_t *p);

/* Refuses, or skips, unsupported keywords that constrain these types. */
void dsa_parts_refuse(dsa_schema_t *s, const dsa_parts_t *p, uint32_t types);

/* The enum or const of a part of the list, or NULL. */
const dsa_json_t *dsa_parts_enum(const dsa_parts_t *p);

/* The bounds of a count.  DSA_ERROR: nothing is between them, or failed. */
int dsa_parts_range(dsa_schema_t *s, const dsa_parts_t *p,
    const char *least, const char *most, uint32_t *min, uint32_t *max);

/*
 * What these keywords demand of strings or numbers, as a key of s->leaves;
 * failed: a negation demands something, or there is no memory.
 */
dsa_buf_t dsa_parts_key(const dsa_parts_t *p, uint32_t types,
    dsa_values_e values);

/* Sets the path of errors to the first part with a keyword. */
void dsa_parts_at(dsa_schema_t *s, const dsa_parts_t *p, const char *keyword);

/* Adds to out what the list demands of the property of a name. */
void dsa_parts_member(dsa_schema_t *s, const dsa_parts_t *p, dsa_str_t name,
    dsa_parts_t *out);

/* The same for the item of an index; DSA_AUTOMATON_MANY: the other ones. */
void dsa_parts_item(dsa_schema_t *s, const dsa_parts_t *p, uint32_t index,
    dsa_parts_t *out);

/* The schemas of the first items of a part, or NULL. */
const dsa_json_t *dsa_part_prefix(const dsa_part_t *part);

/*
 * The automaton of a pattern, made once, or NULL: error is set.  That of a
 * "pattern" that is skipped permits every text.
 */
const dsa_dfa_t *dsa_schema_regex(dsa_schema_t *s, const dsa_json_t *v,
    dsa_str_t pattern);
void dsa_schema_regex_free(dsa_schema_t *s);


/* schema_valid.c */

/* 1 if a value satisfies a part, or a list. */
int dsa_part_valid(dsa_schema_t *s, const dsa_part_t *part,
    const dsa_json_t *v);
int dsa_parts_valid(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_json_t *v);

dsa_valid_pt  dsa_valid_type, dsa_valid_enum, dsa_valid_all_of,
    dsa_valid_any_of, dsa_valid_not, dsa_valid_if, dsa_valid_dependent,
    dsa_valid_ref, dsa_valid_required, dsa_valid_properties,
    dsa_valid_patterns, dsa_valid_additional, dsa_valid_names,
    dsa_valid_prefix, dsa_valid_items, dsa_valid_count, dsa_valid_pattern,
    dsa_valid_format, dsa_valid_bound, dsa_valid_multiple;


/* schema_compile.c */

/* Paths for the values of a list of parts.  Pending rules stay uncompiled. */
void dsa_schema_compile(dsa_schema_t *s, const dsa_parts_t *parts,
    dsa_values_e values, uint32_t from, uint32_t to);

/* Compiles rules that were called. */
void dsa_schema_rules(dsa_schema_t *s);


/* schema_values.c */

void dsa_schema_any(dsa_schema_t *s, dsa_values_e values, uint32_t from,
    uint32_t to);
void dsa_schema_any_object(dsa_schema_t *s, uint32_t from, uint32_t to);
void dsa_schema_enum(dsa_schema_t *s, const dsa_parts_t *p,
    dsa_values_e values, uint32_t from, uint32_t to);
void dsa_schema_leaf(dsa_schema_t *s, const dsa_parts_t *p, uint32_t types,
    dsa_values_e values, uint32_t from, uint32_t to);
void dsa_schema_words(dsa_schema_t *s, const dsa_parts_t *p, uint32_t types,
    uint32_t from, uint32_t to);

/* A pattern for exactly this text, without anchors. */
void dsa_schema_literal(dsa_buf_t *b, dsa_str_t text);


/* schema_text.c */

/*
 * The strings of min to max characters that a list without alternatives
 * permits, or NULL: error is set.
 */
dsa_dfa_t *dsa_schema_text(dsa_schema_t *s, const dsa_parts_t *p, uint32_t min,
    uint32_t max);

/* The automaton of the keyword "pattern", or NULL. */
dsa_dfa_t *dsa_schema_pattern(dsa_schema_t *s, const dsa_json_t *v);

/* 1: the list permits strings of any characters. */
int dsa_schema_text_is_free(const dsa_parts_t *p);

/* The strings that a list of expanded parts permits, or NULL: error is set. */
dsa_dfa_t *dsa_schema_names(dsa_schema_t *s, const dsa_parts_t *p);


/* schema_object.c, schema_array.c */

void dsa_schema_object(dsa_schema_t *s, const dsa_parts_t *p, uint32_t from,
    uint32_t to);
void dsa_schema_array(dsa_schema_t *s, const dsa_parts_t *p, uint32_t from,
    uint32_t to);

/* properties and required of an object, in order, required ones behind. */

typedef struct {
    dsa_str_t            name;
    int                  required;
} dsa_property_t;

/* NULL: error is set.  The list may be empty. */
dsa_property_t *dsa_schema_properties(dsa_schema_t *s, const dsa_parts_t *p,
    uint32_t *n);

/* 1: there are no other names, and nothing constrains them. */
int dsa_parts_closed(const dsa_parts_t *p);
int dsa_parts_open(const dsa_parts_t *p);

/* 1: the additionalProperties of a part DSA_PART_OTHER do not apply to it. */
int dsa_part_lists(dsa_schema_t *s, const dsa_part_t *part, dsa_str_t name);

/*
 * The same for names that dsa_schema_properties() does not list: 0 only if it
 * applies to all of them.
 */
int dsa_part_lists_others(const dsa_part_t *part);

/* 1: the schema permits any value. */
int dsa_schema_is_any(const dsa_json_t *schema);


/* schema_demand.c */

#define DSA_SCHEMA_DEMANDS      3       /* of an object; more are joined */


/*
 * What the parts DSA_PART_OTHER of a list demand: each one is a bit, and one
 * member at least must have it.
 */

typedef struct {
    uint32_t             n;             /* 0: nothing */
    uint8_t             *met;           /* by each property, and by members
                                           with other names behind them: its
                                           bits; NULL: nothing */
} dsa_demands_t;


/*
 * The demands that no required property meets anyway.  DSA_ERROR: no object
 * meets them, or failed.
 */
int dsa_schema_demands(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_property_t *property, uint32_t n, dsa_demands_t *d);


/* schema_names.c */

/* Makes paths for members whose names are in a set. */
typedef void (*dsa_members_pt)(dsa_schema_t *s, const dsa_dfa_t *names,
    const dsa_parts_t *value, void *data);

/*
 * Calls handler for each set of names that no property has and that demand the
 * same of their values.  limit: the names that are possible at all, or NULL;
 * it is consumed.
 */
void dsa_schema_others(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_property_t *property, uint32_t n, dsa_dfa_t *limit,
    dsa_members_pt handler, void *data);


/* schema_space.c */

/* White space between two tokens, which may be empty. */
void dsa_schema_blank(dsa_schema_t *s, uint32_t from, uint32_t to);

/* ":" and an optional blank. */
void dsa_schema_colon(dsa_schema_t *s, uint32_t from, uint32_t to);


/* tools.c */

void dsa_tools_compile(dsa_schema_t *s, const dsa_json_t *spec, uint32_t from,
    uint32_t to);

/* The elements of a call's parameters, whose schema is a list. */
void dsa_tools_elements(dsa_schema_t *s, const dsa_parts_t *p, uint32_t from,
    uint32_t to);


/* number.c: numbers of a list of these types, or NULL with an error. */

dsa_dfa_t *dsa_number(dsa_schema_t *s, const dsa_parts_t *p, uint32_t types);

/* 1: the list constrains no numbers, beyond their types. */
int dsa_number_is_free(const dsa_parts_t *p);


/* format.c: the pattern of a format, or NULL: it is unknown. */

const char *dsa_format_pattern(dsa_str_t format);


#endif /* _DSA_SCHEMA_H_INCLUDED_ */
