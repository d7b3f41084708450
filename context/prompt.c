
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "base/json_write.h"
#include "context/prompt.h"


/* A segment under construction: it ends where the next one begins. */

typedef struct {
    dsa_segment_kind_e   kind;
    size_t               start;
} dsa_prompt_segment_t;


static const dsa_str_t *dsa_prompt_control(const dsa_control_tokens_t *tokens,
    const char *text);
static int dsa_prompt_may_begin(char c);


void
dsa_prompt_init(dsa_prompt_writer_t *w, const dsa_control_tokens_t *tokens)
{
    memset(w, 0, sizeof(dsa_prompt_writer_t));

    w->tokens = tokens;
}


void
dsa_prompt_free(dsa_prompt_writer_t *w)
{
    dsa_buf_free(&w->text);
    dsa_buf_free(&w->segments);
}


void
dsa_prompt_template(dsa_prompt_writer_t *w, const char *text)
{
    size_t            n;
    const char       *p;
    const dsa_str_t  *name;

    for (p = text; *p != '\0'; p += n) {
        name = dsa_prompt_control(w->tokens, p);

        if (name != NULL) {
            dsa_prompt_segment(w, DSA_SEGMENT_CONTROL);
            dsa_buf_add(&w->text, name->data, name->len);
            n = name->len;
            continue;
        }

        n = 1;

        while (p[n] != '\0' && !dsa_prompt_may_begin(p[n])) {
            n++;
        }

        dsa_prompt_text(w, dsa_str(p, n));
    }
}


/* The control token of which the name is at the front of text, or NULL. */

static const dsa_str_t *
dsa_prompt_control(const dsa_control_tokens_t *tokens, const char *text)
{
    uint32_t          i;
    const dsa_str_t  *name;

    if (!dsa_prompt_may_begin(*text)) {
        return NULL;
    }

    for (i = 0; i < tokens->n; i++) {
        name = &tokens->elts[i].name;

        if (strncmp(text, name->data, name->len) == 0) {
            return name;
        }
    }

    return NULL;
}


/* Whether the name of a control token may begin with this byte. */

static int
dsa_prompt_may_begin(char c)
{
    return c == '<' || c == '[' || (c & 0x80) != 0;
}


void
dsa_prompt_text(dsa_prompt_writer_t *w, dsa_str_t text)
{
    if (text.len != 0) {
        dsa_prompt_segment(w, DSA_SEGMENT_TEXT);
        dsa_buf_add(&w->text, text.data, text.len);
    }
}


void
dsa_prompt_json(dsa_prompt_writer_t *w, const dsa_json_t *v)
{
    dsa_prompt_segment(w, DSA_SEGMENT_TEXT);

    if (dsa_json_dump(&w->text, v) != DSA_OK) {
        w->failed = 1;
    }
}


void
dsa_prompt_copy(dsa_prompt_writer_t *w, const dsa_segment_t *segment)
{
    dsa_prompt_segment(w, segment->kind);
    dsa_buf_add(&w->text, segment->text.data, segment->text.len);
}


void
dsa_prompt_segment(dsa_prompt_writer_t *w, dsa_segment_kind_e kind)
{
    dsa_prompt_segment_t   segment;
    dsa_prompt_segment_t  *segments;

    segments = (dsa_prompt_segment_t *) (void *) w->segments.data;

    if (kind == DSA_SEGMENT_TEXT && w->n != 0
        && segments[w->n - 1].kind == DSA_SEGMENT_TEXT)
    {
        return;
    }

    segment.kind = kind;
    segment.start = w->text.len;

    dsa_buf_add(&w->segments, &segment, sizeof(dsa_prompt_segment_t));

    if (!w->segments.failed) {
        w->n++;
    }
}


dsa_prompt_place_t
dsa_prompt_place(const dsa_prompt_writer_t *w)
{
    dsa_prompt_place_t  place;

    place.text = w->text.len;
    place.segments = w->segments.len;
    place.n = w->n;

    return place;
}


void
dsa_prompt_back(dsa_prompt_writer_t *w, dsa_prompt_place_t place)
{
    w->text.len = place.text;
    w->segments.len = place.segments;
    w->n = place.n;
}


int
dsa_prompt_finish(dsa_prompt_writer_t *w, dsa_prompt_t *prompt,
    dsa_arena_t *arena, dsa_err_t *err)
{
    char                        *text;
    size_t                       i, end;
    const dsa_prompt_segment_t  *segments;

    if (w->failed) {
        return dsa_error(err, "a number in tools, response_format or "
                         "arguments is out of range; expected one within the "
                         "range of a double");
    }

    if (w->text.failed || w->segments.failed || w->n > UINT32_MAX) {
        return dsa_error(err, "out of memory for the prompt");
    }

    text = dsa_arena_dup(arena, dsa_str(w->text.data, w->text.len));
    prompt->segments = dsa_arena_alloc(arena, w->n * sizeof(dsa_segment_t));

    if (text == NULL || prompt->segments == NULL) {
        return dsa_error(err, "the prompt exceeds the memory limit of a "
                         "request");
    }

    segments = (const dsa_prompt_segment_t *) (const void *) w->segments.data;

    for (i = 0; i < w->n; i++) {
        end = i + 1 < w->n ? segments[i + 1].start : w->text.len;

        prompt->segments[i].kind = segments[i].kind;
        prompt->segments[i].text = dsa_str(text + segments[i].start,
                                           end - segments[i].start);
    }

    prompt->n = w->n;
    prompt->bytes = w->text.len;

    return DSA_OK;
}
