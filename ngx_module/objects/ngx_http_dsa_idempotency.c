
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include <openssl/evp.h>

#include "ngx_module/core/ngx_http_dsa_burst.h"
#include "ngx_module/http/ngx_http_dsa_header.h"
#include "ngx_http_dsa_idempotency.h"


#define NGX_HTTP_DSA_IDEMPOTENCY_MAX    255     /* bytes of the header */

#define NGX_HTTP_DSA_IDEMPOTENCY_POLL   500     /* milliseconds */
#define NGX_HTTP_DSA_IDEMPOTENCY_RENEW  (DSA_IDEMPOTENCY_LEASE * 1000 / 3)

/* claims without a reply after which a request that waits gives up */

#define NGX_HTTP_DSA_IDEMPOTENCY_GIVE_UP                                      \
    (2 * DSA_IDEMPOTENCY_LEASE * 1000 / NGX_HTTP_DSA_IDEMPOTENCY_POLL)

#define NGX_HTTP_DSA_IDEMPOTENCY_READ   4096    /* of a body in a file */

/* memory for the words of a command, without the answer */

#define NGX_HTTP_DSA_IDEMPOTENCY_ARENA  4096


static ngx_uint_t ngx_http_dsa_idempotency_valid(const ngx_str_t *value);
static ngx_int_t ngx_http_dsa_idempotency_hash(char *hex, const ngx_str_t *name,
    const ngx_chain_t *bufs);
static int ngx_http_dsa_idempotency_hash_buf(EVP_MD_CTX *md,
    const ngx_buf_t *b);
static void ngx_http_dsa_idempotency_send(ngx_http_dsa_idempotency_t *i);
static void ngx_http_dsa_idempotency_reply(void *data, redisReply *reply,
    const char *why);
static void ngx_http_dsa_idempotency_result(ngx_http_dsa_idempotency_t *i,
    const dsa_idempotency_result_t *result);
static void ngx_http_dsa_idempotency_refuse(ngx_http_dsa_idempotency_t *i,
    const dsa_idempotency_result_t *result);
static void ngx_http_dsa_idempotency_again(ngx_http_dsa_idempotency_t *i,
    ngx_msec_t ms);
static void ngx_http_dsa_idempotency_without(ngx_http_dsa_idempotency_t *i,
    const char *why);
static void ngx_http_dsa_idempotency_timer(ngx_event_t *ev);
static void ngx_http_dsa_idempotency_command(ngx_http_dsa_idempotency_t *i,
    const dsa_schema_command_t *cmd);
static void ngx_http_dsa_idempotency_renew(ngx_http_dsa_idempotency_t *i);
static void ngx_http_dsa_idempotency_store(ngx_http_dsa_idempotency_t *i,
    const dsa_idempotency_result_t *result);
static void ngx_http_dsa_idempotency_stop(ngx_http_dsa_idempotency_t *i);


static const dsa_str_t  ngx_http_dsa_idempotency_none = { 0, NULL };


ngx_int_t
ngx_http_dsa_idempotency_init(ngx_http_dsa_idempotency_t **idempotency,
    ngx_http_request_t *r, ngx_http_dsa_redis_t *redis,
    const ngx_str_t *tenant, const ngx_str_t *owner,
    ngx_http_dsa_failure_t *failure)
{
    ngx_uint_t                   n;
    ngx_table_elt_t             *h;
    ngx_http_dsa_idempotency_t  *i;

    h = ngx_http_dsa_header_find(&r->headers_in.headers, "Idempotency-Key",
                                 &n);

    if (h == NULL || redis == NULL || tenant->len == 0) {
        return NGX_OK;
    }

    if (n != 1 || !ngx_http_dsa_idempotency_valid(&h->value)) {
        ngx_http_dsa_failure_set(failure, NGX_HTTP_BAD_REQUEST, NULL,
                                 "The header Idempotency-Key must be there "
                                 "once, with 1 to %d visible ASCII characters; "
                                 "a UUID is recommended.",
                                 NGX_HTTP_DSA_IDEMPOTENCY_MAX);
        return NGX_ERROR;
    }

    i = ngx_pcalloc(r->pool, sizeof(ngx_http_dsa_idempotency_t));

    if (i == NULL
        || ngx_http_dsa_idempotency_hash(i->key, &h->value, NULL) != NGX_OK)
    {
        ngx_http_dsa_failure_memory(failure);
        return NGX_ERROR;
    }

    i->request = r;
    i->redis = redis;
    i->failure = failure;

    i->id.tenant = dsa_str(tenant->data, tenant->len);
    i->id.owner = dsa_str(owner->data, owner->len);
    i->id.key = i->key;

    i->dumb.data = i;
    i->dumb.fd = (ngx_socket_t) -1;

    i->timer.handler = ngx_http_dsa_idempotency_timer;
    i->timer.data = &i->dumb;
    i->timer.log = ngx_cycle->log;

    *idempotency = i;

    return NGX_OK;
}


