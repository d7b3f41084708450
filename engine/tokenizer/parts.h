
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOKENIZER_PARTS_H_INCLUDED_
#define _DSA_TOKENIZER_PARTS_H_INCLUDED_


#define PCRE2_CODE_UNIT_WIDTH  8

#include <pcre2.h>

#include "base/utf8.h"
#include "engine/tokenizer/tokenizer.h"


/*
 * What the files of the tokenizer share.  tokenizer_file.c fills the structure
 * below from tokenizer.json; a text then goes through tokenizer.c (added
 * tokens, UTF-8), tokenizer_split.c (pre-tokens) and tokenizer_bpe.c (merges).
 */

#define DSA_TOKENIZER_NONE       0xffffffff
#define DSA_TOKENIZER_MAX_ID     (1 << 22)      /* bounds the tables by id */
#define DSA_TOKENIZER_MAX_STAGE  16


/* From bytes to an id: open addressing, size is a power of two. */

typedef struct {
    dsa_str_t                  key;             /* the owner's bytes */
    uint32_t                   id;
    uint32_t                   used;
} dsa_vocab_slot_t;


typedef struct {
    dsa_vocab_slot_t          *slot;
    uint32_t                   mask;
} dsa_vocab_t;


/* A pair of adjacent ids to its rank, open addressing; empty: rank NONE. */

typedef struct {
    uint64_t                   pair;            /* left << 32 | right */
    uint32_t                   rank;            /* lower merges first */
    uint32_t                   id;              /* what the pair becomes */
} dsa_merge_t;


typedef struct {
    dsa_merge_t               *merge;
    uint32_t                   mask;
    uint32_t                  *id;              /* [merges] by rank */
    uint32_t                   byte[256];       /* a byte's own token */
    dsa_vocab_t                whole;           /* ignore_merges: pre-tokens
                                                   that are taken as they are;
                                                   else without slots */
    uint32_t                   longest[256];    /* bytes, of the entries that
                                                   begin with this one */
} dsa_bpe_t;


/* What a match of a Split becomes, as Hugging Face's tokenizers name it. */

typedef enum {
    DSA_SPLIT_ISOLATED = 0,
    DSA_SPLIT_REMOVED,
    DSA_SPLIT_MERGED_WITH_PREVIOUS,
    DSA_SPLIT_MERGED_WITH_NEXT,
    DSA_SPLIT_CONTIGUOUS
} dsa_split_behavior_e;


typedef struct {
    pcre2_code                *code;
    dsa_split_behavior_e       behavior;
    uint32_t                   invert;
    uint32_t                   prefix_space;    /* before this stage, a piece
                                                   that has none gets one */
} dsa_split_stage_t;


/* Added tokens as a trie over bytes; node 0 is the root. */

typedef struct {
    uint32_t                   child;           /* 0: none */
    uint32_t                   sibling;         /* 0: none */
    uint32_t                   added;           /* index; NONE: no token */
    uint8_t                    byte;
} dsa_trie_node_t;


typedef struct {
    dsa_trie_node_t           *node;            /* NULL: no tokens */
    uint32_t                   n;
    uint32_t                   size;
    uint32_t                   first[256];      /* the root's children */
} dsa_trie_t;


typedef struct {
    dsa_str_t                  content;
    uint32_t                   id;
    uint8_t                    lstrip;          /* takes white space before */
    uint8_t                    rstrip;          /* and after */
    uint8_t                    single_word;     /* no word character beside */
} dsa_added_t;


struct dsa_tokenizer_s {
    dsa_bpe_t                  bpe;

    dsa_split_stage_t          stage[DSA_TOKENIZER_MAX_STAGE];
    uint32_t                   n_stages;

    dsa_added_t               *added;
    uint32_t                   n_added;
    dsa_vocab_t                added_id;        /* content to id */
    dsa_trie_t                 trie[2];         /* normalized false, true: the
                                                   order they are cut in */
    pcre2_code                *word;            /* one word character, NULL
                                                   where nothing needs it */
    pcre2_code                *space;           /* one of white space, too */

    dsa_str_t                 *token;           /* [size] bytes by id */
    uint8_t                   *special;         /* [size] 1: an added token */
    uint32_t                   size;
    char                      *bytes;           /* what all of these point to */
};


/*
 * The memory of short pre-tokens: direct-mapped, so bounded, and one line of
 * cache each.  len 0: empty.
 */

