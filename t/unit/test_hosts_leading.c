
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>

#include "engine/hosts/pages.h"
#include "t/fuzz/fuzz_hosts_lead.c"
#include "t/unit/hosts_corpus.h"


/*
 * What a follower must not send to a leader, after it has proved that it has
 * the secret, in each state: the leader names it, with the reason; and the fuzz
 * target on its corpus.
 */

#define CORPUS      "t/fuzz/corpus/hosts_lead/"
#define STEPS       3           /* words between two that are replaced */

#define BOTH        1           /* the first byte of an input: two followers */
#define BARE        2           /* and no host memory */
#define EXCHANGE    4           /* and an exchange in each step */
#define UNREADY     24          /* and READY is in the input */

/* calls as the fuzz target has them; those of pages are for rank 1 */

#define START       0x34        /* of four entries, on both hosts in turn */
#define WAIT        0x85        /* the answer has been sent */
#define WAIT_END    0x05        /* the followers close their sides before */
#define MOVE_OUT    0x26
#define MOVE_IN     0x36
#define MOVED_OUT   0x27
#define MOVED_IN    0x37
#define MOVED_WAIT  0x28        /* waits for a MOVE_OUT, and for no more */
#define READ        0x29
#define CANCEL      0x0a
#define COLLECT     0x0b
#define COPY        0x0c
#define CHECK       0x0d


static input_t  in;


static void
begin(uint8_t flags)
{
    fuzz_flags = flags;
    in.n = 0;
}


static void
call(uint8_t byte)
{
    input_add(&in, &byte, 1);
}


/* A message of a follower, 0 or 1. */

static void
sends(uint8_t follower, dsa_hosts_type_e type, uint8_t number,
    const void *data, uint8_t n)
{
    uint8_t  head[4] = { (uint8_t) (follower << 4), (uint8_t) type, number, n };

    input_add(&in, head, sizeof(head));
    input_add(&in, data, n);
}


/* One whose head has another length. */

static void
announces(dsa_hosts_type_e type, uint8_t number, uint32_t bytes)
{
    uint8_t  head[4] = { 1, (uint8_t) type, number, 0 };

    input_add(&in, head, sizeof(head));
    input_add(&in, &bytes, sizeof(bytes));
}


static void
moved(uint8_t follower, uint32_t way, uint32_t rank, uint64_t lost)
{
    dsa_hosts_moved_t  m = { way, rank, lost };

    sends(follower, DSA_HOSTS_MOVED, 0, &m, sizeof(m));
}


static void
tiered(uint8_t follower, uint32_t id, uint32_t result)
{
    dsa_hosts_op_ended_t  m = { id, result, 5, 6 };

    sends(follower, DSA_HOSTS_TIERED, 0, &m, sizeof(m));
}


/* The samples of the two entries on rank 1, of which one has no outputs. */

static void
result(uint8_t number, float logprob)
{
    struct {
        uint32_t            token;
        float               logprob;
        uint32_t            n_top;
        uint32_t            top;
        float               top_logprob;
    } sample = { 7, logprob, 1, 9, -2 };

    sends(0, DSA_HOSTS_RESULT, number, &sample, sizeof(sample));
}


/* The leader has this error; NULL: none, and it has made all calls. */

static void
ends(const char *why)
{
    dsa_err_t  err;

    fuzz_lead(in.byte, in.n, &err);

    if (why == NULL) {
        assert_string_equal(err.text, "");

    } else {
        contains(err.text, "host ");
        contains(err.text, why);
    }
}


static void
test_corpus(void **state)
{
    corpus_run(CORPUS, STEPS);
}


/* What a follower has opened must fit what the leader has. */

static void
ready(uint8_t flags, const dsa_hosts_ready_t *r, const char *why)
{
    begin(flags);
    sends(0, DSA_HOSTS_READY, 0, r, sizeof(dsa_hosts_ready_t));
    call(CHECK);
    ends(why);
}


