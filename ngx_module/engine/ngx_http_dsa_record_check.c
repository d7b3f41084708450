
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/link_rollout.h"

#include "ngx_http_dsa_record_check.h"


#define NGX_HTTP_DSA_PATH_MAX     255       /* bytes of a failure's path */


static int ngx_http_dsa_check_accepted(ngx_http_dsa_expect_t *e,
    const void *payload, uint32_t length, ngx_http_dsa_wrong_t *w);
static uint32_t ngx_http_dsa_check_most(const ngx_http_dsa_expect_t *e);
static int ngx_http_dsa_check_tokens(ngx_http_dsa_expect_t *e,
    const uint8_t *p, uint32_t length, ngx_http_dsa_wrong_t *w);
static int ngx_http_dsa_check_list(const ngx_http_dsa_expect_t *e,
    const dsa_link_tokens_t *tokens, const uint8_t *p, const uint8_t *text,
    ngx_http_dsa_wrong_t *w);
static int ngx_http_dsa_check_boundary(const dsa_link_tokens_t *tokens,
    const uint8_t *text, uint32_t at, const char *field, uint32_t value,
    ngx_http_dsa_wrong_t *w);
static int ngx_http_dsa_check_logprobs(const ngx_http_dsa_expect_t *e,
    const dsa_link_tokens_t *tokens, const uint8_t *p,
    ngx_http_dsa_wrong_t *w);
static int ngx_http_dsa_check_rows(const ngx_http_dsa_expect_t *e,
    const uint8_t *p, uint32_t length, ngx_http_dsa_wrong_t *w);
static int ngx_http_dsa_check_row(const ngx_http_dsa_expect_t *e,
    const dsa_link_row_t *row, const uint8_t *data, ngx_http_dsa_wrong_t *w);
static int ngx_http_dsa_check_done(const ngx_http_dsa_expect_t *e,
    const void *payload, uint32_t length, ngx_http_dsa_wrong_t *w);
static int ngx_http_dsa_check_drafts(const dsa_link_done_t *done,
    ngx_http_dsa_wrong_t *w);
static int ngx_http_dsa_check_cached(const dsa_link_done_t *done,
    ngx_http_dsa_wrong_t *w);
static int ngx_http_dsa_check_error(const ngx_http_dsa_expect_t *e,
    const void *payload, uint32_t length, ngx_http_dsa_wrong_t *w);
static int ngx_http_dsa_check_counted(const void *payload, uint32_t length,
    ngx_http_dsa_wrong_t *w);
static int ngx_http_dsa_check_state(const ngx_http_dsa_expect_t *e,
    ngx_http_dsa_wrong_t *w);


void
ngx_http_dsa_expect(ngx_http_dsa_expect_t *e, const dsa_link_submit_t *head,
    uint32_t context, uint32_t ids)
{
    memset(e, 0, sizeof(ngx_http_dsa_expect_t));

    e->context = context;
    e->ids = ids;
    e->count = head == NULL;

    if (head != NULL) {
        e->max_tokens = head->max_tokens;
        e->top = (uint8_t) head->sampling.top_logprobs;
        e->logprobs = head->sampling.logprobs != 0;
        e->samples = (head->flags & DSA_LINK_SAMPLES) != 0;
    }
}


void
ngx_http_dsa_expect_field(ngx_http_dsa_expect_t *e, dsa_link_field_e type,
    size_t len)
{
    switch (type) {

    case DSA_LINK_FIELD_STOP:
        e->stops++;
        return;

    case DSA_LINK_FIELD_QUERY:
        e->vocabulary = e->vocabulary << 1 | 1;
        return;

    case DSA_LINK_FIELD_RESUME:
        e->resume = (uint32_t) (len / sizeof(uint32_t));
        return;

    case DSA_LINK_FIELD_GRAMMAR:
        e->grammar = 1;
        return;

    case DSA_LINK_FIELD_BIAS:
        e->bias = 1;
        return;

    default:
        return;
    }
}


