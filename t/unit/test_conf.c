
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/service/conf.h"


#define BASE    "model /srv/v32; listen unix:/run/dsa.sock; "
#define HOST    BASE "host_memory 5g; redis_cache "


static int
parse(dsa_conf_t *conf, const char *text, dsa_err_t *err)
{
    err->text[0] = '\0';

    return dsa_conf_parse(conf, "engine.conf", text, strlen(text), err);
}


static void
good(dsa_conf_t *conf, const char *text)
{
    dsa_err_t  err;

    if (parse(conf, text, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }
}


static void
bad(const char *text, const char *want)
{
    dsa_err_t   err;
    dsa_conf_t  conf;

    if (parse(&conf, text, &err) != DSA_ERROR) {
        fail_msg("accepted: %s", text);
    }

    if (strstr(err.text, want) == NULL) {
        fail_msg("\"%s\" does not contain \"%s\"", err.text, want);
    }

    assert_null(strchr(err.text, '\n'));
    dsa_conf_free(&conf);
}


typedef struct {
    const char  *text;
    const char  *want;          /* a part of the error */
} fault_t;


static void
refuse(const fault_t *fault, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        bad(fault[i].text, fault[i].want);
    }
}


/* Where a number is in a configuration, and how wide it is. */

#define FIELD(name)                                                           \
    offsetof(dsa_conf_t, name), sizeof(((dsa_conf_t *) NULL)->name)


static const struct {
    const char  *text;
    size_t       offset;
    size_t       size;
    uint64_t     want;
} numbers[] = {
    { BASE "max_waiting 70;", FIELD(max_waiting), 70 },
    { BASE "max_waiting 70;", FIELD(max_waiting_per_tenant), 70 },
    { BASE "max_waiting 70 per_tenant=70;", FIELD(max_waiting_per_tenant),
      70 },
    { BASE "max_waiting 70 per_tenant=0;", FIELD(max_waiting), 70 },
    { BASE "max_waiting 70 per_tenant=0;", FIELD(max_waiting_per_tenant), 0 },
    { BASE "token_budget 5;", FIELD(max_running), 5 },
    { BASE "drain_timeout 2m;", FIELD(drain_timeout_ms), 120000 },
    { BASE "start_timeout 5H;", FIELD(start_timeout_ms), 5 * 3600000 },
    { BASE "drain_timeout 1d;", FIELD(drain_timeout_ms), 86400000 },
    { BASE "drain_timeout 0;", FIELD(drain_timeout_ms), 0 },
    { BASE "token_target 20ms;", FIELD(token_target_ms), 20 },
    { BASE "first_token_target 1m;", FIELD(first_token_target_ms), 60000 },
    { BASE "step_timeout 2;", FIELD(step_timeout_ms), 2000 },
    { BASE "start_timeout 0;", FIELD(start_timeout_ms), 0 },
    { BASE "log_level debug;", FIELD(log_level), DSA_LOG_DEBUG },
    { BASE "host_memory 0;", FIELD(host_memory), 0 },
    { HOST "a:1 ttl=3650d max_bandwidth=0 connections=1;", FIELD(cache.ttl_s),
      3650ULL * 86400 },
    { HOST "a:1 ttl=2000ms;", FIELD(cache.ttl_s), 2 },

    /* the limits of one GPU stay; the budget is that of all GPUs */

    { BASE "gpus 4;", FIELD(gpus), 4 },
    { BASE "gpus 4;", FIELD(max_running), 64 },
    { BASE "gpus 4;", FIELD(token_budget), 4 * 512 },
    { BASE "gpus 4; attention tensor;", FIELD(attention),
      DSA_ATTENTION_TENSOR },
    { BASE "gpus 4; attention tensor;", FIELD(max_running), 64 },
    { BASE "gpus 4; attention tensor;", FIELD(token_budget), 512 },
    { BASE "gpus 4; token_budget 100;", FIELD(max_running), 25 },
    { BASE "gpus 4; attention data; max_running 600;", FIELD(token_budget),
      4 * 600 },
    { BASE "gpus 4; max_running 25; token_budget 100;", FIELD(token_budget),
      100 },

    /* a session has a slot for each request */

    { BASE "gpus 4; max_running 1000; max_waiting 1044575;",
      FIELD(max_waiting), 1044575 },

#if (DSA_CUDA)
    { BASE "backend cuda; gpus 8;", FIELD(max_running), 128 },
    { BASE "backend cuda; gpus 8;", FIELD(token_budget), 8 * 8192 },
#endif
};


