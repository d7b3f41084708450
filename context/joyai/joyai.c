
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The prompt of a text completion is the token with which all prompts begin,
 * and the text; what the model writes is text.
 */


#include "context/parser.h"
#include "context/joyai/joyai.h"


/* With bars of ASCII, unlike that of DeepSeek's models. */

#define DSA_JOYAI_BOS  "<|begin▁of▁sentence|>"


static int dsa_joyai_complete(dsa_prompt_t *prompt, dsa_arena_t *arena,
    const dsa_completion_t *completion, dsa_err_t *err);
static void dsa_joyai_start(dsa_parse_t *p, int thinking, int tools);
static void dsa_joyai_free(dsa_parse_t *p);
static void dsa_joyai_text(dsa_parse_t *p, dsa_str_t text);
static void dsa_joyai_control(dsa_parse_t *p, uint32_t token);
static void dsa_joyai_end(dsa_parse_t *p, int complete);
static int dsa_joyai_in_reasoning(const dsa_parse_t *p);


static const dsa_control_token_t  dsa_joyai_tokens[] = {
    { dsa_string(DSA_JOYAI_BOS), 0 }
};

static const dsa_parser_t  dsa_joyai_parser = {
    .size = sizeof(dsa_parse_t),
    .start = dsa_joyai_start,
    .free = dsa_joyai_free,
    .text = dsa_joyai_text,
    .control = dsa_joyai_control,
    .end = dsa_joyai_end,
    .in_reasoning = dsa_joyai_in_reasoning
};

const dsa_family_t  dsa_joyai = {
    .name = "joyai",
    .owner = "jd",
    .tokens = { dsa_joyai_tokens, 1 },
    .title = "JoyAI-LLM-Flash",
    .parser = &dsa_joyai_parser,
    .complete = dsa_joyai_complete
};


static int
dsa_joyai_complete(dsa_prompt_t *prompt, dsa_arena_t *arena,
    const dsa_completion_t *completion, dsa_err_t *err)
{
    int                  rc;
    dsa_prompt_writer_t  w;

    dsa_prompt_init(&w, &dsa_joyai.tokens);

    dsa_prompt_template(&w, DSA_JOYAI_BOS);
    dsa_prompt_text(&w, completion->prompt);

    rc = dsa_prompt_finish(&w, prompt, arena, err);

    dsa_prompt_free(&w);

    return rc;
}


static void
dsa_joyai_start(dsa_parse_t *p, int thinking, int tools)
{
}


static void
dsa_joyai_free(dsa_parse_t *p)
{
}


static void
dsa_joyai_text(dsa_parse_t *p, dsa_str_t text)
{
    dsa_deltas_add(&p->deltas, DSA_DELTA_CONTENT, text.data, text.len);
}


/* A control token that strays into the text is taken out. */

static void
dsa_joyai_control(dsa_parse_t *p, uint32_t token)
{
}


static void
dsa_joyai_end(dsa_parse_t *p, int complete)
{
}


static int
dsa_joyai_in_reasoning(const dsa_parse_t *p)
{
    return 0;
}
