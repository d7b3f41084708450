
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The entries of a stored conversation as messages and as items.
 */


#include <inttypes.h>
#include <stdio.h>

#include "context/conversation.h"
#include "context/responses_items.h"


typedef struct {
    const dsa_conversation_t   *c;
    dsa_arena_t                *arena;
    dsa_conversation_item_t    *items;
    uint32_t                    n;
    uint32_t                    max;
    dsa_err_t                  *err;
} dsa_conversation_list_t;


static dsa_json_t **dsa_conversation_trees(dsa_arena_t *arena,
    const dsa_conversation_t *c, dsa_err_t *err);
static int dsa_conversation_is_item(const dsa_json_t *entry);
static uint32_t dsa_conversation_run(dsa_json_t *list, dsa_json_t **trees,
    uint32_t from, uint32_t n);
static int dsa_conversation_parts(dsa_items_t *ctx, const dsa_at_t *at,
    dsa_json_t **trees, uint32_t n, dsa_message_t **parts, uint32_t *counts,
    uint32_t *n_parts);
static int dsa_conversation_expand(dsa_conversation_list_t *list,
    dsa_json_t *message, uint32_t entry);
static int dsa_conversation_derive(dsa_conversation_list_t *list,
    dsa_item_t *item, dsa_json_t *message, uint32_t entry, uint32_t call);
static uint32_t dsa_conversation_hash(dsa_str_t text);
static int dsa_conversation_push(dsa_conversation_list_t *list,
    dsa_json_t *object, dsa_json_t *message, uint32_t entry, uint32_t call);
static dsa_str_t dsa_conversation_text(const dsa_json_t *v, const char *name);
static void dsa_conversation_unlink(dsa_json_t *parent, dsa_json_t *child);


static const dsa_responses_reader_t  dsa_conversation_reader = {
    .limits = { .max_messages = UINT32_MAX, .hosted = 1 }
};


int
dsa_conversation_insert(dsa_chat_t *chat, dsa_arena_t *arena,
    const dsa_conversation_t *c, const dsa_chat_limits_t *limits,
    dsa_refusal_t *refusal)
{
    dsa_at_t         at = { NULL, "conversation", 0 };
    uint32_t         n, *counts;
    dsa_err_t        err;
    dsa_items_t      ctx;
    dsa_json_t     **trees;
    dsa_message_t  **parts;

    memset(&ctx, 0, sizeof(dsa_items_t));

    ctx.reader = &dsa_conversation_reader;
    ctx.r.chat = chat;
    ctx.r.arena = arena;
    ctx.r.refusal = refusal;
    ctx.r.limits = dsa_conversation_reader.limits;
    ctx.r.values = DSA_CHAT_VALUES;

    parts = dsa_arena_alloc(arena, ((size_t) c->n + 1) * sizeof(*parts));
    counts = dsa_arena_alloc(arena, ((size_t) c->n + 1) * sizeof(uint32_t));

    if (parts == NULL || counts == NULL) {
        return dsa_refuse_memory(refusal, arena);
    }

    trees = dsa_conversation_trees(arena, c, &err);

    if (trees == NULL && dsa_arena_exceeded(arena)) {
        return dsa_refuse_memory(refusal, arena);
    }

    if (trees == NULL
        || dsa_conversation_parts(&ctx, &at, trees, c->n, parts, counts, &n)
           != DSA_OK)
    {
        (void) dsa_refuse(refusal, &at, "The stored conversation cannot be "
                          "read.");
        refusal->status = 500;
        return DSA_ERROR;
    }

    return dsa_items_splice(chat, arena, parts, counts, n, &at, limits,
                            refusal);
}


/* NULL: out of memory, or err names the entry that cannot be read. */

static dsa_json_t **
dsa_conversation_trees(dsa_arena_t *arena, const dsa_conversation_t *c,
    dsa_err_t *err)
{
    uint32_t      i;
    dsa_err_t     why;
    dsa_json_t  **trees;

    trees = dsa_arena_alloc(arena, ((size_t) c->n + 1) * sizeof(*trees));
    if (trees == NULL) {
        (void) dsa_error(err, "out of memory for a conversation");
        return NULL;
    }

    for (i = 0; i < c->n; i++) {
        trees[i] = dsa_json_parse(arena, c->entries[i].data,
                                  c->entries[i].len, DSA_CHAT_DEPTH, &why);

        if (trees[i] == NULL) {
            (void) dsa_error(err, "entry %" PRId64 " of a conversation: %s",
                             c->numbers[i], why.text);
            return NULL;
        }

        if (trees[i]->type != DSA_JSON_OBJECT) {
            (void) dsa_error(err, "entry %" PRId64 " of a conversation is not "
                             "an object", c->numbers[i]);
            return NULL;
        }
    }

    return trees;
}


