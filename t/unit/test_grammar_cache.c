
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The cache of grammars: what is compiled, and what is evicted.  Compilations
 * are counted where the cache calls the compiler.
 */


#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "engine/service/grammar_cache.h"
#include "grammar.h"


#define THREADS     8


int __real_dsa_grammar_compile(dsa_grammar_t **grammar, dsa_str_t spec,
    dsa_str_t control, dsa_grammar_error_t *error);
int __wrap_dsa_grammar_compile(dsa_grammar_t **grammar, dsa_str_t spec,
    dsa_str_t control, dsa_grammar_error_t *error);


static _Atomic uint32_t      compiled;
static _Atomic uint32_t      waiting;       /* until so many threads wait */
static int                   no_memory;

static const uint8_t         alice[32] = "alice";
static const uint8_t         bob[32] = "bob";
static const uint8_t         carol[32] = "carol";


int
__wrap_dsa_grammar_compile(dsa_grammar_t **grammar, dsa_str_t spec,
    dsa_str_t control, dsa_grammar_error_t *error)
{
    (void) atomic_fetch_add(&compiled, 1);

    while (atomic_load(&waiting) != 0) {
        (void) usleep(1000);
    }

    if (no_memory) {
        memset(error, 0, sizeof(dsa_grammar_error_t));
        error->no_memory = 1;
        return DSA_ERROR;
    }

    return __real_dsa_grammar_compile(grammar, spec, control, error);
}


static int
get(dsa_grammar_cache_t *c, dsa_grammar_entry_t **e, const uint8_t *tenant,
    const char *spec, int compile, dsa_grammar_error_t *error)
{
    return dsa_grammar_cache_get(c, e, tenant, dsa_strz(spec), 0, compile,
                                 error);
}


/* Gets and releases entry n of a tenant; returns how often it compiled. */

static uint32_t
use(dsa_grammar_cache_t *c, const uint8_t *tenant, const char *kind,
    uint32_t n)
{
    char                  spec[200];
    uint32_t              before;
    dsa_grammar_entry_t  *e;
    dsa_grammar_error_t   error;

    (void) snprintf(spec, sizeof(spec), "{\"type\":\"json_schema\","
                    "\"schema\":{\"%s\":\"%u\"}}", kind, n);

    before = atomic_load(&compiled);

    if (get(c, &e, tenant, spec, 1, &error) == DSA_OK) {
        assert_non_null(dsa_grammar_entry_grammar(e));
        dsa_grammar_cache_release(c, e);

    } else {
        assert_int_equal(error.no_memory, 0);
        assert_string_not_equal(error.message, "");
    }

    return atomic_load(&compiled) - before;
}


/* Accepted and refused specs are compiled once. */

static void
test_once(void **state)
{
    uint32_t              i;
    dsa_grammar_cache_t  *c;
    dsa_grammar_entry_t  *e, *other;
    dsa_grammar_error_t   error, again;

    static const char  good[] = "{\"type\":\"json_object\"}";
    static const char  bad[] = "{\"type\":\"json_schema\",\"schema\":{"
                               "\"properties\":{\"a\":{\"contains\":1}}}}";

    c = dsa_grammar_cache_create(dsa_strz(DSML));
    assert_non_null(c);
    atomic_store(&compiled, 0);

    /* without the compiler, before and after */

    assert_int_equal(get(c, &e, alice, good, 0, &error), DSA_AGAIN);
    assert_int_equal(get(c, &e, alice, bad, 0, &error), DSA_AGAIN);
    assert_int_equal(atomic_load(&compiled), 0);

    assert_int_equal(get(c, &e, alice, good, 1, &error), DSA_OK);
    assert_in_range(error.work, 1, DSA_GRAMMAR_WORK);

    for (i = 0; i < 10; i++) {
        assert_int_equal(get(c, &other, i % 2 ? alice : bob, good,
                             (int) i % 3, &error), DSA_OK);
        assert_ptr_equal(e, other);
        assert_int_equal(error.work, 0);
        dsa_grammar_cache_release(c, other);
    }

    assert_int_equal(atomic_load(&compiled), 1);
    dsa_grammar_cache_release(c, e);

    assert_int_equal(get(c, &e, alice, bad, 1, &error), DSA_ERROR);
    assert_string_equal(error.path, "properties.a");
    assert_int_equal(error.no_memory, 0);
    assert_in_range(error.work, 1, DSA_GRAMMAR_WORK);

    for (i = 0; i < 10; i++) {
        assert_int_equal(get(c, &e, i % 2 ? alice : bob, bad, (int) i % 3,
                             &again), DSA_ERROR);
        assert_string_equal(again.path, error.path);
        assert_string_equal(again.message, error.message);
        assert_int_equal(again.work, 0);
    }

    assert_int_equal(atomic_load(&compiled), 2);

    /* a lack of memory is not kept */

    no_memory = 1;
    assert_int_equal(get(c, &e, alice, "{\"type\":\"json_schema\","
                         "\"schema\":{}}", 1, &error), DSA_ERROR);
    assert_int_equal(error.no_memory, 1);
    no_memory = 0;
    assert_int_equal(get(c, &e, alice, "{\"type\":\"json_schema\","
                         "\"schema\":{}}", 1, &error), DSA_OK);
    dsa_grammar_cache_release(c, e);

    dsa_grammar_cache_destroy(c);
    dsa_grammar_cache_destroy(NULL);
}


