
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_RESPONSES_H_INCLUDED_
#define _NGX_HTTP_DSA_RESPONSES_H_INCLUDED_


#include "context/responses.h"

#include "ngx_module/ngx_http_dsa_item_id.h"

#include "ngx_http_dsa_api.h"


/* POST .../responses */
extern const ngx_http_dsa_api_t  ngx_http_dsa_responses;


/* Inside this API: the state of an answer, which is a list of items. */

typedef struct {
    dsa_delta_e               kind;         /* DSA_DELTA_ARGUMENTS: a call */
    char                      id[NGX_HTTP_DSA_ITEM_ID + 1];
    char                      call_id[NGX_HTTP_DSA_CALL_ID_LEN + 1];
    dsa_buf_t                 name;         /* of a call, escaped */
    dsa_buf_t                 text;         /* escaped */
    dsa_buf_t                 sealed;       /* encrypted_content, or empty */
} ngx_http_dsa_responses_item_t;


typedef struct {
    ngx_http_dsa_api_answer_t        answer;

    char                             previous[DSA_RESPONSE_ID_LEN + 1];
    dsa_buf_t                        echo;      /* of the request */
    dsa_buf_t                        input;     /* items, each with a NUL
                                                   behind it */
    dsa_buf_t                        list;      /* the same as an array */
    dsa_buf_t                        object;    /* that is stored */

    ngx_http_dsa_responses_item_t   *items;
    ngx_uint_t                       n_items;
    char                             id[NGX_HTTP_DSA_ITEM_ID + 1];
                                                /* the one made last */
    uint64_t                         sequence;  /* number of the next event */

    unsigned                         started:1;
    unsigned                         opened:1;      /* the last item is not
                                                       done */
    unsigned                         delta_open:1;  /* so is its event */
    unsigned                         encrypted:1;   /* reasoning, besides */
    unsigned                         one_call:1;
    unsigned                         failed:1;      /* no memory */
} ngx_http_dsa_responses_t;


/* What a response has become. */

typedef enum {
    NGX_HTTP_DSA_RESPONSES_IN_PROGRESS = 0,
    NGX_HTTP_DSA_RESPONSES_COMPLETED,
    NGX_HTTP_DSA_RESPONSES_INCOMPLETE,
    NGX_HTTP_DSA_RESPONSES_FAILED
} ngx_http_dsa_responses_status_e;


/* Where the array of items lies in a response object. */

typedef struct {
    size_t                    start;
    size_t                    end;
} ngx_http_dsa_responses_output_t;


/*
 * The response object.  usage and error may be NULL; output may be NULL, and
 * has offsets in w->out.  An object that is not complete has no items.
 */
void ngx_http_dsa_responses_object(ngx_http_dsa_responses_t *o,
    dsa_json_writer_t *w, ngx_http_dsa_responses_status_e status,
    const ngx_http_dsa_usage_t *usage, const ngx_http_dsa_api_error_t *error,
    ngx_http_dsa_responses_output_t *output);

/* An item; text 0: as it is when it begins. */
void ngx_http_dsa_responses_item(ngx_http_dsa_responses_t *o,
    dsa_json_writer_t *w, const ngx_http_dsa_responses_item_t *item,
    const char *status, ngx_uint_t text);

/* The part of a message or of reasoning that has the text. */
void ngx_http_dsa_responses_part(dsa_json_writer_t *w,
    const ngx_http_dsa_responses_item_t *item, ngx_uint_t text);


/* Events of a stream; without a stream they do nothing. */

void ngx_http_dsa_responses_event_start(ngx_http_dsa_responses_t *o);
void ngx_http_dsa_responses_event_item(ngx_http_dsa_responses_t *o);
void ngx_http_dsa_responses_event_delta(ngx_http_dsa_responses_t *o,
    dsa_str_t text);
void ngx_http_dsa_responses_event_close(ngx_http_dsa_responses_t *o);
void ngx_http_dsa_responses_event_item_done(ngx_http_dsa_responses_t *o,
    const char *status);
void ngx_http_dsa_responses_event_end(ngx_http_dsa_responses_t *o,
    ngx_http_dsa_responses_status_e status, const ngx_http_dsa_usage_t *usage,
    const ngx_http_dsa_api_error_t *error);

/* An error instead of the first event. */
void ngx_http_dsa_responses_event_error(dsa_buf_t *out,
    const ngx_http_dsa_api_error_t *error);


#endif /* _NGX_HTTP_DSA_RESPONSES_H_INCLUDED_ */
