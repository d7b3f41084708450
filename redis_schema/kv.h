
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCHEMA_KV_H_INCLUDED_
#define _DSA_SCHEMA_KV_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>


/*
 * A page of the KV cache in Redis: the key "dsa1:kv:" and the digest in 64 hex
 * digits, and one string value of DSA_KV_HEADER bytes and the page.  Numbers
 * are little-endian.
 *
 *     offset  bytes
 *          0      8  "dsa-kv-1"
 *          8      8  bytes of the page
 *         16      4  tokens of the page
 *         20      4  0
 *         24     32  digest of the page, binary
 *         56     32  fingerprint of model and page layout, in hex digits
 *         88     16  XXH3, 128 bits, of the bytes before this and of the page
 *        104     24  0
 *
 * The digest is a chain over all tokens before the end of the page.  The root
 * of the chain contains the fingerprint and the tenant, so that each page has
 * a key of its own.  The header repeats the digest and the fingerprint, because
 * a cache may hold wrong values: a page whose header or checksum differs is a
 * miss.  The checksum detects damage, not forgery: clients that may write to
 * this Redis are trusted.
 *
 * The checksum is a number of 128 bits: its low half comes first.
 */

#define DSA_KV_HEADER       128
#define DSA_KV_KEY          72          /* bytes of a key, without a NUL */
#define DSA_KV_TOKENS       64


/* Writes the key of a digest (32 bytes) and a NUL. */
void dsa_kv_key(char out[DSA_KV_KEY + 1], const uint8_t digest[32]);

/*
 * Writes the header of a page of so many bytes.  fingerprint: 32 hex digits and
 * a NUL.  The function reads the whole page for the checksum.
 */
void dsa_kv_header(uint8_t out[DSA_KV_HEADER], const uint8_t digest[32],
    const char *fingerprint, const void *page, uint64_t bytes);

/*
 * 1 if the header is what dsa_kv_header() writes for these arguments, otherwise
 * 0.  All bytes of the header and of the page are compared.
 */
int dsa_kv_valid(const uint8_t header[DSA_KV_HEADER],
    const uint8_t digest[32], const char *fingerprint, const void *page,
    uint64_t bytes);


#endif /* _DSA_SCHEMA_KV_H_INCLUDED_ */
