
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <math.h>
#include <openssl/rand.h>

#include "base/json_write.h"
#include "ngx_module/api/ngx_http_dsa_openai.h"


#define ngx_http_dsa_add(b, lit)  dsa_buf_add(b, lit, sizeof(lit) - 1)


static void ngx_http_dsa_openai_collect(ngx_http_dsa_openai_t *o,
    dsa_delta_e what, uint32_t call, dsa_str_t text, const char *id);
static void ngx_http_dsa_openai_open(ngx_http_dsa_openai_t *o,
    dsa_delta_e what, uint32_t call);
static void ngx_http_dsa_openai_role(ngx_http_dsa_openai_t *o);
static void ngx_http_dsa_openai_tail(ngx_http_dsa_openai_t *o,
    const char *finish, const ngx_http_dsa_usage_t *usage);
static void ngx_http_dsa_openai_logprobs(ngx_http_dsa_openai_t *o);
static void ngx_http_dsa_openai_token(dsa_buf_t *b,
    const dsa_link_logprob_t *entry);
static void ngx_http_dsa_openai_usage(ngx_http_dsa_openai_t *o,
    const ngx_http_dsa_usage_t *usage);
static void ngx_http_dsa_openai_completion(ngx_http_dsa_openai_t *o,
    const char *finish, const ngx_http_dsa_usage_t *usage);
static void ngx_http_dsa_openai_conversation(ngx_http_dsa_openai_t *o);
static ngx_int_t ngx_http_dsa_openai_call_id(char *id, uint32_t call);
static void ngx_http_dsa_openai_str(dsa_buf_t *b, ngx_str_t *s);


ngx_int_t
ngx_http_dsa_openai_start(ngx_http_dsa_openai_t *o, ngx_pool_t *pool)
{
    dsa_buf_t  b;

    if (!o->stream) {
        return NGX_OK;
    }

    ngx_memzero(&b, sizeof(dsa_buf_t));

    ngx_http_dsa_add(&b, "data: {\"id\":\"");
    ngx_http_dsa_openai_str(&b, &o->id);
    dsa_buf_printf(&b, "\",\"object\":\"chat.completion.chunk\","
                   "\"created\":%lld,\"model\":\"", (long long) o->created);
    ngx_http_dsa_openai_str(&b, &o->model);
    ngx_http_dsa_add(&b, "\",\"system_fingerprint\":\"");
    ngx_http_dsa_openai_str(&b, &o->fingerprint);
    ngx_http_dsa_add(&b, "\",\"choices\":[{\"index\":0,\"delta\":{");

    if (b.failed) {
        dsa_buf_free(&b);
        return NGX_ERROR;
    }

    o->head.len = b.len;
    o->head.data = ngx_pnalloc(pool, b.len);

    if (o->head.data != NULL) {
        ngx_memcpy(o->head.data, b.data, b.len);
    }

    dsa_buf_free(&b);

    return o->head.data != NULL ? NGX_OK : NGX_ERROR;
}


int
ngx_http_dsa_openai_delta(void *ctx, dsa_delta_e what, uint32_t call,
    dsa_str_t text)
{
    ngx_http_dsa_openai_t *o = ctx;

    char  id[NGX_HTTP_DSA_CALL_ID_LEN + 1];

    if (text.len == 0 && what != DSA_DELTA_CALL) {
        return DSA_OK;
    }

    if (what == DSA_DELTA_CALL
        && ngx_http_dsa_openai_call_id(id, call) != NGX_OK)
    {
        return DSA_ERROR;
    }

    if (o->message != NULL) {
        ngx_http_dsa_openai_collect(o, what, call, text, id);
    }

    if (!o->stream) {
        return DSA_OK;
    }

    if (what == DSA_DELTA_CALL) {
        ngx_http_dsa_openai_close(o);
        ngx_http_dsa_openai_role(o);

        dsa_buf_add(o->out, o->head.data, o->head.len);
        dsa_buf_printf(o->out, "\"tool_calls\":[{\"index\":%u,\"id\":\"%s\","
                       "\"type\":\"function\",\"function\":{\"name\":\"",
                       call, id);
        dsa_json_escape(o->out, text);
        ngx_http_dsa_add(o->out, "\",\"arguments\":\"\"}}]");

        ngx_http_dsa_openai_tail(o, NULL, NULL);

        return DSA_OK;
    }

    if (o->open != what || o->call != call) {
        ngx_http_dsa_openai_close(o);
        ngx_http_dsa_openai_role(o);
        ngx_http_dsa_openai_open(o, what, call);
    }

    dsa_json_escape(o->out, text);

    return DSA_OK;
}


