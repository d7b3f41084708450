
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>
#include <string.h>

#include "engine/service/request.h"


static void dsa_request_fail(dsa_request_t *r, dsa_link_error_e code,
    const char *path, const char *reason);


dsa_request_t *
dsa_request_create(dsa_link_type_e type, uint64_t id, const void *payload,
    size_t len)
{
    dsa_request_t  *r;

    r = calloc(1, sizeof(dsa_request_t));

    if (r == NULL) {
        return NULL;
    }

    r->copy = malloc(len != 0 ? len : 1);

    if (r->copy == NULL) {
        free(r);
        return NULL;
    }

    if (len != 0) {
        memcpy(r->copy, payload, len);
    }

    r->type = type;
    r->id = id;
    r->len = len;
    r->cost = len;
    r->weight = 1;
    r->prev = r;
    r->next = r;
    r->state = DSA_REQUEST_IDLE;

    return r;
}


void
dsa_request_free(dsa_request_t *r)
{
    r->prev->next = r->next;
    r->next->prev = r->prev;

    dsa_answer_free(&r->answer);
    dsa_buf_free(&r->rows);
    free(r->sched.tokens);
    free(r->bias);
    dsa_constraint_free(r->constraint);
    free(r->reason);
    free(r->copy);
    free(r);
}


void
dsa_request_reject(dsa_request_t *r, dsa_link_error_e code,
    const char *reason)
{
    dsa_request_fail(r, code, "", reason);
}


void
dsa_request_refuse(dsa_request_t *r, const char *path, const char *reason)
{
    dsa_request_fail(r, DSA_LINK_E_GRAMMAR, path, reason);
}


static void
dsa_request_fail(dsa_request_t *r, dsa_link_error_e code, const char *path,
    const char *reason)
{
    size_t  path_len, text_len;

    free(r->reason);

    /*
     * Drop rows, because the worker may try another replica and would get them
     * twice.
     */

    dsa_buf_free(&r->rows);
    r->rows_sent = 0;

    path_len = strlen(path);
    text_len = strlen(reason);

    r->last = DSA_LINK_ERROR;
    r->reason = malloc(path_len + text_len + 1);

    if (r->reason != NULL) {
        memcpy(r->reason, path, path_len);
        memcpy(r->reason + path_len, reason, text_len + 1);

    } else {
        path_len = 0;
        text_len = 0;
    }

    r->failure.code = code;
    r->failure.prompt_tokens = r->counted.prompt_tokens;
    r->failure.more = r->counted.more;
    r->failure.path_len = (uint32_t) path_len;
    r->failure.text_len = (uint32_t) text_len;
}


int
dsa_request_starved(dsa_request_t *r)
{
    if (r->constraint == NULL || !dsa_constraint_failed(r->constraint)) {
        return 0;
    }

    r->reject = DSA_LINK_E_OVERLOADED;
    r->reject_reason = DSA_GRAMMARS_NO_MEMORY;

    return 1;
}


void
dsa_request_finish(dsa_request_t *r, dsa_link_finish_e finish)
{
    memset(&r->done, 0, sizeof(dsa_link_done_t));

    r->last = DSA_LINK_DONE;
    r->done.finish = finish;
}
