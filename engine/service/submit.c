
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <string.h>

#include "base/escape.h"
#include "base/utf8.h"
#include "engine/service/sampling.h"
#include "engine/service/submit.h"
#include "grammar/grammar.h"


#define DSA_SUBMIT_FLAGS  (DSA_LINK_IGNORE_EOS|DSA_LINK_PRIVATE               \
                           |DSA_LINK_THINKING|DSA_LINK_LOW|DSA_LINK_HIGH      \
                           |DSA_LINK_WHOLE|DSA_LINK_SAMPLES|DSA_SUBMIT_ROWS)

/* only together with DSA_LINK_SAMPLES */
#define DSA_SUBMIT_ROWS   (DSA_LINK_KEPT|DSA_LINK_EXPERTS|DSA_LINK_PROMPT)

#define DSA_SUBMIT_NAME   100           /* bytes of a name in an error */


_Static_assert(DSA_LINK_MAX_GRAMMAR == DSA_GRAMMAR_SPEC,
               "each spec that a record can have can be compiled");


static int dsa_submit_head(dsa_submit_t *out, dsa_str_t *rest,
    dsa_err_t *err);
static int dsa_submit_check(const dsa_link_submit_t *h, dsa_err_t *err);
static int dsa_submit_weight(uint32_t weight, dsa_err_t *err);
static int dsa_submit_next(dsa_str_t *rest, dsa_str_t *bytes, uint32_t *type,
    dsa_err_t *err);
static int dsa_submit_field(dsa_submit_t *out, uint32_t i, uint32_t type,
    dsa_str_t bytes, dsa_err_t *err);
static int dsa_submit_stop(dsa_submit_t *out, dsa_str_t bytes,
    dsa_err_t *err);
static int dsa_submit_resume(dsa_submit_t *out, dsa_str_t bytes,
    dsa_err_t *err);
static int dsa_submit_grammar(dsa_submit_t *out, dsa_str_t bytes,
    dsa_err_t *err);
static int dsa_submit_bias(dsa_submit_t *out, dsa_str_t bytes,
    dsa_err_t *err);
static int dsa_submit_request(dsa_submit_t *out, dsa_str_t bytes,
    dsa_err_t *err);
static int dsa_submit_name(dsa_str_t *name, dsa_str_t bytes, const char *what,
    dsa_err_t *err);
static int dsa_submit_control(const dsa_tokenizer_t *t, dsa_str_t name,
    uint32_t max, dsa_tokens_t *out, dsa_err_t *err);


