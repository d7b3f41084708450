
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <ctype.h>
#include <stdio.h>

#include "engine/cuda/moves.h"


#define DSA_MOVES_BUS_ID    16          /* "0000:1b:00.0" */


static uint32_t dsa_cuda_moves_gpus(const dsa_cuda_moves_t *m,
    dsa_move_e way);
static int dsa_cuda_moves_out(dsa_cuda_moves_t *m, uint32_t rank,
    uint32_t index, cudaEvent_t copied, const dsa_page_move_t *move,
    uint32_t n);
static int dsa_cuda_moves_in(dsa_cuda_moves_t *m, uint32_t rank,
    uint32_t index, const dsa_page_move_t *move, uint32_t n);
static int dsa_cuda_moves_broadcast(dsa_cuda_moves_t *m, uint32_t gpu,
    uint32_t index, const dsa_page_move_t *move, uint32_t n);
static int dsa_cuda_moves_after_steps(dsa_cuda_moves_t *m, uint32_t gpu);
static int dsa_cuda_moves_query(const dsa_cuda_moves_t *m, dsa_move_e way,
    uint32_t rank, int wait);


static inline void *
dsa_cuda_moves_page(const dsa_cuda_rank_t *rank, uint32_t page)
{
    return (uint8_t *) rank->page + page * rank->cache.page;
}


int
dsa_cuda_moves_open(dsa_cuda_moves_t *m, uint32_t gpu, dsa_err_t *err)
{
    int                rc;
    uint32_t           way, i;
    dsa_cuda_rank_t   *rank;
    dsa_cuda_mover_t  *mover;

    rank = m->group->rank[gpu];
    mover = &m->gpu[gpu];

    rc = dsa_cuda_rank_attach(rank);
    rc = rc != 0 ? rc : (int) cudaEventCreateWithFlags(&mover->steps,
                                                   cudaEventDisableTiming);

    for (way = 0; rc == 0 && way < DSA_MOVES; way++) {
        rc = cudaStreamCreateWithFlags(&mover->stream[way],
                                       cudaStreamNonBlocking);

        for (i = 0; rc == 0 && i < DSA_MOVE_CALLS; i++) {
            rc = cudaEventCreateWithFlags(&mover->ended[way][i],
                                          cudaEventDisableTiming);
        }
    }

    if (rc != 0) {
        return dsa_error(err, "GPU %d: streams for pages in host memory: %s",
                         rank->device, dsa_cuda_error(rc));
    }

    return DSA_OK;
}


void
dsa_cuda_moves_close(dsa_cuda_moves_t *m, uint32_t gpu)
{
    uint32_t           way, i;
    dsa_cuda_mover_t  *mover;

    mover = &m->gpu[gpu];

    (void) dsa_cuda_rank_attach(m->group->rank[gpu]);

    for (way = 0; way < DSA_MOVES; way++) {
        if (mover->stream[way] != NULL) {
            (void) cudaStreamSynchronize(mover->stream[way]);
            (void) cudaStreamDestroy(mover->stream[way]);
        }

        for (i = 0; i < DSA_MOVE_CALLS; i++) {
            if (mover->ended[way][i] != NULL) {
                (void) cudaEventDestroy(mover->ended[way][i]);
            }
        }
    }

    if (mover->steps != NULL) {
        (void) cudaEventDestroy(mover->steps);
    }
}


int
dsa_cuda_moves_order(dsa_cuda_moves_t *m, dsa_move_e way, uint32_t rank,
    cudaEvent_t copied, const dsa_page_move_t *move, uint32_t n,
    dsa_err_t *err)
{
    int       rc;
    uint32_t  index;
    uint64_t  calls;

    /* the event of a call must not be recorded again before it has ended */

    if (dsa_cuda_moves_ended(m, way, rank, 0, &calls, err) != DSA_OK) {
        return DSA_ERROR;
    }

    assert(m->ordered[rank][way] - calls < DSA_MOVE_CALLS);

    index = m->ordered[rank][way] % DSA_MOVE_CALLS;

    rc = way == DSA_MOVE_OUT
         ? dsa_cuda_moves_out(m, rank, index, copied, move, n)
         : dsa_cuda_moves_in(m, rank, index, move, n);

    if (rc != 0) {
        return dsa_error(err, "GPU %d: moving %u pages %s host memory: %s",
                         m->group->rank[rank]->device, n,
                         way == DSA_MOVE_OUT ? "to" : "from",
                         dsa_cuda_error(rc));
    }

    m->ordered[rank][way]++;

    return DSA_OK;
}


