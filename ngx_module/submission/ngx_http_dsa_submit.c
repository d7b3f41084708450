
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <float.h>
#include <math.h>

#include "base/clock.h"
#include "context/compact.h"
#include "context/completion.h"

#include "ngx_module/engine/ngx_http_dsa_models.h"
#include "ngx_module/http/ngx_http_dsa_text.h"
#include "ngx_http_dsa_submit.h"


_Static_assert((int) DSA_SEGMENT_TEXT == (int) DSA_LINK_FIELD_TEXT
               && (int) DSA_SEGMENT_CONTROL == (int) DSA_LINK_FIELD_CONTROL,
               "segments of a prompt are fields of the link");
_Static_assert(DSA_CHAT_STOP <= DSA_LINK_MAX_STOP
               && DSA_CHAT_STOP_LEN <= DSA_LINK_MAX_STOP_LEN,
               "the link carries every stop string that a chat can have");
_Static_assert(NGX_HTTP_DSA_DIGEST_LEN
               == sizeof(((dsa_link_submit_t *) 0)->tenant),
               "the link carries the digest of a tenant");
_Static_assert((int) NGX_HTTP_DSA_DIGEST_LEN
               == (int) DSA_PROMPT_TENANT,
               "keys of prefixes include the digest of a tenant");
_Static_assert(DSA_FORMAT_SPEC == DSA_LINK_MAX_GRAMMAR,
               "the link carries the longest spec");
_Static_assert((int) DSA_CONTROL_TOKENS_MAX <= DSA_LINK_MAX_QUERIES,
               "the vocabulary of ACCEPTED has a bit for each control token");
_Static_assert((int) DSA_FAMILY_NAME
               == sizeof(((dsa_link_hello_t *) 0)->family),
               "a hello has the name of any family");


#define NGX_HTTP_DSA_CHAT_TOKENS    4096    /* default of max_tokens */
#define NGX_HTTP_DSA_THINK_TOKENS   32768
#define NGX_HTTP_DSA_PATH           512     /* bytes of the path and of the
                                               text of a refusal */


static ngx_int_t ngx_http_dsa_submit_fields(ngx_http_dsa_submit_t *submit);
static ngx_int_t ngx_http_dsa_submit_keys(ngx_http_dsa_submit_t *submit);
static ngx_uint_t ngx_http_dsa_submit_has_slots(
    const ngx_http_dsa_submit_t *submit, const ngx_http_dsa_session_t *s);
static ngx_int_t ngx_http_dsa_submit_check(ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_failure_t *failure);
static void ngx_http_dsa_submit_context(ngx_http_dsa_submit_t *submit,
    ngx_str_t *model);
static ngx_http_dsa_session_t *ngx_http_dsa_submit_pick(
    ngx_http_dsa_submit_t *submit, ngx_str_t *model);
static ngx_http_dsa_session_t *ngx_http_dsa_submit_least(
    ngx_http_dsa_submit_t *submit, ngx_str_t *model);
static void ngx_http_dsa_submit_record(ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_session_t *s);
static ngx_int_t ngx_http_dsa_submit_to(ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_link_request_t *lr, ngx_http_dsa_session_t *s);
static void ngx_http_dsa_submit_sampling(
    const ngx_http_dsa_submit_t *submit, const ngx_http_dsa_session_t *s,
    dsa_sampling_t *sampling);
static uint32_t ngx_http_dsa_submit_class(
    const ngx_http_dsa_submit_t *submit);
static uint32_t ngx_http_dsa_submit_rollout(const dsa_chat_t *chat);
static uint32_t ngx_http_dsa_submit_whole(const ngx_http_dsa_submit_t *submit);
static void ngx_http_dsa_submit_unavailable(ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_failure_t *failure);
static void ngx_http_dsa_submit_grammar(const ngx_http_dsa_submit_t *submit,
    const u_char *error, ngx_pool_t *pool, ngx_http_dsa_failure_t *failure);


