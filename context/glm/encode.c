
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The prompt format of the chat templates of GLM-4.7-Flash, 5, 5.1, 5.2 and
 * 5.3.  Nothing is written between its parts: a message ends where the next one
 * begins.
 */


#include "base/json_write.h"
#include "context/arguments.h"
#include "context/sampled.h"
#include "context/glm/encode.h"


typedef struct {
    const dsa_glm_version_t  *version;
    const dsa_chat_t         *chat;
    dsa_prompt_writer_t       w;
    uint32_t                  behind;   /* the first message behind the last
                                           question */
    int                       reasoned; /* the turn of the message has answers
                                           with reasoning */
} dsa_glm_encoder_t;


static void dsa_glm_effort(dsa_glm_encoder_t *e);
static int dsa_glm_message(dsa_glm_encoder_t *e, uint32_t i, uint32_t *next,
    dsa_err_t *err);
static int dsa_glm_turn(const dsa_glm_encoder_t *e, uint32_t i);
static void dsa_glm_assistant(dsa_glm_encoder_t *e, uint32_t i);
static int dsa_glm_sampled(dsa_glm_encoder_t *e, const dsa_message_t *m,
    int keeps);
static void dsa_glm_reasoning(dsa_glm_encoder_t *e, const dsa_message_t *m,
    const dsa_glm_answer_t *a, uint32_t i);
static int dsa_glm_results(dsa_glm_encoder_t *e, uint32_t i, uint32_t *next,
    dsa_err_t *err);
static int dsa_glm_order(const dsa_message_t *m, uint32_t n,
    const dsa_message_t **order);
static void dsa_glm_result(dsa_glm_encoder_t *e, const dsa_message_t *m);


int
dsa_glm_encode(const dsa_glm_version_t *version, dsa_prompt_t *prompt,
    dsa_arena_t *arena, const dsa_chat_t *chat, dsa_err_t *err)
{
    int                   rc;
    uint32_t              i;
    const dsa_json_t     *tools;
    dsa_glm_encoder_t     e;
    const dsa_message_t  *last;

    memset(&e, 0, sizeof(dsa_glm_encoder_t));

    e.version = version;
    e.chat = chat;
    dsa_prompt_init(&e.w, &dsa_glm_5.tokens);

    for (i = chat->n_messages; i != 0; i--) {
        if (chat->messages[i - 1].role == DSA_ROLE_USER) {
            break;
        }
    }

    e.behind = i;

    dsa_prompt_template(&e.w, DSA_GLM_MASK DSA_GLM_SOP);
    dsa_glm_effort(&e);

    tools = chat->tools;

    if (tools == NULL && chat->n_messages != 0) {
        tools = chat->messages[0].tools;
    }

    if (tools != NULL) {
        dsa_glm_write_tools(&e.w, tools, version->whole_tools);
    }

    rc = DSA_OK;

    for (i = 0; i < chat->n_messages && rc == DSA_OK; /* void */) {
        rc = dsa_glm_message(&e, i, &i, err);
    }

    /* behind an answer, the template would begin another one as well */

    last = i != 0 ? &chat->messages[i - 1] : NULL;

    if (rc == DSA_OK
        && (last == NULL || last->role != DSA_ROLE_ASSISTANT
            || (chat->hosted && !last->prefix)))
    {
        dsa_prompt_template(&e.w, DSA_GLM_ASSISTANT);
        dsa_prompt_template(&e.w, chat->thinking ? DSA_GLM_THINK
                                                 : version->no_reasoning);
    }

    if (rc == DSA_OK) {
        rc = dsa_prompt_finish(&e.w, prompt, arena, err);
    }

    dsa_prompt_free(&e.w);

    return rc;
}


static void
dsa_glm_effort(dsa_glm_encoder_t *e)
{
    if (e->version->efforts == 0 || !e->chat->thinking) {
        return;
    }

    dsa_prompt_template(&e->w, DSA_GLM_SYSTEM "Reasoning Effort: ");

    switch (e->chat->effort) {

    case DSA_EFFORT_LOW:
        dsa_prompt_template(&e->w, "Low");
        break;

    case DSA_EFFORT_HIGH:
        dsa_prompt_template(&e->w, "High");
        break;

    default:
        dsa_prompt_template(&e->w, "Max");
        break;
    }
}


/* *next is the message behind those that have been written. */

static int
dsa_glm_message(dsa_glm_encoder_t *e, uint32_t i, uint32_t *next,
    dsa_err_t *err)
{
    const dsa_message_t  *m;

    m = &e->chat->messages[i];
    *next = i + 1;

    switch (m->role) {

    case DSA_ROLE_SYSTEM:
    case DSA_ROLE_DEVELOPER:
        dsa_prompt_template(&e->w, DSA_GLM_SYSTEM);
        dsa_prompt_text(&e->w, m->content);
        break;

    case DSA_ROLE_USER:
        dsa_prompt_template(&e->w, DSA_GLM_USER);
        dsa_prompt_text(&e->w, m->content);
        e->reasoned = e->version->pairs && dsa_glm_turn(e, i + 1);
        break;

    case DSA_ROLE_ASSISTANT:
        dsa_glm_assistant(e, i);
        break;

    case DSA_ROLE_TOOL:
        return dsa_glm_results(e, i, next, err);
    }

    return DSA_OK;
}


/* 1: an answer from message i to the end of its turn has reasoning. */

