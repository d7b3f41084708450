
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/checkpoint/pieces.h"


/*
 * Slices of a matrix that lies anywhere in a file, which is read in blocks of
 * any size.  The reference copies byte by byte.
 */

#define ROUNDS      20000
#define FILE_MAX    4096


static uint32_t  seed = 1;


static uint32_t
below(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;

    return (uint32_t) (((uint64_t) seed * n) >> 32);
}


/* Copies the bytes of a piece to their offsets; each byte only once. */

static void
put(uint8_t *to, uint8_t *seen, uint64_t size, const uint8_t *block,
    uint64_t n, const dsa_piece_t *piece)
{
    uint64_t  row, col, at, from;

    assert_true(piece->rows > 0);
    assert_true(piece->width > 0);

    for (row = 0; row < piece->rows; row++) {
        for (col = 0; col < piece->width; col++) {
            at = piece->to + row * piece->width + col;
            from = piece->from + row * piece->stride + col;

            assert_true(at < size);
            assert_true(from < n);
            assert_int_equal(seen[at], 0);

            to[at] = block[from];
            seen[at] = 1;
        }
    }
}


/* Reads the whole file in blocks; returns the most pieces in one of them. */

static uint32_t
check(const uint8_t *file, uint64_t size, const dsa_slice_copy_t *copy,
    uint64_t matrix, uint64_t block)
{
    uint8_t      to[FILE_MAX], seen[FILE_MAX];
    uint64_t     at, n, row, col, bytes;
    uint32_t     i, k, most;
    dsa_piece_t  piece[DSA_PIECES_MAX];

    bytes = copy->run * copy->runs;
    memset(seen, 0, sizeof(seen));
    most = 0;

    for (at = 0; at < size; at += n) {
        n = size - at < block ? size - at : block;
        k = dsa_pieces(piece, copy, matrix, at, n);

        assert_true(k <= DSA_PIECES_MAX);
        most = k > most ? k : most;

        for (i = 0; i < k; i++) {
            put(to, seen, bytes, file + at, n, &piece[i]);
        }
    }

    for (row = 0; row < copy->runs; row++) {
        for (col = 0; col < copy->run; col++) {
            assert_int_equal(seen[row * copy->run + col], 1);
            assert_int_equal(to[row * copy->run + col],
                             file[matrix + copy->from + row * copy->stride
                                  + col]);
        }
    }

    return most;
}


static void
test_random(void **state)
{
    uint8_t           file[FILE_MAX];
    uint32_t          i, rows, cols, most[DSA_PIECES_MAX + 1];
    uint64_t          matrix, size;
    dsa_slice_copy_t  copy;

    memset(most, 0, sizeof(most));

    for (i = 0; i < FILE_MAX; i++) {
        file[i] = (uint8_t) below(256);
    }

    for (i = 0; i < ROUNDS; i++) {
        rows = 1 + below(20);
        cols = 1 + below(60);
        matrix = below(500);
        size = matrix + rows * cols + below(500);

        copy.stride = cols;
        copy.run = 1 + below(cols);
        copy.runs = 1 + below(rows);
        copy.from = below(rows - (uint32_t) copy.runs + 1) * cols
                    + below(cols - (uint32_t) copy.run + 1);

        most[check(file, size, &copy, matrix, 1 + below(200))]++;
    }

    for (i = 1; i <= DSA_PIECES_MAX; i++) {
        assert_true(most[i] > ROUNDS / 100);
    }
}


/* A slice of whole rows is one run, as shards make it. */

static void
test_one_run(void **state)
{
    uint8_t           file[FILE_MAX];
    uint64_t          i, block;
    dsa_slice_copy_t  copy;

    for (i = 0; i < FILE_MAX; i++) {
        file[i] = (uint8_t) below(256);
    }

    copy.from = 100;
    copy.run = 1000;
    copy.stride = 1000;
    copy.runs = 1;

    for (block = 1; block < 1500; block += 7) {
        assert_int_equal(check(file, 1700, &copy, 300, block), 1);
    }
}


/* Offsets beyond 32 bits: a file of 5 GB, in blocks of 8 MiB. */

static void
test_large(void **state)
{
    uint32_t          n;
    dsa_piece_t       piece[DSA_PIECES_MAX];
    dsa_slice_copy_t  copy;

    copy.from = 1024;
    copy.run = 1024;
    copy.stride = 2048;
    copy.runs = 7168;

    /* the matrix begins 4,096 bytes before the end of block 600 */

    n = dsa_pieces(piece, &copy, 601ULL * (8 << 20) - 4096, 600ULL * (8 << 20),
                   8 << 20);

    assert_int_equal(n, 1);
    assert_int_equal(piece[0].to, 0);
    assert_int_equal(piece[0].from, (8 << 20) - 4096 + 1024);
    assert_int_equal(piece[0].width, 1024);
    assert_int_equal(piece[0].rows, 2);
    assert_int_equal(piece[0].stride, 2048);

    n = dsa_pieces(piece, &copy, 601ULL * (8 << 20) - 4096, 601ULL * (8 << 20),
                   8 << 20);

    /* row 4097 ends with the block */

    assert_int_equal(n, 1);
    assert_int_equal(piece[0].to, 2048);
    assert_int_equal(piece[0].from, 1024);
    assert_int_equal(piece[0].width, 1024);
    assert_int_equal(piece[0].rows, 4096);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_one_run),
        cmocka_unit_test(test_large)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
