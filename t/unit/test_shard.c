
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/checkpoint/shard.h"


/*
 * Shards of all ranks together are the whole weight.  Matrices here hold their
 * own coordinates, so that a byte in a wrong place shows, and the pieces are
 * put together by the loops below and not by the code under test.
 */

#define HEADS       64
#define EXPERTS     32
#define WIDTH       2048            /* of an expert: 16 blocks */
#define DENSE       3072            /* 24 blocks */
#define VOCAB       640

#define BLOCK       128


typedef struct {
    const char         *name;
    dsa_cut_e           cut;
    uint32_t            rows;
    uint32_t            cols;
    uint32_t            size;       /* bytes of an element; 1: FP8 */
} matrix_t;


/* The head geometry is the published one: 192, 256 and 128 a head. */

static const matrix_t  matrices[] = {
    { "norm", DSA_CUT_NONE, 1, 256, 4 },
    { "qkv_a_proj", DSA_CUT_NONE, 576, 256, 1 },
    { "router", DSA_CUT_NONE, EXPERTS, 256, 2 },
    { "index_wq_b", DSA_CUT_NONE, 8 * 128, 256, 1 },
    { "q_b_proj", DSA_CUT_HEAD_ROWS, HEADS * 192, 128, 1 },
    { "kv_b_proj", DSA_CUT_HEAD_ROWS, HEADS * 256, 128, 1 },
    { "o_proj", DSA_CUT_HEAD_COLS, 256, HEADS * 128, 1 },
    { "dense gate_proj", DSA_CUT_WIDTH_ROWS, DENSE, 256, 1 },
    { "dense down_proj", DSA_CUT_WIDTH_COLS, 256, DENSE, 1 },
    { "expert up_proj", DSA_CUT_WIDTH_ROWS, WIDTH, 256, 1 },
    { "expert down_proj", DSA_CUT_WIDTH_COLS, 300, WIDTH, 1 },
    { "embed_tokens", DSA_CUT_VOCAB_ROWS, VOCAB, 96, 2 }
};

static const uint32_t  sizes[] = { 1, 2, 4, 8 };

static const dsa_attention_e  splits[] = {
    DSA_ATTENTION_DATA, DSA_ATTENTION_TENSOR
};


static dsa_model_config_t
config(void)
{
    dsa_model_config_t  c;

    memset(&c, 0, sizeof(c));

    c.vocab_size = VOCAB;
    c.intermediate_size = DENSE;
    c.moe_intermediate_size = WIDTH;
    c.num_attention_heads = HEADS;
    c.qk_nope_head_dim = 128;
    c.qk_rope_head_dim = 64;
    c.v_head_dim = 128;
    c.n_routed_experts = EXPERTS;
    c.n_shared_experts = 1;

    return c;
}


static void
open_shard(dsa_shard_t *shard, uint32_t rank, uint32_t ranks,
    dsa_attention_e split)
{
    dsa_err_t           err;
    dsa_model_config_t  c;

    c = config();
    assert_int_equal(dsa_shard_init(shard, &c, rank, ranks, split, &err), 0);
}


static uint32_t
blocks(uint32_t n)
{
    return (n + BLOCK - 1) / BLOCK;
}


/* Bytes that no two neighbours share, a function of the index alone. */

static uint8_t *
numbers(uint64_t n)
{
    uint8_t   *p;
    uint64_t   i;

    p = malloc(n);
    assert_non_null(p);

    for (i = 0; i < n; i++) {
        p[i] = (uint8_t) ((i * 0x9e3779b97f4a7c15ULL) >> 56);
    }

    return p;
}


/* The bytes that a copy describes, without gaps. */

static void
take(void *to, const void *from, const dsa_slice_copy_t *copy)
{
    uint64_t  i;

    for (i = 0; i < copy->runs; i++) {
        memcpy((uint8_t *) to + i * copy->run, (const uint8_t *) from
               + copy->from + i * copy->stride, copy->run);
    }
}


/*
 * Puts piece [rows, cols] of elements of size bytes to row, col of a matrix
 * with all columns; seen counts how often each element was written.
 */

static void
paste(uint8_t *whole, uint8_t *seen, const uint8_t *piece, uint32_t row,
    uint32_t col, uint32_t rows, uint32_t cols, uint32_t all, uint32_t size)
{
    uint32_t  r, c, b;
    uint64_t  at;

    for (r = 0; r < rows; r++) {
        for (c = 0; c < cols; c++) {
            at = (uint64_t) (row + r) * all + col + c;
            seen[at]++;

            for (b = 0; b < size; b++) {
                whole[at * size + b] = *piece++;
            }
        }
    }
}


