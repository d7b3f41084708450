
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


static int dsa_log_permitted(dsa_log_level_e level, time_t now, size_t *lost);


_Atomic int  dsa_log_limit = DSA_LOG_INFO;

static const char  *dsa_log_names[] = {
    "error", "warn", "notice", "info", "debug"
};

_Static_assert(sizeof(dsa_log_names) / sizeof(dsa_log_names[0])
               == DSA_LOG_DEBUG + 1, "each log level has a name");


void
dsa_log_level(dsa_log_level_e level)
{
    atomic_store_explicit(&dsa_log_limit, level, memory_order_relaxed);
}


void
dsa_log(dsa_log_level_e level, const char *fmt, ...)
{
    int         n;
    char        text[DSA_LOG_LINE], line[DSA_LOG_LINE];
    time_t      now;
    size_t      len, lost;
    ssize_t     rc;
    va_list     args;
    struct tm   tm;

    now = time(NULL);

    if (!dsa_log_permitted(level, now, &lost)) {
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

    /* if the log cannot be written, there is no other place to report that */

    rc = write(STDERR_FILENO, line, len);
    (void) rc;
}


/*
 * 1 if the line is to be written; *lost is the number of lines that were left
 * out since the last one.
 */

static int
dsa_log_permitted(dsa_log_level_e level, time_t now, size_t *lost)
{
    int  permitted;

    static time_t           second;
    static size_t           lines, dropped;
    static pthread_mutex_t  mutex = PTHREAD_MUTEX_INITIALIZER;

    *lost = 0;

    if ((int) level > atomic_load_explicit(&dsa_log_limit,
                                           memory_order_relaxed))
    {
        return 0;
    }

    (void) pthread_mutex_lock(&mutex);

    if (now != second) {
        second = now;
        lines = 0;
        *lost = dropped;
        dropped = 0;
    }

    permitted = level == DSA_LOG_ERR || level == DSA_LOG_DEBUG
                || ++lines <= DSA_LOG_RATE;

    dropped += !permitted;

    (void) pthread_mutex_unlock(&mutex);

    return permitted;
}
