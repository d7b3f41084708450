
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/service/loop.h"
#include "engine/service/replica.h"


#define DSA_REPLICA_LINGER      1000    /* ms for workers to read the end */


typedef struct {
    dsa_service_t       service;
    dsa_listen_t        listen;
    dsa_loop_t          loop;
    dsa_source_t        signal;
    dsa_vitals_t       *vitals;
    int                 signals;
    uint64_t            drain_end;      /* ms; when draining */
    uint32_t            aborted;
} dsa_replica_t;


static int dsa_replica_signals(dsa_replica_t *r, dsa_err_t *err);
static int dsa_replica_open(dsa_replica_t *r, const dsa_conf_t *conf,
    dsa_err_t *err);
static int dsa_replica_events(dsa_replica_t *r, dsa_err_t *err);
static void dsa_replica_close(dsa_replica_t *r);
static int dsa_replica_loop(dsa_replica_t *r);
static int dsa_replica_over(dsa_replica_t *r);
static void dsa_replica_signal(void *data);
static void dsa_replica_tell(int fd, const char *text);


int
dsa_replica_run(const dsa_conf_t *conf, uint32_t number, int ready,
    dsa_vitals_t *vitals)
{
    int             rc;
    char            path[sizeof(((dsa_listen_t *) 0)->path)];
    dsa_err_t       err;
    dsa_replica_t   replica;

    memset(&replica, 0, sizeof(replica));

    replica.service.conf = conf;
    replica.service.replica = number;
    replica.vitals = vitals;
    replica.listen.fd = -1;
    replica.loop.epoll = -1;
    replica.signals = -1;

    rc = dsa_replica_signals(&replica, &err);

    if (rc == DSA_OK) {
        rc = dsa_replica_open(&replica, conf, &err);
    }

    if (rc == DSA_OK
        && dsa_conf_socket(conf, number, path, sizeof(path)) != DSA_OK)
    {
        rc = dsa_error(&err, "%s: the path is too long", conf->listen);
    }

    if (rc == DSA_OK) {
        rc = dsa_listen_open(&replica.listen, path, conf->socket_group, &err);
    }

    if (rc == DSA_OK) {
        rc = dsa_replica_events(&replica, &err);
    }

    if (rc != DSA_OK) {
        dsa_replica_tell(ready, err.text);
        (void) close(ready);
        dsa_replica_close(&replica);
        return 1;
    }

    dsa_log(DSA_LOG_NOTICE, "replica %u: model %s, %u pages of %d tokens, "
            "context %u, at %s", number, conf->name,
            replica.service.backend->pages, DSA_PAGE_TOKENS,
            dsa_sched_context(replica.service.sched), path);

    dsa_replica_tell(ready, DSA_REPLICA_READY);
    (void) close(ready);

    rc = dsa_replica_loop(&replica);

    dsa_replica_close(&replica);
    dsa_log(DSA_LOG_NOTICE, "replica %u: ends", number);

    return rc == DSA_OK ? 0 : 1;
}


/*
 * Before the model is opened: the threads of a library that computes inherit
 * the mask, and one without it would be ended by a signal, and all with it.
 */

static int
dsa_replica_signals(dsa_replica_t *r, dsa_err_t *err)
{
    sigset_t  set;

    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGTERM);
    (void) sigaddset(&set, SIGUSR1);

    /* a terminal sends these to all, and it is the supervisor who decides */

    (void) signal(SIGINT, SIG_IGN);
    (void) signal(SIGQUIT, SIG_IGN);

    r->signals = signalfd(-1, &set, SFD_CLOEXEC|SFD_NONBLOCK);

    if (r->signals == -1 || sigprocmask(SIG_BLOCK, &set, NULL) == -1) {
        return dsa_error(err, "cannot wait for signals: %s", strerror(errno));
    }

    return DSA_OK;
}


