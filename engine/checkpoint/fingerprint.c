
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>

#include <openssl/evp.h>

#include "engine/checkpoint/fingerprint.h"


#define DSA_FINGERPRINT_SAMPLE  4096            /* bytes of a tensor */


static int dsa_fingerprint_sample(const dsa_st_tensor_t *t);
static int dsa_fingerprint_end(EVP_MD_CTX *sha, int ok, char *out, uint32_t len,
    dsa_err_t *err);
static int dsa_fingerprint_text(EVP_MD_CTX *sha, dsa_str_t text);
static int dsa_fingerprint_number(EVP_MD_CTX *sha, uint64_t n);
static int dsa_fingerprint_unavailable(dsa_err_t *err);


int
dsa_fingerprint_sampled(char out[DSA_SAMPLED_LEN + 1], const char *dir,
    dsa_str_t config, const dsa_shards_t *shards,
    const dsa_tensor_table_t *table, dsa_err_t *err)
{
    int                     ok;
    size_t                  size;
    uint32_t                i;
    EVP_MD_CTX             *sha;
    const dsa_st_tensor_t  *t;

    sha = EVP_MD_CTX_new();
    if (sha == NULL) {
        return dsa_error(err, "%s: out of memory", dir);
    }

    ok = EVP_DigestInit_ex(sha, EVP_sha256(), NULL)
         && dsa_fingerprint_text(sha, config);

    for (i = 0; i < shards->n; i++) {
        ok = ok && dsa_fingerprint_text(sha, dsa_st_header(shards->file[i]));
    }

    for (i = 0; i < table->n; i++) {
        t = table->entry[i].tensor;

        if (!dsa_fingerprint_sample(t)) {
            continue;
        }

        size = t->size < DSA_FINGERPRINT_SAMPLE ? t->size
                                                : DSA_FINGERPRINT_SAMPLE;
        ok = ok && EVP_DigestUpdate(sha, t->data, size);
    }

    return dsa_fingerprint_end(sha, ok, out, DSA_SAMPLED_LEN, err);
}


int
dsa_fingerprint_leaf(uint8_t out[DSA_LEAF_HASH], const void *data, size_t n,
    dsa_err_t *err)
{
    uint32_t  len;

    len = 0;

    if (!EVP_Digest(data, n, out, &len, EVP_sha256(), NULL)
        || len != DSA_LEAF_HASH)
    {
        return dsa_fingerprint_unavailable(err);
    }

    return DSA_OK;
}


int
dsa_fingerprint_full(char out[DSA_FULL_LEN + 1],
    const uint8_t config[DSA_LEAF_HASH], const dsa_shards_t *shards,
    const uint8_t (*leaf)[DSA_LEAF_HASH], dsa_err_t *err)
{
    int          ok;
    uint32_t     i;
    uint64_t     size, leaves;
    EVP_MD_CTX  *sha;

    sha = EVP_MD_CTX_new();
    if (sha == NULL) {
        return dsa_error(err, "out of memory");
    }

    ok = EVP_DigestInit_ex(sha, EVP_sha256(), NULL)
         && EVP_DigestUpdate(sha, config, DSA_LEAF_HASH)
         && dsa_fingerprint_number(sha, shards->n);

    for (i = 0; i < shards->n; i++) {
        (void) dsa_st_image(shards->file[i], &size);
        leaves = dsa_fingerprint_leaves(size);

        ok = ok
             && dsa_fingerprint_text(sha, dsa_strz(dsa_shards_name(shards, i)))
             && dsa_fingerprint_number(sha, size)
             && EVP_DigestUpdate(sha, leaf, leaves * DSA_LEAF_HASH);

        leaf += leaves;
    }

    return dsa_fingerprint_end(sha, ok, out, DSA_FULL_LEN, err);
}


/* Returns 0 for the weights of routed experts, and 1 for all else. */

static int
dsa_fingerprint_sample(const dsa_st_tensor_t *t)
{
    return dsa_str_eqz(t->dtype, "F32")
           || memmem(t->name.data, t->name.len, ".experts.", 9) == NULL
           || memmem(t->name.data, t->name.len, ".weight_scale_inv", 17)
              != NULL
           || memmem(t->name.data, t->name.len, ".input_scale", 12) != NULL;
}


/* Writes len hex digits and a NUL, and frees sha; ok: 0 after an error. */

static int
dsa_fingerprint_end(EVP_MD_CTX *sha, int ok, char *out, uint32_t len,
    dsa_err_t *err)
{
    uint32_t       i, length;
    unsigned char  digest[EVP_MAX_MD_SIZE];

    length = 0;
    ok = ok && EVP_DigestFinal_ex(sha, digest, &length);

    EVP_MD_CTX_free(sha);

    if (!ok || length < len / 2) {
        return dsa_fingerprint_unavailable(err);
    }

    for (i = 0; i < len / 2; i++) {
        (void) snprintf(out + 2 * i, 3, "%02x", digest[i]);
    }

    return DSA_OK;
}


/*
 * Hashes the length in front of a text, so that two texts cannot be confused
 * with their concatenation.
 */

static int
dsa_fingerprint_text(EVP_MD_CTX *sha, dsa_str_t text)
{
    return dsa_fingerprint_number(sha, text.len)
           && EVP_DigestUpdate(sha, text.data, text.len);
}


static int
dsa_fingerprint_number(EVP_MD_CTX *sha, uint64_t n)
{
    return EVP_DigestUpdate(sha, &n, sizeof(n));
}


static int
dsa_fingerprint_unavailable(dsa_err_t *err)
{
    return dsa_error(err, "the fingerprint of the weights cannot be computed: "
                     "libcrypto has no SHA-256");
}