int
ngx_http_dsa_record_check(ngx_http_dsa_expect_t *e, uint32_t type,
    const void *payload, uint32_t length, ngx_http_dsa_wrong_t *w)
{
    w->name = ngx_http_dsa_record_name(type);

    if (e->count && type != DSA_LINK_COUNTED && type != DSA_LINK_DONE
        && type != DSA_LINK_ERROR)
    {
        return ngx_http_dsa_wrong(w, "type", "of type %u as the answer to "
                                  "COUNT, expected COUNTED, DONE or ERROR",
                                  type);
    }

    switch (type) {

    case DSA_LINK_ACCEPTED:
        return ngx_http_dsa_check_accepted(e, payload, length, w);

    case DSA_LINK_TOKENS:
        return ngx_http_dsa_check_tokens(e, payload, length, w);

    case DSA_LINK_ROLLOUT:
        return ngx_http_dsa_check_rows(e, payload, length, w);

    case DSA_LINK_DONE:
        return ngx_http_dsa_check_done(e, payload, length, w);

    case DSA_LINK_ERROR:
        return ngx_http_dsa_check_error(e, payload, length, w);

    case DSA_LINK_COUNTED:

        if (e->count) {
            return ngx_http_dsa_check_counted(payload, length, w);
        }

        /* fall through */

    default:
        return ngx_http_dsa_wrong(w, "type", "of type %u as the answer to "
                                  "SUBMIT, expected ACCEPTED, TOKENS, ROLLOUT, "
                                  "DONE or ERROR", type);
    }
}


static int
ngx_http_dsa_check_accepted(ngx_http_dsa_expect_t *e, const void *payload,
    uint32_t length, ngx_http_dsa_wrong_t *w)
{
    dsa_link_accepted_t  accepted;

    if (e->accepted) {
        return ngx_http_dsa_wrong(w, "order", "once more, expected one");
    }

    if (ngx_http_dsa_wrong_range(w, "length", length, sizeof(accepted),
                                 sizeof(accepted))
        != 0)
    {
        return -1;
    }

    memcpy(&accepted, payload, sizeof(accepted));

    /* there is room for the tokens to resume from, and for one at least */

    if (ngx_http_dsa_wrong_range(w, "prompt_tokens", accepted.prompt_tokens, 1,
                                 e->context - (e->resume != 0 ? e->resume : 1))
        != 0
        || ngx_http_dsa_wrong_range(w, "cached_tokens", accepted.cached_tokens,
                                    0, accepted.prompt_tokens)
           != 0
        || ngx_http_dsa_wrong_range(w, "conditions", accepted.conditions, 0,
                                    e->grammar ? UINT16_MAX : 0)
           != 0
        || ngx_http_dsa_wrong_range(w, "schemas", accepted.schemas, 0,
                                    e->grammar ? UINT16_MAX : 0)
           != 0)
    {
        return -1;
    }

    if ((accepted.vocabulary & ~e->vocabulary) != 0) {
        return ngx_http_dsa_wrong(w, "vocabulary", "with vocabulary 0x%x, "
                                  "expected bits of 0x%x", accepted.vocabulary,
                                  e->vocabulary);
    }

    e->accepted = 1;
    e->prompt = accepted.prompt_tokens;

    return 0;
}


int
ngx_http_dsa_expect_reduced(const ngx_http_dsa_expect_t *e)
{
    return e->max_tokens == 0 || e->max_tokens > e->context - e->prompt;
}


/* The most tokens of the answer that this engine may compute. */

static uint32_t
ngx_http_dsa_check_most(const ngx_http_dsa_expect_t *e)
{
    uint32_t  most;

    most = ngx_http_dsa_expect_reduced(e) ? e->context - e->prompt
                                          : e->max_tokens;

    return most > e->resume ? most - e->resume : 0;
}


