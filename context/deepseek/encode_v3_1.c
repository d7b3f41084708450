
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The prompt format of the chat template of DeepSeek-V3.1:
 *
 *     BOS system <｜User｜>question<｜Assistant｜></think>answer EOS
 *     <｜User｜>question<｜Assistant｜><think>
 *
 * All system messages come first, with an empty line between them.  The
 * reasoning of earlier answers is never written.
 */


#include "context/sampled.h"
#include "context/deepseek/v3.h"


typedef struct {
    const dsa_chat_t     *chat;
    dsa_prompt_writer_t   w;
} dsa_v3_1_encoder_t;


static void dsa_v3_1_system(dsa_v3_1_encoder_t *e);
static int dsa_v3_1_messages(dsa_v3_1_encoder_t *e, dsa_err_t *err);
static void dsa_v3_1_assistant(dsa_v3_1_encoder_t *e, const dsa_message_t *m);
static void dsa_v3_1_prefix(dsa_v3_1_encoder_t *e, const dsa_message_t *m);
static dsa_str_t dsa_v3_1_content(dsa_str_t content);


int
dsa_deepseek_v3_1_encode(dsa_prompt_t *prompt, dsa_arena_t *arena,
    const dsa_chat_t *chat, dsa_err_t *err)
{
    int                   rc;
    dsa_v3_1_encoder_t    e;
    const dsa_message_t  *last;

    memset(&e, 0, sizeof(dsa_v3_1_encoder_t));

    e.chat = chat;
    dsa_prompt_init(&e.w, &dsa_deepseek_v3_1.tokens);

    dsa_prompt_template(&e.w, DSA_DEEPSEEK_BOS);
    dsa_v3_1_system(&e);

    rc = dsa_v3_1_messages(&e, err);

    last = chat->n_messages != 0 ? &chat->messages[chat->n_messages - 1]
                                 : NULL;

    /*
     * The template writes the beginning of an answer after questions only.  If
     * another answer is to follow an answer, it is written there, too, and
     * before that answer in a history.
     */

    if (rc == DSA_OK && last != NULL
        && (last->role == DSA_ROLE_USER
            || (last->role == DSA_ROLE_ASSISTANT && !last->prefix
                && chat->hosted)))
    {
        dsa_prompt_template(&e.w, DSA_DEEPSEEK_ASSISTANT);
        dsa_prompt_template(&e.w, chat->thinking ? DSA_DEEPSEEK_THINK
                                                 : DSA_DEEPSEEK_THINK_END);
    }

    if (rc == DSA_OK) {
        rc = dsa_prompt_finish(&e.w, prompt, arena, err);
    }

    dsa_prompt_free(&e.w);

    return rc;
}


static void
dsa_v3_1_system(dsa_v3_1_encoder_t *e)
{
    uint32_t              i, n;
    const dsa_message_t  *m;

    for (i = 0, n = 0; i < e->chat->n_messages; i++) {
        m = &e->chat->messages[i];

        if (m->role != DSA_ROLE_SYSTEM && m->role != DSA_ROLE_DEVELOPER) {
            continue;
        }

        if (n++ != 0) {
            dsa_prompt_template(&e->w, "\n\n");
        }

        dsa_prompt_text(&e->w, m->content);
    }
}


static int
dsa_v3_1_messages(dsa_v3_1_encoder_t *e, dsa_err_t *err)
{
    uint32_t              i;
    dsa_role_e            before;
    const dsa_message_t  *m;

    before = DSA_ROLE_SYSTEM;

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
            if (m->n_calls != 0) {
                return dsa_error(err, "messages[%u]: tool calls are not "
                                 "supported with this model; expected a "
                                 "message without tool_calls", i);
            }

            if (before == DSA_ROLE_USER
                || (before == DSA_ROLE_ASSISTANT && e->chat->hosted))
            {
                dsa_prompt_template(&e->w, DSA_DEEPSEEK_ASSISTANT);
                dsa_prompt_template(&e->w, m->prefix && e->chat->thinking
                                           ? DSA_DEEPSEEK_THINK
                                           : DSA_DEEPSEEK_THINK_END);
            }

            dsa_v3_1_assistant(e, m);
            break;

        case DSA_ROLE_TOOL:
            return dsa_error(err, "messages[%u]: tool calls are not supported "
                             "with this model; expected no tool message", i);
        }

        before = m->role;
    }

    return DSA_OK;
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

    if (k == UINT32_MAX) {
        dsa_prompt_text(&e->w, dsa_v3_1_content(m->content));

    } else {
        for ( /* void */ ; k < m->sampled->n; k++) {
            dsa_prompt_copy(&e->w, &m->sampled->segments[k]);
        }
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


/* The text up to the first </think> is reasoning. */

static dsa_str_t
dsa_v3_1_content(dsa_str_t content)
{
    const char  *end;

    end = memmem(content.data, content.len, DSA_DEEPSEEK_THINK_END,
                 sizeof(DSA_DEEPSEEK_THINK_END) - 1);

    if (end == NULL) {
        return content;
    }

    end += sizeof(DSA_DEEPSEEK_THINK_END) - 1;

    return dsa_str(end, content.len - (size_t) (end - content.data));
}