static void
ngx_http_dsa_openai_collect(ngx_http_dsa_openai_t *o, dsa_delta_e what,
    uint32_t call, dsa_str_t text, const char *id)
{
    ngx_http_dsa_message_t  *m = o->message;

    switch (what) {

    case DSA_DELTA_REASONING:
        dsa_json_escape(&m->reasoning, text);
        break;

    case DSA_DELTA_CONTENT:
        dsa_json_escape(&m->content, text);
        break;

    case DSA_DELTA_CALL:
        if (o->call_open) {
            ngx_http_dsa_add(&m->calls, "\"}},");
        }

        dsa_buf_printf(&m->calls, "{\"index\":%u,\"id\":\"%s\","
                       "\"type\":\"function\",\"function\":{\"name\":\"",
                       call, id);
        dsa_json_escape(&m->calls, text);
        ngx_http_dsa_add(&m->calls, "\",\"arguments\":\"");
        o->call_open = 1;
        break;

    case DSA_DELTA_ARGUMENTS:
        dsa_json_escape(&m->calls, text);
        break;
    }
}


static void
ngx_http_dsa_openai_open(ngx_http_dsa_openai_t *o, dsa_delta_e what,
    uint32_t call)
{
    dsa_buf_add(o->out, o->head.data, o->head.len);

    switch (what) {

    case DSA_DELTA_REASONING:
        ngx_http_dsa_add(o->out, "\"content\":null,\"reasoning_content\":\"");
        break;

    case DSA_DELTA_ARGUMENTS:
        dsa_buf_printf(o->out, "\"tool_calls\":[{\"index\":%u,"
                       "\"function\":{\"arguments\":\"", call);
        break;

    default: /* DSA_DELTA_CONTENT */
        ngx_http_dsa_add(o->out, "\"content\":\"");
        break;
    }

    o->open = what;
    o->call = call;
}


void
ngx_http_dsa_openai_close(ngx_http_dsa_openai_t *o)
{
    switch (o->open) {

    case 0:
        return;

    case DSA_DELTA_ARGUMENTS:
        ngx_http_dsa_add(o->out, "\"}}]");
        break;

    case DSA_DELTA_CONTENT:
        if (o->thinking) {
            ngx_http_dsa_add(o->out, "\",\"reasoning_content\":null");
            break;
        }

        /* fall through */

    default: /* DSA_DELTA_REASONING */
        ngx_http_dsa_add(o->out, "\"");
        break;
    }

    o->open = 0;

    ngx_http_dsa_openai_tail(o, NULL, NULL);
}


/* The role goes once, in the first chunk. */

static void
ngx_http_dsa_openai_role(ngx_http_dsa_openai_t *o)
{
    if (o->role_sent) {
        return;
    }

    o->role_sent = 1;

    dsa_buf_add(o->out, o->head.data, o->head.len);

    if (o->thinking) {
        ngx_http_dsa_add(o->out, "\"role\":\"assistant\",\"content\":null,"
                         "\"reasoning_content\":\"\"},\"logprobs\":null,"
                         "\"finish_reason\":null}]");

    } else {
        ngx_http_dsa_add(o->out, "\"role\":\"assistant\",\"content\":\"\"},"
                         "\"logprobs\":null,\"finish_reason\":null}]");
    }

    if (o->include_usage) {
        ngx_http_dsa_add(o->out, ",\"usage\":null");
    }

    ngx_http_dsa_add(o->out, "}\n\n");
}


/* From the end of a chunk's delta to the end of its event. */

static void
ngx_http_dsa_openai_tail(ngx_http_dsa_openai_t *o, const char *finish,
    const ngx_http_dsa_usage_t *usage)
{
    ngx_http_dsa_add(o->out, "},\"logprobs\":");
    ngx_http_dsa_openai_logprobs(o);

    if (finish != NULL) {
        dsa_buf_printf(o->out, ",\"finish_reason\":\"%s\"}]", finish);

    } else {
        ngx_http_dsa_add(o->out, ",\"finish_reason\":null}]");
    }

    if (usage != NULL) {
        ngx_http_dsa_openai_usage(o, usage);

    } else if (o->include_usage) {
        ngx_http_dsa_add(o->out, ",\"usage\":null");
    }

    if (finish != NULL) {
        ngx_http_dsa_openai_conversation(o);
    }

    ngx_http_dsa_add(o->out, "}\n\n");
}


