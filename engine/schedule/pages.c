
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "engine/schedule/pages.h"


/*
 * The free list is a ring through prev[] and next[] with number n as its
 * head: next[n] is taken first, prev[n] last.
 */

struct dsa_pages_s {
    uint32_t            n;
    uint32_t            n_free;
    uint32_t           *prev;           /* [n + 1] */
    uint32_t           *next;           /* [n + 1] */
    uint32_t           *users;          /* [n] */
    uint32_t           *bucket;         /* [mask + 1] first page */
    uint32_t           *chain;          /* [n] next page of the bucket */
    uint8_t            *known;          /* [n] digest[] is in the map */
    dsa_digest_t       *digest;         /* [n] */
    uint32_t            mask;
    EVP_MD             *sha256;
    EVP_MD_CTX         *md;
};


static uint32_t dsa_pages_bucket(const dsa_pages_t *p,
    const dsa_digest_t *digest);
static void dsa_pages_forget(dsa_pages_t *p, uint32_t page);
static void dsa_pages_unlink(dsa_pages_t *p, uint32_t page);
static void dsa_pages_link(dsa_pages_t *p, uint32_t page, uint32_t after);


static const char  dsa_pages_domain[] = "dsa-prefix-1";


dsa_pages_t *
dsa_pages_create(uint32_t n)
{
    uint32_t      i, buckets;
    dsa_pages_t  *p;

    if (n == 0 || n > DSA_PAGES_MAX) {
        return NULL;
    }

    p = calloc(1, sizeof(dsa_pages_t));
    if (p == NULL) {
        return NULL;
    }

    for (buckets = 64; buckets < n; buckets *= 2) {
        /* void */
    }

    p->n = n;
    p->n_free = n;
    p->mask = buckets - 1;
    p->prev = calloc((size_t) n + 1, sizeof(uint32_t));
    p->next = calloc((size_t) n + 1, sizeof(uint32_t));
    p->users = calloc(n, sizeof(uint32_t));
    p->bucket = calloc(buckets, sizeof(uint32_t));
    p->chain = calloc(n, sizeof(uint32_t));
    p->known = calloc(n, 1);
    p->digest = calloc(n, sizeof(dsa_digest_t));
    p->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    p->md = EVP_MD_CTX_new();

    if (p->prev == NULL || p->next == NULL || p->users == NULL
        || p->bucket == NULL || p->chain == NULL || p->known == NULL
        || p->digest == NULL || p->sha256 == NULL || p->md == NULL)
    {
        dsa_pages_destroy(p);
        return NULL;
    }

    for (i = 0; i <= n; i++) {
        p->next[i] = i == n ? 0 : i + 1;
        p->prev[i] = i == 0 ? n : i - 1;
    }

    for (i = 0; i < buckets; i++) {
        p->bucket[i] = DSA_NO_PAGE;
    }

    return p;
}


void
dsa_pages_destroy(dsa_pages_t *p)
{
    if (p == NULL) {
        return;
    }

    EVP_MD_CTX_free(p->md);
    EVP_MD_free(p->sha256);

    free(p->prev);
    free(p->next);
    free(p->users);
    free(p->bucket);
    free(p->chain);
    free(p->known);
    free(p->digest);
    free(p);
}


uint32_t
dsa_pages_total(const dsa_pages_t *p)
{
    return p->n;
}


uint32_t
dsa_pages_free(const dsa_pages_t *p)
{
    return p->n_free;
}


uint32_t
dsa_pages_alloc(dsa_pages_t *p)
{
    uint32_t  page;

    if (p->n_free == 0) {
        return DSA_NO_PAGE;
    }

    page = p->next[p->n];

    dsa_pages_unlink(p, page);
    dsa_pages_forget(p, page);
    p->users[page] = 1;

    return page;
}


uint32_t
dsa_pages_find(dsa_pages_t *p, const dsa_digest_t *digest)
{
    int       in_use;
    uint32_t  page;

    page = dsa_pages_peek(p, digest, &in_use);

    if (page == DSA_NO_PAGE) {
        return page;
    }

    if (!in_use) {
        dsa_pages_unlink(p, page);
    }

    p->users[page]++;

    return page;
}


uint32_t
dsa_pages_peek(const dsa_pages_t *p, const dsa_digest_t *digest, int *in_use)
{
    uint32_t  page;

    page = p->bucket[dsa_pages_bucket(p, digest)];

    while (page != DSA_NO_PAGE) {

        if (memcmp(&p->digest[page], digest, sizeof(dsa_digest_t)) == 0) {
            *in_use = p->users[page] != 0;
            return page;
        }

        page = p->chain[page];
    }

    return DSA_NO_PAGE;
}


void
dsa_pages_release(dsa_pages_t *p, uint32_t page)
{
    if (--p->users[page] != 0) {
        return;
    }

    /* one that nobody can find again is the first to be taken */

    dsa_pages_link(p, page, p->known[page] ? p->prev[p->n] : p->n);
}


