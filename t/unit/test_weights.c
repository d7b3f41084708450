
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Opening checkpoints in the published layout: those of t/data/golden, and
 * copies of them with one error each.
 */


#include "t/unit/weights.h"


static void
add(model_t *m, const char *name)
{
    dsa_st_tensor_t  *t;

    static const float  one = 1;

    assert_true(m->n < MAX_TENSORS);

    t = &m->t[m->n++];

    memset(t, 0, sizeof(dsa_st_tensor_t));
    t->name = dsa_strz(name);
    t->dtype = dsa_strz("F32");
    t->n_dims = 1;
    t->shape[0] = 1;
    t->size = 4;
    t->data = &one;
}


/* The first and last four bytes are known from a dump of the files. */

static void
check(const dsa_tensor_t *t, dsa_dtype_e dtype, uint32_t rows, uint32_t cols,
    uint32_t first, uint32_t last)
{
    size_t      size;
    uint32_t    v;
    const char *p;

    assert_int_equal(t->dtype, dtype);
    assert_int_equal(t->rows, rows);
    assert_int_equal(t->cols, cols);
    assert_int_equal(t->scale != NULL, dtype == DSA_E4M3);

    p = t->data;
    size = (size_t) rows * cols
           * (dtype == DSA_F32 ? 4 : dtype == DSA_BF16 ? 2 : 1);

    memcpy(&v, p, 4);
    assert_int_equal(v, __builtin_bswap32(first));
    memcpy(&v, p + size - 4, 4);
    assert_int_equal(v, __builtin_bswap32(last));
}


static void
test_golden(void **state)
{
    dsa_err_t       err;
    dsa_layer_t    *l;
    dsa_weights_t  *w;

    w = dsa_weights_open(A_FP8, &err);
    if (w == NULL) {
        fail_msg("%s", err.text);
    }

    assert_int_equal(w->config.num_hidden_layers, 3);
    assert_int_equal(w->config.index_topk, 64);
    assert_int_equal(strspn(w->sampled_fingerprint, "0123456789abcdef"), 32);
    assert_int_equal(strlen(w->sampled_fingerprint), 32);

    assert_int_equal(w->layer[0].moe, 0);
    assert_int_equal(w->layer[1].moe, 1);
    assert_int_equal(w->layer[2].moe, 1);

    assert_null(w->layer[0].router.data);
    assert_null(w->layer[0].shared.gate.data);
    assert_null(w->layer[0].expert);
    assert_null(w->layer[1].mlp.gate.data);

    check(&w->head, DSA_BF16, 1024, 256, 0xaebd533e, 0x2bbe31bc);
    check(&w->norm, DSA_F32, 1, 256, 0xd816703f, 0xc92a773f);

    l = &w->layer[0];
    check(&l->mlp.up, DSA_E4M3, 512, 256, 0x68ef64e9, 0xecf2dce2);

    l = &w->layer[1];
    check(&l->router_bias, DSA_F32, 1, 16, 0x9a0be33b, 0x7384353d);
    check(&l->index_wq_b, DSA_E4M3, 1024, 128, 0x2864e4df, 0x685cd7b4);

    l = &w->layer[2];
    check(&l->expert[15].down, DSA_E4M3, 256, 128, 0xecebeeee, 0x6cf07366);

    /* 0x3a000000 is 2^-11, 0x3a800000 is 2^-10 */

    assert_true(l->expert[15].down.scale[0] == 0x1p-11f);
    assert_true(l->expert[15].down.scale[1] == 0x1p-11f);
    assert_true(w->layer[0].kv_a_proj_with_mqa.scale[9] == 0x1p-10f);

    dsa_weights_close(w);

    w = dsa_weights_open(B_BF16, &err);
    if (w == NULL) {
        fail_msg("%s", err.text);
    }

    check(&w->embed, DSA_BF16, 512, 192, 0x403ec9bd, 0x16be413f);
    check(&w->layer[0].o_proj, DSA_BF16, 192, 512, 0x9cbcf9bc, 0x41bd60bc);

    l = &w->layer[1];
    check(&l->expert[7].gate, DSA_BF16, 96, 192, 0xec3d0b3c, 0x42bbbdbd);
    check(&l->shared.down, DSA_BF16, 192, 96, 0x42bc6b3d, 0x00bd94bd);
    check(&l->index_k_norm_bias, DSA_F32, 1, 128, 0xe272f13d, 0x2863c9bd);

    dsa_weights_close(w);
    dsa_weights_close(NULL);
}


