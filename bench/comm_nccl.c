
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <dlfcn.h>
#include <stdio.h>

#if (DSA_NCCL)
#include <nccl.h>
#endif

#include "bench/comm.h"


/*
 * NCCL's collectives of the same sizes, for comparison: with buffers of
 * cudaMalloc() ("plain"), and with buffers of ncclMemAlloc() that are
 * registered as symmetric windows.  The library is loaded when it is measured,
 * so that dsa also starts on machines without it.
 */

#if (DSA_NCCL)

/* X(name): the functions of the library that are called */

#define DSA_COMM_NCCL(X)                                                      \
    X(ncclAllGather)                                                          \
    X(ncclAllReduce)                                                          \
    X(ncclCommInitAll)                                                        \
    X(ncclCommWindowRegister)                                                 \
    X(ncclGetErrorString)                                                     \
    X(ncclGetVersion)                                                         \
    X(ncclGroupEnd)                                                           \
    X(ncclGroupStart)                                                         \
    X(ncclMemAlloc)                                                           \
    X(ncclRecv)                                                               \
    X(ncclReduceScatter)                                                      \
    X(ncclSend)

#define DSA_COMM_FIELD(name)  __typeof__(&name) name;

#define DSA_COMM_FIND(field)                                                  \
    nccl.field = (__typeof__(&field)) dlsym(library, #field);                 \
    missing = nccl.field == NULL ? #field : missing;


typedef struct {
    DSA_COMM_NCCL(DSA_COMM_FIELD)

    ncclComm_t      comm[DSA_EXCHANGE_RANKS];
    void           *from[2][DSA_EXCHANGE_RANKS];        /* [symmetric] */
    void           *to[2][DSA_EXCHANGE_RANKS];
} dsa_comm_nccl_t;


typedef struct {
    int             symmetric;
    size_t          size;               /* bytes of a rank */
    dsa_comm_e      op;
} dsa_comm_nccl_call_t;


static dsa_comm_nccl_t  nccl;


static int
dsa_comm_nccl_failed(const char *what, ncclResult_t rc)
{
    if (rc != ncclSuccess) {
        (void) fprintf(stderr, "dsa bench: %s: %s\n", what,
                       nccl.ncclGetErrorString(rc));
    }

    return rc != ncclSuccess;
}


static ncclResult_t
dsa_comm_nccl_register(dsa_comm_t *c, void **p, size_t size)
{
    uint32_t      r;
    ncclResult_t  rc;
    ncclWindow_t  window;

    rc = ncclSuccess;

    for (r = 0; r < c->ranks && rc == ncclSuccess; r++) {
        (void) cudaSetDevice((int) r);
        rc = nccl.ncclMemAlloc(&p[r], size);
    }

    if (rc != ncclSuccess) {
        return rc;
    }

    rc = nccl.ncclGroupStart();

    for (r = 0; r < c->ranks && rc == ncclSuccess; r++) {
        (void) cudaSetDevice((int) r);
        rc = nccl.ncclCommWindowRegister(nccl.comm[r], p[r], size, &window,
                                         NCCL_WIN_COLL_SYMMETRIC);
    }

    return rc != ncclSuccess ? rc : nccl.ncclGroupEnd();
}


static int
dsa_comm_nccl_load(void)
{
    int          version;
    void        *library;
    const char  *missing;

    library = dlopen("libnccl.so.2", RTLD_NOW);

    if (library == NULL) {
        (void) printf("NCCL is not measured: %s.\n\n", dlerror());
        return 1;
    }

    missing = NULL;
    DSA_COMM_NCCL(DSA_COMM_FIND)

    if (missing != NULL) {
        (void) printf("NCCL is not measured: libnccl.so.2 lacks %s().\n\n",
                      missing);
        return 1;
    }

    version = 0;
    (void) nccl.ncclGetVersion(&version);
    (void) printf("NCCL %d.%d.%d.\n\n", version / 10000, version / 100 % 100,
                  version % 100);

    return 0;
}


int
dsa_comm_nccl_open(dsa_comm_t *c, size_t size)
{
    int           rc, device[DSA_EXCHANGE_RANKS];
    uint32_t      r;
    ncclResult_t  result;

    if (dsa_comm_nccl_load() != 0) {
        return 1;
    }

    rc = 0;

    for (r = 0; r < c->ranks; r++) {
        device[r] = (int) r;
    }

    result = nccl.ncclCommInitAll(nccl.comm, (int) c->ranks, device);
    if (dsa_comm_nccl_failed("ncclCommInitAll", result)) {
        return 1;
    }

    for (r = 0; r < c->ranks && rc == 0; r++) {
        rc = cudaSetDevice((int) r);
        rc = rc != 0 ? rc : (int) cudaMalloc(&nccl.from[0][r], size);
        rc = rc != 0 ? rc : (int) cudaMalloc(&nccl.to[0][r],
                                             c->ranks * size);
    }

    if (dsa_comm_failed("cudaMalloc", rc) != 0) {
        return 1;
    }

    result = dsa_comm_nccl_register(c, nccl.from[1], c->ranks * size);

    if (result == ncclSuccess) {
        result = dsa_comm_nccl_register(c, nccl.to[1], c->ranks * size);
    }

    return dsa_comm_nccl_failed("ncclCommWindowRegister", result);
}


static ncclResult_t
dsa_comm_nccl_swap(dsa_comm_t *c, const dsa_comm_nccl_call_t *call, uint32_t r,
    const void *from, char *to)
{
    uint32_t      q;
    ncclResult_t  rc;

    rc = ncclSuccess;

    for (q = 0; q < c->ranks && rc == ncclSuccess; q++) {
        rc = nccl.ncclSend(from, call->size, ncclUint8, (int) q, nccl.comm[r],
                           c->stream[r]);
        rc = rc != ncclSuccess ? rc
             : nccl.ncclRecv(to + q * call->size, call->size, ncclUint8,
                             (int) q, nccl.comm[r], c->stream[r]);
    }

    return rc;
}


static ncclResult_t
dsa_comm_nccl_rank(dsa_comm_t *c, const dsa_comm_nccl_call_t *call,
    uint32_t r)
{
    void  *from, *to;

    from = nccl.from[call->symmetric][r];
    to = nccl.to[call->symmetric][r];

    switch (call->op) {

    case DSA_COMM_GATHER:
        return nccl.ncclAllGather(from, to, call->size, ncclUint8,
                                  nccl.comm[r], c->stream[r]);

    case DSA_COMM_SUMS:
        return nccl.ncclReduceScatter(to, from, call->size / 2, ncclBfloat16,
                                      ncclSum, nccl.comm[r], c->stream[r]);

    case DSA_COMM_SWAP:
        return dsa_comm_nccl_swap(c, call, r, from, to);

    default:
        return nccl.ncclAllReduce(from, to, call->size / 2, ncclBfloat16,
                                  ncclSum, nccl.comm[r], c->stream[r]);
    }
}


static int
dsa_comm_nccl_enqueue(dsa_comm_t *c, void *data)
{
    uint32_t      r;
    ncclResult_t  rc, ended;

    rc = nccl.ncclGroupStart();

    for (r = 0; r < c->ranks && rc == ncclSuccess; r++) {
        (void) cudaSetDevice((int) r);
        rc = dsa_comm_nccl_rank(c, data, r);
    }

    ended = nccl.ncclGroupEnd();

    return dsa_comm_nccl_failed("a collective",
                                rc != ncclSuccess ? rc : ended)
           ? cudaErrorUnknown : cudaSuccess;
}


double
dsa_comm_nccl_time(dsa_comm_t *c, dsa_comm_e op, size_t size, int symmetric)
{
    dsa_comm_nccl_call_t  call;

    call.symmetric = symmetric;
    call.size = size;
    call.op = op;

    return dsa_comm_time(c, dsa_comm_nccl_enqueue, &call);
}

#else

int
dsa_comm_nccl_open(dsa_comm_t *c, size_t size)
{
    (void) printf("NCCL is not measured: this program was built without "
                  "nccl.h.\n\n");

    return 1;
}


double
dsa_comm_nccl_time(dsa_comm_t *c, dsa_comm_e op, size_t size, int symmetric)
{
    return -1;
}

#endif
