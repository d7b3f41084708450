
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A Responses body: JSON, messages, check, prompt, the grammar of the answer,
 * and its items as they are stored, which must read back as the same messages.
 */


#include <stdlib.h>

#include "context/encode.h"
#include "context/responses.h"
#include "t/fuzz/request.h"


#define FUZZ_MEMORY   (8 * 1024 * 1024)
#define FUZZ_DEPTH    32


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int fuzz_open(void *data, dsa_arena_t *arena, dsa_str_t sealed,
    dsa_str_t *text);
static const char *fuzz_id(void *data, const char *prefix);
static void fuzz_items(dsa_arena_t *arena, const dsa_responses_t *request,
    const dsa_chat_t *chat);
static void fuzz_echo(dsa_arena_t *arena, const dsa_json_t *root);


static const dsa_responses_reader_t  reader = {
    { 64, 8, 1 }, fuzz_open, NULL
};


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dsa_err_t        err;
    dsa_chat_t       chat;
    dsa_json_t      *root;
    dsa_arena_t     *arena;
    dsa_prompt_t     prompt;
    dsa_refusal_t    refusal;
    dsa_responses_t  request;

    memset(&refusal, 0, sizeof(dsa_refusal_t));

    arena = dsa_arena_create(FUZZ_MEMORY);

    if (arena == NULL) {
        return 0;
    }

    root = dsa_json_parse(arena, data, size, FUZZ_DEPTH, &err);

    if (root == NULL) {
        goto done;
    }

    if (dsa_responses_read(&request, &chat, arena, root, &reader, &refusal)
        != DSA_OK)
    {
        fuzz_refusal(&refusal);
        goto done;
    }

    fuzz_items(arena, &request, &chat);
    fuzz_echo(arena, root);

    if (dsa_chat_check(&chat, &refusal) != DSA_OK) {
        fuzz_refusal(&refusal);
        goto done;
    }

    if (dsa_encode(&prompt, arena, &chat, &err) != DSA_OK
        && !dsa_arena_exceeded(arena))
    {
        abort();
    }

    fuzz_format(arena, &chat);

done:

    dsa_arena_destroy(arena);

    return 0;
}


/* Every text that begins with "s" was encrypted here. */

static int
fuzz_open(void *data, dsa_arena_t *arena, dsa_str_t sealed, dsa_str_t *text)
{
    if (sealed.len == 0 || sealed.data[0] != 's') {
        return DSA_AGAIN;
    }

    *text = dsa_str(sealed.data + 1, sealed.len - 1);

    return DSA_OK;
}


static const char *
fuzz_id(void *data, const char *prefix)
{
    return prefix;
}


static void
fuzz_items(dsa_arena_t *arena, const dsa_responses_t *request,
    const dsa_chat_t *chat)
{
    uint32_t              i, k, first;
    dsa_buf_t             b, items;
    dsa_str_t             list;
    dsa_chat_t            again;
    dsa_refusal_t         refusal;
    const dsa_message_t  *one, *two;

    memset(&b, 0, sizeof(dsa_buf_t));
    memset(&items, 0, sizeof(dsa_buf_t));
    memset(&again, 0, sizeof(dsa_chat_t));

    if (dsa_responses_items(&items, arena, request->input, &reader, fuzz_id,
                            NULL)
        != DSA_OK)
    {
        goto failed;
    }

    dsa_responses_array(&b, &items);

    list = dsa_str(b.data, b.len);

    if (dsa_responses_insert(&again, arena, &list, 1, &reader.limits, &refusal)
        != DSA_OK)
    {
        goto failed;
    }

    first = chat->n_stored;

    if (again.n_messages != chat->n_messages - first) {
        abort();
    }

    for (i = 0; i < again.n_messages; i++) {
        one = &chat->messages[first + i];
        two = &again.messages[i];

        if (one->role != two->role || one->n_calls != two->n_calls
            || !dsa_str_eq(one->content, two->content)
            || !dsa_str_eq(one->reasoning, two->reasoning)
            || !dsa_str_eq(one->tool_call_id, two->tool_call_id))
        {
            abort();
        }

        for (k = 0; k < one->n_calls; k++) {
            if (!dsa_str_eq(one->calls[k].id, two->calls[k].id)
                || !dsa_str_eq(one->calls[k].name, two->calls[k].name))
            {
                abort();
            }
        }
    }

    dsa_buf_free(&items);
    dsa_buf_free(&b);

    return;

failed:

    if (!dsa_arena_exceeded(arena) && !b.failed && !items.failed) {
        abort();
    }

    dsa_buf_free(&items);
    dsa_buf_free(&b);
}


/* The members that a response repeats are JSON. */

static void
fuzz_echo(dsa_arena_t *arena, const dsa_json_t *root)
{
    dsa_buf_t  b;
    dsa_err_t  err;

    memset(&b, 0, sizeof(dsa_buf_t));

    dsa_buf_addz(&b, "{\"id\":0");

    if (dsa_responses_echo(&b, root) == DSA_OK) {
        dsa_buf_addz(&b, "}");

        if (!b.failed
            && dsa_json_parse(arena, b.data, b.len, FUZZ_DEPTH + 1, &err)
               == NULL
            && !dsa_arena_exceeded(arena))
        {
            abort();
        }
    }

    dsa_buf_free(&b);
}
