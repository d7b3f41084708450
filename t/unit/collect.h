
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_T_COLLECT_H_INCLUDED_
#define _DSA_T_COLLECT_H_INCLUDED_


#include "engine/schedule/scheduler.h"


/*
 * A handler that collects answers.  The owner of a request begins with an
 * answer_t.  A test defines ANSWER, the most tokens of an answer, before it
 * includes this file.
 */

typedef struct {
    uint32_t            n;
    uint32_t            token[ANSWER];
    uint32_t            stop_at;        /* the handler ends the answer with this
                                           token, as a stop string does; 0: it
                                           does not */
    uint32_t            ended;
    dsa_sched_usage_t   usage;
} answer_t;


static int
on_tokens(void *owner, const dsa_sample_t *samples, uint32_t n)
{
    uint32_t   i;
    answer_t  *a = owner;

    for (i = 0; i < n; i++) {
        assert_true(a->n < ANSWER);
        a->token[a->n++] = samples[i].token;

        if (a->n == a->stop_at) {
            return DSA_FINISH_STOP;
        }
    }

    return 0;
}


static void
on_done(void *owner, const dsa_sched_usage_t *usage)
{
    answer_t  *a = owner;

    assert_false(a->ended);
    a->ended = 1;
    a->usage = *usage;
}


static const dsa_sched_handler_t  handler = { on_tokens, on_done, NULL };


#endif /* _DSA_T_COLLECT_H_INCLUDED_ */
