
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_RECORDS_H_INCLUDED_
#define _DSA_RECORDS_H_INCLUDED_


#include "base/buf.h"
#include "engine/link_event.h"
#include "engine/link_ring.h"
#include "engine/service/answer.h"


/*
 * Records of the event ring.  Each function returns DSA_OK; DSA_AGAIN if the
 * ring has no room now; DSA_ERROR if the ring is corrupt.
 */

int dsa_record_accepted(dsa_link_ring_t *ring, uint64_t id,
    const dsa_link_accepted_t *accepted);

/*
 * Writes one TOKENS record with as many ready tokens as there is room for.  If
 * no token is ready, the record has ready text without a token.  The answer
 * must have one of the two.
 */
int dsa_record_tokens(dsa_link_ring_t *ring, uint64_t id, dsa_answer_t *a);

/*
 * Writes one ROLLOUT record with the rows from offset *sent on, as many as a
 * record holds; there must be at least one.  rows is emptied when all are
 * written.
 */
int dsa_record_rows(dsa_link_ring_t *ring, uint64_t id, dsa_buf_t *rows,
    size_t *sent);

/* Writes a DONE. */
int dsa_record_done(dsa_link_ring_t *ring, uint64_t id,
    const dsa_link_done_t *done);

/* Writes a COUNTED. */
int dsa_record_counted(dsa_link_ring_t *ring, uint64_t id,
    const dsa_link_counted_t *counted);

/*
 * Writes an ERROR.  failure->text_len is the length of reason, which may be
 * NULL.
 */
int dsa_record_error(dsa_link_ring_t *ring, uint64_t id,
    const dsa_link_failure_t *failure, const char *reason);


#endif /* _DSA_RECORDS_H_INCLUDED_ */