#define DSA_CACHE_SLOTS  16384
#define DSA_CACHE_BYTES  30
#define DSA_CACHE_IDS    8

typedef struct {
    uint8_t                    len;
    uint8_t                    n;
    char                       bytes[DSA_CACHE_BYTES];
    uint32_t                   ids[DSA_CACHE_IDS];
} dsa_cache_slot_t;


typedef struct {
    uint32_t                   id;
    uint32_t                   prev;            /* NONE: the first */
    uint32_t                   next;            /* NONE: the last */
    uint32_t                   rank;            /* of the pair with next */
} dsa_symbol_t;


struct dsa_tokenizer_work_s {
    dsa_cache_slot_t          *cache;

    dsa_symbol_t              *symbol;          /* [n_symbols] */
    uint64_t                  *heap;            /* [2 * n_symbols] */
    uint32_t                   n_symbols;

    char                      *prefixed;        /* a piece with its space */
    size_t                     prefixed_size;

    pcre2_match_data          *match;
    pcre2_match_context       *context;
    pcre2_jit_stack           *stack;
};


/* One call of dsa_tokenize(). */

typedef struct {
    const dsa_tokenizer_t     *t;
    dsa_tokenizer_work_t      *w;
    dsa_tokens_t              *out;
    uint32_t                   max;
    dsa_err_t                 *err;
} dsa_tokenizer_run_t;


/* tokenizer_vocab.c.  Room for n keys; DSA_ERROR when out of memory. */
int dsa_vocab_create(dsa_vocab_t *v, size_t n);
void dsa_vocab_free(dsa_vocab_t *v);

/* Keeps key's pointer.  DSA_ERROR when the key is there already. */
int dsa_vocab_add(dsa_vocab_t *v, dsa_str_t key, uint32_t id);

/* NONE when there is no such key. */
uint32_t dsa_vocab_find(const dsa_vocab_t *v, dsa_str_t key);


/* tokenizer_bpe.c.  Room for n merges; DSA_ERROR when out of memory. */
int dsa_bpe_create(dsa_bpe_t *bpe, size_t n);
void dsa_bpe_free(dsa_bpe_t *bpe);

/* rank: below n.  Of a pair that is given twice the later rank counts. */
void dsa_bpe_add(dsa_bpe_t *bpe, uint32_t left, uint32_t right, uint32_t rank,
    uint32_t id);

/* Appends the ids of one pre-token; DSA_AGAIN as dsa_tokenize(). */
int dsa_bpe_piece(dsa_tokenizer_run_t *run, const char *data, size_t len);

/* Gives back the memory that an extraordinary pre-token took. */
void dsa_bpe_trim(dsa_tokenizer_work_t *w);

/* One id at the end of the run's output; DSA_AGAIN when it is full. */
int dsa_tokens_add(dsa_tokenizer_run_t *run, uint32_t id);


/*
 * tokenizer_regex.c.  A pattern in Oniguruma's syntax, and one in PCRE2's, to
 * machine code.  NULL with err, which begins with where.
 */
pcre2_code *dsa_split_compile(const char *where, dsa_str_t pattern,
    dsa_err_t *err);
pcre2_code *dsa_pattern_compile(const char *where, dsa_str_t pattern,
    dsa_err_t *err);


/*
 * tokenizer_split.c.  data: valid UTF-8; its pre-tokens from this stage on go
 * to dsa_bpe_piece().
 */
int dsa_split_run(dsa_tokenizer_run_t *run, uint32_t stage, const char *data,
    size_t len);


/*
 * tokenizer_added.c.  added: the token's index.  DSA_ERROR when out of memory
 * or when content is there already.
 */
int dsa_trie_add(dsa_trie_t *trie, dsa_str_t content, uint32_t added);
void dsa_trie_free(dsa_trie_t *trie);

/*
 * Cuts the added tokens out of text, those of trie[0] first; what is left goes
 * to dsa_split_text().
 */
int dsa_added_run(dsa_tokenizer_run_t *run, uint32_t trie, dsa_str_t text);


/* tokenizer.c.  Any bytes, without added tokens. */
int dsa_split_text(dsa_tokenizer_run_t *run, dsa_str_t text);


/* tokenizer_file.c.  name: for error lines.  DSA_ERROR with err. */
int dsa_tokenizer_load(dsa_tokenizer_t *t, const char *name, dsa_str_t json,
    dsa_err_t *err);


#endif /* _DSA_TOKENIZER_PARTS_H_INCLUDED_ */
