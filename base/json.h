
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_JSON_H_INCLUDED_
#define _DSA_JSON_H_INCLUDED_


#include "arena.h"
#include "buf.h"
#include "error.h"


/*
 * A JSON text as a tree in an arena, read by yajl chunk by chunk, so that the
 * body of a request never has to lie in one piece.  Numbers keep the text
 * they were written with: an integer of any size survives.  A name
 * that is repeated in an object is an error, because JSON readers do not
 * agree on which value counts.  An unpaired surrogate (\uD800 to \uDFFF) is
 * an error, too, because it has no UTF-8.
 */

typedef enum {
    DSA_JSON_NULL = 0,
    DSA_JSON_FALSE,
    DSA_JSON_TRUE,
    DSA_JSON_INTEGER,           /* no fraction and no exponent */
    DSA_JSON_FLOAT,
    DSA_JSON_STRING,
    DSA_JSON_ARRAY,
    DSA_JSON_OBJECT
} dsa_json_type_e;


typedef struct dsa_json_s  dsa_json_t;

struct dsa_json_s {
    dsa_json_type_e    type;
    uint32_t           n;       /* elements or members */
    dsa_str_t          key;     /* in an object: the member's name, UTF-8 */
    dsa_str_t          text;    /* string: unescaped UTF-8; number: as read */
    dsa_json_t        *first;   /* array, object: children, in order */
    dsa_json_t        *next;    /* the next sibling */
};


typedef struct dsa_json_parser_s  dsa_json_parser_t;


/*
 * Most values, at all levels together, of a text that is read in chunks.  A
 * value takes 100 to 200 ns to read, and the worker serves no other request
 * meanwhile.  8,192 messages with 30 values each stay below the limit.
 */
#define DSA_JSON_VALUES     262144

/*
 * For a text from outside.  arena: takes the tree and outlives the parser.
 * depth: most levels of nesting.  NULL when out of memory.  The parser itself
 * is freed by dsa_json_parser_destroy().
 */
dsa_json_parser_t *dsa_json_parser_create(dsa_arena_t *arena, uint32_t depth);
void dsa_json_parser_destroy(dsa_json_parser_t *p);    /* NULL is allowed */

/*
 * DSA_OK, or DSA_ERROR with the reason and the byte's offset in err: invalid
 * JSON, invalid UTF-8, an unpaired surrogate, a repeated name,
 * nesting too deep, text after the value, out of memory, more values than
 * DSA_JSON_VALUES (of the last two dsa_arena_exceeded() is true).
 */
int dsa_json_feed(dsa_json_parser_t *p, const void *data, size_t len,
    dsa_err_t *err);

/* The end of the text: the root, or NULL with err. */
dsa_json_t *dsa_json_finish(dsa_json_parser_t *p, dsa_err_t *err);

/*
 * The three above for a text in one piece that is bounded otherwise: a file,
 * or what was written here.  Any number of values.
 */
dsa_json_t *dsa_json_parse(dsa_arena_t *arena, const void *data, size_t len,
    uint32_t depth, dsa_err_t *err);

/*
 * The same with at most *values values; those read are taken off it.  A text
 * with more is an error like invalid JSON, and the arena is not exceeded.
 */
dsa_json_t *dsa_json_parse_some(dsa_arena_t *arena, const void *data,
    size_t len, uint32_t depth, uint32_t *values, dsa_err_t *err);

/* A member of an object, NULL when absent or when obj is no object. */
dsa_json_t *dsa_json_get(const dsa_json_t *obj, const char *key);

/* A number's value; DSA_ERROR when it is none or out of range. */
int dsa_json_int(const dsa_json_t *v, int64_t *out);
int dsa_json_double(const dsa_json_t *v, double *out);


/*
 * Appends the text that the inside of a JSON string encodes.  Bytes that a
 * JSON string must escape are accepted as they are.  DSA_ERROR, with nothing
 * appended, if an escape is unknown, cut off, or an unpaired surrogate.
 */
int dsa_json_unescape(dsa_buf_t *b, dsa_str_t s);


#endif /* _DSA_JSON_H_INCLUDED_ */
