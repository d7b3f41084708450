
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_REFERENCES_H_INCLUDED_
#define _DSA_REFERENCES_H_INCLUDED_


#include "context/conversation.h"


/*
 * Items of a Responses request that only refer to an item, by its id.  They are
 * replaced in the tree of the body before it is read.
 */

#define DSA_REFERENCES  1024            /* in one request */


typedef struct {
    dsa_json_t         *object;         /* in the tree */
    dsa_str_t           id;
    uint32_t            index;          /* in input */
    unsigned            found:1;
} dsa_reference_t;


/*
 * Finds the references in root, the tree of a body that may have any form.
 * *refs is in the arena.  DSA_ERROR: refusal is filled in.
 */
int dsa_references_find(dsa_reference_t **refs, uint32_t *n,
    dsa_arena_t *arena, const dsa_json_t *root, dsa_refusal_t *refusal);

/*
 * The digits of the id of the response or conversation that the item was made
 * for.  0: the id was not made by this server.
 */
int dsa_references_owner(dsa_str_t id, dsa_str_t *owner);

/*
 * Replaces the references to items of a list, or of a conversation.  list: a
 * JSON array of items.  work: for all items; keep: for those that are referred
 * to.  DSA_ERROR: out of memory, or err names what cannot be read.
 */
int dsa_references_list(dsa_reference_t *refs, uint32_t n, dsa_arena_t *work,
    dsa_arena_t *keep, dsa_str_t list, dsa_err_t *err);
int dsa_references_conversation(dsa_reference_t *refs, uint32_t n,
    dsa_arena_t *work, dsa_arena_t *keep, const dsa_conversation_t *c,
    dsa_err_t *err);

/* DSA_ERROR with a refusal if an item was not found. */
int dsa_references_check(const dsa_reference_t *refs, uint32_t n,
    dsa_refusal_t *refusal);


#endif /* _DSA_REFERENCES_H_INCLUDED_ */
