
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_JSON_WRITE_H_INCLUDED_
#define _DSA_JSON_WRITE_H_INCLUDED_


#include <stdint.h>

#include "buf.h"
#include "json.h"


/*
 * Writes JSON without spaces into a buffer.  The calls follow the text from
 * left to right, for example
 *
 *     dsa_json_object(&w);
 *     dsa_json_key(&w, "tokens");
 *     dsa_json_uint(&w, 12);
 *     dsa_json_object_end(&w);
 *
 * The writer adds the commas.  The caller must close every object and array,
 * and write a key before each member of an object.  If memory runs out,
 * out->failed is set.
 */

typedef struct {
    dsa_buf_t  *out;
    int         comma;      /* 1: the next value follows another one */
} dsa_json_writer_t;


/* Starts a text at the end of out. */
void dsa_json_writer(dsa_json_writer_t *w, dsa_buf_t *out);

void dsa_json_object(dsa_json_writer_t *w);
void dsa_json_object_end(dsa_json_writer_t *w);
void dsa_json_array(dsa_json_writer_t *w);
void dsa_json_array_end(dsa_json_writer_t *w);

/* The name of the next member; it is written as it is, without escaping. */
void dsa_json_key(dsa_json_writer_t *w, const char *name);

void dsa_json_string(dsa_json_writer_t *w, dsa_str_t text);     /* UTF-8 */
void dsa_json_stringz(dsa_json_writer_t *w, const char *text);
void dsa_json_uint(dsa_json_writer_t *w, uint64_t value);
void dsa_json_bool(dsa_json_writer_t *w, int value);
void dsa_json_null(dsa_json_writer_t *w);

/*
 * A tree with its numbers as they were written.  The recursion is as deep as
 * the tree, whose reader has bounded its depth.
 */
void dsa_json_value(dsa_json_writer_t *w, const dsa_json_t *v);

/* A value that is already JSON. */
void dsa_json_raw(dsa_json_writer_t *w, dsa_str_t json);

/*
 * Writes a string whose text comes in pieces: begin, then any number of
 * dsa_json_escape() to w->out, then end.
 */
void dsa_json_string_begin(dsa_json_writer_t *w);
void dsa_json_string_end(dsa_json_writer_t *w);


/*
 * Writes a tree as Python's json.dumps(x, ensure_ascii=False) does, because
 * the published prompt format is defined by it: ", " and ": ", characters
 * beyond ASCII unescaped, floats as repr().  DSA_ERROR if a number exceeds the
 * range of a double.
 */
int dsa_json_dump(dsa_buf_t *b, const dsa_json_t *v);

/* The escaped inside of a string, without quotes; s may be any piece of it. */
void dsa_json_escape(dsa_buf_t *b, dsa_str_t s);


#endif /* _DSA_JSON_WRITE_H_INCLUDED_ */
