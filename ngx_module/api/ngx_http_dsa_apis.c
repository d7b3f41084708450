
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_anthropic.h"
#include "ngx_http_dsa_apis.h"
#include "ngx_http_dsa_completions.h"
#include "ngx_http_dsa_openai.h"
#include "ngx_http_dsa_responses.h"


/*
 * The first match is used, so if a path ends with the path of another API, it
 * has to be in front of that one.
 */

static const ngx_http_dsa_api_t  *ngx_http_dsa_apis[] = {
    &ngx_http_dsa_openai,
    &ngx_http_dsa_anthropic,
    &ngx_http_dsa_anthropic_count,
    &ngx_http_dsa_completions,
    &ngx_http_dsa_responses,
    &ngx_http_dsa_responses_count,
    NULL
};


const ngx_http_dsa_api_t *
ngx_http_dsa_apis_find(const ngx_str_t *uri)
{
    const ngx_str_t            *path;
    const ngx_http_dsa_api_t  **api;

    for (api = ngx_http_dsa_apis; *api != NULL; api++) {
        path = &(*api)->path;

        if (uri->len >= path->len
            && ngx_memcmp(uri->data + uri->len - path->len, path->data,
                          path->len)
               == 0)
        {
            return *api;
        }
    }

    return NULL;
}


const ngx_http_dsa_api_t *
ngx_http_dsa_apis_errors(const ngx_str_t *uri)
{
    const ngx_http_dsa_api_t  *api;

    api = ngx_http_dsa_apis_find(uri);

    return api != NULL ? api : &ngx_http_dsa_openai;
}
