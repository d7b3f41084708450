
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_rollout.h"


/* bytes that are encoded at a time; a multiple of 3 needs no padding */
#define NGX_HTTP_DSA_ROLLOUT_PIECE  (3 * 1024)


ngx_int_t
ngx_http_dsa_rollout_add(ngx_http_dsa_api_answer_t *a, const dsa_str_t *rows,
    size_t limit)
{
    if (!a->rollout) {
        return NGX_OK;
    }

    if (rows->len > limit || a->rows.len > limit - rows->len) {
        return NGX_DECLINED;
    }

    dsa_buf_add(&a->rows, rows->data, rows->len);

    return a->rows.failed ? NGX_ERROR : NGX_OK;
}


void
ngx_http_dsa_rollout_write(ngx_http_dsa_api_answer_t *a, dsa_json_writer_t *w)
{
    size_t     at, len;
    u_char     text[ngx_base64_encoded_length(NGX_HTTP_DSA_ROLLOUT_PIECE)];
    ngx_str_t  piece, encoded;

    if (a->rows.len == 0) {
        return;
    }

    dsa_json_key(w, "rollout");
    dsa_json_object(w);
    dsa_json_key(w, "rows");
    dsa_json_string_begin(w);

    for (at = 0; at < a->rows.len; at += len) {
        len = ngx_min(a->rows.len - at, NGX_HTTP_DSA_ROLLOUT_PIECE);

        piece.data = (u_char *) a->rows.data + at;
        piece.len = len;
        encoded.data = text;

        ngx_encode_base64(&encoded, &piece);
        dsa_buf_add(w->out, encoded.data, encoded.len);
    }

    dsa_json_string_end(w);
    dsa_json_object_end(w);

    a->rows.len = 0;
}
