
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_JSON_H_INCLUDED_
#define _DSA_JSON_H_INCLUDED_


#include "arena.h"
#include "buf.h"
#include "error.h"


/*
 * Reads a JSON text into a tree in an arena, chunk by chunk with yajl, so that
 * the body of a request need not be in one piece.  Numbers keep their text, so
 * that integers of any size survive.  A name that is repeated in an object is
 * an error, because JSON readers do not agree on which value counts.  An
 * unpaired surrogate (\uD800 to \uDFFF) is an error as well, because UTF-8
 * cannot represent it.
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
    dsa_str_t          text;    /* string: unescaped UTF-8; number: as it
                                   was written */
    dsa_json_t        *first;   /* array, object: children, in order */
    dsa_json_t        *next;    /* the next sibling */
};


typedef struct dsa_json_parser_s  dsa_json_parser_t;


/*
 * The most values, at all levels together, of a text that is read in chunks.
 * Reading a value takes up to 100 ns, and about 80 bytes of memory.  8,192
 * messages with 30 values each stay below the limit.
 */
#define DSA_JSON_VALUES     262144

/*
 * A parser of a text from outside.  The tree is allocated from arena, which
 * must outlive the parser.  depth is the most levels of nesting.  NULL when
 * out of memory.  The caller frees the parser with dsa_json_parser_destroy().
 */
dsa_json_parser_t *dsa_json_parser_create(dsa_arena_t *arena, uint32_t depth);
void dsa_json_parser_destroy(dsa_json_parser_t *p);    /* NULL is allowed */

/*
 * DSA_OK, or DSA_ERROR with the reason and the offset of the byte in err, which
 * may be a byte of an earlier chunk.  Errors are invalid JSON, invalid UTF-8,
 * an unpaired surrogate, a repeated name, nesting that is too deep, text after
 * the value, an arena that is exhausted, and more values than DSA_JSON_VALUES.
 * After the last two dsa_arena_exceeded() is true.  The time is proportional
 * to the text, whatever its chunks are.
 */
int dsa_json_feed(dsa_json_parser_t *p, const void *data, size_t len,
    dsa_err_t *err);

/*
 * Ends the text.  Returns the root of the tree, or NULL with err, for the same
 * errors.
 */
dsa_json_t *dsa_json_finish(dsa_json_parser_t *p, dsa_err_t *err);

/*
 * Reads a text that is in one piece and whose size is bounded otherwise, for
 * example a file or a text of our own, with any number of values.
 */
dsa_json_t *dsa_json_parse(dsa_arena_t *arena, const void *data, size_t len,
    uint32_t depth, dsa_err_t *err);

/*
 * The same for a text of at most *values values; their number is subtracted
 * from *values.  A text with more values is an error like invalid JSON, and
 * does not set dsa_arena_exceeded().
 */
dsa_json_t *dsa_json_parse_some(dsa_arena_t *arena, const void *data,
    size_t len, uint32_t depth, uint32_t *values, dsa_err_t *err);

/* A member of an object; NULL if it is absent or obj is not an object. */
dsa_json_t *dsa_json_get(const dsa_json_t *obj, const char *key);

/* The value of a number.  DSA_ERROR: not a number, or out of range. */
int dsa_json_int(const dsa_json_t *v, int64_t *out);
int dsa_json_double(const dsa_json_t *v, double *out);


/*
 * Appends the text that the inside of a JSON string stands for.  Bytes that a
 * JSON string must escape are also accepted unescaped.  DSA_ERROR, with
 * nothing appended, if an escape is unknown, cut off, or an unpaired surrogate.
 */
int dsa_json_unescape(dsa_buf_t *b, dsa_str_t s);


#endif /* _DSA_JSON_H_INCLUDED_ */
