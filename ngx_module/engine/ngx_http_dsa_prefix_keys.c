
/*
 * Copyright (C) The nginx-dsa authors
 */


#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ngx_http_dsa_prefix_keys.h"


/* The boundaries of a prompt so far; each array is used as a ring. */

typedef struct {
    uint32_t                    n;
    uint32_t                    n_questions;
    uint32_t                    n_blocks;
    ngx_http_dsa_prefix_key_t   first;
    ngx_http_dsa_prefix_key_t   last[NGX_HTTP_DSA_PREFIX_LAST];
    ngx_http_dsa_prefix_key_t   questions[NGX_HTTP_DSA_PREFIX_QUESTIONS];
    ngx_http_dsa_prefix_key_t   blocks[NGX_HTTP_DSA_PREFIX_BLOCKS];
} ngx_http_dsa_boundaries_t;


static uint32_t ngx_http_dsa_prefix_marks(const dsa_control_tokens_t *tokens,
    const dsa_segment_t *segment);
static uint64_t ngx_http_dsa_prefix_hash(const uint8_t *secret, uint64_t hash,
    uint64_t kind, dsa_str_t text);
static void ngx_http_dsa_prefix_select(ngx_http_dsa_prefix_keys_t *keys,
    const ngx_http_dsa_boundaries_t *b);
static void ngx_http_dsa_prefix_insert(ngx_http_dsa_prefix_keys_t *keys,
    const ngx_http_dsa_prefix_key_t *key);


_Static_assert(NGX_HTTP_DSA_PREFIX_SECRET >= XXH3_SECRET_SIZE_MIN,
               "the secret is long enough for XXH3");


void
ngx_http_dsa_prefix_keys(ngx_http_dsa_prefix_keys_t *keys,
    const dsa_prompt_t *prompt, const dsa_control_tokens_t *tokens,
    const uint8_t *secret, const uint8_t *tenant, dsa_str_t model)
{
    uint32_t                     i, marks, before;
    dsa_str_t                    text;
    const dsa_segment_t         *segment;
    ngx_http_dsa_prefix_key_t    end;
    ngx_http_dsa_boundaries_t    b;

    b.n = 0;
    b.n_questions = 0;
    b.n_blocks = 0;

    end.bytes = 0;
    end.key = ngx_http_dsa_prefix_hash(secret, 0, 0,
                                       dsa_str((const char *) tenant,
                                               NGX_HTTP_DSA_PREFIX_TENANT));
    end.key = ngx_http_dsa_prefix_hash(secret, end.key, 0, model);

    before = 0;

    for (i = 0; i < prompt->n; i++) {
        segment = &prompt->segments[i];
        marks = ngx_http_dsa_prefix_marks(tokens, segment);

        if (end.bytes >= NGX_HTTP_DSA_PREFIX_MIN
            && ((before & DSA_MARK_END) != 0 || (marks & DSA_MARK_BEGIN) != 0))
        {
            if (b.n == 0) {
                b.first = end;
            }

            b.last[b.n++ % NGX_HTTP_DSA_PREFIX_LAST] = end;

            if ((before & DSA_MARK_ANSWER) != 0) {
                b.questions[b.n_questions++ % NGX_HTTP_DSA_PREFIX_QUESTIONS] =
                                                                          end;
            }
        }

        text = segment->text;

        while (text.len > NGX_HTTP_DSA_PREFIX_BLOCK) {
            end.key = ngx_http_dsa_prefix_hash(secret, end.key, segment->kind,
                                  dsa_str(text.data,
                                          NGX_HTTP_DSA_PREFIX_BLOCK));
            end.bytes += NGX_HTTP_DSA_PREFIX_BLOCK;

            text.data += NGX_HTTP_DSA_PREFIX_BLOCK;
            text.len -= NGX_HTTP_DSA_PREFIX_BLOCK;

            b.blocks[b.n_blocks++ % NGX_HTTP_DSA_PREFIX_BLOCKS] = end;
        }

        end.key = ngx_http_dsa_prefix_hash(secret, end.key, segment->kind,
                                           text);
        end.bytes += text.len;

        before = marks;
    }

    ngx_http_dsa_prefix_select(keys, &b);
}


/* Returns the marks of a segment; 0 for text. */

static uint32_t
ngx_http_dsa_prefix_marks(const dsa_control_tokens_t *tokens,
    const dsa_segment_t *segment)
{
    uint32_t  token;

    if (segment->kind != DSA_SEGMENT_CONTROL) {
        return 0;
    }

    token = dsa_control_token_find(tokens, segment->text);

    return token < tokens->n ? tokens->elts[token].marks : 0;
}


/* Returns the hash of the prefix that is one segment longer. */

static uint64_t
ngx_http_dsa_prefix_hash(const uint8_t *secret, uint64_t hash, uint64_t kind,
    dsa_str_t text)
{
    uint64_t  link[3];

    link[0] = hash;
    link[1] = kind;
    link[2] = XXH3_64bits_withSecret(text.data, text.len, secret,
                                     NGX_HTTP_DSA_PREFIX_SECRET);

    return XXH3_64bits_withSecret(link, sizeof(link), secret,
                                  NGX_HTTP_DSA_PREFIX_SECRET);
}


static void
ngx_http_dsa_prefix_select(ngx_http_dsa_prefix_keys_t *keys,
    const ngx_http_dsa_boundaries_t *b)
{
    uint32_t  i;

    keys->n = 0;

    for (i = 0; i < NGX_HTTP_DSA_PREFIX_LAST && i < b->n; i++) {
        ngx_http_dsa_prefix_insert(keys, &b->last[i]);
    }

    for (i = 0; i < NGX_HTTP_DSA_PREFIX_QUESTIONS && i < b->n_questions; i++) {
        ngx_http_dsa_prefix_insert(keys, &b->questions[i]);
    }

    for (i = 0; i < NGX_HTTP_DSA_PREFIX_BLOCKS && i < b->n_blocks; i++) {
        ngx_http_dsa_prefix_insert(keys, &b->blocks[i]);
    }

    if (b->n != 0) {
        ngx_http_dsa_prefix_insert(keys, &b->first);
    }
}


/*
 * Inserts a key.  The longest prefix is first, and each length is stored once.
 */

static void
ngx_http_dsa_prefix_insert(ngx_http_dsa_prefix_keys_t *keys,
    const ngx_http_dsa_prefix_key_t *key)
{
    uint32_t  i, k;

    for (i = 0; i < keys->n && keys->elts[i].bytes > key->bytes; i++) {
        /* void */
    }

    if (i < keys->n && keys->elts[i].bytes == key->bytes) {
        return;
    }

    for (k = keys->n++; k > i; k--) {
        keys->elts[k] = keys->elts[k - 1];
    }

    keys->elts[i] = *key;
}