static int
ngx_http_dsa_check_tokens(ngx_http_dsa_expect_t *e, const uint8_t *p,
    uint32_t length, ngx_http_dsa_wrong_t *w)
{
    uint64_t            size;
    dsa_link_tokens_t   tokens;

    if (ngx_http_dsa_check_state(e, w) != 0
        || ngx_http_dsa_wrong_range(w, "length", length, sizeof(tokens),
                                    UINT32_MAX)
           != 0)
    {
        return -1;
    }

    memcpy(&tokens, p, sizeof(tokens));

    /* text without a token may come with or without them */

    if (ngx_http_dsa_wrong_range(w, "logprobs", tokens.logprobs,
                                 tokens.n_tokens != 0 ? e->logprobs : 0,
                                 e->logprobs)
        != 0
        || ngx_http_dsa_wrong_range(w, "n_top", tokens.n_top, 0,
                                    tokens.logprobs ? e->top : 0)
           != 0
        || ngx_http_dsa_wrong_range(w, "n_tokens", tokens.n_tokens, 0,
                                    ngx_http_dsa_check_most(e) - e->sent)
           != 0)
    {
        return -1;
    }

    size = sizeof(tokens) + (uint64_t) tokens.n_tokens
                            * sizeof(dsa_link_token_t);

    if (tokens.logprobs) {
        size += (uint64_t) tokens.n_tokens * (1 + tokens.n_top)
                * sizeof(dsa_link_logprob_t);
    }

    if (ngx_http_dsa_wrong_range(w, "length", length, size + tokens.text_len,
                                 size + tokens.text_len)
        != 0)
    {
        return -1;
    }

    if (ngx_http_dsa_check_list(e, &tokens, p + sizeof(tokens), p + size, w)
        != 0)
    {
        return -1;
    }

    p += sizeof(tokens) + (size_t) tokens.n_tokens * sizeof(dsa_link_token_t);

    if (tokens.logprobs
        && ngx_http_dsa_check_logprobs(e, &tokens, p, w) != 0)
    {
        return -1;
    }

    e->sent += tokens.n_tokens;

    return 0;
}


/* Tokens and names of control tokens end where characters do. */

static int
ngx_http_dsa_check_list(const ngx_http_dsa_expect_t *e,
    const dsa_link_tokens_t *tokens, const uint8_t *p, const uint8_t *text,
    ngx_http_dsa_wrong_t *w)
{
    size_t            len;
    uint32_t          i, last;
    dsa_link_token_t  token;

    len = dsa_utf8_prefix(text, tokens->text_len);

    if (len != tokens->text_len) {
        return ngx_http_dsa_wrong(w, "text", "with byte 0x%02x at %zu of its "
                                  "text, expected UTF-8", text[len], len);
    }

    last = 0;

    for (i = 0; i < tokens->n_tokens; i++) {
        memcpy(&token, p + (size_t) i * sizeof(token), sizeof(token));

        /* the last token ends where the text does */

        if (ngx_http_dsa_wrong_range(w, "id", token.id, 0, e->ids - 1) != 0
            || ngx_http_dsa_wrong_range(w, "end", token.end,
                                        i == tokens->n_tokens - 1
                                        ? tokens->text_len : last,
                                        tokens->text_len)
               != 0
            || ngx_http_dsa_check_boundary(tokens, text, token.end, "end",
                                           token.end, w)
               != 0
            || ngx_http_dsa_wrong_range(w, "control", token.control, 0,
                                        token.end - last)
               != 0
            || ngx_http_dsa_check_boundary(tokens, text,
                                           token.end - token.control,
                                           "control", token.control, w)
               != 0)
        {
            return -1;
        }

        last = token.end;
    }

    return 0;
}


static int
ngx_http_dsa_check_boundary(const dsa_link_tokens_t *tokens,
    const uint8_t *text, uint32_t at, const char *field, uint32_t value,
    ngx_http_dsa_wrong_t *w)
{
    if (at < tokens->text_len && (text[at] & 0xc0) == 0x80) {
        return ngx_http_dsa_wrong(w, field, "with %s %u, which is inside a "
                                  "character, expected one between two",
                                  field, value);
    }

    return 0;
}


