
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PIECES_H_INCLUDED_
#define _DSA_PIECES_H_INCLUDED_


#include "engine/checkpoint/shard.h"


/*
 * Computes the intersection of a slice with a block of a file.  A slice is a
 * part of a matrix that may be anywhere in a file, and a block may begin and
 * end within one of its rows.  This file is arithmetic only.
 */

#define DSA_PIECES_MAX      3           /* of a slice in a block: the rest of
                                           a row, whole rows, and the
                                           beginning of a row */


/* rows pieces of width bytes each. */

typedef struct {
    uint64_t            to;             /* of the first one, in the slice,
                                           where one row follows another
                                           without gaps */
    uint64_t            from;           /* of the first one, in the block */
    uint64_t            width;
    uint64_t            rows;
    uint64_t            stride;         /* from a row to the next one in the
                                           block; not used if rows is 1 */
} dsa_piece_t;


/*
 * Sets piece to the bytes of a slice that are in a block of n bytes, in the
 * order of the file, and returns their number, 0 if the block has none.
 * matrix: offset of the matrix in the file; block: that of the block.
 */
uint32_t dsa_pieces(dsa_piece_t piece[DSA_PIECES_MAX],
    const dsa_slice_copy_t *copy, uint64_t matrix, uint64_t block,
    uint64_t n);


#endif /* _DSA_PIECES_H_INCLUDED_ */
