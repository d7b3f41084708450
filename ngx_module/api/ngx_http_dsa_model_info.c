
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/json_write.h"

#include "ngx_http_dsa_model_info.h"


static void ngx_http_dsa_model_openai_write(dsa_json_writer_t *w,
    const ngx_http_dsa_model_info_t *model);
static void ngx_http_dsa_model_anthropic_write(dsa_json_writer_t *w,
    const ngx_http_dsa_model_info_t *model);
static void ngx_http_dsa_model_name(dsa_json_writer_t *w, const char *key,
    const ngx_str_t *name);


void
ngx_http_dsa_model_openai(dsa_buf_t *b,
    const ngx_http_dsa_model_info_t *model)
{
    dsa_json_writer_t  w;

    dsa_json_writer(&w, b);
    ngx_http_dsa_model_openai_write(&w, model);
}


void
ngx_http_dsa_model_openai_list(dsa_buf_t *b,
    const ngx_http_dsa_model_page_t *page)
{
    ngx_uint_t         i;
    dsa_json_writer_t  w;

    dsa_json_writer(&w, b);
    dsa_json_object(&w);
    dsa_json_key(&w, "object");
    dsa_json_stringz(&w, "list");
    dsa_json_key(&w, "data");
    dsa_json_array(&w);

    for (i = page->start; i < page->end; i++) {
        ngx_http_dsa_model_openai_write(&w, &page->models[i]);
    }

    dsa_json_array_end(&w);
    dsa_json_object_end(&w);
}


static void
ngx_http_dsa_model_openai_write(dsa_json_writer_t *w,
    const ngx_http_dsa_model_info_t *model)
{
    dsa_json_object(w);
    ngx_http_dsa_model_name(w, "id", &model->name);
    dsa_json_key(w, "object");
    dsa_json_stringz(w, "model");
    dsa_json_key(w, "created");
    dsa_json_uint(w, 0);
    dsa_json_key(w, "owned_by");
    dsa_json_stringz(w, model->owner);
    dsa_json_key(w, "context_length");
    dsa_json_uint(w, model->context);
    dsa_json_key(w, "max_model_len");
    dsa_json_uint(w, model->context);
    dsa_json_object_end(w);
}


void
ngx_http_dsa_model_anthropic(dsa_buf_t *b,
    const ngx_http_dsa_model_info_t *model)
{
    dsa_json_writer_t  w;

    dsa_json_writer(&w, b);
    ngx_http_dsa_model_anthropic_write(&w, model);
}


void
ngx_http_dsa_model_anthropic_list(dsa_buf_t *b,
    const ngx_http_dsa_model_page_t *page)
{
    ngx_uint_t         i, empty;
    dsa_json_writer_t  w;

    empty = page->start == page->end;

    dsa_json_writer(&w, b);
    dsa_json_object(&w);
    dsa_json_key(&w, "data");
    dsa_json_array(&w);

    for (i = page->start; i < page->end; i++) {
        ngx_http_dsa_model_anthropic_write(&w, &page->models[i]);
    }

    dsa_json_array_end(&w);
    dsa_json_key(&w, "has_more");
    dsa_json_bool(&w, page->more);
    ngx_http_dsa_model_name(&w, "first_id", empty ? NULL
                                      : &page->models[page->start].name);
    ngx_http_dsa_model_name(&w, "last_id", empty ? NULL
                                      : &page->models[page->end - 1].name);
    dsa_json_object_end(&w);
}


static void
ngx_http_dsa_model_anthropic_write(dsa_json_writer_t *w,
    const ngx_http_dsa_model_info_t *model)
{
    dsa_json_object(w);
    dsa_json_key(w, "type");
    dsa_json_stringz(w, "model");
    ngx_http_dsa_model_name(w, "id", &model->name);
    ngx_http_dsa_model_name(w, "display_name", &model->name);
    dsa_json_key(w, "created_at");
    dsa_json_stringz(w, "1970-01-01T00:00:00Z");
    dsa_json_key(w, "lifecycle");
    dsa_json_stringz(w, "active");
    dsa_json_key(w, "deprecated_at");
    dsa_json_null(w);
    dsa_json_key(w, "retires_at");
    dsa_json_null(w);
    dsa_json_key(w, "line");
    dsa_json_null(w);
    dsa_json_key(w, "capabilities");
    dsa_json_null(w);
    dsa_json_key(w, "max_input_tokens");
    dsa_json_uint(w, model->context);
    dsa_json_key(w, "max_tokens");
    dsa_json_uint(w, model->context);
    dsa_json_object_end(w);
}


/* Writes a name; NULL: there is none. */

static void
ngx_http_dsa_model_name(dsa_json_writer_t *w, const char *key,
    const ngx_str_t *name)
{
    dsa_json_key(w, key);

    if (name != NULL) {
        dsa_json_string(w, dsa_str(name->data, name->len));

    } else {
        dsa_json_null(w);
    }
}