static ngx_uint_t
ngx_http_dsa_idempotency_valid(const ngx_str_t *value)
{
    size_t  k;

    for (k = 0; k < value->len; k++) {
        if (value->data[k] <= 0x20 || value->data[k] >= 0x7f) {
            return 0;
        }
    }

    return value->len != 0 && value->len <= NGX_HTTP_DSA_IDEMPOTENCY_MAX;
}


/* Writes DSA_IDEMPOTENCY_HEX characters. */

static ngx_int_t
ngx_http_dsa_idempotency_hash(char *hex, const ngx_str_t *name,
    const ngx_chain_t *bufs)
{
    int          ok;
    u_char       hash[EVP_MAX_MD_SIZE];
    EVP_MD_CTX  *md;

    md = EVP_MD_CTX_new();

    if (md == NULL) {
        return NGX_ERROR;
    }

    ok = EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1
         && EVP_DigestUpdate(md, name->data, name->len) == 1;

    for ( /* void */ ; ok && bufs != NULL; bufs = bufs->next) {
        ok = ngx_http_dsa_idempotency_hash_buf(md, bufs->buf);
    }

    ok = ok && EVP_DigestFinal_ex(md, hash, NULL) == 1;

    EVP_MD_CTX_free(md);

    if (!ok) {
        return NGX_ERROR;
    }

    (void) ngx_hex_dump((u_char *) hex, hash, DSA_IDEMPOTENCY_HEX / 2);

    return NGX_OK;
}


/* Returns 1, or 0: the buffer, which may be in a file, cannot be read. */

static int
ngx_http_dsa_idempotency_hash_buf(EVP_MD_CTX *md, const ngx_buf_t *b)
{
    off_t    pos;
    u_char   data[NGX_HTTP_DSA_IDEMPOTENCY_READ];
    ssize_t  n;

    if (ngx_buf_in_memory(b)) {
        return EVP_DigestUpdate(md, b->pos, b->last - b->pos) == 1;
    }

    if (!b->in_file) {
        return 1;
    }

    for (pos = b->file_pos; pos < b->file_last; pos += n) {

        n = pread(b->file->fd, data,
                  ngx_min((off_t) sizeof(data), b->file_last - pos), pos);

        if (n <= 0 || EVP_DigestUpdate(md, data, n) != 1) {
            return 0;
        }
    }

    return 1;
}


/*
 * The text of a request before its body ends with a character that no path has,
 * so that path and body cannot be confused.  The method is always POST.
 */

ngx_int_t
ngx_http_dsa_idempotency_digest(ngx_http_dsa_idempotency_t *i,
    const ngx_chain_t *bufs)
{
    u_char     *p;
    ngx_int_t   rc;
    ngx_str_t   name;

    if (i == NULL) {
        return NGX_OK;
    }

    name.len = sizeof("POST ") + i->request->uri.len;
    name.data = ngx_alloc(name.len, ngx_cycle->log);

    rc = NGX_ERROR;

    if (name.data != NULL) {
        p = ngx_cpymem(name.data, "POST ", sizeof("POST ") - 1);
        p = ngx_cpymem(p, i->request->uri.data, i->request->uri.len);
        *p = '\0';

        rc = ngx_http_dsa_idempotency_hash(i->digest, &name, bufs);
        ngx_free(name.data);
    }

    if (rc != NGX_OK) {
        ngx_http_dsa_failure_memory(i->failure);
    }

    return rc;
}


