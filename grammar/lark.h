
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_LARK_H_INCLUDED_
#define _DSA_LARK_H_INCLUDED_


#include "grammar/schema.h"
#include "grammar/text.h"


/*
 * Inside grammar/: a grammar in the language of the Python package Lark becomes
 * paths between two nodes of an automaton, for a text that is a parameter of a
 * tool.  README.md lists what is supported.
 *
 * The definition is read into a tree.  Its tokens, which are strings, ranges
 * and regular expressions, are written to the automaton as they are read.  The
 * tree is checked, and its rules are written.
 */

#define DSA_LARK_BYTES      65536       /* longest definition */
#define DSA_LARK_SYMBOLS    1000        /* most rules and terminals */
#define DSA_LARK_DEPTH      64          /* groups in one another */
#define DSA_LARK_SHOWN      40          /* bytes of a name in an error */
#define DSA_LARK_COUNT      1000000000  /* largest count of a repetition */


typedef enum {
    DSA_LARK_CHOICE = 0,                /* one of its children, which are
                                           sequences */
    DSA_LARK_SEQUENCE,                  /* all of its children */
    DSA_LARK_NAME,                      /* a rule or a terminal */
    DSA_LARK_TOKEN
} dsa_lark_e;


typedef struct {
    dsa_lark_e           kind;
    uint32_t             at;        /* the byte of the definition */
    uint32_t             min;       /* how often it is repeated; 1 to 1: once */
    uint32_t             max;       /* DSA_AUTOMATON_MANY: no maximum */
    uint32_t             first;     /* child; 0: none */
    uint32_t             next;      /* sibling; 0: none */
    uint32_t             symbol;    /* NAME */
    uint32_t             in;        /* TOKEN: its path begins here */
    uint32_t             out;       /* TOKEN: its path ends here */

    unsigned             terminal:1;    /* it is in a terminal */

    /* of one repetition */

    unsigned             nullable:1;    /* the empty text satisfies it */
    unsigned             finite:1;      /* some text satisfies it */
    unsigned             grounded:1;    /* it does not come back to itself
                                           without a character */
    unsigned             left:1;    /* NAME: the rule itself, at the front of
                                       an alternative */
} dsa_lark_node_t;


typedef struct {
    dsa_str_t            name;
    uint32_t             at;        /* where it is defined, or used first */
    uint32_t             body;      /* a choice; 0: it is not defined */
    uint32_t             entry;     /* in the automaton */
    unsigned             terminal:1;
    unsigned             seen:1;    /* while a cycle is followed */
} dsa_lark_symbol_t;


typedef struct {
    dsa_schema_t        *s;
    dsa_str_t            text;      /* the definition */
    size_t               i;         /* the next byte to read */
    uint32_t             depth;     /* of groups */
    int                  terminal;  /* a terminal is read, not a rule */
    uint32_t             control;   /* the character that no text has */
    dsa_text_e           form;      /* of the texts in the answer */

    dsa_lark_node_t     *node;      /* a parent precedes its children; 0 is no
                                       node */
    uint32_t             n_nodes;
    uint32_t             size_nodes;

    dsa_lark_symbol_t    symbol[DSA_LARK_SYMBOLS];
    uint32_t             n_symbols;
    dsa_map_t            symbols;   /* by name */
    uint32_t             start;     /* symbol */

    uint32_t             ignore;    /* the choice of what %ignore names */
    uint32_t             ignored;   /* the rule of such texts; 0: none */
    uint32_t             end;       /* where the rule that is written ends */
} dsa_lark_t;


/*
 * Paths for the texts of a grammar.  s->path is the path of its definition;
 * errors begin with line and column.
 */
void dsa_lark_compile(dsa_schema_t *s, dsa_str_t definition, dsa_text_e form,
    uint32_t from, uint32_t to);

/* The error of a byte of the definition. */
void dsa_lark_fail(dsa_lark_t *l, size_t at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));


/* lark_parse.c */

void dsa_lark_parse(dsa_lark_t *l);

/* Adds a node; 0: error is set. */
uint32_t dsa_lark_node(dsa_lark_t *l, dsa_lark_e kind, size_t at);


/* lark_token.c: the node of the token at l->i, behind which l->i is then. */

uint32_t dsa_lark_string(dsa_lark_t *l);
uint32_t dsa_lark_regexp(dsa_lark_t *l);

/* The node of a terminal of common.lark; 0: error is set. */
uint32_t dsa_lark_common(dsa_lark_t *l, dsa_str_t name, size_t at);


/*
 * lark_regex.c: writes a regular expression of Lark, which is Python's, as one
 * of ECMA-262 that matches all of a text.  DSA_ERROR: error is set.
 */
int dsa_lark_regex(dsa_buf_t *out, dsa_str_t regex, dsa_str_t flags,
    dsa_err_t *error);


/* lark_check.c: refuses what cannot be written, and what has no text. */

void dsa_lark_check(dsa_lark_t *l);


/* lark_build.c */

void dsa_lark_build(dsa_lark_t *l, uint32_t from, uint32_t to);


#endif /* _DSA_LARK_H_INCLUDED_ */