static void
test_ready(void **state)
{
    size_t             i;
    dsa_hosts_ready_t  right, wrong;

    const struct {
        size_t       at;
        uint32_t     value;
        const char  *why;
    } cases[] = {
        { 0, 0x66666600, "host one has other weights: their fingerprint is " },
        { 8, 0x1b0a7f25, "host one has other weights: their fingerprint is "
          "ffffffff" },
        { offsetof(dsa_hosts_ready_t, pages), 0, "host one has 0 pages of 4096 "
          "bytes; expected at least one of 4096" },
        { offsetof(dsa_hosts_ready_t, page_bytes), 4095, "host one has 8 pages "
          "of 4095 bytes; expected at least one of 4096" },
        { offsetof(dsa_hosts_ready_t, slabs), 0, "host one has 0 slabs of host "
          "memory; expected 1 to 8" },
        { offsetof(dsa_hosts_ready_t, slabs), 9, "host one has 9 slabs of host "
          "memory; expected 1 to 8" },
        { offsetof(dsa_hosts_ready_t, slab_pages), 0, "host one has 0 pages in "
          "slab 0 of its host memory; expected 1 to 67108864" },
        { offsetof(dsa_hosts_ready_t, slab_pages), UINT32_MAX, "host one has "
          "4294967295 pages in slab 0" },
        { offsetof(dsa_hosts_ready_t, reserved), 1, "slabs of host memory" }
    };

    memset(&right, 0, sizeof(right));
    memset(right.fingerprint, 'f', 32);
    right.pages = PAGES;
    right.page_bytes = PAGE_BYTES;
    right.slabs = 1;
    right.slab_pages[0] = HOST_PAGES;

    ready(UNREADY, &right, NULL);
    ready(UNREADY | BARE, &right, "host one has 1 slabs of host memory; "
          "expected 0 to 0");

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        wrong = right;
        memcpy((char *) &wrong + cases[i].at, &cases[i].value,
               sizeof(uint32_t));
        ready(UNREADY, &wrong, cases[i].why);
    }

    /* nodes that do not exist only choose a slab */

    right.slab_node[0] = INT32_MIN;
    right.node[0] = INT32_MAX;
    ready(UNREADY, &right, NULL);
}


static void
test_moved(void **state)
{
    /* each in its time, and those of the two ways in any order */

    begin(0);
    call(MOVE_OUT);
    call(MOVE_IN);
    moved(0, DSA_MOVE_IN, 1, 1);
    call(MOVED_IN);
    moved(0, DSA_MOVE_OUT, 1, 0);
    call(MOVED_OUT);
    call(CHECK);
    ends(NULL);

    begin(0);
    call(MOVE_OUT);
    moved(0, DSA_MOVE_OUT, 1, 0);
    moved(0, DSA_MOVE_OUT, 1, 0);
    call(MOVED_OUT);
    ends("host one has sent MOVED 0 of rank 1, without a MOVE");

    begin(0);
    call(MOVE_OUT);
    moved(0, DSA_MOVE_IN, 1, 0);
    call(MOVED_OUT);
    ends("host one has sent MOVED 1 of rank 1, without a MOVE");

    begin(BOTH);
    call(MOVE_OUT);
    moved(1, DSA_MOVE_OUT, 1, 0);
    call(0x46);
    call(0x47);
    ends("host two has sent MOVED 0 of rank 1, without a MOVE");

    begin(0);
    call(MOVE_OUT);
    moved(0, DSA_MOVE_OUT, UINT32_MAX, 0);
    call(MOVED_OUT);
    ends("host one has sent MOVED 0 of rank 4294967295, without a MOVE");

    /* pages that were not in the MOVE, and pages that cannot be lost */

    begin(0);
    call(MOVE_IN);
    moved(0, DSA_MOVE_IN, 1, 6);
    call(MOVED_IN);
    ends("host one has sent MOVED 1 of rank 1 with the lost pages 0x6; "
         "expected some of 0x1");

    begin(0);
    call(MOVE_OUT);
    moved(0, DSA_MOVE_OUT, 1, 1);
    call(MOVED_OUT);
    ends("host one has sent MOVED 0 of rank 1 with the lost pages 0x1; "
         "expected some of 0x0");

    begin(0);
    call(MOVE_OUT);
    announces(DSA_HOSTS_MOVED, 0, 0x7fffffff);
    call(MOVED_OUT);
    ends("host one has sent MOVED of 2147483647 bytes; expected 16");

    /* its answer is cut off, or the connection ends before it */

    begin(0);
    call(MOVE_OUT);
    announces(DSA_HOSTS_MOVED, 0, sizeof(dsa_hosts_moved_t));
    call(MOVED_WAIT);
    ends("host one has closed the connection");

    begin(0);
    call(MOVE_OUT);
    call(MOVED_WAIT);
    ends("host one has closed the connection");
}


static void
test_tiered(void **state)
{
    /* in another order; cancelled, and ended all the same */

    begin(0);
    call(READ);
    call(READ);
    tiered(0, 1, DSA_TIER_MISS);
    call(COLLECT);
    tiered(0, 0, DSA_TIER_DONE);
    call(COLLECT);
    call(READ);
    call(CANCEL);
    call(CANCEL);
    tiered(0, 0, DSA_TIER_DONE);
    call(COLLECT);
    call(CHECK);
    ends(NULL);

    begin(0);
    call(READ);
    tiered(0, 0, DSA_TIER_DONE);
    tiered(0, 0, DSA_TIER_DONE);
    call(COLLECT);
    call(CHECK);
    ends("host one has sent TIERED 0 with result 1; expected an operation that "
         "it has");

    begin(0);
    call(READ);
    call(READ);
    call(CANCEL);
    tiered(0, 1, DSA_TIER_FAILED);
    tiered(0, 1, DSA_TIER_FAILED);
    call(COLLECT);
    call(CHECK);
    ends("host one has sent TIERED 1 with result 4; expected an operation that "
         "it has");

    begin(BOTH);
    call(READ);
    tiered(1, 0, DSA_TIER_DONE);
    call(COLLECT);
    call(CHECK);
    ends("host two has sent TIERED 0 with result 1; expected an operation that "
         "it has");

    begin(0);
    call(READ);
    tiered(0, 0, 0);
    call(COLLECT);
    call(CHECK);
    ends("host one has sent TIERED 0 with result 0; expected");

    begin(0);
    call(READ);
    tiered(0, 0, DSA_TIER_FAILED + 1);
    call(COLLECT);
    call(CHECK);
    ends("host one has sent TIERED 0 with result 5; expected");

    begin(0);
    call(READ);
    announces(DSA_HOSTS_TIERED, 0, UINT32_MAX);
    call(COLLECT);
    call(CHECK);
    ends("host one has sent TIERED of 4294967295 bytes; expected 24");

    /* without a step in flight, no call of the leader receives a RESULT */

    begin(0);
    call(READ);
    result(0, -1);
    call(COLLECT);
    call(CHECK);
    ends("host one has sent RESULT while no step is in flight");
}