static int
ngx_http_dsa_check_logprobs(const ngx_http_dsa_expect_t *e,
    const dsa_link_tokens_t *tokens, const uint8_t *p,
    ngx_http_dsa_wrong_t *w)
{
    size_t              i, n;
    dsa_link_logprob_t  entry;

    n = (size_t) tokens->n_tokens * (1 + tokens->n_top);

    for (i = 0; i < n; i++) {
        memcpy(&entry, p + i * sizeof(entry), sizeof(entry));

        if (ngx_http_dsa_wrong_range(w, "token", entry.token, 0, e->ids - 1)
            != 0)
        {
            return -1;
        }

        if (!isfinite(entry.logprob)) {
            return ngx_http_dsa_wrong(w, "logprob", "with logprob %f, expected "
                                      "a finite number",
                                      (double) entry.logprob);
        }
    }

    return 0;
}


static int
ngx_http_dsa_check_rows(const ngx_http_dsa_expect_t *e, const uint8_t *p,
    uint32_t length, ngx_http_dsa_wrong_t *w)
{
    uint32_t         at;
    dsa_link_row_t   row;

    if (!e->samples) {
        return ngx_http_dsa_wrong(w, "type", "of type %u without "
                                  "DSA_LINK_SAMPLES, expected ACCEPTED, "
                                  "TOKENS, DONE or ERROR", DSA_LINK_ROLLOUT);
    }

    if (ngx_http_dsa_check_state(e, w) != 0) {
        return -1;
    }

    if (dsa_link_rows_check(p, length) != 0) {
        return ngx_http_dsa_wrong(w, "length", "with rows that do not fill its "
                                  "length %u, expected rows of 20 to %d bytes, "
                                  "in multiples of 4", length,
                                  DSA_LINK_MAX_ROW);
    }

    for (at = 0; at < length; at += row.length) {
        memcpy(&row, p + at, sizeof(row));

        if (ngx_http_dsa_check_row(e, &row, p + at + sizeof(row), w) != 0) {
            return -1;
        }
    }

    return 0;
}


/*
 * The header of a row, and whether its data has the length that the header
 * requires.  The data goes to the client as it is.
 */

static int
ngx_http_dsa_check_row(const ngx_http_dsa_expect_t *e,
    const dsa_link_row_t *row, const uint8_t *data, ngx_http_dsa_wrong_t *w)
{
    uint16_t  experts[2];
    uint32_t  most;
    uint64_t  size;

    if (ngx_http_dsa_wrong_range(w, "row.position", row->position, 0,
                                 e->context - 1)
        != 0)
    {
        return -1;
    }

    size = sizeof(dsa_link_row_t);
    most = e->context - row->position;

    switch (row->type) {

    case DSA_LINK_ROW_PROMPT:

        if (ngx_http_dsa_wrong_range(w, "row.form", row->form, 0, 0) != 0
            || ngx_http_dsa_wrong_range(w, "row.n", row->n, 1, most) != 0)
        {
            return -1;
        }

        size += (uint64_t) row->n * sizeof(uint32_t);
        break;

    case DSA_LINK_ROW_EXPERTS:
        size += sizeof(experts);

        if (ngx_http_dsa_wrong_range(w, "row.form", row->form, 1, 2) != 0
            || ngx_http_dsa_wrong_range(w, "row.n", row->n, 1,
                                        most < DSA_LINK_MAX_ROW
                                        ? most : DSA_LINK_MAX_ROW)
               != 0
            || ngx_http_dsa_wrong_range(w, "row.length", row->length, size,
                                        DSA_LINK_MAX_ROW)
               != 0)
        {
            return -1;
        }

        memcpy(experts, data, sizeof(experts));

        if (ngx_http_dsa_wrong_range(w, "row.layers", experts[0], 1, UINT16_MAX)
            != 0
            || ngx_http_dsa_wrong_range(w, "row.k", experts[1], 1, UINT16_MAX)
               != 0)
        {
            return -1;
        }

        size += dsa_link_pad((uint64_t) row->n * experts[0] * experts[1]
                             * row->form, 4);
        break;

    case DSA_LINK_ROW_SAMPLE:

        if (ngx_http_dsa_wrong_range(w, "row.form", row->form,
                                     DSA_LINK_KEPT_NONE, DSA_LINK_KEPT_BITS)
            != 0)
        {
            return -1;
        }

        size += sizeof(dsa_link_sampled_t);

        if (row->form >= DSA_LINK_KEPT_GAPS) {
            return ngx_http_dsa_wrong_range(w, "row.n", row->n, 1, e->ids) != 0
                   || ngx_http_dsa_wrong_range(w, "row.length", row->length,
                                               size + 4, DSA_LINK_MAX_ROW)
                      != 0
                   ? -1 : 0;
        }

        if (ngx_http_dsa_wrong_range(w, "row.n", row->n, 0, 0) != 0) {
            return -1;
        }

        break;

    default:
        return ngx_http_dsa_wrong_range(w, "row.type", row->type,
                                        DSA_LINK_ROW_PROMPT,
                                        DSA_LINK_ROW_SAMPLE);
    }

    return ngx_http_dsa_wrong_range(w, "row.length", row->length, size, size);
}