/*
 * A tenant with new schemas all the time, good or bad ones, evicts its own, and
 * not those of the others.
 */

static void
check_flood(const char *kind)
{
    uint32_t              i, n;
    dsa_grammar_cache_t  *c;

    c = dsa_grammar_cache_create(dsa_strz(DSML));
    assert_non_null(c);

    for (i = 0; i < 20; i++) {
        assert_int_equal(use(c, alice, "const", i), 1);
        assert_int_equal(use(c, bob, "const", 100 + i), 1);
    }

    for (i = 0; i < 3 * DSA_GRAMMAR_CACHE_MOST; i++) {
        assert_int_equal(use(c, carol, kind, 1000 + i), 1);
    }

    for (i = 0; i < 20; i++) {
        assert_int_equal(use(c, alice, "const", i), 0);
        assert_int_equal(use(c, bob, "const", 100 + i), 0);
    }

    /* its newest ones are there, and the oldest are not */

    for (i = 3 * DSA_GRAMMAR_CACHE_MOST - 1, n = 0;
         use(c, carol, kind, 1000 + i) == 0;
         i--)
    {
        n++;
    }

    assert_in_range(n, DSA_GRAMMAR_CACHE_MOST / 2, DSA_GRAMMAR_CACHE_MOST);

    dsa_grammar_cache_destroy(c);
}


static void
test_flood(void **state)
{
    check_flood("const");
    check_flood("if");
}


/* An entry stays with the tenant that used it last. */

static void
test_shared(void **state)
{
    uint32_t              i;
    dsa_grammar_cache_t  *c;

    c = dsa_grammar_cache_create(dsa_strz(DSML));
    assert_non_null(c);

    assert_int_equal(use(c, carol, "const", 1), 1);
    assert_int_equal(use(c, alice, "const", 1), 0);

    for (i = 0; i < 2 * DSA_GRAMMAR_CACHE_MOST; i++) {
        assert_int_equal(use(c, carol, "const", 10 + i), 1);
    }

    assert_int_equal(use(c, alice, "const", 1), 0);

    dsa_grammar_cache_destroy(c);
}


/* A spec whose grammar is large, another one for each number. */

static void
large(dsa_buf_t *spec, uint32_t n)
{
    uint32_t  i;

    spec->len = 0;
    dsa_buf_printf(spec, "{\"type\":\"json_schema\",\"schema\":{\"enum\":[%u",
                   n);

    for (i = 0; i < 9000; i++) {
        dsa_buf_printf(spec, ",\"a value %u of a large enum\"", i);
    }

    dsa_buf_addz(spec, "]}}");
}


/* Bytes are bounded as well, and what is in use is not evicted. */

