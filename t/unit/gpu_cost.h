
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What a step costs one of two H200 that compute DeepSeek-V3.2 with 64 experts
 * of each layer, as bench/results/2026-11-22-slices.md has it: the steps with
 * 1, 4 and 16 streams on a GPU are the times between events of its first table,
 * those with 64 and 128 and the prompts of 4K and 32K are its steps, in ms.
 */


#ifndef _GPU_COST_H_INCLUDED_
#define _GPU_COST_H_INCLUDED_


#include "engine/backend.h"


/* Answers cost more at 8K than at 1K, and prompts of 32K more than of 4K. */

#define GPU_ANSWER  ((40.2 - 34.7) / (64 * 7 * 1024))   /* ms of a row and of a
                                                           token before it */
#define GPU_PROMPT  ((5551.9 / 8 - 425.7) / (4096 * (16384.0 - 2048)))


/* ms of a rank with so many rows and these products of rows and context. */

static inline double
gpu_ms(uint32_t rows, double answers, double prompts)
{
    uint32_t  i;

    /* without their context: 1K, and 2K on average for a prompt */

    static const double  at[][2] = {
        { 1, 15.8 - 1024 * GPU_ANSWER },
        { 4, 23.9 - 4 * 1024 * GPU_ANSWER },
        { 16, 30.4 - 16 * 1024 * GPU_ANSWER },
        { 64, 34.7 - 64 * 1024 * GPU_ANSWER },
        { 128, 43.4 - 128 * 1024 * GPU_ANSWER },
        { 4096, 425.7 - 4096 * 2048 * GPU_PROMPT }
    };

    if (rows == 0) {
        return 0;
    }

    for (i = 0; i < 4; i++) {
        if (rows <= at[i + 1][0]) {
            break;
        }
    }

    return at[i][1] + (at[i + 1][1] - at[i][1]) * (rows - at[i][0])
                      / (at[i + 1][0] - at[i][0])
           + answers * GPU_ANSWER + prompts * GPU_PROMPT;
}


/* The same of a step: that of the slowest of two ranks. */

static inline double
gpu_step_ms(const dsa_batch_seq_t *seq, uint32_t n_seqs)
{
    double    ms, slowest, answers, prompts;
    uint32_t  i, rank, rows, n;

    slowest = 0;

    for (rank = 0; rank < 2; rank++) {
        rows = 0;
        answers = 0;
        prompts = 0;

        for (i = 0; i < n_seqs; i++) {
            if (seq[i].rank != rank && seq[i].copies == NULL) {
                continue;
            }

            n = seq[i].copies != NULL ? (seq[i].n_input + 1) / 2
                                      : seq[i].n_input;
            rows += n;

            if (seq[i].start < seq[i].n_prompt) {
                prompts += n * (seq[i].start + seq[i].n_input / 2.0);

            } else {
                answers += n * (double) seq[i].start;
            }
        }

        ms = gpu_ms(rows, answers, prompts);
        slowest = ms > slowest ? ms : slowest;
    }

    return slowest;
}


#endif /* _GPU_COST_H_INCLUDED_ */
