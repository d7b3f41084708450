
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "base/escape.h"
#include "engine/service/submit.h"


#define DSA_SUBMIT_FLAGS  (DSA_LINK_HAS_SEED|DSA_LINK_LOGPROBS                \
                           |DSA_LINK_IGNORE_EOS|DSA_LINK_PRIVATE)

#define DSA_SUBMIT_NAME   100           /* bytes of a name in an error */
#define DSA_MAX_PENALTY   2


static int dsa_submit_check(const dsa_link_submit_t *h, dsa_err_t *err);
static int dsa_submit_run(dsa_str_t *rest, dsa_str_t *bytes, uint32_t *kind,
    dsa_err_t *err);
static int dsa_submit_special(const dsa_tokenizer_t *t, dsa_str_t name,
    uint32_t max, dsa_tokens_t *out, dsa_err_t *err);
static int dsa_submit_utf8(dsa_str_t s);


int
dsa_submit_decode(dsa_submit_t *out, const void *copy, size_t len,
    dsa_err_t *err)
{
    uint32_t   i, kind;
    dsa_str_t  rest, bytes;

    if (len < sizeof(dsa_link_submit_t)) {
        return dsa_error(err, "a submit of %zu bytes, it has %zu at least",
                         len, sizeof(dsa_link_submit_t));
    }

    memcpy(&out->head, copy, sizeof(dsa_link_submit_t));

    if (dsa_submit_check(&out->head, err) != DSA_OK) {
        return DSA_ERROR;
    }

    rest = dsa_str((const char *) copy + sizeof(dsa_link_submit_t),
                   len - sizeof(dsa_link_submit_t));
    out->runs = rest;

    for (i = 0; i < out->head.n_runs; i++) {
        if (dsa_submit_run(&rest, &bytes, &kind, err) != DSA_OK) {
            return DSA_ERROR;
        }

        if (kind != DSA_LINK_TEXT && kind != DSA_LINK_SPECIAL) {
            return dsa_error(err, "run %u is of kind %u, neither text nor "
                             "special", i, kind);
        }
    }

    out->runs.len -= rest.len;

    for (i = 0; i < out->head.n_stop; i++) {
        if (dsa_submit_run(&rest, &bytes, &kind, err) != DSA_OK) {
            return DSA_ERROR;
        }

        if (kind != DSA_LINK_TEXT) {
            return dsa_error(err, "stop string %u is of kind %u, not text", i,
                             kind);
        }

        if (bytes.len == 0 || bytes.len > DSA_LINK_MAX_STOP_LEN
            || !dsa_submit_utf8(bytes))
        {
            return dsa_error(err, "stop string %u is not 1 to %d bytes of "
                             "UTF-8", i, DSA_LINK_MAX_STOP_LEN);
        }

        out->stop[i] = bytes;
    }

    if (rest.len != 0) {
        return dsa_error(err, "%zu bytes behind the last part of a submit",
                         rest.len);
    }

    return DSA_OK;
}


int
dsa_submit_tokenize(const dsa_submit_t *s, const dsa_tokenizer_t *t,
    dsa_tokenizer_work_t *w, uint32_t max, dsa_tokens_t *out, dsa_err_t *err)
{
    int        rc;
    uint32_t   i, kind;
    dsa_str_t  rest, bytes;

    rest = s->runs;

    for (i = 0; i < s->head.n_runs; i++) {

        if (dsa_submit_run(&rest, &bytes, &kind, err) != DSA_OK) {
            return DSA_ERROR;
        }

        rc = kind == DSA_LINK_TEXT
             ? dsa_tokenize(t, w, bytes, max, out, err)
             : dsa_submit_special(t, bytes, max, out, err);

        if (rc != DSA_OK) {
            return rc;
        }
    }

    if (out->n == 0) {
        return dsa_error(err, "the prompt is empty");
    }

    return DSA_OK;
}