/*
 * Enqueues moves to host memory.  The caller has waited for the steps that
 * wrote the pages, so only page copies from other ranks may still write to
 * them.  With "attention tensor" all GPUs have the same pages, and those of
 * the first GPU are copied.
 */

static int
dsa_cuda_moves_out(dsa_cuda_moves_t *m, uint32_t rank, uint32_t index,
    cudaEvent_t copied, const dsa_page_move_t *move, uint32_t n)
{
    int                rc;
    uint32_t           i;
    cudaStream_t       stream;
    dsa_cuda_rank_t   *from;
    dsa_cuda_mover_t  *mover;

    from = m->group->rank[rank];
    mover = &m->gpu[rank];
    stream = mover->stream[DSA_MOVE_OUT];

    rc = dsa_cuda_rank_attach(from);
    rc = rc != 0 ? rc : (int) cudaStreamWaitEvent(stream, copied, 0);

    for (i = 0; rc == 0 && i < n; i++) {
        rc = cudaMemcpyAsync(move[i].host,
                             dsa_cuda_moves_page(from, move[i].page),
                             from->cache.page, cudaMemcpyDeviceToHost,
                             stream);
    }

    return rc != 0 ? rc
                   : (int) cudaEventRecord(mover->ended[DSA_MOVE_OUT][index],
                                           stream);
}


/*
 * Enqueues moves from host memory.  With "attention tensor" the pages cross
 * the PCIe bus once, to the first GPU, and the other GPUs copy them from it.
 */

static int
dsa_cuda_moves_in(dsa_cuda_moves_t *m, uint32_t rank, uint32_t index,
    const dsa_page_move_t *move, uint32_t n)
{
    int                rc;
    uint32_t           i, gpus;
    cudaStream_t       stream;
    dsa_cuda_rank_t   *to;
    dsa_cuda_mover_t  *mover;

    to = m->group->rank[rank];
    mover = &m->gpu[rank];
    stream = mover->stream[DSA_MOVE_IN];
    gpus = dsa_cuda_moves_gpus(m, DSA_MOVE_IN);

    rc = dsa_cuda_moves_after_steps(m, rank);

    for (i = 0; rc == 0 && i < n; i++) {
        rc = cudaMemcpyAsync(dsa_cuda_moves_page(to, move[i].page),
                             move[i].host, to->cache.page,
                             cudaMemcpyHostToDevice, stream);
    }

    rc = rc != 0 ? rc : (int) cudaEventRecord(mover->ended[DSA_MOVE_IN][index],
                                              stream);

    for (i = 1; rc == 0 && i < gpus; i++) {
        rc = dsa_cuda_moves_broadcast(m, i, index, move, n);
    }

    return rc;
}


/* Copies pages from the first GPU, which has received them, to another one. */

static int
dsa_cuda_moves_broadcast(dsa_cuda_moves_t *m, uint32_t gpu, uint32_t index,
    const dsa_page_move_t *move, uint32_t n)
{
    int                rc;
    uint32_t           i;
    cudaStream_t       stream;
    dsa_cuda_rank_t   *from, *to;
    dsa_cuda_mover_t  *mover;

    from = m->group->rank[0];
    to = m->group->rank[gpu];
    mover = &m->gpu[gpu];
    stream = mover->stream[DSA_MOVE_IN];

    rc = dsa_cuda_moves_after_steps(m, gpu);
    rc = rc != 0 ? rc
                 : (int) cudaStreamWaitEvent(stream,
                                       m->gpu[0].ended[DSA_MOVE_IN][index], 0);

    for (i = 0; rc == 0 && i < n; i++) {
        rc = cudaMemcpyPeerAsync(dsa_cuda_moves_page(to, move[i].page),
                                 to->device,
                                 dsa_cuda_moves_page(from, move[i].page),
                                 from->device, to->cache.page, stream);
    }

    return rc != 0 ? rc
                   : (int) cudaEventRecord(mover->ended[DSA_MOVE_IN][index],
                                           stream);
}