typedef enum {
    DROP,
    RENAME,         /* to arg */
    TRANSPOSE,      /* a vector becomes a matrix of one row */
    DTYPE,          /* arg, of the same size */
    SCALE           /* the last value is arg */
} change_e;


#define q0      "model.layers.0.self_attn.q_a_proj.weight"
#define e1      "model.layers.1.mlp.experts."
#define ANY3    " (and 3 more tensors are missing, invalid or unknown)"
#define ANY2    " (and 2 more tensors are missing, invalid or unknown)"
#define ANY1    " (and 1 more tensor is missing, invalid or unknown)"
#define UNKNOWN " is unknown; expected those of the model that "              \
                "config.json describes"


static void
test_one_broken(void **state)
{
    float             scale[16];
    size_t            i, last;
    uint64_t          swap;
    model_t           m;
    dsa_st_tensor_t  *x;

    static const struct {
        const char  *model;
        const char  *name;
        change_e     change;
        const char  *arg;
        const char  *error;
    } t[] = {
        { B_BF16, "lm_head.weight", DROP, NULL,
          ": tensor \"lm_head.weight\" is missing" },
        { B_BF16, q0, DROP, NULL, ": tensor \"" q0 "\" is missing" },
        { B_BF16, e1 "7.down_proj.weight", DROP, NULL,
          ": tensor \"" e1 "7.down_proj.weight\" is missing" },
        { B_BF16, "model.layers.1.mlp.gate.e_score_correction_bias", DROP,
          NULL, ": tensor \"model.layers.1.mlp.gate.e_score_correction_bias\""
          " is missing" },
        { B_BF16, e1 "7.down_proj.weight", RENAME, e1 "8.down_proj.weight",
          ": tensor \"" e1 "7.down_proj.weight\" is missing" ANY1 },
        { B_BF16, q0, TRANSPOSE, NULL, ": tensor \"" q0 "\" is BF16 "
          "[192, 96]; expected F32 or BF16 [96, 192]" },
        { B_BF16, "model.norm.weight", TRANSPOSE, NULL,
          ": tensor \"model.norm.weight\" is F32 [1, 192]; expected F32 or "
          "BF16 [192]" },
        { B_BF16, "model.norm.weight", DTYPE, "I32",
          ": tensor \"model.norm.weight\" is I32 [192]; expected F32 or BF16 "
          "[192]" },
        { B_BF16, q0, DTYPE, "F16", ": tensor \"" q0 "\" is F16 [96, 192]; "
          "expected F32 or BF16 [96, 192]" },
        { A_FP8, q0, DTYPE, "F8_E5M2", ": tensor \"" q0 "\" is F8_E5M2 "
          "[128, 256]; expected F32, BF16 or F8_E4M3 [128, 256]" },
        { A_FP8, "lm_head.weight", TRANSPOSE, NULL,
          ": tensor \"lm_head.weight\" is BF16 [256, 1024]; expected F32 "
          "or BF16 [1024, 256]" },
        { A_FP8, q0, DROP, NULL, ": tensor \"" q0 "\" is missing" },
        { A_FP8, q0 "_scale_inv", DROP, NULL,
          ": tensor \"" q0 "_scale_inv\" is missing" },
        { A_FP8, q0 "_scale_inv", TRANSPOSE, NULL,
          ": tensor \"" q0 "_scale_inv\" is F32 [2, 1]; expected F32 "
          "[1, 2]" },
        { A_FP8, q0 "_scale_inv", DTYPE, "I32",
          ": tensor \"" q0 "_scale_inv\" is I32 [1, 2]; expected F32 "
          "[1, 2]" },
        { A_FP8, "model.layers.0.self_attn.kv_a_proj_with_mqa.weight_scale_"
          "inv", SCALE, "0", ": tensor \"model.layers.0.self_attn.kv_a_proj_"
          "with_mqa.weight_scale_inv\" has the scale 0 at block [4, 1]; "
          "expected a finite number above 0" },
        { A_FP8, q0 "_scale_inv", SCALE, "-1",
          ": tensor \"" q0 "_scale_inv\" has the scale -1 at block [0, 1]; "
          "expected a finite number above 0" },
        { A_FP8, q0 "_scale_inv", SCALE, "inf",
          ": tensor \"" q0 "_scale_inv\" has the scale inf at block [0, 1]; "
          "expected a finite number above 0" },
        { A_FP8, q0 "_scale_inv", SCALE, "nan",
          ": tensor \"" q0 "_scale_inv\" has the scale nan at block [0, 1]; "
          "expected a finite number above 0" }
    };

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        load(&m, t[i].model);
        x = tensor(&m, t[i].name);

        switch (t[i].change) {

        case DROP:
            *x = m.t[--m.n];
            break;

        case RENAME:
            x->name = dsa_strz(t[i].arg);
            break;

        case TRANSPOSE:
            if (x->n_dims == 1) {
                x->n_dims = 2;
                x->shape[1] = 1;
            }

            swap = x->shape[0];
            x->shape[0] = x->shape[1];
            x->shape[1] = swap;
            break;

        case DTYPE:
            x->dtype = dsa_strz(t[i].arg);
            break;

        case SCALE:
            assert_in_range(x->size, 4, sizeof(scale));
            memcpy(scale, x->data, x->size);
            last = x->size / 4 - 1;
            scale[last] = strtof(t[i].arg, NULL);
            x->data = scale;
            break;
        }

        put_config(t[i].model, NULL, NULL);
        put_single(&m);
        unload(&m);
        rejected(t[i].error);
    }
}


