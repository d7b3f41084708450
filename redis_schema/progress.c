
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <inttypes.h>
#include <string.h>

#include "command.h"
#include "progress.h"
#include "progress_scripts.h"
#include "resp.h"


#define DSA_PROGRESS_WORDS  16


static int dsa_progress_start(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const char *script, const char *keys);
static int dsa_progress_key(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    char kind, dsa_str_t tenant, dsa_str_t id);
static int dsa_progress_reader(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const char *script, const char *keys, dsa_str_t tenant, dsa_str_t id);
static int dsa_progress_wrong(const redisReply *reply, dsa_err_t *err);


int
dsa_progress_begin(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_progress_t *p, const dsa_schema_storage_t *storage)
{
    if (dsa_progress_start(cmd, arena,
                           p->background ? dsa_progress_background_script
                                         : dsa_progress_begin_script,
                           p->background ? "2" : "1")
        != DSA_OK
        || dsa_progress_key(cmd, arena, 'p', p->tenant, p->id)
           != DSA_OK
        || (p->background
            && dsa_command_account(cmd, arena, p->tenant) != DSA_OK)
        || dsa_command_ttl(cmd, arena, DSA_PROGRESS_LEASE) != DSA_OK
        || dsa_command_ttl(cmd, arena, p->background ? storage->ttl
                                                     : DSA_PROGRESS_TTL)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, p->before);
    dsa_command_word(cmd, p->after);

    if (!p->background) {
        return DSA_OK;
    }

    if (dsa_command_quota(cmd, arena, storage) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, dsa_strz(p->streams ? "1" : "0"));

    return DSA_OK;
}


