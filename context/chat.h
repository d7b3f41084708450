
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CHAT_H_INCLUDED_
#define _DSA_CHAT_H_INCLUDED_


#include "base/json.h"
#include "base/sampling.h"


/*
 * A chat request as data.  All of it is allocated from the arena of the JSON
 * tree that it was read from.
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
    dsa_str_t           raw;            /* arguments that are not an object,
                                           unchanged; arguments is NULL */
    dsa_str_t           text;           /* arguments as the client wrote them;
                                           empty: not known */
} dsa_tool_call_t;


/*
 * A message that is a summary of those in front of it (compact.h): which of
 * them leave.
 */

typedef enum {
    DSA_COMPACT_NONE = 0,               /* it is not a summary */
    DSA_COMPACT_USER,                   /* those of the user stay */
    DSA_COMPACT_ALL
} dsa_compact_e;


typedef struct {
    dsa_role_e          role;
    dsa_compact_e       compact;
    dsa_str_t           content;        /* text parts are joined; null reads
                                           as empty */
    dsa_str_t           reasoning;      /* assistant */
    dsa_str_t           tool_call_id;   /* tool */
    dsa_tool_call_t    *calls;          /* assistant */
    uint32_t            n_calls;
    dsa_json_t         *tools;          /* system, developer: an array */
    dsa_json_t         *response_format;
    const struct dsa_sampled_s  *sampled;   /* assistant: the text that the
                                           model sampled, which the encoder
                                           writes; NULL: not known */
    unsigned            has_reasoning:1;
    unsigned            cleared:1;      /* assistant: reasoning before the last
                                           question leaves the prompt, even if
                                           the family keeps it (clear.h) */
    unsigned            prefix:1;       /* last, assistant: the model
                                           continues it */
    size_t              notes;          /* tool: bytes at the end of the content
                                           that are not of the tool, but of the
                                           client and the system */
    uint32_t            place;          /* tool: its index before
                                           dsa_chat_check() put the results
                                           into the order of their calls */
} dsa_message_t;


typedef enum {
    DSA_TOOL_CHOICE_NONE = 0,
    DSA_TOOL_CHOICE_AUTO,
    DSA_TOOL_CHOICE_REQUIRED,           /* at least one call, of any tool */
    DSA_TOOL_CHOICE_NAMED               /* one call, of the tool named */
} dsa_tool_choice_e;


/*
 * How the API of the request names the structure of the answer, and the parts
 * of a tool: chat completions have "response_format",
 * "response_format.json_schema.schema", ".function" and "parameters", so that
 * the schema of a tool is "tools[0].function.parameters".
 */

typedef struct {
    const char         *format;
    const char         *schema;
    const char         *function;
    const char         *parameters;
} dsa_format_names_t;


typedef struct dsa_completion_s  dsa_completion_t;      /* completion.h */


/* How much a model is to think; a family has some of these, or none. */

typedef enum {
    DSA_EFFORT_UNSET = 0,
    DSA_EFFORT_NONE,
    DSA_EFFORT_MINIMAL,
    DSA_EFFORT_LOW,
    DSA_EFFORT_MEDIUM,
    DSA_EFFORT_HIGH,
    DSA_EFFORT_XHIGH,
    DSA_EFFORT_MAX
} dsa_effort_e;


/* What leaves the prompt of a long history, see window.h. */

typedef enum {
    DSA_WINDOW_UNSET = 0,               /* the server's default */
    DSA_WINDOW_NONE,
    DSA_WINDOW_DISCARD_75,
    DSA_WINDOW_DISCARD_ALL,
    DSA_WINDOW_SUMMARY
} dsa_window_e;


/* What leaves the prompt because the request has it so, see clear.h. */

typedef enum {
    DSA_EDIT_TOOL_USES = 0,
    DSA_EDIT_THINKING
} dsa_edit_e;


typedef struct {
    dsa_edit_e          type;
    uint32_t            keep;           /* the most recent tool uses, or turns
                                           with reasoning, stay; DSA_EDIT_ALL:
                                           all of them */

    /* tool uses */
    uint32_t            trigger;        /* tokens of the prompt above which
                                           results leave, or tool uses */
    uint32_t            at_least;       /* tokens that leave at once */
    dsa_str_t          *excluded;       /* names of tools whose uses stay */
    uint32_t            n_excluded;
    dsa_str_t          *inputs;         /* names of tools whose arguments leave
                                           as well */
    uint32_t            n_inputs;
    unsigned            all_inputs:1;   /* those of all tools leave */
    unsigned            by_uses:1;      /* trigger counts tool uses */
} dsa_edit_t;


