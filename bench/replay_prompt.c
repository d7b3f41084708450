
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>
#include <string.h>

#include "bench/replay_prompt.h"
#include "engine/tokenizer/tokenizer.h"


_Static_assert(PROMPT_WORDS == 256, "a word is chosen by 8 bits");


typedef struct {
    dsa_tokenizer_t        *t;
    dsa_tokenizer_work_t   *work;
    dsa_tokens_t            tokens;
} prompt_tokenizer_t;


static int prompt_choose(prompt_words_t *words, prompt_tokenizer_t *p,
    const char *file, dsa_err_t *err);
static int prompt_is_word(prompt_tokenizer_t *p, dsa_str_t bytes);
static int prompt_parts(const trace_t *t, const trace_request_t *r, uint32_t k,
    uint32_t added);
static void prompt_block(const prompt_words_t *words, uint64_t id, uint32_t n,
    dsa_buf_t *out);


int
prompt_words(prompt_words_t *words, const char *tokenizer, dsa_err_t *err)
{
    int                 rc;
    prompt_tokenizer_t  p;

    memset(&p, 0, sizeof(p));
    p.t = dsa_tokenizer_open(tokenizer, err);

    if (p.t == NULL) {
        return DSA_ERROR;
    }

    p.work = dsa_tokenizer_work_create(p.t);

    rc = p.work == NULL ? dsa_error(err, "out of memory")
                        : prompt_choose(words, &p, tokenizer, err);

    free(p.tokens.ids);
    dsa_tokenizer_work_destroy(p.work);
    dsa_tokenizer_close(p.t);

    return rc;
}


static int
prompt_choose(prompt_words_t *words, prompt_tokenizer_t *p, const char *file,
    dsa_err_t *err)
{
    size_t     len;
    uint32_t   n, id;
    dsa_str_t  bytes;

    n = 0;

    for (len = 2; len <= PROMPT_WORD; len++) {
        for (id = 0; id < dsa_tokenizer_size(p->t); id++) {
            bytes = dsa_token_bytes(p->t, id);

            if (bytes.len != len || dsa_token_is_special(p->t, id)
                || !prompt_is_word(p, bytes))
            {
                continue;
            }

            memcpy(words->word[n], bytes.data, len);
            words->len[n] = (uint32_t) len;

            if (++n == PROMPT_WORDS) {
                return DSA_OK;
            }
        }
    }

    return dsa_error(err, "%s: %u tokens are a blank and a word of lower-case "
                     "letters; expected at least %d", file, n, PROMPT_WORDS);
}


/* 1 if the text is a blank and letters, and is encoded as one token. */

static int
prompt_is_word(prompt_tokenizer_t *p, dsa_str_t bytes)
{
    size_t  i;

    if (bytes.data[0] != ' ') {
        return 0;
    }

    for (i = 1; i < bytes.len; i++) {
        if (bytes.data[i] < 'a' || bytes.data[i] > 'z') {
            return 0;
        }
    }

    p->tokens.n = 0;

    return dsa_tokenize(p->t, p->work, bytes, 1, &p->tokens, NULL) == DSA_OK
           && p->tokens.n == 1;
}


/* splitmix64 */

static inline uint64_t
prompt_draw(uint64_t *state)
{
    uint64_t  z;

    *state += 0x9e3779b97f4a7c15;
    z = *state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;

    return z ^ z >> 31;
}


void
prompt_messages(const prompt_words_t *words, const trace_t *t,
    const trace_request_t *r, uint32_t added, dsa_buf_t *out)
{
    size_t    at;
    uint32_t  k, n, system;

    for (k = 0; k < r->n_ids && !prompt_parts(t, r, k, added); k++) {
        /* void */
    }

    system = k < r->n_ids ? k : TRACE_NONE;

    dsa_buf_printf(out, "[{\"role\":\"%s\",\"content\":\"",
                   system != TRACE_NONE ? "system" : "user");

    for (k = 0; k < r->n_ids; k++) {
        at = r->first_id + k;
        n = r->input - k * TRACE_BLOCK;
        n = n < TRACE_BLOCK ? n : TRACE_BLOCK;

        if (!prompt_parts(t, r, k, added)) {
            prompt_block(words, t->id[at], n, out);
            continue;
        }

        prompt_block(words, t->id[at], k == system ? n : n - added, out);
        dsa_buf_addz(out, "\"},{\"role\":\"user\",\"content\":\"");
    }

    dsa_buf_addz(out, "\"}]");
}


/* 1 if a message ends with block k, and another one follows. */

static int
prompt_parts(const trace_t *t, const trace_request_t *r, uint32_t k,
    uint32_t added)
{
    return added != PROMPT_ONE && k + 1 < r->n_ids && t->part[r->first_id + k];
}


/* The first n words of a block. */

static void
prompt_block(const prompt_words_t *words, uint64_t id, uint32_t n,
    dsa_buf_t *out)
{
    char      text[TRACE_BLOCK * PROMPT_WORD];
    size_t    len;
    uint32_t  i, word;
    uint64_t  state, bits;

    state = id;
    state = prompt_draw(&state);
    bits = 0;
    len = 0;

    for (i = 0; i < n; i++) {
        bits = i % 8 == 0 ? prompt_draw(&state) : bits >> 8;
        word = bits % PROMPT_WORDS;
        memcpy(text + len, words->word[word], words->len[word]);
        len += words->len[word];
    }

    dsa_buf_add(out, text, len);
}
