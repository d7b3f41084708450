
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The first messages of a session: the offer of a worker and the hello of a
 * replica.
 */


#include "ngx_module/engine/ngx_http_dsa_hello_check.h"
#include "t/unit/host.h"


/* A good hello for a segment of four pages. */

static dsa_link_hello_t
good_hello(void)
{
    dsa_link_hello_t  hello;

    memset(&hello, 0, sizeof(hello));
    hello.magic = DSA_LINK_MAGIC;
    hello.version = DSA_LINK_VERSION_MAX;
    hello.slots = 4;
    hello.submit_size = DSA_LINK_ALIGN;
    hello.event_size = DSA_LINK_ALIGN;
    hello.segment_size = dsa_link_segment_size(4, DSA_LINK_ALIGN,
                                               DSA_LINK_ALIGN);
    hello.context_length = 2;
    hello.page_tokens = 1;
    hello.ids = 1;
    hello.temperature = 1;
    hello.top_p = 1;
    strcpy(hello.model, "m");
    strcpy(hello.fingerprint, "f");
    strcpy(hello.family, "deepseek");

    return hello;
}


/* The bounds of each field of a hello, and what the log has behind them. */

static void
test_hello(void **state)
{
    dsa_link_t            link;
    dsa_link_hello_t      hello;
    const dsa_family_t   *pool, *family;
    ngx_http_dsa_wrong_t  wrong;

    _Alignas(DSA_LINK_ALIGN)
    static uint8_t        segment[4 * DSA_LINK_ALIGN];

    static const dsa_family_t  other = { .name = "other" };

    pool = NULL;

    /* sizes of messages are part of the link, as those of records are */

    assert_int_equal(sizeof(dsa_link_offer_t), 16);
    assert_int_equal(sizeof(hello), 200);

#define ATTACH(set, rc)                                                       \
    hello = good_hello();                                                     \
    set;                                                                      \
    assert_int_equal(dsa_link_attach(&link, segment, sizeof(segment),         \
                                     &hello), rc)

    ATTACH((void) 0, 0);
    ATTACH(hello.magic = 1, -1);
    ATTACH(hello.version = 0, -1);
    ATTACH(hello.version = DSA_LINK_VERSION_MAX + 1, -1);
    ATTACH(hello.slots = 0, -1);
    ATTACH(hello.slots = 1024, 0);
    ATTACH(hello.slots = 1025, -1);
    ATTACH(hello.slots = UINT32_MAX, -1);
    ATTACH(hello.submit_size = DSA_LINK_ALIGN + 8, -1);
    ATTACH(hello.submit_size = 0, -1);
    ATTACH(hello.event_size = 2 * DSA_LINK_ALIGN, -1);
    ATTACH(hello.event_size = UINT64_MAX, -1);
    ATTACH(hello.segment_size = 1, -1);

#define GOOD(set)                                                             \
    hello = good_hello();                                                     \
    set;                                                                      \
    assert_int_equal(ngx_http_dsa_hello_check(&hello, pool, &family, &wrong), \
                     0)

#define WRONG(set, what)                                                      \
    hello = good_hello();                                                     \
    set;                                                                      \
    assert_int_equal(ngx_http_dsa_hello_check(&hello, pool, &family, &wrong), \
                     -1);                                                     \
    assert_string_equal(wrong.text, "with " what)

    GOOD((void) 0);
    GOOD(hello.temperature = 0);
    GOOD(hello.temperature = 2);
    GOOD(hello.top_p = 1e-38f);
    GOOD(memset(hello.model, 'm', 63));
    GOOD(strcpy(hello.model, "a \" \\ \xc2\xa0 \xf0\x9f\x90\x8b"));
    GOOD(memset(hello.fingerprint, 'f', 39));

    WRONG(hello.context_length = 1, "context_length 1, expected at least 2");
    WRONG(hello.page_tokens = 0, "page_tokens 0, expected at least 1");
    WRONG(hello.ids = 0, "ids 0, expected at least 1");
    WRONG(hello.temperature = -0.01f, "temperature -0.01, expected 0 to 2");
    WRONG(hello.temperature = 2.01f, "temperature 2.01, expected 0 to 2");
    WRONG(hello.temperature = INFINITY, "temperature inf, expected 0 to 2");
    WRONG(hello.temperature = NAN, "temperature nan, expected 0 to 2");
    WRONG(hello.top_p = 0, "top_p 0, expected more than 0 and at most 1");
    WRONG(hello.top_p = -1, "top_p -1, expected more than 0 and at most 1");
    WRONG(hello.top_p = 1.5f, "top_p 1.5, expected more than 0 and at most 1");
    WRONG(hello.top_p = NAN, "top_p nan, expected more than 0 and at most 1");

#define NAMED  ", expected 1 to 63 bytes of UTF-8 without control characters"

    WRONG(hello.model[0] = '\0', "model \"\"" NAMED);
    WRONG(strcpy(hello.model, "a\nb"), "model \"a\\x0ab\"" NAMED);
    WRONG(strcpy(hello.model, "\x7f"), "model \"\\x7f\"" NAMED);
    WRONG(strcpy(hello.model, "\"\xff"), "model \"\\x22\\xff\"" NAMED);
    WRONG(strcpy(hello.model, "\xc2\x9b"), "model \"\\xc2\\x9b\"" NAMED);
    WRONG(strcpy(hello.model, "\xed\xa0\x80"), "model \"\\xed\\xa0\\x80\""
          NAMED);
    WRONG(memset(hello.model, 'm', 64), "model \"mmmmmmmmmmmmmmmmmmmmmmmm\""
          NAMED);

#define DIGITS  ", expected 1 to 39 letters and digits"

    WRONG(hello.fingerprint[0] = '\0', "fingerprint \"\"" DIGITS);
    WRONG(strcpy(hello.fingerprint, "f-"), "fingerprint \"f-\"" DIGITS);
    WRONG(memset(hello.fingerprint, 'f', 40),
          "fingerprint \"ffffffffffffffffffffffff\"" DIGITS);

#define KNOWN  ", expected \"deepseek\", \"deepseek-v3\", "                   \
               "\"deepseek-v3.1\", \"glm-4.7-flash\", \"glm-5\", "           \
               "\"glm-5.1\", \"glm-5.2\", \"glm-5.3\" or \"joyai\""

    WRONG(hello.family[0] = '\0', "family \"\"" KNOWN);
    WRONG(strcpy(hello.family, "glm"), "family \"glm\"" KNOWN);
    WRONG(strcpy(hello.family, "deepsee"), "family \"deepsee\"" KNOWN);
    WRONG(strcpy(hello.family, "deepseek3"), "family \"deepseek3\"" KNOWN);
    WRONG(strcpy(hello.family, "a\n\xff"), "family \"a\\x0a\\xff\"" KNOWN);
    WRONG(memset(hello.family, 'd', 16), "family \"dddddddddddddddd\"" KNOWN);

    /* a pool has one family */

    pool = dsa_family_find("deepseek");

    GOOD((void) 0);
    assert_ptr_equal(family, pool);

    pool = &other;

    WRONG((void) 0, "family \"deepseek\", expected \"other\" as of the other "
          "engines of its pool");
    WRONG(strcpy(hello.family, "other"), "family \"other\"" KNOWN);
}


