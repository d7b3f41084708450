
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A dsa-engine as a process, and workers that use it.  The program is beside
 * the directory of the test.
 */


#ifndef _DSA_T_ENGINE_H_INCLUDED_
#define _DSA_T_ENGINE_H_INCLUDED_


#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "engine/link_event.h"
#include "t/lib/link_client.h"
#include "t/lib/small_model.h"


#define DEADLINE    (20 * 1000)     /* ms; nothing takes nearly as long */


typedef struct {
    pid_t       pid;
    char        sock[128];
    char        conf[128];
    char        log[128];
} engine_t;


typedef struct {
    char        text[256];
    size_t      len;
    uint32_t    finish;
    uint32_t    error;
    dsa_link_done_t     done;
    dsa_link_failure_t  failure;
    dsa_link_counted_t  counted;
    char        reason[512];
} reply_t;


static char  model_dir[] = "/tmp/dsa-test-XXXXXX";
static char  program[512];


static void
nap(void)
{
    struct timespec  ts = { 0, 5000000 };

    (void) nanosleep(&ts, NULL);
}


/* more: the model's directory, and the rest of the configuration. */

static void
engine_start_model(engine_t *e, const char *sock, const char *more)
{
    int    fd;
    FILE  *f;

    (void) snprintf(e->sock, sizeof(e->sock), "%s/%s", model_dir, sock);
    (void) snprintf(e->conf, sizeof(e->conf), "%s/engine.conf", model_dir);
    (void) snprintf(e->log, sizeof(e->log), "%s/engine.log", model_dir);

    f = fopen(e->conf, "w");
    assert_non_null(f);
    fprintf(f, "name test;\nlisten unix:%s;\nmodel %s\n", e->sock, more);
    assert_int_equal(fclose(f), 0);

    e->pid = fork();
    assert_true(e->pid >= 0);

    if (e->pid == 0) {
        fd = open(e->log, O_WRONLY|O_CREAT|O_TRUNC, 0600);

        /* a test that fails leaves no engine behind */

        if (fd == -1 || dup2(fd, 2) == -1
            || prctl(PR_SET_PDEATHSIG, SIGTERM) == -1)
        {
            _exit(99);
        }

        (void) execl(program, program, "-c", e->conf, (char *) NULL);
        _exit(98);
    }
}


static void
engine_start(engine_t *e, const char *sock, const char *more)
{
    char  text[1024];

    (void) snprintf(text, sizeof(text), "%s;\n%s%s", model_dir,
                    strstr(more, "backend") == NULL ? "backend null " : "",
                    more);
    engine_start_model(e, sock, text);
}


static inline int
engine_wait(engine_t *e)
{
    int       status;
    uint64_t  end;

    end = link_client_now() + DEADLINE;

    while (waitpid(e->pid, &status, WNOHANG) == 0) {
        if (link_client_now() > end) {
            (void) kill(e->pid, SIGKILL);
            fail_msg("the engine does not end");
        }

        nap();
    }

    (void) unlink(e->conf);

    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}


static inline void
engine_stop(engine_t *e)
{
    assert_int_equal(kill(e->pid, SIGTERM), 0);
    assert_int_equal(engine_wait(e), 0);
    assert_int_equal(access(e->sock, F_OK), -1);
}


static inline void
engine_log(engine_t *e, char *out, size_t size)
{
    int      fd;
    ssize_t  n;

    fd = open(e->log, O_RDONLY);
    assert_true(fd != -1);
    n = read(fd, out, size - 1);
    assert_true(n >= 0);
    out[n] = '\0';
    (void) close(fd);
}


static inline void
connect_to(link_client_t *c, const char *sock)
{
    uint64_t  end;

    end = link_client_now() + DEADLINE;

    while (link_client_connect(c, sock, DEADLINE) != 0) {
        if (link_client_now() > end) {
            fail_msg("no engine listens at %s", sock);
        }

        nap();
    }
}


static inline void
send_text(link_client_t *c, uint64_t id, const char *text, uint32_t n)
{
    link_submit_t  s;

    link_submit_init(&s, n);
    link_submit_text(&s, text);
    assert_int_equal(link_client_submit(c, id, &s), 0);
}


/* Events until `over` requests have ended; -1 if the replica is gone. */

static inline int
collect(link_client_t *c, reply_t *replies, uint32_t over)
{
    int                        rc;
    void                      *payload;
    reply_t                   *r;
    uint32_t                   n;
    const char                *text;
    dsa_link_record_t          record;
    const dsa_link_tokens_t   *t;

    for (n = 0; n < over; /* void */) {
        rc = link_client_next(c, &record, &payload, DEADLINE);

        if (rc != 1) {
            assert_int_equal(rc, -1);
            return -1;
        }

        r = &replies[dsa_link_slot(record.id)];

        if (record.type == DSA_LINK_TOKENS) {
            t = payload;
            text = (const char *) (t + 1)
                   + t->n_tokens * sizeof(dsa_link_token_t)
                   + t->logprobs * t->n_tokens * (1 + t->n_top)
                     * sizeof(dsa_link_logprob_t);
            assert_true(r->len + t->text_len < sizeof(r->text));
            memcpy(r->text + r->len, text, t->text_len);
            r->len += t->text_len;

        } else if (record.type == DSA_LINK_DONE) {
            memcpy(&r->done, payload, sizeof(r->done));
            r->finish = r->done.finish;
            n++;

        } else if (record.type == DSA_LINK_COUNTED) {
            memcpy(&r->counted, payload, sizeof(r->counted));
            n++;

        } else if (record.type == DSA_LINK_ERROR) {
            memcpy(&r->failure, payload, sizeof(r->failure));
            r->error = r->failure.code;
            (void) snprintf(r->reason, sizeof(r->reason), "%s",
                            (char *) payload + sizeof(r->failure));
            n++;
        }

        free(payload);
    }

    return 0;
}


static int
setup(void **state)
{
    char     *slash;
    ssize_t   n;

    n = readlink("/proc/self/exe", program, sizeof(program) - 20);

    if (n == -1) {
        return -1;
    }

    program[n] = '\0';
    slash = strrchr(program, '/');
    *slash = '\0';
    slash = strrchr(program, '/');
    strcpy(slash, "/dsa-engine");

    if (access(program, X_OK) == -1) {
        perror(program);
        return -1;
    }

    return small_model_make(model_dir);
}


static int
teardown(void **state)
{
    char  path[160];

    (void) snprintf(path, sizeof(path), "%s/engine.log", model_dir);
    (void) unlink(path);
    small_model_remove(model_dir);

    return 0;
}


#endif /* _DSA_T_ENGINE_H_INCLUDED_ */
