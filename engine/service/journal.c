
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/service/journal.h"


static void dsa_journal_begin(dsa_journal_t *j, const dsa_request_t *r,
    const char *event);


int
dsa_journal_open(dsa_journal_t *j, const char *path, uint32_t replica,
    dsa_err_t *err)
{
    memset(j, 0, sizeof(dsa_journal_t));

    j->replica = replica;
    j->pid = getpid();
    j->fd = open(path, O_WRONLY|O_APPEND|O_CREAT|O_CLOEXEC, 0600);

    return j->fd != -1 ? DSA_OK
                       : dsa_error(err, "open() of journal \"%s\": %s", path,
                                   strerror(errno));
}


void
dsa_journal_close(dsa_journal_t *j)
{
    if (j->fd != -1) {
        (void) close(j->fd);
        j->fd = -1;
    }

    dsa_buf_free(&j->lines);
}


void
dsa_journal_accepted(dsa_journal_t *j, const dsa_request_t *r)
{
    uint32_t  i;

    if (j == NULL) {
        return;
    }

    dsa_journal_begin(j, r, "accepted");
    dsa_buf_addz(&j->lines, ",\"tenant\":\"");

    for (i = 0; i < sizeof(r->sched.tenant); i++) {
        dsa_buf_printf(&j->lines, "%02x", r->sched.tenant[i]);
    }

    dsa_buf_printf(&j->lines, "\",\"prompt\":%u,\"cached\":%u}\n",
                   r->accepted.prompt_tokens, r->accepted.cached_tokens);
}


void
dsa_journal_tokens(dsa_journal_t *j, const dsa_request_t *r, uint32_t n)
{
    if (j == NULL || n == 0) {
        return;
    }

    dsa_journal_begin(j, r, "tokens");
    dsa_buf_printf(&j->lines, ",\"tokens\":%u}\n", n);
}


void
dsa_journal_last(dsa_journal_t *j, const dsa_request_t *r)
{
    static const char  *finish[] = {
        "unknown",              /* as dsa_link_finish_e */
        "stop",
        "length",
        "cancelled",
        "deadline"
    };

    /* a count is not charged */

    if (j == NULL || r->type == DSA_LINK_COUNT) {
        return;
    }

    if (r->last == DSA_LINK_ERROR) {
        dsa_journal_begin(j, r, "error");
        dsa_buf_printf(&j->lines, ",\"code\":%u}\n", r->failure.code);
        return;
    }

    assert(r->last == DSA_LINK_DONE
           && r->done.finish < sizeof(finish) / sizeof(finish[0]));

    dsa_journal_begin(j, r, "done");
    dsa_buf_printf(&j->lines, ",\"finish\":\"%s\",\"prompt\":%u,"
                   "\"cached\":%u,\"host\":%u,\"redis\":%u,"
                   "\"completion\":%u}\n",
                   finish[r->done.finish], r->done.prompt_tokens,
                   r->done.cached_tokens, r->done.host_tokens,
                   r->done.redis_tokens, r->done.completion_tokens);
}


void
dsa_journal_left(dsa_journal_t *j, const dsa_request_t *r)
{
    if (j == NULL || r->name[0] == '\0') {
        return;
    }

    dsa_journal_begin(j, r, "left");
    dsa_buf_addz(&j->lines, "}\n");
}


void
dsa_journal_flush(dsa_journal_t *j)
{
    ssize_t  n;

    if (j == NULL || j->lines.len == 0) {
        return;
    }

    do {
        n = write(j->fd, j->lines.data, j->lines.len);
    } while (n == -1 && errno == EINTR);

    if (n != (ssize_t) j->lines.len || j->lines.failed) {
        dsa_log(DSA_LOG_ERR, "the journal is not complete: write(): %s",
                n == -1 ? strerror(errno) : "it is short");
    }

    j->lines.len = 0;
}


/* Writes the members that all lines have. */

static void
dsa_journal_begin(dsa_journal_t *j, const dsa_request_t *r, const char *event)
{
    struct timespec  now;

    (void) clock_gettime(CLOCK_REALTIME, &now);

    dsa_buf_printf(&j->lines, "{\"request\":\"%s\",\"time\":%lld.%03d,"
                   "\"replica\":%u,\"engine\":%d,\"worker\":%d,"
                   "\"slot\":\"%u.%u\",\"event\":\"%s\",\"sent\":%u",
                   r->name, (long long) now.tv_sec,
                   (int) (now.tv_nsec / 1000000), j->replica, (int) j->pid,
                   (int) r->worker, dsa_link_slot(r->id),
                   dsa_link_epoch(r->id), event, r->sent);
}
