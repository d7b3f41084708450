
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <string.h>

#include "engine/backend.h"
#include "engine/service/rollout.h"


#define DSA_ROLLOUT_ROOM    (DSA_LINK_MAX_ROW - sizeof(dsa_link_row_t))


static size_t dsa_rollout_begin(dsa_buf_t *rows, uint32_t version,
    dsa_link_row_e type, uint32_t form, uint32_t position, uint32_t n);
static void dsa_rollout_end(dsa_buf_t *rows, size_t at);
static void dsa_rollout_set(dsa_buf_t *rows, size_t at, uint32_t form,
    uint32_t n);
static uint32_t dsa_rollout_gaps(uint8_t *out, uint32_t most,
    const uint32_t *kept, uint32_t words);
static uint32_t dsa_rollout_bytes(const uint32_t *kept, uint32_t words);


int
dsa_rollout_fits(const dsa_model_config_t *config)
{
    size_t    most;
    uint32_t  layers;

    most = DSA_ROLLOUT_ROOM - sizeof(dsa_link_sampled_t);
    layers = dsa_model_config_moe_layers(config);

    return dsa_mask_words(config->vocab_size) * sizeof(uint32_t) <= most
           && (size_t) layers * config->num_experts_per_tok
              <= most / sizeof(uint16_t);
}


void
dsa_rollout_prompt(dsa_buf_t *rows, const uint32_t *ids, uint32_t n)
{
    size_t    at;
    uint32_t  i, part, most;

    most = DSA_ROLLOUT_ROOM / sizeof(uint32_t);

    for (i = 0; i < n; i += part) {
        part = n - i < most ? n - i : most;

        at = dsa_rollout_begin(rows, 0, DSA_LINK_ROW_PROMPT, 0, i, part);
        dsa_buf_add(rows, ids + i, part * sizeof(uint32_t));
        dsa_rollout_end(rows, at);
    }
}


void
dsa_rollout_experts(dsa_buf_t *rows, uint32_t version, uint32_t position,
    const uint16_t *experts, uint32_t n, uint32_t layers, uint32_t k,
    uint32_t n_experts)
{
    size_t     at;
    uint8_t    byte[256];
    uint16_t   head[2];
    uint32_t   i, j, form, part, most, total, m;

    form = n_experts <= 256 ? 1 : 2;
    most = (DSA_ROLLOUT_ROOM - sizeof(head)) / (layers * k * form);

    assert(most != 0);

    head[0] = (uint16_t) layers;
    head[1] = (uint16_t) k;

    for ( /* void */ ; n != 0; n -= part) {
        part = n < most ? n : most;
        total = part * layers * k;

        at = dsa_rollout_begin(rows, version, DSA_LINK_ROW_EXPERTS, form,
                               position, part);
        dsa_buf_add(rows, head, sizeof(head));

        if (form == 2) {
            dsa_buf_add(rows, experts, total * sizeof(uint16_t));

        } else {
            for (i = 0; i < total; i += m) {
                m = total - i < sizeof(byte) ? total - i : sizeof(byte);

                for (j = 0; j < m; j++) {
                    byte[j] = (uint8_t) experts[i + j];
                }

                dsa_buf_add(rows, byte, m);
            }
        }

        dsa_rollout_end(rows, at);

        experts += total;
        position += part;
    }
}


uint32_t
dsa_rollout_step(dsa_buf_t *rows, uint32_t version, uint32_t first,
    const dsa_sched_rollout_t *step, const dsa_model_config_t *config)
{
    uint32_t  k, end, layers;

    k = config->num_experts_per_tok;
    end = step->start + step->n_input;
    layers = dsa_model_config_moe_layers(config);

    if (first < step->start) {
        first = step->start;
    }

    if (first >= end || layers == 0) {
        return first;
    }

    dsa_rollout_experts(rows, version, first,
                        step->experts
                        + (size_t) (first - step->start) * layers * k,
                        end - first, layers, k, config->n_routed_experts);

    return end;
}


