
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <endian.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "kv.h"


#define DSA_KV_MAGIC        "dsa-kv-1"
#define DSA_KV_PREFIX       "dsa1:kv:"

/* offsets of the header's fields, as kv.h documents them */

#define DSA_KV_AT_BYTES     8
#define DSA_KV_AT_TOKENS    16
#define DSA_KV_AT_DIGEST    24
#define DSA_KV_AT_MODEL     56
#define DSA_KV_AT_SUM       88
#define DSA_KV_AT_REST      104

_Static_assert(sizeof(DSA_KV_PREFIX) - 1 + 2 * 32 == DSA_KV_KEY,
               "a key is the prefix and a digest in hex digits");
_Static_assert(DSA_KV_AT_SUM + sizeof(XXH128_hash_t) == DSA_KV_AT_REST,
               "the checksum has 128 bits");


void
dsa_kv_key(char out[DSA_KV_KEY + 1], const uint8_t digest[32])
{
    char      *p;
    uint32_t   i;

    static const char  hex[] = "0123456789abcdef";

    p = out + sizeof(DSA_KV_PREFIX) - 1;
    memcpy(out, DSA_KV_PREFIX, sizeof(DSA_KV_PREFIX) - 1);

    for (i = 0; i < 32; i++) {
        *p++ = hex[digest[i] >> 4];
        *p++ = hex[digest[i] & 15];
    }

    *p = '\0';
}


void
dsa_kv_header(uint8_t out[DSA_KV_HEADER], const uint8_t digest[32],
    const char *fingerprint, const void *page, uint64_t bytes)
{
    uint32_t       tokens;
    uint64_t       number[2];
    XXH3_state_t   state;
    XXH128_hash_t  sum;

    assert(strlen(fingerprint) == DSA_KV_AT_SUM - DSA_KV_AT_MODEL);

    memset(out, 0, DSA_KV_HEADER);
    memcpy(out, DSA_KV_MAGIC, DSA_KV_AT_BYTES);

    number[0] = htole64(bytes);
    memcpy(out + DSA_KV_AT_BYTES, number, sizeof(number[0]));

    tokens = htole32(DSA_KV_TOKENS);
    memcpy(out + DSA_KV_AT_TOKENS, &tokens, sizeof(tokens));

    memcpy(out + DSA_KV_AT_DIGEST, digest, 32);
    memcpy(out + DSA_KV_AT_MODEL, fingerprint, DSA_KV_AT_SUM - DSA_KV_AT_MODEL);

    (void) XXH3_128bits_reset(&state);
    (void) XXH3_128bits_update(&state, out, DSA_KV_AT_SUM);
    (void) XXH3_128bits_update(&state, page, bytes);
    sum = XXH3_128bits_digest(&state);

    number[0] = htole64(sum.low64);
    number[1] = htole64(sum.high64);
    memcpy(out + DSA_KV_AT_SUM, number, sizeof(number));
}


int
dsa_kv_valid(const uint8_t header[DSA_KV_HEADER], const uint8_t digest[32],
    const char *fingerprint, const void *page, uint64_t bytes)
{
    uint8_t  expected[DSA_KV_HEADER];

    dsa_kv_header(expected, digest, fingerprint, page, bytes);

    return memcmp(header, expected, DSA_KV_HEADER) == 0;
}