static void
test_numbers(void **state)
{
    size_t       i;
    uint32_t     n;
    uint64_t     got;
    dsa_conf_t   conf;
    const char  *field;

    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        good(&conf, numbers[i].text);
        field = (const char *) &conf + numbers[i].offset;

        if (numbers[i].size == sizeof(uint64_t)) {
            memcpy(&got, field, sizeof(uint64_t));

        } else {
            assert_int_equal(numbers[i].size, sizeof(uint32_t));
            memcpy(&n, field, sizeof(uint32_t));
            got = n;
        }

        if (got != numbers[i].want) {
            fail_msg("%s: %llu, and not %llu", numbers[i].text,
                     (unsigned long long) got,
                     (unsigned long long) numbers[i].want);
        }

        dsa_conf_free(&conf);
    }
}


static void
test_defaults(void **state)
{
    dsa_conf_t  conf;

    good(&conf, BASE);

    assert_string_equal(conf.model, "/srv/v32");
    assert_string_equal(conf.name, "v32");
    assert_string_equal(conf.listen, "/run/dsa.sock");
    assert_int_equal(conf.backend, DSA_BACKEND_CPU);
    assert_int_equal(conf.precision, DSA_SERVED);
    assert_int_equal(conf.kv, DSA_KV_AUTO);
    assert_int_equal(conf.replicas, 1);
    assert_true(conf.rate == 50);
    assert_int_equal(conf.drain_timeout_ms, 30000);
    assert_int_equal(conf.token_target_ms, 100);
    assert_int_equal(conf.first_token_target_ms, 2000);
    assert_int_equal(conf.step_timeout_ms, 60000);
    assert_int_equal(conf.start_timeout_ms, 1800000);
    assert_int_equal(conf.log_level, DSA_LOG_INFO);
    assert_true(conf.socket_group == (gid_t) -1);
    assert_true(conf.max_running <= conf.token_budget);
    assert_int_equal(conf.max_waiting, 1024);
    assert_int_equal(conf.max_waiting_per_tenant, 1024);
    dsa_conf_free(&conf);

    good(&conf, "model ./models/small//; listen unix:x;");
    assert_string_equal(conf.name, "small");
    dsa_conf_free(&conf);
}


static void
test_all(void **state)
{
    char        path[108];
    dsa_conf_t  conf;

    good(&conf,
         "# an engine\n"
         "model \"/srv/a b;c\";   # quoted\n"
         "name 'deep seek';\n"
         "listen unix:/run/dsa/v32.%n.sock;\n"
         "backend null\n"
         "    rate=12.5;\n"
         "precision exact; replicas 12;\n"
         "kv_memory 3G; max_running 7; token_budget 700;\n"
         "max_waiting 30\n"
         "    per_tenant=9;\n"
         "context_length 4096; drain_timeout 1500ms;\n"
         "socket_group 0;");

    assert_string_equal(conf.model, "/srv/a b;c");
    assert_string_equal(conf.name, "deep seek");
    assert_int_equal(conf.backend, DSA_BACKEND_NULL);
    assert_true(conf.rate == 12.5);
    assert_int_equal(conf.precision, DSA_EXACT);
    assert_int_equal(conf.replicas, 12);
    assert_int_equal(conf.kv_memory, 3ULL << 30);
    assert_int_equal(conf.max_running, 7);
    assert_int_equal(conf.token_budget, 700);
    assert_int_equal(conf.max_waiting, 30);
    assert_int_equal(conf.max_waiting_per_tenant, 9);
    assert_int_equal(conf.context_length, 4096);
    assert_int_equal(conf.drain_timeout_ms, 1500);
    assert_int_equal(conf.socket_group, 0);

    assert_int_equal(dsa_conf_socket(&conf, 11, path, sizeof(path)), DSA_OK);
    assert_string_equal(path, "/run/dsa/v32.11.sock");
    assert_int_equal(dsa_conf_socket(&conf, 11, path, 5), DSA_ERROR);

    dsa_conf_free(&conf);

    good(&conf, BASE "backend null rate=0; journal /tmp/j;");
    assert_string_equal(conf.journal, "/tmp/j");
    dsa_conf_free(&conf);

    good(&conf, BASE "backend null rate=0;");
    assert_null(conf.journal);
    assert_true(conf.rate == 0);
    dsa_conf_free(&conf);
}


/*
 * The GPUs of a replica, and what follows from their number.  The limits of a
 * sequence are on each GPU with "attention data", where each GPU computes
 * other sequences; with "attention tensor" all GPUs compute the same ones.
 */

