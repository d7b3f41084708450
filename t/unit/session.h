
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Submits requests of the workers of host.h.
 */


#ifndef _T_SESSION_H_INCLUDED_
#define _T_SESSION_H_INCLUDED_


#include "t/unit/host.h"


static inline void
submit(host_t *h, uint32_t worker, uint64_t id, link_submit_t *s)
{
    assert_int_equal(link_client_submit(&h->client[worker], id, s), 0);
}


static inline void
submit_text(host_t *h, uint32_t worker, uint64_t id, uint32_t max_tokens,
    const char *text)
{
    link_submit_t  s;

    link_submit_init(&s, max_tokens);
    link_submit_text(&s, text);
    submit(h, worker, id, &s);
}


#endif /* _T_SESSION_H_INCLUDED_ */