void
dsa_pages_publish(dsa_pages_t *p, uint32_t page, const dsa_digest_t *digest)
{
    int       in_use;
    uint32_t  b;

    if (p->known[page]
        || dsa_pages_peek(p, digest, &in_use) != DSA_NO_PAGE)
    {
        return;
    }

    b = dsa_pages_bucket(p, digest);

    p->digest[page] = *digest;
    p->known[page] = 1;
    p->chain[page] = p->bucket[b];
    p->bucket[b] = page;
}


int
dsa_pages_root(dsa_pages_t *p, const char *fingerprint,
    const uint8_t tenant[32], dsa_digest_t *out)
{
    uint32_t  layout;

    layout = DSA_PAGE_TOKENS;

    /* the NULs keep the parts apart */

    if (EVP_DigestInit_ex(p->md, p->sha256, NULL) != 1
        || EVP_DigestUpdate(p->md, dsa_pages_domain,
                            sizeof(dsa_pages_domain)) != 1
        || EVP_DigestUpdate(p->md, fingerprint, strlen(fingerprint) + 1) != 1
        || EVP_DigestUpdate(p->md, &layout, sizeof(layout)) != 1
        || EVP_DigestUpdate(p->md, tenant, 32) != 1
        || EVP_DigestFinal_ex(p->md, out->byte, NULL) != 1)
    {
        return DSA_ERROR;
    }

    return DSA_OK;
}


int
dsa_pages_chain(dsa_pages_t *p, const dsa_digest_t *parent,
    const uint32_t *tokens, dsa_digest_t *out)
{
    if (EVP_DigestInit_ex(p->md, p->sha256, NULL) != 1
        || EVP_DigestUpdate(p->md, parent->byte, DSA_DIGEST) != 1
        || EVP_DigestUpdate(p->md, tokens,
                            DSA_PAGE_TOKENS * sizeof(uint32_t)) != 1
        || EVP_DigestFinal_ex(p->md, out->byte, NULL) != 1)
    {
        return DSA_ERROR;
    }

    return DSA_OK;
}


int
dsa_pages_audit(const dsa_pages_t *p, const uint32_t *users, dsa_err_t *err)
{
    int       in_use;
    uint32_t  i, page, n, known, mapped;

    known = 0;
    n = 0;

    for (i = 0; i < p->n; i++) {
        if (p->users[i] != users[i]) {
            return dsa_error(err, "page %u: %u users are counted, %u are "
                             "there", i, p->users[i], users[i]);
        }

        n += p->users[i] == 0;
        known += p->known[i];

        if (p->known[i]
            && dsa_pages_peek(p, &p->digest[i], &in_use) != i)
        {
            return dsa_error(err, "page %u is not found by its digest", i);
        }
    }

    if (n != p->n_free) {
        return dsa_error(err, "%u pages have no user, %u are counted as free",
                         n, p->n_free);
    }

    n = 0;

    for (page = p->next[p->n]; page != p->n; page = p->next[page]) {
        if (page > p->n || p->users[page] != 0
            || p->prev[p->next[page]] != page || ++n > p->n_free)
        {
            return dsa_error(err, "the free list is broken at page %u", page);
        }
    }

    if (n != p->n_free) {
        return dsa_error(err, "%u pages are on the free list, not %u", n,
                         p->n_free);
    }

    mapped = 0;

    for (i = 0; i <= p->mask; i++) {
        for (page = p->bucket[i]; page != DSA_NO_PAGE; page = p->chain[page]) {
            if (page >= p->n || !p->known[page] || ++mapped > known) {
                return dsa_error(err, "the map is broken at page %u", page);
            }
        }
    }

    if (mapped != known) {
        return dsa_error(err, "%u pages are in the map, not %u", mapped,
                         known);
    }

    return DSA_OK;
}


/* A digest's bytes are as good as random: any of them make a hash. */

static uint32_t
dsa_pages_bucket(const dsa_pages_t *p, const dsa_digest_t *digest)
{
    uint32_t  hash;

    memcpy(&hash, digest->byte, sizeof(hash));

    return hash & p->mask;
}


static void
dsa_pages_forget(dsa_pages_t *p, uint32_t page)
{
    uint32_t  *at;

    if (!p->known[page]) {
        return;
    }

    at = &p->bucket[dsa_pages_bucket(p, &p->digest[page])];

    while (*at != page) {
        at = &p->chain[*at];
    }

    *at = p->chain[page];
    p->known[page] = 0;
}


static void
dsa_pages_unlink(dsa_pages_t *p, uint32_t page)
{
    p->next[p->prev[page]] = p->next[page];
    p->prev[p->next[page]] = p->prev[page];
    p->n_free--;
}


static void
dsa_pages_link(dsa_pages_t *p, uint32_t page, uint32_t after)
{
    p->prev[page] = after;
    p->next[page] = p->next[after];
    p->prev[p->next[after]] = page;
    p->next[after] = page;
    p->n_free++;
}
