
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "command.h"
#include "idempotency.h"
#include "idempotency_scripts.h"
#include "resp.h"


#define DSA_IDEMPOTENCY_WORDS  12


static int dsa_idempotency_start(dsa_schema_command_t *cmd,
    dsa_arena_t *arena, const dsa_idempotency_t *id, const char *script,
    uint32_t keys);


/* as dsa_idempotency_e from DSA_IDEMPOTENCY_ANSWER_KEPT on */

static const char *const  dsa_idempotency_states[] = {
    "answer",
    "large",
    "stream",
    "failed"
};

#define DSA_IDEMPOTENCY_STATES  (sizeof(dsa_idempotency_states)               \
                                 / sizeof(dsa_idempotency_states[0]))

_Static_assert(DSA_IDEMPOTENCY_STATES
               == DSA_IDEMPOTENCY_FAILED - DSA_IDEMPOTENCY_ANSWER_KEPT + 1,
               "each state that is stored has a name");


int
dsa_idempotency_claim(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_idempotency_t *id, const char *digest)
{
    if (dsa_idempotency_start(cmd, arena, id, dsa_idempotency_claim_script, 2)
        != DSA_OK
        || dsa_command_wordf(cmd, arena, "%.*s", DSA_IDEMPOTENCY_HEX, digest)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, id->owner);

    if (dsa_command_wordf(cmd, arena, "%d", DSA_IDEMPOTENCY_LEASE) != DSA_OK
        || dsa_command_ttl(cmd, arena, DSA_IDEMPOTENCY_TTL) != DSA_OK
        || dsa_command_wordf(cmd, arena, "%d", DSA_IDEMPOTENCY_KEYS) != DSA_OK
        || dsa_command_ttl(cmd, arena, DSA_IDEMPOTENCY_TTL + 3600) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return DSA_OK;
}


int
dsa_idempotency_renew(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_idempotency_t *id)
{
    if (dsa_idempotency_start(cmd, arena, id, dsa_idempotency_renew_script, 1)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, id->owner);

    return dsa_command_wordf(cmd, arena, "%d", DSA_IDEMPOTENCY_LEASE);
}


int
dsa_idempotency_finish(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_idempotency_t *id, const dsa_idempotency_result_t *result)
{
    const char  *state;

    if (result->state < DSA_IDEMPOTENCY_ANSWER_KEPT
        || result->state > DSA_IDEMPOTENCY_FAILED
        || dsa_idempotency_start(cmd, arena, id,
                                 dsa_idempotency_finish_script, 2)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    state = dsa_idempotency_states[result->state
                                   - DSA_IDEMPOTENCY_ANSWER_KEPT];

    dsa_command_word(cmd, id->owner);
    dsa_command_word(cmd, dsa_strz(state));
    dsa_command_word(cmd, result->object);
    dsa_command_word(cmd, result->answer);

    return dsa_command_wordf(cmd, arena, "%d", DSA_IDEMPOTENCY_BYTES);
}


int
dsa_idempotency_release(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_idempotency_t *id)
{
    if (dsa_idempotency_start(cmd, arena, id, dsa_idempotency_release_script,
                              2)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, id->owner);

    return DSA_OK;
}


/* The script and its keys, of which there are 1 or 2. */

static int
dsa_idempotency_start(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_idempotency_t *id, const char *script, uint32_t keys)
{
    if (!dsa_schema_name_ok(id->tenant)
        || dsa_command_start(cmd, arena, DSA_IDEMPOTENCY_WORDS) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_eval(cmd, script, keys == 1 ? "1" : "2");

    if (dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:i:%.*s",
                          (int) id->tenant.len, id->tenant.data,
                          DSA_IDEMPOTENCY_HEX, id->key)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (keys == 1) {
        return DSA_OK;
    }

    return dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:i",
                             (int) id->tenant.len, id->tenant.data);
}


int
dsa_idempotency_claimed(dsa_idempotency_result_t *result,
    const redisReply *reply, dsa_err_t *err)
{
    size_t       i;
    char         text[DSA_RESP_TEXT];
    redisReply  *code, *state, *object, *answer;

    if (reply->type == REDIS_REPLY_ERROR) {
        return dsa_error(err, "Redis replied \"%s\"",
                         dsa_resp_text(text, reply->str, reply->len));
    }

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0
        || reply->element[0]->type != REDIS_REPLY_INTEGER)
    {
        return dsa_error(err, "Redis sent an unexpected reply to the claim of "
                         "an idempotency key");
    }

    memset(result, 0, sizeof(dsa_idempotency_result_t));

    code = reply->element[0];

    if (code->integer >= DSA_IDEMPOTENCY_CLAIMED
        && code->integer <= DSA_IDEMPOTENCY_FULL)
    {
        result->state = (dsa_idempotency_e) code->integer;
        return DSA_OK;
    }

    if (code->integer != DSA_IDEMPOTENCY_ANSWER_KEPT || reply->elements != 4) {
        return dsa_error(err, "the claim of an idempotency key has no result");
    }

    state = reply->element[1];
    object = reply->element[2];
    answer = reply->element[3];

    if (state->type != REDIS_REPLY_STRING
        || object->type != REDIS_REPLY_STRING
        || answer->type != REDIS_REPLY_STRING)
    {
        return dsa_error(err, "a field of an idempotency key is not a string");
    }

    result->object = dsa_str(object->str, object->len);
    result->answer = dsa_str(answer->str, answer->len);

    for (i = 0; i < DSA_IDEMPOTENCY_STATES; i++) {
        if (strlen(dsa_idempotency_states[i]) == state->len
            && memcmp(dsa_idempotency_states[i], state->str, state->len) == 0)
        {
            result->state = (dsa_idempotency_e)
                            (DSA_IDEMPOTENCY_ANSWER_KEPT + i);
            break;
        }
    }

    if (i == DSA_IDEMPOTENCY_STATES
        || (result->state == DSA_IDEMPOTENCY_ANSWER_KEPT
            && result->answer.len == 0))
    {
        return dsa_error(err, "the state of an idempotency key is not one that "
                         "is known here");
    }

    return DSA_OK;
}
