
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "engine/cuda/model.h"


static int dsa_cuda_forward_input(dsa_cuda_model_t *m, const dsa_rows_t *seq);


int
dsa_cuda_model_forward(dsa_cuda_model_t *m, const dsa_rows_t *seq,
    uint32_t prompt, float *logits, dsa_err_t *err)
{
    int              rc;
    uint32_t         i;
    dsa_cuda_seq_t   part[2];
    dsa_cuda_step_t  step = { 0 };

    if (seq->n == 0 || seq->n > m->max_rows || seq->n > m->max_samples
        || (uint64_t) seq->start + seq->n > m->context)
    {
        return dsa_error(err, "a step of %u rows from position %u on, at most "
                         "%u rows and positions below %u are accepted",
                         seq->n, seq->start, m->max_rows < m->max_samples
                         ? m->max_rows : m->max_samples, m->context);
    }

    for (i = 0; i < seq->n; i++) {
        if (seq->tokens[i] >= m->config.vocab_size) {
            return dsa_error(err, "token %u at position %u, ids below %u are "
                             "accepted", seq->tokens[i], seq->start + i,
                             m->config.vocab_size);
        }
    }

    rc = dsa_cuda_forward_input(m, seq);

    if (rc != 0) {
        return dsa_error(err, "a step of %u rows on the GPU: %s", seq->n,
                         dsa_cuda_error(rc));
    }

    step.rows = seq->n;
    step.samples = seq->n;
    step.seq = part;

    if (dsa_cuda_model_decodes(m, seq->start, seq->n, prompt)) {
        step.decode = 1;
        step.max_keys = seq->start + 1;
        step.indexed = step.max_keys > m->topk;

    } else {
        step.n_seqs = dsa_cuda_model_parts(m, part, seq->start, seq->n,
                                           prompt, 0, 0);
    }

    if (dsa_cuda_model_run(m, &step, err) != DSA_OK) {
        return DSA_ERROR;
    }

    rc = cudaMemcpyAsync(logits, m->work.vocab,
                         (uint64_t) seq->n * m->config.vocab_size
                         * sizeof(float), cudaMemcpyDeviceToHost, m->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(m->stream);

    if (rc != 0) {
        return dsa_error(err, "a step of %u rows on the GPU: %s", seq->n,
                         dsa_cuda_error(rc));
    }

    return DSA_OK;
}


static int
dsa_cuda_forward_set(dsa_cuda_model_t *m, void *to, const int32_t *from,
    uint32_t n)
{
    return cudaMemcpyAsync(to, from, n * sizeof(int32_t),
                           cudaMemcpyHostToDevice, m->stream);
}


static int
dsa_cuda_forward_input(dsa_cuda_model_t *m, const dsa_rows_t *seq)
{
    int                  rc;
    int32_t             *v;
    uint32_t             i, at, n, pages;
    dsa_cuda_input_t    *in;

    in = &m->input;
    n = seq->n;
    pages = (seq->start + n + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;

    v = calloc(7 * (size_t) n, sizeof(int32_t));

    if (v == NULL) {
        return cudaErrorMemoryAllocation;
    }

    for (i = 0; i < n; i++) {
        at = seq->start + i;

        v[i] = (int32_t) seq->tokens[i];
        v[n + i] = (int32_t) at;
        v[2 * n + i] = (int32_t) (seq->pages[at / DSA_PAGE_TOKENS]
                                  * DSA_PAGE_TOKENS + at % DSA_PAGE_TOKENS);
        v[3 * n + i] = (int32_t) at + 1;
        v[5 * n + i] = -1;
        v[6 * n + i] = (int32_t) i;
    }

    rc = dsa_cuda_forward_set(m, in->token, v, n);
    rc = rc != 0 ? rc : dsa_cuda_forward_set(m, in->position, v + n, n);
    rc = rc != 0 ? rc : dsa_cuda_forward_set(m, in->slot, v + 2 * n, n);
    rc = rc != 0 ? rc : dsa_cuda_forward_set(m, in->keys, v + 3 * n, n);
    rc = rc != 0 ? rc : dsa_cuda_forward_set(m, in->owner, v + 4 * n, n);
    rc = rc != 0 ? rc : dsa_cuda_forward_set(m, in->feed, v + 5 * n, n);
    rc = rc != 0 ? rc : dsa_cuda_forward_set(m, in->last, v + 6 * n, n);
    rc = rc != 0 ? rc : dsa_cuda_forward_set(m, in->pages,
                                             (const int32_t *) seq->pages,
                                             pages);

    /* greedy, and the samples are not looked at */

    rc = rc != 0 ? rc : (int) cudaMemsetAsync(in->sampling, 0,
                                              n * sizeof(dsa_cuda_sampling_t),
                                              m->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(m->stream);
    free(v);

    return rc;
}
