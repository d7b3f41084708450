
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_HOSTS_H_INCLUDED_
#define _DSA_BENCH_HOSTS_H_INCLUDED_


#include "engine/hosts/leader.h"
#include "engine/service/conf.h"


/*
 * dsa bench comm and dsa bench engine over several hosts.  Each host runs the
 * program with its engine.conf: the one with "hosts" leads and prints tables,
 * one with "listen HOST:PORT" follows until the leader has ended.  They
 * connect, prove the secret, agree on the plan and start steps as engines do.
 * Files:
 *
 *     hosts              options, the leader, a follower
 *     hosts_comm         the exchange by size: a backend without a model
 *     hosts_comm_cuda    its exchange between GPUs, in dsa-cuda
 *     hosts_engine       steps of the model
 */

#define DSA_BENCH_NETWORK   50.0        /* GB/s for each GPU: 400 Gb/s */


typedef struct {
    const char         *name;           /* of the command, "comm" */
    const char         *path;           /* of engine.conf */
    double              network;        /* GB/s; 0: not given */
    uint32_t            prefill;        /* 1: of the two only what was */
    uint32_t            decode;         /*    requested; both 0: both */
    uint32_t            tokens_only;    /* of the prompts; 0: all */
    uint32_t            batch_only;
    uint32_t            context_only;
    uint32_t            hosts;
    dsa_conf_t          conf;
    dsa_backend_conf_t  backend;        /* of conf */
    dsa_hosts_leader_t  leader;
} dsa_bench_hosts_t;


/* What a command does besides, on each host and on the leader. */

typedef struct {
    const char         *name;

    /* Changes the plan of the leader. */
    void              (*plan)(dsa_backend_conf_t *conf);

    /* As dsa_backend_open(). */
    dsa_backend_t    *(*open)(dsa_backend_e kind,
                              const dsa_backend_conf_t *conf, dsa_err_t *err);

    /* Measures the backend of all hosts and prints.  DSA_ERROR with err. */
    int               (*lead)(dsa_bench_hosts_t *h, dsa_backend_t *b,
                              dsa_err_t *err);
} dsa_bench_command_t;


/*
 * Runs a command: reads its options, and leads or follows.  Returns the exit
 * status of the program.
 */
int dsa_bench_hosts(const dsa_bench_command_t *command, int argc, char **argv,
    const char *usage);

/* Seconds of a clock that only goes on. */
double dsa_bench_hosts_now(void);

/*
 * Returns the bytes that the fullest host sends to the others, or receives from
 * them if that is more: bytes[f * n + t] are from host f to host t.  With relay
 * 1 what followers send to each other passes through host 0, as
 * engine/hosts/exchange.c has it.
 */
uint64_t dsa_bench_hosts_fullest(const uint64_t *bytes, uint32_t n, int relay);

/*
 * Returns the bytes of a token for each GPU that gets it, and of its sum back,
 * with "backend cuda": FP8 with scales, the ids and weights of its experts;
 * BF16.
 */
static inline uint64_t
dsa_bench_token_bytes(const dsa_model_config_t *config)
{
    uint64_t  columns, k;

    columns = config->hidden_size;
    k = config->num_experts_per_tok;

    return columns + columns / 128 * sizeof(float)
           + k * (sizeof(int32_t) + sizeof(float));
}


static inline uint64_t
dsa_bench_sum_bytes(const dsa_model_config_t *config)
{
    return (uint64_t) config->hidden_size * 2;
}


#if (DSA_CUDA)

/*
 * hosts_comm_cuda.c: the GPUs of this host, connected with those of the others
 * by NCCL.  NULL with err.  Ranks have room for conf->max_tokens of all ranks.
 */
typedef struct dsa_bench_gpus_s  dsa_bench_gpus_t;

dsa_bench_gpus_t *dsa_bench_gpus_open(const dsa_backend_conf_t *conf,
    const dsa_model_config_t *config, dsa_err_t *err);
void dsa_bench_gpus_close(dsa_bench_gpus_t *gpus);      /* NULL is allowed */

/*
 * Exchanges so many tokens of each rank, or their sums, which all hosts do at
 * once, and waits for the GPUs.  DSA_ERROR with err.
 */
int dsa_bench_gpus_exchange(dsa_bench_gpus_t *gpus, uint32_t tokens, int sums,
    dsa_err_t *err);

#endif


#endif /* _DSA_BENCH_HOSTS_H_INCLUDED_ */
