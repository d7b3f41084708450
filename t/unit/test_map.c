
/*
 * Copyright (C) The nginx-dsa authors
 *
 * base/map.c: random operations, compared after each one with a list that is
 * searched from its beginning to its end.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/map.h"


#define KEYS    400


typedef struct {
    dsa_str_t   key;
    int         present;
    uint64_t    value;
} listed_t;


static uint32_t
random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005 + 1442695040888963407;

    return (uint32_t) (*state >> 33);
}


/* Keys that differ only in length, only in a byte, and digests. */

static void
make_keys(listed_t *list, char *bytes)
{
    uint32_t  i, j;
    uint64_t  state;

    state = 1;

    for (i = 0; i < KEYS; i++) {
        list[i].present = 0;

        if (i < 100) {
            memset(bytes, 0, i);
            list[i].key = dsa_str(bytes, i);
            bytes += i;

        } else if (i < 200) {
            list[i].key = dsa_str(bytes, (size_t) sprintf(bytes, "layer.%u",
                                                          i));
            bytes += list[i].key.len;

        } else {
            for (j = 0; j < 32; j++) {
                bytes[j] = (char) random_next(&state);
            }

            list[i].key = dsa_str(bytes, 32);
            bytes += 32;
        }
    }

    list[0].key = dsa_str(NULL, 0);
}


static void
compare_one(const dsa_map_t *m, const listed_t *listed)
{
    uint64_t  *value;

    value = dsa_map_find(m, listed->key);

    if (listed->present) {
        assert_non_null(value);
        assert_true(*value == listed->value);

    } else {
        assert_null(value);
    }
}


static void
compare_all(const dsa_map_t *m, const listed_t *list)
{
    uint32_t  i, n;

    n = 0;

    for (i = 0; i < KEYS; i++) {
        compare_one(m, &list[i]);
        n += list[i].present != 0;
    }

    assert_int_equal(m->n, n);
}


/*
 * keys: how many keys are in use at a time.  With 8 the table keeps its
 * smallest size, and many entries are not in the bucket that their hash
 * selects.
 */

static void
run(uint32_t keys, uint64_t state)
{
    char       bytes[KEYS * 128];
    uint32_t   i, n, first;
    listed_t   list[KEYS], *l;
    dsa_map_t  m;

    memset(&m, 0, sizeof(dsa_map_t));
    make_keys(list, bytes);

    for (n = 0; n < 4000; n++) {

        /* every 100 operations some of the keys are replaced by others */

        first = n / 100 * 7;
        i = (first + random_next(&state) % keys) % KEYS;
        l = &list[i];

        switch (random_next(&state) % 4) {

        case 0:
        case 1:
            assert_int_equal(dsa_map_add(&m, l->key, n),
                             l->present ? DSA_AGAIN : DSA_OK);

            if (!l->present) {
                l->present = 1;
                l->value = n;
            }

            break;

        case 2:
            assert_int_equal(dsa_map_delete(&m, l->key),
                             l->present ? DSA_OK : DSA_AGAIN);
            l->present = 0;
            break;

        default:
            if (l->present) {
                l->value = UINT64_MAX - n;
                *dsa_map_find(&m, l->key) = l->value;
            }
        }

        compare_one(&m, l);

        /* delete all of a small set, and compare after each deletion */

        if (n % 100 == 99) {
            compare_all(&m, list);

            for (i = 0; keys == 8 && i < KEYS; i++) {
                if (list[i].present) {
                    assert_int_equal(dsa_map_delete(&m, list[i].key), DSA_OK);
                    list[i].present = 0;
                    compare_all(&m, list);
                }
            }
        }
    }

    if (keys == 8) {
        assert_int_equal(m.size, 16);
    }

    compare_all(&m, list);

    dsa_map_free(&m);
    assert_null(dsa_map_find(&m, list[1].key));
    assert_int_equal(dsa_map_delete(&m, list[1].key), DSA_AGAIN);
}


static void
test_random(void **state)
{
    uint64_t  i;

    for (i = 0; i < 20; i++) {
        run(8, i);
        run(60, i);
        run(KEYS, i);
    }
}


/* Digests to pointers, where the key is a part of what it points to. */

static void
test_pointers(void **state)
{
    dsa_map_t  m;

    typedef struct {
        char    digest[32];
        int     copies;
    } page_t;

    page_t     page[3] = { { "one", 1 }, { "two", 2 }, { "three", 3 } };

    memset(&m, 0, sizeof(dsa_map_t));

    assert_null(dsa_map_find_pointer(&m, dsa_str(page[0].digest, 32)));

    assert_int_equal(dsa_map_add_pointer(&m, dsa_str(page[0].digest, 32),
                                         &page[0]), DSA_OK);
    assert_int_equal(dsa_map_add_pointer(&m, dsa_str(page[1].digest, 32),
                                         &page[1]), DSA_OK);

    assert_ptr_equal(dsa_map_find_pointer(&m, dsa_str(page[1].digest, 32)),
                     &page[1]);
    assert_null(dsa_map_find_pointer(&m, dsa_str(page[2].digest, 32)));
    assert_null(dsa_map_find_pointer(&m, dsa_str(page[1].digest, 31)));

    assert_int_equal(dsa_map_delete(&m, dsa_str(page[0].digest, 32)), DSA_OK);
    assert_null(dsa_map_find_pointer(&m, dsa_str(page[0].digest, 32)));
    assert_ptr_equal(dsa_map_find_pointer(&m, dsa_str(page[1].digest, 32)),
                     &page[1]);

    dsa_map_free(&m);
}


/* Additions up to the reserved number do not move the buckets. */

static void
test_reserve(void **state)
{
    char               keys[100000][8];
    uint32_t           i, n;
    dsa_map_t          m;
    dsa_map_bucket_t  *bucket;

    static const uint32_t  sizes[] = { 0, 1, 8, 9, 64, 65, 100000 };

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        memset(&m, 0, sizeof(dsa_map_t));

        assert_int_equal(dsa_map_reserve(&m, sizes[i]), DSA_OK);
        bucket = m.bucket;

        for (n = 0; n < sizes[i]; n++) {
            memset(keys[n], 0, 8);
            memcpy(keys[n], &n, 4);
            assert_int_equal(dsa_map_add(&m, dsa_str(keys[n], 8), n), DSA_OK);
        }

        assert_ptr_equal(m.bucket, bucket);
        assert_true(m.size <= (sizes[i] < 8 ? 16 : 4 * sizes[i]));

        for (n = 0; n < sizes[i]; n++) {
            assert_true(*dsa_map_find(&m, dsa_str(keys[n], 8)) == n);
        }

        dsa_map_free(&m);
    }

    memset(&m, 0, sizeof(dsa_map_t));
    assert_int_equal(dsa_map_reserve(&m, UINT32_MAX), DSA_ERROR);
    assert_int_equal(dsa_map_add(&m, dsa_str("", (size_t) 1 << 32), 0),
                     DSA_ERROR);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_pointers),
        cmocka_unit_test(test_reserve)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
