
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/json_write.h"

#include "ngx_http_dsa_responses.h"


static ngx_http_dsa_api_answer_t *ngx_http_dsa_responses_count_create(
    ngx_pool_t *pool);
static int ngx_http_dsa_responses_count_read(ngx_http_dsa_api_answer_t *a,
    dsa_chat_t *chat, dsa_arena_t *arena, const dsa_json_t *root,
    const dsa_chat_limits_t *limits, dsa_refusal_t *refusal);
static void ngx_http_dsa_responses_count_finish(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage);
static void ngx_http_dsa_responses_count_free(ngx_http_dsa_api_answer_t *a);


typedef struct {
    ngx_http_dsa_api_answer_t  answer;
    char                       previous[DSA_RESPONSE_ID_LEN + 1];
} ngx_http_dsa_responses_count_t;


/*
 * The tokens of the prompt that the same request would have as a response.
 * Nothing is generated or stored, so only the callback for the end of an
 * answer is set.
 */

const ngx_http_dsa_api_t  ngx_http_dsa_responses_count = {
    .path = ngx_string("/responses/input_tokens"),
    .id_prefix = ngx_string("req_"),
    .prompt = "input",
    .finish_reason = { "counted" },
    .count = 1,
    .create = ngx_http_dsa_responses_count_create,
    .read = ngx_http_dsa_responses_count_read,
    .history = ngx_http_dsa_responses_insert,
    .finish = ngx_http_dsa_responses_count_finish,
    .error = ngx_http_dsa_responses_error,
    .free = ngx_http_dsa_responses_count_free,
    .references = 1
};


static ngx_http_dsa_api_answer_t *
ngx_http_dsa_responses_count_create(ngx_pool_t *pool)
{
    return ngx_pcalloc(pool, sizeof(ngx_http_dsa_responses_count_t));
}


static int
ngx_http_dsa_responses_count_read(ngx_http_dsa_api_answer_t *a,
    dsa_chat_t *chat, dsa_arena_t *arena, const dsa_json_t *root,
    const dsa_chat_limits_t *limits, dsa_refusal_t *refusal)
{
    ngx_http_dsa_responses_count_t *c = (ngx_http_dsa_responses_count_t *) a;

    dsa_responses_t  request;

    if (ngx_http_dsa_responses_request(a, &request, chat, arena, root, limits,
                                       0, c->previous, refusal)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    chat->stream = 0;

    return DSA_OK;
}


static void
ngx_http_dsa_responses_count_finish(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage)
{
    dsa_json_writer_t  w;

    dsa_json_writer(&w, a->out);
    dsa_json_object(&w);
    dsa_json_key(&w, "object");
    dsa_json_stringz(&w, "response.input_tokens");
    dsa_json_key(&w, "input_tokens");
    dsa_json_uint(&w, a->counted);
    dsa_json_object_end(&w);
}


static void
ngx_http_dsa_responses_count_free(ngx_http_dsa_api_answer_t *a)
{
    /* nothing to free: the state is allocated from the pool of the request */
}
