
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_T_GPU_EXCHANGE_H_INCLUDED_
#define _DSA_T_GPU_EXCHANGE_H_INCLUDED_


#include <cuda_runtime_api.h>

#include "kernels/exchange/exchange.h"


/*
 * For the tests of the exchange between ranks: ranks with streams and buffers
 * (a world), and rounds.  A round is one exchange of tokens, as an MoE layer
 * makes it with the project's own plan and gather between its halves, then an
 * all-reduce and a gather, with random operands and with the results that
 * plain C on the host expects.  An error fails the test.
 */

#define RANKS       4               /* most */
#define SECOND      1000000000ULL


typedef struct {
    uint32_t            ranks;
    int                 device[RANKS];
    cudaStream_t        stream[RANKS];
    dsa_cuda_exchange_t x[RANKS];
    dsa_exchange_fault_t  *fault[RANKS];        /* host addresses */
    void               *noise[RANKS];

    /* buffers that other ranks store to, for the most of each size */

    uint32_t            max_slot;
    uint32_t            max_cols;
    dsa_exchange_tokens_t  to;
    dsa_bf16_t         *part[RANKS];
    void               *sum_part[RANKS];
    float              *gathered[RANKS];
} world_t;


/* One rank's operands and results, and the expected results. */

typedef struct {
    uint32_t            tokens;
    uint8_t            *q;              /* host [tokens, cols] */
    float              *scale;          /* host [cols / 128, ld] */
    int32_t            *expert;         /* host [tokens, k], and so on */
    float              *weight;
    int32_t            *live;
    uint16_t           *shared;
    uint16_t           *table;          /* [places, cols]: what the experts of
                                           this rank computed */
    uint16_t           *reduce;         /* [rows, cols] */
    float              *own;            /* [rows, wide] */

    dsa_fp8_rows_t      d_x;            /* device: the same */
    int32_t            *d_expert;
    float              *d_weight;
    int32_t            *d_live;
    dsa_bf16_t         *d_shared;
    dsa_bf16_t         *d_table;
    dsa_bf16_t         *d_reduce;
    float              *d_own;

    dsa_moe_plan_t      plan;
    dsa_fp8_rows_t      d_places;       /* results */
    dsa_bf16_t         *d_y;
    dsa_bf16_t         *d_sum;
    float              *d_gathered;

    int32_t            *place;          /* expected: [ranks * slot, k] */
    uint16_t           *y;              /* [tokens, cols] */
    uint16_t           *sum;
    float              *gathered;
} member_t;


typedef struct {
    uint32_t            slot;
    uint32_t            experts;        /* of a rank */
    uint32_t            k;
    uint32_t            cols;
    uint32_t            rows;           /* of the all-reduce and the gather */
    uint32_t            wide;           /* columns of the gather */
    uint32_t            split;          /* rows of the first of two calls of
                                           combine; 0: one call */
    member_t            m[RANKS];
} round_t;


/*
 * ranks ranks on gpus GPUs, with buffers for slot tokens of cols columns; their
 * flags begin after number exchanges.  world_close() also frees all blocks of
 * gpu_alloc().
 */
void world_open(world_t *w, uint32_t ranks, int gpus, uint32_t slot,
    uint32_t cols, uint32_t number);
void world_close(world_t *w);

/* Waits for all GPUs. */
void world_sync(const world_t *w);

/* Copies size bytes of rank r's memory to p. */
void world_fetch(const world_t *w, uint32_t r, void *p, const void *device,
    size_t size);

/*
 * Fills a round whose sizes are set; tokens [ranks] of each rank, at most
 * slot.
 */
void round_open(const world_t *w, round_t *n, const uint32_t *tokens);
void round_close(const world_t *w, round_t *n);

/* What the checks read, so that no result is one of an earlier replay. */
void round_poison(const world_t *w, const round_t *n);

/* With noisy 1, one of four calls enqueues a kernel of a random length. */
void round_delay(const world_t *w, uint32_t r, int noisy);

/* Enqueues rank r's part in its stream. */
void round_enqueue(const world_t *w, const round_t *n, uint32_t r, int noisy);

/* Compares size bytes of rank r's memory with want. */
void round_same(const world_t *w, uint32_t r, const void *device,
    const void *want, size_t size, const char *what);

/* Compares all results with the expected ones, bit by bit. */
void round_check(const world_t *w, const round_t *n);


#endif /* _DSA_T_GPU_EXCHANGE_H_INCLUDED_ */
