
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "engine/cuda/nccl.h"


#if (DSA_NCCL)

#include <nccl.h>


/* X(name): the functions of the library that are called */

#define DSA_NCCL_FUNCTIONS(X)                                                 \
    X(ncclCommAbort)                                                          \
    X(ncclCommGetAsyncError)                                                  \
    X(ncclCommInitRank)                                                       \
    X(ncclGetErrorString)                                                     \
    X(ncclGetLastError)                                                       \
    X(ncclGetUniqueId)                                                        \
    X(ncclGetVersion)                                                         \
    X(ncclGroupEnd)                                                           \
    X(ncclGroupStart)                                                         \
    X(ncclRecv)                                                               \
    X(ncclSend)

#define DSA_NCCL_FIELD(name)  __typeof__(&name) name;

#define DSA_NCCL_FIND(field)                                                  \
    nccl.field = (__typeof__(&field)) dlsym(library, #field);                 \
    missing = nccl.field == NULL ? #field : missing;


/* The library, which a process loads once. */

static struct {
    DSA_NCCL_FUNCTIONS(DSA_NCCL_FIELD)
} nccl;

static pthread_mutex_t  dsa_nccl_mutex = PTHREAD_MUTEX_INITIALIZER;
static int              dsa_nccl_loaded;


static int dsa_nccl_find(dsa_err_t *err);
static int dsa_nccl_id(ncclUniqueId *id, const dsa_backend_hosts_t *hosts,
    dsa_err_t *err);
static int dsa_nccl_first(dsa_cuda_rank_t *const *rank, uint32_t n,
    dsa_err_t *err);
static int dsa_nccl_failed(const char *what, ncclResult_t rc, dsa_err_t *err);
static int dsa_nccl_end(ncclResult_t rc);
static ncclResult_t dsa_nccl_swap(dsa_cuda_rank_t *rank, uint32_t q,
    const void *out, void *in, size_t bytes);


int
dsa_cuda_nccl_load(dsa_err_t *err)
{
    int  rc;

    (void) pthread_mutex_lock(&dsa_nccl_mutex);
    rc = dsa_nccl_loaded ? DSA_OK : dsa_nccl_find(err);
    dsa_nccl_loaded = rc == DSA_OK;
    (void) pthread_mutex_unlock(&dsa_nccl_mutex);

    return rc;
}


static int
dsa_nccl_find(dsa_err_t *err)
{
    int          version;
    void        *library;
    const char  *missing;

    library = dlopen("libnccl.so.2", RTLD_NOW);

    if (library == NULL) {
        return dsa_error(err, "GPUs of several hosts, or without NVLink, "
                         "need NCCL: %s; expected libnccl.so.2, which the "
                         "package libnccl2 has",
                         dlerror());
    }

    missing = NULL;
    DSA_NCCL_FUNCTIONS(DSA_NCCL_FIND)

    if (missing != NULL) {
        return dsa_error(err, "libnccl.so.2 lacks %s(); expected a newer "
                         "version", missing);
    }

    version = 0;
    (void) nccl.ncclGetVersion(&version);

    dsa_log(DSA_LOG_NOTICE, "NCCL %d.%d.%d", version / 10000,
            version / 100 % 100, version % 100);

    return DSA_OK;
}


int
dsa_cuda_nccl_connect(dsa_cuda_rank_t *const *rank, uint32_t n,
    const dsa_backend_hosts_t *hosts, dsa_err_t *err)
{
    uint32_t      i;
    ncclComm_t    comm[DSA_MAX_GPUS];
    ncclResult_t  rc, ended;
    ncclUniqueId  id;

    if (dsa_cuda_nccl_load(err) != DSA_OK
        || dsa_nccl_id(&id, hosts, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    memset(comm, 0, sizeof(comm));
    rc = nccl.ncclGroupStart();

    for (i = 0; i < n && rc == ncclSuccess; i++) {
        (void) dsa_cuda_rank_attach(rank[i]);
        rc = nccl.ncclCommInitRank(&comm[i], (int) rank[i]->shard.ranks, id,
                                   (int) rank[i]->shard.rank);
    }

    ended = nccl.ncclGroupEnd();
    rc = rc != ncclSuccess ? rc : ended;

    for (i = 0; i < n; i++) {
        rank[i]->net.comm = comm[i];
    }

    if (dsa_nccl_failed("the communicator of all ranks", rc, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_nccl_first(rank, n, err);
}


/* Sends the id of the leader to all other hosts. */

static int
dsa_nccl_id(ncclUniqueId *id, const dsa_backend_hosts_t *hosts, dsa_err_t *err)
{
    void         *in[DSA_MAX_GPUS];
    uint32_t      h;
    uint64_t      bytes[DSA_MAX_GPUS * DSA_MAX_GPUS];
    const void   *out[DSA_MAX_GPUS];

    memset(bytes, 0, sizeof(bytes));
    memset(in, 0, sizeof(in));

    for (h = 0; h < hosts->n; h++) {
        out[h] = id;
        bytes[h] = h != 0 ? sizeof(ncclUniqueId) : 0;
    }

    in[0] = id;

    if (hosts->host == 0
        && dsa_nccl_failed("an id", nccl.ncclGetUniqueId(id), err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return hosts->n > 1
           ? hosts->exchange(hosts->data, out, in, bytes, err) : DSA_OK;
}


static int
dsa_nccl_first(dsa_cuda_rank_t *const *rank, uint32_t n, dsa_err_t *err)
{
    int           rc;
    uint32_t      i, q;
    ncclResult_t  result, ended;
    uint8_t      *memory[DSA_MAX_GPUS];

    memset(memory, 0, sizeof(memory));
    rc = 0;

    for (i = 0; i < n && rc == 0; i++) {
        rc = dsa_cuda_rank_attach(rank[i]);
        rc = rc != 0 ? rc : (int) cudaMalloc((void **) &memory[i],
                                             2 * DSA_MAX_GPUS * 16);
    }

    if (rc != 0) {
        return dsa_error(err, "memory for a first exchange: %s",
                         dsa_cuda_error(rc));
    }

    result = nccl.ncclGroupStart();

    for (i = 0; i < n; i++) {
        for (q = 0; q < rank[i]->shard.ranks && result == ncclSuccess; q++) {
            result = dsa_nccl_swap(rank[i], q, memory[i] + 16 * q,
                                   memory[i] + 16 * (DSA_MAX_GPUS + q), 16);
        }
    }

    ended = nccl.ncclGroupEnd();
    result = result != ncclSuccess ? result : ended;

    for (i = 0; i < n; i++) {
        (void) dsa_cuda_rank_attach(rank[i]);

        if (result == ncclSuccess && rc == 0) {
            rc = cudaStreamSynchronize(rank[i]->stream);
        }

        (void) cudaFree(memory[i]);
    }

    if (rc != 0) {
        return dsa_error(err, "a first exchange of all ranks: %s",
                         dsa_cuda_error(rc));
    }

    return dsa_nccl_failed("a first exchange of all ranks", result, err);
}


void
dsa_cuda_nccl_close(dsa_cuda_rank_t *rank)
{
    if (rank->net.comm != NULL) {

        /* the other hosts may have ended already, so no one waits for them */

        (void) nccl.ncclCommAbort(rank->net.comm);
        rank->net.comm = NULL;
    }
}


int
dsa_cuda_nccl_check(const dsa_cuda_rank_t *rank, dsa_err_t *err)
{
    ncclResult_t  rc, fault;

    fault = ncclSuccess;
    rc = nccl.ncclCommGetAsyncError(rank->net.comm, &fault);

    return dsa_nccl_failed("the exchange with the other ranks",
                           rc != ncclSuccess ? rc : fault, err);
}


static int
dsa_nccl_failed(const char *what, ncclResult_t rc, dsa_err_t *err)
{
    if (rc == ncclSuccess || rc == ncclInProgress) {
        return DSA_OK;
    }

    return dsa_error(err, "NCCL: %s: %s: %.200s", what,
                     nccl.ncclGetErrorString(rc), nccl.ncclGetLastError(NULL));
}


/* Ends a group; returns 0, or a cudaError_t after the reason was logged. */

static int
dsa_nccl_end(ncclResult_t rc)
{
    dsa_err_t     err;
    ncclResult_t  ended;

    ended = nccl.ncclGroupEnd();

    if (dsa_nccl_failed("an exchange", rc != ncclSuccess ? rc : ended, &err)
        == DSA_OK)
    {
        return 0;
    }

    dsa_log(DSA_LOG_ERR, "%s", err.text);

    return cudaErrorUnknown;
}


/* Sends bytes to rank q and receives as many from it. */

static ncclResult_t
dsa_nccl_swap(dsa_cuda_rank_t *rank, uint32_t q, const void *out, void *in,
    size_t bytes)
{
    ncclResult_t  rc;

    rc = nccl.ncclSend(out, bytes, ncclUint8, (int) q, rank->net.comm,
                       rank->stream);

    return rc != ncclSuccess ? rc
           : nccl.ncclRecv(in, bytes, ncclUint8, (int) q, rank->net.comm,
                           rank->stream);
}


int
dsa_cuda_nccl_tokens(dsa_cuda_rank_t *rank, uint32_t slot, uint32_t bytes)
{
    size_t              k, rows, groups, scales;
    uint32_t            q;
    ncclResult_t        rc;
    dsa_cuda_net_t     *net;
    dsa_cuda_shared_t  *s;

    net = &rank->net;
    s = &rank->shared;
    k = (size_t) slot * rank->router.k;
    rows = (size_t) slot * bytes;
    groups = s->x.scale != NULL ? bytes / 128 : 0;
    scales = groups * dsa_cuda_ld(slot);

    rc = nccl.ncclGroupStart();

    for (q = 0; q < rank->shard.ranks && rc == ncclSuccess; q++) {
        rc = dsa_nccl_swap(rank, q, net->x.q, s->x.q + q * rows, rows);
        rc = rc != ncclSuccess ? rc
             : dsa_nccl_swap(rank, q, rank->peers.tokens.expert[q],
                             s->expert + q * k, k * sizeof(int32_t));
        rc = rc != ncclSuccess ? rc
             : dsa_nccl_swap(rank, q, rank->peers.tokens.weight[q],
                             s->weight + q * k, k * sizeof(float));

        if (rc == ncclSuccess && scales != 0) {
            rc = dsa_nccl_swap(rank, q, net->x.scale, net->scale + q * scales,
                               scales * sizeof(float));
        }
    }

    dsa_cuda_try(dsa_nccl_end(rc));

    for (q = 0; q < rank->shard.ranks && scales != 0; q++) {
        dsa_cuda_try((int) cudaMemcpy2DAsync(s->x.scale + (size_t) q * slot,
                                             s->x.ld * sizeof(float),
                                             net->scale + q * scales,
                                             dsa_cuda_ld(slot) * sizeof(float),
                                             slot * sizeof(float), groups,
                                             cudaMemcpyDeviceToDevice,
                                             rank->stream));
    }

    return 0;
}


int
dsa_cuda_nccl_sums(dsa_cuda_rank_t *rank, uint32_t slot)
{
    size_t        n;
    uint32_t      q;
    ncclResult_t  rc;

    n = (size_t) slot * rank->config.hidden_size;
    rc = nccl.ncclGroupStart();

    for (q = 0; q < rank->shard.ranks && rc == ncclSuccess; q++) {
        rc = dsa_nccl_swap(rank, q, rank->net.part + q * n,
                           rank->shared.part + q * n, n * sizeof(dsa_bf16_t));
    }

    return dsa_nccl_end(rc);
}


int
dsa_cuda_nccl_copy(dsa_cuda_rank_t *const *rank, uint32_t n, uint32_t first,
    const dsa_page_copy_t *copy, uint32_t copies)
{
    uint32_t                i;
    uint64_t                bytes;
    ncclResult_t            rc;
    dsa_cuda_rank_t        *r;
    const dsa_page_copy_t  *c;

    bytes = rank[0]->cache.page;
    rc = nccl.ncclGroupStart();

    for (i = 0; i < copies && rc == ncclSuccess; i++) {
        c = &copy[i];

        if (c->from_rank - first < n) {
            r = rank[c->from_rank - first];
            rc = nccl.ncclSend((uint8_t *) r->page + c->from_page * bytes,
                               bytes, ncclUint8, (int) c->to_rank,
                               r->net.comm, r->stream);
        }

        if (rc == ncclSuccess && c->to_rank - first < n) {
            r = rank[c->to_rank - first];
            rc = nccl.ncclRecv((uint8_t *) r->page + c->to_page * bytes,
                               bytes, ncclUint8, (int) c->from_rank,
                               r->net.comm, r->stream);
        }
    }

    return dsa_nccl_end(rc);
}


#else


static int
dsa_nccl_none(dsa_err_t *err)
{
    return dsa_error(err, "GPUs of several hosts, or without NVLink, need "
                     "NCCL, and this program was built without nccl.h");
}


int
dsa_cuda_nccl_load(dsa_err_t *err)
{
    return dsa_nccl_none(err);
}


int
dsa_cuda_nccl_connect(dsa_cuda_rank_t *const *rank, uint32_t n,
    const dsa_backend_hosts_t *hosts, dsa_err_t *err)
{
    return dsa_nccl_none(err);
}


void
dsa_cuda_nccl_close(dsa_cuda_rank_t *rank)
{
}


int
dsa_cuda_nccl_check(const dsa_cuda_rank_t *rank, dsa_err_t *err)
{
    return dsa_nccl_none(err);
}


int
dsa_cuda_nccl_tokens(dsa_cuda_rank_t *rank, uint32_t slot, uint32_t bytes)
{
    return cudaErrorNotSupported;
}


int
dsa_cuda_nccl_sums(dsa_cuda_rank_t *rank, uint32_t slot)
{
    return cudaErrorNotSupported;
}


int
dsa_cuda_nccl_copy(dsa_cuda_rank_t *const *rank, uint32_t n, uint32_t first,
    const dsa_page_copy_t *copy, uint32_t copies)
{
    return cudaErrorNotSupported;
}

#endif


/*
 * A kernel stores the rows of rank x->rank, which is 0 here, so that the
 * buffers begin with the rows of this rank.  The flags that it raises are those
 * of state[0], which no kernel reads; those of state[1] are never raised, so
 * that a wait for them ends at once.
 */

void
dsa_cuda_nccl_prepare(dsa_cuda_rank_t *rank)
{
    uint32_t              q;
    dsa_cuda_peers_t     *p;
    dsa_cuda_exchange_t  *x;

    p = &rank->peers;
    x = &p->exchange;

    memset(p, 0, sizeof(dsa_cuda_peers_t));

    x->rank = 0;
    x->ranks = rank->shard.ranks;
    x->processors = rank->state.processors;
    x->exclusive = 1;
    x->timeout_ns = 1000000000;
    x->fault = rank->fault;

    for (q = 0; q < rank->shard.ranks; q++) {
        x->state[q] = rank->shared.state;
    }

    rank->net.sum = *x;

    for (q = 0; q < rank->shard.ranks; q++) {
        rank->net.sum.state[q] = rank->shared.state + 1;
    }

    rank->net.ready = 1;
}


void
dsa_cuda_nccl_begin(dsa_cuda_rank_t *rank, uint32_t slot)
{
    size_t                  q, k, rows;
    dsa_cuda_net_t         *net;
    dsa_exchange_tokens_t  *to;

    net = &rank->net;
    to = &rank->peers.tokens;
    k = (size_t) rank->max_rows * rank->router.k;
    rows = (size_t) slot * rank->config.hidden_size;

    net->x.ld = dsa_cuda_ld(slot);

    for (q = 0; q < rank->shard.ranks; q++) {
        to->x[q] = net->x;
        to->expert[q] = net->expert + q * k;
        to->weight[q] = net->weight + q * k;
        rank->peers.part[q] = net->part + q * rows;
    }
}