static int
ngx_http_dsa_check_done(const ngx_http_dsa_expect_t *e, const void *payload,
    uint32_t length, ngx_http_dsa_wrong_t *w)
{
    dsa_link_done_t  done;

    if (ngx_http_dsa_wrong_range(w, "length", length, sizeof(done),
                                 sizeof(done))
        != 0)
    {
        return -1;
    }

    memcpy(&done, payload, sizeof(done));

    /* a count that ends with DONE was cancelled */

    if (ngx_http_dsa_wrong_range(w, "finish", done.finish,
                                 e->count ? DSA_LINK_FINISH_CANCELLED
                                          : DSA_LINK_FINISH_STOP,
                                 e->count ? DSA_LINK_FINISH_CANCELLED
                                          : DSA_LINK_FINISH_DEADLINE)
        != 0)
    {
        return -1;
    }

    /* nothing is computed for a request that is not accepted */

    if ((done.finish == DSA_LINK_FINISH_STOP
         || done.finish == DSA_LINK_FINISH_LENGTH)
        && ngx_http_dsa_check_state(e, w) != 0)
    {
        return -1;
    }

    return ngx_http_dsa_wrong_range(w, "prompt_tokens", done.prompt_tokens, 0,
                                    e->prompt)
           != 0
           || ngx_http_dsa_check_cached(&done, w) != 0
           || ngx_http_dsa_wrong_range(w, "completion_tokens",
                                       done.completion_tokens, e->sent,
                                       e->accepted ? ngx_http_dsa_check_most(e)
                                                   : 0)
              != 0
           || ngx_http_dsa_check_drafts(&done, w) != 0
           || ngx_http_dsa_wrong_range(w, "stop", done.stop, 0,
                                       done.finish == DSA_LINK_FINISH_STOP
                                       ? e->stops : 0)
              != 0
           ? -1 : 0;
}


/* Each tier has a part of the prompt that the tiers before it leave. */

static int
ngx_http_dsa_check_cached(const dsa_link_done_t *done, ngx_http_dsa_wrong_t *w)
{
    uint32_t  i, left;

    left = done->prompt_tokens;

    for (i = 0; i < DSA_TIERS; i++) {
        if (ngx_http_dsa_wrong_range(w, dsa_tier_names[i].tokens,
                                     done->cached_tokens[i], 0, left)
            != 0)
        {
            return -1;
        }

        left -= done->cached_tokens[i];
    }

    return 0;
}


/* Each step that verifies drafts has a completion token of its own. */

static int
ngx_http_dsa_check_drafts(const dsa_link_done_t *done, ngx_http_dsa_wrong_t *w)
{
    uint64_t  most;

    most = (uint64_t) DSA_LINK_DRAFTS * done->completion_tokens;

    if (ngx_http_dsa_wrong_range(w, "draft_tokens", done->draft_tokens, 0,
                                 most)
        != 0)
    {
        return -1;
    }

    most = done->draft_tokens < done->completion_tokens
           ? done->draft_tokens : done->completion_tokens;

    return ngx_http_dsa_wrong_range(w, "accepted_tokens",
                                    done->accepted_tokens, 0, most);
}


