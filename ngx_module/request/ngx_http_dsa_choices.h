
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_CHOICES_H_INCLUDED_
#define _NGX_HTTP_DSA_CHOICES_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/buf.h"

#include "ngx_module/account/ngx_http_dsa_usage_record.h"
#include "ngx_module/http/ngx_http_dsa_stream.h"
#include "ngx_module/objects/ngx_http_dsa_retention.h"
#include "ngx_http_dsa_answer.h"
#include "ngx_http_dsa_resume.h"
#include "ngx_http_dsa_submit.h"


/*
 * The choices of an answer: "n" of a request.  Each choice is a call of its
 * own.  The first choice is submitted at once, and the others after its first
 * token, because then the engine has the prompt in its prefix cache.
 *
 * If the engine of a choice is lost or is stopped, another one continues the
 * choice.  After a loss this is done once only, so that a prompt that makes
 * engines crash cannot end all of them.
 */

typedef struct ngx_http_dsa_choices_s  ngx_http_dsa_choices_t;


/* One choice: its call, its usage and its text. */

typedef struct {
    ngx_http_dsa_choices_t     *choices;    /* all of them */
    ngx_http_dsa_usage_call_t  *call;       /* valid while the request has its
                                               usage record */
    ngx_http_dsa_answer_t      *answer;
    ngx_http_dsa_retention_t   *retention;
    dsa_buf_t                   ids;        /* uint32_t ids of the tokens
                                               received, for another engine to
                                               continue */
    uint64_t                    tried;      /* of ngx_http_dsa_submit_t */
    unsigned                    submit:1;   /* it is to be submitted */
    unsigned                    resumes:1;  /* ids has all tokens of the
                                               choice */
    unsigned                    moved:1;    /* its first engine is gone */
    unsigned                    lost:1;     /* an engine of it was lost */
    unsigned                    stopped:1;  /* its last engine was stopped */
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

    ngx_http_dsa_resume_t      *resume;     /* NULL if the pool has one engine
                                               or the request cannot move */
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
    ngx_http_dsa_usage_call_t *call, ngx_http_dsa_answer_t *answer,
    ngx_http_dsa_retention_t *retention);

/*
 * Adds more choices before anything is submitted.  record: the usage record of
 * the request.  NGX_OK, or NGX_ERROR: out of memory.
 */
ngx_int_t ngx_http_dsa_choices_add(ngx_http_dsa_choices_t *choices,
    ngx_uint_t others, ngx_http_dsa_usage_record_t *record);

/*
 * Submits the first choice, or after its first token as many of the others as
 * there are free slots.  A choice without a slot waits for the end of another
 * choice.  NGX_OK, or NGX_ERROR with a failure if no other choice runs.  Call
 * it again after events, and from the handler of submit->waiter.
 */
ngx_int_t ngx_http_dsa_choices_submit(ngx_http_dsa_choices_t *choices,
    ngx_http_dsa_submit_t *submit, ngx_http_dsa_failure_t *failure);

/*
 * Begins the text of a choice.  vocabulary is that of ACCEPTED, or 0 for a
 * choice that no engine has accepted before the timeout.  NGX_OK, or
 * NGX_ERROR: out of memory.
 */
ngx_int_t ngx_http_dsa_choices_start(ngx_http_dsa_choice_t *choice,
    uint32_t vocabulary);

/*
 * Call it when an engine has accepted a choice, whose call has a session.  The
 * first call copies the request, so that other engines can continue its
 * choices.  submit: the request, which must not be freed yet.  NGX_OK, or
 * NGX_ERROR: out of memory.
 */
ngx_int_t ngx_http_dsa_choices_hold(ngx_http_dsa_choice_t *choice,
    const ngx_http_dsa_submit_t *submit);

/*
 * Adds n tokens, in the format of TOKENS, to the ids for another engine.
 * NGX_OK, or NGX_ERROR: out of memory.
 */
ngx_int_t ngx_http_dsa_choices_tokens(ngx_http_dsa_choice_t *choice,
    uint32_t n, const u_char *tokens);

/*
 * Call it when the engine of an accepted choice is lost or, with stopped set,
 * has ended the choice because it stops.  Returns 1 if
 * ngx_http_dsa_choices_submit() will submit the choice to another engine; 0:
 * the choice cannot move.
 */
ngx_uint_t ngx_http_dsa_choices_move(ngx_http_dsa_choice_t *choice,
    ngx_uint_t stopped);

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
