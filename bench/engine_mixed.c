
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include "bench/engine.h"


/*
 * Steps of rows of answers and of a prompt.  The weights of the experts are
 * read for either; what a row costs besides depends on its kind.  "ncu
 * --profile-from-start off" has the time of each kernel of a step.
 */

static const uint32_t  dsa_bench_rows[DSA_BENCH_ROWS] = {
    64, 96, 128, 256, DSA_BENCH_MIXED
};


int
dsa_bench_mixed(dsa_bench_engine_t *e, dsa_err_t *err)
{
    size_t            i, j;
    dsa_bench_step_t  step;

    memset(&step, 0, sizeof(dsa_bench_step_t));

    step.context = e->mixed_context;

    for (i = 0; i < DSA_BENCH_ROWS; i++) {

        if (e->mixed_rows != 0 && e->mixed_rows != dsa_bench_rows[i]) {
            continue;
        }

        for (j = 0; j <= DSA_BENCH_PARTS; j++) {
            step.prompt = dsa_bench_rows[i] / DSA_BENCH_PARTS * (uint32_t) j;
            step.batch = dsa_bench_rows[i] - step.prompt;

            if (dsa_bench_steps(e, &step, &e->result->mixed[i][j], err)
                == DSA_ERROR)
            {
                return DSA_ERROR;
            }
        }
    }

    return DSA_OK;
}


void
dsa_bench_mixed_table(const dsa_bench_engine_t *e,
    const dsa_bench_result_t *r)
{
    size_t  i, j;

    (void) printf("\n| rows of each GPU, context %u, ms a step",
                  e->mixed_context);

    for (j = 0; j <= DSA_BENCH_PARTS; j++) {
        (void) printf(" | prompt %zu %%", j * 100 / DSA_BENCH_PARTS);
    }

    (void) printf(" |\n|---|");

    for (j = 0; j <= DSA_BENCH_PARTS; j++) {
        (void) printf("---|");
    }

    for (i = 0; i < DSA_BENCH_ROWS; i++) {

        if (e->mixed_rows != 0 && e->mixed_rows != dsa_bench_rows[i]) {
            continue;
        }

        (void) printf("\n| %u", dsa_bench_rows[i]);

        for (j = 0; j <= DSA_BENCH_PARTS; j++) {
            if (r->mixed[i][j] != 0) {
                (void) printf(" | %.3f", r->mixed[i][j] * 1e3);
            } else {
                (void) printf(" | no room");
            }
        }

        (void) printf(" |");
    }

    (void) printf("\n");
}
