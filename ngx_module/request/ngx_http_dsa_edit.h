
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_EDIT_H_INCLUDED_
#define _NGX_HTTP_DSA_EDIT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "context/clear.h"

#include "ngx_module/api/ngx_http_dsa_api.h"
#include "ngx_http_dsa_count.h"


/*
 * Applies the edits of a chat, one after another: tool uses and reasoning leave
 * the prompt (context/clear.h).  Engines count the prompts.
 */

typedef struct {
    /* set by the owner */
    ngx_http_request_t            *request;
    ngx_http_dsa_work_t           *work;
    ngx_http_dsa_submit_t         *submit;  /* its chat has edits */
    ngx_http_dsa_failure_t        *failure;

    /*
     * Called once for each start, at once or later.  NGX_OK: the messages of
     * submit->chat are those to encode, and are valid until
     * ngx_http_dsa_edit_free(); NGX_ERROR with a failure.  It may finalize the
     * request.
     */
    void                         (*handler)(void *data, ngx_int_t rc);
    void                          *data;

    /* the result: the edits that changed the prompt, in their order */
    ngx_http_dsa_api_edit_t        applied[DSA_CHAT_EDITS];
    ngx_uint_t                     n;

    ngx_http_dsa_count_t           count;
    dsa_arena_t                   *memory;  /* of clear and the messages */
    dsa_clear_t                    clear;   /* of the edit before next */
    uint32_t                       next;
    uint32_t                       end;     /* edits that are applied now */
    uint32_t                       tokens;  /* of the prompt; 0: not counted */
} ngx_http_dsa_edit_t;


/*
 * Applies the edits in front of end that have not been applied.  It may be
 * called again afterwards, with another end.
 */
void ngx_http_dsa_edit_start(ngx_http_dsa_edit_t *ed, uint32_t end);

/*
 * Ensures that the handler is not called.  The memory is kept, because a thread
 * may use it.
 */
void ngx_http_dsa_edit_detach(ngx_http_dsa_edit_t *ed);

/* Frees what is detached. */
void ngx_http_dsa_edit_free(ngx_http_dsa_edit_t *ed);


#endif /* _NGX_HTTP_DSA_EDIT_H_INCLUDED_ */
