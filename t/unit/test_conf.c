
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/service/conf.h"


#define BASE    "model /srv/v32; listen unix:/run/dsa.sock; "


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
    assert_int_equal(conf.replicas, 1);
    assert_true(conf.rate == 50);
    assert_int_equal(conf.drain_timeout_ms, 30000);
    assert_int_equal(conf.step_target_ms, 50);
    assert_int_equal(conf.step_timeout_ms, 60000);
    assert_int_equal(conf.start_timeout_ms, 1800000);
    assert_int_equal(conf.log_level, DSA_LOG_INFO);
    assert_true(conf.socket_group == (gid_t) -1);
    assert_true(conf.max_running <= conf.token_budget);
    assert_int_equal(conf.slots, 16384);
    assert_int_equal(conf.max_waiting_per_tenant, conf.max_waiting);
    dsa_conf_free(&conf);

    good(&conf, BASE "backend null;");
    assert_true(conf.slots > conf.max_running + conf.max_waiting);
    dsa_conf_free(&conf);

    good(&conf, BASE "max_waiting 16320;");
    assert_int_equal(conf.slots, 32768);
    dsa_conf_free(&conf);

    good(&conf, BASE "max_waiting 16319;");
    assert_int_equal(conf.slots, 16384);
    dsa_conf_free(&conf);

    good(&conf, "model ./models/small//; listen unix:x;");
    assert_string_equal(conf.name, "small");
    dsa_conf_free(&conf);

    good(&conf, BASE "token_budget 5;");
    assert_int_equal(conf.max_running, 5);
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
         "kv_memory 3G; max_running 7; token_budget 700; max_waiting 0;\n"
         "max_waiting_per_tenant 9;\n"
         "context_length 4096; drain_timeout 1500ms; slots 10;\n"
         "submit_ring 1m; event_ring 64k;\n"
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
    assert_int_equal(conf.max_waiting, 0);
    assert_int_equal(conf.max_waiting_per_tenant, 9);
    assert_int_equal(conf.context_length, 4096);
    assert_int_equal(conf.drain_timeout_ms, 1500);
    assert_int_equal(conf.slots, 10);
    assert_int_equal(conf.submit_ring, 1 << 20);
    assert_int_equal(conf.event_ring, 1 << 16);
    assert_int_equal(conf.socket_group, 0);

    assert_int_equal(dsa_conf_socket(&conf, 11, path, sizeof(path)), DSA_OK);
    assert_string_equal(path, "/run/dsa/v32.11.sock");
    assert_int_equal(dsa_conf_socket(&conf, 11, path, 5), DSA_ERROR);

    dsa_conf_free(&conf);

    good(&conf, BASE "drain_timeout 2m;");
    assert_int_equal(conf.drain_timeout_ms, 120000);
    dsa_conf_free(&conf);

    good(&conf, BASE "step_target 20ms; step_timeout 2; start_timeout 0; "
         "log_level debug;");
    assert_int_equal(conf.log_level, DSA_LOG_DEBUG);
    assert_int_equal(conf.step_target_ms, 20);
    assert_int_equal(conf.step_timeout_ms, 2000);
    assert_int_equal(conf.start_timeout_ms, 0);
    dsa_conf_free(&conf);

    good(&conf, BASE "drain_timeout 0;");
    assert_int_equal(conf.drain_timeout_ms, 0);
    dsa_conf_free(&conf);

    good(&conf, BASE "backend null rate=0;");
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

    /* the limits of one GPU stay; the budget is that of all GPUs */

    good(&conf, BASE "gpus 4;");
    assert_int_equal(conf.gpus, 4);
    assert_int_equal(conf.max_running, 64);
    assert_int_equal(conf.token_budget, 4 * 512);
    dsa_conf_free(&conf);

    good(&conf, BASE "gpus 4; attention tensor;");
    assert_int_equal(conf.attention, DSA_ATTENTION_TENSOR);
    assert_int_equal(conf.max_running, 64);
    assert_int_equal(conf.token_budget, 512);
    dsa_conf_backend_of(&conf, 0, &b);
    assert_int_equal(b.attention, DSA_ATTENTION_TENSOR);
    dsa_conf_free(&conf);

    good(&conf, BASE "gpus 4; token_budget 100;");
    assert_int_equal(conf.max_running, 25);
    dsa_conf_free(&conf);

    good(&conf, BASE "gpus 4; attention data; max_running 600;");
    assert_int_equal(conf.token_budget, 4 * 600);
    dsa_conf_free(&conf);

    good(&conf, BASE "gpus 4; max_running 25; token_budget 100;");
    dsa_conf_free(&conf);

    /* slots: 4 * 4096 running, and 1024 that wait */

    good(&conf, BASE "gpus 4; max_running 4096;");
    assert_int_equal(conf.slots, 32768);
    dsa_conf_free(&conf);

    good(&conf, BASE "gpus 4; max_running 4096; attention tensor;");
    assert_int_equal(conf.slots, 16384);
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
    good(&conf, BASE "backend cuda; gpus 8;");
    assert_int_equal(conf.max_running, 128);
    assert_int_equal(conf.token_budget, 8 * 8192);
    dsa_conf_free(&conf);

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