static void
test_gpus(void **state)
{
    uint32_t            i;
    dsa_conf_t          conf;
    dsa_backend_conf_t  b;

    good(&conf, BASE);
    assert_int_equal(conf.gpus, 1);
    assert_int_equal(conf.attention, DSA_ATTENTION_DATA);
    dsa_conf_backend_of(&conf, 0, &b);
    assert_int_equal(b.gpus, 1);
    assert_int_equal(b.gpu[0], 0);
    assert_int_equal(b.attention, DSA_ATTENTION_DATA);
    dsa_conf_free(&conf);

    good(&conf, BASE "gpus 4; attention tensor;");
    dsa_conf_backend_of(&conf, 0, &b);
    assert_int_equal(b.attention, DSA_ATTENTION_TENSOR);
    dsa_conf_free(&conf);

    good(&conf, BASE "gpus 4; max_running 4096;");
    assert_int_equal(dsa_conf_running(&conf), 16384);
    dsa_conf_free(&conf);

    good(&conf, BASE "gpus 4; max_running 4096; attention tensor;");
    assert_int_equal(dsa_conf_running(&conf), 4096);
    dsa_conf_free(&conf);

    /* the GPUs of each replica follow those of the one before */

    good(&conf, "model m; listen unix:%n; replicas 3; gpus 2; kv_memory 5g; "
         "context_length 77; backend null rate=3;");

    for (i = 0; i < 3; i++) {
        dsa_conf_backend_of(&conf, i, &b);
        assert_int_equal(b.gpus, 2);
        assert_int_equal(b.gpu[0], 2 * i);
        assert_int_equal(b.gpu[1], 2 * i + 1);
        assert_string_equal(b.model, "m");
        assert_int_equal(b.kv_memory, 5ULL << 30);
        assert_int_equal(b.max_tokens, 2 * 65536);
        assert_int_equal(b.max_seqs, 16384);
        assert_int_equal(b.context, 77);
        assert_true(b.rate == 3);
    }

    dsa_conf_free(&conf);

#if (DSA_CUDA)
    good(&conf, BASE "backend cuda; gpus 6,0,4;");
    assert_int_equal(conf.gpus, 3);
    dsa_conf_backend_of(&conf, 0, &b);
    assert_int_equal(b.gpu[0], 6);
    assert_int_equal(b.gpu[1], 0);
    assert_int_equal(b.gpu[2], 4);
    dsa_conf_free(&conf);

    /* a list is of all replicas, and may come before their number */

    good(&conf, "model m; listen unix:%n; gpus 7,5,3,1; replicas 2; "
         "backend cuda;");
    assert_int_equal(conf.gpus, 2);
    dsa_conf_backend_of(&conf, 1, &b);
    assert_int_equal(b.gpu[0], 3);
    assert_int_equal(b.gpu[1], 1);
    dsa_conf_free(&conf);
#endif
}


static const fault_t  gpus_faults[] = {
    { BASE "gpus 0;", "\"gpus\" is \"0\"; expected the number of GPUs of a "
      "replica, 1 to 16, or a list of GPUs, such as 0,2,4,6" },
    { BASE "gpus 17;", "1 to 16" },
    { BASE "gpus all;", "1 to 16" },
    { BASE "gpus 0 1;", "\"gpus\" has 2 values; expected 1" },
    { BASE "gpus 0,,1;", "\"\" in the list of \"gpus\" is not the number of "
      "a GPU; expected 0 to 255" },
    { BASE "gpus 0,1,;", "\"\" in the list" },
    { BASE "gpus ,;", "\"\" in the list" },
    { BASE "gpus 0,256;", "\"256\" in the list" },
    { BASE "gpus 0,-1;", "\"-1\" in the list" },
    { BASE "gpus 0,1k;", "\"1k\" in the list" },
    { BASE "gpus 3,1,3;", "GPU 3 is in the list of \"gpus\" twice" },
    { BASE "gpus 0,1;", "needs \"backend cuda\"; expected a count" },
    { BASE "backend null; gpus 0,1;", "needs \"backend cuda\"" },
    { BASE "attention both;", "\"attention\" is \"both\"; expected data or "
      "tensor" },
    { BASE "gpus 4; max_running 25; token_budget 99;", "\"token_budget\" is "
      "99 and \"max_running\" is 25 on each GPU, but each running sequence "
      "needs a token in each step; expected a budget of at least 100" },
    { BASE "gpus 4; token_budget 3;", "expected a budget of at least 4" },
    { BASE "gpus 4; max_running 1000; max_waiting 1044576;",
      "\"max_running\" (4000 on all GPUs) and \"max_waiting\" (1044576) are "
      "1048576 requests together; one worker may have all of them, so "
      "expected at most 1048575" },

#if (DSA_CUDA)
    { "model m; listen unix:%n; replicas 2; gpus 0,1,2; backend cuda;",
      "3 \"gpus\" cannot be shared out equally to 2 replicas; expected a "
      "multiple of 2" },
    { BASE "backend cuda; gpus 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16;",
      "each replica has 17 \"gpus\"; expected at most 16" },
#endif
};


