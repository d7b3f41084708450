
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_RESPONSES_H_INCLUDED_
#define _NGX_HTTP_DSA_RESPONSES_H_INCLUDED_


#include "context/compact.h"
#include "context/responses.h"
#include "context/tool_input.h"

#include "ngx_module/core/ngx_http_dsa_item_id.h"

#include "ngx_http_dsa_api.h"


/* POST .../responses */
extern const ngx_http_dsa_api_t  ngx_http_dsa_responses;

/* POST .../responses/compact */
extern const ngx_http_dsa_api_t  ngx_http_dsa_responses_compact;

/* POST .../responses/input_tokens */
extern const ngx_http_dsa_api_t  ngx_http_dsa_responses_count;


/*
 * Private to the files of this API: the state of an answer, a list of items.
 */

typedef struct {
    dsa_delta_e               kind;         /* DSA_DELTA_ARGUMENTS: a call */
    char                      id[NGX_HTTP_DSA_ITEM_ID + 1];
    char                      call_id[NGX_HTTP_DSA_CALL_ID_LEN + 1];
    dsa_buf_t                 space;        /* namespace of a call, escaped, or
                                               empty */
    dsa_buf_t                 name;         /* of a call, escaped */
    dsa_buf_t                 text;         /* escaped */
    dsa_buf_t                 sealed;       /* encrypted_content, or empty */
    dsa_buf_t                 logprobs;     /* of a message: for each token
                                               1 + n_top dsa_link_logprob_t */
    size_t                    sent;         /* bytes of them that deltas have */
    dsa_tool_input_t          input;        /* of the call of a custom tool */
    unsigned                  custom:1;     /* it is one */
    dsa_compact_e             compact;      /* of a compaction item */
} ngx_http_dsa_responses_item_t;


/* The position of a text, as offsets in its buffer. */

typedef struct {
    size_t                    start;
    size_t                    end;
} ngx_http_dsa_responses_place_t;


typedef struct {
    ngx_http_dsa_api_answer_t        answer;

    char                             previous[DSA_RESPONSE_ID_LEN + 1];
    dsa_buf_t                        echo;      /* members of the request that
                                                   the object repeats */
    dsa_buf_t                        input;     /* items of the request, each
                                                   followed by a NUL */
    dsa_buf_t                        list;      /* these items as an array */
    dsa_buf_t                        object;    /* the object that is stored */
    dsa_buf_t                        begun;     /* the object while it is in
                                                   progress */
    ngx_http_dsa_responses_place_t   state;     /* in begun */
    dsa_buf_t                        kept;      /* messages in front of the
                                                   compaction item, each
                                                   followed by a NUL */
    dsa_buf_t                        custom;    /* names of the custom tools, as
                                                   the model reads them, each
                                                   followed by a NUL */

    ngx_http_dsa_responses_item_t   *items;
    ngx_uint_t                       n_items;
    char                             id[NGX_HTTP_DSA_ITEM_ID + 1];
                                                /* id that was made last */
    uint64_t                         sequence;  /* number of the next event */
    dsa_buf_t                        pending;   /* logprobs of tokens whose
                                                   text has not arrived */
    ngx_uint_t                       n_top;     /* alternatives beside each
                                                   logprob */

    unsigned                         started:1;
    unsigned                         opened:1;      /* the last item has no
                                                       "done" event yet */
    unsigned                         delta_open:1;  /* the event of a delta is
                                                       open */
    unsigned                         encrypted:1;   /* reasoning is also
                                                       encrypted */
    unsigned                         one_call:1;
    unsigned                         instructions:1;    /* they are the first
                                                   message */
    unsigned                         storing:1;     /* items are written as
                                                   they are stored */
    unsigned                         failed:1;      /* an allocation failed */
} ngx_http_dsa_responses_t;


/*
 * Reads a body.  previous has DSA_RESPONSE_ID_LEN + 1 bytes, to which
 * a->previous points.
 */
int ngx_http_dsa_responses_request(ngx_http_dsa_api_answer_t *a,
    dsa_responses_t *request, dsa_chat_t *chat, dsa_arena_t *arena,
    const dsa_json_t *root, const dsa_chat_limits_t *limits,
    ngx_uint_t compact, char *previous, dsa_refusal_t *refusal);

/* Reads the body of a response, or of a compaction only. */
int ngx_http_dsa_responses_body(ngx_http_dsa_api_answer_t *a,
    dsa_chat_t *chat, dsa_arena_t *arena, const dsa_json_t *root,
    const dsa_chat_limits_t *limits, ngx_uint_t compact,
    dsa_refusal_t *refusal);

/* Callbacks of several APIs. */

ngx_http_dsa_api_answer_t *ngx_http_dsa_responses_create(ngx_pool_t *pool);
ngx_int_t ngx_http_dsa_responses_start(ngx_http_dsa_api_answer_t *a,
    ngx_pool_t *pool, const ngx_http_dsa_usage_t *usage);
void ngx_http_dsa_responses_delta(ngx_http_dsa_api_answer_t *a,
    dsa_delta_e what, uint32_t call, dsa_str_t text);
ngx_int_t ngx_http_dsa_responses_turn(ngx_http_dsa_api_answer_t *a,
    ngx_http_dsa_finish_e reason, dsa_buf_t *entries);
