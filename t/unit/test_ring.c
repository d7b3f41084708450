
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A ring of the link: the order of its records, the longest one, and wake-ups.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/link_ring.h"


static void
test_ring(void **state)
{
    int                   rc;
    void                 *p;
    uint8_t              *data;
    uint32_t              i, n, sent, taken;
    const void           *payload;
    const uint8_t        *bytes;
    dsa_link_ring_t       in, out;
    dsa_link_record_t     record;
    dsa_link_indices_t   *indices;

    data = calloc(1, 4096);
    indices = aligned_alloc(64, sizeof(dsa_link_indices_t));
    assert_non_null(data);
    assert_non_null(indices);

    memset(indices, 0, sizeof(dsa_link_indices_t));
    memset(&in, 0, sizeof(in));

    in.shared = indices;
    in.data = data;
    in.size = 4096;
    out = in;

    assert_null(dsa_link_reserve(&in, DSA_LINK_SUBMIT, 1,
                                 dsa_link_max_payload(&in) + 1));
    assert_int_equal(errno, EMSGSIZE);

    /* everything that is sent comes, whole and in order */

    sent = taken = 0;
    payload = NULL;

    for (i = 0; i < 200000; i++) {
        if (i * 2654435761U % 7 < 4) {
            n = i * 40503 % ((uint32_t) dsa_link_max_payload(&in) + 1);
            p = dsa_link_reserve(&in, DSA_LINK_SUBMIT, sent, n);

            if (p != NULL) {
                memset(p, (int) (sent & 0xff), n);
                sent++;

                if (i % 3 == 0) {
                    (void) dsa_link_commit(&in);
                }

                continue;
            }

            assert_int_equal(errno, 0);
        }

        (void) dsa_link_commit(&in);
        rc = dsa_link_peek(&out, &record, &payload);
        assert_true(rc >= 0);

        if (rc == 0) {
            assert_int_equal(sent, taken);
            continue;
        }

        assert_int_equal(record.id, taken);
        bytes = payload;

        for (n = 0; n < record.length; n++) {
            assert_int_equal(bytes[n], taken & 0xff);
        }

        taken++;
        dsa_link_release(&out);
    }

    assert_true(taken > 10000);

    /* the longest one fits at every position of an empty ring */

    while (dsa_link_peek(&out, &record, &payload) == 1) {
        dsa_link_release(&out);
    }

    for (i = 0; i < 1000; i++) {
        assert_non_null(dsa_link_reserve(&in, DSA_LINK_SUBMIT, i, i % 100));
        (void) dsa_link_commit(&in);
        assert_int_equal(dsa_link_peek(&out, &record, &payload), 1);
        dsa_link_release(&out);

        assert_non_null(dsa_link_reserve(&in, DSA_LINK_SUBMIT, i,
                                         dsa_link_max_payload(&in)));
        (void) dsa_link_commit(&in);
        assert_int_equal(dsa_link_peek(&out, &record, &payload), 1);
        dsa_link_release(&out);
    }

    /* only a consumer that sleeps is woken, and once */

    assert_int_equal(dsa_link_peek(&out, &record, &payload), 0);
    assert_int_equal(dsa_link_sleep(&out), 1);
    assert_non_null(dsa_link_reserve(&in, DSA_LINK_SUBMIT, 1, 8));
    assert_int_equal(dsa_link_commit(&in), 1);
    assert_non_null(dsa_link_reserve(&in, DSA_LINK_SUBMIT, 1, 8));
    assert_int_equal(dsa_link_commit(&in), 0);
    assert_int_equal(dsa_link_sleep(&out), 0);

    free(data);
    free(indices);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_ring)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
