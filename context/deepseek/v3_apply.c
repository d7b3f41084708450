
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "context/read.h"
#include "context/deepseek/v3.h"


static int dsa_v3_1_calls(const dsa_chat_t *chat);


/*
 * By its card, the model calls tools without thinking only, and the template
 * writes nothing behind results that could begin reasoning.  A request that
 * leaves thinking open, or has an effort only, is answered without it, as the
 * API of the vendor did it.  A request that demands both is refused.
 */

int
dsa_v3_1_apply(dsa_chat_t *chat, dsa_refusal_t *refusal)
{
    dsa_at_t  at = { NULL, "thinking", 0 };

    if (!chat->thinking || !dsa_v3_1_calls(chat)) {
        return DSA_OK;
    }

    if (chat->thinking_given && !chat->effort_decides) {
        return dsa_refuse_at(refusal, &at, "this model calls tools without "
                             "thinking only; expected thinking off, or a "
                             "request without tools, or with tool_choice "
                             "`none`, whose last message is not a tool "
                             "message");
    }

    chat->thinking = 0;
    chat->thinking_budget = 0;

    chat->sampling.temperature = chat->asked.temperature;
    chat->sampling.top_p = chat->asked.top_p;
    chat->sampling.presence_penalty = chat->asked.presence_penalty;
    chat->sampling.frequency_penalty = chat->asked.frequency_penalty;

    return DSA_OK;
}


/* 1: the answer may have calls, or begins or goes on behind results. */

static int
dsa_v3_1_calls(const dsa_chat_t *chat)
{
    uint32_t              i;
    const dsa_message_t  *m;

    if (chat->tools != NULL && chat->tool_choice != DSA_TOOL_CHOICE_NONE) {
        return 1;
    }

    for (i = chat->n_messages; i != 0; i--) {
        m = &chat->messages[i - 1];

        if (m->role != DSA_ROLE_SYSTEM && m->role != DSA_ROLE_DEVELOPER
            && !m->prefix)
        {
            return m->role == DSA_ROLE_TOOL;
        }
    }

    return 0;
}