void
ngx_http_dsa_idempotency_claim(ngx_http_dsa_idempotency_t *i,
    ngx_http_dsa_idempotency_pt handler, void *data)
{
    if (i == NULL) {
        handler(data, NGX_OK, ngx_http_dsa_idempotency_none);
        return;
    }

    i->handler = handler;
    i->data = data;

    ngx_http_dsa_idempotency_send(i);
}


static void
ngx_http_dsa_idempotency_send(ngx_http_dsa_idempotency_t *i)
{
    const char            *why;
    dsa_arena_t           *arena;
    dsa_schema_command_t   cmd;

    why = "nginx is out of memory";
    arena = dsa_arena_create(NGX_HTTP_DSA_IDEMPOTENCY_ARENA);

    if (arena != NULL
        && dsa_idempotency_claim(&cmd, arena, &i->id, i->digest) == DSA_OK)
    {
        i->command = ngx_http_dsa_redis_command(i->redis, &cmd,
                                                ngx_http_dsa_idempotency_reply,
                                                i, &why);
    }

    dsa_arena_destroy(arena);

    if (i->command == NULL) {
        ngx_http_dsa_idempotency_without(i, why);
        return;
    }

    i->sent = 1;
}


static void
ngx_http_dsa_idempotency_reply(void *data, redisReply *reply, const char *why)
{
    dsa_err_t                    err;
    ngx_connection_t            *c;
    dsa_idempotency_result_t     result;
    ngx_http_dsa_idempotency_t  *i = data;

    i->command = NULL;

    c = i->request->connection;

    ngx_http_set_log_request(c->log, i->request);

    if (why == NULL
        && dsa_idempotency_claimed(&result, reply, &err) != DSA_OK)
    {
        why = err.text;
    }

    if (why != NULL) {
        ngx_http_dsa_idempotency_without(i, why);

    } else {
        ngx_http_dsa_idempotency_result(i, &result);
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_dsa_idempotency_result(ngx_http_dsa_idempotency_t *i,
    const dsa_idempotency_result_t *result)
{
    static const ngx_str_t  yes = ngx_string("true");

    i->failures = 0;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, i->request->connection->log, 0,
                   "dsa request %*s: idempotency key, state %d",
                   i->id.owner.len, i->id.owner.data, result->state);

    switch (result->state) {

    case DSA_IDEMPOTENCY_CLAIMED:
        ngx_http_dsa_idempotency_again(i, NGX_HTTP_DSA_IDEMPOTENCY_RENEW);
        i->waits = 0;
        i->handler(i->data, NGX_OK, ngx_http_dsa_idempotency_none);
        return;

    case DSA_IDEMPOTENCY_RUNNING:
        i->waits = 1;
        ngx_http_dsa_idempotency_again(i, NGX_HTTP_DSA_IDEMPOTENCY_POLL);
        return;

    default:
        break;
    }

    /* the key is another request's */

    i->sent = 0;

    if (result->state == DSA_IDEMPOTENCY_ANSWER_KEPT) {

        if (ngx_http_dsa_header_add(i->request, "Idempotent-Replayed", &yes)
            == NGX_OK)
        {
            i->handler(i->data, NGX_DONE, result->answer);
            return;
        }

        ngx_http_dsa_failure_memory(i->failure);

    } else {
        ngx_http_dsa_idempotency_refuse(i, result);
    }

    i->handler(i->data, NGX_DECLINED, ngx_http_dsa_idempotency_none);
}


/* Sets the failure of a request that gets no answer for its key. */

static void
ngx_http_dsa_idempotency_refuse(ngx_http_dsa_idempotency_t *i,
    const dsa_idempotency_result_t *result)
{
    const char  *text;
    ngx_uint_t   status;

    static const ngx_str_t  no = ngx_string("false");

    status = NGX_HTTP_CONFLICT;

    switch (result->state) {

    case DSA_IDEMPOTENCY_OTHER:
        status = 422;
        text = "This Idempotency-Key belongs to another request of the last 24 "
               "hours, with another path or body. Use a new key for each "
               "request, and the same one only to repeat it unchanged.%s%.*s";
        break;

    case DSA_IDEMPOTENCY_FULL:
        status = NGX_HTTP_TOO_MANY_REQUESTS;
        text = "Too many different Idempotency-Keys were used in the last 24 "
               "hours, 10000 are permitted. Send the request without the "
               "header.%s%.*s";
        break;

    case DSA_IDEMPOTENCY_INTERRUPTED:
        text = "The first request with this Idempotency-Key was interrupted. "
               "It may have been executed and billed, and its answer is lost. "
               "Use a new key to send the request again.%s%.*s";
        break;

    case DSA_IDEMPOTENCY_STREAMED:
        text = "The first request with this Idempotency-Key was answered as a "
               "stream and billed. Streams are not kept. Use a new key to send "
               "the request again.%s%.*s";
        break;

    case DSA_IDEMPOTENCY_ANSWER_LARGE:
        text = "The first request with this Idempotency-Key was answered and "
               "billed, but its answer was too large to be kept. Use a new key "
               "to send the request again.%s%.*s";
        break;

    default: /* DSA_IDEMPOTENCY_FAILED */
        text = "The first request with this Idempotency-Key ended before its "
               "answer was complete. What it did until then is done and "
               "billed. Use a new key to send the request again.%s%.*s";
        break;
    }

    ngx_http_dsa_failure_set(i->failure, status, NULL, text,
                             result->object.len != 0
                             ? " GET returns what was stored of it: " : "",
                             (int) ngx_min(result->object.len, 64),
                             result->object.len != 0 ? result->object.data
                                                     : "");

    /* SDKs repeat a request that got 409 or 429, unless this forbids it */

    if (ngx_http_dsa_header_add(i->request, "X-Should-Retry", &no) != NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, i->request->connection->log, 0,
                      "dsa: no memory for the header X-Should-Retry");
    }
}


