
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>
#include <string.h>

#include "engine/service/prepare.h"
#include "engine/service/rollout.h"
#include "engine/service/step_thread.h"
#include "engine/service/submit.h"


/*
 * Tokens of a prompt that exceeds the context are counted up to this number,
 * for the error and for COUNTED, because a client needs the number to shorten
 * its prompt.
 */

#define DSA_PREPARE_COUNT   131072

#define DSA_PREPARE_STEPS   8           /* of a compilation, which take about
                                           as long as a byte of a prompt */


static int dsa_prepare_prompt(const dsa_service_t *service,
    dsa_tokenizer_work_t *work, dsa_request_t *r, const dsa_submit_t *submit,
    dsa_tokens_t *tokens);
static int dsa_prepare_context(const dsa_service_t *service,
    dsa_request_t *r, const dsa_submit_t *submit);
static int dsa_prepare_resume(const dsa_service_t *service, dsa_request_t *r,
    const dsa_submit_t *submit, dsa_tokens_t *tokens);
static int dsa_prepare_output(const dsa_service_t *service, dsa_request_t *r,
    const dsa_submit_t *submit);
static int dsa_prepare_rollout(const dsa_service_t *service,
    dsa_request_t *r, const dsa_submit_t *submit, const dsa_tokens_t *tokens);
static int dsa_prepare_grammar(const dsa_service_t *service,
    dsa_request_t *r, const dsa_submit_t *submit, int slow);
static int dsa_prepare_mask_first(dsa_request_t *r, int slow);
static int dsa_prepare_budget(const dsa_service_t *service, dsa_request_t *r,
    const dsa_submit_t *submit);
static int dsa_prepare_think_end(const dsa_service_t *service,
    dsa_request_t *r, const char *what, uint32_t *id);
static int dsa_prepare_mask(void *owner, const uint32_t *drafts,
    uint32_t n_drafts, uint32_t first, uint32_t *mask, uint32_t words);
static uint32_t dsa_prepare_ready(void *owner, const uint32_t *drafts,
    uint32_t n_drafts);
static int dsa_prepare_bias(const dsa_service_t *service, dsa_request_t *r,
    const dsa_submit_t *submit);
static dsa_priority_e dsa_prepare_priority(uint32_t flags);
static void dsa_prepare_sched(dsa_request_t *r, const dsa_submit_t *submit,
    dsa_tokens_t *tokens);


int
dsa_prepare(const dsa_service_t *service, dsa_tokenizer_work_t *work,
    dsa_request_t *r, int slow)
{
    dsa_err_t     err;
    dsa_tokens_t  tokens;
    dsa_submit_t  submit;

    if (r->prepared) {
        return dsa_prepare_mask_first(r, slow);
    }

    memset(&tokens, 0, sizeof(tokens));

    if (dsa_submit_decode(&submit, r->type, r->copy, r->len, &err)
        != DSA_OK)
    {
        dsa_request_reject(r, DSA_LINK_E_INVALID, err.text);
        goto done;
    }

    if (submit.request.len != 0) {
        memcpy(r->name, submit.request.data, submit.request.len);
    }

    if (submit.trace.len != 0) {
        memcpy(r->trace, submit.trace.data, submit.trace.len);
    }

    if (submit.client.len != 0) {
        memcpy(r->client, submit.client.data, submit.client.len);
    }

    if (submit.grammar.data != NULL) {
        switch (dsa_prepare_grammar(service, r, &submit, slow)) {

        case DSA_AGAIN:
            return DSA_AGAIN;

        case DSA_ERROR:
            goto done;
        }
    }

    r->accepted.vocabulary = dsa_submit_vocabulary(&submit,
                                                   service->tokenizer);

    if (dsa_prepare_prompt(service, work, r, &submit, &tokens) != DSA_OK) {
        goto done;
    }

    if (r->type == DSA_LINK_COUNT) {
        r->last = DSA_LINK_COUNTED;
        goto done;
    }

    if (dsa_prepare_context(service, r, &submit) == DSA_OK
        && dsa_prepare_output(service, r, &submit) == DSA_OK
        && dsa_prepare_rollout(service, r, &submit, &tokens) == DSA_OK
        && dsa_prepare_resume(service, r, &submit, &tokens) == DSA_OK)
    {
        dsa_prepare_sched(r, &submit, &tokens);
        r->prepared = 1;
    }

done:

    free(tokens.ids);
    free(r->copy);
    r->copy = NULL;

    return r->prepared ? dsa_prepare_mask_first(r, slow) : DSA_OK;
}


/* Makes the first mask, so that no step waits for it. */