static int
dsa_conversation_is_item(const dsa_json_t *entry)
{
    return dsa_json_get(entry, "type") != NULL;
}


/*
 * Makes a list of the entries from the one at from that have its form.  Returns
 * the index behind the last of them.
 */

static uint32_t
dsa_conversation_run(dsa_json_t *list, dsa_json_t **trees, uint32_t from,
    uint32_t n)
{
    int           items;
    uint32_t      i;
    dsa_json_t  **end;

    memset(list, 0, sizeof(dsa_json_t));

    list->type = DSA_JSON_ARRAY;
    end = &list->first;
    items = dsa_conversation_is_item(trees[from]);

    for (i = from; i < n && dsa_conversation_is_item(trees[i]) == items; i++) {
        *end = trees[i];
        end = &trees[i]->next;
        list->n++;
    }

    return i;
}


static int
dsa_conversation_parts(dsa_items_t *ctx, const dsa_at_t *at,
    dsa_json_t **trees, uint32_t n, dsa_message_t **parts, uint32_t *counts,
    uint32_t *n_parts)
{
    int         rc;
    uint32_t    i, from, k;
    dsa_json_t  list;

    k = 0;

    for (i = 0; i < n; k++) {
        from = i;
        i = dsa_conversation_run(&list, trees, from, n);

        if (dsa_conversation_is_item(trees[from])) {
            rc = dsa_items_messages(ctx, at, &list, &parts[k], &counts[k],
                                    NULL);

        } else {
            rc = dsa_read_messages(&ctx->r, at, &list, &parts[k], &counts[k]);
        }

        if (rc != DSA_OK) {
            return DSA_ERROR;
        }
    }

    *n_parts = k;

    return DSA_OK;
}


int
dsa_conversation_messages(dsa_json_writer_t *w, dsa_arena_t *arena,
    const dsa_conversation_t *c, dsa_err_t *err)
{
    dsa_at_t         at = { NULL, "conversation", 0 };
    uint32_t         i, from, k, n;
    dsa_json_t       list, **trees;
    dsa_items_t      ctx;
    dsa_refusal_t    refusal;
    dsa_message_t   *messages;

    memset(&ctx, 0, sizeof(dsa_items_t));

    ctx.reader = &dsa_conversation_reader;
    ctx.r.arena = arena;
    ctx.r.refusal = &refusal;
    ctx.r.limits = dsa_conversation_reader.limits;
    ctx.r.values = DSA_CHAT_VALUES;

    trees = dsa_conversation_trees(arena, c, err);
    if (trees == NULL) {
        return DSA_ERROR;
    }

    dsa_json_array(w);

    for (i = 0; i < c->n; /* void */ ) {
        from = i;
        i = dsa_conversation_run(&list, trees, from, c->n);

        if (!dsa_conversation_is_item(trees[from])) {
            for (k = from; k < i; k++) {
                dsa_json_raw(w, c->entries[k]);
            }

            continue;
        }

        if (dsa_items_messages(&ctx, &at, &list, &messages, &n, NULL)
            != DSA_OK)
        {
            return dsa_error(err, "%s", refusal.message);
        }

        for (k = 0; k < n; k++) {
            if (w->comma) {
                dsa_buf_addz(w->out, ",");
            }

            if (dsa_message_dump(w->out, &messages[k]) != DSA_OK) {
                return dsa_error(err, "out of memory for a conversation");
            }

            w->comma = 1;
        }
    }

    dsa_json_array_end(w);

    return DSA_OK;
}


int
dsa_conversation_items(dsa_conversation_item_t **items, uint32_t *n,
    dsa_arena_t *arena, const dsa_conversation_t *c, dsa_err_t *err)
{
    int                       rc;
    uint32_t                  i;
    dsa_json_t              **trees;
    dsa_conversation_list_t   list;

    memset(&list, 0, sizeof(dsa_conversation_list_t));

    list.c = c;
    list.arena = arena;
    list.err = err;

    trees = dsa_conversation_trees(arena, c, err);
    if (trees == NULL) {
        return DSA_ERROR;
    }

    for (i = 0; i < c->n; i++) {
        rc = dsa_conversation_is_item(trees[i])
             ? dsa_conversation_push(&list, trees[i], NULL, i, 0)
             : dsa_conversation_expand(&list, trees[i], i);

        if (rc != DSA_OK) {
            return DSA_ERROR;
        }
    }

    *items = list.items;
    *n = list.n;

    return DSA_OK;
}