static void
test_gpus_faults(void **state)
{
    refuse(gpus_faults, sizeof(gpus_faults) / sizeof(gpus_faults[0]));
}


/* Writes the password file, NULL: removes it.  Returns its path. */

static const char *
password_file(const char *data, size_t len)
{
    int          fd;
    static char  path[] = "/tmp/dsa-conf-XXXXXX";
    static int   made;

    if (!made) {
        fd = mkstemp(path);
        assert_true(fd != -1);
        assert_int_equal(close(fd), 0);
        made = 1;
    }

    if (data == NULL) {
        assert_int_equal(unlink(path), 0);
        return path;
    }

    fd = open(path, O_WRONLY|O_TRUNC|O_CREAT, 0600);
    assert_true(fd != -1);
    assert_int_equal(write(fd, data, len), len);
    assert_int_equal(close(fd), 0);

    return path;
}


static void
test_tiers(void **state)
{
    char                text[512];
    dsa_conf_t          conf;
    dsa_backend_conf_t  b;

    good(&conf, BASE);
    assert_int_equal(conf.host_memory, 0);
    assert_int_equal(conf.cache.addresses, 0);
    dsa_conf_backend_of(&conf, 0, &b);
    assert_int_equal(b.host_memory, 0);
    assert_int_equal(b.persistent, 0);
    dsa_conf_free(&conf);

    /* each replica has its own host memory, and all have one cache */

    good(&conf, "model m; listen unix:%n; replicas 2; redis_cache "
         "127.0.0.1:6379; host_memory 5g;");
    assert_int_equal(conf.host_memory, 5ULL << 30);
    assert_int_equal(conf.cache.addresses, 1);
    assert_string_equal(conf.cache.address[0], "127.0.0.1:6379");
    assert_int_equal(conf.cache.connections, 4);
    assert_int_equal(conf.cache.ttl_s, 86400);
    assert_int_equal(conf.cache.max_bandwidth, 0);
    assert_null(conf.cache.user);
    assert_null(conf.cache.password);
    dsa_conf_backend_of(&conf, 1, &b);
    assert_int_equal(b.host_memory, 5ULL << 30);
    assert_int_equal(b.persistent, 1);
    dsa_conf_free(&conf);

    /* parameters and addresses in any order */

    (void) snprintf(text, sizeof(text), HOST "ttl=90m unix:/run/a=b.sock "
                    "user=pages [::1]:1 connections=64 "
                    "redis-1.example.net:65535 max_bandwidth=500m "
                    "password_file=%s;",
                    password_file("pass word;#{}\nsecond line\n", 26));
    good(&conf, text);
    assert_int_equal(conf.cache.addresses, 3);
    assert_string_equal(conf.cache.address[0], "unix:/run/a=b.sock");
    assert_string_equal(conf.cache.address[1], "[::1]:1");
    assert_string_equal(conf.cache.address[2], "redis-1.example.net:65535");
    assert_string_equal(conf.cache.user, "pages");
    assert_string_equal(conf.cache.password, "pass word;#{}");
    assert_int_equal(conf.cache.connections, 64);
    assert_int_equal(conf.cache.ttl_s, 5400);
    assert_int_equal(conf.cache.max_bandwidth, 500ULL << 20);
    dsa_conf_free(&conf);
}


/* The first line is the password, without its newline, up to 512 bytes. */

static void
test_password(void **state)
{
    char        text[512], secret[515];
    dsa_conf_t  conf;

    (void) snprintf(text, sizeof(text), HOST "a:1 password_file=%s;",
                    password_file("x", 1));
    good(&conf, text);
    assert_string_equal(conf.cache.password, "x");
    dsa_conf_free(&conf);

    (void) password_file("x y \r\n", 6);
    good(&conf, text);
    assert_string_equal(conf.cache.password, "x y ");
    dsa_conf_free(&conf);

    memset(secret, 's', sizeof(secret));
    (void) password_file(secret, 512);
    good(&conf, text);
    assert_int_equal(strlen(conf.cache.password), 512);
    dsa_conf_free(&conf);

    (void) password_file(secret, 513);
    bad(text, "has 513 bytes; expected a password of 1 to 512 bytes");

    (void) password_file("", 0);
    bad(text, "has 0 bytes; expected a password");
    (void) password_file("\nsecret", 7);
    bad(text, "has 0 bytes; expected a password");
    (void) password_file("se\0cret\n", 8);
    bad(text, "has 7 bytes, one of them 0; expected a password");

    (void) password_file(NULL, 0);
    bad(text, "engine.conf:1: \"password_file\" of \"redis_cache\": /tmp/");
}


