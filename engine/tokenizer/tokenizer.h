
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOKENIZER_H_INCLUDED_
#define _DSA_TOKENIZER_H_INCLUDED_


#include "base/error.h"
#include "base/str.h"


/*
 * A byte-level BPE tokenizer, read from a Hugging Face tokenizer.json: Split
 * patterns (PCRE2, JIT), ByteLevel, merges in both notations, added tokens.
 * It is not changed after it is opened, so threads may share it.  Each thread
 * needs its own dsa_tokenizer_work_t as scratch memory.
 */

typedef struct dsa_tokenizer_s       dsa_tokenizer_t;
typedef struct dsa_tokenizer_work_s  dsa_tokenizer_work_t;


/* A growing list of token ids; its owner frees ids with free(). */

typedef struct {
    uint32_t   *ids;
    uint32_t    n;
    uint32_t    size;
} dsa_tokens_t;


/* Open a tokenizer from a file, or from its text in memory.  NULL with err. */
dsa_tokenizer_t *dsa_tokenizer_open(const char *path, dsa_err_t *err);
dsa_tokenizer_t *dsa_tokenizer_read(const char *name, const void *json,
    size_t len, dsa_err_t *err);
void dsa_tokenizer_close(dsa_tokenizer_t *t);       /* NULL is allowed */

/* Creates scratch memory.  NULL: out of memory. */
dsa_tokenizer_work_t *dsa_tokenizer_work_create(const dsa_tokenizer_t *t);
void dsa_tokenizer_work_destroy(dsa_tokenizer_work_t *w); /* NULL is allowed */

/*
 * Appends the ids of text to out.  No part of text becomes an added token,
 * even if it is equal to one.  text may be any bytes; those that are not UTF-8
 * become the tokens of the bytes.  The time is linear in the length, or O(n
 * log n) in the length of a part that no pattern divides.
 *
 * DSA_AGAIN: out would have more than max ids; this is found early, so that a
 * prompt that cannot fit takes little time and memory.  DSA_ERROR with err:
 * out of memory, or a pattern failed.  In both cases out may end with the ids
 * of a part of text.
 */
int dsa_tokenize(const dsa_tokenizer_t *t, dsa_tokenizer_work_t *w,
    dsa_str_t text, uint32_t max, dsa_tokens_t *out, dsa_err_t *err);

/* The same, but added tokens in the text are recognized. */
int dsa_tokenize_special(const dsa_tokenizer_t *t, dsa_tokenizer_work_t *w,
    dsa_str_t text, uint32_t max, dsa_tokens_t *out, dsa_err_t *err);

/* Appends one id; DSA_ERROR when out of memory. */
int dsa_tokens_push(dsa_tokens_t *tokens, uint32_t id);

/* Returns the id of the added token with exactly this content, or -1. */
int64_t dsa_tokenizer_special(const dsa_tokenizer_t *t, dsa_str_t content);

/*
 * Returns the bytes of a token, for an added token its content; they live as
 * long as t.  The length is 0 if no token has the id.
 */
dsa_str_t dsa_token_bytes(const dsa_tokenizer_t *t, uint32_t id);

/* Returns 1 for an added token. */
int dsa_token_is_special(const dsa_tokenizer_t *t, uint32_t id);

/* Returns one more than the highest id. */
uint32_t dsa_tokenizer_size(const dsa_tokenizer_t *t);


/*
 * Detokenizes in pieces without splitting a UTF-8 character: the bytes of an
 * incomplete character stay pending until a later token completes it.  Bytes
 * that cannot become a character are replaced by U+FFFD, exactly as in
 * Python's bytes.decode(errors="replace").
 */

typedef struct {
    uint8_t     pending[4];
    uint32_t    n_pending;
} dsa_detokenizer_t;

/*
 * A zeroed dsa_detokenizer_t is at the start of a text.  Returns the number of
 * bytes written to out, at most 3 * (bytes.len + 4).
 */
size_t dsa_detokenize(dsa_detokenizer_t *d, dsa_str_t bytes, char *out);

/* Writes pending bytes as U+FFFD, and returns their number, at most 3. */
size_t dsa_detokenize_end(dsa_detokenizer_t *d, char *out);


#endif /* _DSA_TOKENIZER_H_INCLUDED_ */