static int
dsa_prepare_mask_first(dsa_request_t *r, int slow)
{
    if (r->constraint == NULL) {
        return DSA_OK;
    }

    if (!slow && !dsa_constraint_quick(r->constraint)) {
        return DSA_AGAIN;
    }

    dsa_constraint_warm(r->constraint);

    if (dsa_constraint_failed(r->constraint)) {
        dsa_request_reject(r, DSA_LINK_E_OVERLOADED, DSA_GRAMMARS_NO_MEMORY);
    }

    return DSA_OK;
}


static int
dsa_prepare_prompt(const dsa_service_t *service, dsa_tokenizer_work_t *work,
    dsa_request_t *r, const dsa_submit_t *submit, dsa_tokens_t *tokens)
{
    int        rc;
    uint32_t   most;
    dsa_err_t  err;

    most = service->context > DSA_PREPARE_COUNT ? service->context
                                                : DSA_PREPARE_COUNT;

    rc = dsa_submit_tokenize(submit, service->tokenizer, work, most, tokens,
                             &err);

    if (rc == DSA_ERROR) {
        dsa_request_reject(r, DSA_LINK_E_INVALID, err.text);
        return DSA_ERROR;
    }

    r->counted.more = rc == DSA_AGAIN;
    r->counted.prompt_tokens = r->counted.more ? most : tokens->n;
    r->accepted.prompt_tokens = r->counted.prompt_tokens;

    return DSA_OK;
}


/*
 * Checks that the context has room for the prompt and the answer, and sets the
 * most tokens of the answer.
 */

static int
dsa_prepare_context(const dsa_service_t *service, dsa_request_t *r,
    const dsa_submit_t *submit)
{
    uint32_t   prompt, max, least, left;
    dsa_err_t  err;

    prompt = r->counted.prompt_tokens;
    max = submit->head.max_tokens;
    least = (submit->head.flags & DSA_LINK_WHOLE) != 0 && max != 0 ? max : 1;

    left = prompt < service->context ? service->context - prompt : 0;

    if (least > left) {
        (void) dsa_error(&err, "the prompt has %s%u tokens, the answer needs "
                         "%u, together %u are possible",
                         r->counted.more ? "more than " : "", prompt, least,
                         service->context);
        dsa_request_reject(r, DSA_LINK_E_CONTEXT, err.text);
        return DSA_ERROR;
    }

    r->sched.max_tokens = max != 0 && max < left ? max : left;

    if (submit->n_resume > r->sched.max_tokens) {
        (void) dsa_error(&err, "there are %u tokens to resume from; expected "
                         "at most max_tokens, %u", submit->n_resume,
                         r->sched.max_tokens);
        dsa_request_reject(r, DSA_LINK_E_INVALID, err.text);
        return DSA_ERROR;
    }

    return DSA_OK;
}


/*
 * Replays the tokens that another replica has sent.  DSA_ERROR: they complete
 * the answer, or an error was set.
 */

static int
dsa_prepare_resume(const dsa_service_t *service, dsa_request_t *r,
    const dsa_submit_t *submit, dsa_tokens_t *tokens)
{
    int               rc;
    int64_t           end;
    uint32_t          i, id;
    dsa_err_t         err;
    dsa_tokenizer_t  *t;

    t = service->tokenizer;

    if (dsa_answer_init(&r->answer, submit->stop, submit->n_stop) != DSA_OK) {
        goto failed;
    }

    end = dsa_tokenizer_special(t, dsa_strz(service->prompt.think_end));

    if ((submit->head.flags & DSA_LINK_THINKING) != 0 && end >= 0) {
        dsa_answer_reasoning(&r->answer, (uint32_t) end);
    }

    for (i = 0; i < submit->n_resume; i++) {
        id = submit->resume[i];

        if (id >= dsa_tokenizer_size(t)) {
            (void) dsa_error(&err, "token %u to resume from is %u; expected "
                             "less than %u", i, id, dsa_tokenizer_size(t));
            dsa_request_reject(r, DSA_LINK_E_INVALID, err.text);
            return DSA_ERROR;
        }

        if (r->constraint != NULL
            && dsa_constraint_accept(r->constraint, id) != DSA_OK)
        {
            if (dsa_constraint_failed(r->constraint)) {
                dsa_request_reject(r, DSA_LINK_E_OVERLOADED,
                                   DSA_GRAMMARS_NO_MEMORY);
                return DSA_ERROR;
            }

            (void) dsa_error(&err, "token %u to resume from is %u, which the "
                             "grammar does not permit there", i, id);
            dsa_request_reject(r, DSA_LINK_E_INVALID, err.text);
            return DSA_ERROR;
        }

        if (dsa_budget_accept(&r->budget, id) != DSA_OK) {
            (void) dsa_error(&err, "token %u to resume from is %u; expected "
                             "%u, because the reasoning has %u tokens", i, id,
                             r->budget.end, r->budget.most);
            dsa_request_reject(r, DSA_LINK_E_INVALID, err.text);
            return DSA_ERROR;
        }

        rc = dsa_answer_add(&r->answer, id, dsa_token_bytes(t, id),
                            dsa_token_is_special(t, id));

        if (rc == DSA_ERROR || dsa_tokens_push(tokens, id) != DSA_OK) {
            goto failed;
        }

        dsa_answer_resume(&r->answer);

        if (rc == DSA_AGAIN) {
            r->accept = 1;
            dsa_request_finish(r, DSA_LINK_FINISH_STOP);
            return DSA_ERROR;
        }
    }

    if (submit->n_resume == r->sched.max_tokens) {
        r->accept = 1;
        dsa_request_finish(r, DSA_LINK_FINISH_LENGTH);
        return DSA_ERROR;
    }

    return DSA_OK;

failed:

    dsa_request_reject(r, DSA_LINK_E_INTERNAL, "out of memory");

    return DSA_ERROR;
}


