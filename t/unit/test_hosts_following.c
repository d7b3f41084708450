
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "t/fuzz/fuzz_hosts_follow.c"
#include "t/unit/hosts_corpus.h"


/*
 * What a leader must not send to a follower, after it has proved that it has
 * the secret, in each state: the follower ends with the reason; and the fuzz
 * target on its corpus.
 */

#define CORPUS      "t/fuzz/corpus/hosts_follow/"
#define STEPS       3           /* words between two that are replaced */

#define PLANNED     32          /* the first byte of an input: PLAN was sent */
#define DEEP        33          /* and two steps are in flight */
#define SLOW        44          /* and moves and operations take a while */


static input_t  in;


static void
begin(uint8_t flags)
{
    fuzz_flags = flags;
    in.n = 0;
}


static void
message(dsa_hosts_type_e type, uint32_t number, const void *data, size_t n)
{
    dsa_hosts_head_t  head = { type, number, n };

    input_add(&in, &head, sizeof(head));
    input_add(&in, data, n);
}


/* A head without what it announces. */

static void
announce(dsa_hosts_type_e type, uint64_t bytes)
{
    dsa_hosts_head_t  head = { type, 0, bytes };

    input_add(&in, &head, sizeof(head));
}


static void
move(uint32_t way, uint32_t rank, uint32_t page, uint32_t slab, uint32_t index)
{
    struct {
        dsa_hosts_moves_t  head;
        dsa_hosts_move_t   move;
    } m;

    memset(&m, 0, sizeof(m));
    m.head.way = way;
    m.head.rank = rank;
    m.move.page = page;
    m.move.slab = slab;
    m.move.index = index;
    memset(m.move.tag, 'a', sizeof(m.move.tag));
    message(DSA_HOSTS_MOVE, 0, &m, sizeof(m));
}


static void
tier(uint32_t id, uint32_t kind, uint32_t number, uint32_t index)
{
    dsa_hosts_op_t  op;

    memset(&op, 0, sizeof(op));
    op.id = id;
    op.kind = kind;
    op.tier = number;
    op.index = index;
    memset(op.tag, 'a', sizeof(op.tag));
    message(DSA_HOSTS_TIER, 0, &op, sizeof(op));
}


/* A step of a sequence on rank 1, which may follow that of the step before. */

static void
step(uint32_t number, uint32_t from)
{
    dsa_buf_t           out;
    dsa_err_t           err;
    dsa_sampling_t      sampling;
    dsa_batch_seq_t     seq;
    dsa_hosts_limits_t  limits = { 2, 1, 1, 256, 64, 3, 96, PAGES };

    static const uint32_t  tokens[] = { 1, 2, 3, 4 }, pages[] = { 1 };

    memset(&out, 0, sizeof(out));
    memset(&sampling, 0, sizeof(sampling));
    memset(&seq, 0, sizeof(seq));
    sampling.top_p = 1;
    seq.tokens = tokens;
    seq.start = 2;
    seq.n_input = 1;
    seq.n_prompt = 2;
    seq.input_from = from;
    seq.rank = 1;
    seq.pages = pages;
    seq.sampling = &sampling;

    assert_int_equal(dsa_hosts_step_write(&out, &limits, &seq, 1, &err),
                     DSA_OK);
    message(DSA_HOSTS_STEP, number, out.data, out.len);
    dsa_buf_free(&out);
}


/* The follower ends with this reason; NULL: it ends well after BYE. */

static void
ends(const char *why)
{
    dsa_err_t  err;

    if (why == NULL) {
        message(DSA_HOSTS_BYE, 0, NULL, 0);
    }

    fuzz_follow(in.byte, in.n, &err);

    if (why == NULL) {
        assert_string_equal(err.text, "");

    } else {
        contains(err.text, why);
    }
}


static void
test_corpus(void **state)
{
    corpus_run(CORPUS, STEPS);
}


/* What is not a plan, behind the proof of the leader. */

