
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOOLS_STATEMENTS_H_INCLUDED_
#define _DSA_TOOLS_STATEMENTS_H_INCLUDED_


#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"


/*
 * The text of a configuration in nginx's syntax, which that of engine.conf is a
 * part of: "name value ...;", "name value ... { statements }", quotes, and
 * comments from # to the end of the line.  The words are not checked.
 */

#define DSA_STATEMENTS_DEPTH  32        /* nested blocks */
#define DSA_STATEMENT_WORDS   512       /* of a statement, with its name */


typedef struct {
    dsa_str_t         *words;           /* [n]; the first is the name */
    uint32_t           n;               /* at least 1 */
    int32_t            parent;          /* the index of the statement whose
                                           block has it; -1: none */
} dsa_statement_t;


typedef struct {
    dsa_statement_t   *elts;
    uint32_t           n;
} dsa_statements_t;


/*
 * Reads the statements in their order, a block before its contents.  Words
 * without a backslash in quotes are part of text, and everything else is in
 * arena.  DSA_ERROR with the line.
 */
int dsa_statements_read(dsa_statements_t *out, dsa_arena_t *arena,
    dsa_str_t text, dsa_err_t *err);

/* Returns the first statement of this name from `from` on, or NULL. */
const dsa_statement_t *dsa_statements_find(const dsa_statements_t *s,
    const char *name, uint32_t from);

/*
 * Returns word i as a NUL-terminated string in arena; NULL: there is none, or
 * the arena is full.
 */
const char *dsa_statement_word(const dsa_statement_t *s, uint32_t i,
    dsa_arena_t *arena);

/* The same for the value behind the prefix "name=" of a word. */
const char *dsa_statement_value(const dsa_statement_t *s, const char *prefix,
    dsa_arena_t *arena);


#endif /* _DSA_TOOLS_STATEMENTS_H_INCLUDED_ */