/* Prepares the constraints of the answer.  DSA_ERROR with an error. */

static int
dsa_prepare_output(const dsa_service_t *service, dsa_request_t *r,
    const dsa_submit_t *submit)
{
    /* a budget above max_tokens has no effect */

    if (submit->head.thinking_budget != 0
        && submit->head.thinking_budget < r->sched.max_tokens
        && dsa_prepare_budget(service, r, submit) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return submit->biases.n != 0 ? dsa_prepare_bias(service, r, submit)
                                 : DSA_OK;
}


/* Prepares the rollout of the answer.  DSA_ERROR with an error. */

static int
dsa_prepare_rollout(const dsa_service_t *service, dsa_request_t *r,
    const dsa_submit_t *submit, const dsa_tokens_t *tokens)
{
    uint32_t              flags;
    dsa_sched_request_t  *sched;

    flags = submit->head.flags;

    if ((flags & DSA_LINK_SAMPLES) == 0) {
        return DSA_OK;
    }

    if (!service->rollouts) {
        dsa_request_reject(r, DSA_LINK_E_INVALID, "The backend of this engine "
                           "does not support rollout.");
        return DSA_ERROR;
    }

    sched = &r->sched;
    sched->rollout = dsa_step_rollout;
    sched->reports = ((flags & DSA_LINK_KEPT) != 0 ? DSA_REPORT_KEPT : 0)
                     | ((flags & DSA_LINK_EXPERTS) != 0 ? DSA_REPORT_EXPERTS
                                                        : 0);

    /* the other replica has reported all resumed tokens but the last */

    if (submit->n_resume != 0) {
        r->routed = tokens->n + submit->n_resume - 1;
        return DSA_OK;
    }

    if ((flags & DSA_LINK_PROMPT) == 0) {
        r->routed = tokens->n - 1;
        return DSA_OK;
    }

    sched->reports |= DSA_REPORT_PROMPT;
    dsa_rollout_prompt(&r->rows, tokens->ids, tokens->n);

    if (r->rows.failed) {
        dsa_request_reject(r, DSA_LINK_E_INTERNAL, "out of memory");
        return DSA_ERROR;
    }

    return DSA_OK;
}


static int
dsa_prepare_grammar(const dsa_service_t *service, dsa_request_t *r,
    const dsa_submit_t *submit, int slow)
{
    int                  rc;
    uint32_t             id;
    dsa_str_t            begin;
    dsa_grammar_error_t  error;

    begin = dsa_str("", 0);

    if ((submit->head.flags & DSA_LINK_THINKING) != 0) {
        begin = dsa_strz(service->prompt.think_end);

        if (dsa_prepare_think_end(service, r, "behind which the structure of "
                                  "the answer would begin", &id)
            != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    rc = dsa_constraint_create(&r->constraint, service->grammars, r->tenant,
                               submit->grammar, begin, slow, &error);

    r->cost += error.work / DSA_PREPARE_STEPS;

    if (rc == DSA_OK) {
        dsa_constraint_skipped(r->constraint, &r->accepted);
    }

    if (rc != DSA_ERROR) {
        return rc;
    }

    if (error.no_memory) {
        dsa_request_reject(r, DSA_LINK_E_OVERLOADED, DSA_GRAMMARS_NO_MEMORY);

    } else {
        dsa_request_refuse(r, error.path, error.message);
    }

    return DSA_ERROR;
}


static int
dsa_prepare_budget(const dsa_service_t *service, dsa_request_t *r,
    const dsa_submit_t *submit)
{
    int64_t  call;

    call = dsa_tokenizer_special(service->tokenizer,
                                 dsa_strz(service->prompt.tool));

    /* a grammar begins after the reasoning in any case */

    r->budget.call = call >= 0 && submit->grammar.data == NULL
                     ? (uint32_t) call : DSA_BUDGET_NO_CALL;
    r->budget.tokenizer = service->tokenizer;
    r->budget.most = submit->head.thinking_budget;

    return dsa_prepare_think_end(service, r, "which would end the reasoning "
                                 "when its budget is spent", &r->budget.end);
}


/*
 * Finds the id of the token that ends the reasoning; what: its use, for an
 * error.
 */

static int
dsa_prepare_think_end(const dsa_service_t *service, dsa_request_t *r,
    const char *what, uint32_t *id)
{
    int64_t    special;
    dsa_err_t  err;

    special = dsa_tokenizer_special(service->tokenizer,
                                    dsa_strz(service->prompt.think_end));

    if (special < 0) {
        (void) dsa_error(&err, "The tokenizer has no control token \"%s\", "
                         "%s.", service->prompt.think_end, what);
        dsa_request_reject(r, DSA_LINK_E_INVALID, err.text);
        return DSA_ERROR;
    }

    *id = (uint32_t) special;

    return DSA_OK;
}


/* The mask callback of the scheduler, called in the step thread. */

static int
dsa_prepare_mask(void *owner, const uint32_t *drafts, uint32_t n_drafts,
    uint32_t first, uint32_t *mask, uint32_t words)
{
    dsa_request_t  *r = owner;

    if (r->constraint != NULL) {
        dsa_constraint_mask(r->constraint, drafts, n_drafts, first, mask,
                            words);

        /* the mask is then that of any answer, and the end would be one */

        (void) dsa_request_starved(r);
    }

    return dsa_budget_mask(&r->budget, drafts, n_drafts, first, mask, words)
           || r->constraint != NULL;
}


static uint32_t
dsa_prepare_ready(void *owner, const uint32_t *drafts, uint32_t n_drafts)
{
    dsa_request_t  *r = owner;

    return dsa_constraint_ready(r->constraint, drafts, n_drafts);
}


static int
dsa_prepare_bias(const dsa_service_t *service, dsa_request_t *r,
    const dsa_submit_t *submit)
{
    uint32_t           i, j, id, size;
    dsa_err_t          err;
    const dsa_bias_t  *b;

    size = dsa_tokenizer_size(service->tokenizer);
    r->bias = calloc(submit->biases.n, sizeof(dsa_bias_t));

    if (r->bias == NULL) {
        dsa_request_reject(r, DSA_LINK_E_INTERNAL, "out of memory");
        return DSA_ERROR;
    }

    for (i = 0; i < submit->biases.n; i++) {
        b = &submit->biases.bias[i];
        id = b->id;

        if (id >= size) {
            (void) dsa_error(&err, "token id %u is not in the vocabulary; "
                             "expected less than %u", id, size);
            dsa_request_reject(r, DSA_LINK_E_BIAS, err.text);
            return DSA_ERROR;
        }

        for (j = 0; j < i; j++) {
            if (r->bias[j].id == id) {
                (void) dsa_error(&err, "token id %u occurs twice; expected "
                                 "each id once", id);
                dsa_request_reject(r, DSA_LINK_E_BIAS, err.text);
                return DSA_ERROR;
            }
        }

        r->bias[i] = *b;
    }

    return DSA_OK;
}


static dsa_priority_e
dsa_prepare_priority(uint32_t flags)
{
    if ((flags & DSA_LINK_LOW) != 0) {
        return DSA_PRIORITY_LOW;
    }

    return (flags & DSA_LINK_HIGH) != 0 ? DSA_PRIORITY_HIGH
                                        : DSA_PRIORITY_NORMAL;
}


static void
dsa_prepare_sched(dsa_request_t *r, const dsa_submit_t *submit,
    dsa_tokens_t *tokens)
{
    dsa_sched_request_t      *sched;
    const dsa_link_submit_t  *head;

    head = &submit->head;
    sched = &r->sched;

    sched->id = r->id;
    sched->tokens = tokens->ids;
    sched->n_tokens = tokens->n;
    sched->n_resume = submit->n_resume;
    sched->weight = head->weight;
    sched->priority = dsa_prepare_priority(head->flags);
    sched->ignore_eos = (head->flags & DSA_LINK_IGNORE_EOS) != 0;
    sched->private = (head->flags & DSA_LINK_PRIVATE) != 0;
    sched->mask = r->constraint != NULL || r->budget.most != 0
                  ? dsa_prepare_mask : NULL;
    sched->mask_at = r->constraint == NULL ? r->budget.most : 0;
    sched->ready = r->constraint != NULL ? dsa_prepare_ready : NULL;
    sched->owner = r;

    sched->sampling = head->sampling;
    sched->biases.bias = r->bias;
    sched->biases.n = submit->biases.n;

    memcpy(sched->tenant, r->tenant, sizeof(sched->tenant));

    /* r owns them now */

    memset(tokens, 0, sizeof(dsa_tokens_t));
}
