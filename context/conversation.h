
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CONVERSATION_H_INCLUDED_
#define _DSA_CONVERSATION_H_INCLUDED_


#include "base/json_write.h"
#include "context/responses.h"


/*
 * A stored conversation is a list of entries.  An entry is a message of a chat
 * completion, as dsa_message_dump() writes it, or an item of a response, which
 * has a type.  Each API can continue a conversation that the other one has
 * written: entries are read as messages for a prompt, and as items for a list.
 */

#define DSA_CONVERSATION_OWNER  32      /* hexadecimal digits of an id */
#define DSA_CONVERSATION_ADD    20      /* items in one request */


typedef struct {
    dsa_str_t           owner;          /* the digits of the conversation's
                                           id */
    const dsa_str_t    *entries;        /* JSON, oldest first */
    const int64_t      *numbers;        /* of the entries, which never change */
    uint32_t            n;
} dsa_conversation_t;


/*
 * An item of a list.  A message of a chat may be several: reasoning, a message,
 * and calls.  Their ids are made of the owner, the number of the entry, and a
 * hash of the id of the call, so that they never change either.
 */

typedef struct {
    dsa_json_t         *object;
    dsa_str_t           id;
    uint32_t            entry;          /* index in entries */
    dsa_json_t         *message;        /* NULL: the entry is the item */
    uint32_t            call;           /* which one of a message's */
} dsa_conversation_item_t;


/*
 * Puts the entries into the chat, behind instructions and in front of its other
 * messages.  DSA_ERROR: refusal is filled in; its status is 500 if an entry
 * cannot be read.
 */
int dsa_conversation_insert(dsa_chat_t *chat, dsa_arena_t *arena,
    const dsa_conversation_t *c, const dsa_chat_limits_t *limits,
    dsa_refusal_t *refusal);

/*
 * The messages of the entries, as an array of JSON objects.  DSA_ERROR: err is
 * set.
 */
int dsa_conversation_messages(dsa_json_writer_t *w, dsa_arena_t *arena,
    const dsa_conversation_t *c, dsa_err_t *err);

/*
 * The items of the entries, oldest first; all are in the arena.  DSA_ERROR: err
 * is set.
 */
int dsa_conversation_items(dsa_conversation_item_t **items, uint32_t *n,
    dsa_arena_t *arena, const dsa_conversation_t *c, dsa_err_t *err);

/*
 * Writes what is left of the item's entry without the item; nothing if the
 * whole entry goes.  It changes the tree of the entry, so it is called for one
 * item only.  DSA_ERROR: out of memory.
 */
int dsa_conversation_without(dsa_buf_t *out,
    const dsa_conversation_item_t *item);


/*
 * Reads items that are to be added, and writes them as dsa_responses_items()
 * does.  at: the name of the field.  DSA_ERROR: refusal is filled in.
 */
int dsa_conversation_read(dsa_buf_t *out, dsa_arena_t *arena,
    const dsa_json_t *items, const char *name,
    const dsa_responses_reader_t *reader,
    const char *(*make_id)(void *data, const char *prefix), void *data,
    dsa_refusal_t *refusal);

/*
 * Reads the member metadata of root and writes it as an object of JSON, {} if
 * there is none.  DSA_ERROR: refusal is filled in.
 */
int dsa_conversation_metadata(dsa_buf_t *out, const dsa_json_t *root,
    dsa_refusal_t *refusal);


#endif /* _DSA_CONVERSATION_H_INCLUDED_ */