static void
test_bytes(void **state)
{
    size_t                all, bytes;
    uint32_t              i, n;
    dsa_buf_t             spec;
    dsa_grammar_cache_t  *c;
    dsa_grammar_entry_t  *e, *held;
    dsa_grammar_error_t   error;

    c = dsa_grammar_cache_create(dsa_strz(DSML));
    assert_non_null(c);
    assert_int_equal(use(c, alice, "const", 1), 1);

    memset(&spec, 0, sizeof(spec));
    held = NULL;
    bytes = 0;
    all = 0;

    for (n = 0; all < 2UL * DSA_GRAMMAR_CACHE_BYTES; n++) {
        large(&spec, n);

        assert_int_equal(dsa_grammar_cache_get(c, &e, bob,
                                               dsa_str(spec.data, spec.len),
                                               0, 1, &error), DSA_OK);
        bytes = dsa_grammar_bytes(dsa_grammar_entry_grammar(e));
        all += bytes;

        if (n == 0) {
            held = e;

        } else {
            dsa_grammar_cache_release(c, e);
        }
    }

    assert_in_range(n, 10, DSA_GRAMMAR_CACHE_MOST - 1);
    assert_int_equal(use(c, alice, "const", 1), 0);

    /* the newest ones, and the one that is held */

    for (i = 0, all = 0; i < n; i++) {
        large(&spec, i);

        if (dsa_grammar_cache_get(c, &e, bob, dsa_str(spec.data, spec.len), 0,
                                  0, &error)
            == DSA_OK)
        {
            dsa_grammar_cache_release(c, e);
            all += bytes;

        } else {
            assert_in_range(i, 1, n / 2 + 2);
        }
    }

    assert_in_range(all, DSA_GRAMMAR_CACHE_BYTES - 2 * bytes,
                    DSA_GRAMMAR_CACHE_BYTES + 2 * bytes);

    dsa_grammar_cache_release(c, held);
    dsa_buf_free(&spec);
    dsa_grammar_cache_destroy(c);
}


/* Many threads need one spec at once. */

typedef struct {
    dsa_grammar_cache_t  *c;
    const char           *spec;
    pthread_t             thread;
    int                   rc;
    dsa_grammar_entry_t  *e;
    dsa_grammar_error_t   error;
} user_t;


static void *
user_run(void *data)
{
    user_t  *u = data;

    u->rc = get(u->c, &u->e, alice, u->spec, 1, &u->error);

    return NULL;
}


static void
check_together(const char *spec, int rc)
{
    uint32_t              i, n;
    user_t                u[THREADS];
    dsa_grammar_cache_t  *c;

    c = dsa_grammar_cache_create(dsa_strz(DSML));
    assert_non_null(c);

    atomic_store(&compiled, 0);
    atomic_store(&waiting, 1);

    for (i = 0; i < THREADS; i++) {
        u[i].c = c;
        u[i].spec = spec;
        assert_int_equal(pthread_create(&u[i].thread, NULL, user_run, &u[i]),
                         0);
    }

    while (atomic_load(&compiled) == 0) {
        (void) usleep(1000);
    }

    atomic_store(&waiting, 0);

    for (i = 0; i < THREADS; i++) {
        (void) pthread_join(u[i].thread, NULL);
    }

    assert_int_equal(atomic_load(&compiled), no_memory ? compiled : 1);

    for (i = 0, n = 0; i < THREADS; i++) {
        assert_int_equal(u[i].rc, rc);
        assert_int_equal(u[i].error.no_memory, no_memory);
        n += u[i].error.work != 0;

        if (rc == DSA_OK) {
            assert_ptr_equal(u[i].e, u[0].e);
            dsa_grammar_cache_release(c, u[i].e);

        } else {
            assert_string_equal(u[i].error.path, u[0].error.path);
        }
    }

    assert_int_equal(n, !no_memory);

    dsa_grammar_cache_destroy(c);
}


static void
test_together(void **state)
{
    check_together("{\"type\":\"json_object\"}", DSA_OK);
    check_together("{\"type\":\"json_schema\",\"schema\":{\"contains\":1}}",
                   DSA_ERROR);

    no_memory = 1;
    check_together("{\"type\":\"json_object\"}", DSA_ERROR);
    no_memory = 0;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_once),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_together)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
