
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PROMPT_H_INCLUDED_
#define _DSA_PROMPT_H_INCLUDED_


#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "context/control_tokens.h"


/*
 * A prompt as segments: text, and control tokens by name.  Text from outside is
 * in segments of text only, so that it never becomes a control token, even if
 * it spells one.
 */

typedef enum {
    DSA_SEGMENT_TEXT = 1,           /* equal to dsa_link_kind_e */
    DSA_SEGMENT_CONTROL
} dsa_segment_kind_e;


typedef struct {
    dsa_segment_kind_e  kind;
    dsa_str_t           text;
} dsa_segment_t;


typedef struct {
    dsa_segment_t      *segments;       /* neighboring text segments are
                                           joined */
    uint32_t            n;
    size_t              bytes;          /* of all texts */
} dsa_prompt_t;


/*
 * Inside context/: a prompt under construction.  Its buffers are private.  An
 * owner calls init, adds text, and calls finish and free.
 */

typedef struct {
    const dsa_control_tokens_t  *tokens;    /* of the family */
    dsa_buf_t            text;          /* of all segments */
    dsa_buf_t            segments;
    size_t               n;             /* segments */
    int                  failed;        /* there was a number that cannot be
                                           written */
} dsa_prompt_writer_t;


/* A place to which the writer can be set back. */

typedef struct {
    size_t               text;
    size_t               segments;
    size_t               n;
} dsa_prompt_place_t;


void dsa_prompt_init(dsa_prompt_writer_t *w,
    const dsa_control_tokens_t *tokens);
void dsa_prompt_free(dsa_prompt_writer_t *w);

/*
 * Adds text of the format itself: names of control tokens in it are the
 * tokens.
 */
void dsa_prompt_template(dsa_prompt_writer_t *w, const char *text);

/* Adds text from outside, which stays text. */
void dsa_prompt_text(dsa_prompt_writer_t *w, dsa_str_t text);

/* Adds a JSON value, as text from outside. */
void dsa_prompt_json(dsa_prompt_writer_t *w, const dsa_json_t *v);

/*
 * Begins a segment, unless the last one is a text and this is one, too; what is
 * then added to w->text belongs to it.
 */
void dsa_prompt_segment(dsa_prompt_writer_t *w, dsa_segment_kind_e kind);

/* Adds a segment of another prompt, or of a sampled answer. */
void dsa_prompt_copy(dsa_prompt_writer_t *w, const dsa_segment_t *segment);

/* The end of what has been added so far, and the way back to it. */
dsa_prompt_place_t dsa_prompt_place(const dsa_prompt_writer_t *w);
void dsa_prompt_back(dsa_prompt_writer_t *w, dsa_prompt_place_t place);

/*
 * Makes the prompt; it and its texts are allocated from arena.  DSA_ERROR with
 * err: a number exceeds the range of a double, or there is no memory.
 */
int dsa_prompt_finish(dsa_prompt_writer_t *w, dsa_prompt_t *prompt,
    dsa_arena_t *arena, dsa_err_t *err);


#endif /* _DSA_PROMPT_H_INCLUDED_ */