static void
ngx_http_dsa_idempotency_again(ngx_http_dsa_idempotency_t *i, ngx_msec_t ms)
{
    ngx_add_timer(&i->timer, ms);
}


/*
 * Redis cannot be used.  The request goes on without its key.  One that has
 * seen that another request runs with the key goes on waiting, until the other
 * one's lease must be over.
 */

static void
ngx_http_dsa_idempotency_without(ngx_http_dsa_idempotency_t *i,
    const char *why)
{
    dsa_err_t                 text;
    dsa_idempotency_result_t  result;

    if (i->waits && i->failures++ < NGX_HTTP_DSA_IDEMPOTENCY_GIVE_UP) {
        ngx_http_dsa_idempotency_again(i, NGX_HTTP_DSA_IDEMPOTENCY_POLL);
        return;
    }

    if (i->waits) {
        ngx_memzero(&result, sizeof(dsa_idempotency_result_t));
        result.state = DSA_IDEMPOTENCY_INTERRUPTED;

        ngx_http_dsa_idempotency_result(i, &result);
        return;
    }

    (void) dsa_error(&text, "a request goes on without its Idempotency-Key: "
                     "%s", why);

    ngx_log_error(ngx_http_dsa_burst(text.text), i->request->connection->log,
                  0, "dsa: %s", text.text);

    i->handler(i->data, NGX_OK, ngx_http_dsa_idempotency_none);
}


static void
ngx_http_dsa_idempotency_timer(ngx_event_t *ev)
{
    ngx_connection_t            *c;
    ngx_connection_t            *dumb = ev->data;
    ngx_http_dsa_idempotency_t  *i = dumb->data;

    if (!i->waits) {
        ngx_http_dsa_idempotency_renew(i);
        ngx_http_dsa_idempotency_again(i, NGX_HTTP_DSA_IDEMPOTENCY_RENEW);
        return;
    }

    c = i->request->connection;

    ngx_http_set_log_request(c->log, i->request);

    ngx_http_dsa_idempotency_send(i);

    ngx_http_run_posted_requests(c);
}


ngx_uint_t
ngx_http_dsa_idempotency_claimed(const ngx_http_dsa_idempotency_t *i)
{
    return i != NULL && i->sent && !i->waits && i->command == NULL;
}