static int
dsa_glm_turn(const dsa_glm_encoder_t *e, uint32_t i)
{
    const dsa_message_t  *m;

    for ( /* void */ ; i < e->chat->n_messages; i++) {
        m = &e->chat->messages[i];

        if (m->role == DSA_ROLE_USER) {
            break;
        }

        if (m->role == DSA_ROLE_ASSISTANT && m->has_reasoning) {
            return 1;
        }
    }

    return 0;
}


/*
 * A prefix is left open, and the model continues its content or, if it has
 * none, its reasoning.
 */

static void
dsa_glm_assistant(dsa_glm_encoder_t *e, uint32_t i)
{
    int                   keeps;
    uint32_t              k;
    dsa_glm_answer_t      a;
    const dsa_message_t  *m;

    m = &e->chat->messages[i];
    keeps = (e->chat->keeps && !m->cleared) || i >= e->behind;

    dsa_prompt_template(&e->w, DSA_GLM_ASSISTANT);

    if (m->sampled != NULL && dsa_glm_sampled(e, m, keeps)) {
        return;
    }

    dsa_glm_split(&a, m, e->version->bare_reasoning);

    if (m->prefix && m->content.len == 0 && e->chat->thinking) {
        dsa_prompt_template(&e->w, DSA_GLM_THINK);
        dsa_prompt_text(&e->w, m->reasoning);
        return;
    }

    if (keeps) {
        dsa_glm_reasoning(e, m, &a, i);

    } else {
        dsa_prompt_template(&e->w, e->version->no_reasoning);
    }

    dsa_prompt_text(&e->w, m->prefix ? a.content : dsa_glm_strip(a.content));

    for (k = 0; k < m->n_calls; k++) {
        dsa_glm_write_call(&e->w, &m->calls[k]);
    }
}


static void
dsa_glm_reasoning(dsa_glm_encoder_t *e, const dsa_message_t *m,
    const dsa_glm_answer_t *a, uint32_t i)
{
    int        has;
    dsa_str_t  reasoning;

    reasoning = a->reasoning;
    has = a->has_reasoning;

    if (e->version->bare_reasoning) {
        has = reasoning.len != 0;
        reasoning = dsa_glm_strip(reasoning);

    } else if (e->version->pairs && !has) {
        has = i >= e->behind ? (int) e->chat->thinking : e->reasoned;
    }

    if (!has) {
        dsa_prompt_template(&e->w, e->version->no_reasoning);
        return;
    }

    dsa_prompt_template(&e->w, DSA_GLM_THINK);
    dsa_prompt_text(&e->w, reasoning);
    dsa_prompt_template(&e->w, DSA_GLM_THINK_END);
}


/*
 * Writes the text that the model sampled, with its reasoning or without it.
 * 0: the model did not end reasoning that must be dropped, so nothing is
 * written.
 */

static int
dsa_glm_sampled(dsa_glm_encoder_t *e, const dsa_message_t *m, int keeps)
{
    uint32_t  k;

    k = 0;

    if (!keeps) {
        k = dsa_sampled_behind_reasoning(m->sampled);
    }

    if (k == UINT32_MAX) {
        return 0;
    }

    dsa_prompt_template(&e->w, keeps && m->sampled->thinking
                               ? DSA_GLM_THINK : e->version->no_reasoning);

    for ( /* void */ ; k < m->sampled->n; k++) {
        dsa_prompt_copy(&e->w, &m->sampled->segments[k]);
    }

    return 1;
}


/* The results of neighboring tool messages. */

static int
dsa_glm_results(dsa_glm_encoder_t *e, uint32_t i, uint32_t *next,
    dsa_err_t *err)
{
    uint32_t               k, n;
    const dsa_message_t   *m;
    const dsa_message_t  **order;

    m = &e->chat->messages[i];

    for (n = 1; i + n < e->chat->n_messages; n++) {
        if (m[n].role != DSA_ROLE_TOOL) {
            break;
        }
    }

    *next = i + n;
    order = NULL;

    if (!e->version->sorted && n > 1) {
        order = calloc(n, sizeof(dsa_message_t *));

        if (order == NULL) {
            return dsa_error(err, "out of memory for the order of the "
                             "results");
        }

        if (dsa_glm_order(m, n, order) != DSA_OK) {
            free(order);
            order = NULL;
        }
    }

    dsa_prompt_template(&e->w, DSA_GLM_OBSERVATION);

    for (k = 0; k < n; k++) {
        dsa_glm_result(e, order != NULL ? order[k] : &m[k]);
    }

    free(order);

    return DSA_OK;
}


/*
 * Finds the order of the request, which dsa_chat_check() has replaced by that
 * of the calls.  DSA_ERROR: the messages were not checked.
 */

static int
dsa_glm_order(const dsa_message_t *m, uint32_t n, const dsa_message_t **order)
{
    uint32_t  k, first, place;

    first = m[0].place;

    for (k = 1; k < n; k++) {
        if (m[k].place < first) {
            first = m[k].place;
        }
    }

    for (k = 0; k < n; k++) {
        place = m[k].place - first;

        if (place >= n || order[place] != NULL) {
            return DSA_ERROR;
        }

        order[place] = &m[k];
    }

    return DSA_OK;
}


static void
dsa_glm_result(dsa_glm_encoder_t *e, const dsa_message_t *m)
{
    dsa_prompt_template(&e->w, DSA_GLM_RESULT);
    dsa_prompt_text(&e->w, m->content);
    dsa_prompt_template(&e->w, DSA_GLM_RESULT_END);
}
