
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "context/deepseek/tag.h"


static size_t dsa_tag_len(const dsa_tag_t *t);


void
dsa_tag_start(dsa_tag_t *t)
{
    t->len = 0;
}


int
dsa_tag_byte(dsa_tag_t *t, char c)
{
    size_t  n;

    if (c == '>') {
        n = dsa_tag_len(t);

        if (n == 0 || t->data[n - 1] == '"'
            || memchr(t->data, '"', n) == NULL)
        {
            return 1;
        }
    }

    /*
     * A tag that is too long keeps its beginning and its last byte, which the
     * check above needs.  Its length marks it as too long for dsa_tag_name().
     */

    if (t->len == DSA_TAG_MAX) {
        t->data[DSA_TAG_MAX - 1] = c;

    } else {
        t->data[t->len++] = c;
    }

    return 0;
}


dsa_str_t
dsa_tag_name(const dsa_tag_t *t, int *string)
{
    size_t       i;
    dsa_str_t    rest;
    const char  *name;

    static const dsa_str_t  ends[] = {
        dsa_string("\" string=\"true\""),
        dsa_string("\" string=\"false\""),
        dsa_string("\"")
    };

    *string = 0;

    if (t->len == DSA_TAG_MAX) {
        return dsa_str(NULL, 0);
    }

    rest = dsa_str(t->data, dsa_tag_len(t));
    name = memmem(rest.data, rest.len, "name=\"", 6);

    if (name == NULL) {
        return dsa_str(NULL, 0);
    }

    name += 6;
    rest = dsa_str(name, rest.len - (name - rest.data));

    for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (rest.len >= ends[i].len
            && memcmp(rest.data + rest.len - ends[i].len, ends[i].data,
                      ends[i].len)
               == 0)
        {
            *string = i == 0;
            rest.len -= ends[i].len;

            return rest.len <= DSA_PARSE_NAME ? rest : dsa_str(NULL, 0);
        }
    }

    return dsa_str(NULL, 0);
}


/* The length without blanks at the end. */

static size_t
dsa_tag_len(const dsa_tag_t *t)
{
    size_t  n;

    for (n = t->len; n != 0; n--) {
        if (t->data[n - 1] != ' ' && t->data[n - 1] != '\n') {
            break;
        }
    }

    return n;
}
