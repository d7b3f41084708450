
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>

#include "context/summary.h"
#include "context/window.h"


/* guesses of a search by the bytes; afterwards it halves the range */
#define DSA_WINDOW_GUESSES  4


static void dsa_window_layout(dsa_window_t *w);
static void dsa_window_point(dsa_window_t *w, uint32_t end, uint32_t rounds,
    uint32_t closed);
static uint64_t dsa_window_weight(const dsa_window_t *w, uint32_t i);
static int dsa_window_overflow(dsa_window_t *w, uint32_t point);
static int dsa_window_search(dsa_window_t *w);
static uint32_t dsa_window_guess(const dsa_window_t *w);
static uint64_t dsa_window_bytes(const dsa_window_t *w, uint32_t point);


static const char *const  dsa_window_names[] = {
    [DSA_WINDOW_NONE] = "none",
    [DSA_WINDOW_DISCARD_75] = "discard_75",
    [DSA_WINDOW_DISCARD_ALL] = "discard_all",
    [DSA_WINDOW_SUMMARY] = "summary"
};


int
dsa_window_init(dsa_window_t *w, dsa_arena_t *arena, const dsa_chat_t *chat,
    dsa_window_e strategy, uint32_t threshold)
{
    size_t  n;

    assert(chat->n_messages != 0 && threshold != 0);
    assert(strategy != DSA_WINDOW_UNSET && strategy != DSA_WINDOW_NONE);

    memset(w, 0, sizeof(dsa_window_t));

    w->chat = chat;
    w->strategy = strategy;
    w->threshold = threshold;

    if (strategy == DSA_WINDOW_SUMMARY) {
        w->reserve = dsa_summary_reserve(threshold);
    }

    /* each round and each point takes a message, and the end is a point */

    n = (size_t) chat->n_messages + 1;

    w->bytes = dsa_arena_alloc(arena, n * sizeof(uint64_t));
    w->rounds = dsa_arena_alloc(arena, n * sizeof(dsa_window_round_t));
    w->points = dsa_arena_alloc(arena, n * sizeof(dsa_window_point_t));

    if (w->bytes == NULL || w->rounds == NULL || w->points == NULL) {
        return DSA_ERROR;
    }

    dsa_window_layout(w);

    w->point = w->last;

    return DSA_OK;
}


/* Finds the rounds and the points. */

static void
dsa_window_layout(dsa_window_t *w)
{
    uint32_t              i, n, closed;
    const dsa_message_t  *m;
    dsa_window_round_t   *round;

    m = w->chat->messages;
    n = w->chat->n_messages;

    for (i = 0; i < n; i++) {
        if (m[i].role == DSA_ROLE_USER) {
            w->user = i;
        }
    }

    /*
     * A prompt must end with a message that the model can answer.  Without
     * the last round it does, if the last message outside of the rounds is
     * one of the user or an answer.  Then closed is equal to w->n_rounds,
     * otherwise 1 less.
     */

    closed = 0;
    w->bytes[0] = 0;

    for (i = 0; i < n; i++) {
        w->bytes[i + 1] = w->bytes[i] + dsa_window_weight(w, i);

        if (m[i].role == DSA_ROLE_ASSISTANT && i != 0 && !m[i].prefix
            && (m[i - 1].role == DSA_ROLE_USER
                || m[i - 1].role == DSA_ROLE_TOOL
                || (m[i - 1].role == DSA_ROLE_ASSISTANT
                    && m[i - 1].n_calls == 0)))
        {
            dsa_window_point(w, i, w->n_rounds, closed);
        }

        if (m[i].role == DSA_ROLE_ASSISTANT && m[i].n_calls != 0) {
            w->rounds[w->n_rounds++].first = i;

        } else if (m[i].role != DSA_ROLE_TOOL && !m[i].prefix) {
            closed = m[i].role == DSA_ROLE_USER
                     || m[i].role == DSA_ROLE_ASSISTANT;
        }

        if (w->n_rounds != 0
            && (m[i].role == DSA_ROLE_TOOL || m[i].n_calls != 0))
        {
            round = &w->rounds[w->n_rounds - 1];
            round->end = i + 1;
            round->bytes = w->bytes[i + 1] - w->bytes[round->first]
                           + (w->n_rounds > 1 ? round[-1].bytes : 0);
        }
    }

    dsa_window_point(w, n, w->n_rounds, closed);

    w->last--;
}


/* w->last is the number of points until all of them are there. */

static void
dsa_window_point(dsa_window_t *w, uint32_t end, uint32_t rounds,
    uint32_t closed)
{
    dsa_window_point_t  *point;

    point = &w->points[w->last++];
    point->end = end;
    point->allowed = closed || rounds == 0 ? rounds : rounds - 1;
}


/* About as many bytes as message i has in the prompt. */

static uint64_t
dsa_window_weight(const dsa_window_t *w, uint32_t i)
{
    uint32_t              k;
    uint64_t              bytes;
    const dsa_json_t     *v;
    const dsa_message_t  *m;

    m = &w->chat->messages[i];
    bytes = m->content.len;

    if (i > w->user) {
        bytes += m->reasoning.len;
    }

    for (k = 0; k < m->n_calls; k++) {
        bytes += m->calls[k].name.len + m->calls[k].raw.len;

        if (m->calls[k].arguments == NULL) {
            continue;
        }

        for (v = m->calls[k].arguments->first; v != NULL; v = v->next) {
            bytes += v->key.len + v->text.len;
        }
    }

    return bytes;
}


