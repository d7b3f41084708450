
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ANTHROPIC_DRAFT_H_INCLUDED_
#define _DSA_ANTHROPIC_DRAFT_H_INCLUDED_


#include "context/anthropic_read.h"


/*
 * Inside context/: messages under construction.  Their texts are lists of
 * pieces, which are joined once, at the end, so that time is linear in the
 * length of the body.
 */

typedef struct dsa_piece_s  dsa_piece_t;

struct dsa_piece_s {
    dsa_str_t           text;
    dsa_piece_t        *next;
};


typedef struct {
    dsa_piece_t        *first;
    dsa_piece_t       **last;           /* NULL: no piece */
    size_t              len;            /* of all pieces */
} dsa_pieces_t;


typedef struct {
    dsa_message_t       message;        /* content and reasoning are empty */
    dsa_pieces_t        content;
    dsa_pieces_t        notes;          /* tool: texts behind the content */
    dsa_pieces_t        reasoning;      /* assistant */
    uint32_t            source;         /* index in the body's messages */
    unsigned            answered:1;     /* tool: it has its result */
} dsa_draft_t;


typedef struct {
    dsa_reader_t       *r;
    const dsa_at_t     *at;             /* of messages */
    dsa_draft_t        *drafts;
    uint32_t            n;
    uint32_t            size;
    uint32_t            call;           /* index of the assistant message of
                                           which the results follow */
    unsigned            open:1;         /* call is set; all drafts after it
                                           are its results */
} dsa_drafts_t;


/* Room for size messages. */
int dsa_drafts_init(dsa_drafts_t *d, dsa_reader_t *r, const dsa_at_t *at,
    uint32_t size);

/* The last message, or NULL. */
dsa_draft_t *dsa_drafts_last(dsa_drafts_t *d);

/* Appends an empty message; NULL with a refusal: there are too many. */
dsa_draft_t *dsa_drafts_add(dsa_drafts_t *d, dsa_role_e role,
    uint32_t source);

/*
 * A message that is not of the assistant begins.  If the last message has
 * calls, a tool message without a result is appended for each of them.
 */
int dsa_drafts_answer(dsa_drafts_t *d);

/* The tool message for the result of a call; NULL with a refusal. */
dsa_draft_t *dsa_drafts_result(dsa_drafts_t *d, const dsa_at_t *at,
    dsa_str_t id);

/*
 * Ends the results of the open calls.  DSA_ERROR: a call has none, or the last
 * message has calls.
 */
int dsa_drafts_close(dsa_drafts_t *d);

/* Appends text; apart: behind a blank line, if it is not the first. */
int dsa_drafts_text(dsa_drafts_t *d, dsa_pieces_t *pieces, dsa_str_t text,
    int apart);

/* Joins the texts and sets the messages of the chat. */
int dsa_drafts_finish(dsa_drafts_t *d);


#endif /* _DSA_ANTHROPIC_DRAFT_H_INCLUDED_ */
