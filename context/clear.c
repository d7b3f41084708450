
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>

#include "context/clear.h"


#define DSA_CLEAR_LEN      (sizeof(DSA_CLEAR_RESULT) - 1)

/* guesses of the search by the bytes; afterwards it halves the range */
#define DSA_CLEAR_GUESSES  4


static void dsa_clear_uses(dsa_clear_t *c);
static uint32_t dsa_clear_calls(dsa_clear_t *c, uint32_t i, uint32_t n,
    uint32_t left);
static void dsa_clear_use(dsa_clear_t *c, uint32_t i, uint32_t k,
    uint32_t result);
static uint32_t dsa_clear_count(const dsa_chat_t *chat);
static uint32_t dsa_clear_result(const dsa_chat_t *chat, uint32_t i,
    uint32_t k, uint32_t from);
static uint64_t dsa_clear_own(const dsa_message_t *m);
static uint64_t dsa_clear_arguments(const dsa_clear_t *c,
    const dsa_tool_call_t *call);
static int dsa_clear_named(dsa_str_t name, const dsa_str_t *names,
    uint32_t n);
static void dsa_clear_turns(dsa_clear_t *c);
static uint64_t dsa_clear_reasoning(const dsa_message_t *m);
static void dsa_clear_add(dsa_clear_t *c, uint64_t bytes);
static int dsa_clear_apply(const dsa_clear_t *c, const dsa_clear_part_t *part,
    dsa_arena_t *arena, dsa_message_t *messages);
static int dsa_clear_content(dsa_message_t *m, dsa_arena_t *arena);
static int dsa_clear_input(const dsa_clear_t *c, const dsa_clear_part_t *part,
    dsa_message_t *m, dsa_arena_t *arena);
static int dsa_clear_begin(dsa_clear_t *c, uint32_t tokens, int more);
static uint32_t dsa_clear_estimate(const dsa_clear_t *c);
static int dsa_clear_all(dsa_clear_t *c, uint32_t tokens, uint32_t left);
static int dsa_clear_search(dsa_clear_t *c);
static uint32_t dsa_clear_guess(const dsa_clear_t *c);
static uint64_t dsa_clear_bytes(const dsa_clear_t *c, uint32_t k);
static int dsa_clear_none(dsa_clear_t *c, uint32_t tokens);


int
dsa_clear_init(dsa_clear_t *c, dsa_arena_t *arena, const dsa_chat_t *chat,
    const dsa_edit_t *edit)
{
    memset(c, 0, sizeof(dsa_clear_t));

    c->chat = chat;
    c->edit = edit;

    /* each part has a message of its own: its result, or its question */

    c->parts = dsa_arena_alloc(arena, ((size_t) chat->n_messages + 1)
                                      * sizeof(dsa_clear_part_t));
    if (c->parts == NULL) {
        return DSA_ERROR;
    }

    if (edit->type == DSA_EDIT_THINKING) {
        dsa_clear_turns(c);

    } else {
        dsa_clear_uses(c);
    }

    return DSA_OK;
}


/* Finds the tool uses that may leave. */

static void
dsa_clear_uses(dsa_clear_t *c)
{
    uint32_t              i, n, left;
    const dsa_message_t  *m;

    n = dsa_clear_count(c->chat);

    if ((c->edit->by_uses && n <= c->edit->trigger) || n <= c->edit->keep) {
        return;
    }

    left = n - c->edit->keep;

    for (i = 0; i < c->chat->n_messages && left != 0; i++) {
        m = &c->chat->messages[i];
        left = dsa_clear_calls(c, i, m->n_calls, left);
    }
}


/*
 * Adds the uses of the n calls of message i, of which at most left may leave.
 * Returns how many may leave behind them.
 */

static uint32_t
dsa_clear_calls(dsa_clear_t *c, uint32_t i, uint32_t n, uint32_t left)
{
    uint32_t  k, result, from;

    from = i + 1;

    for (k = 0; k < n && left != 0; k++) {
        result = dsa_clear_result(c->chat, i, k, from);

        if (result == 0) {
            continue;
        }

        dsa_clear_use(c, i, k, result);

        from = result + 1;
        left--;
    }

    return left;
}


