
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The scheduler with slower tiers at random: whatever happens to pages on their
 * way, every answer is what its prompt determines.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"
#include "tiers.h"


/*
 * Random requests on 1 to 3 ranks, with everything that can happen to pages on
 * their way: Redis off at any call, splits, drafts, memory of several nodes, on
 * two hosts, of which the other one has lost pages, or too small for a prefix,
 * and the end of the replica.  Every answer is compared
 * with what its prompt determines.  DSA_TIERS_STATS=1 prints what a round
 * reached; DSA_TIERS_FIRST and DSA_TIERS_ROUNDS select other rounds.
 */

static uint64_t  noise;

static uint32_t
random_below(uint32_t n)
{
    noise = noise * 6364136223846793005ULL + 1442695040888963407ULL;

    return (uint32_t) (noise >> 33) % n;
}


static void
shake(fake_t *f)
{
    uint32_t  r;

    f->now_us += random_below(300) == 0 ? 200 * 1000 : random_below(2000);
    redis_begin(&redis, random_below(4));
    redis_run(&redis, random_below(40));

    for (r = 0; r < ranks; r++) {
        way[r][DSA_MOVE_IN].may_end += random_below(2);
        way[r][DSA_MOVE_OUT].may_end += random_below(2);
    }

    if (random_below(20) == 0) {
        redis.damage = random_below(3);
        redis.fail = random_below(3);
        redis.vanish = random_below(3);
        lose = hosts > 1 ? random_below(3) : 0;
    }

    if (!redis.on) {
        redis.on = random_below(10) == 0;

    } else if (random_below(100) == 0) {
        redis.off_after = 1 + random_below(20);
    }
}


/* If there are few clients, long prompts are split. */

static void
submit_random(dsa_sched_t *s, client_t *c, uint32_t seed, int few)
{
    uint32_t  n;

    n = random_below(few ? 2 : 10) == 0 ? 80 * PAGE : 20 * PAGE;

    memset(c, 0, sizeof(client_t));
    c->seed = seed;
    c->private = random_below(8) == 0;

    if (max_outputs > 1 && random_below(2) == 0) {
        c->draft_right = random_below(4);
        c->draft_wrong = random_below(3);
    }

    penalty = random_below(4) == 0 ? 0.5f : 0;

    submit(s, c, random_below(3), random_below(12), 1 + random_below(n),
           1 + random_below(90), 1 + random_below(3));
}


static void
check_stats(dsa_sched_t *s)
{
    uint32_t           i;
    uint64_t           hits;
    dsa_tier_stats_t  *tier;
    dsa_sched_stats_t  stats;

    dsa_sched_stats(s, &stats);
    tier = stats.tier;

    for (i = 0, hits = 0; i < DSA_TIERS; i++) {
        hits += tier[i].hit_tokens;
    }

    assert_int_equal(hits, stats.cached_tokens);

    if (getenv("DSA_TIERS_STATS") != NULL) {
        print_message("%u ranks, %u hosts, %u slabs of %u: %llu prompt "
                      "tokens, hits %llu %llu %llu, preempted %llu, abandoned "
                      "%llu, split %llu, drafts %llu\n", ranks, hosts, slabs,
                      host.slab[0].pages,
                      (unsigned long long) stats.prompt_tokens,
                      (unsigned long long) tier[DSA_TIER_GPU].hit_tokens,
                      (unsigned long long) tier[DSA_TIER_HOST].hit_tokens,
                      (unsigned long long) tier[DSA_TIER_REDIS].hit_tokens,
                      (unsigned long long) stats.preemptions,
                      (unsigned long long) tier[DSA_TIER_REDIS].abandoned,
                      (unsigned long long) stats.split_prompts,
                      (unsigned long long) stats.draft_tokens);
    }
}


static void
test_random(void **state)
{
    enum { CLIENTS = 12 };

    fake_t       *f;
    client_t     *c;
    uint32_t      i, round, made, ended, clients, first, rounds;
    dsa_err_t     err;
    const char   *more;
    dsa_sched_t  *s;

    static client_t  client[CLIENTS];

    (void) state;

    more = getenv("DSA_TIERS_ROUNDS");
    rounds = more != NULL ? (uint32_t) atoi(more) : 36;
    first = getenv("DSA_TIERS_FIRST") != NULL
            ? (uint32_t) atoi(getenv("DSA_TIERS_FIRST")) : 0;

    for (round = first; round < first + rounds; round++) {
        noise = 1000 + round;
        depth = 1 + round % 2;
        ranks = 1 + round % 3;
        slabs = 1 + round / 3 % 2;
        hosts = ranks == 2 && round / 6 % 2 ? 2 : 1;
        max_outputs = round % 5 < 2 ? 4 : 1;
        max_drafts = round % 5 == 1 ? 3 : 0;
        clients = round / 2 % 2 ? 2 : CLIENTS;
        made = 0;
        ended = 0;

        s = start_tiers(&f, 100, 1 + random_below(round / 4 % 2 ? 12 : 200),
                        round % 4 != 3);
        f->next_right = NEXT_RANDOM;
        f->base_us = 100;
        f->token_us = round % 5 * (round % 5) * 10;
        moves_wait = 1;
        redis.held = 1;
        memset(client, 0, sizeof(client));

        while (made < 150 || dsa_sched_busy(s) || ended < made) {
            for (i = 0; i < clients; i++) {
                c = &client[i];

                if (c->seq != NULL && random_below(60) == 0) {
                    dsa_sched_cancel(s, c->seq, DSA_FINISH_CANCELLED);
                }

                if (c->finish != 0) {
                    check_answer(c);
                    assert_int_equal(c->usage.tier_tokens[DSA_TIER_GPU]
                                     + c->usage.tier_tokens[DSA_TIER_HOST]
                                     + c->usage.tier_tokens[DSA_TIER_REDIS],
                                     c->usage.cached_tokens);
                    free(c->prompt);
                    ended++;
                    memset(c, 0, sizeof(client_t));
                }

                if (c->seq == NULL && made < 150 && random_below(4) == 0) {
                    made++;
                    submit_random(s, c, made, clients != CLIENTS);
                }
            }

            shake(f);

            if (random_below(3) == 0 || !dsa_sched_busy(s)) {
                assert_int_equal(dsa_sched_poll(s, &err), DSA_OK);
                audit(s);
            }

            if (dsa_sched_busy(s)) {
                step(s);
            }

            /* a replica ends at any moment */

            if (round % 9 == 8 && made == 140) {
                break;
            }
        }

        if (made == 150) {
            redis.on = 1;
            redis.off_after = 0;
            redis.held = 0;
            moves_wait = 0;
            settle(s);
            check_free(s);
        }

        for (i = 0; i < clients; i++) {
            free(client[i].prompt);
        }

        check_stats(s);

        /* some rounds begin with what the one before left in Redis */

        finish_tiers(s, f);

        if (random_below(4) == 0) {
            redis_reset();
        }

        redis.on = 1;
        redis.off_after = 0;
    }

    slabs = 1;
    hosts = 1;
    max_outputs = 1;
    max_drafts = 0;
    penalty = 0;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup(test_random, setup)
    };

    /* a page that another host has lost is a warning */

    dsa_log_level(DSA_LOG_ERR);

    return cmocka_run_group_tests(tests, NULL, NULL);
}