/* What a connection gets for its first message; 0: it is closed. */

static int
first_message(host_t *h, const void *data, size_t len, dsa_link_hello_t *hello)
{
    int      i, fds[2], passed[DSA_LINK_FDS];
    ssize_t  n;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    assert_int_equal(send(fds[1], data, len, 0), (ssize_t) len);
    (void) host_add(h, fds[0]);
    host_io(h);

    memset(hello, 0, sizeof(dsa_link_hello_t));
    n = dsa_link_recv_hello(fds[1], hello, passed);

    for (i = 0; n == 1 && hello->version != 0 && i < DSA_LINK_FDS; i++) {
        (void) close(passed[i]);
    }

    (void) close(fds[1]);
    host_io(h);
    assert_int_equal(h->io.peers.n, 0);

    return n == 1;
}


#define LAST  DSA_LINK_VERSION_MAX

/* Offers of versions that exist, that will, and that no replica has. */

static void
test_offers(void **state)
{
    char              *at, text[100], longer[64];
    size_t             i;
    host_t             h;
    dsa_link_offer_t   offer;
    dsa_link_hello_t   hello;

    static const struct {
        uint64_t  magic;
        uint32_t  min;
        uint32_t  max;
        int       answer;
        uint32_t  version;
    } t[] = {
        { DSA_LINK_MAGIC, 1, 1, 1, 1 },
        { DSA_LINK_MAGIC, 0, 1, 1, 1 },
        { DSA_LINK_MAGIC, 1, 3, 1, LAST },
        { DSA_LINK_MAGIC, LAST, LAST + 1, 1, LAST },
        { DSA_LINK_MAGIC, 0, UINT32_MAX, 1, LAST },
        { DSA_LINK_MAGIC, LAST + 1, 900, 1, 0 },
        { DSA_LINK_MAGIC, 0, 0, 1, 0 },
        { DSA_LINK_MAGIC, 5, 1, 1, 0 },
        { DSA_LINK_MAGIC, UINT32_MAX, 0, 1, 0 },
        { DSA_LINK_MAGIC + 1, 1, 1, 0, 0 },
        { 0, 0, 0, 0, 0 }
    };

    host_open(&h, "");

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        memset(&offer, 0, sizeof(offer));
        offer.magic = t[i].magic;
        offer.version_min = t[i].min;
        offer.version_max = t[i].max;

        assert_int_equal(first_message(&h, &offer, sizeof(offer), &hello),
                         t[i].answer);

        if (t[i].answer) {
            assert_int_equal(hello.version, t[i].version);
            assert_int_equal(hello.version_min, DSA_LINK_VERSION_MIN);
            assert_int_equal(hello.version_max, DSA_LINK_VERSION_MAX);
            assert_int_equal(hello.slots == 0, t[i].version == 0);
        }
    }

    /* a mismatch is logged once, however often workers try */

    (void) snprintf(text, sizeof(text), "it accepts versions %u to 900",
                    LAST + 1);
    at = strstr(host_log, text);
    assert_non_null(at);
    assert_null(strstr(at + 1, "it accepts versions"));

    /* a later version may append to its offer; a shorter one is none */

    memset(longer, 7, sizeof(longer));
    offer.magic = DSA_LINK_MAGIC;
    offer.version_min = 1;
    offer.version_max = 900;
    memcpy(longer, &offer, sizeof(offer));

    assert_int_equal(first_message(&h, longer, sizeof(longer), &hello), 1);
    assert_int_equal(hello.version, LAST);
    assert_int_equal(first_message(&h, longer, 15, &hello), 0);
    assert_int_equal(first_message(&h, "x", 1, &hello), 0);

    host_end(&h);
}


