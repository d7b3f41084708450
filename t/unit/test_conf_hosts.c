
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/service/conf.h"


/* The directives of a replica over several hosts, in engine.conf. */

#define SECRET      "0123456789abcdef0123456789abcdef"
#define LEADER      "model m; listen unix:x; hosts 10.0.0.2:7400; "           \
                    "host_secret %s; "
#define FOLLOWER    "model m; listen 10.0.0.2:7400; host_secret %s; "


static char  file[] = "/tmp/dsa-test-XXXXXX";


static void
secret_write(const char *text, mode_t mode)
{
    FILE  *f;

    f = fopen(file, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(file, mode), 0);
}


/* %s in the text is the file of the secret. */

static int
parse(dsa_conf_t *conf, const char *format, dsa_err_t *err)
{
    char         text[1024];
    const char  *mark;

    mark = strstr(format, "%s");

    if (mark == NULL) {
        (void) snprintf(text, sizeof(text), "%s", format);

    } else {
        (void) snprintf(text, sizeof(text), "%.*s%s%s",
                        (int) (mark - format), format, file, mark + 2);
    }

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

    assert_null(strstr(err.text, SECRET));
    dsa_conf_free(&conf);
}


static void
test_leader(void **state)
{
    dsa_conf_t          conf;
    dsa_backend_conf_t  backend;

    secret_write(SECRET "\n", 0640);

    good(&conf, "model m; listen unix:x; hosts 10.0.0.2:7400 [fd00::3]:7400 "
                "gpu-4.example:7400; host_secret %s; gpus 4; max_running 8; "
                "backend cpu;");

    assert_int_equal(conf.followers, 3);
    assert_string_equal(conf.host[0], "10.0.0.2:7400");
    assert_string_equal(conf.host[2], "gpu-4.example:7400");
    assert_null(conf.follow);
    assert_int_equal(conf.secret.len, strlen(SECRET));
    assert_memory_equal(conf.secret.text, SECRET, strlen(SECRET));

    /* limits are those of all hosts, and drafts are off */

    assert_int_equal(dsa_conf_running(&conf), 8 * 16);
    assert_int_equal(conf.token_budget, 512 * 16);
    assert_int_equal(conf.drafts, 0);

    dsa_conf_backend_of(&conf, 0, &backend);
    assert_int_equal(backend.gpus, 4);
    assert_int_equal(backend.hosts.n, 4);
    assert_int_equal(dsa_backend_hosts(&backend), 4);
    dsa_conf_free(&conf);

    good(&conf, LEADER "host_memory 1g; redis_cache 127.0.0.1:6379;");
    dsa_conf_backend_of(&conf, 0, &backend);
    assert_int_equal(backend.host_memory, 1 << 30);
    assert_int_equal(backend.persistent, 1);
    dsa_conf_free(&conf);

    good(&conf, "model m; listen unix:x; backend cpu;");
    assert_int_equal(conf.followers, 0);
    dsa_conf_backend_of(&conf, 0, &backend);
    assert_int_equal(dsa_backend_hosts(&backend), 1);
    dsa_conf_free(&conf);
}


static void
test_follower(void **state)
{
    dsa_conf_t  conf;

    secret_write(SECRET, 0600);

    good(&conf, FOLLOWER "gpus 2; backend cpu; log_level debug; "
                "step_timeout 5s; start_timeout 1h;");
    assert_string_equal(conf.follow, "10.0.0.2:7400");
    assert_null(conf.listen);
    assert_int_equal(conf.followers, 0);
    assert_int_equal(conf.gpus, 2);
    dsa_conf_free(&conf);

    bad("model m; listen 10.0.0.2:7400;", "\"host_secret\" is missing");
    bad(FOLLOWER "\nmax_running 8;", "engine.conf:2: \"max_running\" is the "
        "leader's, because this host follows another one (\"listen "
        "10.0.0.2:7400\"); expected only model, listen, host_secret, ");
    bad(FOLLOWER "hosts 10.0.0.3:7400;", "\"hosts\" is the leader's");
    bad(FOLLOWER "kv_memory 5g;", "\"kv_memory\" is the leader's");
    bad(FOLLOWER "name a;", "\"name\" is the leader's");
    bad(FOLLOWER "backend null;", "several hosts need \"backend cuda\" or "
        "\"backend cpu\"");
    bad("model m; listen 10.0.0.2; host_secret %s;", "\"listen\" is "
        "\"10.0.0.2\"; expected unix:PATH, or HOST:PORT for a host that "
        "follows another one");
}