static void
test_gpus_faults(void **state)
{
    bad(BASE "gpus 0;", "\"gpus\" is \"0\"; expected the number of GPUs of a "
        "replica, 1 to 16, or a list of GPUs, such as 0,2,4,6");
    bad(BASE "gpus 17;", "1 to 16");
    bad(BASE "gpus all;", "1 to 16");
    bad(BASE "gpus 0 1;", "\"gpus\" has 2 values; expected 1");
    bad(BASE "gpus 0,,1;", "\"\" in the list of \"gpus\" is not the number of "
        "a GPU; expected 0 to 255");
    bad(BASE "gpus 0,1,;", "\"\" in the list");
    bad(BASE "gpus ,;", "\"\" in the list");
    bad(BASE "gpus 0,256;", "\"256\" in the list");
    bad(BASE "gpus 0,-1;", "\"-1\" in the list");
    bad(BASE "gpus 0,1k;", "\"1k\" in the list");
    bad(BASE "gpus 3,1,3;", "GPU 3 is in the list of \"gpus\" twice");
    bad(BASE "gpus 0,1;", "needs \"backend cuda\"; expected a count");
    bad(BASE "backend null; gpus 0,1;", "needs \"backend cuda\"");
    bad(BASE "attention both;", "\"attention\" is \"both\"; expected data or "
        "tensor");
    bad(BASE "gpus 4; max_running 25; token_budget 99;", "\"token_budget\" is "
        "99 and \"max_running\" is 25 on each GPU, but each running sequence "
        "needs a token in each step; expected a budget of at least 100");
    bad(BASE "gpus 4; token_budget 3;", "expected a budget of at least 4");
    bad(BASE "gpus 4; max_running 1000; slots 5024;", "\"max_running\" (4000 "
        "on all GPUs) and \"max_waiting\" (1024)");

#if (DSA_CUDA)
    bad("model m; listen unix:%n; replicas 2; gpus 0,1,2; backend cuda;",
        "3 \"gpus\" cannot be shared out equally to 2 replicas; expected a "
        "multiple of 2");
    bad(BASE "backend cuda; gpus 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16;",
        "each replica has 17 \"gpus\"; expected at most 16");
#endif
}


