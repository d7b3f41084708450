
/*
 * Copyright (C) The nginx-dsa authors
 *
 * How tenants share the tokenizer threads: the order in which their requests
 * are prepared, and whose requests are rejected when they are too many.
 */


#include "base/buf.h"
#include "t/unit/host.h"


#define MOST    2000


/* What was collected, in order. */

typedef struct {
    uint32_t        n;
    uint32_t        tenant[MOST];
    uint32_t        number[MOST];
    uint32_t        error[MOST];
} done_t;


/* A prompt of len bytes, to be counted or answered; -1: it is rejected. */

static int
push_spec(host_t *h, uint32_t type, uint32_t tenant, uint32_t weight,
    uint32_t number, size_t len, const char *spec)
{
    char              *text;
    size_t             size;
    uint8_t           *payload;
    dsa_request_t     *r;
    link_submit_t      s;
    dsa_link_count_t   count;

    text = malloc(len);
    assert_non_null(text);
    memset(text, 'x', len);

    link_submit_init(&s, 1);
    link_submit_field(&s, DSA_LINK_FIELD_TEXT, text, len);

    if (spec != NULL) {
        link_submit_field(&s, DSA_LINK_FIELD_GRAMMAR, spec, strlen(spec));
    }

    s.head.weight = weight;
    memset(&count, 0, sizeof(count));
    count.n_fields = s.head.n_fields;
    count.weight = weight;

    size = type == DSA_LINK_COUNT ? sizeof(count) : sizeof(s.head);
    payload = malloc(size + s.len);
    assert_non_null(payload);
    memcpy(payload, type == DSA_LINK_COUNT ? (void *) &count
                                           : (void *) &s.head, size);
    memcpy(payload + size, s.fields, s.len);

    r = dsa_request_create((dsa_link_type_e) type, dsa_link_id(tenant, number),
                           payload, size + s.len);
    assert_non_null(r);

    r->tenant[0] = (uint8_t) tenant;
    r->weight = weight;

    free(text);
    free(payload);
    free(s.fields);

    if (dsa_pool_push(h->pool, r) == DSA_OK) {
        return 0;
    }

    dsa_request_free(r);

    return -1;
}


static int
push(host_t *h, uint32_t type, uint32_t tenant, uint32_t weight,
    uint32_t number, size_t len)
{
    return push_spec(h, type, tenant, weight, number, len, NULL);
}


/* Frees what is ready. */

static void
collect(host_t *h, done_t *done)
{
    dsa_request_t  *r, *next;

    done->n = 0;

    for (r = dsa_pool_collect(h->pool); r != NULL; r = next) {
        next = r->next_job;

        assert_true(done->n < MOST);
        done->tenant[done->n] = dsa_link_epoch(r->id);
        done->number[done->n] = dsa_link_slot(r->id);
        done->error[done->n] = r->last == DSA_LINK_ERROR ? r->failure.code : 0;
        done->n++;

        r->state = DSA_REQUEST_IDLE;
        dsa_request_free(r);
    }
}


/* How many of the first n were of a tenant. */

static uint32_t
share(const done_t *done, uint32_t n, uint32_t tenant)
{
    uint32_t  i, k;

    assert_true(n <= done->n);

    for (i = 0, k = 0; i < n; i++) {
        k += done->tenant[i] == tenant;
    }

    return k;
}


/* Tenants with equal weights take turns by bytes, however many wait. */

static void
test_turns(void **state)
{
    host_t    h;
    done_t    done;
    uint32_t  i, kind;

    static const uint32_t  types[] = { DSA_LINK_SUBMIT, DSA_LINK_COUNT };

    host_open(&h, "");

    for (kind = 0; kind < 4; kind++) {
        for (i = 0; i < 30; i++) {
            assert_int_equal(push(&h, types[kind % 2], 1, 100, i, 100000), 0);
        }

        for (i = 0; i < 4; i++) {
            assert_int_equal(push(&h, types[kind / 2], 2, 100, i, 100000), 0);
        }

        dsa_pool_run(h.pool);
        collect(&h, &done);

        assert_int_equal(done.n, 34);
        assert_int_equal(share(&done, 8, 2), 4);
    }

    /* prompts of a third of the length: three for one */

    for (i = 0; i < 60; i++) {
        assert_int_equal(push(&h, DSA_LINK_COUNT, 1, 100, i, 30000), 0);
        assert_int_equal(push(&h, DSA_LINK_COUNT, 2, 100, i, 10000), 0);
    }

    dsa_pool_run(h.pool);
    collect(&h, &done);
    assert_in_range(share(&done, 40, 2), 29, 31);

    host_end(&h);
}


static void
test_weights(void **state)
{
    host_t    h;
    done_t    done;
    uint32_t  i;

    host_open(&h, "");

    /* texts so long that the heads of COUNT and SUBMIT do not matter */

    for (i = 0; i < 100; i++) {
        assert_int_equal(push(&h, DSA_LINK_COUNT, 1, 100, i, 10000), 0);
        assert_int_equal(push(&h, i % 2 ? DSA_LINK_COUNT : DSA_LINK_SUBMIT, 2,
                              300, i, 10000), 0);
        assert_int_equal(push(&h, DSA_LINK_SUBMIT, 3, 10000, i, 10000), 0);
    }

    dsa_pool_run(h.pool);
    collect(&h, &done);

    assert_in_range(share(&done, 104, 3), 99, 100);
    assert_in_range(share(&done, 104, 2), 2, 4);
    assert_in_range(share(&done, 200, 2) - share(&done, 104, 2), 70, 74);

    host_end(&h);
}


