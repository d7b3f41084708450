
/*
 * Copyright (C) The nginx-dsa authors
 */


#define MOVES_GPU(rank)     (rank)


#include "engine/checkpoint/safetensors.h"
#include "t/unit/moves.h"


/* Moves of pages on the CPU and on the null backend. */


static void
test_cpu(void **state)
{
    uint32_t  i;
    setup_t   s;

    const setup_t  setups[] = {
        { DSA_BACKEND_CPU, GOLDEN "a-fp8", DSA_EXACT, one },
        { DSA_BACKEND_CPU, GOLDEN "a-fp8", DSA_SERVED, one },
        { DSA_BACKEND_CPU, GOLDEN "a-fp8", DSA_EXACT, data2 },
        { DSA_BACKEND_CPU, GOLDEN "a-fp8", DSA_SERVED, data2 },
        { DSA_BACKEND_CPU, GOLDEN "glm-5.2", DSA_SERVED, one },
        { DSA_BACKEND_CPU, GOLDEN "glm-5.2", DSA_SERVED, data2 },
        { DSA_BACKEND_CPU, GOLDEN "glm-4.7-flash", DSA_EXACT, one },
        { DSA_BACKEND_CPU, GOLDEN "glm-4.7-flash", DSA_SERVED, data2 },
        { DSA_BACKEND_CPU, GOLDEN "v3", DSA_EXACT, data2 },
        { DSA_BACKEND_CPU, GOLDEN "v3", DSA_SERVED, one },
        { DSA_BACKEND_CPU, GOLDEN "joyai", DSA_EXACT, one },
        { DSA_BACKEND_CPU, GOLDEN "joyai", DSA_SERVED, data2 },
        { DSA_BACKEND_CPU, GOLDEN "moonlight", DSA_EXACT, data2 },
        { DSA_BACKEND_CPU, GOLDEN "moonlight", DSA_SERVED, one },
        { DSA_BACKEND_CPU, wide, DSA_EXACT, tensor2 },
        { DSA_BACKEND_CPU, wide, DSA_SERVED, tensor2 },
        { DSA_BACKEND_CPU, wide_dense, DSA_EXACT, tensor2 },
        { DSA_BACKEND_CPU, wide_dense, DSA_SERVED, tensor2 }
    };

    for (i = 0; i < sizeof(setups) / sizeof(setups[0]); i++) {
        s = setups[i];
        check_moves(&s);
    }
}


static void
test_null(void **state)
{
    const setup_t  data = { DSA_BACKEND_NULL, DEMO, DSA_SERVED, data2 };
    const setup_t  tensor = { DSA_BACKEND_NULL, DEMO, DSA_SERVED, tensor2 };

    check_moves(&data);
    check_moves(&tensor);
}


/* The bytes of a page: 64 tokens of 3 layers, latents and index keys. */

static void
test_page_bytes(void **state)
{
    dsa_backend_t  *b;

    const setup_t  served = { DSA_BACKEND_CPU, GOLDEN "a-fp8", DSA_SERVED,
                              data2 };
    const setup_t  exact = { DSA_BACKEND_CPU, GOLDEN "a-fp8", DSA_EXACT, one };

    b = backend_open(&served, 0);
    assert_int_equal(b->page_bytes, 64 * 3 * (656 + 132));
    assert_int_equal(b->node[0], -1);
    assert_int_equal(b->node[1], -1);
    b->close(b);

    b = backend_open(&exact, 0);
    assert_int_equal(b->page_bytes, 64 * 3 * (512 + 64 + 128) * 4);
    b->close(b);
}


/* Host memory may have many parts, but not any number. */

static void
check_pins(const setup_t *s)
{
    uint8_t         memory[16];
    uint32_t        i;
    dsa_err_t       err;
    dsa_backend_t  *b;

    b = backend_open(s, 0);

    for (i = 0; i < DSA_PIN_REGIONS; i++) {
        must(b->pin(b, memory, sizeof(memory), &err), &err);
    }

    assert_int_equal(b->pin(b, memory, sizeof(memory), &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "16 regions"));

    b->close(b);
}


static void
test_limits(void **state)
{
    const setup_t  cpu = { DSA_BACKEND_CPU, GOLDEN "a-fp8", DSA_SERVED, data2 };
    const setup_t  null = { DSA_BACKEND_NULL, DEMO, DSA_SERVED, data2 };

    check_limits(&cpu);
    check_limits(&null);
    check_pins(&cpu);
    check_pins(&null);
}


/*
 * Answers of the null backend: the prompt again.  Wrong, foreign and unfinished
 * pages are errors.
 */

