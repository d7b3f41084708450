
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/utf8.h"
#include "ngx_http_dsa_text.h"


size_t
ngx_http_dsa_printable(u_char *out, size_t size, const u_char *text,
    size_t len)
{
    int      n;
    size_t   i;
    u_char  *p;

    p = out;

    for (i = 0; i < len && p < out + size; /* void */ ) {
        n = dsa_utf8_char(text + i, len - i);

        if (n <= 0) {
            *p++ = '?';
            i++;
            continue;
        }

        if (n > out + size - p) {
            break;
        }

        /* C0, DEL and C1 (U+0080 to U+009F): terminals interpret C1 as well */

        if ((n == 1 && (text[i] < 0x20 || text[i] == 0x7f))
            || (n == 2 && text[i] == 0xc2 && text[i + 1] < 0xa0))
        {
            *p++ = ' ';

        } else {
            ngx_memmove(p, text + i, n);
            p += n;
        }

        i += n;
    }

    return p - out;
}


ngx_int_t
ngx_http_dsa_copy(ngx_pool_t *pool, ngx_str_t *to, const dsa_str_t *from)
{
    if (from->len == 0) {
        ngx_str_null(to);
        return NGX_OK;
    }

    to->len = from->len;
    to->data = ngx_pnalloc(pool, from->len);

    if (to->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(to->data, from->data, from->len);

    return NGX_OK;
}