/* Adds the use of call k of message i, if the prompt is shorter without it. */

static void
dsa_clear_use(dsa_clear_t *c, uint32_t i, uint32_t k, uint32_t result)
{
    uint64_t                own, bytes;
    dsa_clear_part_t       *part;
    const dsa_tool_call_t  *call;

    call = &c->chat->messages[i].calls[k];

    if (dsa_clear_named(call->name, c->edit->excluded, c->edit->n_excluded)) {
        return;
    }

    own = dsa_clear_own(&c->chat->messages[result]);
    bytes = dsa_clear_arguments(c, call);

    if (own > DSA_CLEAR_LEN) {
        bytes += own - DSA_CLEAR_LEN;
    }

    if (bytes == 0) {
        return;
    }

    part = &c->parts[c->n];
    memset(part, 0, sizeof(dsa_clear_part_t));

    part->call = i;
    part->index = k;
    part->first = result;

    dsa_clear_add(c, bytes);
}


/* Returns how many calls of the chat have a result. */

static uint32_t
dsa_clear_count(const dsa_chat_t *chat)
{
    uint32_t  i, n;

    n = 0;

    for (i = 0; i < chat->n_messages; i++) {
        n += chat->messages[i].role == DSA_ROLE_TOOL;
    }

    return n;
}


/*
 * Returns the message with the result of call k of message i, or 0 if there is
 * none.  The results are in the order of the calls; the next one is at from.
 */

static uint32_t
dsa_clear_result(const dsa_chat_t *chat, uint32_t i, uint32_t k, uint32_t from)
{
    const dsa_message_t  *m;

    if (from == chat->n_messages) {
        return 0;
    }

    m = &chat->messages[from];

    return m->role == DSA_ROLE_TOOL
           && dsa_str_eq(m->tool_call_id, chat->messages[i].calls[k].id)
           ? from : 0;
}


/* Returns the bytes of a result that are of the tool. */

static uint64_t
dsa_clear_own(const dsa_message_t *m)
{
    return m->content.len - m->notes;
}


/* Returns about as many bytes as the arguments take that leave. */

static uint64_t
dsa_clear_arguments(const dsa_clear_t *c, const dsa_tool_call_t *call)
{
    uint64_t           bytes;
    const dsa_json_t  *v;

    if (!c->edit->all_inputs
        && !dsa_clear_named(call->name, c->edit->inputs, c->edit->n_inputs))
    {
        return 0;
    }

    if (call->arguments == NULL) {
        return call->raw.len;
    }

    bytes = 0;

    for (v = call->arguments->first; v != NULL; v = v->next) {
        bytes += v->key.len + v->text.len + 1;
    }

    return bytes;
}


static int
dsa_clear_named(dsa_str_t name, const dsa_str_t *names, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        if (dsa_str_eq(name, names[i])) {
            return 1;
        }
    }

    return 0;
}


/*
 * Finds the turns whose reasoning leaves.  If the family does not keep
 * reasoning in front of the last question, there is none in the prompt.
 */

static void
dsa_clear_turns(dsa_clear_t *c)
{
    uint32_t              i, n, start;
    uint64_t              bytes;
    dsa_clear_part_t     *part;
    const dsa_message_t  *m;

    if (!c->chat->keeps) {
        return;
    }

    n = c->chat->n_messages;
    m = c->chat->messages;
    bytes = 0;
    start = 0;

    for (i = 0; i <= n; i++) {

        if (i < n && m[i].role != DSA_ROLE_USER) {
            bytes += dsa_clear_reasoning(&m[i]);
            continue;
        }

        if (bytes != 0) {
            part = &c->parts[c->n];
            memset(part, 0, sizeof(dsa_clear_part_t));

            part->first = start;
            part->end = i;

            dsa_clear_add(c, bytes);
        }

        bytes = 0;
        start = i;
    }

    c->n -= c->edit->keep < c->n ? c->edit->keep : c->n;
}


/* Returns about as many bytes as the reasoning of a message has. */

static uint64_t
dsa_clear_reasoning(const dsa_message_t *m)
{
    if (m->role != DSA_ROLE_ASSISTANT || m->cleared) {
        return 0;
    }

    return m->reasoning.len;
}


