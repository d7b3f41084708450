
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BUDGET_H_INCLUDED_
#define _DSA_BUDGET_H_INCLUDED_


#include "engine/tokenizer/tokenizer.h"


/*
 * A limit of the reasoning at the beginning of an answer.  If the control
 * token that ends the reasoning is not among the first `most` tokens of the
 * answer, it is forced as the next one.  Only that one step needs a mask for
 * the limit.
 *
 * A model may call a tool within its reasoning.  As in context/parse.h, such a
 * call ends the reasoning.  Otherwise the forced token would become a part of
 * the arguments of the call.
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
                                           may begin; NULL: none */
} dsa_budget_t;


/*
 * Accepts the next token of the answer.  DSA_ERROR: the budget is spent, and
 * the token does not end the reasoning.
 */
int dsa_budget_accept(dsa_budget_t *b, uint32_t id);

/*
 * Restricts the masks of a step, which are as in dsa_sched_mask_pt.  Returns 1
 * if bits were cleared.
 */
int dsa_budget_mask(const dsa_budget_t *b, const uint32_t *drafts,
    uint32_t n_drafts, uint32_t first, uint32_t *mask, uint32_t words);


#endif /* _DSA_BUDGET_H_INCLUDED_ */
