
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Draws the weights of t/data/golden again, to the bit:
 *
 *     golden_weights MODEL 1|2 > FILE
 *
 * writes the first or the second file of a model in models[].  The weights were
 * torch.randn() on a CPU after torch.manual_seed(), one tensor after the other,
 * as draw_model() has them.
 */


#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/golden/randn.h"


#define ROPE            64
#define INDEX_DIM       128
#define BLOCK           128     /* FP8 has a scale for BLOCK x BLOCK weights */
#define E4M3_MAX        448.0f
#define QUIET           0.05f   /* of the rows of quiet tokens in lm_head */
#define PREFERRED       0.125f  /* of an embedding in lm_head */
#define PASSED          1.5f    /* of an embedding through eh_proj */
#define ADDED           0.03125f        /* of the other values of eh_proj */
#define OFFSET          0.5f    /* of the keys of GLM's indexer */

#define TENSORS_MAX     400
#define NAME_SIZE       80
#define HEADER_SIZE     (64 * 1024)


/* as in config.json, which says what they mean */

typedef struct {
    const char  *name;
    uint32_t     seed;
    int          fp8;           /* 1: with scales that are powers of two; 2:
                                   with others */
    int          bf16;          /* 1: the norms, too; 2: and the router's
                                   bias */
    uint32_t     hidden;
    uint32_t     intermediate;
    uint32_t     layers;
    uint32_t     dense;         /* layers without experts */
    uint32_t     heads;
    uint32_t     nope;
    uint32_t     value;
    uint32_t     latent;
    uint32_t     q_rank;        /* 0: queries have one projection */
    uint32_t     experts;
    uint32_t     expert_width;
    uint32_t     shared;        /* experts */
    uint32_t     index_heads;   /* 0: no indexer */
    uint32_t     sharing;       /* bits of the layers without one */
    uint32_t     vocab;
    uint32_t     quiet;         /* tokens that are rarely the next one */
    uint32_t     drafts;        /* 1: with a draft layer, and lm_head prefers
                                   one token after each; 2: without experts in
                                   the draft layer */
    float        query;         /* factor of the projection to queries */
    float        output;        /* factor of o_proj */
    float        down;          /* factor of the experts' down_proj */
    float        bias;          /* deviation of the router's bias */
    float        mean;          /* of it */
    int          glm;           /* 1: a direction that all embeddings share:
                                   without it the indexer of so small a model
                                   scores many keys 0 */
    const char  *second;        /* the first tensor of the second file */
} golden_t;


typedef enum {
    F32 = 0,
    BF16,
    F8_E4M3
} dtype_e;


typedef struct {
    char         name[NAME_SIZE];
    dtype_e      dtype;
    uint32_t     rows;
    uint32_t     cols;          /* 0: a vector */
    int          file;
    size_t       size;
    void        *data;
} tensor_t;


typedef struct {
    randn_t      random;
    int          file;
    int          fp8;
    int          bf16;
    float       *shared;        /* the direction [hidden], 1 or -1, or NULL */
    const char  *second;
    uint32_t     n;
    tensor_t     tensor[TENSORS_MAX];
} state_t;


