
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A request body in chunks, as the module reads it: JSON, chat, check,
 * prompt, and the grammar of the answer.  The first byte has the cut and
 * whether limits are the hosted ones.
 *
 * Control segments of the prompt must be names of control tokens, and messages
 * that are written must read back as the same messages.
 */


#include <stdlib.h>

#include "context/deepseek/deepseek.h"
#include "t/fuzz/request.h"


#define FUZZ_MEMORY   (8 * 1024 * 1024)
#define FUZZ_DEPTH    32


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static dsa_json_t *fuzz_read(dsa_arena_t *arena, const uint8_t *data,
    size_t size, uint8_t how);
static void fuzz_prompt(const dsa_prompt_t *prompt);
static void fuzz_messages(dsa_arena_t *arena, const dsa_chat_t *chat,
    const dsa_chat_limits_t *limits);
static int fuzz_same(const dsa_message_t *a, const dsa_message_t *b);


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
    limits.hosted = (data[0] & 0x80) == 0;

    memset(&refusal, 0, sizeof(dsa_refusal_t));

    arena = dsa_arena_create(FUZZ_MEMORY);

    if (arena == NULL) {
        return 0;
    }

    root = fuzz_read(arena, data + 1, size - 1, data[0] & 0x7f);

    if (root == NULL) {
        goto done;
    }

    if (dsa_chat_read(&chat, arena, root, &limits, &refusal) != DSA_OK
        || dsa_chat_check(&chat, &refusal) != DSA_OK)
    {
        fuzz_refusal(&refusal);
        goto done;
    }

    if (dsa_deepseek.encode(&prompt, arena, &chat, &err) != DSA_OK) {
        if (!dsa_arena_exceeded(arena)) {
            abort();
        }

        goto done;
    }

    fuzz_prompt(&prompt);
    fuzz_format(arena, &chat);
    fuzz_messages(arena, &chat, &limits);

done:

    dsa_arena_destroy(arena);

    return 0;
}


static dsa_json_t *
fuzz_read(dsa_arena_t *arena, const uint8_t *data, size_t size, uint8_t how)
{
    int                 rc;
    size_t              n;
    uint32_t            seed;
    dsa_err_t           err;
    dsa_json_t         *root;
    dsa_json_parser_t  *p;

    p = dsa_json_parser_create(arena, FUZZ_DEPTH);

    if (p == NULL) {
        return NULL;
    }

    root = NULL;
    seed = how + 1;

    for (rc = DSA_OK; size != 0 && rc == DSA_OK; /* void */) {
        seed = seed * 1664525 + 1013904223;
        n = 1 + (seed >> 16) % (how + 1);

        if (n > size) {
            n = size;
        }

        rc = dsa_json_feed(p, data, n, &err);

        data += n;
        size -= n;
    }

    if (rc == DSA_OK) {
        root = dsa_json_finish(p, &err);
    }

    dsa_json_parser_destroy(p);

    return root;
}


static void
fuzz_prompt(const dsa_prompt_t *prompt)
{
    size_t    bytes;
    uint32_t  i, k;

    bytes = 0;

    for (i = 0; i < prompt->n; i++) {
        bytes += prompt->segments[i].text.len;

        if (prompt->segments[i].kind == DSA_SEGMENT_TEXT) {
            continue;
        }

        for (k = 0; k < DSA_DEEPSEEK_TOKENS; k++) {
            if (dsa_str_eq(prompt->segments[i].text,
                           dsa_deepseek_tokens[k].name))
            {
                break;
            }
        }

        if (k == DSA_DEEPSEEK_TOKENS) {
            abort();
        }
    }

    if (bytes != prompt->bytes || prompt->n == 0) {
        abort();
    }
}


/* Messages that are stored must read back, and give the same text again. */

static void
fuzz_messages(dsa_arena_t *arena, const dsa_chat_t *chat,
    const dsa_chat_limits_t *limits)
{
    uint32_t       i;
    dsa_err_t      err;
    dsa_buf_t      first, second;
    dsa_chat_t     stored;
    dsa_json_t    *v;
    dsa_refusal_t  refusal;

    memset(&first, 0, sizeof(dsa_buf_t));
    memset(&second, 0, sizeof(dsa_buf_t));
    memset(&stored, 0, sizeof(dsa_chat_t));

    dsa_buf_addz(&first, "[");

    for (i = 0; i < chat->n_messages; i++) {
        dsa_buf_addz(&first, i == 0 ? "" : ",");

        if (dsa_message_dump(&first, &chat->messages[i]) != DSA_OK) {
            abort();
        }
    }

    dsa_buf_addz(&first, "]");

    v = dsa_json_parse(arena, first.data, first.len, FUZZ_DEPTH, &err);

    if (v == NULL
        || dsa_chat_prepend(&stored, arena, v, limits, &refusal) != DSA_OK)
    {
        if (!dsa_arena_exceeded(arena)) {
            abort();
        }

        goto done;
    }

    if (stored.n_messages != chat->n_messages) {
        abort();
    }

    dsa_buf_addz(&second, "[");

    for (i = 0; i < stored.n_messages; i++) {
        dsa_buf_addz(&second, i == 0 ? "" : ",");

        if (!fuzz_same(&chat->messages[i], &stored.messages[i])) {
            abort();
        }

        if (dsa_message_dump(&second, &stored.messages[i]) != DSA_OK) {
            abort();
        }
    }

    dsa_buf_addz(&second, "]");

    if (first.len != second.len
        || memcmp(first.data, second.data, first.len) != 0)
    {
        abort();
    }

done:

    dsa_buf_free(&first);
    dsa_buf_free(&second);
}


static int
fuzz_same(const dsa_message_t *a, const dsa_message_t *b)
{
    uint32_t  i;

    if (a->role != b->role || a->n_calls != b->n_calls
        || a->has_reasoning != b->has_reasoning
        || !dsa_str_eq(a->content, b->content)
        || !dsa_str_eq(a->reasoning, b->reasoning)
        || !dsa_str_eq(a->tool_call_id, b->tool_call_id))
    {
        return 0;
    }

    for (i = 0; i < a->n_calls; i++) {
        if (!dsa_str_eq(a->calls[i].id, b->calls[i].id)
            || !dsa_str_eq(a->calls[i].name, b->calls[i].name)
            || !dsa_str_eq(a->calls[i].raw, b->calls[i].raw))
        {
            return 0;
        }
    }

    return 1;
}
