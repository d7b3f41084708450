
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <time.h>

#include "engine/hosts/plan.h"
#include "t/unit/hosts.h"


/*
 * Each fault of a host at each stage of a step: the leader names the host, in
 * time, and no process is left waiting.
 */

#define MODEL       GOLDEN "a-fp8"
#define LIMIT_MS    1000        /* of a step, where a host hangs */
#define LATE_MS     60000       /* nothing takes nearly as long */


typedef enum {
    STAGE_NONE = 0,
    STAGE_OPEN,
    STAGE_START,
    STAGE_EXCHANGE,             /* in a layer, while the other host waits */
    STAGE_COPY,
    STAGE_WAIT,                 /* before the samples are sent */
    STAGES
} stage_e;


typedef enum {
    FAULT_DIES = 0,
    FAULT_HANGS,
    FAULT_SLOW,                 /* four times the limit */
    FAULTS
} fault_e;


static const char  *stages[STAGES] = {
    "none", "open", "start", "exchange", "copy", "wait"
};

static stage_e  stage;          /* of the process that has the fault */
static fault_e  fault;
static hosts_t  hosts;

static int    (*real_start)(dsa_backend_t *b, dsa_batch_seq_t *seq,
                            uint32_t n_seqs, dsa_err_t *err);
static int    (*real_wait)(dsa_backend_t *b, dsa_err_t *err);
static int    (*real_copy)(dsa_backend_t *b, const dsa_page_copy_t *copy,
                           uint32_t n, dsa_err_t *err);
static dsa_backend_hosts_t  real_hosts;


static void
at(stage_e now)
{
    struct timespec  pause = { 4 * LIMIT_MS / 1000, 0 };

    if (now != stage) {
        return;
    }

    switch (fault) {

    case FAULT_DIES:
        _exit(9);

    case FAULT_SLOW:
        (void) nanosleep(&pause, NULL);
        break;

    default:
        for ( ;; ) {
            (void) poll(NULL, 0, -1);
        }
    }
}


static int
faulty_start(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n_seqs,
    dsa_err_t *err)
{
    at(STAGE_START);

    return real_start(b, seq, n_seqs, err);
}


static int
faulty_wait(dsa_backend_t *b, dsa_err_t *err)
{
    at(STAGE_WAIT);

    return real_wait(b, err);
}


static int
faulty_copy(dsa_backend_t *b, const dsa_page_copy_t *copy, uint32_t n,
    dsa_err_t *err)
{
    at(STAGE_COPY);

    return real_copy(b, copy, n, err);
}


static int
faulty_exchange(void *data, const void *const *out, void *const *in,
    const uint64_t *bytes, dsa_err_t *err)
{
    static uint32_t  calls;

    if (++calls == 3) {
        at(STAGE_EXCHANGE);
    }

    return real_hosts.exchange(real_hosts.data, out, in, bytes, err);
}


static dsa_backend_t *
faulty_open(dsa_backend_e kind, const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    dsa_backend_t       *b;
    dsa_backend_conf_t   own;

    at(STAGE_OPEN);

    own = *conf;
    real_hosts = conf->hosts;
    own.hosts.exchange = faulty_exchange;

    b = dsa_backend_open(kind, &own, err);

    if (b != NULL) {
        real_start = b->start;
        real_wait = b->wait;
        real_copy = b->copy;
        b->start = faulty_start;
        b->wait = faulty_wait;
        b->copy = faulty_copy;
    }

    return b;
}


/* A follower that is not started yet. */

static void
prepare(void)
{
    stage = STAGE_NONE;

    hosts_init(&hosts, MODEL, 1, 1);
}


/* A step of a sequence on each host, and a copy between them. */

