
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Versions 3 to 5 of the link: DONE with and without the tiers of cached
 * tokens, and the tiers in the control block, which version 5 has as version 4
 * does.  The replica's usage is replaced by one that has tokens of each tier:
 * all of the prompt is cached, 5 tokens in host memory and 3 in Redis.
 */


#include "engine/service/records.h"
#include "t/unit/host.h"


dsa_sched_t *__real_dsa_sched_create(dsa_backend_t *backend,
    const dsa_sched_conf_t *conf, const dsa_sched_handler_t *handler,
    dsa_err_t *err);
dsa_sched_t *__wrap_dsa_sched_create(dsa_backend_t *backend,
    const dsa_sched_conf_t *conf, const dsa_sched_handler_t *handler,
    dsa_err_t *err);


static const dsa_sched_handler_t  *replica;


static void
done_with_tiers(void *owner, const dsa_sched_usage_t *usage)
{
    dsa_sched_usage_t  tiers;

    tiers = *usage;
    tiers.cached_tokens = tiers.prompt_tokens;
    tiers.host_tokens = 5;
    tiers.redis_tokens = 3;

    replica->done(owner, &tiers);
}


/* The linker calls this one in place of dsa_sched_create(). */

dsa_sched_t *
__wrap_dsa_sched_create(dsa_backend_t *backend, const dsa_sched_conf_t *conf,
    const dsa_sched_handler_t *handler, dsa_err_t *err)
{
    static dsa_sched_handler_t  changed;

    replica = handler;
    changed = *handler;
    changed.done = done_with_tiers;

    return __real_dsa_sched_create(backend, conf, &changed, err);
}


/* A DONE as words, in the byte order of the machine. */

static void
test_done(void **state)
{
    size_t            i;
    dsa_link_done_t   done;

    static const struct {
        uint32_t  version;
        uint32_t  length;
        uint32_t  prompt;
        uint32_t  cached;
        uint32_t  host;
        uint32_t  redis;
        int       rc;
    } t[] = {
        { 4, 40, 1000, 640, 128, 64, 0 },
        { 4, 40, 1000, 640, 0, 0, 0 },
        { 4, 40, 1000, 640, 640, 0, 0 },
        { 4, 40, 1000, 640, 0, 640, 0 },
        { 4, 40, 1000, 1000, 500, 500, 0 },
        { 4, 40, 0, 0, 0, 0, 0 },

        /* more of the slower tiers than cached, more cached than prompt */

        { 4, 40, 1000, 640, 641, 0, -1 },
        { 4, 40, 1000, 640, 0, 641, -1 },
        { 4, 40, 1000, 640, 320, 321, -1 },
        { 4, 40, 1000, 0, 0, 1, -1 },
        { 4, 40, 1000, 640, UINT32_MAX, 1, -1 },        /* 0 as 32 bits */
        { 4, 40, 1000, 640, UINT32_MAX, 641, -1 },
        { 4, 40, 1000, 1001, 0, 0, -1 },
        { 4, 40, 0, UINT32_MAX, UINT32_MAX, 0, -1 },

        /* each version has one length */

        { 4, 0, 1000, 640, 0, 0, -1 },
        { 4, 32, 1000, 640, 0, 0, -1 },
        { 4, 36, 1000, 640, 0, 0, -1 },
        { 4, 44, 1000, 640, 0, 0, -1 },
        { 3, 28, 1000, 640, 0, 0, -1 },
        { 3, 40, 1000, 640, 0, 0, -1 },
        { 3, 32, 1000, 640, 0, 0, 0 },
        { 3, 32, 1000, 1001, 0, 0, -1 },

        /* what is behind a DONE of version 3 is not a part of it */

        { 3, 32, 1000, 640, 777, 777, 0 }
    };

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        uint32_t  word[11] = { 1, t[i].prompt, t[i].cached, 20, 5, 6, 7, 0,
                               t[i].host, t[i].redis, 0 };

        if (dsa_link_done_read(&done, t[i].version, word, t[i].length)
            != t[i].rc)
        {
            fail_msg("DONE %zu of the table", i);
        }

        if (t[i].rc != 0) {
            continue;
        }

        assert_int_equal(done.finish, DSA_LINK_FINISH_STOP);
        assert_int_equal(done.prompt_tokens, t[i].prompt);
        assert_int_equal(done.cached_tokens, t[i].cached);
        assert_int_equal(done.completion_tokens, 20);
        assert_int_equal(done.queue_ms, 5);
        assert_int_equal(done.prefill_ms, 6);
        assert_int_equal(done.decode_ms, 7);
        assert_int_equal(done.host_tokens, t[i].version == 3 ? 0 : t[i].host);
        assert_int_equal(done.redis_tokens,
                         t[i].version == 3 ? 0 : t[i].redis);
    }
}


/* The record that the replica writes, word by word. */