void
ngx_http_dsa_openai_logprob(ngx_http_dsa_openai_t *o,
    const dsa_link_logprob_t *entry, const dsa_link_logprob_t *top,
    ngx_uint_t n_top, ngx_uint_t reasoning)
{
    ngx_uint_t   i;
    dsa_buf_t   *b;

    b = reasoning ? &o->logprobs->reasoning : &o->logprobs->content;

    if (b->len != 0) {
        ngx_http_dsa_add(b, ",");
    }

    ngx_http_dsa_add(b, "{");
    ngx_http_dsa_openai_token(b, entry);
    ngx_http_dsa_add(b, ",\"top_logprobs\":[");

    for (i = 0; i < n_top; i++) {
        dsa_buf_addz(b, i == 0 ? "{" : ",{");
        ngx_http_dsa_openai_token(b, &top[i]);
        ngx_http_dsa_add(b, "}");
    }

    ngx_http_dsa_add(b, "]}");
}


static void
ngx_http_dsa_openai_token(dsa_buf_t *b, const dsa_link_logprob_t *entry)
{
    u_char      *p, *last, *start;
    size_t       len;
    uint32_t     c;
    ngx_uint_t   i;

    p = (u_char *) entry->bytes;
    len = ngx_min(entry->len, sizeof(entry->bytes));
    last = p + len;

    ngx_http_dsa_add(b, "\"token\":\"");

    /* a token may be a part of a character; JSON cannot */

    while (p < last) {
        start = p;
        c = *p < 0x80 ? *p++ : ngx_utf8_decode(&p, last - p);

        if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
            p = start + 1;
            ngx_http_dsa_add(b, "\xef\xbf\xbd");
            continue;
        }

        dsa_json_escape(b, dsa_str(start, p - start));
    }

    /* the API's value for what is too improbable to be told */

    if (isfinite(entry->logprob) && entry->logprob > -9999.0f) {
        dsa_buf_printf(b, "\",\"logprob\":%.8g,\"bytes\":[",
                       (double) entry->logprob + 0.0);

    } else {
        ngx_http_dsa_add(b, "\",\"logprob\":-9999.0,\"bytes\":[");
    }

    for (i = 0; i < len; i++) {
        dsa_buf_printf(b, i == 0 ? "%d" : ",%d",
                       (int) (u_char) entry->bytes[i]);
    }

    ngx_http_dsa_add(b, "]");
}


/* What was collected since the last chunk, or null. */

static void
ngx_http_dsa_openai_logprobs(ngx_http_dsa_openai_t *o)
{
    ngx_http_dsa_logprobs_t  *l = o->logprobs;

    if (l == NULL || (l->content.len == 0 && l->reasoning.len == 0)) {
        ngx_http_dsa_add(o->out, "null");
        return;
    }

    if (l->content.failed || l->reasoning.failed) {
        o->out->failed = 1;
    }

    if (l->content.len != 0) {
        ngx_http_dsa_add(o->out, "{\"content\":[");
        dsa_buf_add(o->out, l->content.data, l->content.len);
        ngx_http_dsa_add(o->out, "]");

    } else {
        ngx_http_dsa_add(o->out, "{\"content\":null");
    }

    if (l->reasoning.len != 0) {
        ngx_http_dsa_add(o->out, ",\"reasoning_content\":[");
        dsa_buf_add(o->out, l->reasoning.data, l->reasoning.len);
        ngx_http_dsa_add(o->out, "]");

    } else if (o->thinking) {
        ngx_http_dsa_add(o->out, ",\"reasoning_content\":null");
    }

    ngx_http_dsa_add(o->out, "}");

    l->content.len = 0;
    l->reasoning.len = 0;
}


static void
ngx_http_dsa_openai_usage(ngx_http_dsa_openai_t *o,
    const ngx_http_dsa_usage_t *usage)
{
    unsigned long long  prompt, cached, completion;

    prompt = usage->prompt;
    cached = usage->cached;
    completion = usage->completion;

    dsa_buf_printf(o->out, ",\"usage\":{\"prompt_tokens\":%llu,"
                   "\"completion_tokens\":%llu,\"total_tokens\":%llu,"
                   "\"prompt_tokens_details\":{\"cached_tokens\":%llu}",
                   prompt, completion, prompt + completion, cached);

    if (o->thinking) {
        dsa_buf_printf(o->out, ",\"completion_tokens_details\":"
                       "{\"reasoning_tokens\":%llu}",
                       (unsigned long long) usage->reasoning);
    }

    dsa_buf_printf(o->out, ",\"prompt_cache_hit_tokens\":%llu,"
                   "\"prompt_cache_miss_tokens\":%llu}",
                   cached, prompt - cached);
}