/* Adds a part whose other members are set. */

static void
dsa_clear_add(dsa_clear_t *c, uint64_t bytes)
{
    c->parts[c->n].bytes = bytes + (c->n != 0 ? c->parts[c->n - 1].bytes : 0);
    c->n++;
}


int
dsa_clear_chat(const dsa_clear_t *c, dsa_arena_t *arena, dsa_chat_t *out)
{
    uint32_t        i;
    dsa_message_t  *m;

    m = dsa_arena_alloc(arena, ((size_t) c->chat->n_messages + 1)
                               * sizeof(dsa_message_t));
    if (m == NULL) {
        return DSA_ERROR;
    }

    memcpy(m, c->chat->messages,
           (size_t) c->chat->n_messages * sizeof(dsa_message_t));

    for (i = 0; i < c->cut; i++) {
        if (dsa_clear_apply(c, &c->parts[i], arena, m) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    *out = *c->chat;
    out->messages = m;

    return DSA_OK;
}


/* Clears a part in messages, a copy.  DSA_ERROR: out of memory. */

static int
dsa_clear_apply(const dsa_clear_t *c, const dsa_clear_part_t *part,
    dsa_arena_t *arena, dsa_message_t *messages)
{
    uint32_t        i;
    dsa_message_t  *m;

    if (c->edit->type == DSA_EDIT_THINKING) {
        for (i = part->first; i < part->end; i++) {
            messages[i].cleared = messages[i].role == DSA_ROLE_ASSISTANT;
        }

        return DSA_OK;
    }

    m = &messages[part->first];

    if (dsa_clear_own(m) > DSA_CLEAR_LEN
        && dsa_clear_content(m, arena) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_clear_input(c, part, &messages[part->call], arena);
}


/* Replaces a result; what is not of the tool stays. */

static int
dsa_clear_content(dsa_message_t *m, dsa_arena_t *arena)
{
    char  *p;

    if (m->notes == 0) {
        m->content = dsa_strz(DSA_CLEAR_RESULT);
        return DSA_OK;
    }

    p = dsa_arena_alloc(arena, DSA_CLEAR_LEN + m->notes);
    if (p == NULL) {
        return DSA_ERROR;
    }

    memcpy(p, DSA_CLEAR_RESULT, DSA_CLEAR_LEN);
    memcpy(p + DSA_CLEAR_LEN, m->content.data + m->content.len - m->notes,
           m->notes);

    m->content = dsa_str(p, DSA_CLEAR_LEN + m->notes);

    return DSA_OK;
}


/*
 * Replaces the arguments of a call, if they leave.  The text that the model
 * sampled has them, so the encoder must not use it.
 */

static int
dsa_clear_input(const dsa_clear_t *c, const dsa_clear_part_t *part,
    dsa_message_t *m, dsa_arena_t *arena)
{
    dsa_json_t             *empty;
    dsa_tool_call_t        *calls;
    const dsa_message_t    *from;

    from = &c->chat->messages[part->call];

    if (dsa_clear_arguments(c, &from->calls[part->index]) == 0) {
        return DSA_OK;
    }

    if (m->calls == from->calls) {
        calls = dsa_arena_alloc(arena, m->n_calls * sizeof(dsa_tool_call_t));
        if (calls == NULL) {
            return DSA_ERROR;
        }

        memcpy(calls, from->calls, m->n_calls * sizeof(dsa_tool_call_t));
        m->calls = calls;
    }

    empty = dsa_arena_calloc(arena, sizeof(dsa_json_t));
    if (empty == NULL) {
        return DSA_ERROR;
    }

    empty->type = DSA_JSON_OBJECT;

    m->calls[part->index].arguments = empty;
    m->calls[part->index].raw = dsa_str(NULL, 0);
    m->calls[part->index].text = dsa_str(NULL, 0);
    m->sampled = NULL;

    return DSA_OK;
}


uint32_t
dsa_clear_limit(const dsa_clear_t *c)
{
    if (c->counted || c->edit->type != DSA_EDIT_TOOL_USES || c->edit->by_uses)
    {
        return 0;
    }

    return c->edit->trigger;
}


int
dsa_clear_counted(dsa_clear_t *c, uint32_t tokens, int more)
{
    uint32_t  gone;

    assert(c->n != 0);

    if (!c->counted) {
        return dsa_clear_begin(c, tokens, more);
    }

    /* a text can have fewer tokens than what replaces it */

    gone = c->whole > tokens ? c->whole - tokens : 0;

    if (!c->searching) {
        return dsa_clear_all(c, gone, more ? 0 : tokens);
    }

    if (gone >= c->want) {
        c->high = c->cut;
        c->high_tokens = gone;
        c->left = tokens;

    } else {
        c->low = c->cut + 1;
        c->low_tokens = gone;
    }

    return dsa_clear_search(c);
}


/* The tokens of the whole prompt are counted. */

static int
dsa_clear_begin(dsa_clear_t *c, uint32_t tokens, int more)
{
    if (!more && tokens <= dsa_clear_limit(c)) {
        return dsa_clear_none(c, 0);
    }

    c->whole = tokens;
    c->counted = 1;
    c->bound = more != 0;
    c->cut = c->bound ? dsa_clear_estimate(c) : c->n;

    return c->cut != 0 ? DSA_AGAIN : dsa_clear_none(c, 0);
}


/* Returns how many parts leave, by their bytes. */

static uint32_t
dsa_clear_estimate(const dsa_clear_t *c)
{
    uint32_t  k;
    uint64_t  want, group;

    group = (uint64_t) c->edit->at_least * DSA_CLEAR_BYTES;

    if (group == 0) {
        return c->n;
    }

    want = dsa_clear_bytes(c, c->n) / group * group;

    for (k = 0; dsa_clear_bytes(c, k) < want; k++) { /* void */ }

    return k;
}


/* So many tokens leave with all parts, and left stay; 0: not known. */

static int
dsa_clear_all(dsa_clear_t *c, uint32_t tokens, uint32_t left)
{
    c->low = c->cut;
    c->high = c->cut;
    c->high_tokens = tokens;
    c->left = left;

    if (c->bound) {
        return dsa_clear_search(c);
    }

    if (tokens == 0 || tokens < c->edit->at_least) {
        return dsa_clear_none(c, c->whole);
    }

    if (c->edit->at_least != 0) {
        c->low = 1;
        c->want = tokens - tokens % c->edit->at_least;
    }

    return dsa_clear_search(c);
}


static int
dsa_clear_search(dsa_clear_t *c)
{
    if (c->low == c->high) {
        c->cut = c->high;
        c->tokens = c->high_tokens;
        return DSA_OK;
    }

    c->searching = 1;
    c->cut = dsa_clear_guess(c);
    c->tries++;

    return DSA_AGAIN;
}


/* The next number of parts to try, in [low, high - 1]. */

static uint32_t
dsa_clear_guess(const dsa_clear_t *c)
{
    double    want, from, bytes;
    uint32_t  k, low, high;

    low = c->low;
    high = c->high - 1;

    if (c->tries >= DSA_CLEAR_GUESSES) {
        return low + (high - low) / 2;
    }

    from = (double) dsa_clear_bytes(c, low - 1);
    bytes = (double) dsa_clear_bytes(c, c->high) - from;
    want = from + bytes * ((double) c->want - c->low_tokens)
                  / ((double) c->high_tokens - c->low_tokens);

    while (low < high) {
        k = low + (high - low) / 2;

        if ((double) dsa_clear_bytes(c, k) >= want) {
            high = k;

        } else {
            low = k + 1;
        }
    }

    return low;
}


/* Returns the bytes that the prompt loses with the first k parts. */

static uint64_t
dsa_clear_bytes(const dsa_clear_t *c, uint32_t k)
{
    return k != 0 ? c->parts[k - 1].bytes : 0;
}


/* Nothing leaves; the prompt has so many tokens. */

static int
dsa_clear_none(dsa_clear_t *c, uint32_t tokens)
{
    c->cut = 0;
    c->tokens = 0;
    c->left = tokens;

    return DSA_OK;
}