int
dsa_submit_decode(dsa_submit_t *out, dsa_link_type_e type, const void *copy,
    size_t len, dsa_err_t *err)
{
    uint32_t   i, kind;
    dsa_str_t  rest, bytes;

    memset(out, 0, sizeof(dsa_submit_t));

    out->type = type;
    rest = dsa_str(copy, len);

    if (dsa_submit_head(out, &rest, err) != DSA_OK) {
        return DSA_ERROR;
    }

    out->fields = rest;

    /*
     * a field has at least 8 bytes, so the length bounds the loop whatever
     * n_fields is
     */

    for (i = 0; i < out->n_fields; i++) {
        if (dsa_submit_next(&rest, &bytes, &kind, err) != DSA_OK
            || dsa_submit_field(out, i, kind, bytes, err) != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    if (rest.len != 0) {
        return dsa_error(err, "%zu bytes follow the last field", rest.len);
    }

    return DSA_OK;
}


int
dsa_submit_tokenize(const dsa_submit_t *s, const dsa_tokenizer_t *t,
    dsa_tokenizer_work_t *w, uint32_t max, dsa_tokens_t *out, dsa_err_t *err)
{
    int        rc;
    uint32_t   i, type;
    dsa_str_t  rest, bytes;

    rest = s->fields;

    for (i = 0; i < s->n_fields; i++) {

        if (dsa_submit_next(&rest, &bytes, &type, err) != DSA_OK) {
            return DSA_ERROR;
        }

        rc = DSA_OK;

        if (type == DSA_LINK_FIELD_TEXT) {
            rc = dsa_tokenize(t, w, bytes, max, out, err);

        } else if (type == DSA_LINK_FIELD_CONTROL) {
            rc = dsa_submit_control(t, bytes, max, out, err);
        }

        if (rc != DSA_OK) {
            return rc;
        }
    }

    if (out->n == 0) {
        return dsa_error(err, "the prompt is empty");
    }

    return DSA_OK;
}


uint32_t
dsa_submit_vocabulary(const dsa_submit_t *s, const dsa_tokenizer_t *t)
{
    uint32_t  i, bits;

    bits = 0;

    for (i = 0; i < s->n_query; i++) {
        if (dsa_tokenizer_special(t, s->query[i]) >= 0) {
            bits |= 1U << i;
        }
    }

    return bits;
}


/* Moves the fixed header from the front of rest to out. */

static int
dsa_submit_head(dsa_submit_t *out, dsa_str_t *rest, dsa_err_t *err)
{
    size_t            size;
    dsa_link_count_t  count;

    size = out->type == DSA_LINK_COUNT ? sizeof(dsa_link_count_t)
                                       : sizeof(dsa_link_submit_t);

    if (rest->len < size) {
        return dsa_error(err, "the record has %zu bytes; expected at least "
                         "%zu", rest->len, size);
    }

    if (out->type == DSA_LINK_COUNT) {
        memcpy(&count, rest->data, sizeof(count));
        out->n_fields = count.n_fields;

        if (dsa_submit_weight(count.weight, err) != DSA_OK) {
            return DSA_ERROR;
        }

    } else {
        memcpy(&out->head, rest->data, sizeof(out->head));
        out->n_fields = out->head.n_fields;

        if (dsa_submit_check(&out->head, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    if (out->n_fields == 0) {
        return dsa_error(err, "the prompt is empty");
    }

    rest->data += size;
    rest->len -= size;

    return DSA_OK;
}


static int
dsa_submit_check(const dsa_link_submit_t *h, dsa_err_t *err)
{
    if ((h->flags & ~DSA_SUBMIT_FLAGS) != 0) {
        return dsa_error(err, "flags 0x%x are unknown",
                         h->flags & ~DSA_SUBMIT_FLAGS);
    }

    if ((h->flags & DSA_LINK_LOW) != 0 && (h->flags & DSA_LINK_HIGH) != 0) {
        return dsa_error(err, "flags 0x%x and 0x%x are both set; expected one "
                         "of them, or none", DSA_LINK_LOW, DSA_LINK_HIGH);
    }

    if (h->thinking_budget != 0 && (h->flags & DSA_LINK_THINKING) == 0) {
        return dsa_error(err, "thinking_budget is %u, but flag 0x%x is not "
                         "set; expected 0 for an answer without reasoning",
                         h->thinking_budget, DSA_LINK_THINKING);
    }

    if ((h->flags & DSA_SUBMIT_ROWS) != 0
        && (h->flags & DSA_LINK_SAMPLES) == 0)
    {
        return dsa_error(err, "flags 0x%x are set without 0x%x",
                         h->flags & DSA_SUBMIT_ROWS, DSA_LINK_SAMPLES);
    }

    if (h->reserved != 0) {
        return dsa_error(err, "the reserved word is 0x%x; expected 0",
                         h->reserved);
    }

    if (dsa_submit_weight(h->weight, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_sampling_check(&h->sampling, err);
}


static int
dsa_submit_weight(uint32_t weight, dsa_err_t *err)
{
    if (weight == 0 || weight > DSA_LINK_MAX_WEIGHT) {
        return dsa_error(err, "weight is %u; expected 1 to %d", weight,
                         DSA_LINK_MAX_WEIGHT);
    }

    return DSA_OK;
}


/* Moves { dsa_link_field_t, bytes, padding } from the front of rest. */

static int
dsa_submit_next(dsa_str_t *rest, dsa_str_t *bytes, uint32_t *type,
    dsa_err_t *err)
{
    size_t            size;
    dsa_link_field_t  field;

    *type = 0;

    if (rest->len < sizeof(field)) {
        return dsa_error(err, "the record ends before its last field");
    }

    memcpy(&field, rest->data, sizeof(field));
    size = (size_t) dsa_link_pad(field.length, 8);

    if (size > rest->len - sizeof(field)) {
        return dsa_error(err, "a field has %u bytes, but only %zu bytes are "
                         "left", field.length, rest->len - sizeof(field));
    }

    *bytes = dsa_str(rest->data + sizeof(field), field.length);
    *type = field.type;

    rest->data += sizeof(field) + size;
    rest->len -= sizeof(field) + size;

    return DSA_OK;
}


static int
dsa_submit_field(dsa_submit_t *out, uint32_t i, uint32_t type,
    dsa_str_t bytes, dsa_err_t *err)
{
    if (out->type == DSA_LINK_COUNT
        && (type == DSA_LINK_FIELD_STOP || type == DSA_LINK_FIELD_RESUME
            || type == DSA_LINK_FIELD_BIAS
            || type == DSA_LINK_FIELD_REQUEST
            || type == DSA_LINK_FIELD_TRACE
            || type == DSA_LINK_FIELD_CLIENT))
    {
        return dsa_error(err, "field %u has type %u, which is not allowed in "
                         "a count", i, type);
    }

    switch (type) {

    case DSA_LINK_FIELD_TEXT:
    case DSA_LINK_FIELD_CONTROL:
        return DSA_OK;

    case DSA_LINK_FIELD_STOP:
        return dsa_submit_stop(out, bytes, err);

    case DSA_LINK_FIELD_RESUME:
        return dsa_submit_resume(out, bytes, err);

    case DSA_LINK_FIELD_QUERY:
        if (out->n_query == DSA_LINK_MAX_QUERIES) {
            return dsa_error(err, "there are more than %d queries",
                             DSA_LINK_MAX_QUERIES);
        }

        out->query[out->n_query++] = bytes;

        return DSA_OK;

    case DSA_LINK_FIELD_GRAMMAR:
        return dsa_submit_grammar(out, bytes, err);

    case DSA_LINK_FIELD_BIAS:
        return dsa_submit_bias(out, bytes, err);

    case DSA_LINK_FIELD_REQUEST:
        return dsa_submit_request(out, bytes, err);

    case DSA_LINK_FIELD_TRACE:
        return dsa_submit_name(&out->trace, bytes, "traceparent", err);

    case DSA_LINK_FIELD_CLIENT:
        return dsa_submit_name(&out->client, bytes, "the client's id", err);
    }

    return dsa_error(err, "field %u has type %u, which is unknown", i, type);
}


static int
dsa_submit_stop(dsa_submit_t *out, dsa_str_t bytes, dsa_err_t *err)
{
    if (out->n_stop == DSA_LINK_MAX_STOP) {
        return dsa_error(err, "there are more than %d stop strings",
                         DSA_LINK_MAX_STOP);
    }

    if (bytes.len == 0 || bytes.len > DSA_LINK_MAX_STOP_LEN
        || dsa_utf8_prefix((const uint8_t *) bytes.data, bytes.len)
           != bytes.len)
    {
        return dsa_error(err, "stop string %u is not 1 to %d bytes of UTF-8",
                         out->n_stop, DSA_LINK_MAX_STOP_LEN);
    }

    out->stop[out->n_stop++] = bytes;

    return DSA_OK;
}


static int
dsa_submit_resume(dsa_submit_t *out, dsa_str_t bytes, dsa_err_t *err)
{
    if (out->resume != NULL) {
        return dsa_error(err, "there is more than one field of tokens to "
                         "resume from");
    }

    if (bytes.len % sizeof(uint32_t) != 0) {
        return dsa_error(err, "the tokens to resume from have %zu bytes; "
                         "expected a multiple of 4", bytes.len);
    }

    /* fields are aligned to 8, as the copy is */

    out->resume = (const uint32_t *) (const void *) bytes.data;
    out->n_resume = (uint32_t) (bytes.len / sizeof(uint32_t));

    return DSA_OK;
}


static int
dsa_submit_grammar(dsa_submit_t *out, dsa_str_t bytes, dsa_err_t *err)
{
    if (out->grammar.data != NULL) {
        return dsa_error(err, "there is more than one grammar");
    }

    if (bytes.len == 0 || bytes.len > DSA_LINK_MAX_GRAMMAR) {
        return dsa_error(err, "the grammar has %zu bytes; expected 1 to %u",
                         bytes.len, DSA_LINK_MAX_GRAMMAR);
    }

    if ((out->head.flags & DSA_LINK_IGNORE_EOS) != 0) {
        return dsa_error(err, "flag 0x%x, which ignores end tokens, is set "
                         "beside a grammar, whose answer ends with one",
                         DSA_LINK_IGNORE_EOS);
    }

    out->grammar = bytes;

    return DSA_OK;
}


static int
dsa_submit_bias(dsa_submit_t *out, dsa_str_t bytes, dsa_err_t *err)
{
    uint32_t           i;
    const dsa_bias_t  *b;

    if (out->biases.bias != NULL) {
        return dsa_error(err, "there is more than one field of biases");
    }

    if (bytes.len == 0 || bytes.len % sizeof(dsa_bias_t) != 0
        || bytes.len / sizeof(dsa_bias_t) > DSA_SAMPLE_MAX_BIAS)
    {
        return dsa_error(err, "the biases have %zu bytes; expected 1 to %d "
                         "entries of %zu bytes", bytes.len,
                         DSA_SAMPLE_MAX_BIAS, sizeof(dsa_bias_t));
    }

    /* fields are aligned to 8, as the copy is */

    out->biases.bias = (const dsa_bias_t *) (const void *) bytes.data;
    out->biases.n = (uint32_t) (bytes.len / sizeof(dsa_bias_t));

    for (i = 0; i < out->biases.n; i++) {
        b = &out->biases.bias[i];

        /* false for NaN */

        if (!(fabsf(b->bias) <= DSA_SAMPLE_FORCE)) {
            return dsa_error(err, "the bias of id %u is %g; expected -%d to "
                             "%d", b->id, (double) b->bias, DSA_SAMPLE_FORCE,
                             DSA_SAMPLE_FORCE);
        }
    }

    return DSA_OK;
}


/*
 * Checks the request's id, which is written to the log and to the journal
 * unchanged.
 */

static int
dsa_submit_request(dsa_submit_t *out, dsa_str_t bytes, dsa_err_t *err)
{
    size_t         i;
    unsigned char  c;

    if (out->request.data != NULL) {
        return dsa_error(err, "there is more than one id of the request");
    }

    if (bytes.len == 0 || bytes.len > DSA_LINK_MAX_REQUEST) {
        return dsa_error(err, "the id of the request has %zu bytes; expected "
                         "1 to %d", bytes.len, DSA_LINK_MAX_REQUEST);
    }

    for (i = 0; i < bytes.len; i++) {
        c = (unsigned char) bytes.data[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z')
            && !(c >= '0' && c <= '9') && c != '-' && c != '_')
        {
            return dsa_error(err, "byte %zu of the id of the request is 0x%x; "
                             "expected a letter, a digit, \"-\" or \"_\"", i,
                             (unsigned) c);
        }
    }

    out->request = bytes;

    return DSA_OK;
}


/*
 * Checks a name that a client has given to its request, which is written to
 * the log and to the journal unchanged; what: for errors.
 */

static int
dsa_submit_name(dsa_str_t *name, dsa_str_t bytes, const char *what,
    dsa_err_t *err)
{
    size_t         i;
    unsigned char  c;

    if (name->data != NULL) {
        return dsa_error(err, "there is more than one field of %s", what);
    }

    if (bytes.len == 0 || bytes.len > DSA_LINK_MAX_TRACE) {
        return dsa_error(err, "%s has %zu bytes; expected 1 to %d", what,
                         bytes.len, DSA_LINK_MAX_TRACE);
    }

    for (i = 0; i < bytes.len; i++) {
        c = (unsigned char) bytes.data[i];

        if (c <= 0x20 || c >= 0x7f || c == '"' || c == '\\') {
            return dsa_error(err, "byte %zu of %s is 0x%x; expected a graphic "
                             "character of ASCII, but not a quote or a "
                             "backslash", i, what, (unsigned) c);
        }
    }

    *name = bytes;

    return DSA_OK;
}


static int
dsa_submit_control(const dsa_tokenizer_t *t, dsa_str_t name, uint32_t max,
    dsa_tokens_t *out, dsa_err_t *err)
{
    char     text[DSA_SUBMIT_NAME];
    size_t   n;
    int64_t  id;

    id = dsa_tokenizer_special(t, name);

    if (id < 0) {

        /* the worker logs this error, and the name may be from a client */

        n = dsa_escape(text, sizeof(text), name.data, name.len);

        return dsa_error(err, "the tokenizer has no control token \"%.*s\"",
                         (int) n, text);
    }

    if (out->n >= max) {
        return DSA_AGAIN;
    }

    return dsa_tokens_push(out, (uint32_t) id) == DSA_OK
           ? DSA_OK : dsa_error(err, "out of memory");
}
