
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/checkpoint/prompts.h"
#include "engine/hosts/leader.h"
#include "engine/service/check.h"
#include "engine/service/io.h"
#include "engine/service/replica.h"
#include "engine/service/rollout.h"
#include "engine/service/tiers.h"


#define DSA_REPLICA_LAST_MS     1000    /* for workers to read the last
                                           records */


typedef struct {
    dsa_service_t       service;
    dsa_listen_t        listen;
    dsa_pool_t         *pool;
    dsa_step_t         *step;
    dsa_journal_t      *journal;        /* NULL: none */
    dsa_host_t          host;           /* memory of the backend's pages */
    dsa_hosts_leader_t  leader;         /* with several hosts */
    int                 ready;          /* pipe; -1 after its message */
    dsa_io_t            io;
    dsa_source_t        signal;
    dsa_vitals_t       *vitals;
    int                 signals;
    int                 wake;           /* eventfd of the I/O thread */
    uint64_t            drain_end_ms;   /* when draining */
    uint32_t            aborted;
} dsa_replica_t;


static void dsa_replica_started(const dsa_replica_t *r);
static int dsa_replica_signals(dsa_replica_t *r, dsa_err_t *err);
static int dsa_replica_open(dsa_replica_t *r, dsa_err_t *err);
static int dsa_replica_model(dsa_replica_t *r, dsa_err_t *err);
static int dsa_replica_threads(dsa_replica_t *r, dsa_err_t *err);
static int dsa_replica_backend(void *data, dsa_step_t *st, dsa_err_t *err);
static dsa_backend_t *dsa_replica_lead(dsa_replica_t *r,
    const dsa_backend_conf_t *backend, dsa_err_t *err);
static void dsa_replica_nudge(void *data);
static void dsa_replica_fault(void *data, const char *text);
static int dsa_replica_listen(dsa_replica_t *r, dsa_err_t *err);
static void dsa_replica_close(dsa_replica_t *r);
static void dsa_replica_abandon(dsa_replica_t *r)
    __attribute__((noreturn));
static int dsa_replica_loop(dsa_replica_t *r);
static int dsa_replica_over(dsa_replica_t *r);
static void dsa_replica_signal(void *data);
static void dsa_replica_report(int fd, const char *text);


int
dsa_replica_run(const dsa_conf_t *conf, uint32_t number, int ready,
    dsa_vitals_t *vitals)
{
    dsa_err_t       err;
    dsa_replica_t   r;

    memset(&r, 0, sizeof(r));

    r.service.conf = conf;
    r.service.replica = number;
    r.vitals = vitals;
    r.ready = ready;
    r.listen.fd = -1;
    r.io.poller.epoll = -1;
    r.signals = -1;
    r.wake = -1;

    if (dsa_replica_open(&r, &err) != DSA_OK) {
        dsa_replica_report(ready, err.text);
        (void) close(ready);
        dsa_replica_close(&r);
        return 1;
    }

    dsa_replica_started(&r);

    atomic_store(&vitals->alive_ms, dsa_clock_ms());
    r.ready = -1;
    dsa_replica_report(ready, DSA_REPLICA_READY);
    (void) close(ready);

    if (dsa_replica_loop(&r) != DSA_OK) {
        dsa_replica_abandon(&r);
    }

    dsa_replica_close(&r);
    dsa_log(DSA_LOG_NOTICE, "replica %u: ends", number);

    return 0;
}


static void
dsa_replica_started(const dsa_replica_t *r)
{
    char      on[64];
    uint32_t  ranks;

    on[0] = '\0';
    ranks = dsa_step_ranks(r->step);

    if (ranks > 1) {
        (void) snprintf(on, sizeof(on), " on each of %u ranks", ranks);
    }

    dsa_log(DSA_LOG_NOTICE, "replica %u: model %s, %u pages of %d tokens%s, "
            "context %u, at %s", r->service.replica, r->service.conf->name,
            dsa_step_pages(r->step), DSA_PAGE_TOKENS, on, r->service.context,
            r->listen.path);
}


