
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A request body of Anthropic's Messages API: JSON, chat, check, prompt, and
 * the grammar of the answer.  The first byte selects a body of count_tokens.
 *
 * A body that the reader accepts must pass the check of chats, unless the
 * check's own rules refuse it, and must have a prompt.  Every tool message of
 * the chat has a call, results are in the order of their calls, and the texts
 * of the messages are not longer than the body.  Each tool_use of the body is a
 * call, in its order, and the text of each tool_result is in the message of its
 * call.
 *
 * The edits of a body are applied for a family that keeps earlier reasoning and
 * for one that does not, with a token for each byte of a prompt.  They make the
 * prompt shorter by what they report, and do not change the chat.
 */


#include <stdlib.h>

#include "context/anthropic.h"
#include "context/clear.h"
#include "context/compact.h"
#include "context/deepseek/deepseek.h"
#include "context/glm/glm.h"
#include "t/fuzz/request.h"


#define FUZZ_MEMORY   (8 * 1024 * 1024)
#define FUZZ_DEPTH    32
#define FUZZ_COUNTS   16        /* of an edit, at most: 2, 4 guesses, and a
                                   bisection of 64 messages */


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_results(const dsa_chat_t *chat);
static void fuzz_texts(const dsa_chat_t *chat, size_t size);
static void fuzz_blocks(const dsa_chat_t *chat, const dsa_json_t *root);
static void fuzz_use(const dsa_chat_t *chat, const dsa_json_t *block,
    uint32_t n);
static void fuzz_result(const dsa_chat_t *chat, const dsa_json_t *block);
static void fuzz_edits(const dsa_family_t *family, const dsa_chat_t *chat);
static int fuzz_edit(const dsa_family_t *family, dsa_arena_t *arena,
    const dsa_chat_t *chat, const dsa_edit_t *edit, dsa_chat_t *out);
static uint32_t fuzz_count(const dsa_family_t *family,
    const dsa_chat_t *chat);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dsa_err_t          err;
    dsa_chat_t         chat;
    dsa_json_t        *root;
    dsa_arena_t       *arena;
    dsa_prompt_t       prompt;
    dsa_refusal_t      refusal;
    dsa_chat_limits_t  limits;

    if (size == 0) {
        return 0;
    }

    limits.max_messages = 64;
    limits.max_tools = 8;
    limits.hosted = 1;

    memset(&refusal, 0, sizeof(dsa_refusal_t));

    arena = dsa_arena_create(FUZZ_MEMORY);

    if (arena == NULL) {
        return 0;
    }

    root = dsa_json_parse(arena, data + 1, size - 1, FUZZ_DEPTH, &err);

    if (root == NULL) {
        goto done;
    }

    if (dsa_anthropic_read(&chat, arena, root, &limits, data[0] & 1, &refusal)
        != DSA_OK)
    {
        fuzz_refusal(&refusal);
        goto done;
    }

    if (chat.n_messages == 0 || chat.n_messages > limits.max_messages
        || (chat.stream && (data[0] & 1)))
    {
        abort();
    }

    fuzz_results(&chat);
    fuzz_texts(&chat, size);
    fuzz_blocks(&chat, root);

    if (dsa_compact_apply(&chat, arena, &refusal) != DSA_OK
        || dsa_chat_check(&chat, &refusal) != DSA_OK)
    {
        fuzz_refusal(&refusal);
        goto done;
    }

    fuzz_results(&chat);

    if (dsa_deepseek.encode(&prompt, arena, &chat, &err) != DSA_OK
        && !dsa_arena_exceeded(arena))
    {
        abort();
    }

    fuzz_format(arena, &chat);

    fuzz_edits(&dsa_deepseek, &chat);

    if (dsa_family_apply(&dsa_glm_5_2, &chat, &refusal) == DSA_OK) {
        fuzz_edits(&dsa_glm_5_2, &chat);
    }

done:

    dsa_arena_destroy(arena);

    return 0;
}


/* Each call is followed by its results, all of them and in its order. */

static void
fuzz_results(const dsa_chat_t *chat)
{
    uint32_t              i, k;
    const dsa_message_t  *m;

    for (i = 0; i < chat->n_messages; i++) {
        m = &chat->messages[i];

        if (m->role == DSA_ROLE_TOOL) {
            abort();
        }

        for (k = 0; k < m->n_calls; k++) {
            i++;

            if (i == chat->n_messages
                || chat->messages[i].role != DSA_ROLE_TOOL
                || !dsa_str_eq(chat->messages[i].tool_call_id,
                               m->calls[k].id))
            {
                abort();
            }
        }
    }
}


/* Two bytes of a blank line are added for a text, which is a JSON value. */

static void
fuzz_texts(const dsa_chat_t *chat, size_t size)
{
    size_t    n;
    uint32_t  i;

    n = 0;

    for (i = 0; i < chat->n_messages; i++) {
        n += chat->messages[i].content.len + chat->messages[i].reasoning.len;

        if (chat->messages[i].compact != DSA_COMPACT_NONE) {
            n -= sizeof(DSA_COMPACT_HEAD) - 1;
        }
    }

    if (n > size) {
        abort();
    }
}


