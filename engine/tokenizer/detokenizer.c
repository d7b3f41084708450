
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "engine/tokenizer/parts.h"


static const char  dsa_replacement[3] = { '\xef', '\xbf', '\xbd' };


size_t
dsa_detokenize(dsa_detokenizer_t *d, dsa_str_t bytes, char *out)
{
    int     rc;
    char   *p;
    size_t  i;

    p = out;

    for (i = 0; i < bytes.len; i++) {

        d->pending[d->n_pending++] = (uint8_t) bytes.data[i];

        /* a byte that does not continue the pending ones may begin another */

        for ( ;; ) {
            rc = dsa_utf8_char(d->pending, d->n_pending);

            if (rc >= 0) {
                break;
            }

            memcpy(p, dsa_replacement, sizeof(dsa_replacement));
            p += sizeof(dsa_replacement);

            if (d->n_pending == (uint32_t) -rc) {
                d->n_pending = 0;
                break;
            }

            d->pending[0] = d->pending[d->n_pending - 1];
            d->n_pending = 1;
        }

        if (rc > 0) {
            memcpy(p, d->pending, d->n_pending);
            p += d->n_pending;
            d->n_pending = 0;
        }
    }

    return (size_t) (p - out);
}


size_t
dsa_detokenize_end(dsa_detokenizer_t *d, char *out)
{
    if (d->n_pending == 0) {
        return 0;
    }

    d->n_pending = 0;
    memcpy(out, dsa_replacement, sizeof(dsa_replacement));

    return sizeof(dsa_replacement);
}
