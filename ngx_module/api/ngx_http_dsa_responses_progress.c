
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/json_write.h"

#include "ngx_http_dsa_responses.h"


/*
 * The object of a response before it is stored.  It is written once, and the
 * values that depend on its state are replaced.
 */

static void ngx_http_dsa_responses_state(dsa_buf_t *out, dsa_str_t before,
    const char *status, const char *error, size_t error_len, dsa_str_t after);


ngx_int_t
ngx_http_dsa_responses_open_progress(ngx_http_dsa_api_answer_t *a,
    dsa_progress_t *progress)
{
    ngx_http_dsa_responses_t *o = (ngx_http_dsa_responses_t *) a;

    dsa_buf_t          *text;
    dsa_json_writer_t   w;

    text = &o->begun;

    dsa_json_writer(&w, text);
    ngx_http_dsa_responses_object(o, &w, NGX_HTTP_DSA_RESPONSES_IN_PROGRESS,
                                  NULL, NULL, &o->state, NULL);

    if (text->failed) {
        return NGX_ERROR;
    }

    progress->id = dsa_str(a->id.data, a->id.len);
    progress->before = dsa_str(text->data, o->state.start);
    progress->after = dsa_str(text->data + o->state.end,
                              text->len - o->state.end);
    progress->background = a->background;
    progress->streams = a->background && a->stream;

    return NGX_OK;
}


void
ngx_http_dsa_responses_queued(ngx_http_dsa_api_answer_t *a, dsa_buf_t *out)
{
    ngx_http_dsa_responses_t *o = (ngx_http_dsa_responses_t *) a;

    dsa_buf_t  *text;

    text = &o->begun;

    ngx_http_dsa_responses_state(out, dsa_str(text->data, o->state.start),
                                 "queued", NULL, 0,
                                 dsa_str(text->data + o->state.end,
                                         text->len - o->state.end));
}


void
ngx_http_dsa_responses_progress(dsa_buf_t *out,
    const dsa_progress_view_t *view)
{
    dsa_str_t  error;

    static const char  lost[] = "The server stopped before the answer was "
                                "complete; send the request again.";

    switch (view->state) {

    case DSA_PROGRESS_OPEN:
        ngx_http_dsa_responses_state(out, view->before, "in_progress", NULL, 0,
                                     view->after);
        return;

    case DSA_PROGRESS_STOPPED:
        ngx_http_dsa_responses_state(out, view->before, "cancelled", NULL, 0,
                                     view->after);
        return;

    default: /* DSA_PROGRESS_FAILED */
        error = view->error.len != 0 ? view->error : dsa_strz(lost);

        ngx_http_dsa_responses_state(out, view->before, "failed", error.data,
                                     error.len, view->after);
        return;
    }
}


static void
ngx_http_dsa_responses_state(dsa_buf_t *out, dsa_str_t before,
    const char *status, const char *error, size_t error_len, dsa_str_t after)
{
    dsa_json_writer_t  w;

    dsa_buf_add(out, before.data, before.len);

    dsa_json_writer(&w, out);
    dsa_json_stringz(&w, status);
    dsa_json_key(&w, "completed_at");
    dsa_json_null(&w);
    dsa_json_key(&w, "error");

    if (error == NULL) {
        dsa_json_null(&w);

    } else {
        dsa_json_object(&w);
        dsa_json_key(&w, "code");
        dsa_json_stringz(&w, "server_error");
        dsa_json_key(&w, "message");
        dsa_json_string(&w, dsa_str(error, error_len));
        dsa_json_object_end(&w);
    }

    dsa_buf_add(out, after.data, after.len);
}


void
ngx_http_dsa_responses_last(dsa_buf_t *out, uint64_t sequence,
    const dsa_str_t *object, ngx_uint_t n)
{
    size_t              len;
    ngx_uint_t          k;
    const char         *type, *p, *last;
    dsa_json_writer_t   w;

    static const char  name[] = "\"status\":";

    /* the members before "status" have no text of a client */

    last = object[0].data + object[0].len;
    p = memmem(object[0].data, object[0].len, name, sizeof(name) - 1);
    type = "response.failed";

    if (p != NULL) {
        p += sizeof(name) - 1;
        len = last - p;

        if (len > 11 && ngx_memcmp(p, "\"completed\"", 11) == 0) {
            type = "response.completed";

        } else if (len > 12 && ngx_memcmp(p, "\"incomplete\"", 12) == 0) {
            type = "response.incomplete";
        }
    }

    dsa_buf_addz(out, "event: ");
    dsa_buf_addz(out, type);
    dsa_buf_addz(out, "\ndata: ");

    dsa_json_writer(&w, out);
    dsa_json_object(&w);
    dsa_json_key(&w, "type");
    dsa_json_stringz(&w, type);
    dsa_json_key(&w, "sequence_number");
    dsa_json_uint(&w, sequence);
    dsa_json_key(&w, "response");

    for (k = 0; k < n; k++) {
        dsa_buf_add(out, object[k].data, object[k].len);
    }

    dsa_buf_addz(out, "}\n\n");
}