typedef struct {
    dsa_str_t           model;
    dsa_str_t           conversation;   /* empty: none */
    dsa_completion_t   *completion;     /* NULL: a chat; otherwise there are no
                                           messages */
    dsa_message_t      *messages;
    uint32_t            n_messages;
    uint32_t            n_stored;       /* how many of them, at the front, were
                                           prepended */

    const uint32_t     *items;          /* Responses: the item of input with
                                           which each message that is not
                                           stored begins; NULL: chat */

    /* the request's own; they replace those of a leading system message */
    dsa_json_t         *tools;          /* an array with at least one tool */
    dsa_json_t         *response_format;

    const struct dsa_types_s  *types;   /* of the arguments of the tools, see
                                           types.h; NULL: not known */

    /*
     * Parameters of the request, or their defaults; NAN in temperature and
     * top_p: the model's default.  In thinking mode without rollout,
     * temperature, top_p and the penalties have their defaults in any case,
     * because the published API ignores them there.  top_p may be 0, because a
     * small double can become 0 as a float.
     */
    dsa_sampling_t      sampling;
    dsa_sampling_t      asked;          /* temperature, top_p and the penalties
                                           as the request has them, for
                                           families that heed them in thinking
                                           mode, too */
    uint32_t            max_tokens;     /* 0: not in the request; can exceed
                                           any model's context, which limits it
                                           further */
    uint32_t            thinking_budget;    /* tokens of reasoning, at most;
                                               0: no limit */
    uint32_t            others;         /* choices besides the first one */
    dsa_str_t          *stop;
    uint32_t            n_stop;

    dsa_bias_t         *bias;           /* each id once */
    uint32_t            n_bias;

    dsa_effort_e        effort;
    dsa_window_e        window;
    dsa_tool_choice_e   tool_choice;
    uint32_t            tool;           /* DSA_TOOL_CHOICE_NAMED: which one */
    dsa_json_t         *schema;         /* of a json_schema */
    const dsa_format_names_t  *format_names;    /* NULL: those of chats */
    uint32_t            compact_threshold;  /* tokens of the prompt above which
                                               the conversation is compacted;
                                               0: it is not;
                                               DSA_COMPACT_DEFAULT: the
                                               caller's choice */
    dsa_str_t           compact_instructions;   /* in place of the server's
                                               question; empty: none */
    uint32_t            hosted_tools;   /* tools that a server would run, which
                                           are not among the tools */
    dsa_edit_t         *edits;          /* in the order of the request */
    uint32_t            n_edits;
    uint32_t            n_first;        /* how many of them, at the front, come
                                           before the compaction */

    unsigned            hosted:1;       /* of dsa_chat_limits_t */
    unsigned            managed:1;      /* the request has
                                           context_management */
    unsigned            compact_pauses:1;   /* a compaction is the whole
                                               answer */
    unsigned            question:1;     /* the last message is the question
                                           for a summary, see compact.h */
    unsigned            thinking:1;     /* as the request has it, or the
                                           model's default: on for
                                           deepseek-reasoner */
    unsigned            thinking_given:1;   /* by the request */
    unsigned            effort_decides:1;   /* whether the model thinks: no
                                           other field of the request does */
    unsigned            clear:1;        /* reasoning before the last question
                                           leaves the prompt, */
    unsigned            clear_given:1;  /* by the request */
    unsigned            keeps:1;        /* dsa_family_apply(): such reasoning
                                           stays in the prompt */
    unsigned            bare_answers:1; /* dsa_family_apply(): answers behind
                                           the last question may have no
                                           reasoning */
    unsigned            has_seed:1;     /* sampling.seed is of the request */
    unsigned            stream:1;
    unsigned            include_usage:1;
    unsigned            include_cost:1;     /* in usage */
    unsigned            json_object:1;
    unsigned            json_strict:1;  /* schema is enforced, or refused */
    unsigned            one_call:1;     /* parallel_tool_calls is false */
    unsigned            made_tools:1;   /* the reader of the request made the
                                           tools: beside its function, each
                                           has "place", its path in the
                                           request, and perhaps "input", the
                                           grammar of a text */
    unsigned            ignore_eos:1;   /* an extension, for load tests */
    unsigned            rollout:1;      /* an extension, for trainers: how
                                           tokens were drawn, */
    unsigned            rollout_mask:1; /* from which ids, */
    unsigned            rollout_experts:1;  /* by which experts; */
    unsigned            rollout_prompt:1;   /* and the prompt's */
} dsa_chat_t;