void ngx_http_dsa_responses_free(ngx_http_dsa_api_answer_t *a);

/* Makes the id of an item.  It is valid until the next call; NULL: failed. */
const char *ngx_http_dsa_responses_id(void *answer, const char *prefix);

/* Ends the last item, if it is open. */
void ngx_http_dsa_responses_end(ngx_http_dsa_responses_t *o,
    const char *status);
int ngx_http_dsa_responses_insert(ngx_http_dsa_api_answer_t *a,
    dsa_chat_t *chat, dsa_arena_t *arena, const dsa_str_t *lists, uint32_t n,
    const dsa_chat_limits_t *limits, dsa_refusal_t *refusal);
void ngx_http_dsa_responses_error(dsa_buf_t *out,
    const ngx_http_dsa_api_error_t *error, ngx_uint_t event);


/* The status of a response object. */

typedef enum {
    NGX_HTTP_DSA_RESPONSES_IN_PROGRESS = 0,
    NGX_HTTP_DSA_RESPONSES_COMPLETED,
    NGX_HTTP_DSA_RESPONSES_INCOMPLETE,
    NGX_HTTP_DSA_RESPONSES_FAILED
} ngx_http_dsa_responses_status_e;


/*
 * Writes the response object.  usage and error may be NULL.  state and output,
 * unless NULL, get the positions of the values from "status" to "error", and of
 * the items.  A response that is in progress has no items.
 */
void ngx_http_dsa_responses_object(ngx_http_dsa_responses_t *o,
    dsa_json_writer_t *w, ngx_http_dsa_responses_status_e status,
    const ngx_http_dsa_usage_t *usage, const ngx_http_dsa_api_error_t *error,
    ngx_http_dsa_responses_place_t *state,
    ngx_http_dsa_responses_place_t *output);

/* The usage of an answer; NULL: null. */
void ngx_http_dsa_responses_usage(dsa_json_writer_t *w,
    const ngx_http_dsa_usage_t *usage);

/* Writes an item.  If text is 0, writes it as in the event that begins it. */
void ngx_http_dsa_responses_item(ngx_http_dsa_responses_t *o,
    dsa_json_writer_t *w, const ngx_http_dsa_responses_item_t *item,
    const char *status, ngx_uint_t text);

/* Writes the part of a message or of reasoning that has the text. */
void ngx_http_dsa_responses_part(ngx_http_dsa_responses_t *o,
    dsa_json_writer_t *w, const ngx_http_dsa_responses_item_t *item,
    ngx_uint_t text);


/* Responses in progress; ngx_http_dsa_responses_progress.c. */

/* Callbacks of the API's table. */
ngx_int_t ngx_http_dsa_responses_open_progress(ngx_http_dsa_api_answer_t *a,
    dsa_progress_t *progress);
void ngx_http_dsa_responses_queued(ngx_http_dsa_api_answer_t *a,
    dsa_buf_t *out);

/* Writes the object of a response that is not stored, by its state. */
void ngx_http_dsa_responses_progress(dsa_buf_t *out,
    const dsa_progress_view_t *view);

/*
 * Writes the last event of a stream, with an object whose status is in it:
 * before, output and after of a node, or what the function above has written.
 */
void ngx_http_dsa_responses_last(dsa_buf_t *out, uint64_t sequence,
    const dsa_str_t *object, ngx_uint_t n);


/* Logprobs; ngx_http_dsa_responses_logprobs.c. */

/* Callback of the API's table. */
void ngx_http_dsa_responses_logprob(ngx_http_dsa_api_answer_t *a,
    const dsa_link_logprob_t *entry, const dsa_link_logprob_t *top,
    ngx_uint_t n_top, ngx_uint_t reasoning);

/* Adds those that wait to a message, to which text was added, or drops them. */
void ngx_http_dsa_responses_logprobs_take(ngx_http_dsa_responses_t *o,
    ngx_http_dsa_responses_item_t *item);

/*
 * Writes the member "logprobs" of an item from a position on.  Events have no
 * bytes in it.
 */
void ngx_http_dsa_responses_logprobs(ngx_http_dsa_responses_t *o,
    dsa_json_writer_t *w, const ngx_http_dsa_responses_item_t *item,
    size_t from, ngx_uint_t bytes);


/*
 * Events of a stream.  These functions do nothing for an answer that is not
 * streamed.
 */

void ngx_http_dsa_responses_event_start(ngx_http_dsa_responses_t *o);
void ngx_http_dsa_responses_event_item(ngx_http_dsa_responses_t *o);
void ngx_http_dsa_responses_event_delta(ngx_http_dsa_responses_t *o,
    dsa_str_t escaped);
void ngx_http_dsa_responses_event_close(ngx_http_dsa_responses_t *o);
void ngx_http_dsa_responses_event_item_done(ngx_http_dsa_responses_t *o,
    const char *status);
void ngx_http_dsa_responses_event_end(ngx_http_dsa_responses_t *o,
    ngx_http_dsa_responses_status_e status, const ngx_http_dsa_usage_t *usage,
    const ngx_http_dsa_api_error_t *error);

/* Writes an error in place of the first event. */
void ngx_http_dsa_responses_event_error(dsa_buf_t *out,
    const ngx_http_dsa_api_error_t *error);


#endif /* _NGX_HTTP_DSA_RESPONSES_H_INCLUDED_ */