ngx_int_t
ngx_http_dsa_submit_family(ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_failure_t *failure)
{
    if (ngx_http_dsa_pool_opening(submit->pool)) {
        ngx_http_dsa_pool_wait(submit->pool, &submit->waiter);
        return NGX_AGAIN;
    }

    submit->family = ngx_http_dsa_pool_family(submit->pool);

    if (submit->family == NULL) {
        ngx_http_dsa_submit_unavailable(submit, failure);
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_dsa_submit_encode(ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_failure_t *failure)
{
    int          rc;
    dsa_err_t    err;
    dsa_chat_t  *chat;

    chat = submit->chat;

    if (chat->completion != NULL) {
        rc = submit->family->complete(&submit->prompt, submit->work,
                                      chat->completion, &err);

    } else if (chat->question) {
        rc = dsa_compact_prompt(submit->family, &submit->prompt, submit->work,
                                chat, &err);

    } else {
        rc = submit->family->encode(&submit->prompt, submit->work, chat,
                                    &err);
    }

    if (rc != DSA_OK) {
        ngx_http_dsa_submit_unencoded(submit, &err, failure);
        return NGX_ERROR;
    }

    if (chat->question) {

        /* the summary is written without reasoning */

        chat->thinking = 0;
    }

    submit->reasons = dsa_chat_reasons(chat);

    return ngx_http_dsa_submit_prompt(submit, failure);
}


ngx_int_t
ngx_http_dsa_submit_prompt(ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_failure_t *failure)
{
    if (ngx_http_dsa_submit_fields(submit) != NGX_OK
        || ngx_http_dsa_submit_keys(submit) != NGX_OK)
    {
        ngx_http_dsa_failure_memory(failure);
        return NGX_ERROR;
    }

    return NGX_OK;
}


void
ngx_http_dsa_submit_unencoded(const ngx_http_dsa_submit_t *submit,
    const dsa_err_t *err, ngx_http_dsa_failure_t *failure)
{
    if (dsa_arena_exceeded(submit->work)) {
        ngx_http_dsa_failure_set(failure, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                 submit->param, "The prompt is too long.");

    } else {
        ngx_http_dsa_failure_set(failure, NGX_HTTP_BAD_REQUEST, submit->param,
                                 "%s", err->text);
    }
}


/* Returns 1 if the request constrains the sampling of its answer. */

static ngx_uint_t
ngx_http_dsa_submit_constrained(const ngx_http_dsa_submit_t *submit)
{
    const dsa_chat_t  *chat;

    chat = submit->chat;

    if (submit->count) {
        return 0;
    }

    return chat->rollout || chat->n_bias != 0 || submit->format.spec.len != 0
           || (chat->thinking_budget != 0 && submit->reasons);
}


/*
 * Makes the fields of SUBMIT: the prompt, stop strings, queries, constraints
 * of the answer, and the request's id.
 */

static ngx_int_t
ngx_http_dsa_submit_fields(ngx_http_dsa_submit_t *submit)
{
    uint32_t                     i;
    dsa_chat_t                  *chat;
    dsa_prompt_t                *prompt;
    ngx_http_dsa_field_t        *f;
    const dsa_control_tokens_t  *tokens;

    chat = submit->chat;
    prompt = &submit->prompt;
    tokens = &submit->family->tokens;

    submit->n_fields = prompt->n + chat->n_stop + tokens->n
                       + (submit->format.spec.len != 0)
                       + (chat->n_bias != 0)
                       + (submit->id.len != 0)
                       + (submit->trace.len != 0)
                       + (submit->client.len != 0);

    f = dsa_arena_alloc(submit->work,
                        submit->n_fields * sizeof(ngx_http_dsa_field_t));
    if (f == NULL) {
        return NGX_ERROR;
    }

    submit->fields = f;

    for (i = 0; i < prompt->n; i++, f++) {
        f->type = (dsa_link_field_e) prompt->segments[i].kind;
        f->value = prompt->segments[i].text;
    }

    submit->n_count = prompt->n;

    if (submit->format.spec.len != 0) {
        f->type = DSA_LINK_FIELD_GRAMMAR;
        f->value = submit->format.spec;
        f++;
        submit->n_count++;
    }

    for (i = 0; i < chat->n_stop; i++, f++) {
        f->type = DSA_LINK_FIELD_STOP;
        f->value = chat->stop[i];
    }

    /*
     * The answer to query i is bit i of the vocabulary, which the parser
     * expects.
     */

    for (i = 0; i < tokens->n; i++, f++) {
        f->type = DSA_LINK_FIELD_QUERY;
        f->value = tokens->elts[i].name;
    }

    if (chat->n_bias != 0) {
        f->type = DSA_LINK_FIELD_BIAS;
        f->value = dsa_str((const char *) chat->bias,
                           chat->n_bias * sizeof(dsa_bias_t));
        f++;
    }

    if (submit->id.len != 0) {
        f->type = DSA_LINK_FIELD_REQUEST;
        f->value = dsa_str((const char *) submit->id.data, submit->id.len);
        f++;
    }

    if (submit->trace.len != 0) {
        f->type = DSA_LINK_FIELD_TRACE;
        f->value = dsa_str((const char *) submit->trace.data,
                           submit->trace.len);
        f++;
    }

    if (submit->client.len != 0) {
        f->type = DSA_LINK_FIELD_CLIENT;
        f->value = dsa_str((const char *) submit->client.data,
                           submit->client.len);
    }

    return NGX_OK;
}


/* Computes the keys of the prompt's prefixes, if they are used. */

static ngx_int_t
ngx_http_dsa_submit_keys(ngx_http_dsa_submit_t *submit)
{
    if (submit->pool->route == NULL || submit->private || submit->count) {
        return NGX_OK;
    }

    submit->keys = dsa_arena_alloc(submit->work,
                                   sizeof(dsa_prompt_keys_t));
    if (submit->keys == NULL) {
        return NGX_ERROR;
    }

    ngx_http_dsa_route_keys(submit->pool->route, submit->keys,
                            &submit->prompt, &submit->family->tokens,
                            submit->digest, &submit->model);

    return NGX_OK;
}


ngx_int_t
ngx_http_dsa_submit(ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_link_request_t *lr, ngx_http_dsa_failure_t *failure)
{
    ngx_int_t                rc;
    ngx_str_t               *model;
    ngx_http_dsa_session_t  *s;

    if (ngx_http_dsa_pool_opening(submit->pool)) {

        /*
         * The worker has just started, and its first session will be ready
         * soon.
         */

        ngx_http_dsa_pool_wait(submit->pool, &submit->waiter);
        return NGX_AGAIN;
    }

    model = ngx_http_dsa_models_any(&submit->model) ? NULL : &submit->model;

    if (ngx_http_dsa_submit_check(submit, failure) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_dsa_submit_context(submit, model);

    for ( ;; ) {
        s = ngx_http_dsa_submit_pick(submit, model);

        if (s == NULL) {
            ngx_http_dsa_submit_unavailable(submit, failure);
            return NGX_ERROR;
        }

        submit->tried |= 1ULL << s->index;

        if (s->family != submit->family) {

            /* all engines were replaced after the prompt was encoded */

            continue;
        }

        if (!ngx_http_dsa_submit_has_slots(submit, s)) {
            submit->refused = 1;
            continue;
        }

        rc = ngx_http_dsa_submit_to(submit, lr, s);

        if (rc == NGX_OK) {
            ngx_http_dsa_submit_record(submit, s);
            return NGX_OK;
        }

        if (rc == NGX_DECLINED) {

            /* the ring of another engine may be larger */

            submit->too_long = 1;

        } else {
            submit->refused = 1;
        }
    }
}


/*
 * Returns 1 if the engine has enough free slots.  The first of several choices
 * needs a free slot for each choice, because an answer without all choices is
 * useless.  The slots are not reserved.  If the engine has fewer slots than
 * there are choices, all of its slots must be free, and some choices wait for
 * the end of others.
 */

static ngx_uint_t
ngx_http_dsa_submit_has_slots(const ngx_http_dsa_submit_t *submit,
    const ngx_http_dsa_session_t *s)
{
    uint32_t  n;

    n = 1 + submit->chat->others;

    return submit->index != 0
           || n == 1
           || s->slots.n - s->slots.used >= ngx_min(n, s->slots.n);
}


/* Rejects a model that no engine serves. */

static ngx_int_t
ngx_http_dsa_submit_check(ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_failure_t *failure)
{
    if (ngx_http_dsa_models_known(submit->pool, &submit->model)
        == NGX_DECLINED
        && ngx_http_dsa_pool_any(submit->pool) != NULL)
    {
        ngx_http_dsa_models_unknown(failure, &submit->model);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Sets the most tokens of the answer, and the context that an engine needs for
 * them.  Clients send a max_tokens without knowing the context, so no request
 * is refused for it: the largest engine computes what the prompt leaves.
 */

static void
ngx_http_dsa_submit_context(ngx_http_dsa_submit_t *submit, ngx_str_t *model)
{
    uint64_t           needed;
    const dsa_chat_t  *chat;

    chat = submit->chat;
    needed = 0;

    submit->largest = ngx_http_dsa_pool_context(submit->pool, model);

    if (chat->max_tokens != 0) {
        submit->max_tokens = chat->max_tokens;

        /* a prompt has at least one token */

        needed = (uint64_t) chat->max_tokens + 1;

        if (!submit->whole) {
            needed = ngx_min(needed, submit->largest);
        }

    } else {
        submit->max_tokens = chat->thinking ? NGX_HTTP_DSA_THINK_TOKENS
                                            : NGX_HTTP_DSA_CHAT_TOKENS;
    }

    submit->needed = ngx_max(submit->needed, needed);
}


static ngx_http_dsa_session_t *
ngx_http_dsa_submit_pick(ngx_http_dsa_submit_t *submit, ngx_str_t *model)
{
    ngx_http_dsa_session_t  *s;

    s = ngx_http_dsa_submit_least(submit, model);

    if (s == NULL || submit->keys == NULL) {
        return s;
    }

    return ngx_http_dsa_pool_prefer(submit->pool, s, submit->tried, model,
                                    submit->needed, submit->keys,
                                    &submit->result);
}


/* Returns the least busy engine. */

static ngx_http_dsa_session_t *
ngx_http_dsa_submit_least(ngx_http_dsa_submit_t *submit, ngx_str_t *model)
{
    ngx_http_dsa_session_t  *s;

    s = ngx_http_dsa_pool_pick(submit->pool, submit->tried, model,
                               submit->needed);

    if (s != NULL || submit->fitted || submit->whole
        || submit->needed > submit->largest
        || (submit->counted == 0 && submit->refused))
    {
        return s;
    }

    /*
     * The engine that has room for all of max_tokens is away: use what the
     * prompt leaves of another one's context.
     */

    submit->fitted = 1;

    if (submit->counted != 0) {

        /* also of one that has refused the request for max_tokens */

        submit->tried = 0;
    }

    submit->needed = (uint64_t) submit->counted + 1;

    return ngx_http_dsa_pool_pick(submit->pool, submit->tried, model,
                                  submit->needed);
}


/*
 * Records the prefixes as soon as the prompt is submitted, because a later
 * request is served after its prefill has begun.  Only the first choice is
 * recorded, so that each request is counted once.
 */

static void
ngx_http_dsa_submit_record(ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_session_t *s)
{
    if (submit->keys == NULL || submit->index != 0) {
        return;
    }

    submit->route = ngx_http_dsa_routes[submit->result];

    ngx_http_dsa_route_record(submit->pool->route, submit->keys, s->index,
                              submit->result);
}


static ngx_int_t
ngx_http_dsa_submit_to(ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_link_request_t *lr, ngx_http_dsa_session_t *s)
{
    ngx_int_t           rc;
    dsa_chat_t         *chat;
    dsa_link_submit_t   head;

    chat = submit->chat;

    if (submit->count) {
        return ngx_http_dsa_session_count(s, lr, submit->digest,
                                          submit->weight, submit->fields,
                                          submit->n_count);
    }

    ngx_memzero(&head, sizeof(dsa_link_submit_t));

    submit->context = s->hello.context_length;

    head.max_tokens = submit->max_tokens;
    head.weight = submit->weight;
    head.thinking_budget = submit->reasons ? chat->thinking_budget : 0;

    /* the end of the reasoning matters for these only */

    head.flags = (chat->ignore_eos ? DSA_LINK_IGNORE_EOS : 0)
                 | (submit->private ? DSA_LINK_PRIVATE : 0)
                 | (submit->reasons && (submit->format.spec.len != 0
                                        || head.thinking_budget != 0
                                        || chat->n_stop != 0)
                    ? DSA_LINK_THINKING : 0)
                 | ngx_http_dsa_submit_whole(submit)
                 | ngx_http_dsa_submit_class(submit)
                 | ngx_http_dsa_submit_rollout(chat);

    ngx_http_dsa_submit_sampling(submit, s, &head.sampling);

    /*
     * The worker itself cancels the request at its deadline.  The engine's
     * deadline is later, and is needed only if the worker does not respond.
     */

    head.deadline_ms = dsa_clock_ms()
                       + (ngx_msec_int_t) (submit->deadline - ngx_current_msec)
                       + NGX_HTTP_DSA_GRACE;

    ngx_memcpy(head.tenant, submit->digest, sizeof(head.tenant));

    rc = ngx_http_dsa_session_submit(s, lr, &head, submit->fields,
                                     submit->n_fields);

    submit->head = head;

    return rc;
}


/* Replaces what the request leaves open by the model's defaults. */

static void
ngx_http_dsa_submit_sampling(const ngx_http_dsa_submit_t *submit,
    const ngx_http_dsa_session_t *s, dsa_sampling_t *sampling)
{
    const dsa_chat_t  *chat;

    chat = submit->chat;

    *sampling = chat->sampling;
    sampling->version = DSA_SAMPLING_VERSION;

    if (isnan(sampling->temperature)) {
        sampling->temperature = s->hello.temperature;
    }

    /* the engine rejects 0 */

    sampling->top_p = isnan(sampling->top_p)
                      ? s->hello.top_p : ngx_max(sampling->top_p, FLT_MIN);

    if (!chat->has_seed) {
        sampling->seed = submit->seed;
    }

    sampling->seed += submit->index;
}


/* Returns the flags for the priority. */

static uint32_t
ngx_http_dsa_submit_class(const ngx_http_dsa_submit_t *submit)
{
    switch (submit->priority) {

    case DSA_KEY_LOW:
        return DSA_LINK_LOW;

    case DSA_KEY_HIGH:
        return DSA_LINK_HIGH;

    default: /* DSA_KEY_NORMAL */
        return 0;
    }
}


static uint32_t
ngx_http_dsa_submit_rollout(const dsa_chat_t *chat)
{
    return (chat->rollout ? DSA_LINK_SAMPLES : 0)
           | (chat->rollout_mask ? DSA_LINK_KEPT : 0)
           | (chat->rollout_experts ? DSA_LINK_EXPERTS : 0)
           | (chat->rollout_prompt ? DSA_LINK_PROMPT : 0);
}


/*
 * Returns the flag with which the engine tried last refuses the request unless
 * its context has room for all of max_tokens, because a larger one may have.
 */

static uint32_t
ngx_http_dsa_submit_whole(const ngx_http_dsa_submit_t *submit)
{
    return submit->whole
           || (!submit->fitted
               && submit->context < submit->largest
               && submit->context > submit->max_tokens)
           ? DSA_LINK_WHOLE : 0;
}


/* Sets the failure when no engine is left. */

static void
ngx_http_dsa_submit_unavailable(ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_failure_t *failure)
{
    const char  *param;

    param = submit->param;

    if (submit->counted != 0 && submit->needed > submit->largest) {

        /* clients search for this text */

        ngx_http_dsa_failure_set(failure, NGX_HTTP_BAD_REQUEST, param,
                                 "This model's maximum context length is %u "
                                 "tokens. However, your %s resulted in %s%u "
                                 "tokens. Please reduce the length of the %s.",
                                 submit->largest, param,
                                 submit->more ? "more than " : "",
                                 submit->counted, param);
        failure->code = "context_length_exceeded";
        failure->prompt_tokens = submit->counted;
        failure->max_tokens = submit->max_tokens;
        failure->context = submit->largest;

    } else if (submit->too_long && !submit->refused) {
        ngx_http_dsa_failure_set(failure, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                 param,
                                 "The prompt of %lu bytes is longer than the "
                                 "engine accepts.",
                                 (unsigned long) submit->prompt.bytes);

    } else if (submit->crowded) {

        /* with a 503 another host would do the work that this one limits */

        ngx_http_dsa_submit_crowded(submit, failure);

    } else if (submit->refused) {
        ngx_http_dsa_submit_later(submit, failure);
        ngx_http_dsa_failure_set(failure, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                 "All engines of pool \"%.*s\" are busy; try "
                                 "again later.",
                                 (int) submit->pool->name.len,
                                 (char *) submit->pool->name.data);

    } else {
        ngx_http_dsa_failure_set(failure, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                 "No engine of pool \"%.*s\" is available; "
                                 "try again later.",
                                 (int) submit->pool->name.len,
                                 (char *) submit->pool->name.data);
    }
}


void
ngx_http_dsa_submit_later(const ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_failure_t *failure)
{
    ngx_str_t  model;

    if (failure->status == 0) {
        model = submit->model;

        failure->retry = ngx_http_dsa_pool_backlog(submit->pool,
                             ngx_http_dsa_models_any(&model) ? NULL : &model);
    }
}


void
ngx_http_dsa_submit_crowded(const ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_failure_t *failure)
{
    ngx_http_dsa_submit_later(submit, failure);

    ngx_http_dsa_failure_set(failure, NGX_HTTP_TOO_MANY_REQUESTS, NULL,
                             "Too many of your requests wait already; try "
                             "again later.");
}


void
ngx_http_dsa_submit_refused(const ngx_http_dsa_submit_t *submit,
    const u_char *error, dsa_str_t text, ngx_pool_t *pool,
    ngx_http_dsa_failure_t *failure)
{
    dsa_chat_t         *chat;
    dsa_link_failure_t  head;

    ngx_memcpy(&head, error, sizeof(dsa_link_failure_t));

    chat = submit->chat;

    if (head.code == DSA_LINK_E_GRAMMAR) {
        ngx_http_dsa_submit_grammar(submit, error, pool, failure);

    } else if (head.code == DSA_LINK_E_BIAS) {
        ngx_http_dsa_failure_set(failure, NGX_HTTP_BAD_REQUEST, "logit_bias",
                                 "logit_bias: %.*s", (int) text.len,
                                 text.data);

    } else if (head.code != DSA_LINK_E_INVALID) {
        return;

    } else if (ngx_http_dsa_submit_constrained(submit)) {
        ngx_http_dsa_failure_set(failure, NGX_HTTP_BAD_REQUEST, NULL,
                                 "%.*s", (int) text.len, text.data);

    } else if (chat->completion != NULL && chat->completion->suffix.len != 0) {
        ngx_http_dsa_failure_set(failure, NGX_HTTP_BAD_REQUEST, "suffix",
                                 "suffix: the model cannot fill in, because "
                                 "its tokenizer lacks %s; expected no such "
                                 "field (%.*s)", submit->family->fim,
                                 (int) text.len, text.data);
    }
}


/* The engine has refused the structure of the answer. */

static void
ngx_http_dsa_submit_grammar(const ngx_http_dsa_submit_t *submit,
    const u_char *error, ngx_pool_t *pool, ngx_http_dsa_failure_t *failure)
{
    size_t              len;
    u_char              path[NGX_HTTP_DSA_PATH], text[NGX_HTTP_DSA_PATH];
    dsa_refusal_t       refusal;
    dsa_link_failure_t  head;

    ngx_memcpy(&head, error, sizeof(dsa_link_failure_t));
    ngx_memzero(&refusal, sizeof(dsa_refusal_t));

    error += sizeof(dsa_link_failure_t);

    len = ngx_http_dsa_printable(path, sizeof(path) - 1, error, head.path_len);
    path[len] = '\0';

    len = ngx_http_dsa_printable(text, sizeof(text) - 1,
                                 error + head.path_len, head.text_len);
    text[len] = '\0';

    (void) dsa_format_refuse(&submit->format, (char *) path, (char *) text,
                             &refusal);

    ngx_http_dsa_failure_refused(failure, pool, &refusal);
}


ngx_int_t
ngx_http_dsa_submit_rejected(ngx_http_dsa_submit_t *submit,
    const dsa_link_failure_t *error)
{
    uint64_t  needed;

    switch (error->code) {

    case DSA_LINK_E_TENANT:
        submit->crowded = 1;

        /* fall through */

    case DSA_LINK_E_OVERLOADED:
    case DSA_LINK_E_DRAINING:
        submit->refused = 1;
        return NGX_OK;

    case DSA_LINK_E_CONTEXT:
        break;

    default:
        return NGX_DECLINED;
    }

    /* the context of another engine may be large enough */

    /* prefer an exact count, or else use the largest lower bound */

    if (!error->more || submit->counted == 0
        || (submit->more && error->prompt_tokens > submit->counted))
    {
        submit->counted = error->prompt_tokens;
        submit->more = error->more ? 1 : 0;
    }

    needed = (uint64_t) submit->counted
             + (submit->whole ? submit->max_tokens : 1);

    if (!submit->fitted && needed <= submit->largest) {

        /* prefer a context with room for all of max_tokens */

        needed = ngx_min((uint64_t) submit->counted + submit->max_tokens,
                         submit->largest);
    }

    submit->needed = ngx_max(needed, (uint64_t) submit->context + 1);

    return NGX_OK;
}


void
ngx_http_dsa_submit_copy(ngx_http_dsa_submit_t *to,
    const ngx_http_dsa_submit_t *from)
{
    ngx_memzero(to, sizeof(ngx_http_dsa_submit_t));

    to->pool = from->pool;
    to->model = from->model;
    to->param = from->param;
    to->family = from->family;
    to->deadline = from->deadline;
    to->weight = from->weight;
    to->priority = from->priority;
    to->private = from->private;
    ngx_memcpy(to->digest, from->digest, NGX_HTTP_DSA_DIGEST_LEN);
}


void
ngx_http_dsa_submit_free(ngx_http_dsa_submit_t *submit)
{
    ngx_http_dsa_pool_leave(&submit->waiter);

    dsa_arena_destroy(submit->work);
    dsa_arena_destroy(submit->arena);

    submit->work = NULL;
    submit->arena = NULL;
    submit->chat = NULL;
    submit->fields = NULL;
    submit->n_fields = 0;
    submit->keys = NULL;

    ngx_memzero(&submit->prompt, sizeof(dsa_prompt_t));
}