static const golden_t  models[] = {
    { "a-fp8", 20251201, 1, 0, 256, 512, 3, 1, 4, 128, 128, 512, 128, 16, 128,
      1, 8, 0, 1024, 0, 0, 1.0f, 0.5f, 0.5f, 0.05f, 0.0f, 0,
      "model.layers.1.mlp.experts.14.down_proj.weight_scale_inv" },
    { "b-bf16", 777, 0, 0, 192, 320, 2, 1, 4, 128, 128, 512, 96, 8, 96, 1, 4,
      0, 512, 0, 0, 1.0f, 0.5f, 0.5f, 0.05f, 0.0f, 0,
      "model.layers.1.mlp.gate.weight" },
    { "moonlight", 20250222, 0, 2, 112, 176, 2, 1, 3, 64, 64, 128, 0, 12, 24,
      2, 0, 0, 256, 4, 0, 1.5f, 1.0f, 1.0f, 0.1f, 0.0f, 0,
      "model.layers.1.mlp.experts.3.down_proj.weight" },
    { "v3", 20241226, 2, 1, 160, 192, 2, 1, 3, 64, 64, 128, 96, 24, 24, 1, 0,
      0, 256, 4, 0, 1.5f, 1.0f, 1.0f, 0.1f, 2.0f, 0,
      "model.layers.1.mlp.experts.9.down_proj.weight" },
    { "joyai", 20260218, 2, 1, 160, 224, 2, 1, 4, 64, 64, 128, 144, 16, 24, 1,
      0, 0, 256, 4, 0, 1.5f, 1.0f, 1.0f, 0.1f, 0.0f, 0,
      "model.layers.1.mlp.experts.5.down_proj.weight" },
    { "glm-4.7-flash", 20260119, 0, 1, 128, 160, 2, 1, 3, 48, 80, 128, 64, 12,
      24, 1, 0, 0, 256, 4, 0, 1.5f, 1.0f, 1.0f, 0.1f, 0.0f, 0,
      "model.layers.1.mlp.experts.3.gate_proj.weight" },
    { "glm-5", 20260211, 2, 1, 128, 256, 3, 1, 4, 192, 256, 512, 128, 16, 128,
      1, 4, 0, 512, 0, 0, 1.0f, 0.5f, 0.5f, 0.05f, 0.0f, 1,
      "model.layers.1.mlp.experts.14.down_proj.weight_scale_inv" },
    { "glm-5.2", 20260613, 2, 1, 128, 256, 4, 2, 4, 192, 256, 512, 128, 8, 128,
      1, 4, 1 << 2, 384, 0, 0, 1.0f, 0.5f, 0.5f, 0.05f, 0.0f, 1,
      "model.layers.2.mlp.experts.5.gate_proj.weight_scale_inv" },
    { "drafts", 20261124, 1, 0, 128, 256, 2, 1, 2, 64, 64, 128, 128, 8, 64, 1,
      4, 0, 256, 4, 1, 1.0f, 0.5f, 0.25f, 0.05f, 0.0f, 0,
      "model.norm.weight" },
    { "drafts-v3", 20261125, 2, 1, 128, 256, 2, 1, 2, 64, 64, 128, 128, 8, 128,
      1, 0, 0, 256, 4, 1, 1.5f, 1.0f, 0.5f, 0.1f, 2.0f, 0,
      "model.norm.weight" },
    { "drafts-glm-4.7-flash", 20261126, 0, 1, 128, 256, 2, 1, 2, 96, 128, 128,
      128, 8, 128, 1, 0, 0, 256, 4, 1, 1.5f, 1.0f, 0.5f, 0.1f, 0.0f, 0,
      "model.norm.weight" },
    { "drafts-joyai", 20261127, 0, 1, 128, 256, 2, 1, 2, 64, 64, 128, 128, 8,
      64, 1, 0, 0, 256, 4, 2, 1.5f, 1.0f, 0.5f, 0.1f, 0.0f, 0,
      "model.norm.weight" },
    { "moonlight-wide", 20250223, 0, 2, 256, 256, 2, 1, 4, 128, 128, 512, 0,
      16, 128, 2, 0, 0, 512, 4, 0, 1.5f, 1.0f, 1.0f, 0.1f, 0.0f, 0,
      "model.layers.1.mlp.experts.5.down_proj.weight" },
    { "v3-wide", 20241229, 2, 1, 256, 256, 2, 1, 4, 128, 128, 512, 128, 32, 128,
      1, 0, 0, 512, 4, 0, 1.5f, 1.0f, 1.0f, 0.1f, 2.0f, 0,
      "model.layers.1.mlp.experts.13.down_proj.weight" },
    { "joyai-wide", 20260216, 2, 1, 256, 256, 2, 1, 4, 128, 128, 512, 128, 16,
      128, 1, 0, 0, 512, 4, 0, 1.5f, 1.0f, 1.0f, 0.1f, 0.0f, 0,
      "model.layers.1.mlp.experts.5.down_proj.weight" },
    { "glm-4.7-flash-wide", 20260120, 0, 1, 256, 256, 2, 1, 4, 192, 256, 512,
      128, 16, 128, 1, 0, 0, 512, 4, 0, 1.5f, 1.0f, 1.0f, 0.1f, 0.0f, 0,
      "model.layers.1.mlp.experts.5.gate_proj.weight" }
};

