
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "bench/node.h"


static int dsa_node_input_tokens(dsa_node_t *n);
static int dsa_node_input_pages(dsa_node_t *n);
static int dsa_node_input_experts(dsa_node_t *n);


/*
 * With "data" all ranks take the size of the fullest one, and slots without a
 * token are padding.
 */

void
dsa_node_decode(dsa_node_step_t *step, const dsa_node_t *n, uint32_t batch,
    uint32_t context)
{
    memset(step, 0, sizeof(dsa_node_step_t));

    step->batch = batch;
    step->keys = context;
    step->indexed = !n->dense && context > n->config.index_topk;

    if (n->attention == DSA_ATTENTION_DATA) {
        step->tokens = (batch + n->gpus - 1) / n->gpus;
        step->rows = step->tokens * n->gpus;

    } else {
        step->tokens = batch;
        step->rows = batch;
    }

    step->samples = step->tokens;
}


void
dsa_node_prefill(dsa_node_step_t *step, const dsa_node_t *n, uint32_t tokens,
    uint32_t start, uint32_t prompt)
{
    memset(step, 0, sizeof(dsa_node_step_t));

    step->prefill = 1;
    step->batch = tokens * n->gpus;
    step->tokens = tokens;
    step->rows = step->batch;
    step->samples = 1;
    step->start = start;
    step->mha = n->dense || prompt <= DSA_CUDA_MHA_TOKENS;
    step->indexed = !n->dense && start + tokens > n->config.index_topk;
}


int
dsa_node_input(dsa_node_t *n, const dsa_node_step_t *step, dsa_err_t *err)
{
    int       rc, same;
    uint32_t  sets;

    sets = step->prefill ? DSA_NODE_PROMPTS : DSA_NODE_SETS;
    same = n->step.batch == step->batch && n->sets == sets;

    n->step = *step;
    n->sets = sets;

    rc = dsa_node_input_tokens(n);
    rc = rc != 0 ? rc : dsa_node_input_pages(n);

    if (rc == 0 && !same) {
        rc = dsa_node_input_experts(n);
    }

    if (rc == 0 && !step->prefill && !step->indexed && !n->dense) {
        rc = dsa_node_select_all(n);
    }

    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(n->b.stream);

    if (rc != 0) {
        return dsa_error(err, "the input of a step of %u tokens: %s",
                         step->batch, dsa_cuda_error(rc));
    }

    return DSA_OK;
}


/*
 * Pages are scattered as in a server that has run for long: the number of page
 * i of sequence s is a multiple of a prime number, modulo the number of pages.
 */