/* The even part of rank as the test sees it: rows, columns or everything. */

static void
expected_part(dsa_slice_t *s, const matrix_t *m, uint32_t rank,
    uint32_t ranks, dsa_attention_e split)
{
    s->row = 0;
    s->col = 0;
    s->rows = m->rows;
    s->cols = m->cols;

    if (split == DSA_ATTENTION_DATA) {
        return;
    }

    switch (m->cut) {

    case DSA_CUT_NONE:
        break;

    case DSA_CUT_HEAD_ROWS:
    case DSA_CUT_WIDTH_ROWS:
    case DSA_CUT_VOCAB_ROWS:
        s->rows = m->rows / ranks;
        s->row = rank * s->rows;
        break;

    case DSA_CUT_HEAD_COLS:
    case DSA_CUT_WIDTH_COLS:
        s->cols = m->cols / ranks;
        s->col = rank * s->cols;
        break;
    }
}


/*
 * One matrix over all ranks: values, or scales with scales 1.  copies: how
 * many ranks have each element.
 */

static void
check_matrix(const matrix_t *m, uint32_t ranks, dsa_attention_e split,
    int scales)
{
    uint8_t           *whole, *again, *seen, *piece;
    uint32_t           i, rows, cols, size, copies;
    uint64_t           n, bytes;
    dsa_shard_t        shard;
    dsa_slice_t        slice, part;
    dsa_slice_copy_t   copy;

    rows = scales ? blocks(m->rows) : m->rows;
    cols = scales ? blocks(m->cols) : m->cols;
    size = scales ? (uint32_t) sizeof(float) : m->size;
    n = (uint64_t) rows * cols;

    whole = numbers(n * size);
    again = calloc(n, size);
    seen = calloc(n, 1);
    piece = malloc(n * size);
    assert_non_null(again);
    assert_non_null(seen);
    assert_non_null(piece);

    for (i = 0; i < ranks; i++) {
        open_shard(&shard, i, ranks, split);
        dsa_shard_slice(&slice, &shard, m->cut, m->rows, m->cols);
        expected_part(&part, m, i, ranks, split);
        assert_memory_equal(&slice, &part, sizeof(part));

        if (scales) {
            dsa_slice_copy_scales(&copy, &slice, m->cols);
            part.row /= BLOCK;
            part.col /= BLOCK;
            part.rows = blocks(part.rows);
            part.cols = blocks(part.cols);

        } else {
            dsa_slice_copy_values(&copy, &slice, m->cols, size);
        }

        bytes = (uint64_t) part.rows * part.cols * size;
        assert_int_equal(copy.run * copy.runs, bytes);

        take(piece, whole, &copy);
        paste(again, seen, piece, part.row, part.col, part.rows, part.cols,
              cols, size);
    }

    copies = split == DSA_ATTENTION_TENSOR && m->cut != DSA_CUT_NONE ? 1
                                                                     : ranks;

    for (i = 0; i < n; i++) {
        assert_int_equal(seen[i], copies);
    }

    assert_memory_equal(whole, again, n * size);

    free(whole);
    free(again);
    free(seen);
    free(piece);
}


static void
test_whole(void **state)
{
    size_t  i, j, k;

    for (i = 0; i < sizeof(matrices) / sizeof(matrices[0]); i++) {
        for (j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
            for (k = 0; k < 2; k++) {
                check_matrix(&matrices[i], sizes[j], splits[k], 0);

                if (matrices[i].size == 1) {
                    check_matrix(&matrices[i], sizes[j], splits[k], 1);
                }
            }
        }
    }
}


/* An element of a slice has the scale that it has in the whole matrix. */

static void
test_scales(void **state)
{
    float              scale[3 * 8], part[3 * 8];
    uint32_t           i, r, c;
    dsa_shard_t        shard;
    dsa_slice_t        slice;
    dsa_slice_copy_t   copy;

    /* down_proj [300, 1024], the last row of blocks being 44 rows high */

    for (i = 0; i < 24; i++) {
        scale[i] = (float) i + 1;
    }

    for (i = 0; i < 4; i++) {
        open_shard(&shard, i, 4, DSA_ATTENTION_TENSOR);
        dsa_shard_slice(&slice, &shard, DSA_CUT_WIDTH_COLS, 300, 1024);
        dsa_slice_copy_scales(&copy, &slice, 1024);
        take(part, scale, &copy);

        for (r = 0; r < 300; r += 7) {
            for (c = 0; c < 256; c += 5) {
                assert_true(part[r / BLOCK * 2 + c / BLOCK]
                            == scale[r / BLOCK * 8 + (256 * i + c) / BLOCK]);
            }
        }
    }
}


