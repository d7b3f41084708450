
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>

#include "base/json_write.h"
#include "context/read.h"
#include "context/references.h"


static int dsa_references_is(const dsa_json_t *v);
static int dsa_references_replace(dsa_reference_t *refs, uint32_t n,
    dsa_arena_t *keep, const dsa_json_t *item, dsa_err_t *err);


int
dsa_references_find(dsa_reference_t **refs, uint32_t *n, dsa_arena_t *arena,
    const dsa_json_t *root, dsa_refusal_t *refusal)
{
    dsa_at_t          at = { NULL, "input", 0 };
    dsa_at_t          el = { &at, NULL, 0 };
    dsa_at_t          id_at = { &el, "id", 0 };
    uint32_t          count;
    dsa_json_t       *input, *child, *id;
    dsa_reference_t  *ref;

    *n = 0;
    *refs = NULL;

    input = dsa_json_get(root, "input");

    if (input == NULL || input->type != DSA_JSON_ARRAY) {
        return DSA_OK;
    }

    count = 0;

    for (child = input->first; child != NULL; child = child->next) {
        count += dsa_references_is(child);
    }

    if (count == 0) {
        return DSA_OK;
    }

    if (count > DSA_REFERENCES) {
        return dsa_refuse_at(refusal, &at, "%u references to items; at most "
                             "%d are accepted", count, DSA_REFERENCES);
    }

    *refs = dsa_arena_calloc(arena, count * sizeof(dsa_reference_t));
    if (*refs == NULL) {
        return dsa_refuse_memory(refusal, arena);
    }

    for (child = input->first; child != NULL; child = child->next) {

        if (dsa_references_is(child)) {
            id = dsa_json_get(child, "id");

            if (id == NULL || id->type != DSA_JSON_STRING) {
                return dsa_refuse_type(refusal, &id_at, id, "the id of an "
                                       "item");
            }

            ref = &(*refs)[(*n)++];
            ref->object = child;
            ref->id = id->text;
            ref->index = el.index;
        }

        el.index++;
    }

    return DSA_OK;
}


/* The type may be absent; a message has a role then. */

static int
dsa_references_is(const dsa_json_t *v)
{
    dsa_json_t  *member;

    if (v->type != DSA_JSON_OBJECT) {
        return 0;
    }

    if (dsa_read_any(v, "type", &member)) {
        return member->type == DSA_JSON_STRING
               && dsa_str_eqz(member->text, "item_reference");
    }

    return dsa_json_get(v, "role") == NULL && dsa_json_get(v, "id") != NULL;
}


int
dsa_references_owner(dsa_str_t id, dsa_str_t *owner)
{
    char         c;
    size_t       i;
    const char  *p;

    p = id.len != 0 ? memchr(id.data, '_', id.len) : NULL;

    if (p == NULL) {
        return 0;
    }

    p++;

    if ((size_t) (id.data + id.len - p) < DSA_CONVERSATION_OWNER) {
        return 0;
    }

    for (i = 0; i < DSA_CONVERSATION_OWNER; i++) {
        c = p[i];

        if ((c < 'a' || c > 'f') && (c < '0' || c > '9')) {
            return 0;
        }
    }

    *owner = dsa_str(p, DSA_CONVERSATION_OWNER);

    return 1;
}


int
dsa_references_list(dsa_reference_t *refs, uint32_t n, dsa_arena_t *work,
    dsa_arena_t *keep, dsa_str_t list, dsa_err_t *err)
{
    dsa_json_t  *items, *item;

    items = dsa_json_parse(work, list.data, list.len, DSA_CHAT_DEPTH, err);

    if (items == NULL) {
        return DSA_ERROR;
    }

    for (item = items->first; item != NULL; item = item->next) {
        if (dsa_references_replace(refs, n, keep, item, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


int
dsa_references_conversation(dsa_reference_t *refs, uint32_t n,
    dsa_arena_t *work, dsa_arena_t *keep, const dsa_conversation_t *c,
    dsa_err_t *err)
{
    uint32_t                  i, n_items;
    dsa_conversation_item_t  *items;

    if (dsa_conversation_items(&items, &n_items, work, c, err) != DSA_OK) {
        return DSA_ERROR;
    }

    for (i = 0; i < n_items; i++) {
        if (dsa_references_replace(refs, n, keep, items[i].object, err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/* The object keeps its place in the list. */

static int
dsa_references_replace(dsa_reference_t *refs, uint32_t n, dsa_arena_t *keep,
    const dsa_json_t *item, dsa_err_t *err)
{
    uint32_t     i;
    dsa_buf_t    text;
    dsa_json_t  *id, *copy;

    copy = NULL;
    id = dsa_json_get(item, "id");

    if (id == NULL || id->type != DSA_JSON_STRING) {
        return DSA_OK;
    }

    for (i = 0; i < n; i++) {
        if (refs[i].found || !dsa_str_eq(refs[i].id, id->text)) {
            continue;
        }

        if (copy == NULL) {
            memset(&text, 0, sizeof(dsa_buf_t));

            if (dsa_json_dump(&text, item) == DSA_OK && !text.failed) {
                copy = dsa_json_parse(keep, text.data, text.len,
                                      DSA_CHAT_DEPTH, err);
            }

            dsa_buf_free(&text);
        }

        if (copy == NULL) {
            return dsa_error(err, "out of memory for the item of a reference");
        }

        refs[i].found = 1;
        refs[i].object->n = copy->n;
        refs[i].object->first = copy->first;
    }

    return DSA_OK;
}


int
dsa_references_check(const dsa_reference_t *refs, uint32_t n,
    dsa_refusal_t *refusal)
{
    uint32_t  i;
    dsa_at_t  at = { NULL, "input", 0 };
    dsa_at_t  el = { &at, NULL, 0 };
    dsa_at_t  id_at = { &el, "id", 0 };

    for (i = 0; i < n; i++) {
        if (refs[i].found) {
            continue;
        }

        el.index = refs[i].index;

        (void) dsa_refuse_at(refusal, &id_at, "there is no item `%.*s`, or it "
                             "is not stored any more; send the item itself",
                             dsa_read_shown(refs[i].id), refs[i].id.data);
        refusal->status = 404;

        return DSA_ERROR;
    }

    return DSA_OK;
}
