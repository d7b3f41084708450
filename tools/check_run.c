
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/check.h"


static void dsa_check_exec(char *const argv[], int out, int errors);
static void dsa_check_collect(dsa_buf_t *text, int fd);
static void dsa_check_killed(dsa_buf_t *errors, int sig);


int
dsa_check_run(char *const argv[], dsa_buf_t *out, dsa_buf_t *errors,
    dsa_err_t *err)
{
    int    fd[2], status;
    pid_t  pid;

    /*
     * The program writes to files in memory: with pipes it would block if this
     * one did not read both at the same time.
     */

    fd[0] = memfd_create("stdout", MFD_CLOEXEC);
    fd[1] = memfd_create("stderr", MFD_CLOEXEC);
    pid = fd[0] != -1 && fd[1] != -1 ? fork() : -1;

    if (pid == 0) {
        dsa_check_exec(argv, fd[0], fd[1]);
    }

    if (pid == -1) {
        (void) dsa_error(err, "%s cannot be run: %s", argv[0],
                         strerror(errno));
        status = -1;

    } else {
        while (waitpid(pid, &status, 0) == -1 && errno == EINTR) { /* void */ }

        dsa_check_collect(out, fd[0]);
        dsa_check_collect(errors, fd[1]);

        if (WIFSIGNALED(status)) {
            dsa_check_killed(errors, WTERMSIG(status));
        }

        status = WIFEXITED(status) ? WEXITSTATUS(status)
                                   : DSA_CHECK_KILLED;
    }

    if (fd[0] != -1) {
        (void) close(fd[0]);
    }

    if (fd[1] != -1) {
        (void) close(fd[1]);
    }

    return status;
}


/* In the new process: never returns. */

static void
dsa_check_exec(char *const argv[], int out, int errors)
{
    char         path[4096];
    size_t       len;
    const char  *old;

    static const char  more[] = ":/usr/sbin:/usr/local/sbin:/sbin";

    old = getenv("PATH");
    len = old != NULL ? strlen(old) : 0;

    if (len + sizeof(more) <= sizeof(path)) {
        if (len != 0) {
            memcpy(path, old, len);
        }

        memcpy(path + len, more, sizeof(more));
        (void) setenv("PATH", path, 1);
    }

    if (dup2(out, STDOUT_FILENO) != -1 && dup2(errors, STDERR_FILENO) != -1) {
        (void) execvp(argv[0], argv);
    }

    _exit(DSA_CHECK_MISSING);
}


static void
dsa_check_collect(dsa_buf_t *text, int fd)
{
    char     part[65536];
    off_t    at;
    ssize_t  n;

    for (at = 0; at < DSA_CHECK_OUTPUT; at += n) {
        n = pread(fd, part, sizeof(part), at);

        if (n <= 0) {
            return;
        }

        dsa_buf_add(text, part, (size_t) n);
    }
}


/* A crash reports nothing itself. */

static void
dsa_check_killed(dsa_buf_t *errors, int sig)
{
    char  text[128];

    (void) snprintf(text, sizeof(text), "\nsignal %d (%s) ended it", sig,
                    strsignal(sig));
    dsa_buf_addz(errors, text);
}


dsa_str_t
dsa_check_last(const dsa_buf_t *text)
{
    dsa_str_t    last;
    const char  *line;

    last = dsa_str_trim(dsa_str(text->data, text->len));

    if (last.len == 0) {
        return dsa_strz("it reports nothing");
    }

    line = memrchr(last.data, '\n', last.len);

    if (line != NULL) {
        last.len -= (size_t) (line + 1 - last.data);
        last.data = line + 1;
    }

    return last;
}
