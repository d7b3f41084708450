
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/options.h"
#include "bench/hosts.h"
#include "engine/hosts/door.h"
#include "engine/hosts/follower.h"


#define DSA_BENCH_WAIT_MS   1000        /* between two looks at the door */


static int dsa_bench_hosts_options(dsa_bench_hosts_t *h, int argc,
    char **argv);
static int dsa_bench_hosts_option(dsa_bench_hosts_t *h, int opt);
static int dsa_bench_hosts_run(dsa_bench_hosts_t *h,
    const dsa_bench_command_t *command, dsa_err_t *err);
static int dsa_bench_hosts_follow(dsa_bench_hosts_t *h,
    const dsa_bench_command_t *command, dsa_err_t *err);
static int dsa_bench_hosts_lead(dsa_bench_hosts_t *h,
    const dsa_bench_command_t *command, dsa_err_t *err);
static void dsa_bench_hosts_ignore(void *data);
static void dsa_bench_hosts_abort(void *data, const char *text);


int
dsa_bench_hosts(const dsa_bench_command_t *command, int argc, char **argv,
    const char *usage)
{
    int                rc;
    dsa_err_t          err;
    dsa_bench_hosts_t  h;

    memset(&h, 0, sizeof(h));
    h.name = command->name;

    rc = dsa_bench_hosts_options(&h, argc, argv);

    if (rc != DSA_OK) {
        (void) fputs(rc == DSA_AGAIN ? "" : usage, stderr);
        return 2;
    }

    (void) signal(SIGPIPE, SIG_IGN);

    rc = dsa_conf_read(&h.conf, h.path, &err);

    if (rc == DSA_OK) {
        rc = dsa_bench_hosts_run(&h, command, &err);
    }

    dsa_conf_free(&h.conf);

    if (rc != DSA_OK) {
        (void) fprintf(stderr, "dsa bench: %s\n", err.text);
    }

    return rc == DSA_OK && fflush(stdout) == 0 ? 0 : 1;
}


/* DSA_AGAIN: an option was wrong, and the error is on stderr. */

