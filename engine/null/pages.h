
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_NULL_PAGES_H_INCLUDED_
#define _DSA_NULL_PAGES_H_INCLUDED_


#include <stdint.h>

#include "engine/backend.h"


/*
 * The contents of a page of "backend null", in place of latents and index
 * keys, on a rank and in host memory.
 */

/*
 * Change this name when the contents of pages in host memory change.  It is a
 * part of the fingerprint.
 */
#define DSA_NULL_LAYOUT     "null layout 1"

/* bytes of a token and a layer in a real page: latent and index key */
#define DSA_NULL_TOKEN_BYTES    (656 + 132)

#define DSA_NULL_PAGE_BYTES 64          /* of a page in host memory */


/*
 * The member chain differs for pages after different prefixes, like the
 * contents of a real page.  It is 0 until the last token of the page is
 * computed.
 */

typedef struct {
    uint64_t            chain;          /* hash of all tokens before the end of
                                           the page */
    uint32_t            before;         /* plain tokens before the page */
    uint32_t            loaded;         /* 1: the page is from host memory, and
                                           its chain was not compared with the
                                           tokens of a sequence yet */
} dsa_null_page_t;


/*
 * Returns the chain of a page with these tokens [DSA_PAGE_TOKENS] after a page
 * with the chain previous, which is 0 for the first page of a sequence.
 */
uint64_t dsa_null_chain(uint64_t previous, const uint32_t *tokens);

/*
 * Write a page to host memory, and read it.  host has DSA_NULL_PAGE_BYTES:
 * chain and before, and a pattern that is computed from them.
 * dsa_null_page_read() sets loaded.  DSA_ERROR: host was not written by
 * dsa_null_page_write().
 */
void dsa_null_page_write(void *host, const dsa_null_page_t *page);
int dsa_null_page_read(dsa_null_page_t *page, const void *host);


#endif /* _DSA_NULL_PAGES_H_INCLUDED_ */