static void
fuzz_blocks(const dsa_chat_t *chat, const dsa_json_t *root)
{
    uint32_t           n;
    const dsa_json_t  *message, *block, *type;

    for (n = 0; n < chat->n_messages; n++) {

        /* the blocks in front of a compaction are left out */

        if (chat->messages[n].compact != DSA_COMPACT_NONE) {
            return;
        }
    }

    n = 0;

    for (message = dsa_json_get(root, "messages")->first; message != NULL;
         message = message->next)
    {
        block = dsa_json_get(message, "content");

        if (block == NULL || block->type != DSA_JSON_ARRAY) {
            continue;
        }

        for (block = block->first; block != NULL; block = block->next) {
            type = dsa_json_get(block, "type");

            if (type == NULL) {
                continue;
            }

            if (dsa_str_eqz(type->text, "tool_use")) {
                fuzz_use(chat, block, n++);

            } else if (dsa_str_eqz(type->text, "tool_result")) {
                fuzz_result(chat, block);
            }
        }
    }
}


/* Call n of the chat, counted from 0, is this block. */

static void
fuzz_use(const dsa_chat_t *chat, const dsa_json_t *block, uint32_t n)
{
    uint32_t                i;
    const dsa_tool_call_t  *call;

    for (i = 0; i < chat->n_messages && n >= chat->messages[i].n_calls; i++) {
        n -= chat->messages[i].n_calls;
    }

    if (i == chat->n_messages) {
        abort();
    }

    call = &chat->messages[i].calls[n];

    if (!dsa_str_eq(call->id, dsa_json_get(block, "id")->text)
        || !dsa_str_eq(call->name, dsa_json_get(block, "name")->text))
    {
        abort();
    }
}


static void
fuzz_result(const dsa_chat_t *chat, const dsa_json_t *block)
{
    uint32_t              i;
    dsa_str_t             id;
    const dsa_json_t     *content;
    const dsa_message_t  *m;

    id = dsa_json_get(block, "tool_use_id")->text;
    content = dsa_json_get(block, "content");

    for (i = 0; i < chat->n_messages; i++) {
        m = &chat->messages[i];

        if (m->role == DSA_ROLE_TOOL && dsa_str_eq(m->tool_call_id, id)
            && (content == NULL || content->type != DSA_JSON_STRING
                || content->text.len == 0
                || (m->content.len != 0
                    && memmem(m->content.data, m->content.len,
                              content->text.data, content->text.len)
                       != NULL)))
        {
            return;
        }
    }

    abort();
}


/* Applies the edits of the body, one after another. */

static void
fuzz_edits(const dsa_family_t *family, const dsa_chat_t *chat)
{
    uint32_t      i, before;
    dsa_chat_t    now, next;
    dsa_arena_t  *arena;

    if (chat->n_edits > DSA_CHAT_EDITS || chat->n_first > chat->n_edits) {
        abort();
    }

    arena = dsa_arena_create(FUZZ_MEMORY);

    if (arena == NULL) {
        return;
    }

    before = fuzz_count(family, chat);
    now = *chat;

    for (i = 0; i < chat->n_edits; i++) {
        if (fuzz_edit(family, arena, &now, &chat->edits[i], &next) != DSA_OK) {
            break;
        }

        fuzz_results(&next);
        now = next;
    }

    if (fuzz_count(family, chat) != before) {
        abort();
    }

    dsa_arena_destroy(arena);
}


/* DSA_ERROR: out of memory. */

static int
fuzz_edit(const dsa_family_t *family, dsa_arena_t *arena,
    const dsa_chat_t *chat, const dsa_edit_t *edit, dsa_chat_t *out)
{
    int          rc;
    uint32_t     n, before;
    dsa_clear_t  c;

    if (dsa_clear_init(&c, arena, chat, edit) != DSA_OK) {
        return DSA_ERROR;
    }

    rc = c.n != 0 ? DSA_AGAIN : DSA_OK;

    for (n = 0; rc == DSA_AGAIN; n++) {
        if (n == FUZZ_COUNTS || c.cut > c.n) {
            abort();
        }

        if (dsa_clear_chat(&c, arena, out) != DSA_OK) {
            return DSA_ERROR;
        }

        rc = dsa_clear_counted(&c, fuzz_count(family, out), 0);
    }

    if (dsa_clear_chat(&c, arena, out) != DSA_OK) {
        return DSA_ERROR;
    }

    before = fuzz_count(family, chat);

    if (fuzz_count(family, out) != before - c.tokens
        || (c.cut == 0) != (c.tokens == 0) || c.tokens > before
        || (c.cut != 0 && c.tokens < edit->at_least))
    {
        abort();
    }

    return DSA_OK;
}


static uint32_t
fuzz_count(const dsa_family_t *family, const dsa_chat_t *chat)
{
    uint32_t       n;
    dsa_err_t      err;
    dsa_arena_t   *arena;
    dsa_prompt_t   prompt;

    n = 0;
    arena = dsa_arena_create(FUZZ_MEMORY);

    if (arena != NULL
        && family->encode(&prompt, arena, chat, &err) == DSA_OK)
    {
        n = prompt.bytes;
    }

    dsa_arena_destroy(arena);

    return n;
}
