
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <xxhash.h>

#include "redis_schema/kv.h"


/*
 * The key and the header of a page, compared with the layout that kv.h
 * documents, byte by byte.
 */

#define BYTES   1000

static const char  fingerprint[] = "0123456789abcdef0123456789abcdef";


static void
fill(uint8_t *digest, uint8_t *page)
{
    uint32_t  i;

    for (i = 0; i < 32; i++) {
        digest[i] = (uint8_t) (i * 8 + 1);
    }

    for (i = 0; i < BYTES; i++) {
        page[i] = (uint8_t) (i * 31 + 7);
    }
}


static void
test_key(void **state)
{
    char     key[DSA_KV_KEY + 1];
    uint8_t  digest[32], page[BYTES];

    fill(digest, page);
    memset(key, 'x', sizeof(key));
    dsa_kv_key(key, digest);

    assert_string_equal(key, "dsa1:kv:"
                        "0109111921293139414951596169717981899199a1a9b1b9"
                        "c1c9d1d9e1e9f1f9");
    assert_int_equal(strlen(key), DSA_KV_KEY);
}


static void
test_header(void **state)
{
    uint8_t              digest[32], page[BYTES], header[DSA_KV_HEADER];
    uint8_t              text[88 + BYTES], sum[16];
    XXH128_canonical_t   canonical;
    uint32_t             i;

    static const uint8_t  begin[24] = {
        'd', 's', 'a', '-', 'k', 'v', '-', '1',
        0xe8, 0x03, 0, 0, 0, 0, 0, 0,
        64, 0, 0, 0,
        0, 0, 0, 0
    };

    fill(digest, page);
    memset(header, 0xee, sizeof(header));
    dsa_kv_header(header, digest, fingerprint, page, BYTES);

    assert_memory_equal(header, begin, 24);
    assert_memory_equal(header + 24, digest, 32);
    assert_memory_equal(header + 56, fingerprint, 32);

    memcpy(text, header, 88);
    memcpy(text + 88, page, BYTES);
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(text, sizeof(text)));

    /* the canonical form is big-endian */

    for (i = 0; i < 16; i++) {
        sum[i] = canonical.digest[15 - i];
    }

    assert_memory_equal(header + 88, sum, 16);

    for (i = 104; i < DSA_KV_HEADER; i++) {
        assert_int_equal(header[i], 0);
    }
}


static void
test_valid(void **state)
{
    char      other[] = "0123456789abcdef0123456789abcdee";
    uint8_t   digest[32], page[BYTES], header[DSA_KV_HEADER];
    uint32_t  i, bit;

    fill(digest, page);
    dsa_kv_header(header, digest, fingerprint, page, BYTES);

    assert_true(dsa_kv_valid(header, digest, fingerprint, page, BYTES));
    assert_false(dsa_kv_valid(header, digest, other, page, BYTES));
    assert_false(dsa_kv_valid(header, digest, fingerprint, page, BYTES - 1));

    for (i = 0; i < DSA_KV_HEADER * 8; i++) {
        header[i / 8] ^= 1 << i % 8;
        assert_false(dsa_kv_valid(header, digest, fingerprint, page, BYTES));
        header[i / 8] ^= 1 << i % 8;
    }

    for (i = 0; i < BYTES; i++) {
        bit = 1 << i % 8;
        page[i] ^= bit;
        assert_false(dsa_kv_valid(header, digest, fingerprint, page, BYTES));
        page[i] ^= bit;
    }

    for (i = 0; i < 32; i++) {
        digest[i] ^= 1;
        assert_false(dsa_kv_valid(header, digest, fingerprint, page, BYTES));
        digest[i] ^= 1;
    }

    assert_true(dsa_kv_valid(header, digest, fingerprint, page, BYTES));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_key),
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_valid)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
