
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>

#include "engine/checkpoint/pieces.h"


/* Offsets in a file. */

typedef struct {
    uint64_t            first;          /* of the slice's first row */
    uint64_t            begin;          /* of the block */
    uint64_t            end;
} dsa_pieces_range_t;


static uint64_t dsa_pieces_row(const dsa_slice_copy_t *copy, uint64_t first,
    uint64_t at);


/*
 * Adds a piece: the part of the rows row .. row+rows-1 that is in the block.
 */

static uint32_t
dsa_pieces_add(dsa_piece_t *piece, const dsa_slice_copy_t *copy,
    const dsa_pieces_range_t *range, uint64_t row, uint64_t rows)
{
    uint64_t  begin, end, skip;

    begin = range->first + row * copy->stride;
    end = begin + copy->run;
    skip = begin < range->begin ? range->begin - begin : 0;
    end = end < range->end ? end : range->end;

    if (begin + skip >= end) {
        return 0;
    }

    piece->to = row * copy->run + skip;
    piece->from = begin + skip - range->begin;
    piece->width = end - begin - skip;
    piece->rows = rows;
    piece->stride = copy->stride;

    return 1;
}


uint32_t
dsa_pieces(dsa_piece_t piece[DSA_PIECES_MAX], const dsa_slice_copy_t *copy,
    uint64_t matrix, uint64_t block, uint64_t n)
{
    uint32_t            k;
    uint64_t            row, whole, last;
    dsa_pieces_range_t  range;

    assert(copy->run > 0 && copy->runs > 0
           && (copy->runs == 1 || copy->run <= copy->stride));

    range.first = matrix + copy->from;
    range.begin = block;
    range.end = block + n;

    /* rows row .. last-1 have bytes in the block */

    row = 0;

    if (range.begin >= range.first + copy->run) {
        row = (range.begin - range.first - copy->run) / copy->stride + 1;
    }

    last = dsa_pieces_row(copy, range.first, range.end);
    k = 0;

    if (row < last && range.first + row * copy->stride < range.begin) {
        k += dsa_pieces_add(&piece[k], copy, &range, row++, 1);
    }

    if (row >= last) {
        return k;
    }

    /* the last one may end after the block */

    whole = range.first + (last - 1) * copy->stride + copy->run <= range.end
            ? last : last - 1;

    if (row < whole) {
        k += dsa_pieces_add(&piece[k], copy, &range, row, whole - row);
    }

    if (whole < last) {
        k += dsa_pieces_add(&piece[k], copy, &range, whole, 1);
    }

    return k;
}


/* Returns the number of rows that begin before an offset of the file. */

static uint64_t
dsa_pieces_row(const dsa_slice_copy_t *copy, uint64_t first, uint64_t at)
{
    uint64_t  rows;

    if (at <= first) {
        return 0;
    }

    rows = (at - first - 1) / copy->stride + 1;

    return rows < copy->runs ? rows : copy->runs;
}
