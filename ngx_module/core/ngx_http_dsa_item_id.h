
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_ITEM_ID_H_INCLUDED_
#define _NGX_HTTP_DSA_ITEM_ID_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/*
 * The id of an item: a prefix, the 32 hexadecimal digits of the id of its
 * response or conversation, and 16 random digits.  So the key of Redis that
 * contains an item follows from the id of the item.
 */

#define NGX_HTTP_DSA_ITEM_OWNER   32
#define NGX_HTTP_DSA_ITEM_RANDOM  8         /* bytes */
#define NGX_HTTP_DSA_ITEM_ID                                                  \
    (sizeof("fco_") - 1 + NGX_HTTP_DSA_ITEM_OWNER                             \
     + 2 * NGX_HTTP_DSA_ITEM_RANDOM)


/*
 * Makes an id.  id has NGX_HTTP_DSA_ITEM_ID + 1 bytes, prefix at most 4.
 * NGX_ERROR: no random bytes.
 */
ngx_int_t ngx_http_dsa_item_id(char *id, const char *prefix,
    const u_char *owner);


#endif /* _NGX_HTTP_DSA_ITEM_ID_H_INCLUDED_ */
