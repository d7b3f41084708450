
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/log.h"


static const char  *dsa_log_names[] = { "error", "warn", "notice", "info",
                                        "debug" };


int  dsa_log_debug_on;


/* Counts a line.  0: it is left out; *lost: lines left out before it. */

static int
dsa_log_count(dsa_log_level_e level, time_t now, size_t *lost)
{
    int                     rc;

    static time_t           second;
    static unsigned         lines, dropped;
    static pthread_mutex_t  mutex = PTHREAD_MUTEX_INITIALIZER;

    rc = 1;
    *lost = 0;

    (void) pthread_mutex_lock(&mutex);

    if (now != second) {
        second = now;
        lines = 0;
        *lost = dropped;
        dropped = 0;
    }

    if (level > DSA_LOG_ERR && ++lines > DSA_LOG_RATE) {
        dropped++;
        rc = 0;
    }

    (void) pthread_mutex_unlock(&mutex);

    return rc;
}


void
dsa_log(dsa_log_level_e level, const char *fmt, ...)
{
    int              n;
    char             text[DSA_LOG_LINE], line[DSA_LOG_LINE];
    time_t           now;
    size_t           len, lost;
    ssize_t          rc;
    va_list          args;
    struct tm        tm;

    now = time(NULL);

    if (!dsa_log_count(level, now, &lost)) {
        return;
    }

    va_start(args, fmt);
    n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    if (n < 0 || localtime_r(&now, &tm) == NULL) {
        return;
    }

    len = strftime(line, sizeof(line), "%Y/%m/%d %H:%M:%S ", &tm);
    n = snprintf(line + len, sizeof(line) - len, "[%s] %d: ",
                 dsa_log_names[level], (int) getpid());
    len += (size_t) n;

    if (lost != 0) {
        n = snprintf(line + len, sizeof(line) - len,
                     "(%zu lines left out) ", lost);
        len += (size_t) n;
    }

    len += dsa_escape(line + len, sizeof(line) - len - 1, text, strlen(text));
    line[len++] = '\n';

    /* a log that cannot be written has nowhere to be told */

    rc = write(STDERR_FILENO, line, len);
    (void) rc;
}
