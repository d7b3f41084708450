
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "tools/dsa.h"


static const char  dsa_bench_usage[] =
    "usage: dsa bench kernels [--only OP]\n"
    "       dsa bench engine --model DIR [--layers N] [--prefill[=TOKENS]]\n"
    "                        [--decode[=BATCHxCONTEXT]]\n"
    "\n"
    "  kernels   every CUDA op beside what limits it; OP is a part of a name\n"
    "  engine    steps of a model with random weights, of DIR's config.json,\n"
    "            with as many layers as fit the GPU\n";


int
dsa_cmd_bench(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "kernels") == 0) {
        return dsa_bench_kernels(argc - 1, argv + 1, dsa_bench_usage);
    }

    if (argc > 1 && strcmp(argv[1], "engine") == 0) {
        return dsa_bench_engine(argc - 1, argv + 1, dsa_bench_usage);
    }

    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        return fputs(dsa_bench_usage, stdout) != EOF ? 0 : 1;
    }

    (void) fputs(dsa_bench_usage, stderr);

    return 2;
}
