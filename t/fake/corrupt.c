
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>

#include "t/fake/fake.h"


static void
corrupt_token(dsa_link_ring_t *ring, uint64_t id,
    const dsa_link_tokens_t *tokens, const dsa_link_token_t *token)
{
    char  *p;

    p = dsa_link_reserve(ring, DSA_LINK_TOKENS, id,
                         sizeof(dsa_link_tokens_t) + sizeof(dsa_link_token_t)
                         + 4);

    memcpy(p, tokens, sizeof(dsa_link_tokens_t));
    memcpy(p + sizeof(dsa_link_tokens_t), token, sizeof(dsa_link_token_t));
    memcpy(p + sizeof(dsa_link_tokens_t) + sizeof(dsa_link_token_t), "text",
           4);
}


/* Corrupts a ring in the given way; the worker must survive it. */

void
corrupt(session_t *s, const char *kind)
{
    void                *p;
    uint32_t             i;
    uint64_t             id;
    dsa_link_ring_t     *ev = &s->link.event;
    dsa_link_done_t      done;
    dsa_link_token_t     token;
    dsa_link_tokens_t    tokens;

    memset(&done, 0, sizeof(done));
    memset(&token, 0, sizeof(token));
    memset(&tokens, 0, sizeof(tokens));
    id = 0;

    if (strcmp(kind, "head") == 0) {            /* beyond the ring */
        atomic_store(&ev->shared->head, ev->own + ev->size * 2 + 8);

    } else if (strcmp(kind, "odd") == 0) {      /* between records */
        atomic_store(&ev->shared->head, ev->own + 3);

    } else if (strcmp(kind, "length") == 0) {   /* longer than written */
        p = dsa_link_reserve(ev, DSA_LINK_DONE, 0, sizeof(done));
        ((dsa_link_record_t *) p - 1)->length = 0xfffffff0;
        dsa_link_commit(ev);

    } else if (strcmp(kind, "type") == 0) {
        (void) dsa_link_reserve(ev, 77, 0, 8);
        dsa_link_commit(ev);

    } else if (strcmp(kind, "slot") == 0) {     /* no such slot */
        p = dsa_link_reserve(ev, DSA_LINK_DONE, dsa_link_id(1, 0xffffff),
                             sizeof(done));
        memcpy(p, &done, sizeof(done));
        dsa_link_commit(ev);

    } else if (strcmp(kind, "tail") == 0) {     /* of the submit ring */
        atomic_store(&s->link.submit.shared->tail, 12345);

    } else {                                    /* of the first request */
        for (i = 0; i < fake.hello.slots; i++) {
            if (s->requests[i].script != NULL) {
                id = s->requests[i].id;
                break;
            }
        }

        if (strcmp(kind, "huge") == 0) {      /* all that remains of the ring */
            p = dsa_link_reserve(ev, DSA_LINK_TOKENS, id, sizeof(tokens));
            ((dsa_link_record_t *) p - 1)->length =
                (uint32_t) (ev->size - ev->own - sizeof(dsa_link_record_t));
            ev->pending = ev->size;

        } else if (strcmp(kind, "short") == 0) {    /* a truncated payload */
            (void) dsa_link_reserve(ev, DSA_LINK_DONE, id, 4);

        } else if (strcmp(kind, "other") == 0) {    /* of the other version */
            p = dsa_link_reserve(ev, DSA_LINK_DONE, id,
                                 s->link.version == 3 ? 40 : 32);
            memset(p, 0, s->link.version == 3 ? 40 : 32);

        } else if (strcmp(kind, "count") == 0) {  /* more than in the payload */
            tokens.n_tokens = 0x40000000;
            p = dsa_link_reserve(ev, DSA_LINK_TOKENS, id, sizeof(tokens));
            memcpy(p, &tokens, sizeof(tokens));

        } else if (strcmp(kind, "ends") == 0) {     /* beyond the text */
            tokens.n_tokens = 1;
            tokens.text_len = 4;
            token.end = 9;
            corrupt_token(ev, id, &tokens, &token);

        } else if (strcmp(kind, "control") == 0) {  /* before the text */
            tokens.n_tokens = 1;
            tokens.text_len = 4;
            token.end = 4;
            token.control = 5;
            corrupt_token(ev, id, &tokens, &token);

        } else if (strcmp(kind, "stale") == 0) {    /* harmless: an old id */
            p = dsa_link_reserve(ev, DSA_LINK_DONE, id - (1ULL << 32),
                                 sizeof(done));
            memcpy(p, &done, sizeof(done));

        } else {
            print_event("unknown corruption %s", kind);
            return;
        }

        dsa_link_commit(ev);
    }

    wake(s);
}