/* Several errors at once; a config.json that contradicts the tensors. */

static void
test_many_broken(void **state)
{
    model_t  m;

    load(&m, B_BF16);
    *tensor(&m, e1 "3.up_proj.weight") = m.t[m.n - 1];
    m.n--;
    tensor(&m, "model.layers.0.self_attn.o_proj.weight")->shape[0] = 512;
    tensor(&m, "model.layers.0.self_attn.o_proj.weight")->shape[1] = 192;
    add(&m, "model.layers.0.self_attn.rotary_emb.inv_freq");
    add(&m, "zzz");
    put_config(B_BF16, NULL, NULL);
    put_single(&m);
    unload(&m);

    rejected(": tensor \"model.layers.0.self_attn.o_proj.weight\" is BF16 "
            "[512, 192]; expected F32 or BF16 [192, 512]" ANY3);

    load(&m, B_BF16);
    add(&m, "model.layers.0.self_attn.rotary_emb.inv_freq");
    add(&m, "zzz");
    add(&m, "");
    m.t[m.n - 1].name = dsa_strz("model.layers.2.enorm.weight");
    put_single(&m);
    unload(&m);

    rejected(": tensor \"model.layers.0.self_attn.rotary_emb.inv_freq\""
            UNKNOWN ANY2);

    /* a scale for a weight without scales */

    load(&m, B_BF16);
    add(&m, q0 "_scale_inv");
    put_single(&m);
    unload(&m);

    rejected(": tensor \"" q0 "_scale_inv\" is the scale of a weight of dtype "
            "BF16; expected none, because only F8_E4M3 has scales");

    load(&m, B_BF16);
    add(&m, "model.norm.weight_scale_inv");
    put_single(&m);
    unload(&m);

    rejected(": tensor \"model.norm.weight_scale_inv\"" UNKNOWN);

    /* config.json of a dense model, of fewer layers, without FP8 */

    load(&m, B_BF16);
    put_single(&m);
    unload(&m);

    put_config(B_BF16, "\"first_k_dense_replace\": 1",
               "\"first_k_dense_replace\": 2");
    rejected(": tensor \"model.layers.1.mlp.gate_proj.weight\" is missing (and "
            "31 more tensors are missing, invalid or unknown)");

    put_config(B_BF16, "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1");
    rejected(": tensor \"model.layers.1.input_layernorm.weight\"" UNKNOWN
            " (and 42 more tensors are missing, invalid or unknown)");

    load(&m, A_FP8);
    put_single(&m);
    unload(&m);

    put_config(A_FP8, "\"quantization_config\": {", "\"was\": {");
    rejected(": tensor \"" q0 "\" is F8_E4M3; expected F32 or BF16, "
            "because config.json has no quantization_config (and 125 more "
            "tensors are missing, invalid or unknown)");

    put_config(A_FP8, "\"index_topk\": 64", "\"index_topk\": 0");
    rejected("/config.json: \"index_topk\" is 0; expected an integer from 1 "
            "to 1048576");
}


/* BF16 where the published model has F32, and F32 where it has BF16. */

static void
test_dtypes(void **state)
{
    float             f32[192 * 96];
    model_t           m;
    uint16_t          bf16[192];
    dsa_err_t         err;
    dsa_weights_t    *w;
    dsa_st_tensor_t  *x;

    load(&m, B_BF16);

    memset(f32, 0, sizeof(f32));
    memset(bf16, 0, sizeof(bf16));

    x = tensor(&m, "model.norm.weight");
    x->dtype = dsa_strz("BF16");
    x->size = sizeof(bf16);
    x->data = bf16;

    x = tensor(&m, q0);
    x->dtype = dsa_strz("F32");
    x->size = sizeof(f32);
    x->data = f32;

    put_config(B_BF16, NULL, NULL);
    put_single(&m);
    unload(&m);

    w = dsa_weights_open(dir, &err);
    if (w == NULL) {
        fail_msg("%s", err.text);
    }

    assert_int_equal(w->norm.dtype, DSA_BF16);
    assert_int_equal(w->layer[0].q_a_proj.dtype, DSA_F32);
    assert_int_equal(w->layer[1].q_a_proj.dtype, DSA_BF16);

    dsa_weights_close(w);
}


