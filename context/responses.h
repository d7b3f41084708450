
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_RESPONSES_H_INCLUDED_
#define _DSA_RESPONSES_H_INCLUDED_


#include "context/chat.h"


/*
 * Requests of OpenAI's Responses API as chats.  A request has items in place of
 * messages: a message, the reasoning of an answer, the call of a function, the
 * output of a function.  Reasoning, a message of the assistant and calls that
 * follow one another become one message of the chat.
 */


/*
 * Decrypts the encrypted_content of a reasoning or compaction item.  *text is
 * in the arena.  DSA_OK; DSA_AGAIN: it was not encrypted by this server for
 * this tenant; DSA_ERROR: out of memory.
 */
typedef int (*dsa_responses_open_pt)(void *data, dsa_arena_t *arena,
    dsa_str_t sealed, dsa_str_t *text);


typedef struct {
    dsa_chat_limits_t       limits;
    dsa_responses_open_pt   open;           /* NULL: encrypted_content is
                                               ignored */
    void                   *data;           /* of open */
    unsigned                compact:1;      /* the request is for a compaction
                                               only */
} dsa_responses_reader_t;


#define DSA_RESPONSES_ITEM_ID  64       /* bytes of an item's id */


typedef struct {
    dsa_str_t               conversation;   /* its id; empty: none */
    dsa_str_t               previous;       /* previous_response_id; empty:
                                               none */
    const dsa_json_t       *input;          /* a string or an array */
    uint32_t                compact_threshold;  /* as in dsa_chat_t */
    uint32_t                top_logprobs;   /* alternatives beside a logprob */
    unsigned                logprobs:1;     /* include has
                                               message.output_text.logprobs */
    unsigned                store:1;        /* true by default */
    unsigned                store_given:1;  /* store is in the request */
    unsigned                background:1;   /* with store only */
    unsigned                encrypted:1;    /* include has
                                               reasoning.encrypted_content */
    unsigned                one_call:1;     /* parallel_tool_calls is false */
    unsigned                instructions:1; /* they are the first message */
} dsa_responses_t;


/* The kinds of values that include may have. */

typedef enum {
    DSA_RESPONSES_INCLUDE_UNKNOWN = 0,
    DSA_RESPONSES_INCLUDE_NOTHING,          /* parts that no answer has */
    DSA_RESPONSES_INCLUDE_ENCRYPTED,        /* reasoning, encrypted as well */
    DSA_RESPONSES_INCLUDE_LOGPROBS          /* of the tokens of messages */
} dsa_responses_include_e;

dsa_responses_include_e dsa_responses_included(dsa_str_t name);


/*
 * Reads the tree of a request body; chat and out refer to it.  The chat has
 * instructions as its first message.  If the request is for a compaction, by
 * its last item or by the reader, the last message is the question for it.
 * DSA_ERROR: refusal is filled in.
 */
int dsa_responses_read(dsa_responses_t *out, dsa_chat_t *chat,
    dsa_arena_t *arena, const dsa_json_t *root,
    const dsa_responses_reader_t *reader, dsa_refusal_t *refusal);

/*
 * Inserts stored items into the chat, behind instructions and in front of its
 * other messages.  lists: JSON arrays of items, oldest first.  DSA_ERROR:
 * refusal is filled in; its status is 500 if a list cannot be read.  Stored
 * reasoning has its content, so that a change of the key does not matter.
 */
int dsa_responses_insert(dsa_chat_t *chat, dsa_arena_t *arena,
    const dsa_str_t *lists, uint32_t n, const dsa_chat_limits_t *limits,
    dsa_refusal_t *refusal);

/*
 * Writes the items of input, a string or an array that was read before, as they
 * are stored and listed: the JSON of each item, followed by a NUL.  Each has an
 * id: its own one, or one of make_id(data, prefix), whose result lives until
 * the next call.  Encrypted reasoning is written decrypted, and members that
 * are unknown are left out.  DSA_ERROR: out of memory.
 */
int dsa_responses_items(dsa_buf_t *b, dsa_arena_t *arena,
    const dsa_json_t *input, const dsa_responses_reader_t *reader,
    const char *(*make_id)(void *data, const char *prefix), void *data);

/*
 * Writes a message of the user or of the system in the same way.  DSA_ERROR:
 * out of memory.
 */
int dsa_responses_message(dsa_buf_t *b, const dsa_message_t *m,
    const char *id);

/* Writes them as a JSON array. */
void dsa_responses_array(dsa_buf_t *b, const dsa_buf_t *items);

/*
 * Writes the names of the custom tools of a request that was read before, as
 * the model reads them, each followed by a NUL.  DSA_ERROR: out of memory.
 */
int dsa_responses_custom_names(dsa_buf_t *b, const dsa_json_t *root);

/* 1 if name is one of them. */
int dsa_responses_listed(const dsa_buf_t *names, dsa_str_t name);

/*
 * Writes the members of a response object that repeat the request, each with a
 * comma in front.  DSA_ERROR: out of memory.
 */
int dsa_responses_echo(dsa_buf_t *b, const dsa_json_t *root);


#endif /* _DSA_RESPONSES_H_INCLUDED_ */