static void
test_record(void **state)
{
    uint32_t             version;
    const void          *payload;
    dsa_link_done_t      done;
    dsa_link_ring_t      in, out;
    dsa_link_record_t    record;
    dsa_link_indices_t   indices;

    _Alignas(8)
    static uint8_t       data[4096];

    static const uint32_t  want[10] = {
        2, 1000, 640, 20, 5, 6, 7, 0, 128, 64
    };

    memset(&indices, 0, sizeof(indices));
    memset(&in, 0, sizeof(in));
    memset(&done, 0, sizeof(done));

    in.shared = &indices;
    in.data = data;
    in.size = sizeof(data);
    out = in;

    done.finish = DSA_LINK_FINISH_LENGTH;
    done.prompt_tokens = 1000;
    done.cached_tokens = 640;
    done.completion_tokens = 20;
    done.queue_ms = 5;
    done.prefill_ms = 6;
    done.decode_ms = 7;
    done.host_tokens = 128;
    done.redis_tokens = 64;

    for (version = 3; version <= DSA_LINK_VERSION_MAX;
         version++) {
        assert_int_equal(dsa_record_done(&in, version, 9, &done), DSA_OK);
        (void) dsa_link_commit(&in);

        assert_int_equal(dsa_link_peek(&out, &record, &payload), 1);
        assert_int_equal(record.type, DSA_LINK_DONE);
        assert_int_equal(record.id, 9);
        assert_int_equal(record.length, version == 3 ? 32 : 40);
        assert_memory_equal(payload, want, record.length);
        dsa_link_release(&out);
    }

    assert_int_equal(dsa_link_peek(&out, &record, &payload), 0);
}


/* Workers of both versions at one replica, and what it reports to them. */

static void
test_both(void **state)
{
    int                  i, rc;
    void                *payload;
    host_t               h;
    uint32_t             turns, length[2], word[2][10];
    link_submit_t        s;
    dsa_link_record_t    record;

    host_open(&h, "");
    host_connect(&h, 0, 3, 3);
    host_connect(&h, 1, 3, 4);

    assert_int_equal(h.client[0].hello.version, 3);
    assert_int_equal(h.client[1].hello.version, 4);

    for (i = 0; i < 2; i++) {
        link_submit_init(&s, 3);
        link_submit_text(&s, "0123456789");
        assert_int_equal(link_client_send(&h.client[i], DSA_LINK_SUBMIT,
                                          dsa_link_id(1, 0), &s), 0);
        length[i] = 0;
    }

    for (turns = 0;
         turns < 100000 && (length[0] == 0 || length[1] == 0);
         turns++)
    {
        host_turn(&h);

        for (i = 0; i < 2; i++) {
            for ( ;; ) {
                rc = link_client_next(&h.client[i], &record, &payload, 0);

                if (rc != 1) {
                    break;
                }

                if (record.type == DSA_LINK_DONE) {
                    length[i] = record.length;
                    assert_true(record.length <= sizeof(word[i]));
                    memcpy(word[i], payload, record.length);
                }

                free(payload);
            }
        }
    }

    assert_int_equal(length[0], 32);
    assert_int_equal(length[1], 40);

    for (i = 0; i < 2; i++) {
        assert_int_equal(word[i][0], DSA_LINK_FINISH_LENGTH);
        assert_int_equal(word[i][1], 10);
        assert_int_equal(word[i][2], 10);
        assert_int_equal(word[i][3], 3);
        assert_int_equal(word[i][7], 0);
    }

    assert_int_equal(word[1][8], 5);
    assert_int_equal(word[1][9], 3);

    for (i = 2; i < WORKERS; i++) {
        host_connect(&h, i, 3, 4);
    }

    host_stop(&h);
}


/* The control block: 13 words for each tier, behind the bytes of a page. */

static void
test_tiers(void **state)
{
    host_t             h;
    uint32_t           i, j;
    uint64_t          *stats;
    const uint64_t    *word;

    host_start(&h, "");

    h.service.page_bytes = 3080192;
    stats = (uint64_t *) h.io.sessions.stats.tier;

    for (i = 0; i < 3 * 13; i++) {
        stats[i] = 1000 + i;
    }

    dsa_session_publish(h.session[1], 12345, 0);

    word = (const uint64_t *) ((uint8_t *) h.client[1].base + 464);
    assert_int_equal(word[0], 3080192);

    for (i = 0; i < 3; i++) {
        for (j = 0; j < 13; j++) {
            assert_int_equal(word[1 + i * 13 + j], 1000 + i * 13 + j);
        }
    }

    /* the tiers in their order, and the words that others read by position */

    assert_int_equal(atomic_load(&h.client[1].link.control->tier[0].pages),
                     1000);
    assert_int_equal(atomic_load(&h.client[1].link.control->tier[1].used),
                     h.io.sessions.stats.tier[DSA_TIER_HOST].used);
    assert_int_equal(atomic_load(&h.client[1].link.control->tier[2].lost),
                     h.io.sessions.stats.tier[DSA_TIER_REDIS].lost);

    host_stop(&h);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_done),
        cmocka_unit_test(test_record),
        cmocka_unit_test(test_both),
        cmocka_unit_test(test_tiers)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
