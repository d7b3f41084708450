
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>

#include "bench/engine.h"


/*
 * Decode steps with drafts of the draft layer.  Its weights are random, so that
 * which drafts are right is chance; the time of a step depends on the number of
 * drafts, and not on which of them are accepted.  What drafts gain follows from
 * the shares of accepted drafts that the caller assumes.
 */


int
dsa_bench_shares(double share[DSA_BENCH_DRAFTS], uint32_t *n,
    const char *text)
{
    char  *end;

    for (*n = 0; *n < DSA_BENCH_DRAFTS; text = end + 1) {
        share[*n] = strtod(text, &end);

        if (end == text || !(share[*n] >= 0 && share[*n] <= 1)) {
            return DSA_ERROR;
        }

        (*n)++;

        if (*end != ',') {
            return *end == '\0' ? DSA_OK : DSA_ERROR;
        }
    }

    return DSA_ERROR;
}


int
dsa_bench_drafts(dsa_bench_engine_t *e, dsa_err_t *err)
{
    size_t            i, j;
    uint32_t          n;
    dsa_bench_step_t  step;

    step.prompt = 0;

    for (i = 0; i < DSA_BENCH_CONTEXTS; i++) {
        for (j = 0; j < DSA_BENCH_BATCHES; j++) {
            step.context = dsa_bench_context[i];
            step.batch = dsa_bench_batch[j];

            if (e->batch_only != 0 && (step.batch != e->batch_only
                                       || step.context != e->context_only))
            {
                continue;
            }

            for (n = 0; n <= e->drafts; n++) {
                step.drafts = n;

                if (dsa_bench_steps(e, &step, &e->result->drafts[i][j][n], err)
                    == DSA_ERROR)
                {
                    return DSA_ERROR;
                }
            }
        }
    }

    return DSA_OK;
}


void
dsa_bench_drafts_table(const dsa_bench_engine_t *e,
    const dsa_bench_result_t *r)
{
    size_t         i, j;
    double         tokens, speed;
    uint32_t       n;
    const double  *t;

    (void) printf("\n| decode with drafts, batch | context | drafts "
                  "| ms a step | times without | tokens a step, assumed "
                  "| tokens/s | gain |\n|---|---|---|---|---|---|---|---|\n");

    for (i = 0; i < DSA_BENCH_CONTEXTS; i++) {
        for (j = 0; j < DSA_BENCH_BATCHES; j++) {
            t = r->drafts[i][j];
            tokens = 1;

            for (n = 0; n <= e->drafts && t[n] != 0; n++) {
                tokens += n != 0 ? e->accepted[n - 1] : 0;
                speed = tokens * dsa_bench_batch[j] / t[n];

                (void) printf("| %u | %u | %u | %.3f | %.2f | %.2f | %.0f "
                              "| %.2f |\n", dsa_bench_batch[j],
                              dsa_bench_context[i], n, t[n] * 1e3,
                              t[n] / t[0], tokens, speed,
                              tokens * t[0] / t[n]);
            }
        }
    }
}
