
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
    "       dsa bench routing --model DIR [--gpus N] [--tokens N]\n"
    "                         [--zipf S]...\n"
    "       dsa bench kernels [--only OP]\n"
    "       dsa bench engine --model DIR [--layers N] [--prefill[=TOKENS]]\n"
    "                        [--decode[=BATCHxCONTEXT]] [--gpus N]\n"
    "                        [--drafts SHARE[,SHARE]...]\n"
    "                        [--mixed[=ROWSxCONTEXT]]\n"
    "                        [--attention data|tensor]\n"
    "       dsa bench engine --conf FILE [--network GB/S]\n"
    "                        [--prefill[=TOKENS]] [--decode[=BATCHxCONTEXT]]\n"
    "       dsa bench bits --model DIR [--layers N]\n"
    "       dsa bench comm [--gpus N]\n"
    "       dsa bench comm --conf FILE [--network GB/S]\n"
    "       dsa bench node --model DIR... [--gpus N]\n"
    "                      [--attention data|tensor] [--kv fp8|bf16]\n"
    "                      [--only decode|prefill|cost|ops|exchange|hosts|\n"
    "                              chats]...\n"
    "                      [--exchange FILE] [--csv FILE] [--zipf S]\n"
    "                      [--hosts N] [--network GB/S]\n"
    "                      [--steps FILE] [--drafts SHARE[,SHARE]...]\n"
    "\n"
    "Measures the page cache in Redis or the CUDA backend, and prints tables.\n"
    "All but cache, routing and --conf with \"backend cpu\" is in the program\n"
    "dsa-cuda, which a build with nvcc has.\n"
    "\n"
    "  cache     pages written to Redis and read from there, in GB/s, and the\n"
    "            time of a probe; ADDRESS is HOST:PORT or unix:PATH, and the\n"
    "            pages are deleted after 10 minutes\n"
    "  routing   what the fullest of N (8) GPUs has of a step of N (1024)\n"
    "            tokens, if the popularity of experts falls as n^-S, and with\n"
    "            the most popular ones on each GPU; no GPU is needed\n"
    "  kernels   each CUDA op and its limits; OP is a part of a name\n"
    "  engine    whole steps of a model with the config.json of DIR, random\n"
    "            weights, and as many layers as fit the GPU; with --gpus\n"
    "            also on N GPUs; with --drafts decode steps with up to as\n"
    "            many drafts as there are SHAREs, of which that SHARE is\n"
    "            assumed to be accepted (\".85,.7,.6\"); with --mixed steps\n"
    "            of 64, 96, 128, 256 or 512 rows of each GPU, of which none\n"
    "            to all are a prompt's; with --conf the model of engine.conf,\n"
    "            on all its hosts\n"
    "  bits      on what the bits of a token depend, with random weights, and\n"
    "            what ops would cost without\n"
    "  comm      the exchange between GPUs by size; all GPUs without --gpus;\n"
    "            with --conf that between the hosts of engine.conf\n"
    "  --conf    on each host, with its engine.conf: it follows with \"listen\n"
    "            HOST:PORT\", and with \"hosts\" it leads and prints;\n"
    "            --network: GB/S between hosts, for the bound\n"
    "  node      what a node of N (8) GPUs would do, measured on one of them,\n"
    "            for each model; --kv: the format of a dense model's latents;\n"
    "            \"--only exchange\" measures the exchanges between two GPUs\n"
    "            and prints the FILE for --exchange; \"--only hosts\"\n"
    "            computes without a GPU what N (2) hosts of H100 would do at\n"
    "            least, with GB/S (50) between hosts for each GPU; \"--only\n"
    "            chats\" computes without a GPU what chats at once would take\n"
    "            at least, and from the steps of one GPU in FILE, with up to\n"
    "            as many drafts as there are SHAREs; --zipf: popular experts,\n"
    "            as for routing\n";


/* What is NULL measures a GPU, and is not in this program. */

#if (DSA_CUDA)
#define dsa_bench_gpu(run)  run
#else
#define dsa_bench_gpu(run)  NULL
#endif

typedef int (*dsa_bench_pt)(int argc, char **argv, const char *usage);

static const struct {
    const char     *name;
    dsa_bench_pt    run;
    dsa_bench_pt    hosts;              /* with --conf; NULL: not offered */
} dsa_benches[] = {
    { "cache", dsa_bench_cache, NULL },
    { "routing", dsa_bench_skew, NULL },
    { "kernels", dsa_bench_gpu(dsa_bench_kernels), NULL },
    { "engine", dsa_bench_gpu(dsa_bench_engine), dsa_bench_hosts_engine },
    { "bits", dsa_bench_gpu(dsa_bench_bits), NULL },
    { "comm", dsa_bench_gpu(dsa_bench_comm), dsa_bench_hosts_comm },
    { "node", dsa_bench_gpu(dsa_bench_node), NULL }
};


/* Returns 1 if an argument is --conf. */

static int
dsa_bench_conf(int argc, char **argv)
{
    int  i;

    for (i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--conf", 6) == 0
            && (argv[i][6] == '\0' || argv[i][6] == '='))
        {
            return 1;
        }
    }

    return 0;
}


int
dsa_cmd_bench(int argc, char **argv)
{
    int     i;
    size_t  n;

    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return fputs(dsa_bench_usage, stdout) != EOF
                   && fflush(stdout) == 0 ? 0 : 1;
        }
    }

    for (n = 0; strcmp(argv[0], dsa_benches[n].name) != 0; n++) { /* void */ }

    if (dsa_benches[n].hosts != NULL && dsa_bench_conf(argc, argv)) {
        return dsa_benches[n].hosts(argc, argv, dsa_bench_usage);
    }

    if (dsa_benches[n].run == NULL) {
        (void) fprintf(stderr, "dsa bench: %s measures a GPU; expected the "
                       "program dsa-cuda\n", argv[0]);
        return 1;
    }

    return dsa_benches[n].run(argc, argv, dsa_bench_usage);
}
