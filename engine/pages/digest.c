
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend.h"
#include "engine/pages/digest.h"


struct dsa_digester_s {
    EVP_MD             *sha256;
    EVP_MD_CTX         *md;
};


static const char  dsa_digest_domain[] = "dsa-prefix-1";


dsa_digester_t *
dsa_digester_create(void)
{
    dsa_digester_t  *d;

    d = calloc(1, sizeof(dsa_digester_t));

    if (d == NULL) {
        return NULL;
    }

    d->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    d->md = EVP_MD_CTX_new();

    if (d->sha256 == NULL || d->md == NULL) {
        dsa_digester_destroy(d);
        return NULL;
    }

    return d;
}


void
dsa_digester_destroy(dsa_digester_t *d)
{
    if (d == NULL) {
        return;
    }

    EVP_MD_CTX_free(d->md);
    EVP_MD_free(d->sha256);
    free(d);
}


int
dsa_digest_root(dsa_digester_t *d, const char *fingerprint,
    const uint8_t tenant[32], dsa_digest_t *out)
{
    uint32_t  layout;

    layout = DSA_PAGE_TOKENS;

    /* the strings are hashed with their NULs, which separate the fields */

    if (EVP_DigestInit_ex(d->md, d->sha256, NULL) != 1
        || EVP_DigestUpdate(d->md, dsa_digest_domain,
                            sizeof(dsa_digest_domain)) != 1
        || EVP_DigestUpdate(d->md, fingerprint, strlen(fingerprint) + 1) != 1
        || EVP_DigestUpdate(d->md, &layout, sizeof(layout)) != 1
        || EVP_DigestUpdate(d->md, tenant, 32) != 1
        || EVP_DigestFinal_ex(d->md, out->byte, NULL) != 1)
    {
        return DSA_ERROR;
    }

    return DSA_OK;
}


int
dsa_digest_page(dsa_digester_t *d, const dsa_digest_t *parent,
    const uint32_t *tokens, dsa_digest_t *out)
{
    if (EVP_DigestInit_ex(d->md, d->sha256, NULL) != 1
        || EVP_DigestUpdate(d->md, parent->byte, DSA_DIGEST) != 1
        || EVP_DigestUpdate(d->md, tokens,
                            DSA_PAGE_TOKENS * sizeof(uint32_t)) != 1
        || EVP_DigestFinal_ex(d->md, out->byte, NULL) != 1)
    {
        return DSA_ERROR;
    }

    return DSA_OK;
}
