
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_NULL_PAGES_H_INCLUDED_
#define _DSA_NULL_PAGES_H_INCLUDED_


#include <stdint.h>

#include "engine/backend.h"


/*
 * What a page of "backend null" holds in place of latents and index keys, on a
 * rank and in host memory.
 */

/*
 * A change of what host memory holds must change this name, because it is a
 * part of the fingerprint.
 */
#define DSA_NULL_LAYOUT     "null layout 1"

#define DSA_NULL_PAGE_BYTES 64          /* of a page in host memory */


/*
 * Most of it is in chain, which is different for pages after different
 * prefixes, as a real page is.  chain is 0 until the last token of the page is
 * computed.
 */

typedef struct {
    uint64_t            chain;          /* hash of all tokens before the end of
                                           the page */
    uint32_t            before;         /* plain tokens before the page */
    uint32_t            loaded;         /* 1: the page is from host memory, and
                                           its chain was not compared with the
                                           tokens of a sequence since */
} dsa_null_page_t;


/*
 * The chain of a page with these tokens [DSA_PAGE_TOKENS], after a page with
 * the chain previous; 0 for the first page of a sequence.
 */
uint64_t dsa_null_chain(uint64_t previous, const uint32_t *tokens);

/*
 * host has DSA_NULL_PAGE_BYTES: chain and before, and a pattern that follows
 * from them.  dsa_null_page_read() sets loaded.  DSA_ERROR: host does not hold
 * what dsa_null_page_write() wrote.
 */
void dsa_null_page_write(void *host, const dsa_null_page_t *page);
int dsa_null_page_read(dsa_null_page_t *page, const void *host);


#endif /* _DSA_NULL_PAGES_H_INCLUDED_ */
