
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TEST_GLM_H_INCLUDED_
#define _DSA_TEST_GLM_H_INCLUDED_


#include "t/unit/file.h"


/*
 * Chats of families, and their prompts; the macros are for those of GLM.
 * cmocka.h must be included before this file.
 */

#define START         "[gMASK]<sop>"
#define EFFORT(word)  "<|system|>Reasoning Effort: " word
#define USER(text)    "{\"role\":\"user\",\"content\":\"" text "\"}"
#define MODEL         "\"model\":\"m\","
#define ASK           MODEL "\"messages\":[" USER("q") "]"
#define TURN          MODEL "\"messages\":[" USER("a") ","                    \
                      "{\"role\":\"assistant\","                             \
                      "\"content\":\"b\",\"reasoning_content\":\"r\"},"       \
                      USER("c") "]"


static const dsa_chat_limits_t  glm_limits = { 1000, 128, 1 };


typedef struct {
    const dsa_family_t  *family;
    dsa_arena_t         *arena;
    dsa_chat_t           chat;
    dsa_prompt_t         prompt;
} glm_chat_t;


/* Reads a request and checks it; family NULL: "model" names it. */

static inline void
glm_chat_text(glm_chat_t *c, const char *family, const char *text, size_t len)
{
    char            name[64];
    dsa_err_t       err;
    dsa_json_t     *root;
    dsa_refusal_t   refusal;

    memset(c, 0, sizeof(glm_chat_t));

    c->arena = dsa_arena_create(16 * 1024 * 1024);
    assert_non_null(c->arena);

    root = dsa_json_parse(c->arena, text, len, 64, &err);

    if (root == NULL) {
        fail_msg("%s", err.text);
    }

    if (dsa_chat_read(&c->chat, c->arena, root, &glm_limits, &refusal)
        != DSA_OK)
    {
        fail_msg("%s", refusal.message);
    }

    (void) snprintf(name, sizeof(name), "%.*s", (int) c->chat.model.len,
                    c->chat.model.data);
    c->family = dsa_family_find(family != NULL ? family : name);
    assert_non_null(c->family);

    if (dsa_family_apply(c->family, &c->chat, &refusal) != DSA_OK
        || dsa_chat_check(&c->chat, &refusal) != DSA_OK
        || dsa_family_check(c->family, &c->chat, &refusal) != DSA_OK)
    {
        fail_msg("%s", refusal.message);
    }
}


static inline void
glm_chat_file(glm_chat_t *c, const char *path)
{
    char    *text;
    size_t   len;

    text = read_file(path, &len);
    glm_chat_text(c, NULL, text, len);
    free(text);
}


static inline void
glm_chat_free(glm_chat_t *c)
{
    dsa_arena_destroy(c->arena);
}


/* The text of a prompt, NUL-terminated. */

static inline char *
glm_text(dsa_arena_t *arena, const dsa_prompt_t *prompt)
{
    char      *text, *p;
    uint32_t   i;

    p = text = dsa_arena_alloc(arena, prompt->bytes + 1);
    assert_non_null(text);

    for (i = 0; i < prompt->n; i++) {
        p = (char *) mempcpy(p, prompt->segments[i].text.data,
                             prompt->segments[i].text.len);
    }

    *p = '\0';

    return text;
}


static inline const char *
glm_encode(glm_chat_t *c)
{
    dsa_err_t  err;

    if (c->family->encode(&c->prompt, c->arena, &c->chat, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    return glm_text(c->arena, &c->prompt);
}


#endif /* _DSA_TEST_GLM_H_INCLUDED_ */