static const fault_t  tiers_faults[] = {
    { BASE "redis_cache a:1;", "\"redis_cache\" needs \"host_memory\", "
      "because pages pass through host memory" },
    { BASE "host_memory 0; redis_cache a:1;", "needs \"host_memory\"" },
    { BASE "redis_cache;", "\"redis_cache\" has 0 values; expected 1 to 75" },
    { HOST "connections=4;", "has no address; expected HOST:PORT or "
      "unix:PATH" },
    { HOST "localhost;", "\"localhost\" is neither an address nor a "
      "parameter of \"redis_cache\"; expected HOST:PORT, unix:PATH, user=, "
      "connections=, password_file=, ttl=, max_bandwidth=, tls, tls_ca=, "
      "tls_certificate=, tls_key=, tls_name= or tls_verify=" },
    { HOST "a:1 tls_ca=x;", "has a parameter of TLS without \"tls\"" },
    { HOST "a:1 tls_verify=off;", "without \"tls\"" },
    { HOST "a:1 tls tls;", "\"tls\" of \"redis_cache\" is repeated" },
    { HOST "a:1 tlss;", "\"tlss\" is neither an address nor" },
    { HOST "a:1 tls tls_ca=;", "\"tls_ca\" of \"redis_cache\" is empty; "
      "expected a file in PEM" },
    { HOST "a:1 tls tls_name=;", "expected a name or an IP address" },
    { HOST "a:1 tls tls_verify=no;", "is \"no\"; expected on or off" },
    { HOST "a:1 tls tls_ca=/none.pem;", "tls_ca=/none.pem cannot be used: No "
      "such file or directory; expected a file in PEM" },
    { HOST "a:1 tls tls_key=/none.pem;", "one of tls_certificate= and "
      "tls_key= is given; expected both or none" },
    { HOST "unix:b tls;", "on which Redis has no TLS; expected HOST:PORT" },
    { HOST ":6379;", "\":6379\" is neither" },
    { HOST "a:;", "neither" },
    { HOST "a:0;", "neither" },
    { HOST "a:65536;", "neither" },
    { HOST "a:1x;", "neither" },
    { HOST "::1:1;", "neither" },
    { HOST "[]:1;", "neither" },
    { HOST "[x]:1;", "neither" },
    { HOST "unix:;", "neither" },
    { HOST "a:1 timeout=5;", "\"timeout=5\" is neither" },
    { HOST "redis://a:1;", "neither" },
    { HOST "a:1 b:1 a:1;", "\"redis_cache\" has the address \"a:1\" twice" },
    { HOST "a:1 ttl=1d ttl=1d;", "\"ttl=\" of \"redis_cache\" is repeated" },
    { HOST "a:1 connections=0;", "\"connections\" of \"redis_cache\" is "
      "\"0\"; expected 1 to 64" },
    { HOST "a:1 connections=65;", "1 to 64" },
    { HOST "a:1 connections=;", "1 to 64" },
    { HOST "a:1 ttl=999ms;", "\"ttl\" of \"redis_cache\" is \"999ms\"; "
      "expected a time of whole seconds from 1s to 3650d (units s, m, h, "
      "d)" },
    { HOST "a:1 ttl=1500ms;", "whole seconds" },
    { HOST "a:1 ttl=0;", "ttl" },
    { HOST "a:1 ttl=3651d;", "ttl" },
    { HOST "a:1 max_bandwidth=fast;", "\"max_bandwidth\" of "
      "\"redis_cache\" is \"fast\"; expected bytes per second" },
    { HOST "a:1 user=;", "\"user\" of \"redis_cache\" is \"\"" },
    { HOST "a:1 user=x;", "has user=x without a password; expected "
      "password_file=PATH as well" },
    { HOST "a:1 password_file=/no/such/file;", "/no/such/file" },
    { HOST "a:1 password_file=/tmp;", "\"password_file\"" },
    { HOST "a:1 password_file=;", "\"password_file\"" }
};