static int
dsa_submit_check(const dsa_link_submit_t *h, dsa_err_t *err)
{
    if (h->n_runs == 0) {
        return dsa_error(err, "the prompt is empty");
    }

    if (h->n_stop > DSA_LINK_MAX_STOP) {
        return dsa_error(err, "%u stop strings, %d at most", h->n_stop,
                         DSA_LINK_MAX_STOP);
    }

    if ((h->flags & ~DSA_SUBMIT_FLAGS) != 0) {
        return dsa_error(err, "unknown flags 0x%x",
                         h->flags & ~DSA_SUBMIT_FLAGS);
    }

    if (h->top_logprobs > DSA_LINK_MAX_TOP) {
        return dsa_error(err, "top_logprobs is %u, 0 to %d is possible",
                         h->top_logprobs, DSA_LINK_MAX_TOP);
    }

    if (h->weight == 0 || h->weight > DSA_LINK_MAX_WEIGHT) {
        return dsa_error(err, "weight is %u, 1 to %d is possible", h->weight,
                         DSA_LINK_MAX_WEIGHT);
    }

    /* written so that what is not a number fails, too */

    if (!(h->temperature >= 0 && isfinite(h->temperature))) {
        return dsa_error(err, "temperature is %g, 0 or more is possible",
                         (double) h->temperature);
    }

    if (!(h->top_p > 0 && h->top_p <= 1)) {
        return dsa_error(err, "top_p is %g, above 0 and at most 1 is possible",
                         (double) h->top_p);
    }

    if (!(fabsf(h->frequency_penalty) <= DSA_MAX_PENALTY)) {
        return dsa_error(err, "frequency_penalty is %g, -%d to %d is possible",
                         (double) h->frequency_penalty, DSA_MAX_PENALTY,
                         DSA_MAX_PENALTY);
    }

    if (!(fabsf(h->presence_penalty) <= DSA_MAX_PENALTY)) {
        return dsa_error(err, "presence_penalty is %g, -%d to %d is possible",
                         (double) h->presence_penalty, DSA_MAX_PENALTY,
                         DSA_MAX_PENALTY);
    }

    return DSA_OK;
}


/* Takes { dsa_link_run_t, bytes, padding } from the front of rest. */

static int
dsa_submit_run(dsa_str_t *rest, dsa_str_t *bytes, uint32_t *kind,
    dsa_err_t *err)
{
    size_t          size;
    dsa_link_run_t  run;

    *kind = 0;

    if (rest->len < sizeof(run)) {
        return dsa_error(err, "a submit ends before its last part");
    }

    memcpy(&run, rest->data, sizeof(run));
    size = (size_t) dsa_link_pad(run.length, 8);

    if (size > rest->len - sizeof(run)) {
        return dsa_error(err, "a part of %u bytes where %zu are left",
                         run.length, rest->len - sizeof(run));
    }

    *bytes = dsa_str(rest->data + sizeof(run), run.length);
    *kind = run.kind;

    rest->data += sizeof(run) + size;
    rest->len -= sizeof(run) + size;

    return DSA_OK;
}


static int
dsa_submit_special(const dsa_tokenizer_t *t, dsa_str_t name, uint32_t max,
    dsa_tokens_t *out, dsa_err_t *err)
{
    char     text[DSA_SUBMIT_NAME];
    size_t   n;
    int64_t  id;

    id = dsa_tokenizer_special(t, name);

    if (id < 0) {

        /* the worker logs the error, and a client may have made the name */

        n = dsa_escape(text, sizeof(text), name.data, name.len);

        return dsa_error(err, "the tokenizer has no special token \"%.*s\"",
                         (int) n, text);
    }

    if (out->n >= max) {
        return DSA_AGAIN;
    }

    return dsa_tokens_push(out, (uint32_t) id) == DSA_OK
           ? DSA_OK : dsa_error(err, "out of memory");
}


static int
dsa_submit_utf8(dsa_str_t s)
{
    return dsa_utf8_prefix((const uint8_t *) s.data, s.len) == s.len;
}