int
dsa_window_chat(const dsa_window_t *w, dsa_arena_t *arena, dsa_chat_t *chat)
{
    uint32_t        i, end, round;
    dsa_message_t  *m;

    end = w->points[w->point].end;

    m = dsa_arena_alloc(arena, (size_t) end * sizeof(dsa_message_t));
    if (m == NULL) {
        return DSA_ERROR;
    }

    *chat = *w->chat;
    chat->messages = m;
    chat->n_messages = 0;
    chat->n_stored = 0;

    round = 0;

    for (i = 0; i < end; i++) {
        if (round < w->cut && i == w->rounds[round].first) {
            i = w->rounds[round++].end - 1;

            if (round == w->cut && w->summary.len != 0) {
                memset(m, 0, sizeof(dsa_message_t));
                m->role = DSA_ROLE_USER;
                m->content = w->summary;
                m++;
                chat->n_messages++;
            }

            continue;
        }

        *m = w->chat->messages[i];

        if (i < w->user && w->point != w->last && !chat->keeps) {
            m->reasoning = dsa_str(NULL, 0);
            m->has_reasoning = 0;
            m->sampled = NULL;          /* this text has reasoning as well */
        }

        m++;
        chat->n_messages++;
    }

    return DSA_OK;
}


uint32_t
dsa_window_limit(const dsa_window_t *w)
{
    if (w->cut == 0) {
        return w->threshold;
    }

    return w->threshold > w->reserve ? w->threshold - w->reserve : 0;
}


int
dsa_window_counted(dsa_window_t *w, uint32_t tokens)
{
    int       over;
    uint32_t  i;

    over = tokens > dsa_window_limit(w);

    if (w->searching) {
        if (over) {
            w->high = w->point;
            w->high_tokens = tokens;

        } else {
            w->low = w->point + 1;
            w->low_tokens = tokens;
        }

        return dsa_window_search(w);
    }

    if (!over || w->points[w->last].allowed <= w->cut) {
        return DSA_OK;
    }

    /* at points without further rounds a cut would change nothing */

    for (i = w->start; w->points[i].allowed <= w->cut; i++) { /* void */ }

    w->low = i;
    w->low_tokens = 0;
    w->high = w->last;
    w->high_tokens = tokens;
    w->tries = 0;

    return dsa_window_search(w);
}


static int
dsa_window_search(dsa_window_t *w)
{
    if (w->low == w->high) {
        w->searching = 0;
        return dsa_window_overflow(w, w->high);
    }

    w->searching = 1;
    w->point = dsa_window_guess(w);
    w->tries++;

    return DSA_AGAIN;
}


/* The next point to count, in [low, high - 1]. */

static uint32_t
dsa_window_guess(const dsa_window_t *w)
{
    double    want, bytes, tokens;
    uint32_t  i, low, high;
    uint64_t  from;

    low = w->low;
    high = w->high - 1;

    if (w->tries < DSA_WINDOW_GUESSES) {
        from = w->low_tokens != 0 ? dsa_window_bytes(w, w->low - 1) : 0;

        bytes = (double) (dsa_window_bytes(w, w->high) - from);
        tokens = (double) w->high_tokens - w->low_tokens;
        want = from + bytes * ((double) dsa_window_limit(w) - w->low_tokens)
                      / tokens;

        while (low < high) {
            i = low + (high - low) / 2;

            if ((double) dsa_window_bytes(w, i) > want) {
                high = i;

            } else {
                low = i + 1;
            }
        }

        return low;
    }

    return low + (high - low) / 2;
}


static uint64_t
dsa_window_bytes(const dsa_window_t *w, uint32_t point)
{
    return w->bytes[w->points[point].end]
           - (w->cut != 0 ? w->rounds[w->cut - 1].bytes : 0);
}


/* More rounds leave at this point. */

static int
dsa_window_overflow(dsa_window_t *w, uint32_t point)
{
    uint32_t  held;

    assert(w->points[point].allowed > w->cut);

    held = w->points[point].allowed - w->cut;

    if (w->strategy == DSA_WINDOW_DISCARD_75) {
        held = held - held / 4;
    }

    w->cut += held;
    w->start = point;
    w->overflow = point;
    w->point = w->last;

    return DSA_AGAIN;
}


int
dsa_window_resume(dsa_window_t *w, uint32_t point, uint32_t cut)
{
    if (point > w->last || cut == 0 || cut > w->points[point].allowed) {
        return DSA_ERROR;
    }

    w->cut = cut;
    w->start = point;
    w->overflow = point;
    w->point = w->last;
    w->searching = 0;

    return DSA_OK;
}


void
dsa_window_left(const dsa_window_t *w, uint32_t *messages, uint32_t *calls)
{
    uint32_t  i;

    *messages = 0;
    *calls = 0;

    for (i = 0; i < w->cut; i++) {
        *messages += w->rounds[i].end - w->rounds[i].first;
        *calls += w->chat->messages[w->rounds[i].first].n_calls;
    }
}


const char *
dsa_window_name(dsa_window_e strategy)
{
    assert(strategy != DSA_WINDOW_UNSET);

    return dsa_window_names[strategy];
}


int
dsa_window_find(dsa_str_t name, dsa_window_e *strategy)
{
    size_t  i;

    for (i = DSA_WINDOW_NONE;
         i < sizeof(dsa_window_names) / sizeof(dsa_window_names[0]); i++)
    {
        if (dsa_str_eqz(name, dsa_window_names[i])) {
            *strategy = (dsa_window_e) i;
            return DSA_OK;
        }
    }

    return DSA_ERROR;
}