/*
 * Without reading the data: the same tensors, but a wrong scale is not found.
 * Everything that the headers show is checked.
 */

static void
test_unread(void **state)
{
    float             scale[2] = { 1, 0 };
    model_t           m;
    dsa_err_t         err;
    dsa_weights_t    *w, *all;
    dsa_st_tensor_t  *x;

    all = dsa_weights_open(A_FP8, &err);
    assert_non_null(all);
    w = dsa_weights_open_unread(A_FP8, &err);
    assert_non_null(w);

    assert_string_equal(w->sampled_fingerprint, "");
    assert_memory_equal(w->config_hash, all->config_hash, 32);
    assert_memory_equal(&w->config, &all->config, sizeof(w->config));
    assert_int_equal(w->shards->n, 2);
    check(&w->head, DSA_BF16, 1024, 256, 0xaebd533e, 0x2bbe31bc);
    check(&w->layer[2].expert[15].down, DSA_E4M3, 256, 128, 0xecebeeee,
          0x6cf07366);

    dsa_weights_close(w);
    dsa_weights_close(all);

    load(&m, A_FP8);
    x = tensor(&m, q0 "_scale_inv");
    assert_int_equal(x->size, sizeof(scale));
    x->data = scale;
    put_config(A_FP8, NULL, NULL);
    put_single(&m);

    assert_null(dsa_weights_open(dir, &err));
    assert_non_null(strstr(err.text, "has the scale 0"));

    w = dsa_weights_open_unread(dir, &err);
    assert_non_null(w);
    dsa_weights_close(w);

    add(&m, "zzz");
    put_single(&m);
    unload(&m);

    assert_null(dsa_weights_open_unread(dir, &err));
    assert_non_null(strstr(err.text, "tensor \"zzz\" is unknown"));
}


/* A layer for multi-token prediction, as the published checkpoint has one. */

static void
test_mtp(void **state)
{
    char       names[64][96];
    model_t    m;
    uint32_t   i, n, added;

    static const char  *extras[] = {
        "model.layers.2.embed_tokens.weight", "model.layers.2.enorm.weight",
        "model.layers.2.hnorm.weight", "model.layers.2.eh_proj.weight",
        "model.layers.2.shared_head.norm.weight",
        "model.layers.2.shared_head.head.weight"
    };

    load(&m, B_BF16);
    n = m.n;
    added = 0;

    for (i = 0; i < n; i++) {
        if (m.t[i].name.len > 15
            && memcmp(m.t[i].name.data, "model.layers.1.", 15) == 0)
        {
            assert_true(added < 64);
            (void) snprintf(names[added], sizeof(names[0]),
                            "model.layers.2.%.*s",
                            (int) m.t[i].name.len - 15,
                            m.t[i].name.data + 15);

            m.t[m.n] = m.t[i];
            m.t[m.n++].name = dsa_strz(names[added++]);
        }
    }

    assert_int_equal(added, 43);

    for (i = 0; i < 6; i++) {
        add(&m, extras[i]);
    }

    put_single(&m);

    put_config(B_BF16, "\"num_nextn_predict_layers\": 0",
               "\"num_nextn_predict_layers\": 1");
    accepted(NULL);

    /* in the file, a layer's F32 norms come first */

    put_config(B_BF16, NULL, NULL);
    rejected(": tensor \"model.layers.2.input_layernorm.weight\"" UNKNOWN
            " (and 48 more tensors are missing, invalid or unknown)");

    add(&m, "model.layers.2.mlp.experts.8.up_proj.weight");
    put_single(&m);
    unload(&m);

    put_config(B_BF16, "\"num_nextn_predict_layers\": 0",
               "\"num_nextn_predict_layers\": 1");
    rejected(": tensor \"model.layers.2.mlp.experts.8.up_proj.weight\""
            UNKNOWN);

    /* a checkpoint from which the MTP layer was removed */

    load(&m, B_BF16);
    put_single(&m);
    unload(&m);
    accepted(NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test_setup_teardown(test_one_broken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_broken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dtypes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unread, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mtp, setup, teardown)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
