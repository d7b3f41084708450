
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOKENIZER_H_INCLUDED_
#define _DSA_TOKENIZER_H_INCLUDED_


#include "base/error.h"
#include "base/str.h"


/*
 * A byte-level BPE tokenizer read from a Hugging Face tokenizer.json: Split
 * patterns (PCRE2, JIT), ByteLevel, merges in both notations, added tokens.
 * Immutable after it is opened; a dsa_tokenizer_work_t carries the scratch
 * memory of one thread.
 */

typedef struct dsa_tokenizer_s       dsa_tokenizer_t;
typedef struct dsa_tokenizer_work_s  dsa_tokenizer_work_t;


/* Token ids under construction; ids are the owner's, freed with free(). */

typedef struct {
    uint32_t   *ids;
    uint32_t    n;
    uint32_t    size;
} dsa_tokens_t;


dsa_tokenizer_t *dsa_tokenizer_open(const char *path, dsa_err_t *err);
dsa_tokenizer_t *dsa_tokenizer_read(const char *name, const void *json,
    size_t len, dsa_err_t *err);
void dsa_tokenizer_close(dsa_tokenizer_t *t);       /* NULL is allowed */

dsa_tokenizer_work_t *dsa_tokenizer_work_create(const dsa_tokenizer_t *t);
void dsa_tokenizer_work_destroy(dsa_tokenizer_work_t *w);

/*
 * Appends the ids of text to out.  Text is never recognized as an added token
 * here, whatever it spells.  Any bytes are accepted: what is not UTF-8 passes
 * as bytes.  At most max ids are allowed in out (DSA_AGAIN when there are
 * more: it ends early on a prompt that cannot fit, and takes memory only for
 * what can).  Time is linear in len, but for a logarithm where no pattern
 * divides the text.  Unless DSA_OK comes back, out may end with the ids of a
 * part of text.
 */
int dsa_tokenize(const dsa_tokenizer_t *t, dsa_tokenizer_work_t *w,
    dsa_str_t text, uint32_t max, dsa_tokens_t *out, dsa_err_t *err);

/* The same, but added tokens that stand in the text are recognized. */
int dsa_tokenize_special(const dsa_tokenizer_t *t, dsa_tokenizer_work_t *w,
    dsa_str_t text, uint32_t max, dsa_tokens_t *out, dsa_err_t *err);

/* One id at the end; DSA_ERROR when out of memory. */
int dsa_tokens_push(dsa_tokens_t *tokens, uint32_t id);

/* The id of an added token by its exact content, -1 when there is none. */
int64_t dsa_tokenizer_special(const dsa_tokenizer_t *t, dsa_str_t content);

/*
 * A token's own bytes (an added token's content); they live as long as t.
 * Length 0 for an id that is not in the vocabulary.
 */
dsa_str_t dsa_token_bytes(const dsa_tokenizer_t *t, uint32_t id);

/* 1 for an added token. */
int dsa_token_is_special(const dsa_tokenizer_t *t, uint32_t id);

/* One more than the highest id. */
uint32_t dsa_tokenizer_size(const dsa_tokenizer_t *t);


/*
 * Detokenizing that never splits a UTF-8 character: bytes of an incomplete
 * character are held back until a later token completes it; bytes that
 * cannot become a character turn into U+FFFD, as in Python's
 * bytes.decode(errors="replace").
 */

typedef struct {
    uint8_t     held[4];
    uint32_t    n_held;
} dsa_detokenizer_t;

/* Zero a dsa_detokenizer_t to start.  Writes at most 3 * (len + 4) bytes. */
size_t dsa_detokenize(dsa_detokenizer_t *d, dsa_str_t bytes, char *out);

/* What is still held back, as U+FFFD; at most 12 bytes. */
size_t dsa_detokenize_end(dsa_detokenizer_t *d, char *out);


#endif /* _DSA_TOKENIZER_H_INCLUDED_ */
