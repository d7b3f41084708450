
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/json_write.h"
#include "context/anthropic.h"

#include "ngx_http_dsa_anthropic.h"
#include "ngx_http_dsa_anthropic_error.h"


typedef struct {
    ngx_http_dsa_api_answer_t  answer;
    unsigned                   managed:1;   /* the request has
                                               context_management */
} ngx_http_dsa_anthropic_count_t;


static ngx_http_dsa_api_answer_t *ngx_http_dsa_anthropic_count_create(
    ngx_pool_t *pool);
static int ngx_http_dsa_anthropic_count_read(ngx_http_dsa_api_answer_t *a,
    dsa_chat_t *chat, dsa_arena_t *arena, const dsa_json_t *root,
    const dsa_chat_limits_t *limits, dsa_refusal_t *refusal);
static void ngx_http_dsa_anthropic_count_finish(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage);
static void ngx_http_dsa_anthropic_count_free(ngx_http_dsa_api_answer_t *a);


/*
 * No tokens are generated, so only the callback for the end of an answer is
 * set.
 */

const ngx_http_dsa_api_t  ngx_http_dsa_anthropic_count = {
    .path = ngx_string("/v1/messages/count_tokens"),
    .id_prefix = ngx_string("req_"),
    .id_header = "request-id",
    .prompt = "messages",
    .finish_reason = { "counted" },
    .count = 1,
    .create = ngx_http_dsa_anthropic_count_create,
    .read = ngx_http_dsa_anthropic_count_read,
    .finish = ngx_http_dsa_anthropic_count_finish,
    .error = ngx_http_dsa_anthropic_error,
    .free = ngx_http_dsa_anthropic_count_free
};


static ngx_http_dsa_api_answer_t *
ngx_http_dsa_anthropic_count_create(ngx_pool_t *pool)
{
    return ngx_pcalloc(pool, sizeof(ngx_http_dsa_anthropic_count_t));
}


static int
ngx_http_dsa_anthropic_count_read(ngx_http_dsa_api_answer_t *a,
    dsa_chat_t *chat, dsa_arena_t *arena, const dsa_json_t *root,
    const dsa_chat_limits_t *limits, dsa_refusal_t *refusal)
{
    ngx_http_dsa_anthropic_count_t *c = (ngx_http_dsa_anthropic_count_t *) a;

    if (dsa_anthropic_read(chat, arena, root, limits, 1, refusal) != DSA_OK) {
        return DSA_ERROR;
    }

    c->managed = chat->managed;

    return DSA_OK;
}


static void
ngx_http_dsa_anthropic_count_finish(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage)
{
    ngx_http_dsa_anthropic_count_t *c = (ngx_http_dsa_anthropic_count_t *) a;

    uint64_t           cleared;
    ngx_uint_t         i;
    dsa_json_writer_t  w;

    dsa_json_writer(&w, a->out);
    dsa_json_object(&w);
    dsa_json_key(&w, "input_tokens");
    dsa_json_uint(&w, a->counted);

    if (c->managed) {
        cleared = 0;

        for (i = 0; i < a->n_edits; i++) {
            cleared += a->edits[i].tokens;
        }

        dsa_json_key(&w, "context_management");
        dsa_json_object(&w);
        dsa_json_key(&w, "original_input_tokens");
        dsa_json_uint(&w, a->counted + cleared);
        dsa_json_object_end(&w);
    }

    dsa_json_object_end(&w);
}


static void
ngx_http_dsa_anthropic_count_free(ngx_http_dsa_api_answer_t *a)
{
    /* nothing to free: the state is allocated from the pool of the request */
}
