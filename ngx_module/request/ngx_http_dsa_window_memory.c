
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <openssl/evp.h>

#include "context/summary.h"

#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_http_dsa_window_memory.h"


#define NGX_HTTP_DSA_WINDOW_COMMAND  (512 * 1024)


_Static_assert(2 * DSA_SCHEMA_WINDOW_KEYS < DSA_SCHEMA_MAX_ELEMENTS,
               "a reply with the most records is within the limits of one");


static ngx_int_t ngx_http_dsa_window_digest_all(
    ngx_http_dsa_window_memory_t *memory, EVP_MD_CTX *sum, EVP_MD_CTX *copy,
    ngx_str_t *model);
static uint32_t ngx_http_dsa_window_found(
    ngx_http_dsa_window_memory_t *memory, const redisReply *reply);
static uint32_t ngx_http_dsa_window_summary(
    ngx_http_dsa_window_memory_t *memory, const redisReply *reply);
static void ngx_http_dsa_window_loaded(void *data, redisReply *reply,
    const char *why);
static dsa_str_t ngx_http_dsa_window_tenant(
    ngx_http_dsa_window_memory_t *memory);


ngx_uint_t
ngx_http_dsa_window_usable(const ngx_http_dsa_window_memory_t *memory)
{
    return memory->redis != NULL && memory->tenant.len != 0
           && ngx_http_dsa_redis_up(memory->redis);
}


void
ngx_http_dsa_window_digests(ngx_http_dsa_window_memory_t *memory,
    dsa_window_t *replay, dsa_arena_t *arena, ngx_str_t *model)
{
    uint32_t     n;
    ngx_int_t    rc;
    EVP_MD_CTX  *sum, *copy;

    n = replay->last + 1;

    memory->replay = replay;
    memory->first = n > DSA_SCHEMA_WINDOW_KEYS ? n - DSA_SCHEMA_WINDOW_KEYS
                                               : 0;

    memory->digests = dsa_arena_alloc(arena,
                                      (size_t) n * DSA_SCHEMA_WINDOW_DIGEST);
    sum = EVP_MD_CTX_new();
    copy = EVP_MD_CTX_new();

    rc = memory->digests != NULL && sum != NULL && copy != NULL
         ? ngx_http_dsa_window_digest_all(memory, sum, copy, model)
         : NGX_ERROR;

    EVP_MD_CTX_free(sum);
    EVP_MD_CTX_free(copy);

    if (rc != NGX_OK) {
        memory->digests = NULL;
    }
}


ngx_int_t
ngx_http_dsa_window_load(ngx_http_dsa_window_memory_t *memory)
{
    uint32_t               n;
    const char            *why;
    dsa_arena_t           *words;
    dsa_schema_command_t   cmd;
    int                  (*load)(dsa_schema_command_t *, dsa_arena_t *,
                                 dsa_str_t, const uint8_t *, uint32_t);

    if (memory->digests == NULL) {
        return NGX_DECLINED;
    }

    n = memory->replay->last + 1;
    words = dsa_arena_create(NGX_HTTP_DSA_WINDOW_COMMAND);

    load = memory->replay->strategy == DSA_WINDOW_SUMMARY
           ? dsa_schema_summary_load : dsa_schema_window_load;

    if (words == NULL
        || load(&cmd, words, ngx_http_dsa_window_tenant(memory),
                memory->digests + (size_t) memory->first
                                  * DSA_SCHEMA_WINDOW_DIGEST,
                n - memory->first)
           != DSA_OK)
    {
        memory->digests = NULL;
        dsa_arena_destroy(words);
        return NGX_DECLINED;
    }

    memory->command = ngx_http_dsa_redis_command(memory->redis, &cmd,
                                                 ngx_http_dsa_window_loaded,
                                                 memory, &why);
    dsa_arena_destroy(words);

    return memory->command != NULL ? NGX_AGAIN : NGX_DECLINED;
}


/*
 * Computes for each point the SHA-256 of the parameters of the cut and of the
 * messages in front of the point.  Reasoning is left out, because a client may
 * stop sending it after a new user message, and then it is not restored.
 */

