
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_INT4_H_INCLUDED_
#define _DSA_INT4_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>

#include "bf16.h"
#include "cuda.h"


/*
 * INT4 weights [rows, cols] with a BF16 scale for each group of 128 columns of
 * a row, as SGLang's W4AFP8 checkpoints have them
 * (python/sglang/srt/layers/quantization/w4afp8.py, and vLLM's file of the
 * same name, which documents the nibbles; docs/engine.md has other layouts):
 *
 *     value [row, col] = q [row, col] * scale [row, col / 128]
 *     q = -8 .. 7, in two's complement
 *
 * A byte has two columns: the even one in its low 4 bits.  cols is a multiple
 * of 128.  Scales are finite and above 0.  A checkpoint may have them in
 * float32, as those of TensorRT-LLM's script do; they are then rounded to BF16
 * when they are used, as SGLang does when it loads them.
 */

#define DSA_INT4_GROUP      128
#define DSA_INT4_MIN        (-8)
#define DSA_INT4_MAX        7


/*
 * Returns scale i of a tensor, a BF16 number: of groups, or, if groups is NULL,
 * of the float32 numbers in scale.
 */

static inline float
dsa_int4_group_scale(const uint16_t *groups, const float *scale, size_t i)
{
    return groups != NULL ? dsa_bf16_decode(groups[i])
                          : dsa_bf16_round(scale[i]);
}


/* Decodes a group: out [128] = scale * q, from 64 bytes. */
void dsa_int4_decode(float *out, const uint8_t *q, float scale);

/* Reads a group's q [128], not scaled, from 64 bytes. */
void dsa_int4_codes(int8_t *out, const uint8_t *q);

/*
 * Quantizes a group w [128] to 64 bytes of q, and returns its scale, a BF16
 * number above 0.  The scale is that of several candidates with the least sum
 * of squares of w - scale * q.  A candidate starts as a part of max(|w|) / 7,
 * so that larger values are clipped, and is then fitted to its own q: scale =
 * sum(w q) / sum(q q), the minimum for these q.  The same w gives the same
 * bytes on all machines.  NAN, and no bytes: w has a number that is not
 * finite.
 */
float dsa_int4_encode(uint8_t *q, const float *w);


/*
 * CUDA.  Weights as dsa_cuda_moe_gemm_int4() reads them.  dsa_cuda_int4_pack()
 * makes this of the layout above, in the same memory:
 *
 *     q       [rows / 8][cols / 128][8 rows][4 lanes][16 bytes]
 *     scale   [rows / 128][cols / 128][128 rows]
 *
 * So the 512 bytes of 8 rows and 128 columns are what a warp reads at once,
 * and each lane of a row has the columns that are its part of the operand of
 * four products of 32 columns.  Word s of its 16 bytes has the columns of
 * product s: in byte j, column 32 s + 4 lane + j in the low 4 bits and column
 * 32 s + 16 + 4 lane + j in the high 4 bits.  A number of 4 bits is
 * 2 |q| - (q < 0), which becomes an e4m3 number by one addition.
 */

typedef struct {
    const uint8_t      *q;              /* 128-byte aligned */
    const dsa_bf16_t   *scale;          /* 16-byte aligned */
    uint32_t            rows;           /* a multiple of 128 */
    uint32_t            cols;           /* a multiple of 128 */
} dsa_int4_weight_t;

#define DSA_CUDA_INT4_COLS  16384       /* most columns */

/*
 * CUDA.  Changes n weights [rows, cols] one after another, and their scales,
 * to the layout above.
 */
int dsa_cuda_int4_pack(uint8_t *q, dsa_bf16_t *scale, uint32_t rows,
    uint32_t cols, uint32_t n, dsa_stream_t stream);


#endif /* _DSA_INT4_H_INCLUDED_ */
