
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SAMPLED_H_INCLUDED_
#define _DSA_SAMPLED_H_INCLUDED_


#include "base/buf.h"
#include "context/family.h"


/*
 * An answer exactly as the model sampled it: from the token behind the prompt
 * to the end, with its control tokens apart from text that spells them.  The
 * KV cache holds this text, so a prompt that repeats it byte for byte is found
 * there.  A message that went through JSON and a client may have lost its
 * reasoning, the spacing and the order of its arguments.
 *
 * It is retained as a sequence of bytes.  Numbers are little-endian.
 *
 *     0   8 bytes    "dsa-rt-1"
 *     8   uint32     the vocabulary, as dsa_parse_create() has it
 *     12  uint32     1: the answer began with reasoning; 0: behind it
 *     16  16 bytes   the name of the family, and zeros
 *     32             the segments
 *     -8  uint64     XXH3 of all bytes before it
 *
 * A segment is a uint32 and its text.  The lowest bit of the number is 1 for
 * a control token, the others are the length of the text in bytes.
 */

#define DSA_SAMPLED_MAX     (1024 * 1024)   /* bytes of a retained answer */


typedef struct dsa_sampled_s {
    const dsa_family_t  *family;
    uint32_t             vocabulary;
    int                  thinking;
    dsa_segment_t       *segments;  /* neighbors are never both text */
    uint32_t             n;
} dsa_sampled_t;


/*
 * Writes a retained answer.  The owner zeroes the writer and frees its member
 * answer.  An answer that would exceed DSA_SAMPLED_MAX, or for which there is
 * no memory, becomes empty and stays empty.
 */

typedef struct {
    dsa_buf_t       answer;
    size_t          text;           /* where the last segment of text begins;
                                       0: the last segment is none */
    int             failed;
} dsa_sampled_writer_t;


void dsa_sampled_start(dsa_sampled_writer_t *w, const dsa_family_t *family,
    int thinking, uint32_t vocabulary);

/* control: the text is the name of one control token. */
void dsa_sampled_add(dsa_sampled_writer_t *w, dsa_str_t text, int control);

/* DSA_OK: answer is complete.  DSA_ERROR: it is empty. */
int dsa_sampled_end(dsa_sampled_writer_t *w);


/*
 * Reads a retained answer of this family into the arena, which has a copy of
 * all texts.  NULL with err: the bytes are not a retained answer, or one of
 * another family, or a segment of it has another form than the writer gives it,
 * or the arena is exhausted.
 */
dsa_sampled_t *dsa_sampled_read(dsa_arena_t *arena,
    const dsa_family_t *family, dsa_str_t answer, dsa_err_t *err);

/*
 * The first segment behind the reasoning, that is behind the first control
 * token that ends it.  0: the answer began behind it.  UINT32_MAX: the model
 * did not end its reasoning.
 */
uint32_t dsa_sampled_behind_reasoning(const dsa_sampled_t *s);


#endif /* _DSA_SAMPLED_H_INCLUDED_ */
