
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "draft.h"
}

#include "kernels/core/hopper.cuh"


#define DSA_DRAFT_THREADS  128
#define DSA_DRAFT_PAGE     64           /* tokens */
#define DSA_DRAFT_ROWS     8            /* threads of a sequence that follows:
                                           one for each of its tokens */


/* Returns the slot of a position in a block table. */

static __device__ __forceinline__ int32_t
dsa_draft_slot(const int32_t *pages, int32_t at)
{
    return pages[at / DSA_DRAFT_PAGE] * DSA_DRAFT_PAGE + at % DSA_DRAFT_PAGE;
}


/*
 * Writes row i of a step for position at and with at + 1 keys, of which left
 * are in its group from it on, or as padding if left is not above 0.
 */

static __device__ __forceinline__ void
dsa_draft_row(const dsa_cuda_draft_input_t *in, int32_t i, int32_t at,
    const int32_t *pages, int32_t left)
{
    in->position[i] = left > 0 ? at : 0;
    in->keys[i] = left > 0 ? at + 1 : 0;
    in->slot[i] = left > 0 ? dsa_draft_slot(pages, at) : -1;
    in->left[i] = left > 0 ? left : 0;
}


static __global__ void
dsa_draft_follow_kernel(dsa_cuda_draft_seq_t *seq, uint32_t n,
    dsa_cuda_draft_input_t in, const int32_t *table,
    dsa_cuda_draft_input_t known, int32_t *from, size_t ld_pages,
    uint32_t *history, const uint32_t *accepted, const uint32_t *next,
    const dsa_cuda_sample_t *sample)
{
    int32_t               r, at, right, have, rows;
    uint32_t              e, *ids;
    const int32_t        *pages;
    dsa_cuda_draft_seq_t  s;

    e = (blockIdx.x * DSA_DRAFT_THREADS + threadIdx.x) / DSA_DRAFT_ROWS;
    r = (int32_t) threadIdx.x % DSA_DRAFT_ROWS;

    if (e >= n || seq[e].from < 0) {
        return;
    }

    s = seq[e];
    next += (size_t) s.from * DSA_DRAFT_NEXT;
    right = (int32_t) accepted[s.from] - 1;
    s.start += right;

    /* next has a number only where drafts were wanted */

    have = s.n_draft != 0 ? (int32_t) next[0] : 0;
    have = have < s.n_draft ? have : s.n_draft;
    have = have < s.limit - s.start - 1 ? have : s.limit - s.start - 1;

    ids = s.penalized ? history + in.sampling[s.sample].history
                        + in.sampling[s.sample].n_history - 1
                      : NULL;

    /* the threads of a sequence are in one warp */

    __syncwarp(0xffU << threadIdx.x % 32 / DSA_DRAFT_ROWS * DSA_DRAFT_ROWS);

    if (ids != NULL && r <= right) {
        ids[r] = sample[s.from_sample + r].token;
    }

    if (ids != NULL && r < have) {
        ids[right + 1 + r] = next[1 + r];
    }

    if (r <= s.n_draft) {
        at = s.start + r;
        pages = known.pages + (size_t) s.table * ld_pages;

        in.token[s.token + r] = r > have ? 0
                     : r == 0 ? (int32_t) sample[s.from_sample + right].token
                              : (int32_t) next[r];
        dsa_draft_row(&in, s.token + r, at,
                      in.pages + (size_t) table[s.token + r] * ld_pages,
                      have + 1 - r);

        in.sampling[s.sample + r].position += right;
        in.sampling[s.sample + r].n_history += s.penalized ? right : 0;

        rows = have + 1 < s.limit - s.start - 1 ? have + 1
                                                : s.limit - s.start - 1;
        dsa_draft_row(&known, s.row + r, at + 1, pages, rows - r);

        known.sampling[s.known + r].position += right;
        known.sampling[s.known + r].n_history += s.penalized ? right : 0;
    }

    if (r == 0) {
        if (s.kept >= 0) {
            dsa_draft_row(&known, s.kept, s.start, pages, 1);
            known.token[s.kept] = in.token[s.token];
            from[s.kept] = -1 - pages[(s.start - 1) / DSA_DRAFT_PAGE];
        }

        seq[e].start = s.start;
        seq[e].n = 1 + have;
        seq[e].n_draft = have;
    }
}


