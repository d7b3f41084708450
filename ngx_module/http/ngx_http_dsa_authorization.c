
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_dsa_authorization.h"


static ngx_int_t ngx_http_dsa_authorization(ngx_http_request_t *r,
    ngx_table_elt_t *h, ngx_uint_t offset);


static u_char  ngx_http_dsa_authorization_name[] = "authorization";


/*
 * The table of nginx's handlers is static data of nginx, and would refer to
 * this module after a reload without it.  So the value in the hash of this
 * configuration is replaced, which ends with the configuration.
 */

ngx_int_t
ngx_http_dsa_authorization_init(ngx_conf_t *cf)
{
    size_t                      len;
    ngx_hash_t                 *hash;
    ngx_uint_t                  key;
    ngx_hash_elt_t             *elt;
    ngx_http_header_t          *header;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    hash = &cmcf->headers_in_hash;
    len = sizeof(ngx_http_dsa_authorization_name) - 1;
    key = ngx_hash_key(ngx_http_dsa_authorization_name, len);

    for (elt = hash->buckets[key % hash->size];
         elt != NULL && elt->value != NULL;
         elt = (ngx_hash_elt_t *) ngx_align_ptr(&elt->name[0] + elt->len,
                                                sizeof(void *)))
    {
        if (elt->len != len
            || ngx_memcmp(elt->name, ngx_http_dsa_authorization_name, len) != 0)
        {
            continue;
        }

        header = ngx_palloc(cf->pool, sizeof(ngx_http_header_t));
        if (header == NULL) {
            return NGX_ERROR;
        }

        *header = *(ngx_http_header_t *) elt->value;
        header->handler = ngx_http_dsa_authorization;
        elt->value = header;

        break;
    }

    return NGX_OK;
}


/* As nginx does it for a header that may be there once. */

static ngx_int_t
ngx_http_dsa_authorization(ngx_http_request_t *r, ngx_table_elt_t *h,
    ngx_uint_t offset)
{
    ngx_table_elt_t  **header;

    header = (ngx_table_elt_t **) ((char *) &r->headers_in + offset);

    if (*header == NULL) {
        *header = h;
#if (nginx_version >= 1023000)
        h->next = NULL;
#endif
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                  "client sent duplicate header line \"%V\"", &h->key);

    ngx_http_finalize_request(r, NGX_HTTP_BAD_REQUEST);

    return NGX_ERROR;
}