static void
test_faults(void **state)
{
    char  *text;

    bad("", "\"model\" is missing");
    bad("model x;", "\"listen\" is missing");
    bad("listen unix:x;", "\"model\" is missing");
    bad("model x; listen unix:y;\n\nfoo 1;", "engine.conf:3: unknown "
        "directive \"foo\"");
    bad(BASE "\nname a;\nname b;", "engine.conf:3: \"name\" is repeated; "
        "the first is in line 2");
    bad("model x", "engine.conf:1: no \";\" follows \"model\"");
    bad("model x;;", "unexpected \";\"");
    bad("model;", "\"model\" has 0 values; expected 1");
    bad("model a b;", "\"model\" has 2 values; expected 1");
    bad("model a b c d e;", "too many values");
    bad("model \"a;", "quote");
    bad("model a{};", "unexpected \"{\"");
    bad("model \"\";", "\"model\"");
    bad("model /; listen unix:x;", "add \"name\"");
    bad("model a/..; listen unix:x;", "add \"name\"");
    bad("listen /x;", "unix:PATH");
    bad("listen unix:;", "unix:PATH");
    bad("listen unix:/%d;", "%n");
    bad("listen unix:/%n%n;", "%n");
    bad(BASE "replicas 2;", "has no %n");
    bad(BASE "replicas 0;", "1 to 256");
    bad(BASE "replicas 257;", "1 to 256");
    bad(BASE "replicas 1k;", "replicas");
    bad(BASE "replicas -1;", "replicas");
    bad(BASE "replicas 99999999999999999999999;", "replicas");
    bad(BASE "backend gpu;", "expected cpu, cuda or null");
    bad(BASE "weights random;", "needs \"backend cuda\"");
    bad(BASE "weights none;", "files or random");
#if (DSA_CUDA)
    bad(BASE "backend cuda; precision exact;", "needs \"backend cpu\"");
#else
    bad(BASE "backend cuda;", "built without nvcc");
#endif
    bad(BASE "backend cpu rate=5;", "rate=5");
    bad(BASE "backend null speed=5;", "speed=5");
    bad(BASE "backend null rate=;", "rate");
    bad(BASE "backend null rate=-1;", "rate");
    bad(BASE "backend null rate=nan;", "rate");
    bad(BASE "backend null rate=0x10;", "rate");
    bad(BASE "backend null rate=0.5;", "rate");
    bad(BASE "backend null rate=5s;", "rate");
    bad(BASE "precision half;", "served or exact");
    bad(BASE "kv_memory 0;", "kv_memory");
    bad(BASE "kv_memory 5x;", "units k, m, g");
    bad(BASE "kv_memory 5kk;", "kv_memory");
    bad(BASE "kv_memory 99999999999g;", "kv_memory");
    bad(BASE "drain_timeout 5h;", "units ms, s, m");
    bad(BASE "drain_timeout 25000m;", "drain_timeout");
    bad(BASE "drain_timeout s;", "drain_timeout");
    bad(BASE "step_target 2m;", "\"step_target\" is \"2m\"; expected a time "
        "from 0ms to 1m");
    bad(BASE "step_timeout -1;", "step_timeout");
    bad(BASE "log_level loud;", "expected error, warn, notice, info or debug");
    bad(BASE "start_timeout 1h;", "start_timeout");
    bad(BASE "event_ring 100k;", "power of two");
    bad(BASE "event_ring 4k;", "event_ring");
    bad(BASE "submit_ring 2g;", "submit_ring");
    bad(BASE "slots 0;", "slots");
    bad(BASE "slots 1088;", "\"slots\" (1088, at most 1048576) is not "
        "above \"max_running\" (64) and \"max_waiting\" (1024) together");
    bad(BASE "max_waiting 1048576;", "\"slots\" (1048576, at most 1048576)");
    bad(BASE "max_waiting_per_tenant -1;", "max_waiting_per_tenant");
    bad(BASE "max_running 64; token_budget 10;", "\"max_running\" is 64, but "
        "each running sequence needs a token in each step; expected a budget "
        "of at least 64");
    bad(BASE "context_length 1;", "context_length");
    bad(BASE "socket_group no-such-group-here;", "no-such-group-here");
    bad(BASE "redis 127.0.0.1;", "is not supported by this build");
    bad(BASE "host_memory 5g;", "is not supported by this build");
    bad("model \"a\nb\";", "control character");

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
                                "rate=5; # end\nslots 50000;";

    for (i = 0; i < sizeof(text); i++) {
        (void) dsa_conf_parse(&conf, "engine.conf", text, i, &err);
        dsa_conf_free(&conf);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_gpus_faults),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_longest_path),
        cmocka_unit_test(test_cut)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
