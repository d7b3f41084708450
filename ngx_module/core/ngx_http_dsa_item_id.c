
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <openssl/rand.h>

#include "context/responses.h"

#include "ngx_http_dsa_item_id.h"


ngx_int_t
ngx_http_dsa_item_id(char *id, const char *prefix, const u_char *owner)
{
    u_char  noise[NGX_HTTP_DSA_ITEM_RANDOM], *p;

    if (RAND_bytes(noise, sizeof(noise)) != 1) {
        return NGX_ERROR;
    }

    p = (u_char *) id;
    p = ngx_cpymem(p, prefix, ngx_strlen(prefix));
    p = ngx_cpymem(p, owner, NGX_HTTP_DSA_ITEM_OWNER);
    p = ngx_hex_dump(p, noise, sizeof(noise));
    *p = '\0';

    return NGX_OK;
}


_Static_assert(NGX_HTTP_DSA_ITEM_ID <= DSA_RESPONSES_ITEM_ID,
               "an id that was made here is accepted again");