static void
test_refused(void **state)
{
    secret_write(SECRET "\r\nmore\n", 0640);

    bad("model m; listen unix:x; hosts 10.0.0.2:7400;", "\"host_secret\" is "
        "missing; expected \"host_secret FILE;\"");
    bad("model m; listen unix:x; host_secret %s;", "\"host_secret\" needs "
        "\"hosts\", or \"listen HOST:PORT\"");
    bad("model m; listen unix:x; hosts;", "\"hosts\" has 0 values; expected 1 "
        "to 15");
    bad("model m; listen unix:x; hosts 10.0.0.2;", "\"10.0.0.2\" of \"hosts\" "
        "is not an address; expected the \"listen\" of a host that follows");
    bad("model m; listen unix:x; hosts a:0;", "\"a:0\" of \"hosts\"");
    bad("model m; listen unix:x; hosts unix:/x;", "\"unix:/x\" of \"hosts\"");
    bad("model m; listen unix:x; hosts a:1 b:1 a:1;", "\"hosts\" has \"a:1\" "
        "twice");
    bad(LEADER "attention tensor; gpus 2;", "\"attention tensor\" is not "
        "possible over several \"hosts\"");
    bad("model m; hosts a:1; host_secret %s; replicas 2; listen unix:%n;",
        "there are 2 \"replicas\" with \"hosts\"; expected one");
    bad(LEADER "gpus 9;", "9 \"gpus\" on each of 2 hosts are 18; expected at "
        "most 16 GPUs of a replica");
    bad(LEADER "speculate 3;", "\"speculate 3\" is not possible over several "
        "\"hosts\"; expected auto or off");
    bad(LEADER "redis_cache 127.0.0.1:6379;",
        "\"redis_cache\" needs \"host_memory\"");
    bad(FOLLOWER "host_memory 1g;", "\"host_memory\" is the leader's");
    bad(LEADER "step_timeout 0;", "\"step_timeout\" is 0");
    bad(LEADER "backend null;", "several hosts need \"backend cuda\" or "
        "\"backend cpu\"");
#if (DSA_CUDA)
    bad(LEADER "backend cuda; weights random;", "\"weights random\" is not "
        "possible over several \"hosts\"");
#endif
}


/* Errors about the secret never contain it. */

static void
test_secret(void **state)
{
    char  text[1100];

    secret_write(SECRET "\n", 0644);
    bad(LEADER, "all users can read the file (its mode is 644); expected a "
        "secret of its owner and group: \"chmod o= /tmp/dsa-test-");

    secret_write(SECRET "\n", 0602);
    bad(LEADER, "all users can write the file (its mode is 602)");

    secret_write("0123456789abcdef0123456789abcde\n", 0600);
    bad(LEADER, "the first line has 31 bytes; expected a random secret of 32 "
        "to 512 bytes");

    secret_write("\n" SECRET "\n", 0600);
    bad(LEADER, "the first line has 0 bytes");

    memset(text, 'x', sizeof(text));
    text[513] = '\0';
    secret_write(text, 0600);
    bad(LEADER, "the first line has 513 bytes");

    assert_int_equal(unlink(file), 0);
    bad(LEADER, "\"host_secret\": /tmp/dsa-test-");
    secret_write(SECRET, 0600);
}


static int
setup(void **state)
{
    int  fd;

    fd = mkstemp(file);

    return fd == -1 ? -1 : close(fd);
}


static int
teardown(void **state)
{
    return unlink(file);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_leader),
        cmocka_unit_test(test_follower),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_secret)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