static __global__ void
dsa_draft_accept_kernel(uint32_t *accepted, const dsa_cuda_draft_seq_t *seq,
    uint32_t n, const int32_t *token, const dsa_cuda_sample_t *sample,
    const dsa_cuda_sample_row_t *row, uint32_t *history)
{
    int32_t               i, first;
    uint32_t              e, right, *to;
    dsa_cuda_draft_seq_t  s;

    e = blockIdx.x * DSA_DRAFT_THREADS + threadIdx.x;

    if (e >= n) {
        return;
    }

    s = seq[e];
    right = 0;

    if (s.sample >= 0) {
        first = s.token + s.n - s.n_draft;

        for (i = 0; i < s.n_draft; i++) {
            if (token[first + i] != (int32_t) sample[s.sample + i].token) {
                break;
            }

            right++;
        }

        if (s.penalized) {
            to = history + row[s.sample].history + row[s.sample].n_history;

            for (i = 0; i <= s.n_draft; i++) {
                to[i] = sample[s.sample + i].token;
            }
        }
    }

    accepted[e] = right + 1;
}


static __global__ void __launch_bounds__(DSA_DRAFT_THREADS)
dsa_draft_gather_kernel(uint32_t *y, int32_t *slot, const uint32_t *hidden,
    const int32_t *from, const int32_t *position, dsa_cuda_kept_t kept)
{
    int              valid;
    int32_t          f;
    uint32_t         i, words;
    const uint32_t  *p;

    f = from[blockIdx.x];
    words = kept.cols / 2;
    y += (size_t) blockIdx.x * words;
    valid = 1;

    if (f >= 0) {
        p = hidden + (size_t) f * words;

    } else {
        p = (const uint32_t *) (kept.base + (uint64_t) (-1 - f) * kept.page);
        valid = *p == (uint32_t) position[blockIdx.x];
        p++;
    }

    for (i = threadIdx.x; i < words; i += DSA_DRAFT_THREADS) {
        y[i] = valid ? p[i] : 0;
    }

    if (!valid && threadIdx.x == 0) {
        slot[blockIdx.x] = -1;
    }
}


static __global__ void __launch_bounds__(DSA_DRAFT_THREADS)
dsa_draft_keep_kernel(dsa_cuda_kept_t kept, const uint32_t *hidden,
    const int32_t *position, const int32_t *slot, const int32_t *owner,
    const dsa_cuda_draft_seq_t *seq, const uint32_t *accepted)
{
    int32_t               t, last;
    uint32_t              i, words, *to;
    dsa_cuda_draft_seq_t  s;

    t = (int32_t) blockIdx.x;
    s = seq[owner[t]];
    last = s.token + s.n - s.n_draft + (int32_t) accepted[owner[t]] - 2;

    if (t > last
        || (t != last && position[t] % DSA_DRAFT_PAGE != DSA_DRAFT_PAGE - 1))
    {
        return;
    }

    words = kept.cols / 2;
    to = (uint32_t *) (kept.base + (uint64_t) (slot[t] / DSA_DRAFT_PAGE)
                                   * kept.page);
    hidden += (size_t) t * words;

    for (i = threadIdx.x; i < words; i += DSA_DRAFT_THREADS) {
        to[1 + i] = hidden[i];
    }

    if (threadIdx.x == 0) {
        to[0] = (uint32_t) position[t] + 1;
    }
}