static int
dsa_replica_open(dsa_replica_t *r, dsa_err_t *err)
{
    const dsa_conf_t  *conf;

    conf = r->service.conf;

    if (getrandom(&r->service.epoch, sizeof(uint32_t), 0) != sizeof(uint32_t)) {
        return dsa_error(err, "getrandom() failed: %s", strerror(errno));
    }

    if (conf->journal != NULL) {
        r->journal = dsa_journal_open(conf->journal, r->service.replica, err);
        r->service.journal = r->journal;

        if (r->journal == NULL) {
            return DSA_ERROR;
        }
    }

    if (dsa_replica_signals(r, err) != DSA_OK
        || dsa_replica_model(r, err) != DSA_OK
        || dsa_replica_threads(r, err) != DSA_OK
        || dsa_replica_listen(r, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (dsa_io_open(&r->io, &r->service, r->pool, r->step, &r->listen,
                    r->vitals, r->wake, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    r->signal.handler = dsa_replica_signal;
    r->signal.data = r;

    if (dsa_poller_add(&r->io.poller, r->signals, EPOLLIN, &r->signal)
        != DSA_OK)
    {
        return dsa_error(err, "cannot wait for signals: %s", strerror(errno));
    }

    return DSA_OK;
}


/*
 * Blocks signals and opens a signalfd.  Call it before any thread starts:
 * threads inherit the mask, and a signal that one of them does not block would
 * end the process.
 */

static int
dsa_replica_signals(dsa_replica_t *r, dsa_err_t *err)
{
    sigset_t  set;

    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGTERM);
    (void) sigaddset(&set, SIGUSR1);
    (void) sigaddset(&set, SIGHUP);

    /*
     * a terminal sends these to all processes; only the supervisor handles
     * them
     */

    (void) signal(SIGINT, SIG_IGN);
    (void) signal(SIGQUIT, SIG_IGN);

    r->signals = signalfd(-1, &set, SFD_CLOEXEC|SFD_NONBLOCK);

    if (r->signals == -1 || sigprocmask(SIG_BLOCK, &set, NULL) == -1) {
        return dsa_error(err, "cannot wait for signals: %s", strerror(errno));
    }

    return DSA_OK;
}


/* Opens the parts of the model that the service itself needs. */

static int
dsa_replica_model(dsa_replica_t *r, dsa_err_t *err)
{
    int             n;
    char            path[4096];
    dsa_service_t  *s;

    s = &r->service;
    n = snprintf(path, sizeof(path), "%s/tokenizer.json", s->conf->model);

    if (n < 0 || (size_t) n >= sizeof(path)) {
        return dsa_error(err, "%s: the path is too long", s->conf->model);
    }

    s->tokenizer = dsa_tokenizer_open(path, err);

    if (s->tokenizer == NULL) {
        return DSA_ERROR;
    }

    return dsa_generation_config_read(&s->generation, s->conf->model, err);
}


static int
dsa_replica_threads(dsa_replica_t *r, dsa_err_t *err)
{
    dsa_service_t  *s;

    s = &r->service;
    r->wake = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

    if (r->wake == -1) {
        return dsa_error(err, "eventfd(): %s", strerror(errno));
    }

    if (r->journal != NULL
        && dsa_journal_start(r->journal, r->wake, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    r->step = dsa_step_create(r->wake, r->vitals, err);

    if (r->step == NULL
        || dsa_step_start(r->step, dsa_replica_backend, r, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    s->context = dsa_step_context(r->step);
    dsa_link_size(&s->link, dsa_conf_running(s->conf), s->conf->max_waiting,
                  s->context);
    s->ids = dsa_step_config(r->step)->vocab_size;
    s->prompt = dsa_step_config(r->step)->prompt;

    if (dsa_prompts_resolve(&s->prompt, s->conf->model, s->conf->prompt_format,
                            err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    s->page_bytes = dsa_step_page_bytes(r->step);
    s->rollouts = dsa_step_rollouts(r->step)
                  && dsa_rollout_fits(dsa_step_config(r->step));

    (void) snprintf(s->fingerprint, sizeof(s->fingerprint), "%s",
                    dsa_step_identity(r->step));

    s->grammars = dsa_grammars_create(s->tokenizer, dsa_step_config(r->step));

    if (s->grammars == NULL) {
        return dsa_error(err, "out of memory");
    }

    if (dsa_grammars_start(s->grammars, dsa_step_nudge, r->step, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    r->pool = dsa_pool_create(s, r->wake, err);

    return r->pool != NULL ? dsa_pool_start(r->pool, err) : DSA_ERROR;
}


/* Called in the step thread. */

static int
dsa_replica_backend(void *data, dsa_step_t *st, dsa_err_t *err)
{
    uint32_t             size;
    dsa_replica_t       *r;
    dsa_backend_t       *b;
    const dsa_conf_t    *conf;
    dsa_sched_conf_t     sched;
    dsa_backend_conf_t   backend;

    r = data;
    conf = r->service.conf;
    size = dsa_tokenizer_size(r->service.tokenizer);

    dsa_conf_backend_of(conf, r->service.replica, &backend);
    backend.allowed = size;

    b = conf->followers != 0 ? dsa_replica_lead(r, &backend, err)
                             : dsa_backend_open(conf->backend, &backend, err);

    if (b == NULL) {
        return DSA_ERROR;
    }

    if (dsa_check_vocabulary(conf, size, b->config.vocab_size, err) != DSA_OK) {
        b->close(b);
        return DSA_ERROR;
    }

    memset(&sched, 0, sizeof(sched));

    sched.max_running = conf->max_running;
    sched.token_budget = conf->token_budget;
    sched.adapt_drafts = conf->adapt_drafts;
    sched.token_target_ms = (uint32_t) conf->token_target_ms;
    sched.first_token_target_ms = (uint32_t) conf->first_token_target_ms;
    sched.max_waiting = conf->max_waiting;
    sched.max_waiting_per_tenant = conf->max_waiting_per_tenant;
    sched.context = b->config.max_position_embeddings;

    if (conf->context_length != 0) {
        sched.context = conf->context_length;
    }

    if (dsa_service_tiers(conf, b, st, &r->host, &sched, err) != DSA_OK) {
        b->close(b);
        return DSA_ERROR;
    }

    return dsa_step_attach(st, b, &sched, err);
}


/*
 * Opens the backend of several hosts.  A host that fails is named before the
 * supervisor would kill this process for the same reason, and without a name.
 */

static dsa_backend_t *
dsa_replica_lead(dsa_replica_t *r, const dsa_backend_conf_t *backend,
    dsa_err_t *err)
{
    const dsa_conf_t    *conf;
    dsa_hosts_leader_t  *leader;

    conf = r->service.conf;
    leader = &r->leader;

    leader->address = conf->host;
    leader->n = conf->followers;
    leader->secret = &conf->secret;
    leader->start_ms = conf->start_timeout_ms / 4 * 3;
    leader->step_ms = (conf->step_timeout_ms + 3) / 4 * 3;
    leader->tiers = dsa_service_tier_mask(conf);
    leader->open = dsa_backend_open;
    leader->failed = dsa_replica_nudge;
    leader->arrived = dsa_replica_nudge;
    leader->abort = dsa_replica_fault;
    leader->data = r;

    return dsa_hosts_lead(conf->backend, backend, leader, err);
}


/* Called in the thread that watches the hosts. */

static void
dsa_replica_nudge(void *data)
{
    dsa_replica_t  *r;

    r = data;

    dsa_step_nudge(r->step);
}


/* Ends the process from that thread, while the step thread does not return. */

static void
dsa_replica_fault(void *data, const char *text)
{
    dsa_replica_t  *r;

    r = data;

    if (r->ready != -1) {
        dsa_replica_report(r->ready, text);
    }

    dsa_log(DSA_LOG_ERR, "the replica fails: %s", text);

    _exit(1);
}


static int
dsa_replica_listen(dsa_replica_t *r, dsa_err_t *err)
{
    char               path[sizeof(r->listen.path)];
    struct rlimit      limit;
    const dsa_conf_t  *conf;

    conf = r->service.conf;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {

        /*
         * Each session has three descriptors, and the soft limit may be 1024.
         */

        limit.rlim_cur = limit.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &limit);
    }

    if (dsa_conf_socket(conf, r->service.replica, path, sizeof(path))
        != DSA_OK)
    {
        return dsa_error(err, "%s: the path is too long", conf->listen);
    }

    return dsa_listen_open(&r->listen, path, conf->socket_group, err);
}


/* Ends the threads, then frees the requests, to which the threads refer. */

static void
dsa_replica_close(dsa_replica_t *r)
{
    if (r->io.poller.epoll != -1) {
        dsa_io_disconnect(&r->io);
    }

    if (r->pool != NULL) {
        dsa_pool_stop(r->pool);
    }

    if (r->step != NULL) {
        dsa_step_stop(r->step);
    }

    dsa_grammars_stop(r->service.grammars);

    if (r->io.poller.epoll != -1) {
        dsa_io_close(&r->io);
    }

    dsa_pool_destroy(r->pool);
    dsa_step_destroy(r->step);
    dsa_host_close(&r->host);
    dsa_listen_close(&r->listen);

    if (r->signals != -1) {
        (void) close(r->signals);
    }

    dsa_journal_close(r->journal);

    if (r->wake != -1) {
        (void) close(r->wake);
    }

    dsa_grammars_destroy(r->service.grammars);
    dsa_tokenizer_close(r->service.tokenizer);
}


/*
 * Ends the process after a failed step, without closing the backend.  When one
 * GPU fails, the kernels of the other GPUs wait for its data, and a kernel
 * cannot be aborted.  cudaFree() does not return while a kernel runs, but the
 * end of the process ends its kernels: on two H200, each with a kernel that
 * never ends, _exit() took less than 0.7 s, and the next process could use
 * both GPUs at once.  exit() would run the destructors of libraries that other
 * threads still use.
 *
 * The cause was logged before.  The sockets are closed first, because threads
 * in a call of the driver may delay the end of the process.  So the workers
 * see the end at once: accepted requests fail, and the others move to another
 * replica.
 */

static void
dsa_replica_abandon(dsa_replica_t *r)
{
    dsa_io_disconnect(&r->io);
    dsa_listen_close(&r->listen);

    _exit(1);
}


static int
dsa_replica_loop(dsa_replica_t *r)
{
    do {
        if (dsa_io_round(&r->io, DSA_IO_IDLE_MS) != DSA_OK) {
            return DSA_ERROR;
        }
    } while (!r->io.sessions.draining || !dsa_replica_over(r));

    return DSA_OK;
}


/* Returns 1 while draining if no work or no time is left. */

static int
dsa_replica_over(dsa_replica_t *r)
{
    uint64_t  now_ms;

    now_ms = dsa_clock_ms();

    if (now_ms >= r->drain_end_ms && !r->aborted) {
        dsa_io_abort(&r->io);

        /* the workers have DSA_REPLICA_LAST_MS from now on */

        r->aborted = 1;
        r->drain_end_ms = now_ms;

        return 0;
    }

    /* until the deadline, pages may still be written to the cache */

    return (dsa_io_idle(&r->io) && (dsa_step_unwritten(r->step) == 0
                                    || now_ms >= r->drain_end_ms))
           || now_ms >= r->drain_end_ms + DSA_REPLICA_LAST_MS;
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

    if (info.ssi_signo == SIGHUP) {
        dsa_log(DSA_LOG_NOTICE, "replica %u: SIGHUP", r->service.replica);
        dsa_step_reload(r->step);
        return;
    }

    if (info.ssi_signo == SIGUSR1 && !r->aborted) {
        r->drain_end_ms = 0;
    }

    if (r->io.sessions.draining) {
        return;
    }

    dsa_log(DSA_LOG_NOTICE, "replica %u: rejects new requests",
            r->service.replica);

    if (info.ssi_signo == SIGTERM) {
        r->drain_end_ms = dsa_clock_ms() + r->service.conf->drain_timeout_ms;
    }

    dsa_io_drain(&r->io);
}


static void
dsa_replica_report(int fd, const char *text)
{
    ssize_t  n;

    do {
        n = write(fd, text, strlen(text));
    } while (n == -1 && errno == EINTR);
}