static ngx_int_t
ngx_http_dsa_window_digest_all(ngx_http_dsa_window_memory_t *memory,
    EVP_MD_CTX *sum, EVP_MD_CTX *copy, ngx_str_t *model)
{
    int             ok;
    uint32_t        i, point, head[3];
    dsa_buf_t       b;
    dsa_window_t   *w;
    dsa_message_t   m;

    w = memory->replay;

    head[0] = w->strategy;
    head[1] = w->threshold;
    head[2] = w->chat->thinking;

    ngx_memzero(&b, sizeof(dsa_buf_t));

    ok = EVP_DigestInit_ex(sum, EVP_sha256(), NULL) == 1
         && EVP_DigestUpdate(sum, head, sizeof(head)) == 1
         && EVP_DigestUpdate(sum, model->data, model->len) == 1;

    for (i = 0, point = 0; ok && point <= w->last; i++) {

        if (i == w->points[point].end) {
            ok = EVP_MD_CTX_copy_ex(copy, sum) == 1
                 && EVP_DigestFinal_ex(copy, memory->digests
                                             + (size_t) point
                                               * DSA_SCHEMA_WINDOW_DIGEST,
                                       NULL)
                    == 1;
            point++;
        }

        if (i == w->chat->n_messages) {
            break;
        }

        /* each message ends with a NUL, which JSON cannot contain */

        m = w->chat->messages[i];
        m.reasoning = dsa_str(NULL, 0);
        m.has_reasoning = 0;

        b.len = 0;

        ok = ok && dsa_message_dump(&b, &m) == DSA_OK;
        dsa_buf_add(&b, "", 1);

        ok = ok && !b.failed && EVP_DigestUpdate(sum, b.data, b.len) == 1;
    }

    dsa_buf_free(&b);

    return ok ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_dsa_window_loaded(void *data, redisReply *reply, const char *why)
{
    ngx_http_dsa_window_memory_t *memory = data;

    ngx_connection_t  *c;

    memory->command = NULL;

    c = memory->request->connection;

    ngx_http_set_log_request(c->log, memory->request);

    if (why == NULL) {
        memory->found = memory->replay->strategy == DSA_WINDOW_SUMMARY
                        ? ngx_http_dsa_window_summary(memory, reply)
                        : ngx_http_dsa_window_found(memory, reply);
    }

    if (memory->found != 0) {
        ngx_http_dsa_metrics_add(context_found, 1);
    }

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, c->log, 0,
                   "dsa context: %uD rounds left before%s", memory->found,
                   why == NULL ? "" : ", Redis cannot be used");

    memory->handler(memory->data);

    ngx_http_run_posted_requests(c);
}


/* Resumes the replay with the last valid record.  Returns its cut; 0: none. */

static uint32_t
ngx_http_dsa_window_found(ngx_http_dsa_window_memory_t *memory,
    const redisReply *reply)
{
    uint32_t  i, n, cut;

    n = memory->replay->last + 1 - memory->first;

    for (i = n; i-- > 0; /* void */) {
        cut = dsa_schema_window_cut(reply, n, i);

        if (cut != 0
            && dsa_window_resume(memory->replay, memory->first + i, cut)
               == DSA_OK)
        {
            return cut;
        }
    }

    return 0;
}


/* The same for the strategy summary, with the last record that has one. */

static uint32_t
ngx_http_dsa_window_summary(ngx_http_dsa_window_memory_t *memory,
    const redisReply *reply)
{
    uint32_t    i, cut;
    dsa_str_t   text;
    dsa_buf_t  *summary;

    cut = dsa_schema_summary(reply,
                             memory->replay->last + 1 - memory->first, &i,
                             &text);
    if (cut == 0) {
        return 0;
    }

    summary = &memory->summary;

    dsa_buf_addz(summary, DSA_SUMMARY_HEAD);
    dsa_buf_add(summary, text.data, text.len);

    if (summary->failed
        || dsa_window_resume(memory->replay, memory->first + i, cut)
           != DSA_OK)
    {
        dsa_buf_free(summary);
        return 0;
    }

    return cut;
}


void
ngx_http_dsa_window_store(ngx_http_dsa_window_memory_t *memory,
    dsa_str_t summary)
{
    int                    rc;
    const char            *why;
    const uint8_t         *digest;
    dsa_arena_t           *words;
    dsa_window_t          *w;
    dsa_schema_command_t   cmd;

    w = memory->replay;

    if (memory->digests == NULL || w->cut == 0 || w->cut == memory->found
        || ngx_http_dsa_redis_full(memory->redis) != NULL)
    {
        return;
    }

    words = dsa_arena_create(NGX_HTTP_DSA_WINDOW_COMMAND);

    digest = memory->digests + (size_t) w->overflow * DSA_SCHEMA_WINDOW_DIGEST;

    if (words == NULL) {
        return;
    }

    if (summary.len != 0) {
        summary.data += sizeof(DSA_SUMMARY_HEAD) - 1;
        summary.len -= sizeof(DSA_SUMMARY_HEAD) - 1;

        rc = dsa_schema_summary_store(&cmd, words,
                                      ngx_http_dsa_window_tenant(memory),
                                      digest, w->cut, summary);

    } else {
        rc = dsa_schema_window_store(&cmd, words,
                                     ngx_http_dsa_window_tenant(memory),
                                     digest, w->cut);
    }

    if (rc == DSA_OK) {
        (void) ngx_http_dsa_redis_command(memory->redis, &cmd, NULL, NULL,
                                          &why);
    }

    dsa_arena_destroy(words);
}


static dsa_str_t
ngx_http_dsa_window_tenant(ngx_http_dsa_window_memory_t *memory)
{
    return dsa_str(memory->tenant.data, memory->tenant.len);
}


void
ngx_http_dsa_window_forget(ngx_http_dsa_window_memory_t *memory)
{
    if (memory->command != NULL) {
        ngx_http_dsa_redis_detach(memory->command);
        memory->command = NULL;
    }
}


void
ngx_http_dsa_window_drop(ngx_http_dsa_window_memory_t *memory)
{
    dsa_buf_free(&memory->summary);
}