/* Why a request is refused, in the terms of the API. */

typedef struct {
    uint32_t            status;         /* HTTP: 400; 413: the arena's limit
                                           is exceeded; 503: out of memory */
    char                message[640];   /* what is wrong, and what would be
                                           accepted */
    char                param[320];     /* the path of the field, for example
                                           "messages[2].content" */
} dsa_refusal_t;


typedef struct {
    uint32_t            max_messages;   /* including stored ones */
    uint32_t            max_tools;      /* 128 */
    uint32_t            hosted;         /* 1: the rules of the HTTP API; 0:
                                           those of the published encoder,
                                           see below */
} dsa_chat_limits_t;


#define DSA_COMPACT_DEFAULT UINT32_MAX
#define DSA_EDIT_ALL        UINT32_MAX

#define DSA_CHAT_CHOICES    8           /* answers to one request */
#define DSA_CHAT_STOP       16          /* stop strings in a request */
#define DSA_CHAT_STOP_LEN   1024        /* bytes of one */
#define DSA_CHAT_CALLS      1024        /* tool calls in one message */
#define DSA_CHAT_EDITS      8           /* edits of the context */
#define DSA_CHAT_NAMES      128         /* names of tools in an edit */

/*
 * Arguments of tool calls that are nested more deeply, or that have more JSON
 * values than these in all calls together, are not read as JSON.
 */
#define DSA_CHAT_DEPTH      64
#define DSA_CHAT_VALUES     262144


/*
 * Reads the tree of a request body.  Unknown fields, and optional fields that
 * are null, are ignored.  Fields of other servers that would change the answer
 * are refused.  DSA_ERROR: refusal is filled in.
 *
 * hosted 0 (dsa encode) also accepts tools and response_format on messages, the
 * developer role as published (hosted 1 reads it as system), calls and results
 * without ids, strict tools, any response_format, and a missing model.
 */
int dsa_chat_read(dsa_chat_t *chat, dsa_arena_t *arena,
    const dsa_json_t *root, const dsa_chat_limits_t *limits,
    dsa_refusal_t *refusal);

/*
 * Reads an array of messages, for example a stored conversation, and puts them
 * in front of the messages of the chat.  Errors name them "conversation[i]".
 */
int dsa_chat_prepend(dsa_chat_t *chat, dsa_arena_t *arena,
    const dsa_json_t *messages, const dsa_chat_limits_t *limits,
    dsa_refusal_t *refusal);

/*
 * Checks the whole list, after prepending, and puts tool messages into the
 * order of their calls:
 *
 * - the last message is one that the model can answer or continue;
 * - every tool message answers a call, and no call is answered twice;
 * - every call has its result, unless a user, system or developer message
 *   follows, because then the conversation has moved on;
 * - a prompt for JSON mode mentions JSON.
 *
 * hosted 0: the last message may have any role, calls and results without ids
 * are paired in their order, and in thinking mode answers without calls must
 * have reasoning behind the last question.
 */
int dsa_chat_check(dsa_chat_t *chat, dsa_refusal_t *refusal);

/*
 * 1: the answer begins with reasoning, because the prompt ends where reasoning
 * begins, or in the beginning of it.  The list of messages must be complete.
 */
int dsa_chat_reasons(const dsa_chat_t *chat);

/*
 * Appends a message as one JSON object without spaces between its parts: role,
 * content, reasoning_content, tool_calls, tool_call_id.  A conversation is
 * stored and returned in this form.  DSA_ERROR: out of memory (b->failed), or
 * a number in the arguments of a tool call exceeds the range of a double.
 */
int dsa_message_dump(dsa_buf_t *b, const dsa_message_t *m);


#endif /* _DSA_CHAT_H_INCLUDED_ */
