
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "context/completion.h"
#include "context/deepseek/v3.h"
#include "context/family.h"
#include "context/glm/glm.h"
#include "context/joyai/joyai.h"
#include "context/read.h"


const dsa_family_t *const  dsa_families[] = {
    &dsa_deepseek,
    &dsa_deepseek_v3,
    &dsa_deepseek_v3_1,
    &dsa_glm_4_7_flash,
    &dsa_glm_5,
    &dsa_glm_5_1,
    &dsa_glm_5_2,
    &dsa_glm_5_3,
    &dsa_joyai,
    NULL
};


const dsa_family_t *
dsa_family_find(const char *name)
{
    uint32_t  i;

    for (i = 0; dsa_families[i] != NULL; i++) {
        if (strcmp(dsa_families[i]->name, name) == 0) {
            break;
        }
    }

    return dsa_families[i];
}


int
dsa_family_apply(const dsa_family_t *family, dsa_chat_t *chat,
    dsa_refusal_t *refusal)
{
    return family->apply != NULL ? family->apply(chat, refusal) : DSA_OK;
}


int
dsa_family_check(const dsa_family_t *family, const dsa_chat_t *chat,
    dsa_refusal_t *refusal)
{
    dsa_at_t  thinking = { NULL, "thinking", 0 };
    dsa_at_t  suffix = { NULL, "suffix", 0 };
    dsa_at_t  messages = { NULL, "messages", 0 };
    dsa_at_t  tools = { NULL, "tools", 0 };

    if (chat->completion != NULL) {

        if (chat->completion->suffix.len != 0 && family->fim == NULL) {
            return dsa_refuse_at(refusal, &suffix, "this model cannot fill in "
                                 "the middle; expected no suffix");
        }

        return DSA_OK;
    }

    if (family->modes == 0) {
        return dsa_refuse_at(refusal, &messages, "chats with %s are refused, "
                             "because this server does not have its chat "
                             "template; expected a text completion, which has "
                             "a prompt", family->title);
    }

    if (chat->tools != NULL && family->syntax == NULL) {
        return dsa_refuse_at(refusal, &tools, "this model is not supported "
                             "with tools; expected a request without them");
    }

    if (chat->thinking && (family->modes & DSA_MODE_THINKING) == 0) {
        return dsa_refuse_at(refusal, &thinking, "this model cannot think; "
                             "expected a request with thinking off");
    }

    if (!chat->thinking && (family->modes & DSA_MODE_CHAT) == 0) {
        return dsa_refuse_at(refusal, &thinking, "this model always thinks; "
                             "expected a request with thinking on");
    }

    return DSA_OK;
}
