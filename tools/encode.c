
/*
 * Copyright (C) The nginx-dsa authors
 *
 * dsa encode: encodes a chat request into the exact text of its prompt.
 *
 * The request switches thinking on or off by "thinking", "reasoning_effort" or
 * its model's name.  Without any of them it is on if messages have reasoning,
 * or if the family has it on by default.
 */


#include <stdio.h>

#include "base/json_write.h"
#include "base/options.h"
#include "context/family.h"
#include "tools/dsa.h"
#include "tools/family.h"


#define DSA_ENCODE_MEMORY   (1024 * 1024 * 1024)
#define DSA_ENCODE_DEPTH    128


static int dsa_encode_stdin(const dsa_family_t *family, dsa_arena_t *arena,
    int segments);
static dsa_json_t *dsa_encode_read(dsa_arena_t *arena);
static int dsa_encode_thinks(const dsa_chat_t *chat);
static int dsa_encode_print(const dsa_prompt_t *prompt);
static int dsa_encode_print_segments(const dsa_prompt_t *prompt);


static const char  dsa_encode_usage[] =
    "usage: dsa encode [--family NAME] [--segments]\n"
    "  Reads a chat request (JSON) from stdin and prints the text of its\n"
    "  prompt.  tools and response_format may also be on a message.\n"
    "  --family NAME is the format of the prompt: deepseek (the default),\n"
    "  deepseek-v3.1, glm-4.7-flash, glm-5, glm-5.1, glm-5.2 or glm-5.3.\n"
    "  --segments prints the prompt as a JSON array of {\"control\": NAME}\n"
    "  and {\"text\": TEXT}.\n";


int
dsa_cmd_encode(int argc, char **argv)
{
    int                  c, rc, segments;
    const char          *name;
    dsa_arena_t         *arena;
    const dsa_family_t  *family;

    static const struct option  options[] = {
        { "family", required_argument, NULL, 'f' },
        { "segments", no_argument, NULL, 's' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    segments = 0;
    name = NULL;

    for ( ;; ) {
        c = dsa_option("dsa encode", argc, argv, "h", options);

        if (c == -1) {
            break;
        }

        if (c == 'h') {
            (void) printf("%s", dsa_encode_usage);
            return 0;
        }

        if (c == 'f') {
            name = optarg;
            continue;
        }

        if (c != 's') {
            return 2;
        }

        segments = 1;
    }

    if (optind != argc) {
        (void) fprintf(stderr, "%s", dsa_encode_usage);
        return 2;
    }

    family = dsa_option_family("dsa encode", name);

    if (family == NULL) {
        return 2;
    }

    arena = dsa_arena_create(DSA_ENCODE_MEMORY);

    if (arena == NULL) {
        (void) fprintf(stderr, "dsa encode: out of memory\n");
        return 1;
    }

    rc = dsa_encode_stdin(family, arena, segments);

    dsa_arena_destroy(arena);

    return rc;
}


static int
dsa_encode_stdin(const dsa_family_t *family, dsa_arena_t *arena,
    int segments)
{
    int                  rc;
    dsa_err_t            err;
    dsa_chat_t           chat;
    dsa_json_t          *root;
    dsa_prompt_t         prompt;
    dsa_refusal_t        refusal;
    dsa_chat_limits_t    limits;

    limits.max_messages = UINT32_MAX;
    limits.max_tools = UINT32_MAX;
    limits.hosted = 0;

    root = dsa_encode_read(arena);

    if (root == NULL) {
        return 1;
    }

    rc = dsa_chat_read(&chat, arena, root, &limits, &refusal);

    if (rc == DSA_OK) {
        if (chat.model.len == 0 && !chat.thinking_given) {
            chat.thinking = dsa_encode_thinks(&chat);
        }

        rc = dsa_family_apply(family, &chat, &refusal);
    }

    if (rc == DSA_OK) {
        rc = dsa_chat_check(&chat, &refusal);
    }

    if (rc == DSA_OK) {
        rc = dsa_family_check(family, &chat, &refusal);
    }

    if (rc != DSA_OK) {
        (void) fprintf(stderr, "dsa encode: %s\n", refusal.message);
        return 1;
    }

    if (family->encode(&prompt, arena, &chat, &err) != DSA_OK) {
        (void) fprintf(stderr, "dsa encode: %s\n", err.text);
        return 1;
    }

    rc = segments ? dsa_encode_print_segments(&prompt)
                  : dsa_encode_print(&prompt);

    if (rc != DSA_OK || fflush(stdout) != 0) {
        perror("dsa encode: stdout");
        return 1;
    }

    return 0;
}


static dsa_json_t *
dsa_encode_read(dsa_arena_t *arena)
{
    int                 rc;
    char                buf[65536];
    size_t              n;
    dsa_err_t           err;
    dsa_json_t         *root;
    dsa_json_parser_t  *p;

    p = dsa_json_parser_create(arena, DSA_ENCODE_DEPTH);

    if (p == NULL) {
        (void) fprintf(stderr, "dsa encode: out of memory\n");
        return NULL;
    }

    rc = DSA_OK;

    do {
        n = fread(buf, 1, sizeof(buf), stdin);
        rc = dsa_json_feed(p, buf, n, &err);
    } while (n != 0 && rc == DSA_OK);

    root = NULL;

    if (ferror(stdin)) {
        perror("dsa encode: stdin");

    } else {
        if (rc == DSA_OK) {
            root = dsa_json_finish(p, &err);
        }

        if (root == NULL) {
            (void) fprintf(stderr, "dsa encode: stdin: %s\n", err.text);
        }
    }

    dsa_json_parser_destroy(p);

    return root;
}


static int
dsa_encode_thinks(const dsa_chat_t *chat)
{
    uint32_t  i;

    for (i = 0; i < chat->n_messages; i++) {
        if (chat->messages[i].reasoning.len != 0) {
            return 1;
        }
    }

    return 0;
}


static int
dsa_encode_print(const dsa_prompt_t *prompt)
{
    uint32_t          i;
    const dsa_str_t  *s;

    for (i = 0; i < prompt->n; i++) {
        s = &prompt->segments[i].text;

        if (fwrite(s->data, 1, s->len, stdout) != s->len) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static int
dsa_encode_print_segments(const dsa_prompt_t *prompt)
{
    int                   rc;
    uint32_t              i;
    dsa_buf_t             b;
    dsa_json_writer_t     w;
    const dsa_segment_t  *s;

    memset(&b, 0, sizeof(dsa_buf_t));

    dsa_json_writer(&w, &b);
    dsa_json_array(&w);

    for (i = 0; i < prompt->n; i++) {
        s = &prompt->segments[i];

        dsa_json_object(&w);
        dsa_json_key(&w, s->kind == DSA_SEGMENT_CONTROL ? "control" : "text");
        dsa_json_string(&w, s->text);
        dsa_json_object_end(&w);
    }

    dsa_json_array_end(&w);
    dsa_buf_addz(&b, "\n");

    rc = DSA_OK;

    if (b.failed || fwrite(b.data, 1, b.len, stdout) != b.len) {
        rc = DSA_ERROR;
    }

    dsa_buf_free(&b);

    return rc;
}
