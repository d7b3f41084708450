
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <errno.h>
#include <string.h>

#include "engine/link_rollout.h"
#include "engine/service/records.h"


static int dsa_record_write(dsa_link_ring_t *ring, uint32_t type, uint64_t id,
    const void *data, size_t size);
static int dsa_record_batch(dsa_link_ring_t *ring, uint64_t id,
    dsa_answer_t *a, uint32_t n, uint32_t len);


int
dsa_record_accepted(dsa_link_ring_t *ring, uint64_t id,
    const dsa_link_accepted_t *accepted)
{
    return dsa_record_write(ring, DSA_LINK_ACCEPTED, id, accepted,
                            sizeof(dsa_link_accepted_t));
}


int
dsa_record_done(dsa_link_ring_t *ring, uint64_t id,
    const dsa_link_done_t *done)
{
    return dsa_record_write(ring, DSA_LINK_DONE, id, done,
                            sizeof(dsa_link_done_t));
}


int
dsa_record_counted(dsa_link_ring_t *ring, uint64_t id,
    const dsa_link_counted_t *counted)
{
    return dsa_record_write(ring, DSA_LINK_COUNTED, id, counted,
                            sizeof(dsa_link_counted_t));
}


int
dsa_record_error(dsa_link_ring_t *ring, uint64_t id,
    const dsa_link_failure_t *failure, const char *reason)
{
    size_t               len;
    dsa_link_failure_t  *p;

    len = (size_t) failure->path_len + failure->text_len;

    p = dsa_link_reserve(ring, DSA_LINK_ERROR, id,
                         sizeof(dsa_link_failure_t) + len);

    if (p == NULL) {
        return errno == EPROTO ? DSA_ERROR : DSA_AGAIN;
    }

    *p = *failure;

    if (len != 0) {
        memcpy(p + 1, reason, len);
    }

    return DSA_OK;
}


static int
dsa_record_write(dsa_link_ring_t *ring, uint32_t type, uint64_t id,
    const void *data, size_t size)
{
    void  *p;

    p = dsa_link_reserve(ring, type, id, size);

    if (p == NULL) {
        return errno == EPROTO ? DSA_ERROR : DSA_AGAIN;
    }

    memcpy(p, data, size);

    return DSA_OK;
}


int
dsa_record_tokens(dsa_link_ring_t *ring, uint64_t id, dsa_answer_t *a)
{
    int       rc;
    size_t    size;
    uint32_t  n, len, most;

    size = sizeof(dsa_link_token_t) + a->row * sizeof(dsa_link_logprob_t);
    most = (uint32_t) (dsa_link_max_payload(ring) - sizeof(dsa_link_tokens_t));

    for (n = a->n_ready; n != 0; n /= 2) {
        len = a->token[n - 1].end;

        if (n > most / size || len > most - n * size) {
            continue;
        }

        rc = dsa_record_batch(ring, id, a, n, len);

        if (rc != DSA_AGAIN) {
            return rc;
        }
    }

    if (a->n_ready != 0) {
        len = a->token[0].end;

        if (len <= most - size) {
            return DSA_AGAIN;
        }

        /*
         * The token has more text than a record holds: send a part of the text
         * first.
         */

    } else {
        len = a->ready;
    }

    if (len > most) {

        /* cut between two characters */

        for (len = most; len != 0; len--) {
            if (((unsigned char) a->text[len] & 0xc0) != 0x80) {
                break;
            }
        }
    }

    return dsa_record_batch(ring, id, a, 0, len);
}


int
dsa_record_rows(dsa_link_ring_t *ring, uint64_t id, dsa_buf_t *rows,
    size_t *sent)
{
    int              rc;
    size_t           size;
    dsa_link_row_t   row;

    for (size = 0; *sent + size < rows->len; size += row.length) {
        memcpy(&row, rows->data + *sent + size, sizeof(row));

        if (size + row.length > dsa_link_max_payload(ring)) {
            break;
        }
    }

    assert(size != 0);

    rc = dsa_record_write(ring, DSA_LINK_ROLLOUT, id, rows->data + *sent,
                          size);

    if (rc != DSA_OK) {
        return rc;
    }

    *sent += size;

    if (*sent == rows->len) {
        rows->len = 0;
        *sent = 0;
    }

    return DSA_OK;
}


/* Writes a record of the first n tokens and the first len bytes of text. */

static int
dsa_record_batch(dsa_link_ring_t *ring, uint64_t id, dsa_answer_t *a,
    uint32_t n, uint32_t len)
{
    char               *p;
    size_t              tokens, logprobs;
    dsa_link_tokens_t  *head;

    tokens = n * sizeof(dsa_link_token_t);
    logprobs = (size_t) n * a->row * sizeof(dsa_link_logprob_t);

    head = dsa_link_reserve(ring, DSA_LINK_TOKENS, id,
                            sizeof(dsa_link_tokens_t) + tokens + logprobs
                            + len);

    if (head == NULL) {
        return errno == EPROTO ? DSA_ERROR : DSA_AGAIN;
    }

    head->n_tokens = n;
    head->text_len = len;
    head->logprobs = a->row != 0;
    head->n_top = a->row != 0 ? a->row - 1 : 0;

    p = (char *) (head + 1);

    if (tokens != 0) {
        memcpy(p, a->token, tokens);
        p += tokens;
    }

    if (logprobs != 0) {
        memcpy(p, a->logprob, logprobs);
        p += logprobs;
    }

    if (len != 0) {
        memcpy(p, a->text, len);
    }

    dsa_answer_sent(a, n, len);

    return DSA_OK;
}
