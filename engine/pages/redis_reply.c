
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "engine/pages/redis_reply.h"


#define DSA_REPLY_DIGITS    18          /* 10^18 fits in 63 bits */


static int dsa_redis_reply_number(dsa_redis_reply_t *r, const char *in,
    size_t len);


int
dsa_redis_reply(dsa_redis_reply_t *r, const char *in, size_t n,
    dsa_err_t *err)
{
    size_t       i, len;
    const char  *end;

    if (n == 0) {
        return DSA_AGAIN;
    }

    if (memchr("+-:$", in[0], 4) == NULL) {
        return dsa_error(err, "protocol error: a reply begins with byte "
                         "0x%02x; expected +, -, : or $",
                         (unsigned char) in[0]);
    }

    end = memchr(in, '\n', n < DSA_REDIS_LINE ? n : DSA_REDIS_LINE);

    if (end == NULL) {
        return n < DSA_REDIS_LINE
               ? DSA_AGAIN
               : dsa_error(err, "protocol error: a line of a reply is longer "
                           "than %d bytes", DSA_REDIS_LINE);
    }

    len = (size_t) (end - in);

    if (len < 2 || in[len - 1] != '\r'
        || memchr(in, '\r', len - 1) != NULL)
    {
        return dsa_error(err, "protocol error: a line of a reply does not end "
                         "with one CR and LF");
    }

    r->type = (dsa_redis_reply_e) in[0];
    r->size = len + 1;
    r->number = 0;
    r->text[0] = '\0';

    in++;
    len -= 2;

    if (r->type == DSA_REPLY_INTEGER || r->type == DSA_REPLY_STRING) {
        return dsa_redis_reply_number(r, in, len) == DSA_OK
               ? DSA_OK
               : dsa_error(err, "protocol error: a reply has a wrong number");
    }

    for (i = 0; i < len; i++) {
        r->text[i] = (in[i] >= ' ' && in[i] <= '~') ? in[i] : '?';
    }

    r->text[len] = '\0';

    return DSA_OK;
}


/* Parses a number as Redis writes it, without "+" and leading zeros. */

static int
dsa_redis_reply_number(dsa_redis_reply_t *r, const char *in, size_t len)
{
    int      minus;
    size_t   i;
    int64_t  n;

    minus = len > 0 && in[0] == '-';
    in += minus;
    len -= (size_t) minus;

    if (len == 0 || len > DSA_REPLY_DIGITS
        || (in[0] == '0' && (len > 1 || minus)))
    {
        return DSA_ERROR;
    }

    for (i = 0, n = 0; i < len; i++) {
        if (in[i] < '0' || in[i] > '9') {
            return DSA_ERROR;
        }

        n = n * 10 + (in[i] - '0');
    }

    r->number = minus ? -n : n;

    /* the only valid negative length is -1, for a missing string */

    return (r->type == DSA_REPLY_STRING && r->number < -1) ? DSA_ERROR
                                                           : DSA_OK;
}


int
dsa_redis_reply_is(const dsa_redis_reply_t *r, const char *code)
{
    size_t  n;

    n = strlen(code);

    return r->type == DSA_REPLY_ERROR
           && strncmp(r->text, code, n) == 0
           && (r->text[n] == '\0' || r->text[n] == ' ');
}