/* The items of a message of a chat. */

static int
dsa_conversation_expand(dsa_conversation_list_t *list, dsa_json_t *message,
    uint32_t entry)
{
    uint32_t     k;
    dsa_str_t    role;
    dsa_item_t   item;
    dsa_json_t  *calls, *call;

    memset(&item, 0, sizeof(dsa_item_t));

    role = dsa_conversation_text(message, "role");
    item.text = dsa_conversation_text(message, "content");

    if (dsa_str_eqz(role, "tool")) {
        item.type = DSA_ITEM_OUTPUT;
        item.call_id = dsa_conversation_text(message, "tool_call_id");

        return dsa_conversation_derive(list, &item, message, entry, 0);
    }

    if (!dsa_str_eqz(role, "assistant")) {
        item.role = dsa_str_eqz(role, "user") ? DSA_ROLE_USER
                                              : DSA_ROLE_SYSTEM;

        return dsa_conversation_derive(list, &item, message, entry, 0);
    }

    item.text = dsa_conversation_text(message, "reasoning_content");

    if (item.text.len != 0) {
        item.type = DSA_ITEM_REASONING;

        if (dsa_conversation_derive(list, &item, message, entry, 0) != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    calls = dsa_json_get(message, "tool_calls");
    item.text = dsa_conversation_text(message, "content");

    if (item.text.len != 0 || calls == NULL) {
        item.type = DSA_ITEM_MESSAGE;
        item.role = DSA_ROLE_ASSISTANT;

        if (dsa_conversation_derive(list, &item, message, entry, 0) != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    item.type = DSA_ITEM_CALL;
    call = calls != NULL ? calls->first : NULL;

    for (k = 0; call != NULL; call = call->next, k++) {
        item.call_id = dsa_conversation_text(call, "id");
        item.object = dsa_json_get(call, "function");

        item.name = item.object != NULL
                    ? dsa_conversation_text(item.object, "name")
                    : dsa_str("", 0);

        if (item.name.len == 0) {
            return dsa_error(list->err, "entry %" PRId64 " of a conversation "
                             "has a call without a function",
                             list->c->numbers[entry]);
        }

        if (dsa_conversation_derive(list, &item, message, entry, k) != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static int
dsa_conversation_derive(dsa_conversation_list_t *list, dsa_item_t *item,
    dsa_json_t *message, uint32_t entry, uint32_t call)
{
    char                id[DSA_RESPONSES_ITEM_ID + 1];
    dsa_buf_t           text;
    dsa_err_t           why;
    dsa_json_t         *object;
    dsa_json_writer_t   w;

    /* the place of a call in its message changes when another is deleted */

    (void) snprintf(id, sizeof(id), "%s%.*s%08" PRIx32 "%08" PRIx32,
                    dsa_item_prefix(item->type), (int) list->c->owner.len,
                    list->c->owner.data, (uint32_t) list->c->numbers[entry],
                    dsa_conversation_hash(item->call_id));

    memset(&text, 0, sizeof(dsa_buf_t));

    dsa_json_writer(&w, &text);
    dsa_item_write(&w, item, id);

    object = text.failed ? NULL
             : dsa_json_parse(list->arena, text.data, text.len, DSA_CHAT_DEPTH,
                              &why);

    dsa_buf_free(&text);

    if (object == NULL) {
        return dsa_error(list->err, "out of memory for a conversation");
    }

    return dsa_conversation_push(list, object, message, entry, call);
}


/* FNV-1a, 32 bits. */

static uint32_t
dsa_conversation_hash(dsa_str_t text)
{
    size_t    i;
    uint32_t  hash;

    hash = 2166136261U;

    for (i = 0; i < text.len; i++) {
        hash = (hash ^ (unsigned char) text.data[i]) * 16777619U;
    }

    return hash;
}


static int
dsa_conversation_push(dsa_conversation_list_t *list, dsa_json_t *object,
    dsa_json_t *message, uint32_t entry, uint32_t call)
{
    uint32_t                  max;
    dsa_conversation_item_t  *items, *item;

    if (list->n == list->max) {
        max = list->max == 0 ? list->c->n + 16 : 2 * list->max;

        items = dsa_arena_alloc(list->arena, (size_t) max * sizeof(*items));
        if (items == NULL) {
            return dsa_error(list->err, "out of memory for a conversation");
        }

        if (list->n != 0) {
            memcpy(items, list->items, list->n * sizeof(*items));
        }

        list->items = items;
        list->max = max;
    }

    item = &list->items[list->n++];

    item->object = object;
    item->id = dsa_conversation_text(object, "id");
    item->entry = entry;
    item->message = message;
    item->call = call;

    return DSA_OK;
}


/* A member that is a string, or an empty string if the member is missing. */

static dsa_str_t
dsa_conversation_text(const dsa_json_t *v, const char *name)
{
    dsa_json_t  *member;

    member = dsa_json_get(v, name);

    return member != NULL && member->type == DSA_JSON_STRING ? member->text
                                                             : dsa_str("", 0);
}


int
dsa_conversation_without(dsa_buf_t *out, const dsa_conversation_item_t *item)
{
    uint32_t     k;
    dsa_str_t    type;
    dsa_json_t  *m, *calls, *call, *content;

    m = item->message;

    if (m == NULL
        || !dsa_str_eqz(dsa_conversation_text(m, "role"), "assistant"))
    {
        return DSA_OK;
    }

    type = dsa_conversation_text(item->object, "type");
    content = dsa_json_get(m, "content");
    calls = dsa_json_get(m, "tool_calls");

    if (dsa_str_eqz(type, "reasoning")) {
        dsa_conversation_unlink(m, dsa_json_get(m, "reasoning_content"));

    } else if (dsa_str_eqz(type, "function_call")) {
        call = calls->first;

        for (k = 0; k < item->call; k++) {
            call = call->next;
        }

        dsa_conversation_unlink(calls, call);

        if (calls->first == NULL) {
            dsa_conversation_unlink(m, calls);
        }

    } else if (content != NULL) {
        content->text.len = 0;
    }

    if ((content == NULL || content->text.len == 0)
        && dsa_json_get(m, "reasoning_content") == NULL
        && dsa_json_get(m, "tool_calls") == NULL)
    {
        return DSA_OK;
    }

    return dsa_json_dump(out, m) == DSA_OK && !out->failed ? DSA_OK
                                                           : DSA_ERROR;
}


static void
dsa_conversation_unlink(dsa_json_t *parent, dsa_json_t *child)
{
    dsa_json_t  **p;

    for (p = &parent->first; *p != child; p = &(*p)->next) { /* void */ }

    *p = child->next;
    parent->n--;
}


int
dsa_conversation_read(dsa_buf_t *out, dsa_arena_t *arena,
    const dsa_json_t *items, const char *name,
    const dsa_responses_reader_t *reader,
    const char *(*make_id)(void *data, const char *prefix), void *data,
    dsa_refusal_t *refusal)
{
    dsa_at_t        at = { NULL, name, 0 };
    uint32_t        n;
    dsa_chat_t      chat;
    dsa_items_t     ctx;
    dsa_message_t  *messages;

    if (items == NULL || items->type != DSA_JSON_ARRAY) {
        return dsa_refuse_type(refusal, &at, items, "an array of items");
    }

    if (items->n > DSA_CONVERSATION_ADD) {
        return dsa_refuse_at(refusal, &at, "%" PRIu32 " items; at most %d are "
                             "accepted in one request", items->n,
                             DSA_CONVERSATION_ADD);
    }

    memset(&chat, 0, sizeof(dsa_chat_t));
    memset(&ctx, 0, sizeof(dsa_items_t));

    ctx.reader = reader;
    ctx.r.chat = &chat;
    ctx.r.arena = arena;
    ctx.r.refusal = refusal;
    ctx.r.limits = reader->limits;
    ctx.r.values = DSA_CHAT_VALUES;

    if (dsa_items_messages(&ctx, &at, items, &messages, &n, NULL) != DSA_OK) {
        return DSA_ERROR;
    }

    if (dsa_responses_items(out, arena, items, reader, make_id, data)
        != DSA_OK)
    {
        return dsa_refuse_memory(refusal, arena);
    }

    return DSA_OK;
}


int
dsa_conversation_metadata(dsa_buf_t *out, const dsa_json_t *root,
    dsa_refusal_t *refusal)
{
    dsa_json_t         *v, *child;
    dsa_json_writer_t   w;

    if (dsa_responses_metadata(refusal, root) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_json_writer(&w, out);
    dsa_json_object(&w);

    if (dsa_read_any(root, "metadata", &v)) {
        for (child = v->first; child != NULL; child = child->next) {
            dsa_json_string(&w, child->key);
            dsa_buf_addz(out, ":");
            w.comma = 0;
            dsa_json_string(&w, child->text);
        }
    }

    dsa_json_object_end(&w);

    return DSA_OK;
}