static __global__ void
dsa_draft_next_kernel(uint32_t *next, int32_t *source, int32_t *pick,
    dsa_cuda_draft_rows_t to, dsa_cuda_draft_rows_t from, const int32_t *last,
    const dsa_cuda_sample_t *sample, uint32_t *history,
    const dsa_cuda_draft_seq_t *seq, const uint32_t *accepted,
    const int32_t *pages, size_t ld_pages, uint32_t n, uint32_t k)
{
    int32_t                most, end, at, row, tok;
    uint32_t               e;
    dsa_cuda_draft_seq_t   s;
    dsa_cuda_sample_row_t  r;

    e = blockIdx.x * DSA_DRAFT_THREADS + threadIdx.x;

    if (e >= n) {
        return;
    }

    s = seq[e];
    end = s.start + s.n - s.n_draft + (int32_t) accepted[e] - 1;
    most = s.limit - end < s.most ? s.limit - end : s.most;
    most = s.sample < 0 || most < 0 ? 0 : most;

    if (k == 0) {
        next[e * DSA_DRAFT_NEXT] = (uint32_t) most;
    }

    row = k == 0 ? s.known + (int32_t) accepted[e] - 1 : (int32_t) e;

    /* to may be from */

    if ((int32_t) k < most) {
        r = from.sampling[row];
    }

    source[e] = -1;
    pick[e] = -1;
    to.token[e] = 0;
    to.position[e] = 0;
    to.slot[e] = -1;
    to.keys[e] = 0;
    to.last[e] = (int32_t) e;
    memset(&to.sampling[e], 0, sizeof(dsa_cuda_sample_row_t));

    if ((int32_t) k >= most) {
        return;
    }

    tok = (int32_t) sample[row].token;

    next[e * DSA_DRAFT_NEXT + 1 + k] = (uint32_t) tok;

    if ((int32_t) k + 1 == most) {
        return;
    }

    if (s.penalized) {
        history[r.history + r.n_history] = (uint32_t) tok;
        r.n_history++;
    }

    r.position++;

    /* the row of draft k + 1 is at the position of draft k */

    at = end + 1 + (int32_t) k;

    source[e] = row;
    pick[e] = last != NULL ? last[row] : row;
    to.token[e] = tok;
    to.position[e] = at;
    to.slot[e] = pages[e * ld_pages + at / DSA_DRAFT_PAGE] * DSA_DRAFT_PAGE
                 + at % DSA_DRAFT_PAGE;
    to.keys[e] = at + 1;
    to.sampling[e] = r;
}


static __global__ void
dsa_draft_mask_kernel(dsa_cuda_sample_row_t *sampling, uint32_t *next,
    dsa_cuda_draft_seq_t *seq, const uint32_t *accepted, const uint32_t *state,
    uint32_t mask, uint32_t n, uint32_t k)
{
    uint32_t  e, row;

    e = blockIdx.x * DSA_DRAFT_THREADS + threadIdx.x;

    if (e >= n) {
        return;
    }

    if (state[e] == DSA_DRAFT_ENDED) {
        next[e * DSA_DRAFT_NEXT] = k;
        seq[e].most = (int32_t) k;

    } else if (state[e] == DSA_DRAFT_MASKED) {
        row = k == 0 ? (uint32_t) seq[e].known + accepted[e] - 1 : e;
        sampling[row].mask = mask + e;
    }
}


static __global__ void __launch_bounds__(DSA_DRAFT_THREADS)
dsa_draft_copy_kernel(int32_t *to, const int32_t *from, const int32_t *row,
    size_t stride, size_t ld, uint32_t cols, int32_t fill)
{
    int32_t   r;
    uint32_t  i;

    r = row[blockIdx.x * stride];
    to += blockIdx.x * ld;

    for (i = threadIdx.x; i < cols; i += DSA_DRAFT_THREADS) {
        to[i] = r >= 0 ? from[(size_t) r * ld + i] : fill;
    }
}


static inline uint32_t
dsa_draft_blocks(uint32_t n)
{
    return (n + DSA_DRAFT_THREADS - 1) / DSA_DRAFT_THREADS;
}