void
dsa_rollout_sample(dsa_buf_t *rows, uint32_t version, uint32_t position,
    uint32_t id, const dsa_draw_t *draw, const uint32_t *kept, uint32_t words)
{
    size_t              at;
    uint8_t             gaps[DSA_LINK_MAX_ROW];
    uint32_t            n, size;
    dsa_link_sampled_t  sampled;

    at = dsa_rollout_begin(rows, version, DSA_LINK_ROW_SAMPLE,
                           DSA_LINK_KEPT_NONE, position, 0);

    sampled.id = id;
    sampled.logprob = draw->logprob;
    dsa_buf_add(rows, &sampled, sizeof(sampled));

    if (kept != NULL && draw->n_kept == DSA_KEPT_ALL) {
        dsa_rollout_set(rows, at, DSA_LINK_KEPT_ALL, 0);

    } else if (kept != NULL) {

        /* use the shorter encoding */

        size = dsa_rollout_bytes(kept, words);
        n = draw->n_kept > size ? 0
            : dsa_rollout_gaps(gaps, size, kept, words);

        if (n != 0) {
            dsa_buf_add(rows, gaps, n);
            dsa_rollout_set(rows, at, DSA_LINK_KEPT_GAPS, draw->n_kept);

        } else {
            dsa_buf_add(rows, kept, size);
            dsa_rollout_set(rows, at, DSA_LINK_KEPT_BITS, draw->n_kept);
        }
    }

    dsa_rollout_end(rows, at);
}


/* Appends the header of a row, and returns its offset. */

static size_t
dsa_rollout_begin(dsa_buf_t *rows, uint32_t version, dsa_link_row_e type,
    uint32_t form, uint32_t position, uint32_t n)
{
    size_t          at;
    dsa_link_row_t  row;

    at = rows->len;

    row.length = 0;
    row.type = (uint16_t) type;
    row.form = (uint16_t) form;
    row.position = position;
    row.n = n;
    row.version = version;

    dsa_buf_add(rows, &row, sizeof(row));

    return at;
}


/* Pads the row that begins at this offset, and sets its length. */

static void
dsa_rollout_end(dsa_buf_t *rows, size_t at)
{
    uint32_t  length;

    dsa_buf_add(rows, "\0\0\0", (4 - (rows->len - at) % 4) % 4);

    if (rows->failed) {
        return;
    }

    length = (uint32_t) (rows->len - at);

    assert(length <= DSA_LINK_MAX_ROW);

    memcpy(rows->data + at + offsetof(dsa_link_row_t, length), &length,
           sizeof(length));
}


static void
dsa_rollout_set(dsa_buf_t *rows, size_t at, uint32_t form, uint32_t n)
{
    uint16_t  value;

    if (rows->failed) {
        return;
    }

    value = (uint16_t) form;

    memcpy(rows->data + at + offsetof(dsa_link_row_t, form), &value,
           sizeof(value));
    memcpy(rows->data + at + offsetof(dsa_link_row_t, n), &n, sizeof(n));
}


/*
 * Writes the ids as DSA_LINK_KEPT_GAPS, and returns the number of bytes; 0 if
 * it is not below most.
 */

static uint32_t
dsa_rollout_gaps(uint8_t *out, uint32_t most, const uint32_t *kept,
    uint32_t words)
{
    uint32_t  i, n, id, gap, last, bits;

    n = 0;
    last = 0;

    for (i = 0; i < words; i++) {
        for (bits = kept[i]; bits != 0; bits &= bits - 1) {
            id = i * 32 + (uint32_t) __builtin_ctz(bits);
            gap = id - last;
            last = id;

            do {
                if (n + 1 >= most) {
                    return 0;
                }

                out[n++] = (uint8_t) ((gap & 0x7f) | (gap > 0x7f ? 0x80 : 0));
                gap >>= 7;
            } while (gap != 0);
        }
    }

    return n;
}


/* Returns the bytes of the ids as DSA_LINK_KEPT_BITS. */

static uint32_t
dsa_rollout_bytes(const uint32_t *kept, uint32_t words)
{
    while (words != 0 && kept[words - 1] == 0) {
        words--;
    }

    return words == 0 ? 0
           : words * 4 - (uint32_t) __builtin_clz(kept[words - 1]) / 8;
}
