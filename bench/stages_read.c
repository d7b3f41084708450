
/*
 * Copyright (C) The nginx-dsa authors
 */


/* The stages from a body to a chat, in each API. */


#include "context/anthropic.h"
#include "context/responses.h"
#include "bench/stages.h"


static const dsa_responses_reader_t  reader = {
    .limits = { .max_messages = 8192, .max_tools = 128, .hosted = 1 }
};


static void
make_escapes(stage_input_t *in)
{
    stage_fill(in, ONE, "\\n", "\"}]}", BODY, SIZE_MAX);
}


static void
make_unicode(stage_input_t *in)
{
    stage_fill(in, ONE, "\\u00e9", "\"}]}", BODY, SIZE_MAX);
}


static void
make_values(stage_input_t *in)
{
    stage_fill(in, "[", "0            ,", "]", BODY, DSA_JSON_VALUES - 1);
}


static void
make_members(stage_input_t *in)
{
    stage_fill(in, MANY, "{\"a\":0          },", "]}", BODY,
               DSA_JSON_VALUES / 2 - 2);
}


static void
make_nested(stage_input_t *in)
{
    size_t  i, k;

    dsa_buf_addz(&in->text, "[");

    for (i = 0; i < DSA_JSON_VALUES / 128; i++) {
        for (k = 0; k < 126; k++) {
            dsa_buf_addz(&in->text, "[");
        }

        for (k = 0; k < 126; k++) {
            dsa_buf_addz(&in->text, "]");
        }

        dsa_buf_addz(&in->text, ",");
    }

    in->text.len--;
    dsa_buf_addz(&in->text, "]");
}


static void
make_messages(stage_input_t *in)
{
    stage_fill(in, MANY, "{\"role\":\"user\",\"content\":\"x\"},", "]}",
               BODY, 100000);
}


static void
run_parse(stage_input_t *in)
{
    dsa_err_t           err;
    dsa_json_parser_t  *p;

    p = dsa_json_parser_create(in->work, DEPTH);

    if (dsa_json_feed(p, in->text.data, in->text.len, &err) == DSA_OK) {
        (void) dsa_json_finish(p, &err);
    }

    dsa_json_parser_destroy(p);
}


static void
make_read_plain(stage_input_t *in)
{
    stage_make_plain(in);
    stage_parse(in);
}


static void
make_read_messages(stage_input_t *in)
{
    stage_fill(in, MANY, "{\"role\":\"user\",\"content\":\"x\"},", "]}",
               BODY, 80000);
    stage_parse(in);
}


static void
make_read_8192(stage_input_t *in)
{
    stage_fill(in, MANY, "{\"role\":\"user\",\"content\":\"x\"},", "]}",
               BODY, 8192);
    stage_parse(in);
}


static void
make_read_parts(stage_input_t *in)
{
    stage_fill(in, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\","
               "\"content\":[",
               "{\"type\":\"text\",\"text\":\"x\"},", "]}]}", BODY, 87000);
    stage_parse(in);
}


static void
make_read_unknown(stage_input_t *in)
{
    size_t  i;

    dsa_buf_addz(&in->text, "{");

    for (i = 0; i < 262000; i++) {
        dsa_buf_printf(&in->text, "\"u%zu\":0,", i);
    }

    dsa_buf_addz(&in->text,
                 "\"model\":\"m\",\"messages\":[{\"role\":\"user\","
                 "\"content\":\"x\"}]}");
    stage_parse(in);
}


static void
make_read_unknown_message(stage_input_t *in)
{
    size_t  i;

    dsa_buf_addz(&in->text, "{\"model\":\"m\",\"messages\":[{");

    for (i = 0; i < 262000; i++) {
        dsa_buf_printf(&in->text, "\"u%zu\":0,", i);
    }

    dsa_buf_addz(&in->text, "\"role\":\"user\",\"content\":\"x\"}]}");
    stage_parse(in);
}


static void
make_read_tools(stage_input_t *in)
{
    stage_make_tools(in);
    stage_parse(in);
}


static void
make_read_calls(stage_input_t *in)
{
    stage_make_calls(in);
    stage_parse(in);
}


static void
run_read(stage_input_t *in)
{
    dsa_chat_t      chat;
    dsa_format_t    format;
    dsa_refusal_t   refusal;

    if (dsa_chat_read(&chat, in->work, in->root, &stage_limits, &refusal)
        == DSA_OK)
    {
        (void) dsa_format_spec(&format, stage_family, &chat, in->work,
                               &refusal);
    }
}


static void
make_anthropic(stage_input_t *in)
{
    stage_fill(in, "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{\"role\":"
               "\"user\",\"content\":[", "{\"type\":\"text\",\"text\":\"x\"},",
               "]}]}", BODY, 87000);
    stage_parse(in);
}


static void
run_anthropic(stage_input_t *in)
{
    dsa_chat_t      chat;
    dsa_refusal_t   refusal;

    (void) dsa_anthropic_read(&chat, in->work, in->root, &stage_limits, 0,
                              &refusal);
}


static const char *
make_id(void *data, const char *prefix)
{
    return "msg_0123456789abcdef0123456789abcdef0123456789abcdef";
}


static void
make_items(stage_input_t *in)
{
    stage_fill(in, "{\"model\":\"m\",\"input\":[",
               "{\"role\":\"user\",\"content\":"
               "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
               "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
               "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
               "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
               "\"},", "]}", BODY, 8000);
    stage_parse(in);
}


static void
run_items(stage_input_t *in)
{
    dsa_buf_t        b;
    dsa_chat_t       chat;
    dsa_refusal_t    refusal;
    dsa_responses_t  request;

    memset(&b, 0, sizeof(dsa_buf_t));

    if (dsa_responses_read(&request, &chat, in->work, in->root, &reader,
                           &refusal)
        == DSA_OK)
    {
        (void) dsa_responses_echo(&b, in->root);
        (void) dsa_responses_items(&b, in->work, request.input, &reader,
                                   make_id, NULL);
    }

    dsa_buf_free(&b);
}


const stage_t  stages_read[] = {
    { "parse, text", stage_make_plain, run_parse },
    { "parse, escapes \\n", make_escapes, run_parse },
    { "parse, escapes \\u", make_unicode, run_parse },
    { "parse, 262,144 values", make_values, run_parse },
    { "parse, 131,070 objects", make_members, run_parse },
    { "parse, 126 levels", make_nested, run_parse },
    { "parse, 100,000 messages", make_messages, run_parse },
    { "read, text", make_read_plain, run_read },
    { "read, 8,192 messages", make_read_8192, run_read },
    { "read, 80,000 messages", make_read_messages, run_read },
    { "read, 87,000 parts", make_read_parts, run_read },
    { "read, 262,000 fields", make_read_unknown, run_read },
    { "read, 262,000 fields of a message", make_read_unknown_message,
      run_read },
    { "read, 128 tools with a spec", make_read_tools, run_read },
    { "read, 1,000 calls", make_read_calls, run_read },
    { "read, Anthropic's parts", make_anthropic, run_anthropic },
    { "read, items, and copies of them", make_items, run_items },
    { NULL, NULL, NULL }
};