static int
dsa_replica_open(dsa_replica_t *r, const dsa_conf_t *conf, dsa_err_t *err)
{
    int                  n;
    char                 path[4096];
    uint32_t             size, vocab;
    dsa_service_t       *s;
    dsa_sched_conf_t     sched;
    dsa_backend_conf_t   backend;

    s = &r->service;

    n = snprintf(path, sizeof(path), "%s/tokenizer.json", conf->model);

    if (n < 0 || (size_t) n >= sizeof(path)) {
        return dsa_error(err, "%s: the path is too long", conf->model);
    }

    s->tokenizer = dsa_tokenizer_open(path, err);

    if (s->tokenizer == NULL) {
        return DSA_ERROR;
    }

    s->work = dsa_tokenizer_work_create(s->tokenizer);

    if (s->work == NULL) {
        return dsa_error(err, "out of memory");
    }

    if (dsa_generation_config_read(&s->generation, conf->model,
                                   err) != DSA_OK) {
        return DSA_ERROR;
    }

    size = dsa_tokenizer_size(s->tokenizer);

    memset(&backend, 0, sizeof(backend));

    backend.model = conf->model;
    backend.precision = conf->precision;
    backend.kv_memory = conf->kv_memory;
    backend.max_tokens = conf->token_budget;
    backend.max_seqs = conf->max_running;
    backend.allowed = size;
    backend.rate = conf->rate;
    backend.random = conf->random;
    backend.context = conf->context_length;
    backend.device = s->replica;

    s->backend = dsa_backend_open(conf->backend, &backend, err);

    if (s->backend == NULL) {
        return DSA_ERROR;
    }

    vocab = s->backend->config.vocab_size;

    if (size > vocab) {
        return dsa_error(err, "%s has ids up to %u, vocab_size in config.json "
                         "is %u", path, size - 1, vocab);
    }

    sched.max_running = conf->max_running;
    sched.token_budget = conf->token_budget;
    sched.max_waiting = conf->max_waiting;
    sched.max_waiting_per_tenant = conf->max_waiting_per_tenant;
    sched.context = s->backend->config.max_position_embeddings;

    if (conf->context_length != 0 && conf->context_length < sched.context) {
        sched.context = conf->context_length;
    }

    s->sched = dsa_sched_create(s->backend, &sched, &dsa_session_handler,
                                err);

    return s->sched != NULL ? DSA_OK : DSA_ERROR;
}


static int
dsa_replica_events(dsa_replica_t *r, dsa_err_t *err)
{
    struct rlimit  limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {

        /* three descriptors a session come near the usual soft limit */

        limit.rlim_cur = limit.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &limit);
    }

    if (dsa_loop_open(&r->loop, &r->service, &r->listen, err) != DSA_OK) {
        return DSA_ERROR;
    }

    r->signal.handler = dsa_replica_signal;
    r->signal.data = r;

    if (dsa_loop_watch(&r->loop, r->signals, &r->signal) != DSA_OK) {
        return dsa_error(err, "cannot wait for events: %s", strerror(errno));
    }

    return DSA_OK;
}


static void
dsa_replica_close(dsa_replica_t *r)
{
    dsa_loop_close(&r->loop);
    dsa_listen_close(&r->listen);

    if (r->signals != -1) {
        (void) close(r->signals);
    }

    dsa_sched_destroy(r->service.sched);

    if (r->service.backend != NULL) {
        r->service.backend->close(r->service.backend);
    }

    dsa_tokenizer_work_destroy(r->service.work);
    dsa_tokenizer_close(r->service.tokenizer);
}


static int
dsa_replica_loop(dsa_replica_t *r)
{
    do {
        atomic_store(&r->vitals->alive_ms, dsa_clock_ms());

        if (dsa_loop_turn(&r->loop, DSA_LOOP_IDLE) != DSA_OK) {
            return DSA_ERROR;
        }
    } while (!r->service.draining || !dsa_replica_over(r));

    return DSA_OK;
}


/* While draining: nothing is left to do, or no time to do it. */

static int
dsa_replica_over(dsa_replica_t *r)
{
    uint64_t  now;

    now = dsa_clock_ms();

    if (now >= r->drain_end && !r->aborted) {
        dsa_loop_abort(&r->loop);

        /* from now on, since the step before may have been a long one */

        r->aborted = 1;
        r->drain_end = now;

        return 0;
    }

    return dsa_loop_idle(&r->loop)
           || now >= r->drain_end + DSA_REPLICA_LINGER;
}


static void
dsa_replica_signal(void *data)
{
    dsa_replica_t            *r;
    struct signalfd_siginfo   info;

    r = data;

    if (read(r->signals, &info, sizeof(info)) != sizeof(info)) {
        return;
    }

    if (info.ssi_signo == SIGUSR1 && !r->aborted) {
        r->drain_end = 0;
    }

    if (r->service.draining) {
        return;
    }

    dsa_log(DSA_LOG_NOTICE, "replica %u: takes no new requests",
            r->service.replica);

    if (info.ssi_signo == SIGTERM) {
        r->drain_end = dsa_clock_ms() + r->service.conf->drain_timeout_ms;
    }

    dsa_loop_drain(&r->loop);
}


static void
dsa_replica_tell(int fd, const char *text)
{
    ssize_t  n;

    do {
        n = write(fd, text, strlen(text));
    } while (n == -1 && errno == EINTR);
}
