
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_READ_H_INCLUDED_
#define _DSA_READ_H_INCLUDED_


#include "context/chat.h"


/*
 * Inside context/: reads typed values from a JSON tree that came from outside,
 * and reports a wrong one as a refusal.  Where clients match on the text of an
 * error, it is that of the published API.
 */


/*
 * The path of a value in the tree: its name or index, and the path of what
 * contains it.  Paths live on the stack of the functions that descend.
 */

typedef struct dsa_at_s  dsa_at_t;

struct dsa_at_s {
    const dsa_at_t     *up;
    const char         *name;           /* NULL: an element */
    uint32_t            index;
};


typedef struct {
    dsa_chat_t         *chat;
    dsa_arena_t        *arena;
    dsa_refusal_t      *refusal;
    dsa_chat_limits_t   limits;
    uint32_t            values;         /* how many of DSA_CHAT_VALUES are
                                           left */
    unsigned            namespaces:1;   /* the name of a tool may have the form
                                           NAMESPACE.NAME */
} dsa_reader_t;


/* These fill in the refusal and return DSA_ERROR. */

int dsa_refuse(dsa_refusal_t *refusal, const dsa_at_t *at, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));

/* The message begins with the path. */
int dsa_refuse_at(dsa_refusal_t *refusal, const dsa_at_t *at,
    const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* v has the wrong type; NULL: it is missing. */
int dsa_refuse_type(dsa_refusal_t *refusal, const dsa_at_t *at,
    const dsa_json_t *v, const char *expected);

/* v is a string, but not one of those that are accepted. */
int dsa_refuse_variant(dsa_refusal_t *refusal, const dsa_at_t *at,
    const dsa_json_t *v, const char *expected);

/* Sets param to the path of a field. */
void dsa_refusal_path(dsa_refusal_t *refusal, const dsa_at_t *at);

/* How many bytes of s an error shows: whole characters, without NUL. */
int dsa_read_shown(dsa_str_t s);

int dsa_refuse_memory(dsa_refusal_t *refusal, const dsa_arena_t *arena);

/*
 * Replaces the names that chat completions has for fields, names[i][0], by
 * those of another API, names[i][1], in a refusal.
 */
void dsa_refusal_rename(dsa_refusal_t *refusal, const char *const (*names)[2],
    size_t n);


/*
 * A member of obj that may be absent or null.  Returns 1 and sets *out; 0 if
 * there is none, and leaves *out; or DSA_ERROR.  up is the path of obj.
 */

int dsa_read_any(const dsa_json_t *obj, const char *name, dsa_json_t **out);
int dsa_read_bool(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, const char *name, int *out);
int dsa_read_string(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, const char *name, dsa_str_t *out);

/* range is the text of min and max for the error, for example "[0, 2]". */
int dsa_read_number(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, const char *name, double min, double max,
    const char *range, double *out);

/*
 * Reads an integer.  3.0 counts as one, because some clients write all numbers
 * this way.  DSA_ERROR: v is not an integer.  DSA_AGAIN: it exceeds int64_t
 * or, if it has a fraction or an exponent, the integers that a double
 * represents exactly.
 */
int dsa_read_whole(const dsa_json_t *v, int64_t *n);

/*
 * Reads a limit of tokens, 1 or more; UINT32_MAX stands for larger ones too.
 * DSA_ERROR with a refusal.
 */
int dsa_read_tokens(dsa_reader_t *r, const dsa_at_t *at, const dsa_json_t *v,
    uint32_t *n);

int dsa_read_integer(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, const char *name, int64_t min, int64_t max,
    const char *range, int64_t *out);

/* The first number in v that exceeds the range of a double, or NULL. */
const dsa_json_t *dsa_read_infinite(const dsa_json_t *v);

/* DSA_OK if no number in v exceeds the range of a double. */
int dsa_read_finite(dsa_reader_t *r, const dsa_at_t *at,
    const dsa_json_t *v);

/* 1 if name matches ^[a-zA-Z0-9_-]{1,most}$, as a tool's name must. */
int dsa_read_is_name(dsa_str_t name, size_t most);


/*
 * fields.c: rejects fields that would change the answer.  Those that a text
 * completion has are left to it.
 */

int dsa_read_unsupported(dsa_reader_t *r, const dsa_json_t *root);

/* A field that is accepted with values that change nothing, and with null. */

#define DSA_FIELD_VALUES  3

typedef struct {
    const char   *name;
    const char   *values[DSA_FIELD_VALUES];     /* as dsa_json_dump() has it */
    const char   *instead;
} dsa_field_t;

int dsa_read_neutral(dsa_reader_t *r, const dsa_json_t *root,
    const dsa_field_t *field, size_t n);


/* chat.c: a whole chat, as dsa_chat_read(); r->chat need not be zeroed. */

int dsa_read_chat(dsa_reader_t *r, const dsa_json_t *root);


/* chat.c: model; stream, stream_options and ignore_eos. */

int dsa_read_model(dsa_reader_t *r, const dsa_json_t *root);
int dsa_read_stream(dsa_reader_t *r, const dsa_json_t *root);


/*
 * thinking.c, sampling.c, bias.c and window_field.c: their fields of the
 * request.  The last one is "context_management", an extension of this server.
 * The common sampling is temperature and top_p, which each API has; the
 * unsupported one is fields of other servers, as in fields.c.
 */

int dsa_read_thinking(dsa_reader_t *r, const dsa_json_t *root);
int dsa_read_sampling(dsa_reader_t *r, const dsa_json_t *root);
int dsa_read_common_sampling(dsa_reader_t *r, const dsa_json_t *root);
int dsa_read_unsupported_sampling(dsa_reader_t *r, const dsa_json_t *root);
int dsa_read_bias(dsa_reader_t *r, const dsa_json_t *root);
int dsa_read_window(dsa_reader_t *r, const dsa_json_t *root);


/* rollout.c: "rollout", another extension of this server; before sampling. */

int dsa_read_rollout(dsa_reader_t *r, const dsa_json_t *root);


/* format.c: the structure of the answer; tools are read before. */

int dsa_read_format(dsa_reader_t *r, const dsa_json_t *root);
int dsa_read_tool_choice(dsa_reader_t *r, const dsa_json_t *root);


/* Of chats: logprobs is a boolean beside top_logprobs. */

int dsa_read_logprobs(dsa_reader_t *r, const dsa_json_t *root);


/* message.c: an array of messages, whose path is at. */

int dsa_read_messages(dsa_reader_t *r, const dsa_at_t *at,
    const dsa_json_t *v, dsa_message_t **messages, uint32_t *n);

/* The member "arguments" of obj, whose path is up: a string or an object. */

int dsa_message_arguments(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, dsa_tool_call_t *call);

/* An array of tools, or null.  null and [] leave *out unchanged. */

int dsa_read_tools(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *obj, dsa_json_t **out);

/* Checks one of them, whose path is at. */

int dsa_read_tool(dsa_reader_t *r, const dsa_at_t *at, const dsa_json_t *v);


#endif /* _DSA_READ_H_INCLUDED_ */