/*
 * A connection without an offer does not stay, many of them are not accepted,
 * and workers are served meanwhile.
 */

static void
test_silent_peers(void **state)
{
    int                  i, n, fd[DSA_PEERS_OFFERS + 10];
    char                 c;
    host_t               h;
    answer_t             a;
    dsa_peer_t          *peer;
    link_submit_t        s;
    struct sockaddr_un   addr;

    host_start(&h, "");

    memset(&addr, 0, sizeof(addr));
    addr.sun_family = AF_UNIX;
    memcpy(addr.sun_path, h.listen.path, sizeof(addr.sun_path));

    for (i = 0; i < DSA_PEERS_OFFERS + 10; i++) {
        fd[i] = socket(AF_UNIX, SOCK_SEQPACKET|SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd[i], (struct sockaddr *) &addr,
                                 sizeof(addr)), 0);
        host_io(&h);
    }

    assert_int_equal(h.io.peers.n_offers, DSA_PEERS_OFFERS);
    assert_int_equal(h.io.peers.n, DSA_PEERS_OFFERS + WORKERS);

    for (i = 0, n = 0; i < DSA_PEERS_OFFERS + 10; i++) {
        n += recv(fd[i], &c, 1, MSG_DONTWAIT) == 0;
    }

    assert_int_equal(n, 10);

    link_submit_init(&s, 5);
    link_submit_text(&s, "hello");
    a = ask(&h, &s);
    assert_string_equal(a.text, "hello");
    free(a.text);

    /* their time is up */

    for (peer = h.io.peers.first; peer != NULL; peer = peer->next) {
        assert_true(peer->expires_ms <= link_client_now()
                                        + DSA_PEERS_OFFER_MS);
        peer->expires_ms = 1;
    }

    host_io(&h);
    assert_int_equal(h.io.peers.n, WORKERS);
    assert_int_equal(h.io.peers.n_offers, 0);
    assert_non_null(strstr(host_log, "no offer within 5000 ms"));

    for (i = 0; i < DSA_PEERS_OFFERS + 10; i++) {
        (void) close(fd[i]);
    }

    host_stop(&h);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_hello),
        cmocka_unit_test(test_offers),
        cmocka_unit_test(test_silent_peers)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
