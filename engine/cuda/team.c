
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend.h"
#include "engine/cuda/team.h"


typedef struct {
    dsa_cuda_team_t    *team;
    uint32_t            rank;
    pthread_t           thread;
} dsa_team_member_t;


struct dsa_cuda_team_s {
    pthread_mutex_t     mutex;          /* of all below */
    pthread_cond_t      begun;          /* round or closing has changed */
    pthread_cond_t      done;           /* busy has become 0 */
    uint64_t            round;          /* calls of dsa_cuda_team_run() */
    uint32_t            busy;           /* members that have not finished */
    uint32_t            closing;
    int                 failed;         /* 1: err is set */
    dsa_err_t           err;
    dsa_cuda_work_pt    work;
    void               *data;
    uint32_t            ranks;
    uint32_t            threads;        /* those that were started */
    dsa_team_member_t   member[DSA_MAX_GPUS];
};


static void *dsa_team_thread(void *data);


dsa_cuda_team_t *
dsa_cuda_team_create(uint32_t ranks, dsa_err_t *err)
{
    int               rc;
    uint32_t          i;
    dsa_cuda_team_t  *team;

    assert(ranks >= 1 && ranks <= DSA_MAX_GPUS);

    team = calloc(1, sizeof(dsa_cuda_team_t));

    if (team == NULL) {
        (void) dsa_error(err, "no memory for the threads of %u GPUs", ranks);
        return NULL;
    }

    team->ranks = ranks;

    (void) pthread_mutex_init(&team->mutex, NULL);
    (void) pthread_cond_init(&team->begun, NULL);
    (void) pthread_cond_init(&team->done, NULL);

    for (i = 0; ranks > 1 && i < ranks; i++) {
        team->member[i].team = team;
        team->member[i].rank = i;

        rc = pthread_create(&team->member[i].thread, NULL, dsa_team_thread,
                            &team->member[i]);

        if (rc != 0) {
            (void) dsa_error(err, "the thread of GPU %u of %u cannot be "
                             "started: %s", i, ranks, strerror(rc));
            dsa_cuda_team_destroy(team);
            return NULL;
        }

        team->threads++;
    }

    return team;
}


void
dsa_cuda_team_destroy(dsa_cuda_team_t *team)
{
    uint32_t  i;

    if (team == NULL) {
        return;
    }

    (void) pthread_mutex_lock(&team->mutex);
    team->closing = 1;
    (void) pthread_cond_broadcast(&team->begun);
    (void) pthread_mutex_unlock(&team->mutex);

    for (i = 0; i < team->threads; i++) {
        (void) pthread_join(team->member[i].thread, NULL);
    }

    (void) pthread_cond_destroy(&team->done);
    (void) pthread_cond_destroy(&team->begun);
    (void) pthread_mutex_destroy(&team->mutex);

    free(team);
}


int
dsa_cuda_team_run(dsa_cuda_team_t *team, dsa_cuda_work_pt work, void *data,
    dsa_err_t *err)
{
    int  rc;

    if (team->ranks == 1) {
        return work(data, 0, err);
    }

    (void) pthread_mutex_lock(&team->mutex);

    team->work = work;
    team->data = data;
    team->failed = 0;
    team->busy = team->ranks;
    team->round++;

    (void) pthread_cond_broadcast(&team->begun);

    while (team->busy != 0) {
        (void) pthread_cond_wait(&team->done, &team->mutex);
    }

    rc = team->failed ? DSA_ERROR : DSA_OK;

    if (rc != DSA_OK) {
        *err = team->err;
    }

    (void) pthread_mutex_unlock(&team->mutex);

    return rc;
}


static void *
dsa_team_thread(void *data)
{
    int                 rc;
    void               *arg;
    uint64_t            round;
    dsa_err_t           err;
    dsa_cuda_team_t    *team;
    dsa_cuda_work_pt    work;
    dsa_team_member_t  *m;

    m = data;
    team = m->team;
    round = 0;

    (void) pthread_mutex_lock(&team->mutex);

    for ( ;; ) {
        while (team->round == round && !team->closing) {
            (void) pthread_cond_wait(&team->begun, &team->mutex);
        }

        if (team->closing) {
            break;
        }

        round = team->round;
        work = team->work;
        arg = team->data;

        (void) pthread_mutex_unlock(&team->mutex);
        rc = work(arg, m->rank, &err);
        (void) pthread_mutex_lock(&team->mutex);

        if (rc != DSA_OK && !team->failed) {
            team->failed = 1;
            team->err = err;
        }

        if (--team->busy == 0) {
            (void) pthread_cond_signal(&team->done);
        }
    }

    (void) pthread_mutex_unlock(&team->mutex);

    return NULL;
}
