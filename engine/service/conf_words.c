
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/service/conf_parts.h"


static int dsa_conf_word(dsa_conf_reader_t *r, char *out, int *ended);


int
dsa_conf_words(dsa_conf_reader_t *r)
{
    int  rc, ended;

    r->n = 0;
    ended = 0;

    while (!ended) {
        if (r->n == DSA_CONF_ARGS) {
            return dsa_conf_fail(r, "\"%s\" has too many values, or no \";\" "
                                 "follows it", r->arg[0]);
        }

        rc = dsa_conf_word(r, r->arg[r->n], &ended);

        if (rc == DSA_ERROR) {
            return rc;
        }

        if (rc == DSA_OK) {
            if (r->n == 0) {
                r->start = r->line;
            }

            r->n++;

        } else if (!ended) {

            /* the end of the text */

            if (r->n == 0) {
                return DSA_OK;
            }

            return dsa_conf_fail(r, "no \";\" follows the value of \"%s\"",
                                 r->arg[0]);
        }
    }

    if (r->n == 0) {
        r->start = r->line;
        return dsa_conf_fail(r, "\";\" without a directive; expected \"NAME "
                             "VALUE...;\"");
    }

    return DSA_AGAIN;
}


/*
 * Reads the next word.  DSA_OK: it is in out; DSA_AGAIN: ";" (*ended is 1) or
 * the end of the text (*ended is 0) was found instead; DSA_ERROR.
 */

static int
dsa_conf_word(dsa_conf_reader_t *r, char *out, int *ended)
{
    char    c, quote;
    size_t  n;

    for ( /* void */ ; r->pos < r->end; r->pos++) {
        c = *r->pos;

        if (c == '\n') {
            r->line++;

        } else if (c == '#') {
            while (r->pos + 1 < r->end && r->pos[1] != '\n') {
                r->pos++;
            }

        } else if (c != ' ' && c != '\t' && c != '\r') {
            break;
        }
    }

    if (r->n == 0) {
        r->start = r->line;
    }

    if (r->pos >= r->end) {
        return DSA_AGAIN;
    }

    if (*r->pos == ';') {
        r->pos++;
        *ended = 1;
        return DSA_AGAIN;
    }

    quote = 0;

    if (*r->pos == '"' || *r->pos == '\'') {
        quote = *r->pos++;
    }

    for (n = 0; r->pos < r->end; r->pos++) {
        c = *r->pos;

        if (quote != 0) {
            if (c == quote) {
                break;
            }

        } else if (c == ';' || c == ' ' || c == '\t' || c == '\r'
                   || c == '\n')
        {
            break;

        } else if (c == '{' || c == '}' || c == '"' || c == '\'') {
            return dsa_conf_fail(r, "\"%c\" in a value; expected \"NAME "
                                 "VALUE...;\", with values that contain it in "
                                 "quotes", c);
        }

        if (quote != 0 && c == '\n') {
            return dsa_conf_fail(r, "a quote (%c) is not closed in its line",
                                 quote);
        }

        if ((unsigned char) c < 0x20 || c == 0x7f) {
            return dsa_conf_fail(r, "a value contains a control character");
        }

        if (n == DSA_CONF_VALUE - 1) {
            return dsa_conf_fail(r, "a value is longer than %d bytes",
                                 DSA_CONF_VALUE - 1);
        }

        out[n++] = c;
    }

    out[n] = '\0';

    if (quote != 0) {
        if (r->pos >= r->end) {
            return dsa_conf_fail(r, "a quote is not closed");
        }

        r->pos++;
    }

    return DSA_OK;
}


int
dsa_conf_fail(dsa_conf_reader_t *r, const char *fmt, ...)
{
    char     text[sizeof(dsa_err_t)];
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    return dsa_error(r->err, "%s:%u: %s", r->file, r->start, text);
}