/* Whether this turn of the conversation is stored. */

static void
ngx_http_dsa_openai_conversation(ngx_http_dsa_openai_t *o)
{
    if (o->conversation.len == 0) {
        return;
    }

    ngx_http_dsa_add(o->out, ",\"conversation\":{\"id\":\"");
    ngx_http_dsa_openai_str(o->out, &o->conversation);

    if (o->unsaved == NULL) {
        dsa_buf_printf(o->out, "\",\"version\":%lld,\"stored\":true}",
                       (long long) o->version);
        return;
    }

    ngx_http_dsa_add(o->out, "\",\"stored\":false,\"reason\":\"");
    dsa_json_escape(o->out, dsa_strz(o->unsaved));
    ngx_http_dsa_add(o->out, "\"}");
}


void
ngx_http_dsa_openai_finish(ngx_http_dsa_openai_t *o, const char *finish,
    const ngx_http_dsa_usage_t *usage)
{
    if (!o->stream) {
        ngx_http_dsa_openai_completion(o, finish, usage);
        return;
    }

    ngx_http_dsa_openai_close(o);
    ngx_http_dsa_openai_role(o);

    dsa_buf_add(o->out, o->head.data, o->head.len);

    if (o->thinking) {
        ngx_http_dsa_add(o->out, "\"content\":\"\",\"reasoning_content\":null");

    } else {
        ngx_http_dsa_add(o->out, "\"content\":\"\"");
    }

    ngx_http_dsa_openai_tail(o, finish, usage);

    ngx_http_dsa_add(o->out, "data: [DONE]\n\n");
}


static void
ngx_http_dsa_openai_completion(ngx_http_dsa_openai_t *o, const char *finish,
    const ngx_http_dsa_usage_t *usage)
{
    ngx_http_dsa_message_t  *m = o->message;

    if (m->content.failed || m->reasoning.failed || m->calls.failed) {
        o->out->failed = 1;
        return;
    }

    ngx_http_dsa_add(o->out, "{\"id\":\"");
    ngx_http_dsa_openai_str(o->out, &o->id);
    dsa_buf_printf(o->out, "\",\"object\":\"chat.completion\",\"created\":%lld,"
                   "\"model\":\"", (long long) o->created);
    ngx_http_dsa_openai_str(o->out, &o->model);
    ngx_http_dsa_add(o->out, "\",\"choices\":[{\"index\":0,\"message\":"
                     "{\"role\":\"assistant\",\"content\":\"");
    dsa_buf_add(o->out, m->content.data, m->content.len);
    ngx_http_dsa_add(o->out, "\"");

    if (o->thinking) {
        ngx_http_dsa_add(o->out, ",\"reasoning_content\":\"");
        dsa_buf_add(o->out, m->reasoning.data, m->reasoning.len);
        ngx_http_dsa_add(o->out, "\"");
    }

    if (o->call_open) {
        ngx_http_dsa_add(o->out, ",\"tool_calls\":[");
        dsa_buf_add(o->out, m->calls.data, m->calls.len);
        ngx_http_dsa_add(o->out, "\"}}]");
    }

    ngx_http_dsa_add(o->out, "},\"logprobs\":");
    ngx_http_dsa_openai_logprobs(o);
    dsa_buf_printf(o->out, ",\"finish_reason\":\"%s\"}]", finish);
    ngx_http_dsa_openai_usage(o, usage);
    ngx_http_dsa_openai_conversation(o);
    ngx_http_dsa_add(o->out, ",\"system_fingerprint\":\"");
    ngx_http_dsa_openai_str(o->out, &o->fingerprint);
    ngx_http_dsa_add(o->out, "\"}");
}


