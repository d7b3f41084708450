
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>

#include "context/anthropic_draft.h"


static int dsa_drafts_piece(dsa_drafts_t *d, dsa_pieces_t *pieces,
    dsa_str_t text);
static int dsa_drafts_join(dsa_drafts_t *d, const dsa_pieces_t *pieces,
    dsa_str_t *out);


int
dsa_drafts_init(dsa_drafts_t *d, dsa_reader_t *r, const dsa_at_t *at,
    uint32_t size)
{
    memset(d, 0, sizeof(dsa_drafts_t));

    d->r = r;
    d->at = at;
    d->size = size;

    d->drafts = dsa_arena_calloc(r->arena, size * sizeof(dsa_draft_t));

    return d->drafts != NULL ? DSA_OK
                             : dsa_refuse_memory(r->refusal, r->arena);
}


dsa_draft_t *
dsa_drafts_last(dsa_drafts_t *d)
{
    return d->n != 0 ? &d->drafts[d->n - 1] : NULL;
}


dsa_draft_t *
dsa_drafts_add(dsa_drafts_t *d, dsa_role_e role, uint32_t source)
{
    dsa_draft_t  *draft;

    if (d->n == d->r->limits.max_messages) {
        (void) dsa_refuse_at(d->r->refusal, d->at, "messages and results are "
                             "more than %u; at most %u are accepted", d->n,
                             d->n);
        return NULL;
    }

    assert(d->n < d->size);

    draft = &d->drafts[d->n++];

    draft->message.role = role;
    draft->source = source;

    return draft;
}


int
dsa_drafts_answer(dsa_drafts_t *d)
{
    uint32_t      k;
    dsa_draft_t  *call, *result;

    call = dsa_drafts_last(d);

    if (call == NULL || call->message.n_calls == 0) {
        return DSA_OK;
    }

    d->call = d->n - 1;
    d->open = 1;

    for (k = 0; k < call->message.n_calls; k++) {
        result = dsa_drafts_add(d, DSA_ROLE_TOOL, call->source);
        if (result == NULL) {
            return DSA_ERROR;
        }

        result->message.tool_call_id = call->message.calls[k].id;
    }

    return DSA_OK;
}


dsa_draft_t *
dsa_drafts_result(dsa_drafts_t *d, const dsa_at_t *at, dsa_str_t id)
{
    uint32_t      k;
    dsa_draft_t  *result;

    for (k = d->open ? d->call + 1 : d->n; k < d->n; k++) {
        result = &d->drafts[k];

        if (result->message.role != DSA_ROLE_TOOL
            || !dsa_str_eq(result->message.tool_call_id, id))
        {
            continue;
        }

        if (result->answered) {
            (void) dsa_refuse_at(d->r->refusal, at, "each tool_use must have "
                                 "a single result. Found multiple "
                                 "`tool_result` blocks with id: %.*s",
                                 dsa_read_shown(id), id.data);
            return NULL;
        }

        result->answered = 1;

        return result;
    }

    (void) dsa_refuse_at(d->r->refusal, at, "unexpected `tool_use_id` found "
                         "in `tool_result` blocks: %.*s. Each `tool_result` "
                         "block must have a corresponding `tool_use` block in "
                         "the previous message.", dsa_read_shown(id), id.data);

    return NULL;
}


int
dsa_drafts_close(dsa_drafts_t *d)
{
    uint32_t      k;
    dsa_at_t      el = { d->at, NULL, 0 };
    dsa_draft_t  *result;

    if (!d->open && dsa_drafts_answer(d) != DSA_OK) {
        return DSA_ERROR;
    }

    if (!d->open) {
        return DSA_OK;
    }

    d->open = 0;

    for (k = d->call + 1; k < d->n; k++) {
        result = &d->drafts[k];

        if (result->message.role != DSA_ROLE_TOOL || result->answered) {
            continue;
        }

        el.index = result->source;

        return dsa_refuse_at(d->r->refusal, &el, "`tool_use` ids were found "
                             "without `tool_result` blocks immediately after: "
                             "%.*s. Each `tool_use` block must have a "
                             "corresponding `tool_result` block in the next "
                             "message.",
                             dsa_read_shown(result->message.tool_call_id),
                             result->message.tool_call_id.data);
    }

    return DSA_OK;
}


int
dsa_drafts_text(dsa_drafts_t *d, dsa_pieces_t *pieces, dsa_str_t text,
    int apart)
{
    if (text.len == 0) {
        return DSA_OK;
    }

    if (apart && pieces->len != 0
        && dsa_drafts_piece(d, pieces, dsa_strz("\n\n")) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_drafts_piece(d, pieces, text);
}


static int
dsa_drafts_piece(dsa_drafts_t *d, dsa_pieces_t *pieces, dsa_str_t text)
{
    dsa_piece_t  *piece;

    piece = dsa_arena_alloc(d->r->arena, sizeof(dsa_piece_t));
    if (piece == NULL) {
        return dsa_refuse_memory(d->r->refusal, d->r->arena);
    }

    piece->text = text;
    piece->next = NULL;

    if (pieces->last == NULL) {
        pieces->last = &pieces->first;
    }

    *pieces->last = piece;
    pieces->last = &piece->next;
    pieces->len += text.len;

    return DSA_OK;
}


int
dsa_drafts_finish(dsa_drafts_t *d)
{
    size_t          own;
    uint32_t        i;
    dsa_draft_t    *draft;
    dsa_piece_t    *piece;
    dsa_message_t  *m;

    m = dsa_arena_calloc(d->r->arena,
                         ((size_t) d->n + 1) * sizeof(dsa_message_t));
    if (m == NULL) {
        return dsa_refuse_memory(d->r->refusal, d->r->arena);
    }

    d->r->chat->messages = m;
    d->r->chat->n_messages = d->n;

    for (i = 0; i < d->n; i++, m++) {
        draft = &d->drafts[i];
        *m = draft->message;
        own = draft->content.len;

        for (piece = draft->notes.first; piece != NULL; piece = piece->next) {
            if (dsa_drafts_text(d, &draft->content, piece->text,
                                piece == draft->notes.first)
                != DSA_OK)
            {
                return DSA_ERROR;
            }
        }

        m->notes = draft->content.len - own;

        if (dsa_drafts_join(d, &draft->content, &m->content) != DSA_OK
            || dsa_drafts_join(d, &draft->reasoning, &m->reasoning) != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/* A single piece is not copied. */

static int
dsa_drafts_join(dsa_drafts_t *d, const dsa_pieces_t *pieces, dsa_str_t *out)
{
    char               *p;
    const dsa_piece_t  *piece;

    piece = pieces->first;

    if (piece == NULL) {
        return DSA_OK;
    }

    if (piece->next == NULL) {
        *out = piece->text;
        return DSA_OK;
    }

    p = dsa_arena_alloc(d->r->arena, pieces->len);
    if (p == NULL) {
        return dsa_refuse_memory(d->r->refusal, d->r->arena);
    }

    *out = dsa_str(p, pieces->len);

    for ( /* void */ ; piece != NULL; piece = piece->next) {
        memcpy(p, piece->text.data, piece->text.len);
        p += piece->text.len;
    }

    return DSA_OK;
}