static void
test_tiers_faults(void **state)
{
    char        *text;
    size_t       i, n;
    dsa_conf_t   conf;

    refuse(tiers_faults, sizeof(tiers_faults) / sizeof(tiers_faults[0]));

    /* 64 servers, and not 65; words without an end */

    text = malloc(4096);
    assert_non_null(text);
    n = (size_t) sprintf(text, HOST);

    for (i = 0; i < 64; i++) {
        n += (size_t) sprintf(text + n, " a:%zu", i + 1);
    }

    strcpy(text + n, ";");
    good(&conf, text);
    assert_int_equal(conf.cache.addresses, 64);
    dsa_conf_free(&conf);
    strcpy(text + n, " b:1;");
    bad(text, "more than 64 addresses");
    strcpy(text + n, " 1 2 3 4 5 6 7 8 9 10 11 12");
    bad(text, "\"redis_cache\" has too many values, or no \";\" follows it");
    free(text);
}


static const fault_t  faults[] = {
    { "", "\"model\" is missing" },
    { "model x;", "\"listen\" is missing" },
    { "listen unix:x;", "\"model\" is missing" },
    { "model x; listen unix:y;\n\nfoo 1;", "engine.conf:3: \"foo\" is not a "
      "directive; expected one of model, name, prompt_format, listen, "
      "backend, " },
    { BASE "\nname a;\nname b;", "engine.conf:3: \"name\" is repeated; "
      "the first is in line 2" },
    { "model x", "engine.conf:1: no \";\" follows the value of \"model\"" },
    { "model x;;", "\";\" without a directive" },
    { "model;", "\"model\" has 0 values; expected 1" },
    { "model a b;", "\"model\" has 2 values; expected 1" },
    { "model a b c d e;", "\"model\" has 5 values; expected 1" },
    { "backend;", "\"backend\" has 0 values; expected 1 to 2" },
    { "model \"a;", "quote" },
    { "model a{};", "\"{\" in a value; expected \"NAME VALUE...;\"" },
    { "model \"a\n;", "a quote (\") is not closed in its line" },
    { "model \"\";", "\"model\"" },
    { "model /; listen unix:x;", "add \"name\"" },
    { "model a/..; listen unix:x;", "add \"name\"" },
    { "listen /x;", "unix:PATH" },
    { "listen unix:;", "unix:PATH" },
    { "listen unix:/%d;", "%n" },
    { "listen unix:/%n%n;", "%n" },
    { BASE "replicas 2;", "has no %n" },
    { BASE "replicas 0;", "1 to 256" },
    { BASE "replicas 257;", "1 to 256" },
    { BASE "replicas 1k;", "replicas" },
    { BASE "replicas -1;", "replicas" },
    { BASE "replicas 99999999999999999999999;", "replicas" },
    { BASE "speculate 0;", "\"speculate\"" },
    { BASE "speculate 8;", "1 to 7" },
    { BASE "speculate on;", "expected auto, off or a number of drafts" },
    { BASE "speculate;", "speculate" },
    { BASE "backend null; speculate 1;", "\"speculate 1\" needs \"backend "
      "cpu\" or \"backend cuda\"; expected auto or off" },
    { BASE "backend gpu;", "expected cpu, cuda or null" },
    { BASE "weights random;", "needs \"backend cuda\"" },
    { BASE "weights none;", "files, fp8 or random" },
    { BASE "backend null; weights fp8;", "needs \"backend cpu\"" },
#if (DSA_CUDA)
    { BASE "backend cuda; precision exact;", "needs \"backend cpu\"" },
#else
    { BASE "backend cuda;", "built without nvcc" },
#endif
    { BASE "backend cpu rate=5;", "rate=5" },
    { BASE "backend null speed=5;", "speed=5" },
    { BASE "backend null rate=;", "rate" },
    { BASE "journal /tmp/j;", "\"journal\" needs \"backend null\"" },
    { BASE "backend cpu; journal /tmp/j;", "needs \"backend null\"" },
    { BASE "backend null; journal \"\";", "\"journal\" has 0 bytes" },
    { BASE "backend null rate=-1;", "rate" },
    { BASE "backend null rate=nan;", "rate" },
    { BASE "backend null rate=0x10;", "rate" },
    { BASE "backend null rate=0.5;", "rate" },
    { BASE "backend null rate=5s;", "rate" },
    { BASE "precision half;", "served or exact" },
    { BASE "kv f8;", "\"kv\" is \"f8\"; expected fp8 or bf16" },
    { BASE "kv bf16;", "\"kv bf16\" needs \"backend cuda\"" },
    { BASE "kv fp8; precision exact;", "needs \"precision served\"" },
    { BASE "kv_memory 0;", "kv_memory" },
    { BASE "kv_memory 5x;", "units k, m, g" },
    { BASE "kv_memory 5kk;", "kv_memory" },
    { BASE "kv_memory 99999999999g;", "kv_memory" },
    { BASE "drain_timeout 25h;", "\"drain_timeout\" is \"25h\"; expected a "
      "time from 0ms to 1d (units ms, s, m, h, d)" },
    { BASE "drain_timeout 2d;", "drain_timeout" },
    { BASE "drain_timeout 5x;", "units ms, s, m, h, d" },
    { BASE "drain_timeout 5sm;", "drain_timeout" },
    { BASE "drain_timeout 5mms;", "drain_timeout" },
    { BASE "drain_timeout ms;", "drain_timeout" },
    { BASE "drain_timeout \"\";", "drain_timeout" },
    { BASE "drain_timeout 1000000000000000000000000000000;",
      "drain_timeout" },
    { BASE "drain_timeout 25000m;", "drain_timeout" },
    { BASE "drain_timeout s;", "drain_timeout" },
    { BASE "token_target 2m;", "\"token_target\" is \"2m\"; expected a time "
      "from 0ms to 1m" },
    { BASE "first_token_target 2d;", "first_token_target" },
    { BASE "step_timeout -1;", "step_timeout" },
    { BASE "log_level loud;", "expected error, warn, notice, info or debug" },
    { BASE "start_timeout 2d;", "start_timeout" },
    { BASE "max_waiting 1048576;", "\"max_running\" (64) and "
      "\"max_waiting\" (1048576) are 1048640 requests" },
    { BASE "max_waiting 5 per_tenant=6;", "\"per_tenant\" of "
      "\"max_waiting\" is \"6\"; expected a number from 0 to 5" },
    { BASE "max_waiting 5 tenant=5;", "\"tenant=5\" is not a parameter of "
      "\"max_waiting\"; expected per_tenant=N" },

    /* directives of earlier versions */

    { BASE "max_waiting_per_tenant 9;", "engine.conf:1: "
      "\"max_waiting_per_tenant\" is obsolete; use \"max_waiting N "
      "per_tenant=N\" instead" },
    { BASE "step_target 50ms;", "engine.conf:1: \"step_target\" is obsolete; "
      "use \"token_target TIME\" for the time between tokens, and "
      "\"first_token_target TIME\" for the time to the first one" },
    { BASE "slots 50000;", "\"slots\" is obsolete; remove it, because the "
      "number follows from max_running and max_waiting" },
    { BASE "submit_ring 64m;", "\"submit_ring\" is obsolete; remove it" },
    { BASE "event_ring;", "\"event_ring\" is obsolete; remove it" },
    { BASE "max_running 64; token_budget 10;", "\"max_running\" is 64, but "
      "each running sequence needs a token in each step; expected a budget "
      "of at least 64" },
    { BASE "context_length 1;", "context_length" },
    { BASE "socket_group no-such-group-here;", "no-such-group-here" },
    { BASE "redis 127.0.0.1;", "\"redis\" is not a directive; expected one "
      "of " },
    { BASE "host_memory;", "\"host_memory\" has 0 values; expected 1" },
    { BASE "host_memory 5t;", "\"host_memory\" is \"5t\"; expected a size" },
    { BASE "host_memory 300000g;", "expected a size from 0 to "
      "281474976710656 bytes" },
    { "model \"a\tb\";", "control character" }
};