static const struct {
    const char  *name;
    size_t       size;
} dtypes[] = {
    { "F32", 4 }, { "BF16", 2 }, { "F8_E4M3", 1 }
};

static state_t  state;


/* Formats into "out" at "len", and returns the new length. */

__attribute__((format(printf, 4, 5)))
static size_t
append(char *out, size_t size, size_t len, const char *fmt, ...)
{
    int      n;
    va_list  args;

    va_start(args, fmt);
    n = vsnprintf(out + len, size - len, fmt, args);
    va_end(args);

    if (n < 0 || (size_t) n >= size - len) {
        abort();
    }

    return len + (size_t) n;
}


static void *
add(state_t *s, const char *name, dtype_e dtype, uint32_t rows, uint32_t cols)
{
    tensor_t  *t;

    if (s->n == TENSORS_MAX) {
        abort();
    }

    if (strcmp(name, s->second) == 0) {
        s->file = 2;
    }

    t = &s->tensor[s->n++];
    append(t->name, NAME_SIZE, 0, "%s", name);
    t->dtype = dtype;
    t->rows = rows;
    t->cols = cols;
    t->file = s->file;
    t->size = dtypes[dtype].size * rows * (cols != 0 ? cols : 1);

    t->data = malloc(t->size);
    if (t->data == NULL) {
        abort();
    }

    return t->data;
}


