
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The messages between the hosts of a replica.  The first byte of the input
 * chooses the reader, the rest are its messages:
 *
 *     0    two steps of a follower, half of the bytes each; what is accepted is
 *          read as a backend reads it, and written and read again
 *     1    the samples of a follower, for three outputs
 *     2    a plan
 *     3    what a follower has opened
 *     4    the answers to a leader that connects: none without the secret
 */


#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/hosts/hello.h"
#include "engine/hosts/plan.h"
#include "engine/hosts/step.h"


static const dsa_hosts_limits_t  limits = {
    .hosts = 2,
    .host = 1,
    .gpus = 1,
    .context = 256,
    .max_tokens = 200,
    .max_seqs = 3,
    .vocab = 96,
    .pages = 8
};


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
must(int ok)
{
    if (!ok) {
        abort();
    }
}


/* Reads what a backend reads of an entry of this host. */

static void
read_entry(const dsa_batch_seq_t *s)
{
    int       bits;
    uint32_t  i, end, from;

    must(s->sample != NULL && s->pages != NULL && s->tokens != NULL);

    end = s->start + s->n_input;
    must(end > s->start && end <= limits.context);
    must(s->n_pages == (end + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS);

    for (i = 0; i < s->n_pages; i++) {
        must(s->pages[i] < limits.pages);
    }

    end = s->input_from == DSA_INPUT_KNOWN ? end : s->start;
    from = s->start;

    if (s->sampling != NULL && dsa_sampling_penalizes(s->sampling)) {
        from = s->n_prompt < from ? s->n_prompt : from;
    }

    for (i = from; i < end; i++) {
        must(s->tokens[i] < limits.vocab);
    }

    if (s->sampling == NULL) {
        must(s->mask == NULL && s->biases.n == 0);
        return;
    }

    must(isfinite(s->sampling->temperature) && s->sampling->temperature >= 0);
    must(s->sampling->top_p > 0 && s->sampling->top_p <= 1);
    must(s->sampling->top_logprobs <= DSA_SAMPLE_MAX_TOP);

    for (i = 0; i < s->biases.n; i++) {
        must(s->biases.bias[i].id < limits.vocab
             && fabsf(s->biases.bias[i].bias) <= DSA_SAMPLE_FORCE);
    }

    for (i = 0, bits = 0; s->mask != NULL && i < dsa_mask_words(limits.vocab);
         i++)
    {
        bits |= s->mask[i] != 0;
    }

    must(s->mask == NULL || bits);
}


static void
same_entry(const dsa_batch_seq_t *a, const dsa_batch_seq_t *b)
{
    must(a->rank == b->rank && a->start == b->start && a->n_input == b->n_input
         && a->n_prompt == b->n_prompt && a->input_from == b->input_from
         && a->n_pages == b->n_pages && a->biases.n == b->biases.n
         && (a->sampling == NULL) == (b->sampling == NULL)
         && (a->mask == NULL) == (b->mask == NULL));

    if (a->n_pages != 0) {
        must(memcmp(a->pages, b->pages, a->n_pages * sizeof(uint32_t)) == 0);
    }
}


/* Reads a step; returns 1 if it was accepted. */

static int
check_step(dsa_hosts_step_t *s, const dsa_hosts_step_t *before,
    const uint8_t *data, size_t size)
{
    uint32_t          i;
    dsa_buf_t         out;
    dsa_err_t         err;
    dsa_hosts_step_t  again;

    must(dsa_hosts_step_open(s, &limits, &err) == DSA_OK);
    s->text = malloc(size + 1);
    must(s->text != NULL);
    memcpy(s->text, data, size);

    if (dsa_hosts_step_read(s, size, before, &limits, &err) != DSA_OK) {
        return 0;
    }

    must(s->n >= 1 && s->n <= dsa_hosts_step_most(&limits));

    for (i = 0; i < s->n; i++) {
        must(s->seq[i].rank < 2);

        if (s->seq[i].rank == limits.host) {
            read_entry(&s->seq[i]);

        } else {
            must(s->seq[i].sampling == NULL && s->seq[i].sample == NULL);
        }
    }

    memset(&out, 0, sizeof(out));
    must(dsa_hosts_step_write(&out, &limits, s->seq, s->n, &err) == DSA_OK);
    must(out.len <= dsa_hosts_step_bytes(&limits));

    must(dsa_hosts_step_open(&again, &limits, &err) == DSA_OK);
    again.text = out.data;
    must(dsa_hosts_step_read(&again, out.len, before, &limits, &err)
         == DSA_OK);

    for (i = 0; i < s->n; i++) {
        same_entry(&s->seq[i], &again.seq[i]);
    }

    dsa_hosts_step_close(&again);

    return 1;
}


static void
check_steps(const uint8_t *data, size_t size)
{
    int               first;
    dsa_hosts_step_t  one, two;

    first = check_step(&one, NULL, data, size / 2);
    (void) check_step(&two, first ? &one : NULL, data + size / 2,
                      size - size / 2);

    dsa_hosts_step_close(&one);
    dsa_hosts_step_close(&two);
}


static void
check_result(const uint8_t *data, size_t size)
{
    uint32_t      i, j;
    dsa_err_t     err;
    dsa_sample_t  sample[3];

    const dsa_hosts_slot_t  slot[] = {
        { &sample[0], 1, 0 }, { &sample[1], 0, 20 }, { &sample[2], 1, 20 }
    };

    memset(sample, 0, sizeof(sample));

    if (dsa_hosts_result_read(slot, 3, (const char *) data, size, &limits,
                              "host", &err) != DSA_OK)
    {
        return;
    }

    for (i = 0; i < 3; i += 2) {
        must(sample[i].token < limits.vocab && sample[i].n_top <= slot[i].most);

        for (j = 0; j < sample[i].n_top; j++) {
            must(sample[i].top[j] < limits.vocab);
        }
    }
}


static void
check_plan(const uint8_t *data, size_t size)
{
    dsa_err_t           err;
    dsa_hosts_plan_t    plan;
    dsa_backend_conf_t  conf;

    if (size < sizeof(plan)) {
        return;
    }

    memcpy(&plan, data, sizeof(plan));
    memset(&conf, 0, sizeof(conf));
    conf.gpus = 1;

    if (dsa_hosts_plan_apply(&conf, DSA_BACKEND_CPU, &plan, &err) == DSA_OK) {
        must(conf.hosts.n >= 2 && conf.hosts.n <= DSA_MAX_GPUS
             && conf.hosts.host >= 1 && conf.hosts.host < conf.hosts.n
             && conf.max_tokens != 0 && conf.max_seqs != 0
             && conf.drafts == 0 && conf.gpus * conf.hosts.n <= DSA_MAX_GPUS);
    }
}


static void
check_ready(const uint8_t *data, size_t size)
{
    size_t             i;
    dsa_err_t          err;
    dsa_backend_t     *b;
    dsa_hosts_ready_t  ready;

    b = calloc(1, sizeof(dsa_backend_t));

    if (size >= sizeof(ready) && b != NULL) {
        memcpy(&ready, data, sizeof(ready));
        memset(b->fingerprint, 'a', 32);
        b->pages = 5;
        b->page_bytes = 7;

        if (dsa_hosts_ready_check(b, &ready, 2, data[0] & 1, "host", &err)
            == DSA_OK)
        {
            must(b->pages >= 1 && b->pages <= 5 && ready.page_bytes == 7);

        } else {
            for (i = 0; err.text[i] != '\0'; i++) {
                must(err.text[i] >= ' ' && err.text[i] <= '~');
            }
        }
    }

    free(b);
}


static void
check_hello(const uint8_t *data, size_t size)
{
    int                 fds[2];
    dsa_err_t           err;
    dsa_hosts_wire_t    w;
    dsa_hosts_secret_t  secret = { "0123456789abcdef0123456789abcdef", 32 };

    must(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    must(send(fds[1], data, size, 0) == (ssize_t) size);
    must(shutdown(fds[1], SHUT_WR) == 0);

    memset(&w, 0, sizeof(w));
    w.fd = fds[0];
    dsa_hosts_wire_limit(&w, 5000);

    must(dsa_hosts_hello_leader(&w, &secret, &err) != DSA_OK);

    (void) close(fds[0]);
    (void) close(fds[1]);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const check[])(const uint8_t *data, size_t size) = {
        check_steps, check_result, check_plan, check_ready, check_hello
    };

    if (size >= 1 && size <= 16384 && data[0] < 5) {
        check[data[0]](data + 1, size - 1);
    }

    return 0;
}
