
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/json_write.h"

#include "ngx_http_dsa_responses.h"


static int ngx_http_dsa_responses_compact_read(ngx_http_dsa_api_answer_t *a,
    dsa_chat_t *chat, dsa_arena_t *arena, const dsa_json_t *root,
    const dsa_chat_limits_t *limits, dsa_refusal_t *refusal);
static void ngx_http_dsa_responses_compact_ready(ngx_http_dsa_api_answer_t *a,
    const dsa_chat_t *chat);
static void ngx_http_dsa_responses_compact_finish(
    ngx_http_dsa_api_answer_t *a, ngx_http_dsa_finish_e reason,
    const ngx_http_dsa_usage_t *usage);


/*
 * A compaction of the conversation that the same request would continue as a
 * response: the answer of the model is the summary.
 */

const ngx_http_dsa_api_t  ngx_http_dsa_responses_compact = {
    .path = ngx_string("/responses/compact"),
    .id_prefix = ngx_string(DSA_RESPONSE_ID_PREFIX),
    .prompt = "input",
    .finish_reason = { "stop", "length", "tool_calls" },
    .create = ngx_http_dsa_responses_create,
    .read = ngx_http_dsa_responses_compact_read,
    .ready = ngx_http_dsa_responses_compact_ready,
    .start = ngx_http_dsa_responses_start,
    .delta = ngx_http_dsa_responses_delta,
    .finish = ngx_http_dsa_responses_compact_finish,
    .error = ngx_http_dsa_responses_error,
    .free = ngx_http_dsa_responses_free,
    .history = ngx_http_dsa_responses_insert,
    .turn = ngx_http_dsa_responses_turn,
    .references = 1,
    .collects = 1
};


static int
ngx_http_dsa_responses_compact_read(ngx_http_dsa_api_answer_t *a,
    dsa_chat_t *chat, dsa_arena_t *arena, const dsa_json_t *root,
    const dsa_chat_limits_t *limits, dsa_refusal_t *refusal)
{
    if (ngx_http_dsa_responses_body(a, chat, arena, root, limits, 1, refusal)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    chat->stream = 0;
    a->stream = 0;

    return DSA_OK;
}


/*
 * Writes the messages that stay in front of the compaction item: those of the
 * user and of the system, without instructions, which are part of a request
 * only.
 */

static void
ngx_http_dsa_responses_compact_ready(ngx_http_dsa_api_answer_t *a,
    const dsa_chat_t *chat)
{
    ngx_http_dsa_responses_t *o = (ngx_http_dsa_responses_t *) a;

    uint32_t              i;
    const char           *id;
    const dsa_message_t  *m;

    for (i = o->instructions; i + 1 < chat->n_messages; i++) {
        m = &chat->messages[i];

        if (m->compact != DSA_COMPACT_NONE
            || (m->role != DSA_ROLE_USER && m->role != DSA_ROLE_SYSTEM
                && m->role != DSA_ROLE_DEVELOPER))
        {
            continue;
        }

        id = ngx_http_dsa_responses_id(o, "msg_");

        if (id == NULL || dsa_responses_message(&o->kept, m, id) != DSA_OK) {
            o->failed = 1;
            return;
        }
    }
}


static void
ngx_http_dsa_responses_compact_finish(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason, const ngx_http_dsa_usage_t *usage)
{
    ngx_http_dsa_responses_t *o = (ngx_http_dsa_responses_t *) a;

    ngx_uint_t          i;
    dsa_json_writer_t   w, item;

    ngx_http_dsa_responses_end(o, "completed");

    dsa_json_writer(&w, a->out);
    dsa_json_object(&w);
    dsa_json_key(&w, "id");
    dsa_json_string(&w, dsa_str(a->id.data, a->id.len));
    dsa_json_key(&w, "object");
    dsa_json_stringz(&w, "response.compaction");
    dsa_json_key(&w, "created_at");
    dsa_json_uint(&w, a->created);
    dsa_json_key(&w, "output");

    for (i = 0; i < o->n_items; i++) {
        dsa_json_writer(&item, &o->kept);
        ngx_http_dsa_responses_item(o, &item, &o->items[i], "completed", 1);
        dsa_buf_add(&o->kept, "", 1);
    }

    dsa_responses_array(a->out, &o->kept);
    w.comma = 1;

    dsa_json_key(&w, "usage");
    ngx_http_dsa_responses_usage(&w, usage);
    dsa_json_object_end(&w);

    if (o->failed) {
        a->out->failed = 1;
    }
}