static void
test_plan(void **state)
{
    begin(0);
    input_add(&in, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27);
    ends(" bytes; expected PLAN 0 of 80 to 80 bytes");

    begin(0);
    announce(DSA_HOSTS_PLAN, UINT64_MAX);
    ends("has sent PLAN 0 of 18446744073709551615 bytes; expected PLAN 0 of 80 "
         "to 80 bytes");

    begin(0);
    step(0, DSA_INPUT_KNOWN);
    ends("expected PLAN 0 of 80");

    begin(0);
    ends("the leader has closed the connection");

    begin(PLANNED);
    ends("the leader has closed the connection");

    begin(PLANNED);
    ends(NULL);
}


/* A plan with one value that this host cannot have, or does not have. */

static void
test_planned(void **state)
{
    size_t            i;
    dsa_hosts_plan_t  plan;

    static const struct {
        size_t       at;
        uint32_t     value;
        const char  *why;
    } cases[] = {
        { offsetof(dsa_hosts_plan_t, hosts), 17, "\"hosts\" of the leader is "
          "17; expected 2 to 16" },
        { offsetof(dsa_hosts_plan_t, host), 0, "\"host\" of the leader is 0; "
          "expected 1 to 1" },
        { offsetof(dsa_hosts_plan_t, host), 2, "\"host\" of the leader is 2" },
        { offsetof(dsa_hosts_plan_t, gpus), 9, "\"gpus\" of the leader is 9; "
          "expected 1 to 8" },
        { offsetof(dsa_hosts_plan_t, gpus), 2, "the leader has \"gpus\" 2, and "
          "this host 1" },
        { offsetof(dsa_hosts_plan_t, backend), 3, "\"backend\" of the leader "
          "is 3" },
        { offsetof(dsa_hosts_plan_t, backend), 1, "the leader has \"backend "
          "cuda\", and this host \"backend cpu\"" },
        { offsetof(dsa_hosts_plan_t, precision), 2, "\"precision\" of the" },
        { offsetof(dsa_hosts_plan_t, kv), 3, "\"kv\" of the leader is 3" },
        { offsetof(dsa_hosts_plan_t, quantize), 2, "\"weights fp8\" of the" },
        { offsetof(dsa_hosts_plan_t, context), UINT32_MAX, "\"context_length\" "
          "of the leader is 4294967295" },
        { offsetof(dsa_hosts_plan_t, max_tokens), 0, "\"token_budget\" of" },
        { offsetof(dsa_hosts_plan_t, max_seqs), 0, "\"max_running\" of the" },
        { offsetof(dsa_hosts_plan_t, persistent), 2, "\"persistent\" of the" },
        { offsetof(dsa_hosts_plan_t, tiers), 8, "\"tiers\" of the leader is 8; "
          "expected 0 to 7" },
        { offsetof(dsa_hosts_plan_t, tiers), 2, "no such tiers" },
        { offsetof(dsa_hosts_plan_t, reserved), 1, "\"reserved\" of the" },
        { offsetof(dsa_hosts_plan_t, host_memory) + 4, UINT32_MAX,
          "\"host_memory\" of the leader is" },
        { offsetof(dsa_hosts_plan_t, host_memory), 0, "\"tiers\" of the leader "
          "is 4; expected 0 to 0" },
        { offsetof(dsa_hosts_plan_t, limit_ms), 0, "\"step_timeout\" of the" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fuzz_plan_set(&plan);
        memcpy((char *) &plan + cases[i].at, &cases[i].value,
               sizeof(uint32_t));

        begin(0);
        message(DSA_HOSTS_PLAN, 0, &plan, sizeof(plan));
        ends(cases[i].why);
    }

    fuzz_plan_set(&plan);
    begin(0);
    message(DSA_HOSTS_PLAN, 0, &plan, sizeof(plan));
    ends(NULL);
}


static void
test_steps(void **state)
{
    begin(PLANNED);
    step(0, DSA_INPUT_KNOWN);
    step(1, DSA_INPUT_KNOWN);
    ends(NULL);

    /* on this backend the step before has ended, and its samples are sent */

    begin(PLANNED);
    step(0, DSA_INPUT_KNOWN);
    step(1, 0);
    ends("entry 0 of a step follows entry 0; expected one of the step before");

    /* on this one both are in flight, and only the BYE is too early */

    begin(DEEP);
    step(0, DSA_INPUT_KNOWN);
    step(1, 0);
    message(DSA_HOSTS_BYE, 0, NULL, 0);
    ends("has sent BYE of 0 bytes; expected STEP");

    begin(DEEP);
    step(0, 0);
    ends("entry 0 of a step follows entry 0; expected one of the step before");

    begin(PLANNED);
    step(1, DSA_INPUT_KNOWN);
    ends("bytes; expected step 0 of at most");

    begin(PLANNED);
    message(DSA_HOSTS_STEP, 0, NULL, 0);
    ends("a step of 0 bytes has no number of entries");

    begin(PLANNED);
    announce(DSA_HOSTS_STEP, 1ULL << 60);
    ends("has sent step 0 of 1152921504606846976 bytes; expected step 0 of at "
         "most ");

    begin(DEEP);
    step(0, DSA_INPUT_KNOWN);
    step(1, DSA_INPUT_KNOWN);
    step(2, DSA_INPUT_KNOWN);
    ends("and no more than the backend has room for");
}


static void
test_moves(void **state)
{
    uint32_t  i;

    /* of pages that are there and are not; BYE may come before they end */

    begin(SLOW);
    move(DSA_MOVE_IN, 1, 1, 0, 1);
    move(DSA_MOVE_OUT, 1, 1, 0, 1);
    move(DSA_MOVE_OUT, 1, 1, 0, 1);
    move(DSA_MOVE_IN, 1, 2, 0, 1);
    ends(NULL);

    begin(PLANNED);
    move(DSA_MOVE_OUT, 0, 1, 0, 1);
    ends("has sent MOVE 0 of rank 0, which is not of this host");

    begin(PLANNED);
    move(DSA_MOVES, 1, 1, 0, 1);
    ends("has sent MOVE 2 of rank 1");

    begin(PLANNED);
    move(DSA_MOVE_IN, 1, PAGES, 0, 1);
    ends("has sent MOVE of page 8 and host page 1 of slab 0, which does not "
         "exist");

    begin(PLANNED);
    move(DSA_MOVE_IN, 1, 1, 0, HOST_PAGES);
    ends("which does not exist");

    begin(PLANNED);
    move(DSA_MOVE_IN, 1, 1, 2, 0);
    ends("which does not exist");

    begin(PLANNED);
    announce(DSA_HOSTS_MOVE, 1ULL << 63);
    ends("has sent MOVE of 9223372036854775808 bytes; expected 1 to 64 pages");

    begin(PLANNED);
    announce(DSA_HOSTS_MOVE, sizeof(dsa_hosts_moves_t));
    ends("has sent MOVE of 8 bytes; expected 1 to 64 pages");

    /* cut off in its middle */

    begin(PLANNED);
    move(DSA_MOVE_OUT, 1, 1, 0, 1);
    in.n--;
    ends("the leader has closed the connection");

    /* more than can be in flight, as earlier ones end */

    begin(PLANNED);

    for (i = 0; i < 3 * DSA_MOVE_CALLS; i++) {
        move(DSA_MOVE_OUT, 1, 1, 0, 1);
    }

    ends(NULL);
}


/* A backend that is slow has a limited number of moves in flight. */

static void
test_many(void **state)
{
    uint32_t  i;

    begin(PLANNED);
    fuzz_never = 1;

    for (i = 0; i <= DSA_MOVE_CALLS; i++) {
        move(DSA_MOVE_OUT, 1, 1, 0, 1);
    }

    ends("has sent more than 16 MOVE without their MOVED");

    fuzz_never = 0;
}


static void
test_tiers(void **state)
{
    /* twice, cancelled while it runs, when it has ended, and without it */

    begin(SLOW);
    tier(1, DSA_TIER_READ, DSA_TIER_REDIS, 1);
    tier(1, DSA_TIER_READ, DSA_TIER_REDIS, 1);
    tier(1, DSA_HOSTS_CANCEL, DSA_TIER_REDIS, 1);
    tier(1, DSA_HOSTS_CANCEL, DSA_TIER_REDIS, 1);
    tier(9, DSA_HOSTS_CANCEL, DSA_TIERS, UINT32_MAX);
    tier(2, DSA_TIER_WRITE, DSA_TIER_REDIS, 1);
    ends(NULL);

    begin(PLANNED);
    tier(1, DSA_TIER_READ, DSA_TIER_REDIS, HOST_PAGES);
    ends("has sent TIER 2 of tier 2 and host page 4 of slab 0, which does not "
         "exist");

    begin(PLANNED);
    tier(1, DSA_TIER_READ, DSA_TIER_HOST, 1);
    ends("has sent TIER 2 of tier 1");

    begin(PLANNED);
    tier(1, DSA_TIER_READ, DSA_TIERS, 1);
    ends("has sent TIER 2 of tier 3");

    begin(PLANNED);
    tier(1, DSA_TIER_PROBE, DSA_TIER_REDIS, 1);
    ends("has sent TIER 1 of tier 2");

    begin(PLANNED);
    announce(DSA_HOSTS_TIER, UINT64_MAX);
    ends("has sent TIER of 18446744073709551615 bytes; expected 56");
}


static void
test_copies(void **state)
{
    dsa_page_copy_t  copy[DSA_HOSTS_COPIES + 1];

    memset(copy, 0, sizeof(copy));

    begin(PLANNED);
    message(DSA_HOSTS_COPY, 0, copy, DSA_HOSTS_COPIES * sizeof(copy[0]));
    ends(NULL);

    begin(PLANNED);
    message(DSA_HOSTS_COPY, 0, copy, sizeof(copy));
    ends("has sent COPY of 4112 bytes; expected 1 to 256 copies of 16");

    begin(PLANNED);
    announce(DSA_HOSTS_COPY, 1ULL << 60);
    ends("has sent COPY of 1152921504606846976 bytes");

    begin(PLANNED);
    announce(DSA_HOSTS_COPY, 0);
    ends("has sent COPY of 0 bytes");

    begin(PLANNED);
    announce(DSA_HOSTS_COPY, 17);
    ends("has sent COPY of 17 bytes");
}


/* Messages of a follower and unknown ones, before a step and in it. */

static void
test_types(void **state)
{
    size_t  i;

    static const dsa_hosts_type_e  types[] = {
        DSA_HOSTS_HELLO, DSA_HOSTS_PROOFS, DSA_HOSTS_PLAN, DSA_HOSTS_READY,
        DSA_HOSTS_MOVED, DSA_HOSTS_TIERED, DSA_HOSTS_DATA, DSA_HOSTS_RESULT,
        DSA_HOSTS_FAULT, DSA_HOSTS_TYPES, (dsa_hosts_type_e) 0,
        (dsa_hosts_type_e) UINT32_MAX
    };

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        begin(PLANNED);
        message(types[i], 0, "junk", 4);
        ends("of 4 bytes; expected STEP, COPY, MOVE, TIER, or BYE after");

        begin(DEEP | 12);
        step(0, DSA_INPUT_KNOWN);
        message(types[i], 0, "junk", 4);
        ends("of 4 bytes; expected STEP, COPY, MOVE, TIER, or BYE after");
    }

    begin(PLANNED);
    message(DSA_HOSTS_BYE, 0, "junk", 4);
    ends("has sent BYE of 4 bytes; expected STEP");

    /* within the exchange of a step, only its DATA */

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        begin(PLANNED | 2);
        step(0, DSA_INPUT_KNOWN);
        message(types[i], types[i] == DSA_HOSTS_DATA ? 2 : 1, "2b", 2);
        ends(types[i] == DSA_HOSTS_FAULT ? "the leader: 2b"
             : "of 2 bytes; expected DATA 1 of 2 to 2 bytes");
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_corpus),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_planned),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_tiers),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_types)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