/* Whole experts: every rank has as many, and every expert has one rank. */

static void
test_experts(void **state)
{
    uint32_t     i, j, e, owners[EXPERTS];
    dsa_shard_t  shard;

    for (j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
        memset(owners, 0, sizeof(owners));

        for (i = 0; i < sizes[j]; i++) {
            open_shard(&shard, i, sizes[j], DSA_ATTENTION_DATA);
            assert_int_equal(shard.rank, i);
            assert_int_equal(shard.ranks, sizes[j]);
            assert_int_equal(shard.experts.n, EXPERTS / sizes[j]);
            assert_int_equal(shard.heads.n, HEADS);
            assert_int_equal(shard.vocab.n, VOCAB);

            for (e = 0; e < shard.experts.n; e++) {
                owners[shard.experts.first + e]++;
            }

            /* by width every rank has a part of all of them */

            open_shard(&shard, i, sizes[j], DSA_ATTENTION_TENSOR);
            assert_int_equal(shard.experts.first, 0);
            assert_int_equal(shard.experts.n, EXPERTS);
        }

        for (e = 0; e < EXPERTS; e++) {
            assert_int_equal(owners[e], 1);
        }
    }
}


static void
refused(const dsa_model_config_t *c, uint32_t ranks, dsa_attention_e split,
    const char *expected)
{
    dsa_err_t    err;
    dsa_shard_t  shard;

    assert_int_equal(dsa_shard_init(&shard, c, 0, ranks, split, &err),
                     DSA_ERROR);

    if (strstr(err.text, expected) == NULL) {
        fail_msg("\"%s\" does not contain \"%s\"", err.text, expected);
    }
}


static void
test_refused(void **state)
{
    dsa_err_t           err;
    dsa_shard_t         shard;
    dsa_model_config_t  c;

    c = config();

    refused(&c, 3, DSA_ATTENTION_DATA,
            "32 experts cannot be shared out equally to 3 GPUs");
    refused(&c, 3, DSA_ATTENTION_TENSOR, "\"num_attention_heads\" is 64");

    /* 2048 columns over 32 ranks are half a block each */

    c.intermediate_size = 4096;
    c.vocab_size = 2048;
    refused(&c, 32, DSA_ATTENTION_TENSOR,
            "\"moe_intermediate_size\" is 2048 and "
            "cannot be split over 32 GPUs; expected a multiple of 4096");

    c.intermediate_size = 1536;
    refused(&c, 8, DSA_ATTENTION_TENSOR, "\"intermediate_size\" is 1536");

    c = config();
    c.vocab_size = 648;
    refused(&c, 2, DSA_ATTENTION_TENSOR, "\"vocab_size\" is 648");

    /* one head has 192 rows of q_b_proj, a block and a half */

    c = config();
    c.num_attention_heads = 8;
    refused(&c, 8, DSA_ATTENTION_TENSOR, "192 rows of q_b_proj");

    /* two heads have 192 columns of o_proj, which only FP8 has blocks of */

    c = config();
    c.num_attention_heads = 16;
    c.v_head_dim = 96;
    assert_int_equal(dsa_shard_init(&shard, &c, 0, 8, DSA_ATTENTION_TENSOR,
                                    &err), DSA_OK);
    c.format[DSA_MATRICES_ATTENTION] = DSA_FORMAT_FP8;
    refused(&c, 8, DSA_ATTENTION_TENSOR, "192 columns of o_proj");

    /* one GPU takes them all */

    c = config();
    c.num_attention_heads = 3;
    c.n_routed_experts = 7;
    c.vocab_size = 648;
    c.intermediate_size = 1536;

    assert_int_equal(dsa_shard_init(&shard, &c, 0, 1, DSA_ATTENTION_DATA,
                                         &err), DSA_OK);
    assert_int_equal(dsa_shard_init(&shard, &c, 0, 1, DSA_ATTENTION_TENSOR,
                                         &err), DSA_OK);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_experts),
        cmocka_unit_test(test_refused)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