static void
test_faults(void **state)
{
    char  *text;

    refuse(faults, sizeof(faults) / sizeof(faults[0]));

    /* values that are too long */

    text = malloc(5000);
    assert_non_null(text);
    memset(text, 'x', 4999);
    text[4999] = '\0';
    memcpy(text, "model ", 6);
    bad(text, "longer than");
    memcpy(text, "listen unix:", 12);
    text[200] = ';';
    bad(text, "listen");
    free(text);
}


/*
 * Each directive without a value, with a wrong one, with one that is too small
 * or too large, and with too many: the error names the directive, and what it
 * accepts.
 */

static void
test_each_directive(void **state)
{
    char        text[512], name[64];
    size_t      i, n, faults;
    dsa_err_t   err;
    dsa_conf_t  conf;

    static const char  *wrong[] = {
        "name;", "name \"\";", "name a b;",
        "name 01234567890123456789012345678901234567890123456789"
        "01234567890123456789;",
        "backend;", "backend gpu;", "backend cpu fast;", "backend null rate=-;",
        "backend null rate=2e9;", "backend null rate=0.1;",
        "backend null 1 2 3;",
        "precision;", "precision exakt;", "kv;", "kv bf8;",
        "weights;", "weights none;",
        "log_level;", "log_level loud;", "log_level info debug;",
        "replicas;", "replicas x;", "replicas 0;", "replicas 257;",
        "gpus;", "gpus x;", "gpus 0;", "gpus 17;", "gpus 0,x;", "gpus 0,256;",
        "gpus 1,1;", "gpus 0 1;",
        "attention;", "attention both;",
        "kv_memory;", "kv_memory x;", "kv_memory 0;", "kv_memory 300000g;",
        "host_memory;", "host_memory x;", "host_memory 300000g;",
        "max_running;", "max_running x;", "max_running 0;",
        "max_running 2000000;",
        "token_budget;", "token_budget x;", "token_budget 0;",
        "token_budget 2000000;",
        "max_waiting;", "max_waiting x;", "max_waiting 2000000;",
        "max_waiting 5 5;", "max_waiting per_tenant=5;",
        "max_waiting 5 per_tenant=;", "max_waiting 5 per_tenant=x;",
        "max_waiting 5 per_tenant=6;", "max_waiting 5 per_tenant=1 1;",
        "context_length;", "context_length x;", "context_length 1;",
        "context_length 2000000000;",
        "drain_timeout;", "drain_timeout x;", "drain_timeout 2d;",
        "token_target;", "token_target x;", "token_target 2m;",
        "first_token_target;", "first_token_target x;",
        "first_token_target 2d;",
        "step_timeout;", "step_timeout x;", "step_timeout 2d;",
        "start_timeout;", "start_timeout x;", "start_timeout 2d;",
        "socket_group;", "socket_group no-such-group;",
        "redis_cache;", "redis_cache x;", "redis_cache 10.0.0.5;",
        "redis_cache 10.0.0.5:99999;", "redis_cache ttl=1d;",
        "redis_cache 10.0.0.5:1 10.0.0.5:1;", "redis_cache 10.0.0.5:1 ttl=0;",
        "redis_cache 10.0.0.5:1 ttl=1d ttl=2d;",
        "redis_cache 10.0.0.5:1 connections=0;",
        "redis_cache 10.0.0.5:1 connections=65;",
        "redis_cache 10.0.0.5:1 max_bandwidth=x;",
        "redis_cache 10.0.0.5:1 user=;", "redis_cache 10.0.0.5:1 user=u;",
        "redis_cache 10.0.0.5:1;"
    };

    (void) state;

    faults = 0;

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        n = strcspn(wrong[i], " ;");
        (void) snprintf(name, sizeof(name), "\"%.*s", (int) n, wrong[i]);
        (void) snprintf(text, sizeof(text), "%s%s", BASE, wrong[i]);

        if (dsa_conf_parse(&conf, "engine.conf", text, strlen(text), &err)
            == DSA_OK)
        {
            fail_msg("accepted: %s", wrong[i]);
        }

        dsa_conf_free(&conf);

        if (strncmp(err.text, "engine.conf:1: ", 15) != 0
            || (strstr(err.text, name) == NULL
                && strstr(err.text, "\"rate\"") == NULL)
            || strstr(err.text, "expected ") == NULL)
        {
            print_error("%s: %s\n", wrong[i], err.text);
            faults++;
        }
    }

    assert_int_equal(faults, 0);
}