static void
test_null_faults(void **state)
{
    uint32_t         i;
    uint8_t         *host;
    dsa_err_t        err;
    dsa_sample_t     sample[ANSWER];
    dsa_backend_t   *b;
    dsa_batch_seq_t  seq;

    static const uint32_t  pages[] = { 3, 1, 6 };
    static const uint32_t  order[] = { 1, 3 };
    static const setup_t   s = { DSA_BACKEND_NULL, DEMO, DSA_SERVED,
                                 { 1, DSA_ATTENTION_DATA } };

    b = backend_open(&s, 0);
    host = host_open(b);
    make_prompt(71);

    /* the last token of a page is missing */

    compute(b, 0, pages, 0, DSA_PAGE_TOKENS - 1, NULL);
    move_fails(b, DSA_MOVE_OUT, 0, 3, host, "its last token");
    compute(b, 0, pages, DSA_PAGE_TOKENS - 1, DSA_PAGE_TOKENS + 1, NULL);
    move2(b, DSA_MOVE_OUT, 0, pages, host);

    answer(b, 0, pages, sample);

    for (i = 0; i < ANSWER; i++) {
        assert_int_equal(sample[i].token, prompt[i]);
    }

    /* host memory that was never written, and one changed byte */

    move_fails(b, DSA_MOVE_IN, 0, 3, host + 3 * b->page_bytes,
               "holds no page");

    for (i = 0; i < b->page_bytes; i++) {
        host[i] ^= 1;
        move_fails(b, DSA_MOVE_IN, 0, 3, host, "holds no page");
        host[i] ^= 1;
    }

    /* pages in the wrong order, and those of another prompt */

    memset(&seq, 0, sizeof(seq));
    seq.tokens = prompt;
    seq.start = FULL * DSA_PAGE_TOKENS;
    seq.n_input = 1;
    seq.input_from = DSA_INPUT_KNOWN;
    seq.n_prompt = PROMPT;
    seq.pages = pages;

    move2(b, DSA_MOVE_IN, 0, order, host);
    assert_int_equal(b->start(b, &seq, 1, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "page 3 of rank 0 came from host memory "
                           "with other tokens than those of the sequence from "
                           "position 0 on"));

    move2(b, DSA_MOVE_IN, 0, pages, host);
    prompt[DSA_PAGE_TOKENS - 1]++;
    assert_int_equal(b->start(b, &seq, 1, &err), DSA_ERROR);
    prompt[DSA_PAGE_TOKENS - 1]--;
    prompt[DSA_PAGE_TOKENS]++;
    assert_int_equal(b->start(b, &seq, 1, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "position 64 on"));
    prompt[DSA_PAGE_TOKENS]--;
    must(b->start(b, &seq, 1, &err), &err);
    must(b->wait(b, &err), &err);

    b->close(b);
    free(host);
}


/* Flips a bit in the last byte of a tensor of an expert. */

static void
change_expert(const char *dir)
{
    char                    path[256];
    FILE                   *f;
    uint64_t                size;
    dsa_st_t               *st;
    dsa_err_t               err;
    const dsa_st_tensor_t  *t;
    int                     byte;
    long                    offset;

    (void) snprintf(path, sizeof(path), "%s/model.safetensors", dir);
    st = dsa_st_open(path, &err);
    must(st != NULL ? DSA_OK : DSA_ERROR, &err);

    t = dsa_st_find(st, dsa_strz("model.layers.2.mlp.experts.3.up_proj"
                                 ".weight"));
    assert_non_null(t);
    offset = (const uint8_t *) t->data - dsa_st_image(st, &size)
             + (long) t->size - 1;
    dsa_st_close(st);

    f = fopen(path, "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, offset, SEEK_SET), 0);
    byte = fgetc(f);
    assert_int_equal(fseek(f, offset, SEEK_SET), 0);
    assert_int_not_equal(fputc(byte ^ 1, f), EOF);
    assert_int_equal(fclose(f), 0);
}


/*
 * With persistent set, any changed byte of the weights is another fingerprint.
 * Without, a byte of an expert is not covered.
 */

static void
test_fingerprint(void **state)
{
    char            first[2][36];
    uint32_t        i;
    dsa_backend_t  *b;

    const setup_t  cpu = { DSA_BACKEND_CPU, wide, DSA_SERVED, one };
    const setup_t  exact = { DSA_BACKEND_CPU, wide, DSA_EXACT, one };
    const setup_t  null = { DSA_BACKEND_NULL, DEMO, DSA_SERVED, one };

    for (i = 0; i < 2; i++) {
        b = backend_open(&cpu, i);
        assert_int_equal(b->sampled, !i);
        assert_int_equal(strlen(b->fingerprint), 32);
        (void) strcpy(first[i], b->fingerprint);
        b->close(b);

        b = backend_open(&exact, i);
        assert_string_not_equal(b->fingerprint, first[i]);
        b->close(b);

        b = backend_open(&null, i);
        assert_int_equal(b->sampled, 0);
        b->close(b);
    }

    assert_string_not_equal(first[0], first[1]);
    change_expert(wide);

    b = backend_open(&cpu, 0);
    assert_string_equal(b->fingerprint, first[0]);
    b->close(b);

    b = backend_open(&cpu, 1);
    assert_string_not_equal(b->fingerprint, first[1]);
    b->close(b);

    change_expert(wide);
    b = backend_open(&cpu, 1);
    assert_string_equal(b->fingerprint, first[1]);
    b->close(b);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_page_bytes),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_null_faults),
        cmocka_unit_test(test_fingerprint)
    };

    return cmocka_run_group_tests(tests, both_make, both_remove);
}
