
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "context/glm/glm.h"


_Static_assert((int) DSA_GLM_TOKENS <= DSA_CONTROL_TOKENS_MAX,
               "a vocabulary has a bit for each token");


/*
 * A version: its differences, and the functions of context/family.h, which have
 * no argument for them.
 */

#define dsa_glm_functions(v)                                                  \
                                                                              \
static int                                                                    \
dsa_glm_ ## v ## _apply(dsa_chat_t *chat, dsa_refusal_t *refusal)             \
{                                                                             \
    return dsa_glm_apply(&dsa_glm_version_ ## v, chat, refusal);              \
}                                                                             \
                                                                              \
                                                                              \
static int                                                                    \
dsa_glm_ ## v ## _encode(dsa_prompt_t *prompt, dsa_arena_t *arena,            \
    const dsa_chat_t *chat, dsa_err_t *err)                                   \
{                                                                             \
    return dsa_glm_encode(&dsa_glm_version_ ## v, prompt, arena, chat, err);  \
}                                                                             \
                                                                              \
                                                                              \
static int                                                                    \
dsa_glm_ ## v ## _ask(dsa_prompt_t *prompt, dsa_arena_t *arena,               \
    dsa_str_t question, dsa_str_t answer, dsa_err_t *err)                     \
{                                                                             \
    return dsa_glm_ask(&dsa_glm_version_ ## v, prompt, arena, question,       \
                       answer, err);                                          \
}


#define dsa_glm_family(v, version, text, can)                                 \
                                                                              \
const dsa_family_t  dsa_glm_ ## v = {                                         \
    .name = text,                                                             \
    .owner = "z-ai",                                                          \
    .tokens = { dsa_glm_tokens, DSA_GLM_TOKENS },                             \
    .modes = can,                                                             \
    .syntax = "glm",                                                          \
    .typed = 1,                                                               \
    .parser = &dsa_glm_parser,                                                \
    .apply = dsa_glm_ ## version ## _apply,                                   \
    .encode = dsa_glm_ ## version ## _encode,                                 \
    .complete = dsa_glm_complete,                                             \
    .ask = dsa_glm_ ## version ## _ask                                        \
}


static const dsa_glm_version_t  dsa_glm_version_5 = {
    .no_reasoning = DSA_GLM_THINK_END,
    .whole_tools = 1,
    .bare_reasoning = 1
};

static const dsa_glm_version_t  dsa_glm_version_5_1 = {
    .no_reasoning = DSA_GLM_THINK_END,
    .pairs = 1
};

static const dsa_glm_version_t  dsa_glm_version_5_2 = {
    .no_reasoning = DSA_GLM_THINK DSA_GLM_THINK_END,
    .efforts = 1U << DSA_EFFORT_HIGH|1U << DSA_EFFORT_MAX
};

static const dsa_glm_version_t  dsa_glm_version_5_3 = {
    .no_reasoning = DSA_GLM_THINK DSA_GLM_THINK_END,
    .efforts = 1U << DSA_EFFORT_LOW|1U << DSA_EFFORT_HIGH
               |1U << DSA_EFFORT_MAX,
    .keeps = 1,
    .sorted = 1
};


dsa_glm_functions(5)

dsa_glm_functions(5_1)

dsa_glm_functions(5_2)

dsa_glm_functions(5_3)


/* The template of GLM-4.7-Flash writes what that of GLM-5 does. */

dsa_glm_family(4_7_flash, 5, "glm-4.7-flash",
               DSA_MODE_CHAT|DSA_MODE_THINKING);
dsa_glm_family(5, 5, "glm-5", DSA_MODE_CHAT|DSA_MODE_THINKING);
dsa_glm_family(5_1, 5_1, "glm-5.1", DSA_MODE_CHAT|DSA_MODE_THINKING);
dsa_glm_family(5_2, 5_2, "glm-5.2", DSA_MODE_CHAT|DSA_MODE_THINKING);
dsa_glm_family(5_3, 5_3, "glm-5.3", DSA_MODE_THINKING);
