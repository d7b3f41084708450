
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BUDGET_H_INCLUDED_
#define _DSA_BUDGET_H_INCLUDED_


#include "engine/tokenizer/tokenizer.h"


/*
 * A limit of the reasoning with which an answer begins.  If the first `most`
 * tokens of the answer do not have the control token that ends the reasoning,
 * this control token is the next one.  The limit concerns one token of the
 * answer only, so that no other step needs a mask because of it.
 *
 * A model may call a tool while it still thinks.  context/parse.h reads such a
 * call as one that ends the reasoning, and so does this: the token that ends
 * the reasoning would otherwise become a part of the call's arguments.
 */

#define DSA_BUDGET_NO_CALL  UINT32_MAX

typedef struct {
    const dsa_tokenizer_t  *tokenizer;
    uint32_t                most;       /* tokens of reasoning; 0: no limit */
    uint32_t                end;        /* id of the token that ends it */
    uint32_t                call;       /* id of the control token in the tags
                                           of calls, or DSA_BUDGET_NO_CALL */
    uint32_t                n;          /* tokens of reasoning so far */
    uint32_t                ended;      /* 1: the reasoning has ended */
    uint32_t                opened;     /* 1: the last byte is "<" */
    const char             *tag;        /* rest of the tag that the last bytes
                                           may be; NULL: they are none */
} dsa_budget_t;


/*
 * The next token of the answer.  DSA_ERROR: the budget is spent, and it is not
 * the one that ends the reasoning.
 */
int dsa_budget_accept(dsa_budget_t *b, uint32_t id);

/*
 * Sets the masks of a step, as dsa_sched_mask_pt has them.  Returns 1 if it
 * has cleared bits.
 */
int dsa_budget_mask(const dsa_budget_t *b, const uint32_t *drafts,
    uint32_t n_drafts, uint32_t *mask, uint32_t words);


#endif /* _DSA_BUDGET_H_INCLUDED_ */