static uint16_t
bf16(float x)
{
    uint32_t  u;

    memcpy(&u, &x, 4);

    return (uint16_t) ((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}


static float
float32(uint16_t x)
{
    float     f;
    uint32_t  u;

    u = (uint32_t) x << 16;
    memcpy(&f, &u, 4);

    return f;
}


/* |x| <= 448, to nearest even */

static uint8_t
e4m3(float x)
{
    int      e;
    float    step;
    uint8_t  sign;

    sign = signbit(x) ? 0x80 : 0;

    (void) frexpf(x, &e);
    step = ldexpf(1.0f, (e > -5 ? e : -5) - 4);

    x = rintf(fabsf(x) / step) * step;

    if (x < 0x1p-6f) {
        return sign | (uint8_t) (x * 0x1p9f);
    }

    x = frexpf(x, &e);

    return sign | (uint8_t) ((e + 6) * 8 + (int) (x * 16.0f) - 8);
}


/*
 * The number by which a block's weights are at most E4M3_MAX; with power the
 * least power of two of this kind.
 */

static float
block_scale(const float *x, uint32_t rows, uint32_t cols, uint32_t stride,
    int power)
{
    int       e;
    float     max, m;
    uint32_t  i, j;

    max = 0.0f;

    for (i = 0; i < rows; i++) {
        for (j = 0; j < cols; j++) {
            max = fmaxf(max, fabsf(x[(size_t) i * stride + j]));
        }
    }

    if (!power) {
        return max / E4M3_MAX;
    }

    m = frexpf(max / E4M3_MAX, &e);

    return ldexpf(1.0f, m == 0.5f ? e - 1 : e);
}


static void
add_fp8(state_t *s, const char *name, const float *x, uint32_t rows,
    uint32_t cols)
{
    char      scale_name[NAME_SIZE];
    float    *scale;
    size_t    at;
    uint8_t  *out;
    uint32_t  i, j, k, l, height, width;

    out = add(s, name, F8_E4M3, rows, cols);

    append(scale_name, NAME_SIZE, 0, "%s_scale_inv", name);
    scale = add(s, scale_name, F32, (rows + BLOCK - 1) / BLOCK,
                (cols + BLOCK - 1) / BLOCK);

    for (i = 0; i < rows; i += BLOCK) {
        height = rows - i < BLOCK ? rows - i : BLOCK;

        for (j = 0; j < cols; j += BLOCK) {
            width = cols - j < BLOCK ? cols - j : BLOCK;
            at = (size_t) i * cols + j;

            *scale = block_scale(x + at, height, width, cols, s->fp8 == 1);

            for (k = 0; k < height; k++) {
                for (l = 0; l < width; l++) {
                    out[at + k * cols + l] = e4m3(x[at + k * cols + l]
                                                  / *scale);
                }
            }

            scale++;
        }
    }
}


/*
 * A matrix [rows, cols] of normal numbers, times "factor" and divided by
 * "divisor".  In that order: both products round.
 */

static float *
draw(state_t *s, uint32_t rows, uint32_t cols, float factor, float divisor)
{
    float   *x;
    size_t   i, n;

    n = (size_t) rows * cols;
    x = randn(&s->random, (uint32_t) n);

    for (i = 0; i < n; i++) {
        x[i] = x[i] * factor / divisor;
    }

    return x;
}


/* Adds the tensor of x [rows, cols], and frees x. */

static void
put(state_t *s, int fp8, const char *prefix, const char *name, float *x,
    uint32_t rows, uint32_t cols)
{
    char       full[NAME_SIZE];
    size_t     i, n;
    uint16_t  *out;

    n = (size_t) rows * cols;
    append(full, NAME_SIZE, 0, "%s%s.weight", prefix, name);

    if (fp8) {
        add_fp8(s, full, x, rows, cols);

    } else {
        out = add(s, full, BF16, rows, cols);

        for (i = 0; i < n; i++) {
            out[i] = bf16(x[i]);
        }
    }

    free(x);
}


/* With the direction of GLM each row has "along" times it added. */

static void
matrix(state_t *s, const char *prefix, const char *name, uint32_t rows,
    uint32_t cols, float factor, float divisor, float along)
{
    float   *x;
    size_t   i;

    x = draw(s, rows, cols, factor, divisor);

    for (i = 0; s->shared != NULL && i < (size_t) rows * cols; i++) {
        x[i] += along * s->shared[i % cols];
    }

    put(s, 0, prefix, name, x, rows, cols);
}


/* A projection keeps the size of its input's values, times "factor". */

static void
linear(state_t *s, const char *prefix, const char *name, uint32_t rows,
    uint32_t cols, float factor)
{
    put(s, s->fp8, prefix, name,
        draw(s, rows, cols, factor, sqrtf((float) cols)), rows, cols);
}


/*
 * A vector of mean "mean" and standard deviation "deviation", in BF16 or F32.
 * "offset", if there is one, is added to its last INDEX_DIM - ROPE elements.
 */

static void
vector(state_t *s, int narrow, const char *prefix, const char *name,
    uint32_t n, float mean, float deviation, const float *offset)
{
    char       full[NAME_SIZE];
    void      *out;
    float     *x;
    uint32_t   i;

    append(full, NAME_SIZE, 0, "%s%s", prefix, name);

    x = randn(&s->random, n);
    out = add(s, full, narrow ? BF16 : F32, n, 0);

    for (i = 0; i < n; i++) {
        x[i] = mean + deviation * x[i];

        if (offset != NULL && i >= ROPE) {
            x[i] += OFFSET * offset[i - ROPE];
        }

        if (narrow) {
            ((uint16_t *) out)[i] = bf16(x[i]);
        }
    }

    if (!narrow) {
        memcpy(out, x, n * sizeof(float));
    }

    free(x);
}


/* n numbers, 1 or -1 */

static float *
signs(state_t *s, uint32_t n)
{
    float     *x;
    uint32_t   i;

    x = randn(&s->random, n);

    for (i = 0; i < n; i++) {
        x[i] = copysignf(1.0f, x[i]);
    }

    return x;
}


/*
 * Returns the direction [rows] to which x [rows, cols] turns that of GLM, of
 * length 1; NULL: there is none.
 */

static float *
turned(const state_t *s, const float *x, uint32_t rows, uint32_t cols)
{
    float     *out;
    double     sum, squares;
    uint32_t   i, j;

    if (s->shared == NULL) {
        return NULL;
    }

    out = malloc(rows * sizeof(float));
    if (out == NULL) {
        abort();
    }

    squares = 0;

    for (i = 0; i < rows; i++) {
        sum = 0;

        for (j = 0; j < cols; j++) {
            sum += (double) x[i * cols + j] * s->shared[j];
        }

        out[i] = (float) sum;
        squares += sum * sum;
    }

    for (i = 0; i < rows; i++) {
        out[i] /= (float) sqrt(squares);
    }

    return out;
}


/*
 * The projection to the queries of the indexer.  Those of GLM have the offset
 * of its keys in the direction "query" [q_rank].
 */

static void
index_queries(state_t *s, const golden_t *m, const char *p,
    const float *offset, const float *query)
{
    float     *x;
    uint32_t   i, j, rows;

    rows = m->index_heads * INDEX_DIM;
    x = draw(s, rows, m->q_rank, 1.0f, sqrtf((float) m->q_rank));

    for (i = 0; offset != NULL && i < rows; i++) {
        for (j = 0; i % INDEX_DIM >= ROPE && j < m->q_rank; j++) {
            x[i * m->q_rank + j] += OFFSET * offset[i % INDEX_DIM - ROPE]
                                    * query[j] / sqrtf((float) m->q_rank);
        }
    }

    put(s, s->fp8, p, "indexer.wq_b", x, rows, m->q_rank);
}


/* The indexer.  Keys of GLM get an offset behind their rope part. */

static void
indexer(state_t *s, const golden_t *m, const char *p, const float *query)
{
    float  *offset;

    offset = m->glm ? signs(s, INDEX_DIM - ROPE) : NULL;

    index_queries(s, m, p, offset, query);
    linear(s, p, "indexer.wk", INDEX_DIM, m->hidden, 1.0f);
    vector(s, s->bf16, p, "indexer.k_norm.weight", INDEX_DIM,
           1.0f, 0.1f, NULL);
    vector(s, s->bf16, p, "indexer.k_norm.bias", INDEX_DIM,
           0.0f, 0.1f, offset);
    matrix(s, p, "indexer.weights_proj", m->index_heads, m->hidden, 1.0f,
           sqrtf((float) m->hidden), 1.5f / (float) m->hidden);
    free(offset);
}


static void
attention(state_t *s, const golden_t *m, const char *layer, int indexed)
{
    char    p[NAME_SIZE];
    float  *x, *query;

    query = NULL;

    append(p, NAME_SIZE, 0, "%sself_attn.", layer);

    if (m->q_rank != 0) {
        x = draw(s, m->q_rank, m->hidden, 1.0f, sqrtf((float) m->hidden));
        query = turned(s, x, m->q_rank, m->hidden);
        put(s, s->fp8, p, "q_a_proj", x, m->q_rank, m->hidden);
        vector(s, s->bf16, p, "q_a_layernorm.weight", m->q_rank,
           1.0f, 0.1f, NULL);
        linear(s, p, "q_b_proj", m->heads * (m->nope + ROPE), m->q_rank,
               m->query);

    } else {
        linear(s, p, "q_proj", m->heads * (m->nope + ROPE), m->hidden,
               m->query);
    }

    linear(s, p, "kv_a_proj_with_mqa", m->latent + ROPE, m->hidden, 1.0f);
    vector(s, s->bf16, p, "kv_a_layernorm.weight", m->latent,
           1.0f, 0.1f, NULL);
    linear(s, p, "kv_b_proj", m->heads * (m->nope + m->value), m->latent,
           1.0f);
    linear(s, p, "o_proj", m->hidden, m->heads * m->value, m->output);

    if (indexed) {
        indexer(s, m, p, query);
    }

    free(query);
}


static void
mlp(state_t *s, const golden_t *m, const char *prefix, uint32_t width,
    float down)
{
    linear(s, prefix, "gate_proj", width, m->hidden, 1.0f);
    linear(s, prefix, "up_proj", width, m->hidden, 1.0f);
    linear(s, prefix, "down_proj", m->hidden, width, down);
}


static void
experts(state_t *s, const golden_t *m, const char *layer)
{
    char      p[NAME_SIZE];
    uint32_t  i;

    append(p, NAME_SIZE, 0, "%smlp.", layer);
    matrix(s, p, "gate", m->experts, m->hidden, 1.0f,
           sqrtf((float) m->hidden), 0.0f);
    vector(s, s->bf16 == 2, p, "gate.e_score_correction_bias",
           m->experts, m->mean, m->bias, NULL);

    for (i = 0; i < m->experts; i++) {
        append(p, NAME_SIZE, 0, "%smlp.experts.%u.", layer, i);
        mlp(s, m, p, m->expert_width, m->down);
    }

    append(p, NAME_SIZE, 0, "%smlp.shared_experts.", layer);
    mlp(s, m, p, m->shared * m->expert_width, m->down);
}


/* The first rows of the head, those of quiet tokens, are smaller. */

static void
head(state_t *s, const golden_t *m)
{
    float     *x;
    uint32_t   i;

    x = draw(s, m->vocab, m->hidden, 3.0f, sqrtf((float) m->hidden));

    for (i = 0; i < m->quiet * m->hidden; i++) {
        x[i] *= QUIET;
    }

    put(s, 0, "", "lm_head", x, m->vocab, m->hidden);
}


/* A decoder layer; those after the dense ones have experts. */

static void
decoder(state_t *s, const golden_t *m, uint32_t i)
{
    char  p[NAME_SIZE], q[NAME_SIZE];

    append(p, NAME_SIZE, 0, "model.layers.%u.", i);

    vector(s, s->bf16, p, "input_layernorm.weight", m->hidden,
           1.0f, 0.1f, NULL);
    attention(s, m, p, m->index_heads != 0 && (m->sharing >> i & 1) == 0);
    vector(s, s->bf16, p, "post_attention_layernorm.weight", m->hidden,
           1.0f, 0.1f, NULL);

    if (i < m->dense || (i == m->layers && m->drafts == 2)) {
        append(q, NAME_SIZE, 0, "%smlp.", p);
        mlp(s, m, q, m->intermediate, 0.5f);

    } else {
        experts(s, m, p);
    }
}


/*
 * The embedding of token v becomes a part of the row in lm_head of the token
 * 5v + 1, so that this is often the next one.
 */

static void
prefer(state_t *s, const golden_t *m)
{
    float            a, b;
    uint32_t         i, j, to;
    uint16_t        *head;
    const uint16_t  *embed;

    embed = s->tensor[0].data;
    head = s->tensor[s->n - 1].data;

    for (i = 0; i < m->vocab; i++) {
        for (j = 0; j < m->hidden; j++) {
            to = (5 * i + 1) % m->vocab * m->hidden + j;

            a = float32(embed[i * m->hidden + j]);
            b = float32(head[to]);
            head[to] = bf16(fmaf(a, PREFERRED, b));
        }
    }
}


/*
 * What a draft layer has besides a decoder layer.  eh_proj passes the embedding
 * on, with some of the hidden state.  The copies of embed_tokens and lm_head
 * are other numbers than these, so that a program that used them would differ.
 */

static void
draft(state_t *s, const golden_t *m)
{
    char       p[NAME_SIZE];
    float     *x;
    uint32_t   i, j, at;
    uint16_t  *out;

    append(p, NAME_SIZE, 0, "model.layers.%u.", m->layers);

    vector(s, s->bf16, p, "enorm.weight", m->hidden,
           1.0f, 0.1f, NULL);
    vector(s, s->bf16, p, "hnorm.weight", m->hidden,
           1.0f, 0.1f, NULL);
    vector(s, s->bf16, p, "shared_head.norm.weight", m->hidden,
           1.0f, 0.1f, NULL);
    matrix(s, p, "embed_tokens", m->vocab, m->hidden, 1.0f, 1.0f,
           0.0f);
    matrix(s, p, "shared_head.head", m->vocab, m->hidden, 1.0f, 1.0f,
           0.0f);

    x = randn(&s->random, 2 * m->hidden * m->hidden);
    append(p, NAME_SIZE, strlen(p), "eh_proj.weight");
    out = add(s, p, BF16, m->hidden, 2 * m->hidden);

    for (i = 0; i < m->hidden; i++) {
        for (j = 0; j < 2 * m->hidden; j++) {
            at = i * 2 * m->hidden + j;
            out[at] = bf16(fmaf(x[at], ADDED, i == j ? PASSED : 0.0f));
        }
    }

    free(x);
}


static void
draw_model(state_t *s, const golden_t *m)
{
    uint32_t  i;

    randn_seed(&s->random, m->seed);

    s->file = 1;
    s->fp8 = m->fp8;
    s->bf16 = m->bf16;
    s->second = m->second;

    if (m->glm) {
        s->shared = signs(s, m->hidden);
    }

    matrix(s, "model.", "embed_tokens", m->vocab, m->hidden, 1.0f, 1.0f, 1.0f);

    for (i = 0; i < m->layers; i++) {
        decoder(s, m, i);
    }

    vector(s, s->bf16, "model.", "norm.weight", m->hidden,
           1.0f, 0.1f, NULL);
    head(s, m);

    if (m->drafts) {
        prefer(s, m);
        decoder(s, m, m->layers);
        draft(s, m);
    }

    free(s->shared);
}


/* The order of safetensors' own writer: the widest dtype first, then names. */

static int
compare(const void *one, const void *two)
{
    const tensor_t  *a, *b;

    a = one;
    b = two;

    if (a->dtype != b->dtype) {
        return a->dtype < b->dtype ? -1 : 1;
    }

    return strcmp(a->name, b->name);
}


static size_t
header(state_t *s, int file, char *out)
{
    size_t     len, at;
    uint32_t   i;
    tensor_t  *t;

    at = 0;
    len = append(out, HEADER_SIZE, 0, "{\"__metadata__\":{\"format\":\"pt\"}");

    for (i = 0; i < s->n; i++) {
        t = &s->tensor[i];

        if (t->file != file) {
            continue;
        }

        len = append(out, HEADER_SIZE, len,
                     ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%u", t->name,
                     dtypes[t->dtype].name, t->rows);

        if (t->cols != 0) {
            len = append(out, HEADER_SIZE, len, ",%u", t->cols);
        }

        len = append(out, HEADER_SIZE, len, "],\"data_offsets\":[%zu,%zu]}",
                     at, at + t->size);
        at += t->size;
    }

    len = append(out, HEADER_SIZE, len, "}");

    while (len % 8 != 0) {
        len = append(out, HEADER_SIZE, len, " ");
    }

    return len;
}


static void
write_file(state_t *s, int file)
{
    uint32_t     i;
    uint64_t     size;

    static char  head[HEADER_SIZE];

    qsort(s->tensor, s->n, sizeof(tensor_t), compare);

    size = header(s, file, head);
    fwrite(&size, sizeof(uint64_t), 1, stdout);
    fwrite(head, size, 1, stdout);

    for (i = 0; i < s->n; i++) {
        if (s->tensor[i].file == file) {
            fwrite(s->tensor[i].data, s->tensor[i].size, 1, stdout);
        }

        free(s->tensor[i].data);
    }
}


int
main(int argc, char **argv)
{
    int       file;
    unsigned  i;

    file = argc == 3 ? atoi(argv[2]) : 0;

    for (i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        if ((file == 1 || file == 2) && strcmp(argv[1], models[i].name) == 0) {
            draw_model(&state, &models[i]);
            write_file(&state, file);

            return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
        }
    }

    fprintf(stderr, "usage: golden_weights MODEL 1|2; the models:");

    for (i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        fprintf(stderr, " %s", models[i].name);
    }

    fprintf(stderr, "\n");

    return 2;
}
