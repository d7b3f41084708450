
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/counts.h"
#include "bench/http.h"


#define COUNTS_WAIT     5000000000ULL   /* ns for a session */
#define COUNTS_AGAIN    50000           /* us until the next attempt */


static int counts_up(const char *text);
static int counts_sum(const char *text, const char *name, uint64_t *sum);


int
counts_read(counts_t *counts, int port, FILE *keep)
{
    int        n;
    char      *text;
    uint64_t   end;

    end = http_now() + COUNTS_WAIT;

    for ( ;; ) {
        text = http_get(port, "/metrics");

        if (text == NULL) {
            return -1;
        }

        if (counts_up(text)) {
            break;
        }

        free(text);

        if (http_now() >= end) {
            errno = ETIMEDOUT;
            return -1;
        }

        (void) usleep(COUNTS_AGAIN);
    }

    n = counts_sum(text, "dsa_engine_prompt_tokens_total{", &counts->prompt);
    (void) counts_sum(text, "dsa_engine_cached_tokens_total{",
                      &counts->cached);
    (void) counts_sum(text, "dsa_engine_completion_tokens_total{",
                      &counts->completion);

    if (keep != NULL) {
        (void) fputs(text, keep);
    }

    free(text);

    if (n == 0) {
        errno = EPROTO;
        return -1;
    }

    return 0;
}


/* 1 if the worker that answered has a session with each engine. */

static int
counts_up(const char *text)
{
    const char  *line;

    for (line = text; line != NULL; line = strchr(line + 1, '\n')) {
        if (strncmp(line, "\ndsa_engine_up{", 15) == 0
            && strstr(line, "} 0\n") == strstr(line, "} "))
        {
            return 0;
        }
    }

    return 1;
}


/* Adds the values of the lines that begin with a name; returns their number. */

static int
counts_sum(const char *text, const char *name, uint64_t *sum)
{
    int          n;
    const char  *line, *value;

    n = 0;

    for (line = strstr(text, name); line != NULL; line = strstr(line, name)) {
        value = strstr(line, "} ");

        if (value == NULL) {
            break;
        }

        *sum += strtoull(value + 2, NULL, 10);
        line = value;
        n++;
    }

    return n;
}


int
counts_since(counts_t *counts, const counts_t *before)
{
    if (counts->prompt < before->prompt || counts->cached < before->cached
        || counts->completion < before->completion)
    {
        return -1;
    }

    counts->prompt -= before->prompt;
    counts->cached -= before->cached;
    counts->completion -= before->completion;

    return 0;
}
