
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_VOCABULARY_H_INCLUDED_
#define _DSA_VOCABULARY_H_INCLUDED_


#include <stdatomic.h>

#include "grammar/grammar.h"


/*
 * Inside grammar/: a sealed vocabulary.  The trie is an array of nodes in
 * preorder, so that a walk reads it from front to back: node i is at depth[i],
 * 1 for a first byte, and skip[i] is the first node behind its subtree.
 */

#define DSA_VOCABULARY_NONE  0xffffffffU


/* What the states of all grammars take for a vocabulary; threads share it. */

typedef struct {
    _Atomic size_t      used;       /* bytes */
    size_t              most;
} dsa_vocabulary_memory_t;


struct dsa_vocabulary_s {
    uint32_t            size;
    uint64_t            serial;     /* differs among those of a process */

    dsa_str_t          *bytes;      /* [size]; data NULL: not added */
    uint8_t            *control;    /* [size]; 1: bytes is a name */

    uint32_t           *end;
    uint32_t            n_end;
    uint32_t           *end_mask;   /* [ceil(size / 32)] */

    uint32_t            n_nodes;
    uint8_t            *byte;       /* [n_nodes] */
    uint32_t           *depth;      /* [n_nodes] */
    uint32_t           *skip;       /* [n_nodes] */
    uint32_t           *first;      /* [n_nodes + 1] into ids */
    uint32_t           *ids;        /* in the order of the nodes */
    uint32_t            max_depth;

    dsa_vocabulary_memory_t  *memory;
};


/* The id of a control token, or DSA_VOCABULARY_NONE. */
uint32_t dsa_vocabulary_control(const dsa_vocabulary_t *v, dsa_str_t name);

/* 1 if id ends an answer. */
int dsa_vocabulary_is_end(const dsa_vocabulary_t *v, uint32_t id);


#endif /* _DSA_VOCABULARY_H_INCLUDED_ */
