
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>
#include <xxhash.h>

#include "engine/null/pages.h"


#define DSA_NULL_WORDS  (DSA_NULL_PAGE_BYTES / sizeof(uint64_t))


static void dsa_null_words(uint64_t *word, uint64_t chain, uint64_t before);


uint64_t
dsa_null_chain(uint64_t previous, const uint32_t *tokens)
{
    uint64_t  chain;

    chain = XXH3_64bits_withSeed(tokens, DSA_PAGE_TOKENS * sizeof(uint32_t),
                                 previous);

    return chain != 0 ? chain : 1;
}


void
dsa_null_page_write(void *host, const dsa_null_page_t *page)
{
    uint64_t  word[DSA_NULL_WORDS];

    dsa_null_words(word, page->chain, page->before);
    memcpy(host, word, sizeof(word));
}


int
dsa_null_page_read(dsa_null_page_t *page, const void *host)
{
    uint64_t  word[DSA_NULL_WORDS], want[DSA_NULL_WORDS];

    memcpy(word, host, sizeof(word));
    dsa_null_words(want, word[0], word[1]);

    if (memcmp(word, want, sizeof(word)) != 0 || word[1] > UINT32_MAX) {
        return DSA_ERROR;
    }

    page->chain = word[0];
    page->before = (uint32_t) word[1];
    page->loaded = 1;

    return DSA_OK;
}


static void
dsa_null_words(uint64_t *word, uint64_t chain, uint64_t before)
{
    size_t  i;

    word[0] = chain;
    word[1] = before;

    for (i = 2; i < DSA_NULL_WORDS; i++) {
        word[i] = XXH3_64bits_withSeed(word, 2 * sizeof(uint64_t), i);
    }
}
