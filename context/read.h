
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_READ_H_INCLUDED_
#define _DSA_READ_H_INCLUDED_


#include "context/chat.h"


/*
 * Inside context/: values of known type out of a tree from outside, and the
 * refusals when they are not, in the published API's words where clients
 * match on them.
 */


/* Where a value stands.  Lives on the stack of whoever goes down the tree. */

typedef struct dsa_at_s  dsa_at_t;

struct dsa_at_s {
    const dsa_at_t     *up;
    const char         *name;           /* NULL: an element */
    uint32_t            index;
};


typedef struct {
    dsa_chat_t         *chat;
    dsa_arena_t        *arena;
    dsa_refusal_t      *refusal;
    dsa_chat_limits_t   limits;
    uint32_t            values;         /* left of DSA_CHAT_VALUES */
} dsa_reader_t;


/* All of them fill the refusal in and return DSA_ERROR. */

int dsa_refuse(dsa_refusal_t *refusal, const dsa_at_t *at, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));

/* The message begins with the path. */
int dsa_refuse_at(dsa_refusal_t *refusal, const dsa_at_t *at,
    const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* v is not what was expected; NULL: it is missing. */
int dsa_refuse_type(dsa_refusal_t *refusal, const dsa_at_t *at,
    const dsa_json_t *v, const char *expected);

/* v is a string, but none of those that are known. */
int dsa_refuse_variant(dsa_refusal_t *refusal, const dsa_at_t *at,
    const dsa_json_t *v, const char *expected);

/* Bytes of s that a message shows: whole characters, and no NUL. */
int dsa_read_shown(dsa_str_t s);

int dsa_refuse_memory(dsa_refusal_t *refusal, const dsa_arena_t *arena);


/*
 * A member of obj that may be absent or null: 1 and *out, 0 and *out as it
 * was, DSA_ERROR.  up is where obj stands.
 */

int dsa_read_any(const dsa_json_t *obj, const char *name, dsa_json_t **out);
int dsa_read_bool(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, const char *name, int *out);
int dsa_read_string(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, const char *name, dsa_str_t *out);

/* range is for the refusal: "[0, 2]". */
int dsa_read_number(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, const char *name, double min, double max,
    const char *range, double *out);

/*
 * Reads an integer.  3.0 counts as one, because some clients write all numbers
 * so.  DSA_ERROR: v is not an integer.  DSA_AGAIN: it exceeds int64_t or, if
 * it has a fraction or an exponent, the integers that a double can hold.
 */
int dsa_read_whole(const dsa_json_t *v, int64_t *n);

int dsa_read_integer(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, const char *name, int64_t min, int64_t max,
    const char *range, int64_t *out);

/* The first number under v that no double can hold, or NULL. */
const dsa_json_t *dsa_read_infinite(const dsa_json_t *v);

/* DSA_OK when every number under v can be written again. */
int dsa_read_finite(dsa_reader_t *r, const dsa_at_t *at,
    const dsa_json_t *v);


/* fields.c: refuses fields that would change the answer, by their names. */

int dsa_read_unsupported(dsa_reader_t *r, const dsa_json_t *root);


/* message.c: an array of messages; at is where it stands. */

int dsa_read_messages(dsa_reader_t *r, const dsa_at_t *at,
    const dsa_json_t *v, dsa_message_t **messages, uint32_t *n);

/* An array of tools or null; *out is left alone for null and []. */

int dsa_read_tools(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, dsa_json_t **out);


#endif /* _DSA_READ_H_INCLUDED_ */