static void
test_results(void **state)
{
    begin(0);
    call(START);
    call(START);
    call(MOVE_OUT);
    result(0, -1);
    result(1, NAN);
    moved(0, DSA_MOVE_OUT, 1, 0);
    call(MOVED_WAIT | 0x80);
    call(WAIT);
    call(WAIT);
    ends(NULL);

    begin(0);
    call(START);
    result(0, INFINITY);
    call(WAIT);
    ends("host one has sent token 7 with an infinite logprob");

    begin(0);
    call(START);
    result(1, -1);
    call(WAIT);
    ends("host one has sent RESULT 1 of 20 bytes; expected RESULT 0");

    begin(0);
    call(START);
    announces(DSA_HOSTS_RESULT, 0, UINT32_MAX);
    call(WAIT);
    ends("host one has sent RESULT 0 of 4294967295 bytes; expected RESULT 0 of "
         "0 to ");

    /* more than there are steps, while a move is waited for */

    begin(0);
    call(START);
    call(START);
    call(MOVE_OUT);
    result(0, -1);
    result(1, -1);
    result(2, -1);
    call(MOVED_WAIT | 0x80);
    ends("host one has sent RESULT 2 of 20 bytes while it moves pages");

    begin(0);
    call(START);
    call(MOVE_OUT);
    announces(DSA_HOSTS_RESULT, 0, 1 << 30);
    call(MOVED_WAIT | 0x80);
    ends("host one has sent RESULT 0 of 1073741824 bytes while it moves pages");
}


/* In each state: a type that is not expected, and what is no message at all. */

static void
test_types(void **state)
{
    size_t  i;

    static const uint8_t  garbage[] =
        "\x02\x1fGET / HTTP/1.1\r\nHost: a.b.c\r\n\r\n";

    static const dsa_hosts_type_e  types[] = {
        DSA_HOSTS_HELLO, DSA_HOSTS_PROOFS, DSA_HOSTS_PLAN, DSA_HOSTS_READY,
        DSA_HOSTS_STEP, DSA_HOSTS_COPY, DSA_HOSTS_MOVE, DSA_HOSTS_TIER,
        DSA_HOSTS_BYE, DSA_HOSTS_TYPES, (dsa_hosts_type_e) 0,
        (dsa_hosts_type_e) 255
    };

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        begin(0);
        call(START);
        sends(0, types[i], 9, "junk", 4);
        call(WAIT);
        ends(" 9 of 4 bytes; expected RESULT 0 of 0 to ");

        begin(0);
        call(MOVE_OUT);
        sends(0, types[i], 9, "junk", 4);
        call(MOVED_WAIT | 0x80);
        ends(" 9 of 4 bytes while it moves pages");

        begin(EXCHANGE);
        sends(0, types[i], 9, "junk", 4);
        call(START | 0x80);
        ends(" 9 of 4 bytes; expected DATA 1 of 3 to 3 bytes");

        begin(UNREADY);
        sends(0, types[i], 9, "junk", 4);
        ends(" 9 of 4 bytes; expected READY 0 of 248 to 248 bytes");
    }

    begin(0);
    call(START);
    input_add(&in, garbage, sizeof(garbage) - 1);
    call(WAIT);
    ends("host one has sent an unknown message");

    begin(UNREADY);
    input_add(&in, garbage, sizeof(garbage) - 1);
    ends("host one has sent an unknown message");

    begin(EXCHANGE);
    announces(DSA_HOSTS_DATA, 1, UINT32_MAX);
    call(START | 0x80);
    ends("host one has sent DATA 1 of 4294967295 bytes; expected DATA 1 of 3");

    begin(0);
    call(START);
    sends(0, DSA_HOSTS_FAULT, 0, "out of\nluck", 11);
    call(WAIT);
    ends("host one: out of?luck");

    begin(0);
    call(START);
    call(WAIT_END);
    ends("host one has closed the connection");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_corpus),
        cmocka_unit_test(test_ready),
        cmocka_unit_test(test_moved),
        cmocka_unit_test(test_tiered),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_types)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
