
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PREPARE_H_INCLUDED_
#define _DSA_PREPARE_H_INCLUDED_


#include "engine/service/request.h"
#include "engine/service/service.h"


/*
 * Decodes the copy of a record, tokenizes the prompt, checks its length, and
 * frees the copy.  work belongs to the calling thread.  Afterwards r->last is
 * set (an error, a count, or an answer that the resumed tokens complete), or
 * r->sched and r->answer are ready for the step thread.  r->cost is what it has
 * cost.
 *
 * slow: the thread may compile grammars and make masks, which takes up to 50
 * ms.  DSA_AGAIN: slow is 0, and the request needs that; call again with 1.
 */
int dsa_prepare(const dsa_service_t *service, dsa_tokenizer_work_t *work,
    dsa_request_t *r, int slow);


#endif /* _DSA_PREPARE_H_INCLUDED_ */
