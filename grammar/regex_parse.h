
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_REGEX_PARSE_H_INCLUDED_
#define _DSA_REGEX_PARSE_H_INCLUDED_


#include "grammar/regex.h"


/* Inside grammar/: a pattern as a tree. */

#define DSA_REGEX_NODES     (4 * DSA_REGEX_BYTES + 8)
#define DSA_REGEX_RANGES    16384
#define DSA_REGEX_DEPTH     64          /* groups in one another */
#define DSA_REGEX_REPEAT    1000        /* largest count of a quantifier */
#define DSA_REGEX_MANY      UINT32_MAX


typedef enum {
    DSA_REGEX_EMPTY = 0,
    DSA_REGEX_CLASS,                    /* a: index of its first range, b:
                                           their number */
    DSA_REGEX_CAT,                      /* a, b: nodes */
    DSA_REGEX_ALT,                      /* a, b: nodes */
    DSA_REGEX_REPEATED,                 /* a: node; min, max */
    DSA_REGEX_BEGIN,
    DSA_REGEX_END
} dsa_regex_kind_e;


typedef struct {
    dsa_regex_kind_e     kind;
    uint32_t             a;
    uint32_t             b;
    uint32_t             min;
    uint32_t             max;
} dsa_regex_node_t;


typedef struct {
    uint32_t             lo;
    uint32_t             hi;
} dsa_regex_range_t;


typedef struct {
    dsa_regex_node_t     node[DSA_REGEX_NODES];
    uint32_t             n_nodes;
    dsa_regex_range_t    range[DSA_REGEX_RANGES];   /* sorted in a class */
    uint32_t             n_ranges;
    uint32_t             root;
} dsa_regex_tree_t;


int dsa_regex_parse(dsa_regex_tree_t *tree, dsa_str_t pattern,
    dsa_err_t *error);


#endif /* _DSA_REGEX_PARSE_H_INCLUDED_ */