/*
 * Sends a command without a handler for its reply, because the request may end
 * before the reply.  If the command is lost, the claim ends as that of a
 * process that was killed.
 */

static void
ngx_http_dsa_idempotency_command(ngx_http_dsa_idempotency_t *i,
    const dsa_schema_command_t *cmd)
{
    const char  *why;

    if (ngx_http_dsa_redis_command(i->redis, cmd, NULL, NULL, &why) == NULL) {
        ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                      "dsa: the Idempotency-Key of request \"%*s\" is not "
                      "updated: %s", i->id.owner.len, i->id.owner.data, why);
    }
}


static void
ngx_http_dsa_idempotency_renew(ngx_http_dsa_idempotency_t *i)
{
    dsa_arena_t           *arena;
    dsa_schema_command_t   cmd;

    arena = dsa_arena_create(NGX_HTTP_DSA_IDEMPOTENCY_ARENA);

    if (arena != NULL && dsa_idempotency_renew(&cmd, arena, &i->id) == DSA_OK)
    {
        ngx_http_dsa_idempotency_command(i, &cmd);
    }

    dsa_arena_destroy(arena);
}


void
ngx_http_dsa_idempotency_finish(ngx_http_dsa_idempotency_t *i,
    ngx_uint_t streamed, dsa_str_t object, dsa_str_t answer)
{
    dsa_idempotency_result_t  result;

    if (!ngx_http_dsa_idempotency_claimed(i)) {
        return;
    }

    result.object = object;
    result.answer = ngx_http_dsa_idempotency_none;

    if (streamed) {
        result.state = DSA_IDEMPOTENCY_STREAMED;

    } else if (answer.len == 0 || answer.len > DSA_IDEMPOTENCY_ANSWER) {
        result.state = DSA_IDEMPOTENCY_ANSWER_LARGE;

    } else {
        result.state = DSA_IDEMPOTENCY_ANSWER_KEPT;
        result.answer = answer;
    }

    ngx_http_dsa_idempotency_store(i, &result);
}


/* Stores the result, or gives the key back if that is NULL (logged as -1). */

static void
ngx_http_dsa_idempotency_store(ngx_http_dsa_idempotency_t *i,
    const dsa_idempotency_result_t *result)
{
    int                    rc;
    dsa_arena_t           *arena;
    dsa_schema_command_t   cmd;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "dsa request %*s: idempotency key ends in state %d",
                   i->id.owner.len, i->id.owner.data,
                   result != NULL ? (int) result->state : -1);

    i->sent = 0;

    ngx_http_dsa_idempotency_stop(i);

    arena = dsa_arena_create(NGX_HTTP_DSA_IDEMPOTENCY_ARENA);

    if (arena != NULL) {
        rc = result != NULL
             ? dsa_idempotency_finish(&cmd, arena, &i->id, result)
             : dsa_idempotency_release(&cmd, arena, &i->id);

        if (rc == DSA_OK) {
            ngx_http_dsa_idempotency_command(i, &cmd);
        }
    }

    dsa_arena_destroy(arena);
}


/*
 * A claim may have been executed without a reply, so a key is given back
 * whenever a claim was sent: Redis compares the owner.
 */

void
ngx_http_dsa_idempotency_end(ngx_http_dsa_idempotency_t *i,
    ngx_uint_t charged)
{
    dsa_idempotency_result_t  result;

    if (i == NULL) {
        return;
    }

    ngx_http_dsa_idempotency_stop(i);

    if (!i->sent) {
        return;
    }

    ngx_memzero(&result, sizeof(dsa_idempotency_result_t));
    result.state = DSA_IDEMPOTENCY_FAILED;

    ngx_http_dsa_idempotency_store(i, charged ? &result : NULL);
}


static void
ngx_http_dsa_idempotency_stop(ngx_http_dsa_idempotency_t *i)
{
    if (i->command != NULL) {
        ngx_http_dsa_redis_detach(i->command);
        i->command = NULL;
    }

    if (i->timer.timer_set) {
        ngx_del_timer(&i->timer);
    }
}
