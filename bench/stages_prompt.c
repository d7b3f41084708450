
/*
 * Copyright (C) The nginx-dsa authors
 */


/* The stages from a chat to a prompt, within the context window. */


#include "context/prompt_keys.h"
#include "context/summary.h"
#include "bench/stages.h"


static void
run_check(stage_input_t *in)
{
    dsa_refusal_t  refusal;

    (void) dsa_chat_check(&in->chat, &refusal);
}


static void
make_check_json(stage_input_t *in)
{
    stage_fill(in, "{\"model\":\"m\",\"response_format\":{\"type\":"
               "\"json_object\"},\"messages\":["
               "{\"role\":\"user\",\"content\":\"", "jsojsojsojso", "\"}]}",
               BODY, SIZE_MAX);
    stage_read_chat(in);
}


static void
make_encode(stage_input_t *in)
{
    stage_make_plain(in);
    stage_read_chat(in);
}


static void
make_encode_calls(stage_input_t *in)
{
    dsa_refusal_t  refusal;

    stage_make_calls(in);
    stage_read_chat(in);
    stage_must(dsa_chat_check(&in->chat, &refusal) == DSA_OK,
               "checking a chat");
}


static void
make_encode_tools(stage_input_t *in)
{
    stage_make_tools(in);
    stage_read_chat(in);
}


static void
run_encode(stage_input_t *in)
{
    dsa_err_t     err;
    dsa_prompt_t  prompt;

    stage_must(stage_family->encode(&prompt, in->work, &in->chat, &err)
               == DSA_OK, "encoding");
}


static void
make_keys(stage_input_t *in)
{
    dsa_err_t  err;

    make_encode(in);
    stage_must(stage_family->encode(&in->prompt, in->arena, &in->chat, &err)
               == DSA_OK, "encoding");
}


static void
run_keys(stage_input_t *in)
{
    dsa_prompt_keys_t           keys;

    static const uint8_t  secret[DSA_PROMPT_SECRET];

    dsa_prompt_keys(&keys, &in->prompt, &stage_family->tokens, secret,
                             secret, dsa_strz("m"));
}


static void
run_dump(stage_input_t *in)
{
    uint32_t   i;
    dsa_buf_t  b;

    memset(&b, 0, sizeof(dsa_buf_t));

    for (i = 0; i < in->chat.n_messages; i++) {
        stage_must(dsa_message_dump(&b, &in->chat.messages[i]) == DSA_OK,
                   "dump");
    }

    dsa_buf_free(&b);
}


/* Rounds of one call each. */

static void
make_rounds(stage_input_t *in)
{
    size_t  i;

    dsa_buf_addz(&in->text, ONE "x\"}");

    for (i = 0; i < 4000; i++) {
        dsa_buf_printf(&in->text, ",{\"role\":\"assistant\",\"content\":\"\","
                       "\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\","
                       "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},"
                       "{\"role\":\"tool\",\"tool_call_id\":\"c\","
                       "\"content\":\"");
        stage_fill(in, "", "result of a call ", "\"}", 1800, SIZE_MAX);
    }

    dsa_buf_addz(&in->text, "]}");
    stage_must(!in->text.failed, "malloc()");
}


static void
make_window(stage_input_t *in)
{
    make_rounds(in);
    stage_read_chat(in);

    stage_must(dsa_window_init(&in->window, in->arena, &in->chat,
                               DSA_WINDOW_SUMMARY, 100000)
               == DSA_OK, "a window");
}


static void
run_window_init(stage_input_t *in)
{
    dsa_window_t  w;

    stage_must(dsa_window_init(&w, in->work, &in->chat, DSA_WINDOW_SUMMARY,
                               100000)
               == DSA_OK, "a window");
}


static void
run_window(stage_input_t *in)
{
    dsa_err_t     err;
    dsa_chat_t    chat;
    dsa_prompt_t  prompt;

    stage_must(dsa_window_chat(&in->window, in->work, &chat) == DSA_OK
               && stage_family->encode(&prompt, in->work, &chat, &err)
                  == DSA_OK,
               "a window");
}


static void
run_summary(stage_input_t *in)
{
    dsa_err_t     err;
    dsa_prompt_t  prompt;

    in->window.cut = in->window.n_rounds / 2;

    (void) dsa_summary_prompt(stage_family, &prompt, in->work, &in->window, 0,
                              dsa_str(NULL, 0), &err);
}


const stage_t  stages_prompt[] = {
    { "check, 1,000 calls", stage_make_check, run_check },
    { "check, JSON", make_check_json, run_check },
    { "dump, text", make_encode, run_dump },
    { "encode, text", make_encode, run_encode },
    { "encode, 1,000 calls", make_encode_calls, run_encode },
    { "encode, 128 tools", make_encode_tools, run_encode },
    { "keys", make_keys, run_keys },
    { "window, begin", make_window, run_window_init },
    { "window, prompt", make_window, run_window },
    { "window, digests", make_window, run_dump },
    { "summary, prompt", make_window, run_summary },
    { NULL, NULL, NULL }
};
