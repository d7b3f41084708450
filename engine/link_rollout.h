
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The rows of a ROLLOUT record, replica -> worker, for the trainer of a policy.
 */


#ifndef _DSA_LINK_ROLLOUT_H_INCLUDED_
#define _DSA_LINK_ROLLOUT_H_INCLUDED_


#include <stdint.h>
#include <string.h>


#define DSA_LINK_MAX_ROW        32512     /* bytes of a row of a rollout */


/*
 * ROLLOUT: whole rows, for the trainer of a policy.  Each row is a header, its
 * data, and zeros up to a multiple of 4 bytes.  All numbers are little-endian.
 * Positions count from 0, the first token of the prompt.  The version of a row
 * is that of the weights that computed it: 1 when a replica starts, and one
 * more each time its weights are replaced.  The ids of a prompt depend on no
 * weights, so that a PROMPT row has the version 0.
 *
 *     PROMPT    the ids of prompt tokens position .. position + n - 1:
 *               uint32_t [n].
 *     EXPERTS   the experts to which the tokens position .. position + n - 1
 *               were routed: uint16_t layers, uint16_t k, then [n][layers][k]
 *               numbers of form bytes (1 or 2).  Layers are those that have
 *               experts.  A position has at most one such row: the one of its
 *               first computation.  It has none if it was found in the prefix
 *               cache, and if it is the last token of an answer, which is not
 *               computed.
 *     SAMPLE    the token at position, a sample: dsa_link_sampled_t, then the
 *               n ids that it was drawn from, in a form of dsa_link_kept_e.
 *
 * An answer has one SAMPLE row for each of its completion_tokens, rising, the
 * end token included.  The experts that led to a sample are those of the
 * position before it.  Rows come independently of TOKENS, and before DONE.
 * With RESUME they begin where the resumed tokens end.
 */

typedef enum {
    DSA_LINK_ROW_PROMPT = 1,
    DSA_LINK_ROW_EXPERTS,
    DSA_LINK_ROW_SAMPLE
} dsa_link_row_e;


typedef enum {
    DSA_LINK_KEPT_NONE = 0,         /* not requested; n is 0 */
    DSA_LINK_KEPT_ALL,              /* all ids of the tokenizer; n is 0 */
    DSA_LINK_KEPT_GAPS,             /* rising ids: the first id, then the
                                       differences, as LEB128 varints */
    DSA_LINK_KEPT_BITS              /* bit id % 8 of byte id / 8, up to the
                                       byte of the greatest id */
} dsa_link_kept_e;


typedef struct {
    uint32_t    length;             /* of the row in bytes, this header and
                                       the zeros included; at most
                                       DSA_LINK_MAX_ROW */
    uint16_t    type;
    uint16_t    form;
    uint32_t    position;
    uint32_t    n;
    uint32_t    version;            /* of the weights */
} dsa_link_row_t;


/* log p of dsa_draw_t in base/sampling.h, natural. */

typedef struct {
    uint32_t    id;
    float       logprob;
} dsa_link_sampled_t;


_Static_assert(sizeof(dsa_link_row_t) == 20
               && sizeof(dsa_link_sampled_t) == 8,
               "sizes of the parts of a row");


/*
 * Whether a private copy of length bytes is whole rows.  0, or -1.  The data of
 * the rows is not checked.
 */

static inline int
dsa_link_rows_check(const void *payload, uint32_t length)
{
    uint32_t         at;
    dsa_link_row_t   row;
    const uint8_t   *p = payload;

    for (at = 0; at < length; at += row.length) {
        if (length - at < sizeof(row)) {
            return -1;
        }

        memcpy(&row, p + at, sizeof(row));

        if (row.length < sizeof(row) || row.length % 4 != 0
            || row.length > DSA_LINK_MAX_ROW || row.length > length - at)
        {
            return -1;
        }
    }

    return 0;
}


#endif /* _DSA_LINK_ROLLOUT_H_INCLUDED_ */