int
dsa_progress_renew(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_progress_t *p)
{
    if (dsa_progress_start(cmd, arena, dsa_progress_renew_script, "1")
        != DSA_OK
        || dsa_progress_key(cmd, arena, 'p', p->tenant, p->id)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_command_ttl(cmd, arena, DSA_PROGRESS_LEASE);
}


int
dsa_progress_append(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_progress_t *p, uint32_t chunk, dsa_str_t events,
    const dsa_schema_storage_t *storage)
{
    if (events.len == 0 || events.len > DSA_PROGRESS_CHUNK
        || dsa_progress_start(cmd, arena, dsa_progress_append_script, "3")
           != DSA_OK
        || dsa_progress_key(cmd, arena, 'p', p->tenant, p->id)
           != DSA_OK
        || dsa_progress_key(cmd, arena, 'e', p->tenant, p->id)
           != DSA_OK
        || dsa_command_account(cmd, arena, p->tenant) != DSA_OK
        || dsa_command_ttl(cmd, arena, DSA_PROGRESS_LEASE) != DSA_OK
        || dsa_command_ttl(cmd, arena, storage->ttl) != DSA_OK
        || dsa_command_wordf(cmd, arena, "%" PRIu32, chunk) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, events);

    if (dsa_command_wordf(cmd, arena, "%d", DSA_PROGRESS_EVENTS) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_command_quota(cmd, arena, storage);
}


int
dsa_progress_end(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_progress_t *p, dsa_str_t error)
{
    if (error.len > DSA_PROGRESS_ERROR
        || dsa_progress_start(cmd, arena, dsa_progress_end_script, "3")
           != DSA_OK
        || dsa_progress_key(cmd, arena, 'p', p->tenant, p->id)
           != DSA_OK
        || dsa_progress_key(cmd, arena, 'e', p->tenant, p->id)
           != DSA_OK
        || dsa_command_account(cmd, arena, p->tenant) != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, error);

    return dsa_command_ttl(cmd, arena, DSA_PROGRESS_EVENTS_TTL);
}


int
dsa_progress_read(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id)
{
    return dsa_progress_reader(cmd, arena, dsa_progress_read_script, "2",
                               tenant, id);
}


int
dsa_progress_cancel(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id)
{
    if (dsa_progress_reader(cmd, arena, dsa_progress_cancel_script, "3",
                            tenant, id)
        != DSA_OK
        || dsa_progress_key(cmd, arena, 'e', tenant, id)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_command_ttl(cmd, arena, DSA_PROGRESS_EVENTS_TTL);
}


int
dsa_progress_follow(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant, dsa_str_t id, uint32_t chunk)
{
    if (dsa_progress_reader(cmd, arena, dsa_progress_follow_script, "3",
                            tenant, id)
        != DSA_OK
        || dsa_progress_key(cmd, arena, 'e', tenant, id)
           != DSA_OK
        || dsa_command_wordf(cmd, arena, "%" PRIu32, chunk) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_command_wordf(cmd, arena, "%d", DSA_PROGRESS_CHUNKS);
}


/* A script whose first keys are the node and the response in progress. */

static int
dsa_progress_reader(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const char *script, const char *keys, dsa_str_t tenant, dsa_str_t id)
{
    if (dsa_progress_start(cmd, arena, script, keys) != DSA_OK
        || dsa_progress_key(cmd, arena, 'r', tenant, id)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_progress_key(cmd, arena, 'p', tenant, id);
}


static int
dsa_progress_start(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const char *script, const char *keys)
{
    if (dsa_command_start(cmd, arena, DSA_PROGRESS_WORDS) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_eval(cmd, script, keys);

    return DSA_OK;
}


/* A key of redis_schema/README.md: the node r, the progress p, the events e. */

static int
dsa_progress_key(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    char kind, dsa_str_t tenant, dsa_str_t id)
{
    return dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:%c:%.*s",
                             (int) tenant.len, tenant.data, kind,
                             (int) id.len, id.data);
}


int
dsa_progress_view(dsa_progress_view_t *view, const redisReply *reply,
    dsa_err_t *err)
{
    size_t       i;
    redisReply  *code, *text[3];

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0) {
        return dsa_progress_wrong(reply, err);
    }

    memset(view, 0, sizeof(dsa_progress_view_t));

    code = reply->element[0];

    if (code->type != REDIS_REPLY_INTEGER || code->integer < DSA_PROGRESS_STORED
        || code->integer > DSA_PROGRESS_ATTACHED)
    {
        return dsa_error(err, "the reply of the script for a response in "
                         "progress has no state");
    }

    view->state = (dsa_progress_state_e) code->integer;

    if (view->state >= DSA_PROGRESS_UNKNOWN) {
        return DSA_OK;
    }

    for (i = 0; i < 3; i++) {
        text[i] = i + 1 < reply->elements ? reply->element[i + 1] : NULL;

        if (text[i] == NULL || text[i]->type != REDIS_REPLY_STRING) {
            return dsa_error(err, "a field of a response in progress is not a "
                             "string");
        }
    }

    view->before = dsa_str(text[0]->str, text[0]->len);

    if (view->state == DSA_PROGRESS_STORED) {
        view->output = dsa_str(text[1]->str, text[1]->len);
        view->after = dsa_str(text[2]->str, text[2]->len);

    } else {
        view->after = dsa_str(text[1]->str, text[1]->len);
        view->error = dsa_str(text[2]->str, text[2]->len);
    }

    return DSA_OK;
}


int
dsa_progress_events(dsa_progress_events_t *events, const redisReply *reply,
    dsa_err_t *err)
{
    size_t       i;
    redisReply  *v;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 4
        || reply->elements > 4 + DSA_PROGRESS_CHUNKS)
    {
        return dsa_progress_wrong(reply, err);
    }

    for (i = 0; i < reply->elements; i++) {
        v = reply->element[i];

        if (v->type != (i < 4 ? REDIS_REPLY_INTEGER : REDIS_REPLY_STRING)) {
            return dsa_error(err, "the reply of the script for events has "
                             "another form");
        }
    }

    memset(events, 0, sizeof(dsa_progress_events_t));

    events->exists = reply->element[0]->integer != 0;
    events->runs = reply->element[1]->integer != 0;
    events->kept = reply->element[2]->integer != 0;
    events->large = reply->element[3]->integer != 0;
    events->n = (uint32_t) (reply->elements - 4);

    for (i = 0; i < events->n; i++) {
        v = reply->element[4 + i];

        if (v->len == 0 || v->len > DSA_PROGRESS_CHUNK) {
            return dsa_error(err, "a chunk of events has %zu bytes; expected 1 "
                             "to %d", v->len, DSA_PROGRESS_CHUNK);
        }

        events->chunk[i] = dsa_str(v->str, v->len);
    }

    return DSA_OK;
}


static int
dsa_progress_wrong(const redisReply *reply, dsa_err_t *err)
{
    char  text[DSA_RESP_TEXT];

    if (reply->type == REDIS_REPLY_ERROR) {
        return dsa_error(err, "Redis replied \"%s\"",
                         dsa_resp_text(text, reply->str, reply->len));
    }

    return dsa_error(err, "Redis sent a reply of unexpected type %d",
                     reply->type);
}
