
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/json_write.h"

#include "ngx_http_dsa_openai_error.h"


typedef struct {
    ngx_uint_t                status;
    const char               *type;
    const char               *code;
} ngx_http_dsa_openai_status_t;


static const ngx_http_dsa_openai_status_t  *ngx_http_dsa_openai_status(
    ngx_uint_t status);


static const ngx_http_dsa_openai_status_t  ngx_http_dsa_openai_statuses[] = {
    { 400, "invalid_request_error", "invalid_request_error" },
    { 401, "authentication_error", "invalid_api_key" },
    { 402, "insufficient_quota", "insufficient_quota" },
    { 403, "permission_error", "forbidden" },
    { 404, "invalid_request_error", "not_found" },
    { 405, "invalid_request_error", "method_not_allowed" },
    { 409, "invalid_request_error", "conflict" },
    { 413, "invalid_request_error", "request_too_large" },
    { 415, "invalid_request_error", "unsupported_media_type" },
    { 422, "invalid_request_error", "invalid_request_error" },
    { 429, "rate_limit_error", "rate_limit_exceeded" },
    { 503, "server_error", "service_unavailable" },
    { 504, "server_error", "timeout" },
    { 507, "server_error", "insufficient_storage" }
};


static const ngx_http_dsa_openai_status_t  ngx_http_dsa_openai_client = {
    0, "invalid_request_error", "invalid_request_error"
};


static const ngx_http_dsa_openai_status_t  ngx_http_dsa_openai_server = {
    0, "server_error", "internal_error"
};


void
ngx_http_dsa_openai_error(dsa_buf_t *out,
    const ngx_http_dsa_api_error_t *error, ngx_uint_t event)
{
    dsa_json_writer_t                    w;
    const ngx_http_dsa_openai_status_t  *status;

    status = ngx_http_dsa_openai_status(error->status);

    if (event) {
        dsa_buf_addz(out, "data: ");
    }

    dsa_json_writer(&w, out);
    dsa_json_object(&w);
    dsa_json_key(&w, "error");
    dsa_json_object(&w);
    dsa_json_key(&w, "message");
    dsa_json_stringz(&w, error->message);
    dsa_json_key(&w, "type");
    dsa_json_stringz(&w, status->type);
    dsa_json_key(&w, "param");

    if (error->param != NULL && error->param[0] != '\0') {
        dsa_json_stringz(&w, error->param);

    } else {
        dsa_json_null(&w);
    }

    dsa_json_key(&w, "code");
    dsa_json_stringz(&w, error->code != NULL ? error->code : status->code);
    dsa_json_object_end(&w);
    dsa_json_object_end(&w);

    if (event) {
        dsa_buf_addz(out, "\n\n");
    }
}


static const ngx_http_dsa_openai_status_t *
ngx_http_dsa_openai_status(ngx_uint_t status)
{
    ngx_uint_t  i;

    for (i = 0; i < sizeof(ngx_http_dsa_openai_statuses)
                    / sizeof(ngx_http_dsa_openai_statuses[0]); i++)
    {
        if (ngx_http_dsa_openai_statuses[i].status == status) {
            return &ngx_http_dsa_openai_statuses[i];
        }
    }

    return status < 500 ? &ngx_http_dsa_openai_client
                        : &ngx_http_dsa_openai_server;
}