/* The text may have any bytes, which logs and answers replace. */

static int
ngx_http_dsa_check_error(const ngx_http_dsa_expect_t *e, const void *payload,
    uint32_t length, ngx_http_dsa_wrong_t *w)
{
    uint32_t            path;
    uint64_t            size;
    dsa_link_failure_t  failure;

    if (ngx_http_dsa_wrong_range(w, "length", length, sizeof(failure),
                                 UINT32_MAX)
        != 0)
    {
        return -1;
    }

    memcpy(&failure, payload, sizeof(failure));

    if ((failure.code != DSA_LINK_E_BIAS || !e->bias)
        && ngx_http_dsa_wrong_range(w, "code", failure.code,
                                    DSA_LINK_E_INVALID,
                                    e->grammar ? DSA_LINK_E_GRAMMAR
                                               : DSA_LINK_E_TENANT)
           != 0)
    {
        return -1;
    }

    /* what is wrong with a request is found before it is accepted */

    if (e->accepted && (failure.code == DSA_LINK_E_INVALID
                        || failure.code == DSA_LINK_E_CONTEXT
                        || failure.code >= DSA_LINK_E_GRAMMAR))
    {
        return ngx_http_dsa_wrong(w, "order", "with code %u after ACCEPTED, "
                                  "expected %u to %u", failure.code,
                                  DSA_LINK_E_OVERLOADED, DSA_LINK_E_TENANT);
    }

    path = failure.code == DSA_LINK_E_GRAMMAR ? NGX_HTTP_DSA_PATH_MAX : 0;
    size = sizeof(failure) + (uint64_t) failure.path_len + failure.text_len;

    return ngx_http_dsa_wrong_range(w, "prompt_tokens", failure.prompt_tokens,
                                    failure.code == DSA_LINK_E_CONTEXT,
                                    UINT32_MAX)
           != 0
           || ngx_http_dsa_wrong_range(w, "path_len", failure.path_len, 0,
                                       path)
              != 0
           || ngx_http_dsa_wrong_range(w, "length", length, size, size) != 0
           || ngx_http_dsa_wrong_range(w, "more", failure.more, 0, 1) != 0
           || ngx_http_dsa_wrong_range(w, "reserved", failure.reserved, 0, 0)
              != 0
           ? -1 : 0;
}


static int
ngx_http_dsa_check_counted(const void *payload, uint32_t length,
    ngx_http_dsa_wrong_t *w)
{
    dsa_link_counted_t  counted;

    if (ngx_http_dsa_wrong_range(w, "length", length, sizeof(counted),
                                 sizeof(counted))
        != 0)
    {
        return -1;
    }

    memcpy(&counted, payload, sizeof(counted));

    return ngx_http_dsa_wrong_range(w, "prompt_tokens", counted.prompt_tokens,
                                    1, UINT32_MAX)
           != 0
           || ngx_http_dsa_wrong_range(w, "more", counted.more, 0, 1) != 0
           ? -1 : 0;
}


/* Whether the request was accepted, as the record requires. */

static int
ngx_http_dsa_check_state(const ngx_http_dsa_expect_t *e,
    ngx_http_dsa_wrong_t *w)
{
    if (!e->accepted) {
        return ngx_http_dsa_wrong(w, "order", "before ACCEPTED, expected "
                                  "ACCEPTED or ERROR");
    }

    return 0;
}


const char *
ngx_http_dsa_record_name(uint32_t type)
{
    switch (type) {

    case DSA_LINK_ACCEPTED:
        return "ACCEPTED";

    case DSA_LINK_TOKENS:
        return "TOKENS";

    case DSA_LINK_ROLLOUT:
        return "ROLLOUT";

    case DSA_LINK_DONE:
        return "DONE";

    case DSA_LINK_ERROR:
        return "ERROR";

    case DSA_LINK_COUNTED:
        return "COUNTED";

    default:
        return "a record";
    }
}