/* A tenant that was idle has no credit, and one that was busy no debt. */

static void
test_idle(void **state)
{
    host_t    h;
    done_t    done;
    uint32_t  i, round;

    host_open(&h, "");

    for (round = 0; round < 2; round++) {
        for (i = 0; i < 50; i++) {
            assert_int_equal(push(&h, DSA_LINK_COUNT, 1, 100, i, 1000), 0);
        }

        dsa_pool_run(h.pool);
        collect(&h, &done);

        for (i = 0; i < 20; i++) {
            assert_int_equal(push(&h, DSA_LINK_COUNT, 1, 100, i, 1000), 0);
            assert_int_equal(push(&h, DSA_LINK_COUNT, 2, 100, i, 1000), 0);
        }

        dsa_pool_run(h.pool);
        collect(&h, &done);
        assert_in_range(share(&done, 20, 1), 9, 11);
    }

    host_end(&h);
}


/*
 * One tenant fills its half.  All others are admitted, until the pool is full;
 * then the tenant with most loses its newest ones to those with less.
 */

static void
test_memory(void **state)
{
    host_t    h;
    done_t    done;
    uint32_t  i, n, first;

    const size_t  size = 4 << 20;

    host_open(&h, "");

    for (n = 0; push(&h, DSA_LINK_COUNT, 1, 100, n, size) == 0; n++) {
        /* void */
    }

    assert_in_range(n, DSA_POOL_BYTES / 2 / size - 2,
                    DSA_POOL_BYTES / 2 / size);

    /* also with a short prompt, and others with long ones */

    first = n;

    for (i = 0; push(&h, DSA_LINK_COUNT, 1, 100, n, 60000) == 0; i++) {
        n++;
        assert_true(i < 100);
    }

    for (i = 0; i < first; i++) {
        assert_int_equal(push(&h, i % 2 ? DSA_LINK_COUNT : DSA_LINK_SUBMIT,
                              2 + i % 2, 100, i, size), 0);
    }

    collect(&h, &done);
    assert_int_equal(done.n, 0);

    /* a new tenant still gets a place, as long as it has less */

    for (i = 0; i < 4; i++) {
        assert_int_equal(push(&h, DSA_LINK_COUNT, 4, 100, i, size), 0);
    }

    collect(&h, &done);
    assert_in_range(done.n, 2, 5);

    for (i = 0; i < done.n; i++) {
        assert_int_equal(done.tenant[i], 1);
        assert_int_equal(done.number[i], first - 1 - i);
        assert_int_equal(done.error[i], DSA_LINK_E_TENANT);
    }

    /* in the end, all have the same */

    for (i = 4; push(&h, DSA_LINK_COUNT, 4, 100, i, size) == 0; i++) {
        assert_true(i < 100);
    }

    assert_in_range(i, DSA_POOL_BYTES / 4 / size - 1,
                    DSA_POOL_BYTES / 4 / size + 1);

    dsa_pool_stop(h.pool);
    collect(&h, &done);
    assert_in_range(done.n, 4, MOST);

    host_end(&h);
}


/* A prompt of any size is admitted to an empty pool, and blocks no other. */

static void
test_large(void **state)
{
    host_t    h;
    done_t    done;

    host_open(&h, "");

    assert_int_equal(push(&h, DSA_LINK_COUNT, 1, 100, 0, DSA_POOL_BYTES + 1),
                     0);
    assert_int_equal(push(&h, DSA_LINK_COUNT, 1, 100, 1, 10), -1);
    assert_int_equal(push(&h, DSA_LINK_COUNT, 2, 100, 0, 10), 0);

    collect(&h, &done);
    assert_int_equal(done.n, 1);
    assert_int_equal(done.tenant[0], 1);
    assert_int_equal(done.error[0], DSA_LINK_E_TENANT);

    dsa_pool_stop(h.pool);
    collect(&h, &done);
    assert_int_equal(done.n, 1);

    host_end(&h);
}


/* What a schema costs to compile counts, once. */

static void
test_grammars(void **state)
{
    host_t     h;
    done_t     done;
    uint32_t   i, k, round;
    dsa_buf_t  spec;

    host_open(&h, "");
    memset(&spec, 0, sizeof(spec));

    /* compiled in the first round, found in the second */

    for (round = 0; round < 2; round++) {
        for (i = 0; i < 5; i++) {
            spec.len = 0;
            dsa_buf_addz(&spec, "{\"type\":\"json_schema\",\"schema\":{"
                         "\"type\":\"array\",\"prefixItems\":[");

            for (k = 0; k < 10; k++) {
                dsa_buf_printf(&spec, "%s{\"type\":\"string\",\"pattern\":"
                               "\"^(a|b)*a(a|b){8}%u$\"}", k != 0 ? "," : "",
                               10 * i + k);
            }

            dsa_buf_addz(&spec, "]}}");
            dsa_buf_add(&spec, "", 1);

            assert_int_equal(push_spec(&h, DSA_LINK_COUNT, 1, 100, i, 10,
                                       spec.data), 0);
        }

        for (i = 0; i < 100; i++) {
            assert_int_equal(push(&h, DSA_LINK_COUNT, 2, 100, i, 900), 0);
        }

        dsa_pool_run(h.pool);
        collect(&h, &done);

        if (round == 0) {
            assert_in_range(share(&done, 60, 1), 1, 2);

        } else {
            assert_in_range(share(&done, 15, 1), 4, 5);
        }
    }

    dsa_buf_free(&spec);
    host_end(&h);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_grammars)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
