
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "t/fuzz/fuzz_hosts.c"
#include "t/unit/hosts_corpus.h"


/*
 * The messages between hosts: what a step and a result must not have, and the
 * fuzz target on its corpus.
 */

#define CORPUS  "t/fuzz/corpus/hosts/"
#define AT(field)  offsetof(entry_t, field)


/* An entry as engine/hosts/step.c writes it. */

typedef struct {
    uint32_t            rank;
    uint32_t            start;
    uint32_t            n_input;
    uint32_t            n_prompt;
    uint32_t            input_from;
    uint32_t            first;
    uint32_t            n_tokens;
    uint32_t            sampled;
    uint32_t            n_bias;
    uint32_t            masked;
} entry_t;


static void
test_corpus(void **state)
{
    corpus_run(CORPUS, 1);
}


/* A step with the entries of the corpus: rank 0, and two of rank 1. */

static void
step_make(dsa_buf_t *out)
{
    uint32_t          i, tokens[22], mask[3];
    dsa_err_t         err;
    dsa_bias_t        bias;
    dsa_sampling_t    sampling;
    dsa_batch_seq_t   seq[3];

    static const uint32_t  pages[] = { 1, 2 };

    memset(out, 0, sizeof(dsa_buf_t));
    memset(seq, 0, sizeof(seq));
    memset(&sampling, 0, sizeof(sampling));

    for (i = 0; i < 22; i++) {
        tokens[i] = i;
    }

    mask[0] = 1;
    mask[1] = 0;
    mask[2] = 0;
    bias.id = 5;
    bias.bias = 1;
    sampling.top_p = 1;
    sampling.presence_penalty = 1;

    for (i = 0; i < 3; i++) {
        seq[i].tokens = tokens;
        seq[i].start = 20;
        seq[i].n_input = 2;
        seq[i].n_prompt = 15;
        seq[i].input_from = DSA_INPUT_KNOWN;
        seq[i].rank = i != 0;
        seq[i].pages = pages;
        seq[i].sampling = i == 1 ? &sampling : NULL;
        seq[i].biases.bias = &bias;
        seq[i].biases.n = 1;
        seq[i].mask = mask;
    }

    assert_int_equal(dsa_hosts_step_write(out, &limits, seq, 3, &err),
                     DSA_OK);
}


/* Reads a step in which a word has another value; err.text is "" if it can. */

static void
step_changed(size_t at, uint32_t value, dsa_err_t *err)
{
    int               rc;
    dsa_buf_t         text;
    dsa_hosts_step_t  s;

    step_make(&text);
    assert_int_equal(dsa_hosts_step_open(&s, &limits, err), DSA_OK);

    if (at != SIZE_MAX) {
        assert_true(at + sizeof(value) <= text.len);
        memcpy(text.data + at, &value, sizeof(value));
    }

    s.text = text.data;
    rc = dsa_hosts_step_read(&s, text.len, NULL, &limits, err);

    if (rc == DSA_OK) {
        err->text[0] = '\0';
    }

    dsa_hosts_step_close(&s);
}


static void
test_steps(void **state)
{
    size_t     i, first, second, arrays;
    dsa_err_t  err;

    first = sizeof(uint32_t);           /* entry 0, then entry 1 */
    second = first + sizeof(entry_t);
    arrays = second + sizeof(entry_t);  /* of entry 1 */

    const struct {
        size_t       at;
        uint32_t     value;
        const char  *why;
    } cases[] = {
        { 0, 0, "a step has 0 entries; expected 1 to 6" },
        { 0, 7, "a step has 7 entries; expected 1 to 6" },
        { 0, 2, "bytes behind its 2 entries" },
        { first + AT(rank), 2, "on rank 2; expected a rank below 2" },
        { first + AT(n_input), 0, "entry 0 of a step has 0 tokens" },
        { first + AT(start), 255, "positions below 256" },
        { first + AT(n_prompt), 0, "a prompt of 0" },
        { first + AT(n_tokens), 5, "and only on this host" },
        { second + AT(n_tokens), 0, "entry 1 of a step on rank 1 has tokens" },
        { second + AT(first), 16, "entry 1 of a step on rank 1 has tokens" },
        { second + AT(input_from), 0, "entry 1 of a step" },
        { second + AT(n_bias), 1025, "entry 1 of a step has" },
        { second + AT(sampled), 2, "entry 1 of a step has" },
        { arrays + offsetof(dsa_sampling_t, top_p), 0, "out of range" },
        { arrays + offsetof(dsa_sampling_t, temperature), 0x7fc00000,
          "out of range" },
        { arrays + offsetof(dsa_sampling_t, top_logprobs), 21,
          "out of range" },
        { arrays + sizeof(dsa_sampling_t), 96, "out of range" },
        { arrays + sizeof(dsa_sampling_t) + sizeof(dsa_bias_t), 96,
          "tokens below 96 and pages below 8" },
        { arrays + sizeof(dsa_sampling_t) + sizeof(dsa_bias_t) + 28, 8,
          "tokens below 96 and pages below 8" },
        { arrays + sizeof(dsa_sampling_t) + sizeof(dsa_bias_t) + 32, 0,
          "out of range" }
    };

    step_changed(SIZE_MAX, 0, &err);
    assert_string_equal(err.text, "");

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        step_changed(cases[i].at, cases[i].value, &err);

        if (strstr(err.text, cases[i].why) == NULL) {
            fail_msg("case %zu: \"%s\" does not contain \"%s\"", i, err.text,
                     cases[i].why);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_corpus),
        cmocka_unit_test(test_steps)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
