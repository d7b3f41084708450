
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_FIELDS_H_INCLUDED_
#define _DSA_FIELDS_H_INCLUDED_


#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"


/*
 * Checked reading of the fields of a JSON file, such as config.json.  Each
 * function that finds a value that it does not accept reports it as
 *
 *     FILE: "PREFIXNAME" is VALUE; expected EXPECTED
 *
 * for example: config.json: "rope_scaling.factor" is 0; expected a number from
 * 1 to 1e+06.  A field that is null counts as missing, because the libraries
 * that write these files write null for a field without a value.
 */

typedef struct {
    const char         *file;       /* its name in errors */
    const char         *prefix;     /* before names in errors: "" at the top */
    const dsa_json_t   *object;     /* NULL: every field is missing */
    dsa_arena_t        *arena;      /* the whole tree */
    dsa_err_t          *err;
} dsa_fields_t;


/*
 * Parses a file, which must be an object.  The fields live until
 * dsa_fields_close(), which the caller calls in any case.
 */
int dsa_fields_open(dsa_fields_t *top, const char *file, dsa_str_t json,
    dsa_err_t *err);
void dsa_fields_close(dsa_fields_t *top);

/*
 * Opens the object that is the value of a field of f; it is empty when the
 * field is missing.  prefix is for the names of its fields and outlives inner,
 * for example "rope_scaling.".
 */
int dsa_fields_inner(dsa_fields_t *inner, const dsa_fields_t *f,
    const char *name, const char *prefix);

/* A field's value, NULL when it is missing. */
const dsa_json_t *dsa_field(const dsa_fields_t *f, const char *name);

/* DSA_ERROR also when the field is missing. */
int dsa_field_bool(const dsa_fields_t *f, const char *name, uint32_t *out);
int dsa_field_integer(const dsa_fields_t *f, const char *name, uint32_t min,
    uint32_t max, uint32_t *out);
int dsa_field_number(const dsa_fields_t *f, const char *name, double min,
    double max, double *out);

/* A boolean that may be missing; *out is absent then. */
int dsa_field_flag(const dsa_fields_t *f, const char *name, uint32_t absent,
    uint32_t *out);

/* The value must be json, which is in the form that dsa_json_dump() writes. */
int dsa_field_equals(const dsa_fields_t *f, const char *name,
    const char *json);

/* 1 when the field is this string. */
int dsa_field_is(const dsa_fields_t *f, const char *name, const char *text);

/*
 * Rejects a field whose name is not in names, which ends with NULL: a field
 * that is not read might change the meaning of the others.
 */
int dsa_fields_known(const dsa_fields_t *f, const char *const *names);

/*
 * Reports the value v of a field, NULL when it is missing, and returns
 * DSA_ERROR.
 */
int dsa_field_reject(const dsa_fields_t *f, const char *name,
    const dsa_json_t *v, const char *expected);


#endif /* _DSA_FIELDS_H_INCLUDED_ */
