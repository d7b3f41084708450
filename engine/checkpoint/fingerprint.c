
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>

#include <openssl/evp.h>

#include "engine/checkpoint/fingerprint.h"


#define DSA_FINGERPRINT_SAMPLE  4096            /* bytes of a tensor */


static int dsa_fingerprint_add(EVP_MD_CTX *sha, dsa_str_t text);


int
dsa_fingerprint(char out[DSA_FINGERPRINT_LEN + 1], const char *dir,
    dsa_str_t config, const dsa_shards_t *shards,
    const dsa_tensor_table_t *table, dsa_err_t *err)
{
    int                     ok;
    size_t                  size;
    uint32_t                i, length;
    EVP_MD_CTX             *sha;
    unsigned char           digest[EVP_MAX_MD_SIZE];
    const dsa_st_tensor_t  *t;

    sha = EVP_MD_CTX_new();
    if (sha == NULL) {
        return dsa_error(err, "%s: out of memory", dir);
    }

    ok = EVP_DigestInit_ex(sha, EVP_sha256(), NULL)
         && dsa_fingerprint_add(sha, config);

    for (i = 0; i < shards->n; i++) {
        ok = ok && dsa_fingerprint_add(sha, dsa_st_header(shards->file[i]));
    }

    for (i = 0; i < table->n; i++) {
        t = table->entry[i].tensor;

        if (!dsa_str_eqz(t->dtype, "F32")
            && memmem(t->name.data, t->name.len, ".experts.", 9) != NULL)
        {
            continue;
        }

        size = t->size < DSA_FINGERPRINT_SAMPLE ? t->size
                                                : DSA_FINGERPRINT_SAMPLE;
        ok = ok && EVP_DigestUpdate(sha, t->data, size);
    }

    length = 0;
    ok = ok && EVP_DigestFinal_ex(sha, digest, &length);

    EVP_MD_CTX_free(sha);

    if (!ok || length < DSA_FINGERPRINT_LEN / 2) {
        return dsa_error(err, "%s: SHA-256 is not available", dir);
    }

    for (i = 0; i < DSA_FINGERPRINT_LEN / 2; i++) {
        (void) snprintf(out + 2 * i, 3, "%02x", digest[i]);
    }

    return DSA_OK;
}


/* The length keeps a text apart from the next one. */

static int
dsa_fingerprint_add(EVP_MD_CTX *sha, dsa_str_t text)
{
    uint64_t  len;

    len = text.len;

    return EVP_DigestUpdate(sha, &len, sizeof(len))
           && EVP_DigestUpdate(sha, text.data, text.len);
}
