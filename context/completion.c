
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The fields of a text completion, as api-docs.deepseek.com ("Create FIM
 * Completion") has them, and those that OpenAI's clients send besides.
 */


#include "context/completion.h"
#include "context/read.h"


static int dsa_completion_read_chat_fields(dsa_reader_t *r,
    const dsa_json_t *root);
static int dsa_completion_read_prompt(dsa_reader_t *r,
    const dsa_json_t *root);
static int dsa_completion_read_echo(dsa_reader_t *r, const dsa_json_t *root);
static int dsa_completion_read_logprobs(dsa_reader_t *r,
    const dsa_json_t *root);
static int dsa_completion_read_thinking(dsa_reader_t *r,
    const dsa_json_t *root);


/* Fields of chats, which a completion would have to ignore. */

static const struct {
    const char   *name;
    const char   *instead;
} dsa_completion_chat_fields[] = {
    { "messages", "use prompt, or POST /chat/completions" },
    { "tools", "use POST /chat/completions" },
    { "tool_choice", "use POST /chat/completions" },
    { "response_format", "use POST /chat/completions" },
    { "conversation", "use POST /chat/completions" },
    { "top_logprobs", "use logprobs" }
};


int
dsa_completion_read(dsa_chat_t *chat, dsa_arena_t *arena,
    const dsa_json_t *root, const dsa_chat_limits_t *limits,
    dsa_refusal_t *refusal)
{
    dsa_reader_t  r;

    memset(chat, 0, sizeof(dsa_chat_t));

    chat->hosted = limits->hosted != 0;

    r.chat = chat;
    r.arena = arena;
    r.refusal = refusal;
    r.limits = *limits;
    r.values = 0;
    r.namespaces = 0;

    if (root->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(refusal, NULL, root,
                               "a text completion request object");
    }

    chat->completion = dsa_arena_calloc(arena, sizeof(dsa_completion_t));
    if (chat->completion == NULL) {
        return dsa_refuse_memory(refusal, arena);
    }

    if (dsa_read_model(&r, root) != DSA_OK
        || dsa_completion_read_chat_fields(&r, root) != DSA_OK
        || dsa_completion_read_prompt(&r, root) != DSA_OK
        || dsa_read_string(&r, NULL, root, "suffix",
                           &chat->completion->suffix)
           == DSA_ERROR
        || dsa_read_unsupported(&r, root) != DSA_OK
        || dsa_completion_read_thinking(&r, root) != DSA_OK
        || dsa_read_rollout(&r, root) != DSA_OK
        || dsa_read_sampling(&r, root) != DSA_OK
        || dsa_read_bias(&r, root) != DSA_OK
        || dsa_completion_read_logprobs(&r, root) != DSA_OK
        || dsa_completion_read_echo(&r, root) != DSA_OK
        || dsa_read_stream(&r, root) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return DSA_OK;
}


static int
dsa_completion_read_chat_fields(dsa_reader_t *r, const dsa_json_t *root)
{
    size_t       i, n;
    dsa_at_t     at = { NULL, NULL, 0 };
    dsa_json_t  *v;

    n = sizeof(dsa_completion_chat_fields)
        / sizeof(dsa_completion_chat_fields[0]);

    for (i = 0; i < n; i++) {
        at.name = dsa_completion_chat_fields[i].name;

        if (dsa_read_any(root, at.name, &v) == 1) {
            return dsa_refuse(r->refusal, &at, "%s is not a field of text "
                              "completions; expected null or no such field; "
                              "%s", at.name,
                              dsa_completion_chat_fields[i].instead);
        }
    }

    return DSA_OK;
}


/*
 * A string, or an array with one string.  Several prompts would be several
 * answers, and ids of tokens could be control tokens.
 */

static int
dsa_completion_read_prompt(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t           at = { NULL, "prompt", 0 };
    const dsa_json_t  *v, *text;

    v = dsa_json_get(root, "prompt");
    text = v;

    if (v != NULL && v->type == DSA_JSON_ARRAY) {
        text = v->first;

        if (text != NULL && (text->type == DSA_JSON_INTEGER
                             || text->type == DSA_JSON_ARRAY))
        {
            return dsa_refuse_at(r->refusal, &at, "ids of tokens are not "
                                 "accepted; expected a string");
        }

        if (v->n != 1) {
            return dsa_refuse_at(r->refusal, &at, "an array of %u prompts; "
                                 "expected a string, or an array with one "
                                 "string", v->n);
        }
    }

    if (text == NULL || text->type != DSA_JSON_STRING) {
        return dsa_refuse_type(r->refusal, &at, text,
                               "a string, or an array with one string");
    }

    r->chat->completion->prompt = text->text;

    return DSA_OK;
}


static int
dsa_completion_read_echo(dsa_reader_t *r, const dsa_json_t *root)
{
    int       echo;
    dsa_at_t  at = { NULL, "echo", 0 };

    echo = 0;

    if (dsa_read_bool(r, NULL, root, at.name, &echo) == DSA_ERROR) {
        return DSA_ERROR;
    }

    if (echo && r->chat->sampling.logprobs) {
        return dsa_refuse_at(r->refusal, &at, "logprobs of the prompt are "
                             "not available; expected either echo or "
                             "logprobs");
    }

    r->chat->completion->echo = echo;

    return DSA_OK;
}


/* The number of alternatives; with 0 there is only the sampled token. */

static int
dsa_completion_read_logprobs(dsa_reader_t *r, const dsa_json_t *root)
{
    int      rc;
    int64_t  n;

    rc = dsa_read_integer(r, NULL, root, "logprobs", 0, 20, "[0, 20]", &n);

    if (rc == 1) {
        r->chat->sampling.logprobs = 1;
        r->chat->sampling.top_logprobs = (uint32_t) n;
    }

    return rc == DSA_ERROR ? DSA_ERROR : DSA_OK;
}


/*
 * The prompt of a completion has no place for thinking.  Fields that switch it
 * off are accepted.
 */

static int
dsa_completion_read_thinking(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t  at = { NULL, "thinking", 0 };

    if (dsa_read_thinking(r, root) != DSA_OK) {
        return DSA_ERROR;
    }

    if (!r->chat->thinking) {
        return DSA_OK;
    }

    if (!r->chat->thinking_given) {
        at.name = "model";
    }

    return dsa_refuse(r->refusal, &at, "A text completion cannot think; "
                      "expected a request without thinking, for example with "
                      "the model deepseek-chat");
}