/* The longest path of a socket has room for the replica's number. */

static void
test_longest_path(void **state)
{
    char        text[300], path[108];
    size_t      n;
    dsa_conf_t  conf;

    (void) snprintf(text, sizeof(text), "model m; replicas 200; listen "
                    "unix:");
    n = strlen(text);
    memset(text + n, 'x', 104);
    strcpy(text + n + 104, "%n;");
    good(&conf, text);
    assert_int_equal(dsa_conf_socket(&conf, 199, path, sizeof(path)), DSA_OK);
    dsa_conf_free(&conf);

    strcpy(text + n + 104, "x%n;");
    bad(text, "longer than 107");
}


/* Any prefix of a configuration is accepted or rejected without a crash. */

static void
test_cut(void **state)
{
    size_t      i;
    dsa_err_t   err;
    dsa_conf_t  conf;

    static const char  text[] = "model 'a b'; listen unix:x.%n; backend null "
                                "rate=5; # end\nmax_waiting 5 per_tenant=3; "
                                "host_memory 5g; "
                                "redis_cache a:1 unix:b user=c ttl=1d "
                                "max_bandwidth=5m connections=3;";

    for (i = 0; i < sizeof(text); i++) {
        (void) dsa_conf_parse(&conf, "engine.conf", text, i, &err);
        dsa_conf_free(&conf);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_gpus_faults),
        cmocka_unit_test(test_tiers),
        cmocka_unit_test(test_password),
        cmocka_unit_test(test_tiers_faults),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_each_directive),
        cmocka_unit_test(test_longest_path),
        cmocka_unit_test(test_cut)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
