
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A redis-server of the test on a Unix socket of a temporary directory, and
 * commands to it.
 */


#ifndef _T_REDIS_SERVER_H_INCLUDED_
#define _T_REDIS_SERVER_H_INCLUDED_


#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <hiredis/hiredis.h>

#include "base/clock.h"


typedef struct {
    char            address[160];       /* unix:PATH */
    char            path[128];
    pid_t           pid;                /* 0: it is stopped */
    redisContext   *client;
} redis_t;


static char  dir[64];


static inline uint64_t
slow_ms(uint64_t ms)
{
    const char  *slow;

    slow = getenv("DSA_SLOW");

    return slow != NULL ? ms * (uint64_t) atoi(slow) : ms;
}


/* The end of a wait that takes this long only if something hangs. */

static inline uint64_t
deadline(void)
{
    return dsa_clock_ms() + slow_ms(30000);
}


static inline void
make_dir(void)
{
    const char  *tmp;

    tmp = getenv("TMPDIR");
    (void) snprintf(dir, sizeof(dir), "%s/cacheXXXXXX",
                    tmp != NULL && strlen(tmp) < 40 ? tmp : "/tmp");

    if (mkdtemp(dir) == NULL) {
        fail_msg("mkdtemp %s: %s", dir, strerror(errno));
    }
}


static inline void
remove_dir(void)
{
    char  command[128];

    (void) snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}


/* A command whose reply the caller frees. */

static inline redisReply *
query(redis_t *r, const char *format, ...)
{
    va_list      args;
    redisReply  *reply;

    va_start(args, format);
    reply = redisvCommand(r->client, format, args);
    va_end(args);

    if (reply == NULL) {
        fail_msg("redis: %s", r->client->errstr);
    }

    return reply;
}


/* A command whose reply is an integer. */

#define number(r, ...)                                                        \
    ({                                                                        \
        redisReply  *reply_ = query(r, __VA_ARGS__);                          \
        long long    n_ = reply_->integer;                                    \
        assert_int_equal(reply_->type, REDIS_REPLY_INTEGER);                  \
        freeReplyObject(reply_);                                              \
        n_;                                                                   \
    })


/* A command whose reply is OK. */

#define ok(r, ...)                                                            \
    do {                                                                      \
        redisReply  *reply_ = query(r, __VA_ARGS__);                          \
        if (reply_->type != REDIS_REPLY_STATUS) {                             \
            fail_msg("redis: %s", reply_->str);                               \
        }                                                                     \
        freeReplyObject(reply_);                                              \
    } while (0)


/* Starts a server; options are separated by blanks.  The name is its socket. */

static inline void
redis_start(redis_t *r, const char *name, const char *options)
{
    int       fd;
    char      text[512], *argv[40], *word;
    uint32_t  n;
    uint64_t  until;

    (void) snprintf(r->path, sizeof(r->path), "%s/%s", dir, name);
    (void) snprintf(r->address, sizeof(r->address), "unix:%s/%s", dir, name);
    (void) snprintf(text, sizeof(text), "redis-server --save  --dir %s "
                    "--unixsocket %s --unixsocketperm 700 %s", dir, r->path,
                    options);

    (void) unlink(r->path);
    n = 0;

    /* the two blanks after "--save" are around an empty argument */

    for (word = text; word != NULL && n < 39; ) {
        argv[n++] = strsep(&word, " ");
    }

    argv[n] = NULL;
    r->pid = fork();
    assert_int_not_equal(r->pid, -1);

    if (r->pid == 0) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        fd = open("/dev/null", O_WRONLY);
        (void) dup2(fd, STDOUT_FILENO);
        (void) execvp(argv[0], argv);
        _exit(127);
    }

    until = deadline();
    r->client = NULL;

    do {
        if (dsa_clock_ms() > until || waitpid(r->pid, NULL, WNOHANG) != 0) {
            fail_msg("redis-server does not run");
        }

        (void) usleep(1000);
        redisFree(r->client);
        r->client = redisConnectUnix(r->path);
        assert_non_null(r->client);
    } while (r->client->err != 0);
}


static inline void
redis_stop(redis_t *r)
{
    if (r->pid == 0) {
        return;
    }

    (void) kill(r->pid, SIGKILL);
    (void) waitpid(r->pid, NULL, 0);
    redisFree(r->client);
    r->pid = 0;
}


#endif /* _T_REDIS_SERVER_H_INCLUDED_ */