static int
dsa_bench_hosts_options(dsa_bench_hosts_t *h, int argc, char **argv)
{
    int   opt;
    char  program[32];

    static const struct option  options[] = {
        { "conf", required_argument, NULL, 'c' },
        { "network", required_argument, NULL, 'n' },
        { "prefill", optional_argument, NULL, 'p' },
        { "decode", optional_argument, NULL, 'd' },
        { NULL, 0, NULL, 0 }
    };

    (void) snprintf(program, sizeof(program), "dsa bench %s", h->name);
    optind = 1;

    while ((opt = dsa_option(program, argc, argv, "", options)) != -1) {
        if (opt == '?') {
            return DSA_AGAIN;
        }

        if (dsa_bench_hosts_option(h, opt) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    /* the exchange alone has no steps */

    return h->path != NULL && optind == argc
           && (strcmp(h->name, "engine") == 0
               || (h->prefill == 0 && h->decode == 0)) ? DSA_OK : DSA_ERROR;
}


static int
dsa_bench_hosts_option(dsa_bench_hosts_t *h, int opt)
{
    char  *end;

    switch (opt) {

    case 'c':
        h->path = optarg;
        return DSA_OK;

    case 'n':
        h->network = strtod(optarg, &end);
        return *end == '\0' && h->network > 0 ? DSA_OK : DSA_ERROR;

    case 'p':
        h->prefill = 1;
        return optarg == NULL
               || (sscanf(optarg, "%u", &h->tokens_only) == 1
                   && h->tokens_only != 0) ? DSA_OK : DSA_ERROR;

    default:
        h->decode = 1;
        return optarg == NULL
               || (sscanf(optarg, "%ux%u", &h->batch_only, &h->context_only)
                   == 2 && h->batch_only != 0 && h->context_only != 0)
               ? DSA_OK : DSA_ERROR;
    }
}


static int
dsa_bench_hosts_run(dsa_bench_hosts_t *h, const dsa_bench_command_t *command,
    dsa_err_t *err)
{
    dsa_log_level(DSA_LOG_WARN);
    dsa_conf_backend_of(&h->conf, 0, &h->backend);

    if (h->conf.follow != NULL) {
        return dsa_bench_hosts_follow(h, command, err);
    }

    if (h->conf.followers == 0) {
        return dsa_error(err, "%s has neither \"hosts\" nor \"listen "
                         "HOST:PORT\"; expected the configuration of one of "
                         "several hosts", h->path);
    }

    return dsa_bench_hosts_lead(h, command, err);
}


static int
dsa_bench_hosts_follow(dsa_bench_hosts_t *h,
    const dsa_bench_command_t *command, dsa_err_t *err)
{
    int                    rc;
    dsa_hosts_wire_t       w;
    _Atomic uint64_t       step;
    dsa_hosts_door_t      *door;
    dsa_hosts_follower_t   f;

    memset(&w, 0, sizeof(w));
    memset(&f, 0, sizeof(f));
    atomic_init(&step, 0);

    door = dsa_hosts_door_open(h->conf.follow, &h->conf.secret, err);

    if (door == NULL) {
        return DSA_ERROR;
    }

    (void) printf("Waits for the leader at %s.\n", h->conf.follow);
    (void) fflush(stdout);

    do {
        rc = dsa_hosts_door_wait(door, DSA_BENCH_WAIT_MS, -1, &w);
    } while (rc != DSA_OK);

    dsa_hosts_door_close(door);

    f.kind = h->conf.backend;
    f.backend = h->backend;
    f.open = command->open;
    f.step_started_ms = &step;

    rc = dsa_hosts_follow(&w, &f, err);

    if (rc != DSA_OK) {

        /* the backend is open, and closing it could wait for other hosts */

        (void) fprintf(stderr, "dsa bench: %s\n", err->text);
        (void) fflush(stdout);
        _exit(1);
    }

    dsa_hosts_wire_close(&w);

    return DSA_OK;
}


static int
dsa_bench_hosts_lead(dsa_bench_hosts_t *h, const dsa_bench_command_t *command,
    dsa_err_t *err)
{
    int                  rc;
    dsa_backend_t       *b;
    dsa_hosts_leader_t  *leader;

    /* three quarters, as an engine has it */

    leader = &h->leader;
    leader->address = h->conf.host;
    leader->n = h->conf.followers;
    leader->secret = &h->conf.secret;
    leader->start_ms = h->conf.start_timeout_ms / 4 * 3;
    leader->step_ms = (h->conf.step_timeout_ms + 3) / 4 * 3;
    leader->open = command->open;
    leader->failed = dsa_bench_hosts_ignore;
    leader->arrived = dsa_bench_hosts_ignore;
    leader->abort = dsa_bench_hosts_abort;

    h->hosts = leader->n + 1;

    /* pages stay where the steps read them */

    h->backend.host_memory = 0;
    h->backend.persistent = 0;
    h->backend.drafts = 0;
    h->backend.allowed = UINT32_MAX;

    if (command->plan != NULL) {
        command->plan(&h->backend);
    }

    b = dsa_hosts_lead(h->conf.backend, &h->backend, leader, err);

    if (b == NULL) {
        return DSA_ERROR;
    }

    rc = command->lead(h, b, err);

    if (rc != DSA_OK) {

        /* the same here */

        (void) fprintf(stderr, "dsa bench: %s\n", err->text);
        (void) fflush(stdout);
        _exit(1);
    }

    b->close(b);

    return DSA_OK;
}


/* A fault between steps is found by the next one. */

static void
dsa_bench_hosts_ignore(void *data)
{
}


static void
dsa_bench_hosts_abort(void *data, const char *text)
{
    (void) fprintf(stderr, "dsa bench: %s\n", text);
    _exit(1);
}


double
dsa_bench_hosts_now(void)
{
    struct timespec  t;

    (void) clock_gettime(CLOCK_MONOTONIC, &t);

    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}


uint64_t
dsa_bench_hosts_fullest(const uint64_t *bytes, uint32_t n, int relay)
{
    uint32_t  h, other;
    uint64_t  sent, received, most;

    most = 0;

    for (h = 0; h < n; h++) {
        sent = 0;
        received = 0;

        for (other = 0; other < n; other++) {
            sent += bytes[h * n + other];
            received += bytes[other * n + h];
        }

        most = sent > most ? sent : most;
        most = received > most ? received : most;
    }

    if (!relay) {
        return most;
    }

    /* host 0 receives what the others send, and sends what they receive */

    sent = 0;
    received = 0;

    for (h = 1; h < n; h++) {
        for (other = 0; other < n; other++) {
            received += bytes[h * n + other];
            sent += bytes[other * n + h];
        }
    }

    most = sent > most ? sent : most;

    return received > most ? received : most;
}