static int
step(dsa_backend_t *b, dsa_err_t *err)
{
    uint32_t         i, tokens[8], page;
    dsa_sample_t     sample[2];
    dsa_sampling_t   sampling;
    dsa_batch_seq_t  seq[2];
    dsa_page_copy_t  copy = { 1, 2, 0, 2 };

    memset(tokens, 0, sizeof(tokens));
    memset(&sampling, 0, sizeof(sampling));
    memset(seq, 0, sizeof(seq));
    sampling.top_p = 1;
    page = 0;

    for (i = 0; i < 2; i++) {
        seq[i].tokens = tokens;
        seq[i].n_input = 8;
        seq[i].n_prompt = 8;
        seq[i].input_from = DSA_INPUT_KNOWN;
        seq[i].rank = i;
        seq[i].pages = &page;
        seq[i].sampling = &sampling;
        seq[i].sample = &sample[i];
    }

    if (b->start(b, seq, 2, err) != DSA_OK
        || b->wait(b, err) != DSA_OK
        || b->copy(b, &copy, 1, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    /* a copy has no answer: what has gone wrong is found by the next step */

    return b->start(b, seq, 2, err) == DSA_OK ? b->wait(b, err) : DSA_ERROR;
}


static void
has(const dsa_err_t *err, const char *text)
{
    if (strstr(err->text, text) == NULL) {
        fail_msg("\"%s\" does not contain \"%s\"", err->text, text);
    }
}


/* A fault of a follower at a stage, as the leader reports it. */

static void
faults(stage_e s, fault_e f)
{
    int             rc;
    uint64_t        begin;
    dsa_err_t       err;
    dsa_backend_t  *b;

    prepare();
    stage = s;
    fault = f;

    hosts.follower[0].open = faulty_open;
    hosts_start(&hosts);
    stage = STAGE_NONE;

    /* a host that hangs while it opens is found by the limit of the start */

    if (f != FAULT_DIES) {
        hosts.leader.step_ms = LIMIT_MS;
        hosts.leader.start_ms = s == STAGE_OPEN ? 4 * LIMIT_MS
                                                : HOSTS_START_MS;
    }

    begin = dsa_clock_ms();
    b = hosts_lead(&hosts, MODEL, 0, &err);

    if (b == NULL) {
        assert_int_equal(s, STAGE_OPEN);

    } else {
        assert_int_not_equal(s, STAGE_OPEN);
        begin = dsa_clock_ms();
        rc = step(b, &err);

        if (rc == DSA_OK) {
            fail_msg("a step succeeds, although a follower has fault %d at "
                     "%s", f, stages[s]);
        }
    }

    begin = dsa_clock_ms() - begin;
    has(&err, hosts.follower[0].address);

    if (f == FAULT_DIES) {
        has(&err, "has closed the connection");

    } else {
        has(&err, "has sent nothing for");
        assert_true(begin >= LIMIT_MS);
    }

    assert_true(begin < LATE_MS);

    if (f == FAULT_HANGS) {
        (void) kill(hosts.follower[0].pid, SIGKILL);
    }

    /* a slow one finds that the leader has closed the connection */

    if (b != NULL) {
        b->close(b);
    }

    rc = follower_ended(&hosts.follower[0]);
    assert_int_equal(rc, f == FAULT_DIES ? 9
                         : f == FAULT_HANGS ? 128 + SIGKILL : 3);
}


static void
test_dies(void **state)
{
    stage_e  s;

    for (s = STAGE_OPEN; s < STAGES; s++) {
        faults(s, FAULT_DIES);
    }
}


static void
test_hangs(void **state)
{
    stage_e  s;

    for (s = STAGE_OPEN; s < STAGES; s++) {
        faults(s, FAULT_HANGS);
    }
}


static void
test_slow(void **state)
{
    stage_e  s;

    for (s = STAGE_START; s < STAGES; s++) {
        faults(s, FAULT_SLOW);
    }
}


/* Between steps: a follower that dies is reported without a step. */

static void
test_idle(void **state)
{
    int             rc;
    uint64_t        begin;
    dsa_err_t       err;
    dsa_backend_t  *b;

    prepare();
    hosts_start(&hosts);

    b = hosts_lead(&hosts, MODEL, 0, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);
    must(step(b, &err), &err);
    must(b->check(b, &err), &err);
    assert_int_equal(hosts.failures, 0);

    (void) kill(hosts.follower[0].pid, SIGKILL);
    assert_int_equal(follower_ended(&hosts.follower[0]), 128 + SIGKILL);

    begin = dsa_clock_ms();

    while (hosts.failures == 0) {
        assert_true(dsa_clock_ms() - begin < LATE_MS);
        (void) poll(NULL, 0, 1);
    }

    assert_int_equal(b->check(b, &err), DSA_ERROR);
    has(&err, hosts.follower[0].address);
    has(&err, "has closed the connection");

    rc = step(b, &err);
    assert_int_equal(rc, DSA_ERROR);
    has(&err, hosts.follower[0].address);

    b->close(b);

    /* one that has stopped is found by the next step */

    prepare();
    hosts.leader.step_ms = LIMIT_MS;
    hosts_start(&hosts);
    b = hosts_lead(&hosts, MODEL, 0, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);

    (void) kill(hosts.follower[0].pid, SIGSTOP);
    assert_int_equal(step(b, &err), DSA_ERROR);
    has(&err, hosts.follower[0].address);
    has(&err, "has sent nothing for 1000 ms");

    (void) kill(hosts.follower[0].pid, SIGKILL);
    (void) follower_ended(&hosts.follower[0]);
    b->close(b);
}


/* A leader that dies at a stage: its follower ends, too. */

static void
test_leader(void **state)
{
    pid_t           pid;
    stage_e         s;
    dsa_err_t       err;
    dsa_backend_t  *b;

    for (s = STAGE_OPEN; s < STAGES; s++) {
        prepare();
        hosts_start(&hosts);

        pid = fork();
        assert_true(pid != -1);

        if (pid == 0) {
            dsa_log_level(DSA_LOG_ERR);
            stage = s;
            fault = FAULT_DIES;
            hosts.leader.open = faulty_open;
            b = hosts_lead(&hosts, MODEL, 0, &err);
            _exit(b != NULL && step(b, &err) == DSA_OK ? 0 : 1);
        }

        hosts.follower[1].pid = pid;
        assert_int_equal(follower_ended(&hosts.follower[1]), 9);
        assert_int_equal(follower_ended(&hosts.follower[0]), 3);
    }
}


/* The backend of this host waits for ever, as a GPU does for another host. */

static int
endless_wait(dsa_backend_t *b, dsa_err_t *err)
{
    while (poll(NULL, 0, -1) <= 0) {
        /* void */
    }

    return DSA_OK;
}


static dsa_backend_t *
endless_open(dsa_backend_e kind, const dsa_backend_conf_t *conf,
    dsa_err_t *err)
{
    dsa_backend_t  *b;

    b = dsa_backend_open(kind, conf, err);
    b->wait = endless_wait;

    return b;
}


/* Ends the process with what abort() was called with. */

static void
abort_report(void *data, const char *text)
{
    ssize_t  n;

    n = write(*(int *) data, text, strlen(text));
    _exit(n > 0 ? 77 : 1);
}


static void
no_failure(void *data)
{
}


/* The backend of this host waits in open() for ever, as NCCL does. */

static dsa_backend_t *
endless_start(dsa_backend_e kind, const dsa_backend_conf_t *conf,
    dsa_err_t *err)
{
    (void) endless_wait(NULL, err);

    return NULL;
}


static void
aborts(stage_e s, fault_e f, const char *want)
{
    int             rc, fds[2];
    char            text[sizeof(dsa_err_t)];
    ssize_t         n;
    dsa_err_t       err;
    follower_t      leader;
    dsa_backend_t  *b;

    prepare();
    stage = s;
    fault = f;
    hosts.follower[0].open = faulty_open;

    if (f == FAULT_HANGS) {
        hosts.leader.step_ms = 4 * LIMIT_MS;
        hosts.leader.start_ms = 4 * LIMIT_MS;
    }

    hosts_start(&hosts);
    stage = STAGE_NONE;

    assert_int_equal(pipe(fds), 0);
    leader.pid = fork();

    if (leader.pid == 0) {
        dsa_log_level(DSA_LOG_ERR);
        hosts.leader.open = s == STAGE_OPEN ? endless_start : endless_open;
        hosts.leader.abort = abort_report;
        hosts.leader.failed = no_failure;
        hosts.leader.data = &fds[1];
        b = hosts_lead(&hosts, MODEL, 0, &err);

        if (b != NULL && step(b, &err) == DSA_OK) {
            _exit(0);
        }

        /* the connection has ended before the leader waited */

        _exit(write(fds[1], err.text, strlen(err.text)) > 0 ? 1 : 2);
    }

    (void) close(fds[1]);
    n = read(fds[0], text, sizeof(text) - 1);
    (void) close(fds[0]);
    assert_true(n > 0);
    text[n] = '\0';

    (void) snprintf(err.text, sizeof(err.text), "%.500s", text);
    has(&err, hosts.follower[0].address);
    has(&err, want);

    rc = follower_ended(&leader);
    assert_true(rc == 77 || (f == FAULT_DIES && rc == 1));

    if (f == FAULT_HANGS) {
        (void) kill(hosts.follower[0].pid, SIGKILL);
    }

    (void) follower_ended(&hosts.follower[0]);
}


static void
test_abort(void **state)
{
    aborts(STAGE_WAIT, FAULT_DIES, "has closed the connection");
    aborts(STAGE_WAIT, FAULT_HANGS, "a step takes more than ");
    aborts(STAGE_OPEN, FAULT_DIES, "has closed the connection");
    aborts(STAGE_OPEN, FAULT_HANGS, "opening the model takes more than ");
}


/* A leader that cannot start: err has the address and the reason. */

static void
cannot_lead(const char *why)
{
    dsa_err_t       err;
    dsa_backend_t  *b;

    hosts_start(&hosts);
    b = hosts_lead(&hosts, MODEL, 0, &err);

    assert_null(b);
    has(&err, hosts.follower[0].address);
    has(&err, why);

    (void) kill(hosts.follower[0].pid, SIGKILL);
    (void) follower_ended(&hosts.follower[0]);
}


static void
test_others(void **state)
{
    prepare();
    hosts.follower[0].model = GOLDEN "b-bf16";
    cannot_lead("has other weights: their fingerprint is ");

    prepare();
    hosts.follower[0].model = "/nonexistent";
    cannot_lead("/nonexistent");

    prepare();
    hosts.follower[0].gpus = 2;
    cannot_lead("the leader has \"gpus\" 1, and this host 2; expected the "
                "same number on all hosts");

    prepare();
    hosts.follower[0].kind = DSA_BACKEND_NULL;
    cannot_lead("the leader has \"backend cpu\", and this host \"backend "
                "null\"");

    prepare();
    hosts.follower[0].secret = "another secret of 40 bytes, as it happens.";
    cannot_lead("the secret of the leader is not that of this host; expected "
                "the same \"host_secret\" on all hosts");
}


/* Messages that a follower must not send. */

static int
send_junk(dsa_hosts_wire_t *w, dsa_hosts_type_e type, uint32_t number,
    const void *data, size_t bytes)
{
    dsa_err_t     err;
    struct iovec  part = { (void *) (uintptr_t) data, bytes };

    dsa_hosts_wire_limit(w, LATE_MS);
    (void) dsa_hosts_wire_send(w, type, number, &part, 1, &err);

    /* until the leader has read it and closes */

    while (dsa_hosts_wire_read(w, &err, 1, &err) == DSA_OK) {
        /* void */
    }

    return 0;
}


static int
junk_result(dsa_hosts_wire_t *w)
{
    return send_junk(w, DSA_HOSTS_RESULT, 0, "junk", 4);
}


static int
junk_short(dsa_hosts_wire_t *w)
{
    return send_junk(w, DSA_HOSTS_READY, 0, "junk", 4);
}


static int
junk_ready(dsa_hosts_wire_t *w)
{
    dsa_hosts_ready_t  ready;

    memset(&ready, 0xff, sizeof(ready));

    return send_junk(w, DSA_HOSTS_READY, 0, &ready, sizeof(ready));
}


static int
junk_type(dsa_hosts_wire_t *w)
{
    return send_junk(w, (dsa_hosts_type_e) 4711, 0, NULL, 0);
}


static int
junk_fault(dsa_hosts_wire_t *w)
{
    return send_junk(w, DSA_HOSTS_FAULT, 0, "out of\n\033[31mluck", 16);
}


/* What a follower reports about a step is what the leader reports. */

static int
failing_start(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n_seqs,
    dsa_err_t *err)
{
    return dsa_error(err, "GPU 5: an uncorrectable error of its memory");
}


static dsa_backend_t *
failing_open(dsa_backend_e kind, const dsa_backend_conf_t *conf,
    dsa_err_t *err)
{
    dsa_backend_t  *b;

    b = dsa_backend_open(kind, conf, err);
    b->start = failing_start;

    return b;
}


static void
test_reported(void **state)
{
    dsa_err_t       err;
    dsa_backend_t  *b;

    prepare();
    hosts.follower[0].open = failing_open;
    hosts_start(&hosts);

    b = hosts_lead(&hosts, MODEL, 0, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);

    assert_int_equal(step(b, &err), DSA_ERROR);
    has(&err, hosts.follower[0].address);
    has(&err, ": GPU 5: an uncorrectable error of its memory");

    b->close(b);
    assert_int_equal(follower_ended(&hosts.follower[0]), 3);
}


static void
test_junk(void **state)
{
    size_t  i;

    static const struct {
        int         (*serve)(dsa_hosts_wire_t *w);
        const char   *why;
    } cases[] = {
        { junk_result, "has sent RESULT 0 of 4 bytes; expected READY 0 of " },
        { junk_short, "has sent READY 0 of 4 bytes" },
        { junk_ready, "has other weights: their fingerprint is ????" },
        { junk_type, "has sent an unknown message 0 of 0 bytes" },
        { junk_fault, "out of??[31mluck" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        prepare();
        hosts.follower[0].serve = cases[i].serve;
        cannot_lead(cases[i].why);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_dies),
        cmocka_unit_test(test_hangs),
        cmocka_unit_test(test_slow),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_leader),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_reported),
        cmocka_unit_test(test_junk)
    };

    dsa_log_level(getenv("DSA_T_LOG") != NULL ? DSA_LOG_DEBUG : DSA_LOG_ERR);
    (void) signal(SIGPIPE, SIG_IGN);

    return cmocka_run_group_tests(tests, NULL, NULL);
}