extern "C" int
dsa_cuda_draft_follow(dsa_cuda_draft_seq_t *seq, uint32_t n,
    const dsa_cuda_draft_input_t *in, const int32_t *table,
    const dsa_cuda_draft_input_t *known, int32_t *from, size_t ld_pages,
    uint32_t *history, const uint32_t *accepted, const uint32_t *next,
    const dsa_cuda_sample_t *sample, dsa_stream_t stream)
{
    dsa_draft_follow_kernel<<<dsa_draft_blocks(n * DSA_DRAFT_ROWS),
                              DSA_DRAFT_THREADS, 0, stream>>>(
        seq, n, *in, table, *known, from, ld_pages, history, accepted, next,
        sample);

    return cudaGetLastError();
}


extern "C" int
dsa_cuda_draft_accept(uint32_t *accepted, const dsa_cuda_draft_seq_t *seq,
    uint32_t n, const int32_t *token, const dsa_cuda_sample_t *sample,
    const dsa_cuda_sample_row_t *row, uint32_t *history, dsa_stream_t stream)
{
    dsa_draft_accept_kernel<<<dsa_draft_blocks(n), DSA_DRAFT_THREADS, 0,
                              stream>>>(accepted, seq, n, token, sample, row,
                                        history);

    return cudaGetLastError();
}


extern "C" int
dsa_cuda_draft_gather(dsa_bf16_t *y, int32_t *slot, const dsa_bf16_t *hidden,
    const int32_t *from, const int32_t *position, const dsa_cuda_kept_t *kept,
    uint32_t rows, dsa_stream_t stream)
{
    dsa_draft_gather_kernel<<<rows, DSA_DRAFT_THREADS, 0, stream>>>(
        (uint32_t *) y, slot, (const uint32_t *) hidden, from, position,
        *kept);

    return cudaGetLastError();
}


extern "C" int
dsa_cuda_draft_keep_hidden(const dsa_cuda_kept_t *kept,
    const dsa_bf16_t *hidden, const int32_t *position, const int32_t *slot,
    const int32_t *owner, const dsa_cuda_draft_seq_t *seq,
    const uint32_t *accepted, uint32_t tokens, dsa_stream_t stream)
{
    dsa_draft_keep_kernel<<<tokens, DSA_DRAFT_THREADS, 0, stream>>>(
        *kept, (const uint32_t *) hidden, position, slot, owner, seq,
        accepted);

    return cudaGetLastError();
}


extern "C" int
dsa_cuda_draft_next(uint32_t *next, int32_t *source, int32_t *pick,
    const dsa_cuda_draft_rows_t *to, const dsa_cuda_draft_rows_t *from,
    const int32_t *last, const dsa_cuda_sample_t *sample, uint32_t *history,
    const dsa_cuda_draft_seq_t *seq, const uint32_t *accepted,
    const int32_t *pages, size_t ld_pages, uint32_t n, uint32_t k,
    dsa_stream_t stream)
{
    dsa_draft_next_kernel<<<dsa_draft_blocks(n), DSA_DRAFT_THREADS, 0,
                            stream>>>(next, source, pick, *to, *from, last,
                                      sample, history, seq, accepted, pages,
                                      ld_pages, n, k);

    return cudaGetLastError();
}


extern "C" int
dsa_cuda_draft_mask(dsa_cuda_sample_row_t *sampling, uint32_t *next,
    dsa_cuda_draft_seq_t *seq, const uint32_t *accepted,
    const uint32_t *state, uint32_t mask, uint32_t n, uint32_t k,
    dsa_stream_t stream)
{
    dsa_draft_mask_kernel<<<dsa_draft_blocks(n), DSA_DRAFT_THREADS, 0,
                            stream>>>(sampling, next, seq, accepted, state,
                                      mask, n, k);

    return cudaGetLastError();
}


extern "C" int
dsa_cuda_draft_copy(int32_t *to, const int32_t *from, const int32_t *row,
    size_t stride, uint32_t n, size_t ld, uint32_t cols, int32_t fill,
    dsa_stream_t stream)
{
    dsa_draft_copy_kernel<<<n, DSA_DRAFT_THREADS, 0, stream>>>(to, from, row,
                                                               stride, ld,
                                                               cols, fill);

    return cudaGetLastError();
}
