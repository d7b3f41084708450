
/*
 * Copyright (C) The nginx-dsa authors
 */


/* The stages that read what Redis returns: conversations, retained answers. */


#include "base/json_write.h"
#include "context/conversation.h"
#include "context/references.h"
#include "context/responses.h"
#include "bench/stages.h"


#define STORED   (4 * 1024 * 1024 - 4096)   /* of what Redis has */


/* Entries of a conversation, each of which is entry. */

static void
make_entries(stage_input_t *in, const char *entry)
{
    uint32_t    i, n;
    int64_t    *numbers;
    dsa_str_t  *entries;

    n = (uint32_t) (STORED / strlen(entry));

    if (n > 8192) {
        n = 8192;
    }

    stage_fill(in, "", entry, "", STORED, n);

    in->arena = stage_arena(in);
    entries = dsa_arena_alloc(in->arena, n * sizeof(dsa_str_t));
    numbers = dsa_arena_alloc(in->arena, n * sizeof(int64_t));

    for (i = 0; i < n; i++) {
        entries[i] = dsa_str(in->text.data + i * strlen(entry), strlen(entry));
        numbers[i] = i + 1;
    }

    in->conversation.owner = dsa_strz("0123456789abcdef0123456789abcdef");
    in->conversation.entries = entries;
    in->conversation.numbers = numbers;
    in->conversation.n = n;
}


static void
make_conversation(stage_input_t *in)
{
    char  entry[512];

    memset(entry, 'x', sizeof(entry));
    memcpy(entry, "{\"role\":\"user\",\"content\":\"", 26);
    memcpy(entry + sizeof(entry) - 3, "\"}", 3);

    make_entries(in, entry);
}


static void
make_conversation_escapes(stage_input_t *in)
{
    size_t   i;
    char    *entry;

    entry = malloc(STORED);
    stage_must(entry != NULL, "malloc()");

    for (i = 0; i < STORED - 1; i += 2) {
        memcpy(entry + i, "\\n", 2);
    }

    memcpy(entry, "{\"role\":\"user\",\"content\":\"", 26);
    memcpy(entry + STORED - 4, " \"}", 4);

    make_entries(in, entry);
    free(entry);
}


static void
run_insert(stage_input_t *in)
{
    dsa_chat_t     chat;
    dsa_refusal_t  refusal;

    memset(&chat, 0, sizeof(dsa_chat_t));

    stage_must(dsa_conversation_insert(&chat, in->work, &in->conversation,
                                       &stage_limits, &refusal)
               == DSA_OK, "inserting");
}


static void
run_show(stage_input_t *in)
{
    dsa_buf_t          b;
    dsa_err_t          err;
    dsa_json_writer_t  w;

    memset(&b, 0, sizeof(dsa_buf_t));
    dsa_json_writer(&w, &b);

    stage_must(dsa_conversation_messages(&w, in->work, &in->conversation, &err)
               == DSA_OK, "messages");

    dsa_buf_free(&b);
}


static void
run_list(stage_input_t *in)
{
    uint32_t                  i, n;
    dsa_buf_t                 b;
    dsa_err_t                 err;
    dsa_conversation_item_t  *items;

    stage_must(dsa_conversation_items(&items, &n, in->work, &in->conversation,
                                      &err)
               == DSA_OK, "items");

    memset(&b, 0, sizeof(dsa_buf_t));

    for (i = 0; i < n && i < 100; i++) {
        (void) dsa_json_dump(&b, items[i].object);
    }

    dsa_buf_free(&b);
}


static void
make_chain(stage_input_t *in)
{
    uint32_t     i;

    stage_fill(in, "[",
               "{\"role\":\"user\",\"content\":\"xxxxxxxxxxxxxxxxxxxxxxxxxx"
               "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
               "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
               "\"},", "]", STORED / 2000, SIZE_MAX);

    in->arena = stage_arena(in);
    in->lists = malloc(2000 * sizeof(dsa_str_t));
    in->n_lists = 2000;

    for (i = 0; i < in->n_lists; i++) {
        in->lists[i] = dsa_str(in->text.data, in->text.len);
    }
}


static void
run_chain(stage_input_t *in)
{
    dsa_chat_t         chat;
    dsa_arena_t       *work;
    dsa_refusal_t      refusal;
    dsa_chat_limits_t  many;

    work = dsa_arena_create(64 * 1024 * 1024);
    memset(&chat, 0, sizeof(dsa_chat_t));

    many = stage_limits;
    many.max_messages = UINT32_MAX;

    stage_must(dsa_responses_insert(&chat, work, in->lists, in->n_lists, &many,
                                    &refusal)
               == DSA_OK, "inserting a chain");

    dsa_arena_destroy(work);
}


static void
run_wanted(stage_input_t *in)
{
    uint32_t  i;

    in->chat.thinking = 0;

    for (i = 0; i < in->chat.n_messages; i++) {
        (void) dsa_retain_wanted(&in->chat, i);
    }
}


/* A retained answer of the greatest length; four of them are compared. */

static void
make_retained(stage_input_t *in)
{
    size_t                 i;
    dsa_sampled_writer_t   w;
    dsa_err_t              err;

    memset(&w, 0, sizeof(dsa_sampled_writer_t));

    dsa_sampled_start(&w, stage_family, 1, 0);

    for (i = 0; i < (1024 * 1024 - 4096) / 9; i++) {
        dsa_sampled_add(&w, dsa_strz("reasoning"), 0);
    }

    stage_must(dsa_sampled_end(&w) == DSA_OK, "a retained answer");

    in->text = w.answer;
    in->arena = stage_arena(in);
    in->sampled = dsa_sampled_read(in->arena, stage_family,
                                   dsa_str(in->text.data, in->text.len), &err);
    stage_must(in->sampled != NULL, "a retained answer");
}


static void
run_restore(stage_input_t *in)
{
    dsa_err_t       err;
    dsa_retain_e    what;
    dsa_sampled_t  *s;
    dsa_message_t   m;

    memset(&m, 0, sizeof(dsa_message_t));

    s = dsa_sampled_read(in->work, stage_family,
                         dsa_str(in->text.data, in->text.len), &err);
    stage_must(s != NULL
               && dsa_retain_restore(&m, s, NULL, in->work, &what) == DSA_OK,
               "restoring");
}


const stage_t  stages_stored[] = {
    { "insert, conversation", make_conversation, run_insert },
    { "insert, conversation of escapes", make_conversation_escapes,
      run_insert },
    { "insert, chain", make_chain, run_chain },
    { "show, conversation", make_conversation, run_show },
    { "list, conversation", make_conversation, run_list },
    { "list, conversation of escapes", make_conversation_escapes, run_list },
    { "retention, keys", stage_make_check, run_wanted },
    { "retention, answer", make_retained, run_restore },
    { NULL, NULL, NULL }
};