/*
 * Makes the GPU the current device, and makes moves to it wait for all started
 * steps, which may still read the old contents of the pages.  Page copies to
 * this GPU are in the same stream as its steps, which also waits for page
 * copies from it.
 */

static int
dsa_cuda_moves_after_steps(dsa_cuda_moves_t *m, uint32_t gpu)
{
    int                rc;
    dsa_cuda_rank_t   *rank;
    dsa_cuda_mover_t  *mover;

    rank = m->group->rank[gpu];
    mover = &m->gpu[gpu];

    rc = dsa_cuda_rank_attach(rank);
    rc = rc != 0 ? rc : (int) cudaEventRecord(mover->steps, rank->stream);

    return rc != 0 ? rc
                   : (int) cudaStreamWaitEvent(mover->stream[DSA_MOVE_IN],
                                               mover->steps, 0);
}


/* Returns the number of GPUs that take part in a call. */

static uint32_t
dsa_cuda_moves_gpus(const dsa_cuda_moves_t *m, dsa_move_e way)
{
    return way == DSA_MOVE_IN && m->group->attention == DSA_ATTENTION_TENSOR
           ? m->group->ranks : 1;
}


int
dsa_cuda_moves_ended(dsa_cuda_moves_t *m, dsa_move_e way, uint32_t rank,
    int wait, uint64_t *calls, dsa_err_t *err)
{
    int        rc;
    uint64_t  *ended;

    ended = &m->ended[rank][way];

    while (*ended != m->ordered[rank][way]) {
        rc = dsa_cuda_moves_query(m, way, rank, wait);

        if (rc == (int) cudaErrorNotReady) {

            /*
             * Clear the error, so that the next kernel launch does not report
             * it.
             */

            (void) cudaGetLastError();
            break;
        }

        if (rc != 0) {
            return dsa_error(err, "GPU %d: pages %s host memory: %s",
                             m->group->rank[rank]->device,
                             way == DSA_MOVE_OUT ? "to" : "from",
                             dsa_cuda_error(rc));
        }

        (*ended)++;
        wait = 0;
    }

    *calls = *ended;

    return DSA_OK;
}


/*
 * Checks whether the oldest call in flight has ended on all GPUs.  Returns a
 * cudaError_t.
 */

static int
dsa_cuda_moves_query(const dsa_cuda_moves_t *m, dsa_move_e way, uint32_t rank,
    int wait)
{
    int          rc;
    uint32_t     i, gpus, index;
    cudaEvent_t  event;

    rc = 0;
    gpus = dsa_cuda_moves_gpus(m, way);
    index = m->ended[rank][way] % DSA_MOVE_CALLS;

    for (i = 0; rc == 0 && i < gpus; i++) {
        event = m->gpu[rank + i].ended[way][index];
        rc = wait ? (int) cudaEventSynchronize(event)
                  : (int) cudaEventQuery(event);
    }

    return rc;
}


int
dsa_cuda_moves_pin(const dsa_cuda_moves_t *m, void *memory, uint64_t bytes)
{
    int  rc;

    rc = dsa_cuda_rank_attach(m->group->rank[0]);

    return rc != 0 ? rc : (int) cudaHostRegister(memory, bytes,
                                                 cudaHostRegisterPortable);
}


void
dsa_cuda_moves_unpin(const dsa_cuda_moves_t *m, void *memory)
{
    (void) dsa_cuda_rank_attach(m->group->rank[0]);
    (void) cudaHostUnregister(memory);
}


int32_t
dsa_cuda_node(int device)
{
    int    n, node;
    char   id[DSA_MOVES_BUS_ID], path[64], *p;
    FILE  *f;

    if (cudaDeviceGetPCIBusId(id, sizeof(id), device) != cudaSuccess) {
        (void) cudaGetLastError();
        return -1;
    }

    /* the names in sysfs are in lower case */

    for (p = id; *p != '\0'; p++) {
        *p = (char) tolower((unsigned char) *p);
    }

    (void) snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node",
                    id);

    f = fopen(path, "re");

    if (f == NULL) {
        return -1;
    }

    n = fscanf(f, "%d", &node);
    (void) fclose(f);

    return n == 1 && node >= 0 ? node : -1;
}
