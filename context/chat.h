
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CHAT_H_INCLUDED_
#define _DSA_CHAT_H_INCLUDED_


#include "base/json.h"


/*
 * A chat request as data.  Everything lives in the arena of the JSON tree it
 * was read from.
 */

typedef enum {
    DSA_ROLE_SYSTEM = 0,
    DSA_ROLE_USER,
    DSA_ROLE_DEVELOPER,
    DSA_ROLE_ASSISTANT,
    DSA_ROLE_TOOL
} dsa_role_e;


typedef struct {
    dsa_str_t           id;
    dsa_str_t           name;
    dsa_json_t         *arguments;      /* an object; "" reads as {} */
    dsa_str_t           raw;            /* arguments that are no object: as
                                           they came, arguments is NULL */
} dsa_tool_call_t;


typedef struct {
    dsa_role_e          role;
    dsa_str_t           content;        /* text parts joined; null is empty */
    dsa_str_t           reasoning;      /* assistant */
    dsa_str_t           tool_call_id;   /* tool */
    dsa_tool_call_t    *calls;          /* assistant */
    uint32_t            n_calls;
    dsa_json_t         *tools;          /* system, developer: an array */
    dsa_json_t         *response_format;
    unsigned            has_reasoning:1;
    unsigned            prefix:1;       /* assistant, last: to be continued */
} dsa_message_t;


typedef enum {
    DSA_TOOL_CHOICE_NONE = 0,
    DSA_TOOL_CHOICE_AUTO
} dsa_tool_choice_e;


typedef struct {
    dsa_str_t           model;
    dsa_str_t           conversation;   /* empty: none */
    dsa_message_t      *messages;
    uint32_t            n_messages;
    uint32_t            n_stored;       /* of them, in front: prepended */

    /* of the request; they replace those of a leading system message */
    dsa_json_t         *tools;          /* an array, not empty */
    dsa_json_t         *response_format;

    /*
     * Numbers as the client gave them, or their defaults.  In thinking mode
     * temperature, top_p and the penalties are the defaults whatever the
     * client gave: the published API ignores them there.
     */
    double              temperature;    /* NAN: the model's own */
    double              top_p;          /* NAN: the model's own */
    double              frequency_penalty;
    double              presence_penalty;
    uint64_t            seed;
    const char         *max_tokens_field;   /* the one that gave it, for
                                               the refusal */
    uint32_t            max_tokens;     /* 0: not given; UINT32_MAX: not in
                                           any model's range, to be refused
                                           by whoever has the context */
    uint32_t            top_logprobs;
    dsa_str_t          *stop;
    uint32_t            n_stop;

    dsa_tool_choice_e   tool_choice;
    unsigned            hosted:1;       /* of dsa_chat_limits_t */
    unsigned            thinking:1;     /* as asked, or the model's default:
                                           on for deepseek-reasoner */
    unsigned            thinking_given:1;
    unsigned            has_seed:1;
    unsigned            stream:1;
    unsigned            include_usage:1;
    unsigned            logprobs:1;
    unsigned            json_object:1;
    unsigned            ignore_eos:1;   /* an extension, for load tests */
} dsa_chat_t;


/* A refusal in the API's own terms: an HTTP status, text and field. */

typedef struct {
    uint32_t            status;         /* 400; 413: over the arena's
                                           bound; 503: no memory */
    char                message[400];   /* names the field and what would do */
    char                param[96];      /* JSON path, "messages[2].content" */
} dsa_refusal_t;


typedef struct {
    uint32_t            max_messages;   /* stored ones included */
    uint32_t            max_tools;      /* 128 */
    uint32_t            hosted;         /* 1: as the HTTP API; 0: as the
                                           published encoder, see below */
} dsa_chat_limits_t;


#define DSA_CHAT_STOP       16          /* stop strings in a request */
#define DSA_CHAT_STOP_LEN   1024        /* bytes of one */
#define DSA_CHAT_CALLS      1024        /* tool calls in one message */
#define DSA_CHAT_DEPTH      64          /* nesting of a call's arguments, */
#define DSA_CHAT_VALUES     262144      /* and JSON values in all of them:
                                           any beyond are not read as JSON */


/*
 * Reads a request body's tree.  hosted 0 (dsa encode) also takes tools and
 * response_format on messages, the developer role as published (hosted 1
 * reads it as system), calls and results without ids, strict tools, any
 * response_format and a missing model.  Unknown fields and nulls of optional
 * fields are ignored.  Fields of other servers that would change the answer
 * are refused.  DSA_ERROR with refusal filled in.
 */
int dsa_chat_read(dsa_chat_t *chat, dsa_arena_t *arena,
    const dsa_json_t *root, const dsa_chat_limits_t *limits,
    dsa_refusal_t *refusal);

/*
 * Reads messages alone (an array): a stored conversation, put in front of
 * chat's own messages.  Refusals name them "conversation[i]".
 */
int dsa_chat_prepend(dsa_chat_t *chat, dsa_arena_t *arena,
    const dsa_json_t *messages, const dsa_chat_limits_t *limits,
    dsa_refusal_t *refusal);

/*
 * The whole list, after prepending: someone has spoken last to whom the model
 * can answer, no tool call is answered twice (tool messages are brought into
 * the order of their calls), every tool message has its call, JSON mode is
 * asked for in words too.  Calls may lack results only when a user, system or
 * developer message follows, because the conversation has moved on then.
 * hosted 0: the last word may be anyone's, and messages without ids are
 * paired by their places.
 */
int dsa_chat_check(dsa_chat_t *chat, dsa_refusal_t *refusal);

/*
 * One message as the JSON the API shows: role, content, reasoning_content,
 * tool_calls, tool_call_id; what a conversation stores and GET returns.
 * DSA_ERROR: no memory (b->failed).
 */
int dsa_message_dump(dsa_buf_t *b, const dsa_message_t *m);


#endif /* _DSA_CHAT_H_INCLUDED_ */