void
ngx_http_dsa_openai_message(ngx_http_dsa_openai_t *o, dsa_buf_t *b)
{
    ngx_http_dsa_message_t  *m = o->message;

    if (m->content.failed || m->reasoning.failed || m->calls.failed) {
        b->failed = 1;
        return;
    }

    ngx_http_dsa_add(b, "{\"role\":\"assistant\",\"content\":\"");
    dsa_buf_add(b, m->content.data, m->content.len);
    ngx_http_dsa_add(b, "\"");

    if (o->thinking) {
        ngx_http_dsa_add(b, ",\"reasoning_content\":\"");
        dsa_buf_add(b, m->reasoning.data, m->reasoning.len);
        ngx_http_dsa_add(b, "\"");
    }

    if (o->call_open) {
        ngx_http_dsa_add(b, ",\"tool_calls\":[");
        dsa_buf_add(b, m->calls.data, m->calls.len);
        ngx_http_dsa_add(b, "\"}}]");
    }

    ngx_http_dsa_add(b, "}");
}


void
ngx_http_dsa_openai_free(ngx_http_dsa_openai_t *o)
{
    if (o->logprobs != NULL) {
        dsa_buf_free(&o->logprobs->content);
        dsa_buf_free(&o->logprobs->reasoning);
    }

    if (o->message != NULL) {
        dsa_buf_free(&o->message->content);
        dsa_buf_free(&o->message->reasoning);
        dsa_buf_free(&o->message->calls);
    }
}


/* "call_", two digits of the index, "_", 22 alphanumerics, as clients know. */

static ngx_int_t
ngx_http_dsa_openai_call_id(char *id, uint32_t call)
{
    int         n;
    u_char      noise[22];
    ngx_uint_t  i;

    static const char  alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "abcdefghijklmnopqrstuvwxyz0123456789";

    n = snprintf(id, sizeof("call_") + 10, "call_%02u", call);
    id += n;
    *id++ = '_';

    if (RAND_bytes(noise, sizeof(noise)) != 1) {
        return NGX_ERROR;
    }

    for (i = 0; i < sizeof(noise); i++) {
        *id++ = alphabet[noise[i] % (sizeof(alphabet) - 1)];
    }

    *id = '\0';

    return NGX_OK;
}


static void
ngx_http_dsa_openai_str(dsa_buf_t *b, ngx_str_t *s)
{
    dsa_json_escape(b, dsa_str(s->data, s->len));
}


void
ngx_http_dsa_openai_error(dsa_buf_t *b, ngx_uint_t status, const char *param,
    const char *message)
{
    ngx_http_dsa_openai_failure(b, status, NULL, param, message);
}


void
ngx_http_dsa_openai_failure(dsa_buf_t *b, ngx_uint_t status,
    const char *own, const char *param, const char *message)
{
    const char  *type, *code;

    switch (status) {

    case 400:
    case 422:
        type = "invalid_request_error";
        code = "invalid_request_error";
        break;

    case 401:
        type = "authentication_error";
        code = "invalid_api_key";
        break;

    case 403:
        type = "permission_error";
        code = "forbidden";
        break;

    case 404:
        type = "invalid_request_error";
        code = "not_found";
        break;

    case 405:
        type = "invalid_request_error";
        code = "method_not_allowed";
        break;

    case 409:
        type = "invalid_request_error";
        code = "conflict";
        break;

    case 413:
        type = "invalid_request_error";
        code = "request_too_large";
        break;

    case 415:
        type = "invalid_request_error";
        code = "unsupported_media_type";
        break;

    case 429:
        type = "rate_limit_error";
        code = "rate_limit_exceeded";
        break;

    case 503:
        type = "server_error";
        code = "service_unavailable";
        break;

    case 504:
        type = "server_error";
        code = "timeout";
        break;

    default:
        type = status < 500 ? "invalid_request_error" : "server_error";
        code = status < 500 ? "invalid_request_error" : "internal_error";
        break;
    }

    ngx_http_dsa_add(b, "{\"error\":{\"message\":\"");
    dsa_json_escape(b, dsa_strz(message));
    dsa_buf_printf(b, "\",\"type\":\"%s\",\"param\":", type);

    if (param != NULL && param[0] != '\0') {
        ngx_http_dsa_add(b, "\"");
        dsa_json_escape(b, dsa_strz(param));
        ngx_http_dsa_add(b, "\"");

    } else {
        ngx_http_dsa_add(b, "null");
    }

    dsa_buf_printf(b, ",\"code\":\"%s\"}}", own != NULL ? own : code);
}


void
ngx_http_dsa_openai_model(dsa_buf_t *b, ngx_str_t *name)
{
    ngx_http_dsa_add(b, "{\"id\":\"");
    ngx_http_dsa_openai_str(b, name);
    ngx_http_dsa_add(b, "\",\"object\":\"model\",\"owned_by\":\"deepseek\"}");
}