static int32_t
dsa_node_page(const dsa_node_t *n, uint64_t s, uint32_t i)
{
    uint32_t  end, pages;

    end = n->step.prefill ? n->step.start + n->step.tokens : n->step.keys;
    pages = (end + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;

    return (int32_t) ((s * pages + i) * 1000003 % n->pages);
}


static int
dsa_node_copy(void *to, const int32_t *from, uint64_t count)
{
    return cudaMemcpy(to, from, count * sizeof(int32_t),
                      cudaMemcpyHostToDevice);
}


static int
dsa_node_input_tokens(dsa_node_t *n)
{
    int                     rc;
    int32_t                *v;
    uint32_t                i, at, tokens;
    dsa_cuda_sample_row_t  *row;
    const dsa_node_step_t  *step;

    step = &n->step;
    tokens = step->tokens;

    v = calloc(6 * (size_t) tokens, sizeof(int32_t));
    row = calloc(step->samples, sizeof(dsa_cuda_sample_row_t));

    if (v == NULL || row == NULL) {
        free(v);
        free(row);
        return cudaErrorMemoryAllocation;
    }

    for (i = 0; i < tokens; i++) {
        at = step->prefill ? step->start + i : step->keys - 1;

        v[i] = (int32_t) ((uint64_t) i * 2654435761U % n->config.vocab_size);
        v[tokens + i] = (int32_t) at;
        v[2 * tokens + i] = dsa_node_page(n, step->prefill ? 0 : i,
                                          at / DSA_PAGE_TOKENS)
                            * DSA_PAGE_TOKENS
                            + (int32_t) (at % DSA_PAGE_TOKENS);
        v[3 * tokens + i] = (int32_t) at + 1;
        v[4 * tokens + i] = -1;
        v[5 * tokens + i] = step->prefill ? (int32_t) tokens - 1
                                          : (int32_t) i;
    }

    for (i = 0; i < step->samples; i++) {
        row[i].sampling.temperature = 1;
        row[i].sampling.top_p = 0.95f;
        row[i].sampling.seed = i;
        row[i].position = (uint64_t) v[tokens] + 1;
    }

    rc = dsa_node_copy(n->input.token, v, tokens);
    rc = rc != 0 ? rc : dsa_node_copy(n->input.position, v + tokens, tokens);
    rc = rc != 0 ? rc : dsa_node_copy(n->input.slot, v + 2 * tokens, tokens);
    rc = rc != 0 ? rc : dsa_node_copy(n->input.keys, v + 3 * tokens, tokens);
    rc = rc != 0 ? rc : dsa_node_copy(n->input.feed, v + 4 * tokens, tokens);
    rc = rc != 0 ? rc : dsa_node_copy(n->input.last, v + 5 * tokens,
                                      step->samples);
    rc = rc != 0 ? rc : (int) cudaMemcpy(n->input.sampling, row,
                                         step->samples
                                         * sizeof(dsa_cuda_sample_row_t),
                                         cudaMemcpyHostToDevice);
    free(v);
    free(row);

    return rc;
}


/* Block tables: of each sequence in decode, of one in prefill. */

static int
dsa_node_input_pages(dsa_node_t *n)
{
    int        rc;
    int32_t   *pages;
    uint32_t   s, i, seqs;

    seqs = n->step.prefill ? 1 : n->step.tokens;
    pages = malloc((uint64_t) seqs * n->ld_pages * sizeof(int32_t));

    if (pages == NULL) {
        return cudaErrorMemoryAllocation;
    }

    for (s = 0; s < seqs; s++) {
        for (i = 0; i < n->ld_pages; i++) {
            pages[(uint64_t) s * n->ld_pages + i] = dsa_node_page(n, s, i);
        }
    }

    rc = dsa_node_copy(n->input.pages, pages, (uint64_t) seqs * n->ld_pages);
    free(pages);

    return rc;
}


/*
 * The numbers among this rank's experts of the choices in chosen [batch, k],
 * in the slots of the gathered tokens: token i is on rank i % gpus.
 */

static void
dsa_node_local_experts(const dsa_node_t *n, int32_t *local,
    const int32_t *chosen, const dsa_bench_load_t *load)
{
    int32_t   e, experts;
    uint32_t  i, j, k, row, slot;

    k = n->router.k;
    slot = n->step.rows / n->gpus;
    experts = (int32_t) (n->router.experts / n->gpus);

    for (i = 0; i < n->step.rows * k; i++) {
        local[i] = -1;
    }

    for (i = 0; i < n->step.batch; i++) {
        row = i % n->gpus * slot + i / n->gpus;

        for (j = 0; j < k; j++) {
            e = chosen[(uint64_t) i * k + j] - (int32_t) load->rank * experts;
            local[(uint64_t) row * k + j] = e >= 0 && e < experts ? e : -1;
        }
    }
}


/*
 * Logits from which the router chooses chosen [rows, k] in each layer: biases
 * are at most 0.01, and the choices are within the groups that it keeps.
 */

static int
dsa_node_input_logits(const dsa_node_t *n, const int32_t *chosen,
    uint32_t set)
{
    int        rc;
    float     *logits;
    uint32_t   i, k, rows, experts;
    uint64_t   count;

    k = n->router.k;
    rows = n->step.rows;
    experts = n->router.experts;
    count = (uint64_t) rows * experts;

    logits = malloc(count * sizeof(float));

    if (logits == NULL) {
        return cudaErrorMemoryAllocation;
    }

    for (i = 0; i < count; i++) {
        logits[i] = -4;
    }

    for (i = 0; i < rows * k; i++) {
        logits[(uint64_t) (i / k) * experts + chosen[i]] = 4;
    }

    rc = cudaMemcpy(n->logits + (uint64_t) set * DSA_MOE_SMALL * experts,
                    logits, count * sizeof(float), cudaMemcpyHostToDevice);
    free(logits);

    return rc;
}


static int
dsa_node_input_experts(dsa_node_t *n)
{
    int                rc;
    int32_t           *chosen, *local;
    uint32_t           i, k, ranks;
    uint64_t           size;
    dsa_bench_load_t   load;

    k = n->router.k;
    ranks = dsa_node_gathers(n) ? n->gpus : 1;
    size = (uint64_t) n->step.rows * k;
    memset(&n->load, 0, sizeof(n->load));

    chosen = malloc(size * sizeof(int32_t));
    local = malloc(size * sizeof(int32_t));
    rc = chosen == NULL || local == NULL ? cudaErrorMemoryAllocation : 0;

    for (i = 0; i < n->sets && rc == 0; i++) {
        if (dsa_bench_routing(chosen, &n->config, n->step.batch, n->zipf, i)
            != DSA_OK)
        {
            rc = cudaErrorMemoryAllocation;
            break;
        }

        dsa_bench_fullest(&load, chosen, &n->config, n->step.batch, ranks);

        n->load.experts += load.experts / n->sets;
        n->load.pairs += load.pairs / n->sets;
        n->load.tokens += load.tokens / n->sets;

        if (ranks > 1) {
            dsa_node_local_experts(n, local, chosen, &load);
        }

        rc = dsa_node_copy(n->chosen + i * size, ranks > 1 ? local : chosen,
                           size);

        if (rc == 0 && ranks == 1 && n->step.rows <= DSA_MOE_SMALL) {
            rc = dsa_node_input_logits(n, chosen, i);
        }
    }

    free(chosen);
    free(local);

    return rc;
}
