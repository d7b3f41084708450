
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "tools/dsa.h"


static const char  dsa_bench_usage[] =
    "usage: dsa bench cache --address ADDRESS... [--connections N]\n"
    "                       [--pages N] [--page-bytes N]\n"
    "       dsa bench kernels [--only OP]\n"
    "       dsa bench engine --model DIR [--layers N] [--prefill[=TOKENS]]\n"
    "                        [--decode[=BATCHxCONTEXT]] [--gpus N]\n"
    "                        [--attention data|tensor]\n"
    "       dsa bench bits --model DIR [--layers N]\n"
    "       dsa bench comm [--gpus N]\n"
    "       dsa bench node --model DIR [--gpus N] [--attention data|tensor]\n"
    "                      [--only decode|prefill|cost|ops|exchange]...\n"
    "                      [--exchange FILE] [--csv FILE]\n"
    "\n"
    "Measures the page cache in Redis or the CUDA backend, and prints tables.\n"
    "All but cache is in the program dsa-cuda, which a build with nvcc has.\n"
    "\n"
    "  cache     pages written to Redis and read from there, in GB/s, and the\n"
    "            time of a probe; ADDRESS is HOST:PORT or unix:PATH, and the\n"
    "            pages are deleted after 10 minutes\n"
    "  kernels   each CUDA op and its limits; OP is a part of a name\n"
    "  engine    whole steps of a model with the config.json of DIR, random\n"
    "            weights, and as many layers as fit the GPU; with --gpus\n"
    "            also on N GPUs\n"
    "  bits      on what the bits of a token depend, with random weights, and\n"
    "            what ops would cost without\n"
    "  comm      the exchange between GPUs by size; all GPUs without --gpus\n"
    "  node      what a node of N (8) GPUs would do, measured on one of them;\n"
    "            \"--only exchange\" measures the exchanges between two GPUs\n"
    "            and prints the FILE for --exchange\n";


int
dsa_cmd_bench(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "cache") == 0) {
        return dsa_bench_cache(argc - 1, argv + 1, dsa_bench_usage);
    }

#if (DSA_CUDA)
    if (argc > 1 && strcmp(argv[1], "kernels") == 0) {
        return dsa_bench_kernels(argc - 1, argv + 1, dsa_bench_usage);
    }

    if (argc > 1 && strcmp(argv[1], "engine") == 0) {
        return dsa_bench_engine(argc - 1, argv + 1, dsa_bench_usage);
    }

    if (argc > 1 && strcmp(argv[1], "bits") == 0) {
        return dsa_bench_bits(argc - 1, argv + 1, dsa_bench_usage);
    }

    if (argc > 1 && strcmp(argv[1], "comm") == 0) {
        return dsa_bench_comm(argc - 1, argv + 1, dsa_bench_usage);
    }

    if (argc > 1 && strcmp(argv[1], "node") == 0) {
        return dsa_bench_node(argc - 1, argv + 1, dsa_bench_usage);
    }
#else
    if (argc > 1 && (strcmp(argv[1], "kernels") == 0
                     || strcmp(argv[1], "engine") == 0
                     || strcmp(argv[1], "bits") == 0
                     || strcmp(argv[1], "comm") == 0
                     || strcmp(argv[1], "node") == 0))
    {
        (void) fprintf(stderr, "dsa bench: %s measures a GPU; expected the "
                       "program dsa-cuda\n", argv[1]);
        return 1;
    }
#endif

    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        return fputs(dsa_bench_usage, stdout) != EOF ? 0 : 1;
    }

    (void) fputs(dsa_bench_usage, stderr);

    return 2;
}
