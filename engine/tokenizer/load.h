
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOKENIZER_LOAD_H_INCLUDED_
#define _DSA_TOKENIZER_LOAD_H_INCLUDED_


#include "base/fields.h"
#include "engine/tokenizer/parts.h"


/*
 * Reading tokenizer.json of Hugging Face's tokenizers, version 1.0.  Settings
 * that would change ids and are not implemented are rejected by name.
 * post_processor is not read: special tokens come from the prompt.
 */

#define DSA_BYTE_CHARS  324             /* 256, and 68 that replace some */


typedef struct {
    dsa_tokenizer_t        *t;
    dsa_fields_t            top;
    dsa_fields_t            model;
    const dsa_json_t       *vocab;      /* an object: names to ids */
    const dsa_json_t       *merges;     /* an array */
    const dsa_json_t       *added;      /* an array, or NULL */
    dsa_map_t               names;      /* of vocab, as written, to ids */
    char                   *scratch;    /* [2 * longest] */
    size_t                  longest;    /* bytes of a name */
    char                   *end;        /* of the used part of t->bytes */
    int                     byte_of[DSA_BYTE_CHARS];    /* -1: none */
    uint32_t                char_of[256];
} dsa_loader_t;


/*
 * The steps of loading, in this order; DSA_ERROR with the error reported to
 * l->top.err.
 */

/* load_vocab.c: allocates the tables, then fills them. */
int dsa_load_sizes(dsa_loader_t *l);
int dsa_load_vocab(dsa_loader_t *l);
int dsa_load_alphabet(dsa_loader_t *l);
int dsa_load_merges(dsa_loader_t *l);

/* load_added.c, load_stages.c: added_tokens and pre_tokenizer. */
int dsa_load_added(dsa_loader_t *l);
int dsa_load_stages(dsa_loader_t *l);


#endif /* _DSA_TOKENIZER_LOAD_H_INCLUDED_ */
