
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>

#include "engine/checkpoint/shard.h"


#define DSA_SHARD_BLOCK     128         /* rows and columns of a scale */
#define DSA_SHARD_VOCAB     8           /* the products of the head need
                                           multiples of it */


static int dsa_shard_check_data(const dsa_model_config_t *config,
    uint32_t ranks, dsa_err_t *err);
static int dsa_shard_check_tensor(const dsa_model_config_t *config,
    uint32_t ranks, dsa_err_t *err);


static void
dsa_shard_range(dsa_range_t *range, uint32_t rank, uint32_t ranks, uint32_t of)
{
    range->n = of / ranks;
    range->first = rank * range->n;
    range->of = of;
}


int
dsa_shard_init(dsa_shard_t *shard, const dsa_model_config_t *config,
    uint32_t rank, uint32_t ranks, dsa_attention_e attention, dsa_err_t *err)
{
    int       rc;
    uint32_t  all, part;

    assert(rank < ranks);

    rc = DSA_OK;

    if (ranks > 1) {
        rc = attention == DSA_ATTENTION_DATA
             ? dsa_shard_check_data(config, ranks, err)
             : dsa_shard_check_tensor(config, ranks, err);
    }

    if (rc != DSA_OK) {
        return DSA_ERROR;
    }

    /* dimensions that are not split have one part, which this rank has */

    all = attention == DSA_ATTENTION_TENSOR ? 1 : ranks;
    part = attention == DSA_ATTENTION_TENSOR ? 0 : rank;

    shard->rank = rank;
    shard->ranks = ranks;
    shard->attention = attention;
    dsa_shard_range(&shard->experts, part, all, config->n_routed_experts);

    all = attention == DSA_ATTENTION_TENSOR ? ranks : 1;
    part = attention == DSA_ATTENTION_TENSOR ? rank : 0;

    dsa_shard_range(&shard->heads, part, all, config->num_attention_heads);
    dsa_shard_range(&shard->vocab, part, all, config->vocab_size);
    dsa_shard_range(&shard->width, part, all, all);

    return DSA_OK;
}


static int
dsa_shard_check_data(const dsa_model_config_t *config, uint32_t ranks,
    dsa_err_t *err)
{
    if (config->n_routed_experts % ranks != 0) {
        return dsa_error(err, "%u experts cannot be shared out equally to %u "
                         "GPUs; expected a number of GPUs that divides "
                         "\"n_routed_experts\" of config.json",
                         config->n_routed_experts, ranks);
    }

    return DSA_OK;
}


static int
dsa_shard_check_tensor(const dsa_model_config_t *config, uint32_t ranks,
    dsa_err_t *err)
{
    uint32_t  i, rows, cols;

    const struct {
        const char  *name;
        uint32_t     value;
        uint32_t     unit;
    } size[] = {
        { "num_attention_heads", config->num_attention_heads, 1 },
        { "intermediate_size", config->intermediate_size, DSA_SHARD_BLOCK },
        { "moe_intermediate_size", config->moe_intermediate_size,
          DSA_SHARD_BLOCK },
        { "vocab_size", config->vocab_size, DSA_SHARD_VOCAB }
    };

    for (i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
        if (size[i].value % (ranks * size[i].unit) != 0) {
            return dsa_error(err, "config.json: \"%s\" is %u and cannot be "
                             "split over %u GPUs; expected a multiple of %u",
                             size[i].name, size[i].value, ranks,
                             ranks * size[i].unit);
        }
    }

    rows = config->num_attention_heads / ranks
           * (config->qk_nope_head_dim + config->qk_rope_head_dim);

    if (rows % DSA_SHARD_BLOCK != 0) {
        return dsa_error(err, "config.json: the heads of one of %u GPUs have "
                         "%u rows of q_b_proj; expected a multiple of %u",
                         ranks, rows, DSA_SHARD_BLOCK);
    }

    cols = config->num_attention_heads / ranks * config->v_head_dim;

    if (config->format[DSA_MATRICES_ATTENTION] == DSA_FORMAT_FP8
        && cols % DSA_SHARD_BLOCK != 0)
    {
        return dsa_error(err, "config.json: the heads of one of %u GPUs have "
                         "%u columns of o_proj, which is FP8; expected a "
                         "multiple of %u", ranks, cols, DSA_SHARD_BLOCK);
    }

    return DSA_OK;
}


/* Returns a part of a dimension: its first element and its size. */

static void
dsa_shard_part(uint32_t *first, uint32_t *n, const dsa_range_t *range,
    uint32_t size)
{
    uint32_t  unit;

    assert(size % range->of == 0);

    unit = size / range->of;
    *first = range->first * unit;
    *n = range->n * unit;
}


void
dsa_shard_slice(dsa_slice_t *slice, const dsa_shard_t *shard, dsa_cut_e cut,
    uint32_t rows, uint32_t cols)
{
    slice->row = 0;
    slice->col = 0;
    slice->rows = rows;
    slice->cols = cols;

    switch (cut) {

    case DSA_CUT_NONE:
        break;

    case DSA_CUT_HEAD_ROWS:
        dsa_shard_part(&slice->row, &slice->rows, &shard->heads, rows);
        break;

    case DSA_CUT_HEAD_COLS:
        dsa_shard_part(&slice->col, &slice->cols, &shard->heads, cols);
        break;

    case DSA_CUT_WIDTH_ROWS:
        dsa_shard_part(&slice->row, &slice->rows, &shard->width, rows);
        break;

    case DSA_CUT_WIDTH_COLS:
        dsa_shard_part(&slice->col, &slice->cols, &shard->width, cols);
        break;

    case DSA_CUT_VOCAB_ROWS:
        dsa_shard_part(&slice->row, &slice->rows, &shard->vocab, rows);
        break;
    }
}


void
dsa_slice_copy_values(dsa_slice_copy_t *copy, const dsa_slice_t *slice,
    uint32_t cols, uint32_t size)
{
    assert((uint64_t) slice->col + slice->cols <= cols);

    copy->stride = (uint64_t) cols * size;
    copy->from = slice->row * copy->stride + (uint64_t) slice->col * size;
    copy->run = (uint64_t) slice->cols * size;
    copy->runs = slice->rows;

    /* whole rows are contiguous: one piece */

    if (copy->run == copy->stride) {
        copy->run *= copy->runs;
        copy->stride = copy->run;
        copy->runs = 1;
    }
}


static uint32_t
dsa_shard_blocks(uint32_t n)
{
    return (n + DSA_SHARD_BLOCK - 1) / DSA_SHARD_BLOCK;
}


void
dsa_slice_copy_scales(dsa_slice_copy_t *copy, const dsa_slice_t *slice,
    uint32_t cols)
{
    dsa_slice_t  block;

    /*
     * A slice must begin at a block, because a block that is cut would need
     * two scales.
     */

    assert(slice->row % DSA_SHARD_BLOCK == 0
           && slice->col % DSA_SHARD_BLOCK == 0);

    block.row = slice->row / DSA_SHARD_BLOCK;
    block.col = slice->col / DSA_SHARD_BLOCK;
    block.rows = dsa_shard_blocks(slice->rows);
    block.cols = dsa_shard_blocks(slice->cols);

    dsa_slice_copy_values(copy, &block, dsa_shard_blocks(cols), sizeof(float));
}
