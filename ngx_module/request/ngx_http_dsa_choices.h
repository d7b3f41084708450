
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_CHOICES_H_INCLUDED_
#define _NGX_HTTP_DSA_CHOICES_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_module/http/ngx_http_dsa_stream.h"
#include "ngx_module/objects/ngx_http_dsa_retention.h"
#include "ngx_module/submission/ngx_http_dsa_engine_request.h"
#include "ngx_http_dsa_answer.h"


/*
 * The choices of an answer: "n" of a request.  Each choice is a request to an
 * engine of its own.  The first choice is submitted at once, and the others
 * after its first token, because then the engine has the prompt in its prefix
 * cache.
 */

typedef struct ngx_http_dsa_choices_s  ngx_http_dsa_choices_t;


/* One choice: its request to an engine, and its text. */

typedef struct {
    ngx_http_dsa_choices_t     *choices;    /* all of them */
    ngx_http_dsa_engine_request_t  *request;    /* valid while the chat has its
                                                   set */
    ngx_http_dsa_answer_t      *answer;
    ngx_http_dsa_retention_t   *retention;
    unsigned                    ended:1;    /* its end is in stream.pending,
                                               but the end of the answer is
                                               not */
} ngx_http_dsa_choice_t;


struct ngx_http_dsa_choices_s {
    ngx_pool_t                 *pool;
    ngx_http_dsa_stream_t      *stream;
    void                       *data;       /* of the owner */

    ngx_http_dsa_choice_t       first;
    ngx_http_dsa_choice_t      *elts;       /* &first, or an array whose first
                                               element is a copy of it */
    ngx_uint_t                  n;

    ngx_http_dsa_choice_t      *writer;     /* the choice whose event may be
                                               open */
    ngx_http_dsa_choice_t      *last;       /* the choice that ended last; NULL
                                               until all have ended */
    unsigned                    submit:1;   /* all choices but the first may be
                                               submitted now */
};


/*
 * Prepares the first choice, whose parts are members of the request.  choices
 * is zeroed, except that pool, stream and data are set.
 */
void ngx_http_dsa_choices_init(ngx_http_dsa_choices_t *choices,
    ngx_http_dsa_engine_request_t *request, ngx_http_dsa_answer_t *answer,
    ngx_http_dsa_retention_t *retention);

/*
 * Adds more choices before anything is submitted; set: that of the chat.
 * NGX_OK, or NGX_ERROR: out of memory.
 */
ngx_int_t ngx_http_dsa_choices_add(ngx_http_dsa_choices_t *choices,
    ngx_uint_t others, ngx_http_dsa_engine_requests_t *set);

/*
 * Prepares all choices for their submission.  The data of a request is its
 * choice.
 */
void ngx_http_dsa_choices_own(ngx_http_dsa_choices_t *choices,
    const ngx_http_dsa_engine_owner_t *owner, ngx_http_request_t *r,
    ngx_http_dsa_submit_t *submit, ngx_http_dsa_failure_t *failure);

/*
 * Submits the first choice, or after its first token as many of the others as
 * there are free slots.  A choice without a slot waits for the end of another
 * choice.  NGX_OK, or NGX_ERROR with a failure if no other choice runs.  Call
 * it again from flush.
 */
ngx_int_t ngx_http_dsa_choices_submit(ngx_http_dsa_choices_t *choices,
    ngx_http_dsa_failure_t *failure);

/*
 * Begins the text of a choice.  vocabulary is that of ACCEPTED, or 0 for a
 * choice that no engine has accepted before the timeout.  NGX_OK, or
 * NGX_ERROR: out of memory.
 */
ngx_int_t ngx_http_dsa_choices_start(ngx_http_dsa_choice_t *choice,
    uint32_t vocabulary);

/*
 * Call it before text of this choice is added: closes the open event of
 * another choice.
 */
void ngx_http_dsa_choices_write(ngx_http_dsa_choice_t *choice);

/* Returns 1 if engines have accepted all choices. */
ngx_uint_t ngx_http_dsa_choices_accepted(
    const ngx_http_dsa_choices_t *choices);

/*
 * Writes the ends of the complete choices.  The end of the choice that
 * completes last is the end of the answer, so it is not written; when all are
 * complete, choices->last is this choice.
 */
void ngx_http_dsa_choices_end(ngx_http_dsa_choices_t *choices);

/* Frees the choices at the end of the request. */
void ngx_http_dsa_choices_free(ngx_http_dsa_choices_t *choices);


#endif /* _NGX_HTTP_DSA_CHOICES_H_INCLUDED_ */
