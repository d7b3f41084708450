
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

#define DSA_SCHEMA_DEPTH        128     /* most schemas in one another */
#define DSA_SCHEMA_PROPERTIES   2000    /* most properties of an object */
#define DSA_SCHEMA_ENUM         10000   /* most values of an enum */
#define DSA_SCHEMA_BLANKS       20      /* of an indentation */


/* Which values of a schema are meant, and how they are written. */

typedef enum {
    DSA_VALUES_JSON = 0,
    DSA_VALUES_NOT_STRINGS,             /* JSON, without strings */
    DSA_VALUES_TEXT                     /* strings only, as their text */
} dsa_values_e;


#define DSA_TYPE_NULL       0x01
#define DSA_TYPE_BOOLEAN    0x02
#define DSA_TYPE_INTEGER    0x04
#define DSA_TYPE_NUMBER     0x08
#define DSA_TYPE_STRING     0x10
#define DSA_TYPE_ARRAY      0x20
#define DSA_TYPE_OBJECT     0x40
#define DSA_TYPE_ANY        0x7f


/* A rule that a $ref refers to. */

typedef struct dsa_schema_rule_s  dsa_schema_rule_t;

struct dsa_schema_rule_s {
    struct {
        const dsa_json_t    *schema;
        uintptr_t            values;    /* dsa_values_e */
    } key;
    uint32_t                 entry;
    const char              *path;
    dsa_schema_rule_t       *next;      /* that is not compiled yet */
};


typedef struct {
    dsa_automaton_t         *a;
    dsa_grammar_error_t     *error;
    dsa_arena_t             *arena;
    const dsa_json_t        *root;      /* of $ref */
    char                     prefix[128];   /* path of the root */
    char                     path[256];
    uint32_t                 depth;
    int                      failed;
    uint32_t                 work;      /* steps that are left */
    int                      loose;     /* a schema that is not strict is not
                                           enforced */
    int                      optional;  /* there is one */

    dsa_map_t                rules;
    dsa_schema_rule_t       *pending;

    /* entries of rules that many schemas use; 0: not made */

    uint32_t                 blank;
    uint32_t                 any[DSA_VALUES_TEXT + 1];
    uint32_t                 string;
    uint32_t                 number;
    uint32_t                 integer;
    uint32_t                 members;   /* of an object, each any JSON */
} dsa_schema_t;


/* schema.c */

/*
 * Paths for a spec of the type json_object or json_schema.  0: it has another
 * type, or none.
 */
int dsa_schema_spec(dsa_schema_t *s, const dsa_json_t *spec, uint32_t from,
    uint32_t to);

/* Paths for the values of a schema.  Pending rules stay uncompiled. */
void dsa_schema_compile(dsa_schema_t *s, const dsa_json_t *schema,
    dsa_values_e values, uint32_t from, uint32_t to);

/* Compiles rules that $ref referred to. */
void dsa_schema_rules(dsa_schema_t *s);

/* Follows $ref to a schema without one; NULL: error is set. */
const dsa_json_t *dsa_schema_resolve(dsa_schema_t *s,
    const dsa_json_t *schema);

/* The types of "type", or all; sets failed. */
uint32_t dsa_schema_types(dsa_schema_t *s, const dsa_json_t *schema);

/*
 * Refuses keywords that constrain values of these types and are not supported.
 */
void dsa_schema_keywords(dsa_schema_t *s, const dsa_json_t *schema,
    uint32_t types);

/* Sets the error for a keyword of the current schema; NULL: the schema. */
void dsa_schema_fail(dsa_schema_t *s, const char *keyword, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));

/* Appends to the path, and takes it back to a length that it had. */
size_t dsa_schema_push(dsa_schema_t *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void dsa_schema_pop(dsa_schema_t *s, size_t len);

/* Subtracts steps from the work; refuses a schema that needs too many. */
void dsa_schema_spend(dsa_schema_t *s, uint32_t steps);

/* The same for the steps that an automaton takes. */
void dsa_schema_charge(dsa_schema_t *s, const dsa_dfa_t *dfa);

/* The value of a keyword that is a count; absent if the schema lacks it. */
uint32_t dsa_schema_count(dsa_schema_t *s, const dsa_json_t *schema,
    const char *keyword, uint32_t absent);

/* 1 if a schema permits every value. */
int dsa_schema_is_any(const dsa_json_t *schema);


/* schema_values.c */

void dsa_schema_any(dsa_schema_t *s, dsa_values_e values, uint32_t from,
    uint32_t to);
void dsa_schema_any_object(dsa_schema_t *s, uint32_t from, uint32_t to);
void dsa_schema_enum(dsa_schema_t *s, const dsa_json_t *schema,
    dsa_values_e values, uint32_t from, uint32_t to);
void dsa_schema_string(dsa_schema_t *s, const dsa_json_t *schema,
    dsa_values_e values, uint32_t from, uint32_t to);
void dsa_schema_number(dsa_schema_t *s, const dsa_json_t *schema,
    int integer, uint32_t from, uint32_t to);


/* schema_object.c, schema_array.c */

void dsa_schema_object(dsa_schema_t *s, const dsa_json_t *schema,
    uint32_t from, uint32_t to);
void dsa_schema_array(dsa_schema_t *s, const dsa_json_t *schema,
    uint32_t from, uint32_t to);

/* properties and required of an object, in order, required ones behind. */

typedef struct {
    dsa_str_t                name;
    const dsa_json_t        *schema;    /* NULL: that of additionalProperties */
    int                      required;
} dsa_property_t;

/* NULL: error is set.  The list may be empty. */
dsa_property_t *dsa_schema_properties(dsa_schema_t *s,
    const dsa_json_t *schema, uint32_t *n);

/* The names that no property has, or NULL with an error. */
dsa_dfa_t *dsa_schema_other_names(dsa_schema_t *s,
    const dsa_property_t *property, uint32_t n);


/* schema_space.c */

/* White space between two tokens, which may be empty. */
void dsa_schema_blank(dsa_schema_t *s, uint32_t from, uint32_t to);

/* ":" and an optional blank. */
void dsa_schema_colon(dsa_schema_t *s, uint32_t from, uint32_t to);


/* tools.c */

void dsa_tools_compile(dsa_schema_t *s, const dsa_json_t *spec, uint32_t from,
    uint32_t to);


/* number.c: numbers of a schema, or NULL with an error. */

dsa_dfa_t *dsa_number(dsa_schema_t *s, const dsa_json_t *schema, int integer);


/* format.c: the pattern of a format, or NULL: it is unknown. */

const char *dsa_format_pattern(dsa_str_t format);


#endif /* _DSA_SCHEMA_H_INCLUDED_ */
