
/*
 * Copyright (C) The nginx-dsa authors
 */


#define XXH_INLINE_ALL
#include <xxhash.h>

#include "context/prompt_keys.h"


/* The boundaries of a prompt so far; each array is used as a ring. */

typedef struct {
    uint32_t            n;
    uint32_t            n_questions;
    uint32_t            n_blocks;
    dsa_prompt_key_t    first;
    dsa_prompt_key_t    last[DSA_PROMPT_LAST];
    dsa_prompt_key_t    questions[DSA_PROMPT_QUESTIONS];
    dsa_prompt_key_t    blocks[DSA_PROMPT_BLOCKS];
} dsa_prompt_boundaries_t;


static uint32_t dsa_prompt_marks(const dsa_control_tokens_t *tokens,
    const dsa_segment_t *segment);
static uint64_t dsa_prompt_hash(const uint8_t *secret, uint64_t hash,
    uint64_t kind, dsa_str_t text);
static void dsa_prompt_select(dsa_prompt_keys_t *keys,
    const dsa_prompt_boundaries_t *b);
static void dsa_prompt_insert(dsa_prompt_keys_t *keys,
    const dsa_prompt_key_t *key);


_Static_assert(DSA_PROMPT_SECRET >= XXH3_SECRET_SIZE_MIN,
               "the secret is long enough for XXH3");


void
dsa_prompt_keys(dsa_prompt_keys_t *keys, const dsa_prompt_t *prompt,
    const dsa_control_tokens_t *tokens, const uint8_t *secret,
    const uint8_t *tenant, dsa_str_t model)
{
    uint32_t                  i, marks, before;
    dsa_str_t                 text;
    dsa_prompt_key_t          end;
    const dsa_segment_t      *segment;
    dsa_prompt_boundaries_t   b;

    b.n = 0;
    b.n_questions = 0;
    b.n_blocks = 0;

    end.bytes = 0;
    end.key = dsa_prompt_hash(secret, 0, 0,
                              dsa_str((const char *) tenant,
                                      DSA_PROMPT_TENANT));
    end.key = dsa_prompt_hash(secret, end.key, 0, model);

    before = 0;

    for (i = 0; i < prompt->n; i++) {
        segment = &prompt->segments[i];
        marks = dsa_prompt_marks(tokens, segment);

        if (end.bytes >= DSA_PROMPT_MIN
            && ((before & DSA_MARK_END) != 0 || (marks & DSA_MARK_BEGIN) != 0))
        {
            if (b.n == 0) {
                b.first = end;
            }

            b.last[b.n++ % DSA_PROMPT_LAST] = end;

            if ((before & DSA_MARK_ANSWER) != 0) {
                b.questions[b.n_questions++ % DSA_PROMPT_QUESTIONS] = end;
            }
        }

        text = segment->text;

        while (text.len > DSA_PROMPT_BLOCK) {
            end.key = dsa_prompt_hash(secret, end.key, segment->kind,
                                      dsa_str(text.data, DSA_PROMPT_BLOCK));
            end.bytes += DSA_PROMPT_BLOCK;

            text.data += DSA_PROMPT_BLOCK;
            text.len -= DSA_PROMPT_BLOCK;

            b.blocks[b.n_blocks++ % DSA_PROMPT_BLOCKS] = end;
        }

        end.key = dsa_prompt_hash(secret, end.key, segment->kind, text);
        end.bytes += text.len;

        before = marks;
    }

    dsa_prompt_select(keys, &b);
}


/* Returns the marks of a segment; 0 for text. */

static uint32_t
dsa_prompt_marks(const dsa_control_tokens_t *tokens,
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
dsa_prompt_hash(const uint8_t *secret, uint64_t hash, uint64_t kind,
    dsa_str_t text)
{
    uint64_t  link[3];

    link[0] = hash;
    link[1] = kind;
    link[2] = XXH3_64bits_withSecret(text.data, text.len, secret,
                                     DSA_PROMPT_SECRET);

    return XXH3_64bits_withSecret(link, sizeof(link), secret,
                                  DSA_PROMPT_SECRET);
}


static void
dsa_prompt_select(dsa_prompt_keys_t *keys,
    const dsa_prompt_boundaries_t *b)
{
    uint32_t  i;

    keys->n = 0;

    for (i = 0; i < DSA_PROMPT_LAST && i < b->n; i++) {
        dsa_prompt_insert(keys, &b->last[i]);
    }

    for (i = 0; i < DSA_PROMPT_QUESTIONS && i < b->n_questions; i++) {
        dsa_prompt_insert(keys, &b->questions[i]);
    }

    for (i = 0; i < DSA_PROMPT_BLOCKS && i < b->n_blocks; i++) {
        dsa_prompt_insert(keys, &b->blocks[i]);
    }

    if (b->n != 0) {
        dsa_prompt_insert(keys, &b->first);
    }
}


/*
 * Inserts a key.  The longest prefix is first, and each length is stored once.
 */

static void
dsa_prompt_insert(dsa_prompt_keys_t *keys,
    const dsa_prompt_key_t *key)
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
