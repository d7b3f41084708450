
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#include "ngx_http_dsa_hello_check.h"


#define NGX_HTTP_DSA_SHOWN        24        /* bytes of a name in the log */


static int ngx_http_dsa_check_fingerprint(const char *text, size_t size,
    ngx_http_dsa_wrong_t *w);
static int ngx_http_dsa_check_family(const char *name, size_t size,
    const dsa_family_t *pool, const dsa_family_t **family,
    ngx_http_dsa_wrong_t *w);
static int ngx_http_dsa_check_name(const char *name, size_t size,
    ngx_http_dsa_wrong_t *w);
static const char *ngx_http_dsa_check_show(char *out, const char *bytes,
    size_t len);


int
ngx_http_dsa_hello_check(const dsa_link_hello_t *hello,
    const dsa_family_t *pool, const dsa_family_t **family,
    ngx_http_dsa_wrong_t *w)
{
    w->name = "a hello";

    if (ngx_http_dsa_wrong_range(w, "context_length", hello->context_length, 2,
                                 UINT32_MAX)
        != 0
        || ngx_http_dsa_wrong_range(w, "page_tokens", hello->page_tokens, 1,
                                    UINT32_MAX)
           != 0
        || ngx_http_dsa_wrong_range(w, "ids", hello->ids, 1, UINT32_MAX) != 0)
    {
        return -1;
    }

    /* these conditions are false for NaN */

    if (!(hello->temperature >= 0 && hello->temperature <= 2)) {
        return ngx_http_dsa_wrong(w, "temperature", "with temperature %g, "
                                  "expected 0 to 2",
                                  (double) hello->temperature);
    }

    if (!(hello->top_p > 0 && hello->top_p <= 1)) {
        return ngx_http_dsa_wrong(w, "top_p", "with top_p %g, expected more "
                                  "than 0 and at most 1",
                                  (double) hello->top_p);
    }

    if (ngx_http_dsa_check_name(hello->model, sizeof(hello->model), w) != 0) {
        return -1;
    }

    if (ngx_http_dsa_check_fingerprint(hello->fingerprint,
                                       sizeof(hello->fingerprint), w)
        != 0)
    {
        return -1;
    }

    return ngx_http_dsa_check_family(hello->family, sizeof(hello->family),
                                     pool, family, w);
}


static int
ngx_http_dsa_check_family(const char *name, size_t size,
    const dsa_family_t *pool, const dsa_family_t **family,
    ngx_http_dsa_wrong_t *w)
{
    char    shown[NGX_HTTP_DSA_SHOWN * 4 + 1], names[NGX_HTTP_DSA_WRONG / 2];
    size_t  i, len, n;

    len = strnlen(name, size);

    *family = len != size ? dsa_family_find(name) : NULL;

    if (*family == NULL) {
        n = 0;
        names[0] = '\0';

        for (i = 0; dsa_families[i] != NULL && n < sizeof(names); i++) {
            n += (size_t) snprintf(names + n, sizeof(names) - n, "%s\"%s\"",
                                   i == 0 ? ""
                                   : dsa_families[i + 1] != NULL ? ", "
                                   : " or ",
                                   dsa_families[i]->name);
        }

        return ngx_http_dsa_wrong(w, "family", "with family \"%s\", expected "
                                  "%s", ngx_http_dsa_check_show(shown, name,
                                                                len),
                                  names);
    }

    if (pool != NULL && pool != *family) {
        return ngx_http_dsa_wrong(w, "family", "with family \"%s\", expected "
                                  "\"%s\" as of the other engines of its "
                                  "pool", (*family)->name, pool->name);
    }

    return 0;
}


/* Hexadecimal digits; tests use other letters as well. */

static int
ngx_http_dsa_check_fingerprint(const char *text, size_t size,
    ngx_http_dsa_wrong_t *w)
{
    char    shown[NGX_HTTP_DSA_SHOWN * 4 + 1];
    size_t  i, len;

    len = strnlen(text, size);

    for (i = 0; i < len && isalnum((unsigned char) text[i]); i++) {
        /* void */
    }

    if (len != 0 && len != size && i == len) {
        return 0;
    }

    return ngx_http_dsa_wrong(w, "fingerprint", "with fingerprint \"%s\", "
                              "expected 1 to %zu letters and digits",
                              ngx_http_dsa_check_show(shown, text, len),
                              size - 1);
}


/*
 * A name is written to logs, JSON and labels of metrics: UTF-8 without control
 * characters, and not empty.
 */

static int
ngx_http_dsa_check_name(const char *name, size_t size,
    ngx_http_dsa_wrong_t *w)
{
    int             n;
    char            shown[NGX_HTTP_DSA_SHOWN * 4 + 1];
    size_t          i, len;
    const uint8_t  *p = (const uint8_t *) name;

    len = strnlen(name, size);

    for (i = 0; i < len; i += (size_t) n) {
        n = dsa_utf8_char(p + i, len - i);

        /* C0, DEL and C1 */

        if (n <= 0 || p[i] < 0x20 || p[i] == 0x7f
            || (p[i] == 0xc2 && p[i + 1] < 0xa0))
        {
            break;
        }
    }

    if (len != 0 && len != size && i == len) {
        return 0;
    }

    return ngx_http_dsa_wrong(w, "model", "with model \"%s\", expected 1 to "
                              "%zu bytes of UTF-8 without control characters",
                              ngx_http_dsa_check_show(shown, name, len),
                              size - 1);
}


/* The first bytes of a name, with escapes for all but printable ASCII. */

static const char *
ngx_http_dsa_check_show(char *out, const char *bytes, size_t len)
{
    char    *p;
    size_t   i;

    p = out;
    *p = '\0';

    for (i = 0; i < len && i < NGX_HTTP_DSA_SHOWN; i++) {
        p += sprintf(p, bytes[i] >= 0x20 && bytes[i] < 0x7f
                        && bytes[i] != '"' && bytes[i] != '\\'
                        ? "%c" : "\\x%02x", (unsigned char) bytes[i]);
    }

    return out;
}
