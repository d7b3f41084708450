
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What must hold between the messages of a chat.
 */


#include "context/read.h"


static const dsa_at_t *dsa_check_at(const dsa_chat_t *chat, dsa_at_t at[3],
    uint32_t i, const char *field);
static int dsa_check_results(dsa_chat_t *chat, dsa_refusal_t *refusal,
    uint32_t i, uint32_t *next);
static int dsa_check_ids(const dsa_chat_t *chat, dsa_refusal_t *refusal,
    uint32_t i, uint32_t n);
static int dsa_check_reasoning(const dsa_chat_t *chat,
    dsa_refusal_t *refusal);
static int dsa_check_last(const dsa_chat_t *chat, dsa_refusal_t *refusal);
static int dsa_check_json(const dsa_chat_t *chat, dsa_refusal_t *refusal);
static int dsa_check_says_json(dsa_str_t text);


int
dsa_chat_check(dsa_chat_t *chat, dsa_refusal_t *refusal)
{
    dsa_at_t        at[3];
    uint32_t        i;
    dsa_message_t  *m;

    for (i = 0; i < chat->n_messages; /* void */) {
        m = &chat->messages[i];

        if (m->prefix && i + 1 != chat->n_messages) {
            return dsa_refuse_at(refusal,
                                 dsa_check_at(chat, at, i, "prefix"),
                                 "this is not the last message; expected "
                                 "prefix only there");
        }

        if (m->prefix && m->n_calls != 0) {
            return dsa_refuse_at(refusal,
                                 dsa_check_at(chat, at, i, "prefix"),
                                 "a message with tool_calls cannot be a "
                                 "prefix; expected one with content only");
        }

        if (m->role == DSA_ROLE_TOOL) {
            return dsa_refuse(refusal, dsa_check_at(chat, at, i, "role"),
                              "Messages with role 'tool' must be a response "
                              "to a preceding message with 'tool_calls'");
        }

        if (m->role == DSA_ROLE_DEVELOPER && m->content.len == 0) {
            return dsa_refuse_at(refusal,
                                 dsa_check_at(chat, at, i, "content"),
                                 "empty; expected the text of the developer "
                                 "message");
        }

        if (m->n_calls == 0) {
            i++;
            continue;
        }

        if (dsa_check_results(chat, refusal, i, &i) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    if (chat->hosted && dsa_check_last(chat, refusal) != DSA_OK) {
        return DSA_ERROR;
    }

    if (dsa_check_reasoning(chat, refusal) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_check_json(chat, refusal);
}


/* Builds the path of a field of message i in at. */

static const dsa_at_t *
dsa_check_at(const dsa_chat_t *chat, dsa_at_t at[3], uint32_t i,
    const char *field)
{
    int  stored;

    stored = i < chat->n_stored;

    at[0].up = NULL;
    at[0].name = stored ? "conversation" : "messages";
    at[1].up = &at[0];
    at[1].name = NULL;
    at[1].index = stored ? i : i - chat->n_stored;
    if (chat->items != NULL) {
        at[0].name = stored ? "previous_response_id" : "input";
        at[1].index = stored ? i : chat->items[i - chat->n_stored];
    }

    at[2].up = &at[1];
    at[2].name = field;

    return &at[2];
}


/*
 * Message i has calls.  Puts their results, which follow it, into the order of
 * the calls.  *next is the first message after the results.
 */

static int
dsa_check_results(dsa_chat_t *chat, dsa_refusal_t *refusal, uint32_t i,
    uint32_t *next)
{
    int             closed;
    dsa_at_t        at[3];
    uint32_t        n, k, j, found;
    dsa_message_t   m, *call, *results;

    call = &chat->messages[i];
    results = call + 1;

    for (n = 0; i + 1 + n < chat->n_messages; n++) {
        if (results[n].role != DSA_ROLE_TOOL) {
            break;
        }

        results[n].place = i + 1 + n;
    }

    *next = i + 1 + n;

    if (n == 0 && !chat->hosted && *next == chat->n_messages) {
        return DSA_OK;
    }

    /* the conversation has moved on, so results may be missing */

    closed = *next < chat->n_messages
             && chat->messages[*next].role != DSA_ROLE_ASSISTANT;

    if ((closed || n > call->n_calls)
        && dsa_check_ids(chat, refusal, i, n) != DSA_OK)
    {
        return DSA_ERROR;
    }

    found = 0;

    for (k = 0; k < call->n_calls; k++) {
        for (j = found; j < n; j++) {
            if (dsa_str_eq(results[j].tool_call_id, call->calls[k].id)) {
                break;
            }
        }

        if (j == n && closed) {
            continue;
        }

        if (j == n) {
            return dsa_refuse(refusal,
                              dsa_check_at(chat, at, i, "tool_calls"),
                              "An assistant message with 'tool_calls' must "
                              "be followed by tool messages responding to "
                              "each 'tool_call_id'. (insufficient tool "
                              "messages following tool_calls message)");
        }

        m = results[found];
        results[found] = results[j];
        results[j] = m;
        found++;
    }

    return DSA_OK;
}


/*
 * Each of the n results must answer a call of message i that no earlier result
 * answers.  Only the first n_calls + 1 results need to be compared, because one
 * of them must fail; so the time is bounded by the square of n_calls.
 */

static int
dsa_check_ids(const dsa_chat_t *chat, dsa_refusal_t *refusal, uint32_t i,
    uint32_t n)
{
    dsa_at_t              at[3];
    uint32_t              j, k;
    const dsa_message_t  *call, *results;

    call = &chat->messages[i];
    results = call + 1;

    for (j = 0; j < n; j++) {
        for (k = 0; k < call->n_calls; k++) {
            if (dsa_str_eq(results[j].tool_call_id, call->calls[k].id)) {
                break;
            }
        }

        if (k == call->n_calls || j == call->n_calls) {
            break;
        }

        for (k = 0; k < j; k++) {
            if (results[j].tool_call_id.len != 0
                && dsa_str_eq(results[j].tool_call_id,
                              results[k].tool_call_id))
            {
                break;
            }
        }

        if (k < j) {
            break;
        }
    }

    if (j == n) {
        return DSA_OK;
    }

    return dsa_refuse(refusal,
                      dsa_check_at(chat, at, i + 1 + j, "tool_call_id"),
                      "Messages with role 'tool' must be a response to a "
                      "preceding message with 'tool_calls'; this id is not "
                      "among its calls, or an earlier message has answered "
                      "it");
}


/*
 * As published, an answer after the user's last question must have its
 * reasoning in thinking mode, because the model was never trained on a prompt
 * without it.  It may be missing beside tool calls, and in requests to the
 * HTTP API, because not every client keeps it: then the reasoning is empty.
 */

static int
dsa_check_reasoning(const dsa_chat_t *chat, dsa_refusal_t *refusal)
{
    dsa_at_t              at[3];
    uint32_t              i;
    const dsa_message_t  *m;

    if (!chat->thinking || chat->bare_answers || chat->hosted) {
        return DSA_OK;
    }

    for (i = chat->n_messages; i-- > 0; /* void */) {
        m = &chat->messages[i];

        if (m->role == DSA_ROLE_USER || m->role == DSA_ROLE_DEVELOPER) {
            break;
        }

        if (m->role == DSA_ROLE_ASSISTANT && m->reasoning.len == 0
            && m->n_calls == 0 && !m->prefix)
        {
            return dsa_refuse(refusal,
                              dsa_check_at(chat, at, i, "reasoning_content"),
                              "Missing `reasoning_content` field in the "
                              "assistant message at message index %u", i);
        }
    }

    return DSA_OK;
}


/* Behind an answer that has ended the model writes another one. */

static int
dsa_check_last(const dsa_chat_t *chat, dsa_refusal_t *refusal)
{
    dsa_at_t              at[3];
    uint32_t              i;
    const dsa_message_t  *m;

    if (chat->n_messages == 0) {
        return DSA_OK;
    }

    i = chat->n_messages - 1;
    m = &chat->messages[i];

    if (m->role == DSA_ROLE_ASSISTANT && m->prefix) {
        if (i == 0 || (m[-1].role != DSA_ROLE_USER
                       && m[-1].role != DSA_ROLE_TOOL))
        {
            return dsa_refuse_at(refusal,
                                 dsa_check_at(chat, at, i, "prefix"),
                                 "the message before it has another role; "
                                 "expected `user` or `tool`");
        }

        return DSA_OK;
    }

    if (m->role != DSA_ROLE_SYSTEM && m->role != DSA_ROLE_DEVELOPER) {
        return DSA_OK;
    }

    return dsa_refuse_at(refusal, dsa_check_at(chat, at, i, "role"),
                         "The last message must be a user, tool or assistant "
                         "message");
}


/*
 * If the prompt does not mention JSON, the model may write blanks without end.
 */

static int
dsa_check_json(const dsa_chat_t *chat, dsa_refusal_t *refusal)
{
    uint32_t  i;
    dsa_at_t  at = { NULL, "response_format", 0 };

    if (!chat->hosted || !chat->json_object) {
        return DSA_OK;
    }

    for (i = 0; i < chat->n_messages; i++) {
        if (dsa_check_says_json(chat->messages[i].content)) {
            return DSA_OK;
        }
    }

    return dsa_refuse(refusal, &at, "Prompt must contain the word 'json' in "
                      "some form to use 'response_format' of type "
                      "'json_object'.");
}


static int
dsa_check_says_json(dsa_str_t text)
{
    size_t       i;
    const char  *p;

    for (i = 0; i + 4 <= text.len; i++) {
        p = text.data + i;

        if ((p[0] | 0x20) == 'j' && (p[1] | 0x20) == 's'
            && (p[2] | 0x20) == 'o' && (p[3] | 0x20) == 'n')
        {
            return 1;
        }
    }

    return 0;
}
