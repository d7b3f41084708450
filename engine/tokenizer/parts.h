
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOKENIZER_PARTS_H_INCLUDED_
#define _DSA_TOKENIZER_PARTS_H_INCLUDED_


#define PCRE2_CODE_UNIT_WIDTH  8

#include <pcre2.h>

#include "base/map.h"
#include "base/utf8.h"
#include "engine/tokenizer/tokenizer.h"


/*
 * Declarations that the files of this folder share.  load.c and the files
 * named load_*.c fill dsa_tokenizer_t from tokenizer.json.  A text then passes
 * through added.c (added tokens), tokenizer.c (UTF-8), split.c (pre-tokens)
 * and bpe.c (merges).
 */

#define DSA_TOKENIZER_NONE       0xffffffff
#define DSA_TOKENIZER_MAX_ID     (1 << 22)      /* bounds the tables by id */
#define DSA_TOKENIZER_MAX_STAGE  16


/* The merge of a pair of adjacent ids; a free bucket has the rank NONE. */

typedef struct {
    uint64_t                   pair;            /* left << 32 | right */
    uint32_t                   rank;            /* the lowest merges first */
    uint32_t                   id;              /* of the merged token */
} dsa_merge_t;


typedef struct {
    dsa_merge_t               *merge;           /* [mask + 1] by hash */
    uint32_t                   mask;
    uint32_t                  *id;              /* [merges] by rank */
    uint32_t                   byte[256];       /* the token of a byte */
    uint32_t                   ignore_merges;   /* 1: a pre-token that is an
                                                   entry is not split */
    dsa_map_t                  whole;           /* then: bytes to ids */
    uint32_t                   longest[256];    /* bytes of the longest entry
                                                   that begins with a byte */
} dsa_bpe_t;


/* The behaviors of a Split, with the names of Hugging Face's tokenizers. */

typedef enum {
    DSA_SPLIT_ISOLATED = 0,
    DSA_SPLIT_REMOVED,
    DSA_SPLIT_MERGED_WITH_PREVIOUS,
    DSA_SPLIT_MERGED_WITH_NEXT,
    DSA_SPLIT_CONTIGUOUS
} dsa_split_behavior_e;


typedef struct {
    pcre2_code                *code;            /* NULL: does not cut */
    dsa_split_behavior_e       behavior;
    uint32_t                   invert;
    uint32_t                   prefix_space;    /* 1: a piece without a space
                                                   at its start gets one */
} dsa_split_stage_t;


/* Added tokens as a trie over bytes; node 0 is the root. */

typedef struct {
    uint32_t                   child;           /* 0: none */
    uint32_t                   sibling;         /* 0: none */
    uint32_t                   added;           /* index of the token that ends
                                                   here, or NONE */
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
    uint8_t                    lstrip;          /* match includes white space
                                                   before it */
    uint8_t                    rstrip;          /* and after it */
    uint8_t                    single_word;     /* only at word boundaries */
} dsa_added_t;


struct dsa_tokenizer_s {
    dsa_bpe_t                  bpe;

    dsa_split_stage_t          stage[DSA_TOKENIZER_MAX_STAGE];
    uint32_t                   n_stages;

    dsa_added_t               *added;
    uint32_t                   n_added;
    dsa_map_t                  added_id;        /* content to id */
    dsa_trie_t                 trie[2];         /* normalized is false, true;
                                                   searched in this order */
    pcre2_code                *word;            /* matches a character of a
                                                   word; NULL if unused */
    pcre2_code                *space;           /* one of white space */

    dsa_str_t                 *token;           /* [size] bytes by id */
    uint8_t                   *special;         /* [size] 1: an added token */
    uint32_t                   size;
    char                      *bytes;           /* of all tokens */
};


/*
 * A cache of the ids of short pre-tokens: direct-mapped, so that it is bounded,
 * with buckets of one cache line.  A free bucket has the length 0.
 */

#define DSA_CACHE_BUCKETS  16384
#define DSA_CACHE_BYTES  30
#define DSA_CACHE_IDS    8

typedef struct {
    uint8_t                    len;
    uint8_t                    n;
    char                       bytes[DSA_CACHE_BYTES];
    uint32_t                   ids[DSA_CACHE_IDS];
} dsa_cache_bucket_t;

_Static_assert(sizeof(dsa_cache_bucket_t) == 64,
               "a bucket is not a cache line");


typedef struct {
    uint32_t                   id;
    uint32_t                   prev;            /* NONE: the first */
    uint32_t                   next;            /* NONE: the last */
    uint32_t                   rank;            /* of the pair with next */
} dsa_symbol_t;


struct dsa_tokenizer_work_s {
    dsa_cache_bucket_t        *cache;

    dsa_symbol_t              *symbol;          /* [n_symbols] */
    uint64_t                  *heap;            /* [2 * n_symbols] */
    uint32_t                   n_symbols;

    char                      *prefixed;        /* a piece after its space */
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


/* bpe.c.  Allocates n merges; DSA_ERROR when out of memory. */
int dsa_bpe_create(dsa_bpe_t *bpe, size_t n);
void dsa_bpe_free(dsa_bpe_t *bpe);

/*
 * Adds a merge; rank is below n.  If a pair is added twice, the later rank is
 * used.
 */
void dsa_bpe_add(dsa_bpe_t *bpe, uint32_t left, uint32_t right, uint32_t rank,
    uint32_t id);

/* Appends the ids of one pre-token; DSA_AGAIN as dsa_tokenize(). */
int dsa_bpe_piece(dsa_tokenizer_run_t *run, const char *data, size_t len);

/* Frees the memory of pre-tokens that were unusually long. */
void dsa_bpe_trim(dsa_tokenizer_work_t *w);

/* Appends an id to the output.  DSA_AGAIN: it has run->max ids already. */
int dsa_tokens_add(dsa_tokenizer_run_t *run, uint32_t id);


/*
 * regex.c.  Compile a pattern in Oniguruma's syntax, and one in PCRE2's, to
 * machine code.  NULL with err, which begins with where.
 */
pcre2_code *dsa_split_compile(const char *where, dsa_str_t pattern,
    dsa_err_t *err);
pcre2_code *dsa_pattern_compile(const char *where, dsa_str_t pattern,
    dsa_err_t *err);


/*
 * split.c.  Cuts data, which is valid UTF-8, from this stage on and passes the
 * pre-tokens to dsa_bpe_piece().
 */
int dsa_split_run(dsa_tokenizer_run_t *run, uint32_t stage, const char *data,
    size_t len);


/*
 * added.c.  added: the token's index.  DSA_ERROR when out of memory or when
 * content is present already.
 */
int dsa_trie_add(dsa_trie_t *trie, dsa_str_t content, uint32_t added);
void dsa_trie_free(dsa_trie_t *trie);

/*
 * Cuts the added tokens out of text, those of trie[0] first, and passes the
 * text between them to dsa_split_text().
 */
int dsa_added_run(dsa_tokenizer_run_t *run, uint32_t trie, dsa_str_t text);


/* tokenizer.c.  Tokenizes any bytes without recognizing added tokens. */
int dsa_split_text(dsa_tokenizer_run_t *run, dsa_str_t text);


/* load.c.  DSA_ERROR with err, which begins with name. */
int dsa_tokenizer_load(dsa_tokenizer_t *t, const char *name, dsa_str_t json,
    dsa_err_t *err);


#endif /* _DSA_TOKENIZER_PARTS_H_INCLUDED_ */
