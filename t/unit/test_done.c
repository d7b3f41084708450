
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The tiers of the prefix cache in the link: the cached tokens of DONE, and the
 * tiers in the control block.  The replica's usage is replaced by one that has
 * tokens of each tier: all of the prompt is cached, 5 tokens in host memory and
 * 3 in Redis.
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
    tiers.tier_tokens[DSA_TIER_GPU] = tiers.prompt_tokens - 8;
    tiers.tier_tokens[DSA_TIER_HOST] = 5;
    tiers.tier_tokens[DSA_TIER_REDIS] = 3;
    tiers.draft_tokens = 4;
    tiers.accepted_tokens = 2;

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


/* The record that the replica writes, word by word. */

static void
test_record(void **state)
{
    const void          *payload;
    dsa_link_done_t      done;
    dsa_link_ring_t      in, out;
    dsa_link_record_t    record;
    dsa_link_indices_t   indices;

    _Alignas(8)
    static uint8_t       data[4096];

    static const uint32_t  want[12] = {
        2, 1000, 20, 5, 6, 7, 0, 448, 128, 64, 30, 11
    };

    memset(&indices, 0, sizeof(indices));
    memset(&in, 0, sizeof(in));
    memset(&done, 0, sizeof(done));
    memset(&record, 0, sizeof(record));

    in.shared = &indices;
    in.data = data;
    in.size = sizeof(data);
    out = in;

    done.finish = DSA_LINK_FINISH_LENGTH;
    done.prompt_tokens = 1000;
    done.completion_tokens = 20;
    done.queue_ms = 5;
    done.prefill_ms = 6;
    done.decode_ms = 7;
    done.cached_tokens[DSA_TIER_GPU] = 448;
    done.cached_tokens[DSA_TIER_HOST] = 128;
    done.cached_tokens[DSA_TIER_REDIS] = 64;
    done.draft_tokens = 30;
    done.accepted_tokens = 11;

    assert_int_equal(dsa_record_done(&in, 9, &done), DSA_OK);
    (void) dsa_link_commit(&in);

    assert_int_equal(dsa_link_peek(&out, &record, &payload), 1);
    assert_int_equal(record.type, DSA_LINK_DONE);
    assert_int_equal(record.id, 9);
    assert_int_equal(record.length, 48);
    assert_memory_equal(payload, want, record.length);
    dsa_link_release(&out);

    assert_int_equal(dsa_link_peek(&out, &record, &payload), 0);
}


/* What a replica reports to a worker. */

static void
test_replica(void **state)
{
    void                *payload;
    host_t               h;
    uint32_t             turns, length, word[12];
    link_submit_t        s;
    dsa_link_record_t    record;

    host_start(&h, "");

    link_submit_init(&s, 3);
    link_submit_text(&s, "0123456789");
    assert_int_equal(link_client_send(&h.client[0], DSA_LINK_SUBMIT,
                                      dsa_link_id(1, 0), &s), 0);
    length = 0;

    for (turns = 0; turns < 100000 && length == 0; turns++) {
        host_round(&h);

        while (link_client_next(&h.client[0], &record, &payload, 0) == 1) {
            if (record.type == DSA_LINK_DONE) {
                length = record.length;
                assert_true(record.length <= sizeof(word));
                memcpy(word, payload, record.length);
            }

            free(payload);
        }
    }

    assert_int_equal(length, 48);
    assert_int_equal(word[0], DSA_LINK_FINISH_LENGTH);
    assert_int_equal(word[1], 10);
    assert_int_equal(word[2], 3);
    assert_int_equal(word[6], 0);
    assert_int_equal(word[7], 2);
    assert_int_equal(word[8], 5);
    assert_int_equal(word[9], 3);
    assert_int_equal(word[10], 4);
    assert_int_equal(word[11], 2);

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

    word = (const uint64_t *) ((uint8_t *) h.client[1].base + 544);
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
        cmocka_unit_test(test_record),
        cmocka_unit_test(test_replica),
        cmocka_unit_test(test_tiers)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
