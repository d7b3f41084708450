
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The prompt format of the chat template of DeepSeek-V3.1:
 *
 *     BOS system tools <｜User｜>question<｜Assistant｜></think>answer EOS
 *     <｜User｜>question<｜Assistant｜></think>content calls EOS
 *     <｜tool▁output▁begin｜>result<｜tool▁output▁end｜>answer EOS
 *     <｜User｜>question<｜Assistant｜><think>
 *
 * without the line breaks.  All system messages come first, with an empty line
 * between them.  The reasoning of earlier answers is never written.  An answer
 * goes on directly behind results, without reasoning.
 */


#include "context/sampled.h"
#include "context/deepseek/v3.h"


typedef struct {
    const dsa_chat_t     *chat;
    dsa_prompt_writer_t   w;
    const dsa_message_t  *before;   /* the last message that is not of the
                                       system, so far */
} dsa_v3_1_encoder_t;


static void dsa_v3_1_system(dsa_v3_1_encoder_t *e);
static void dsa_v3_1_messages(dsa_v3_1_encoder_t *e);
static int dsa_v3_1_begins(const dsa_v3_1_encoder_t *e);
static void dsa_v3_1_assistant(dsa_v3_1_encoder_t *e, const dsa_message_t *m);
static void dsa_v3_1_prefix(dsa_v3_1_encoder_t *e, const dsa_message_t *m);
static dsa_str_t dsa_v3_1_content(const dsa_v3_1_encoder_t *e,
    const dsa_message_t *m);


int
dsa_v3_1_encode(dsa_prompt_t *prompt, dsa_arena_t *arena,
    const dsa_chat_t *chat, dsa_err_t *err)
{
    int                 rc;
    dsa_v3_1_encoder_t  e;

    memset(&e, 0, sizeof(dsa_v3_1_encoder_t));

    e.chat = chat;
    dsa_prompt_init(&e.w, &dsa_deepseek_v3_1.tokens);

    dsa_prompt_template(&e.w, DSA_DEEPSEEK_BOS);
    dsa_v3_1_system(&e);
    dsa_v3_1_messages(&e);

    if (dsa_v3_1_begins(&e)) {
        dsa_prompt_template(&e.w, DSA_DEEPSEEK_ASSISTANT);
        dsa_prompt_template(&e.w, chat->thinking ? DSA_DEEPSEEK_THINK
                                                 : DSA_DEEPSEEK_THINK_END);
    }

    rc = dsa_prompt_finish(&e.w, prompt, arena, err);

    dsa_prompt_free(&e.w);

    return rc;
}


static void
dsa_v3_1_system(dsa_v3_1_encoder_t *e)
{
    uint32_t              i, n;
    const dsa_json_t     *tools;
    const dsa_message_t  *m;

    tools = e->chat->tools;

    for (i = 0, n = 0; i < e->chat->n_messages; i++) {
        m = &e->chat->messages[i];

        if (m->role != DSA_ROLE_SYSTEM && m->role != DSA_ROLE_DEVELOPER) {
            continue;
        }

        if (n++ != 0) {
            dsa_prompt_template(&e->w, "\n\n");
        }

        dsa_prompt_text(&e->w, m->content);

        if (tools == NULL) {
            tools = m->tools;
        }
    }

    if (tools != NULL) {
        dsa_v3_1_write_tools(&e->w, tools);
    }
}


static void
dsa_v3_1_messages(dsa_v3_1_encoder_t *e)
{
    uint32_t              i;
    const dsa_message_t  *m;

    for (i = 0; i < e->chat->n_messages; i++) {
        m = &e->chat->messages[i];

        switch (m->role) {

        case DSA_ROLE_SYSTEM:
        case DSA_ROLE_DEVELOPER:
            continue;

        case DSA_ROLE_USER:
            dsa_prompt_template(&e->w, DSA_DEEPSEEK_USER);
            dsa_prompt_text(&e->w, m->content);
            break;

        case DSA_ROLE_ASSISTANT:
            if (dsa_v3_1_begins(e)) {
                dsa_prompt_template(&e->w, DSA_DEEPSEEK_ASSISTANT);
                dsa_prompt_template(&e->w, m->prefix && e->chat->thinking
                                           ? DSA_DEEPSEEK_THINK
                                           : DSA_DEEPSEEK_THINK_END);
            }

            dsa_v3_1_assistant(e, m);
            break;

        case DSA_ROLE_TOOL:
            dsa_prompt_template(&e->w, DSA_V3_1_RESULT);
            dsa_prompt_text(&e->w, m->content);
            dsa_prompt_template(&e->w, DSA_V3_1_RESULT_END);
            break;
        }

        e->before = m;
    }
}


/*
 * 1: the beginning of an answer follows.  The template has it behind questions
 * only.  If another answer is to follow an answer, it is written there, too,
 * and before that answer in a history.
 */

static int
dsa_v3_1_begins(const dsa_v3_1_encoder_t *e)
{
    if (e->before == NULL) {
        return 0;
    }

    return e->before->role == DSA_ROLE_USER
           || (e->before->role == DSA_ROLE_ASSISTANT && !e->before->prefix
               && e->chat->hosted);
}


static void
dsa_v3_1_assistant(dsa_v3_1_encoder_t *e, const dsa_message_t *m)
{
    uint32_t  k;

    if (m->prefix) {
        dsa_v3_1_prefix(e, m);
        return;
    }

    k = m->sampled != NULL ? dsa_sampled_behind_reasoning(m->sampled)
                           : UINT32_MAX;

    if (k != UINT32_MAX) {
        for ( /* void */ ; k < m->sampled->n; k++) {
            dsa_prompt_copy(&e->w, &m->sampled->segments[k]);
        }

    } else if (m->n_calls != 0) {
        dsa_prompt_text(&e->w, m->content);
        dsa_v3_1_write_calls(&e->w, m);

    } else {
        dsa_prompt_text(&e->w, dsa_v3_1_content(e, m));
    }

    dsa_prompt_template(&e->w, DSA_DEEPSEEK_EOS);
}


/*
 * A prefix is left open, and the model continues its content or, if it has
 * none, its reasoning.
 */

static void
dsa_v3_1_prefix(dsa_v3_1_encoder_t *e, const dsa_message_t *m)
{
    if (e->chat->thinking) {
        dsa_prompt_text(&e->w, m->reasoning);

        if (m->content.len == 0) {
            return;
        }

        dsa_prompt_template(&e->w, DSA_DEEPSEEK_THINK_END);
    }

    dsa_prompt_text(&e->w, m->content);
}


/*
 * The text up to the first </think> is reasoning, but not behind results, where
 * there is none.
 */

static dsa_str_t
dsa_v3_1_content(const dsa_v3_1_encoder_t *e, const dsa_message_t *m)
{
    const char  *end;

    end = memmem(m->content.data, m->content.len, DSA_DEEPSEEK_THINK_END,
                 sizeof(DSA_DEEPSEEK_THINK_END) - 1);

    if (end == NULL
        || (e->before != NULL && e->before->role == DSA_ROLE_TOOL))
    {
        return m->content;
    }

    end += sizeof(DSA_DEEPSEEK_THINK_END) - 1;

    return dsa_str(end, m->content.len - (size_t) (end - m->content.data));
}
