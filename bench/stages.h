
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_STAGES_H_INCLUDED_
#define _DSA_BENCH_STAGES_H_INCLUDED_


#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context/conversation.h"
#include "context/family.h"
#include "context/format.h"
#include "context/retain.h"
#include "context/window.h"


/* What the stages of a request have in common: inputs, and tables of stages. */


#define BODY     (7900 * 1000)          /* bytes of a body */
#define DEPTH    128

/* the beginning of a chat with one text, and with a list of messages */

#define ONE      "{\"model\":\"m\",\"messages\":[{"                       \
                 "\"role\":\"user\",\"content\":\""
#define MANY     "{\"model\":\"m\",\"messages\":["


typedef struct {
    dsa_buf_t             text;
    dsa_arena_t          *arena;        /* of what is made once */
    dsa_arena_t          *work;         /* of a run */
    dsa_json_t           *root;
    dsa_chat_t            chat;
    dsa_prompt_t          prompt;
    dsa_window_t          window;
    dsa_conversation_t    conversation;
    dsa_str_t            *lists;
    uint32_t              n_lists;
    dsa_sampled_t        *sampled;
    dsa_message_t         message;
} stage_input_t;


typedef struct {
    const char           *name;
    void                (*make)(stage_input_t *in);
    void                (*run)(stage_input_t *in);
} stage_t;


/* Each table ends with a stage that has no name. */
extern const stage_t  stages_read[];        /* a body to a chat */
extern const stage_t  stages_prompt[];      /* a chat to a prompt */
extern const stage_t  stages_stored[];      /* what Redis returns */

extern const dsa_family_t       *stage_family;
extern const dsa_chat_limits_t   stage_limits;


/* Ends the program unless ok; what: that failed. */
void stage_must(int ok, const char *what);

/*
 * Fills the text with a head, a unit as often as it fits into size bytes but at
 * most max times, and a tail.  A comma behind the last unit is removed.
 */
void stage_fill(stage_input_t *in, const char *head, const char *unit,
    const char *tail, size_t size, size_t max);

/* An arena with room for what is read from the text. */
dsa_arena_t *stage_arena(const stage_input_t *in);

/* Parses the text to in->root; reads in->chat of it. */
void stage_parse(stage_input_t *in);
void stage_read_chat(stage_input_t *in);

/* A chat of calls with arguments that JSON readers return as text; read. */
void stage_make_calls(stage_input_t *in);
void stage_make_check(stage_input_t *in);

/* A chat with one long text, and one with tools. */
void stage_make_plain(stage_input_t *in);
void stage_make_tools(stage_input_t *in);


#endif /* _DSA_BENCH_STAGES_H_INCLUDED_ */
