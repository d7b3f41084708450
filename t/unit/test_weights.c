
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Opening checkpoints in the published layout: those of t/data/golden, and
 * copies of them with one error each.
 */


#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/checkpoint/safetensors_write.h"
#include "engine/checkpoint/weights.h"


#define A_FP8       "t/data/golden/a-fp8"
#define B_BF16      "t/data/golden/b-bf16"

#define MAX_TENSORS 400


/* The tensors of a model; a test changes some and writes them to one file. */

typedef struct {
    dsa_st_t           *shard[2];
    dsa_st_tensor_t     t[MAX_TENSORS];
    uint32_t            n;
} model_t;


static char  dir[160];


static int
remove_one(const char *path, const struct stat *st, int type,
    struct FTW *ftw)
{
    return remove(path);
}


static int
setup(void **state)
{
    const char  *tmp;

    tmp = getenv("TMPDIR");

    (void) snprintf(dir, sizeof(dir), "%s/dsa-weights-XXXXXX",
                    tmp != NULL ? tmp : "/tmp");

    return mkdtemp(dir) != NULL ? 0 : -1;
}


static int
teardown(void **state)
{
    return nftw(dir, remove_one, 8, FTW_DEPTH|FTW_PHYS);
}


static char *
read_text(const char *from, const char *name)
{
    char     path[256], *text;
    FILE    *f;
    size_t   n;

    (void) snprintf(path, sizeof(path), "%s/%s", from, name);

    f = fopen(path, "r");
    assert_non_null(f);

    text = malloc(1 << 20);
    assert_non_null(text);

    n = fread(text, 1, (1 << 20) - 1, f);
    text[n] = '\0';

    assert_int_equal(fclose(f), 0);

    return text;
}


static void
write_file(const char *name, const void *data, size_t len)
{
    char   path[256];
    FILE  *f;

    (void) snprintf(path, sizeof(path), "%s/%s", dir, name);

    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}


static void
copy_file(const char *from, const char *name)
{
    char    *data, path[256];
    FILE    *f;
    size_t   n;

    (void) snprintf(path, sizeof(path), "%s/%s", from, name);

    f = fopen(path, "r");
    assert_non_null(f);

    data = malloc(8 << 20);
    assert_non_null(data);

    n = fread(data, 1, 8 << 20, f);
    assert_int_equal(fclose(f), 0);

    write_file(name, data, n);
    free(data);
}


/* Copies config.json of from, with find, unless it is NULL, replaced. */

static void
put_config(const char *from, const char *find, const char *replace)
{
    char  *text, *at, out[8192];
    int    n;

    text = read_text(from, "config.json");

    at = find != NULL ? strstr(text, find) : text;
    assert_non_null(at);

    n = snprintf(out, sizeof(out), "%.*s%s%s", (int) (at - text), text,
                 find != NULL ? replace : "",
                 at + (find != NULL ? strlen(find) : 0));
    assert_in_range(n, 1, sizeof(out) - 1);

    write_file("config.json", out, n);
    free(text);
}


static void
load(model_t *m, const char *from)
{
    char        path[256];
    uint32_t    i, j;
    dsa_err_t   err;

    m->n = 0;

    for (i = 0; i < 2; i++) {
        (void) snprintf(path, sizeof(path),
                        "%s/model-0000%u-of-00002.safetensors", from, i + 1);

        m->shard[i] = dsa_st_open(path, &err);
        assert_non_null(m->shard[i]);

        for (j = 0; j < dsa_st_count(m->shard[i]); j++) {
            assert_true(m->n < MAX_TENSORS);
            m->t[m->n++] = *dsa_st_at(m->shard[i], j);
        }
    }
}


static void
unload(model_t *m)
{
    dsa_st_close(m->shard[0]);
    dsa_st_close(m->shard[1]);
}


static void
put_single(const model_t *m)
{
    char       path[256];
    dsa_err_t  err;

    (void) snprintf(path, sizeof(path), "%s/model.safetensors", dir);
    assert_int_equal(dsa_st_write(path, m->t, m->n, &err), DSA_OK);
}


static dsa_st_tensor_t *
tensor(model_t *m, const char *name)
{
    uint32_t  i;

    for (i = 0; i < m->n; i++) {
        if (dsa_str_eqz(m->t[i].name, name)) {
            return &m->t[i];
        }
    }

    fail_msg("no tensor %s", name);

    return NULL;
}


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


/* Opening the directory fails with exactly this error after its name. */

static void
rejected(const char *error)
{
    dsa_err_t  err;

    memset(&err, 0, sizeof(dsa_err_t));

    assert_null(dsa_weights_open(dir, &err));
    assert_true(strncmp(err.text, dir, strlen(dir)) == 0);
    assert_string_equal(err.text + strlen(dir), error);
}


static void
accepted(char *fingerprint)
{
    dsa_err_t       err;
    dsa_weights_t  *w;

    w = dsa_weights_open(dir, &err);
    if (w == NULL) {
        fail_msg("%s", err.text);
    }

    if (fingerprint != NULL) {
        assert_int_equal(strlen(w->sampled_fingerprint), 32);
        (void) strcpy(fingerprint, w->sampled_fingerprint);
    }

    dsa_weights_close(w);
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


static void
put_index(const char *find, const char *replace)
{
    char  *text, *at, *out;

    text = read_text(B_BF16, "model.safetensors.index.json");

    at = strstr(text, find);
    assert_non_null(at);

    out = malloc(strlen(text) + strlen(replace) + 1);
    assert_non_null(out);

    (void) sprintf(out, "%.*s%s%s", (int) (at - text), text, replace,
                   at + strlen(find));

    write_file("model.safetensors.index.json", out, strlen(out));

    free(out);
    free(text);
}


#define INDEX   "model.safetensors.index.json"
#define HEAD    ": \"weight_map.lm_head.weight\" is "
#define NAME    "; expected the name of a file in this directory"
#define S1      "model-00001-of-00002.safetensors"
#define S2      "model-00002-of-00002.safetensors"


static void
test_shards(void **state)
{
    char       path[256], moved[256];
    model_t    m;
    dsa_err_t  err;

    rejected("/config.json: No such file or directory");

    put_config(B_BF16, NULL, NULL);
    rejected(": no weights; expected " INDEX " or model.safetensors");

    put_index("{", "{");
    rejected(": file \"" S1 "\" is missing, which " INDEX
             " names (and 1 more)");

    copy_file(B_BF16, S1);
    rejected(": file \"" S2 "\" is missing, which " INDEX " names");

    copy_file(B_BF16, S2);
    accepted(NULL);

    put_index("\"lm_head.weight\": \"" S2, "\"lm_head.weight\": \"" S1);
    rejected(": tensor \"lm_head.weight\" is not in file \"" S1 "\", which "
            INDEX " names for it");

    put_index("\"lm_head.weight\"", "\"tail.weight\"");
    rejected(": tensor \"tail.weight\" is not in file \"" S2 "\", which " INDEX
            " names for it");

    put_index("\"lm_head.weight\": \"" S2, "\"lm_head.weight\": \"../" S2);
    rejected("/" INDEX HEAD "\"../" S2 "\"" NAME);

    put_index("\"lm_head.weight\": \"" S2, "\"lm_head.weight\": \"was/" S2);
    rejected("/" INDEX HEAD "\"was/" S2 "\"" NAME);

    put_index("\"lm_head.weight\": \"" S2, "\"lm_head.weight\": \"..");
    rejected("/" INDEX HEAD "\"..\"" NAME);

    put_index("\"lm_head.weight\": \"" S2 "\"", "\"lm_head.weight\": 2");
    rejected("/" INDEX HEAD "2" NAME);

    put_index("\"weight_map\"", "\"map\"");
    rejected("/" INDEX ": \"weight_map\" is missing; expected an object of "
            "tensor names and file names");

    write_file(INDEX, "{\"weight_map\": {", 16);
    memset(&err, 0, sizeof(dsa_err_t));
    assert_null(dsa_weights_open(dir, &err));
    assert_non_null(strstr(err.text, "/" INDEX ": "));

    /* a tensor in two files */

    load(&m, B_BF16);
    m.t[0] = *tensor(&m, "lm_head.weight");
    (void) snprintf(path, sizeof(path), "%s/extra.safetensors", dir);
    assert_int_equal(dsa_st_write(path, m.t, 1, &err), DSA_OK);
    unload(&m);

    put_index("\"lm_head.weight\": \"" S2,
              "\"lm_head.weight\": \"extra.safetensors");
    rejected(": tensor \"lm_head.weight\" is in two files");

    /* a truncated file */

    put_index("{", "{");
    (void) snprintf(path, sizeof(path), "%s/" S2, dir);
    assert_int_equal(truncate(path, 1199263), 0);

    memset(&err, 0, sizeof(dsa_err_t));
    assert_null(dsa_weights_open(dir, &err));
    assert_string_equal(err.text + strlen(dir), "/" S2 ": truncated: tensor "
                        "\"model.layers.1.mlp.shared_experts.up_proj.weight\""
                        " ends at byte 1195808 of the data, but the file "
                        "has 1195807 bytes of it");

    assert_int_equal(truncate(path, 100), 0);
    rejected("/" S2 ": truncated: the header has 3448 bytes, but the file has "
            "100");

    (void) snprintf(moved, sizeof(moved), "%s/was", dir);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(mkdir(path, 0755), 0);
    rejected("/" S2 ": not a regular file");
}


static void
test_fingerprint(void **state)
{
    char              one[64], two[64];
    float             norm[192];
    model_t           m;
    uint16_t          gate[192 * 8];
    dsa_st_tensor_t  *x;

    load(&m, B_BF16);

    put_config(B_BF16, NULL, NULL);
    put_single(&m);
    accepted(one);
    accepted(two);
    assert_string_equal(one, two);

    put_config(B_BF16, "\"index_topk\": 32", "\"index_topk\": 33");
    accepted(two);
    assert_string_not_equal(one, two);

    /* the same headers with other weights */

    put_config(B_BF16, NULL, NULL);

    x = tensor(&m, "model.layers.1.input_layernorm.weight");
    memcpy(norm, x->data, sizeof(norm));
    norm[191] += 1;
    x->data = norm;
    put_single(&m);
    accepted(two);
    assert_string_not_equal(one, two);

    norm[191] -= 1;
    x = tensor(&m, "model.layers.1.mlp.gate.weight");
    assert_int_equal(x->size, sizeof(gate));
    memcpy(gate, x->data, sizeof(gate));
    gate[7] ^= 1;
    x->data = gate;
    put_single(&m);
    accepted(two);
    assert_string_not_equal(one, two);

    unload(&m);
}


/*
 * A checkpoint of as many tensors and files as the published one, 92,425 in
 * 163, with small matrices; their FP8 and BF16 data is a hole in each file.
 */

#define N_FILES     163


typedef struct {
    char        name[80];
    uint32_t    rows;           /* 0: a vector */
    uint32_t    cols;
    uint32_t    size;           /* of an element */
} big_t;


static uint32_t
big_add(big_t *b, uint32_t n, uint32_t rows, uint32_t cols, uint32_t size,
    const char *fmt, ...)
{
    va_list  args;

    b[n].rows = rows;
    b[n].cols = cols;
    b[n].size = size;

    va_start(args, fmt);
    (void) vsnprintf(b[n].name, sizeof(b[n].name), fmt, args);
    va_end(args);

    return n + 1;
}


static uint32_t
big_linear(big_t *b, uint32_t n, uint32_t rows, uint32_t cols,
    const char *prefix, const char *name)
{
    n = big_add(b, n, rows, cols, 1, "%s%s.weight", prefix, name);

    return big_add(b, n, (rows + 127) / 128, (cols + 127) / 128, 4,
                   "%s%s.weight_scale_inv", prefix, name);
}


static uint32_t
big_names(big_t *b)
{
    char      p[64];
    uint32_t  n, i, l;

    n = big_add(b, 0, 64, 128, 2, "model.embed_tokens.weight");
    n = big_add(b, n, 64, 128, 2, "lm_head.weight");
    n = big_add(b, n, 0, 128, 4, "model.norm.weight");

    for (l = 0; l < 62; l++) {
        (void) snprintf(p, sizeof(p), "model.layers.%u.", l);

        n = big_add(b, n, 0, 128, 4, "%sinput_layernorm.weight", p);
        n = big_add(b, n, 0, 128, 4, "%spost_attention_layernorm.weight", p);
        n = big_add(b, n, 0, 128, 4, "%sself_attn.q_a_layernorm.weight", p);
        n = big_add(b, n, 0, 64, 4, "%sself_attn.kv_a_layernorm.weight", p);
        n = big_add(b, n, 0, 64, 4, "%sself_attn.indexer.k_norm.weight", p);
        n = big_add(b, n, 0, 64, 4, "%sself_attn.indexer.k_norm.bias", p);
        n = big_add(b, n, 2, 128, 2,
                    "%sself_attn.indexer.weights_proj.weight", p);
        n = big_linear(b, n, 128, 128, p, "self_attn.q_a_proj");
        n = big_linear(b, n, 192, 128, p, "self_attn.q_b_proj");
        n = big_linear(b, n, 128, 128, p, "self_attn.kv_a_proj_with_mqa");
        n = big_linear(b, n, 192, 64, p, "self_attn.kv_b_proj");
        n = big_linear(b, n, 128, 64, p, "self_attn.o_proj");
        n = big_linear(b, n, 128, 128, p, "self_attn.indexer.wq_b");
        n = big_linear(b, n, 64, 128, p, "self_attn.indexer.wk");

        if (l < 3) {
            n = big_linear(b, n, 256, 128, p, "mlp.gate_proj");
            n = big_linear(b, n, 256, 128, p, "mlp.up_proj");
            n = big_linear(b, n, 128, 256, p, "mlp.down_proj");
            continue;
        }

        n = big_add(b, n, 256, 128, 2, "%smlp.gate.weight", p);
        n = big_add(b, n, 0, 256, 4, "%smlp.gate.e_score_correction_bias", p);

        for (i = 0; i < 257; i++) {
            (void) snprintf(p, sizeof(p), "model.layers.%u.mlp.experts.%u.",
                            l, i);

            if (i == 256) {
                (void) snprintf(p, sizeof(p),
                                "model.layers.%u.mlp.shared_experts.", l);
            }

            n = big_linear(b, n, 128, 128, p, "gate_proj");
            n = big_linear(b, n, 128, 128, p, "up_proj");
            n = big_linear(b, n, 128, 128, p, "down_proj");
        }
    }

    n = big_add(b, n, 0, 128, 4, "model.layers.61.enorm.weight");
    n = big_add(b, n, 0, 128, 4, "model.layers.61.hnorm.weight");
    n = big_add(b, n, 128, 256, 2, "model.layers.61.eh_proj.weight");
    n = big_add(b, n, 64, 128, 2, "model.layers.61.embed_tokens.weight");
    n = big_add(b, n, 0, 128, 4, "model.layers.61.shared_head.norm.weight");

    return big_add(b, n, 64, 128, 2,
                   "model.layers.61.shared_head.head.weight");
}


static void
big_file(const char *name, const big_t *b, uint32_t n)
{
    char      path[256], *header;
    FILE     *f;
    float     one;
    size_t    len;
    uint32_t  i, size, first;
    uint64_t  offset, ones, bytes;

    static const char  *dtype[] = { "", "F8_E4M3", "BF16", "", "F32" };

    header = malloc(n * 192 + 64);
    assert_non_null(header);

    header[0] = '{';
    len = 1;
    offset = 0;
    ones = 0;
    first = 1;

    for (size = 4; size != 0; size /= 2) {
        for (i = 0; i < n; i++) {
            if (b[i].size != size) {
                continue;
            }

            bytes = (uint64_t) (b[i].rows != 0 ? b[i].rows : 1) * b[i].cols
                    * size;

            len += sprintf(header + len, "%s\"%s\":{\"dtype\":\"%s\","
                           "\"shape\":[", first ? "" : ",", b[i].name,
                           dtype[size]);
            first = 0;

            if (b[i].rows != 0) {
                len += sprintf(header + len, "%u,", b[i].rows);
            }

            len += sprintf(header + len, "%u],\"data_offsets\":[%lu,%lu]}",
                           b[i].cols, offset, offset + bytes);
            offset += bytes;
        }

        if (size == 4) {
            ones = offset / 4;
        }
    }

    header[len++] = '}';

    while (len % 8 != 0) {
        header[len++] = ' ';
    }

    (void) snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);

    assert_int_equal(fwrite(&len, 1, 8, f), 8);
    assert_int_equal(fwrite(header, 1, len, f), len);

    for (one = 1; ones != 0; ones--) {
        assert_int_equal(fwrite(&one, 1, 4, f), 4);
    }

    assert_int_equal(fclose(f), 0);
    assert_int_equal(truncate(path, (off_t) (8 + len + offset)), 0);

    free(header);
}


static const char  big_config[] =
    "{ \"model_type\": \"deepseek_v32\", \"bos_token_id\": 0,"
    " \"eos_token_id\": 1, \"first_k_dense_replace\": 3,"
    " \"hidden_size\": 128, \"index_head_dim\": 64, \"index_n_heads\": 2,"
    " \"index_topk\": 2048, \"intermediate_size\": 256,"
    " \"kv_lora_rank\": 64, \"max_position_embeddings\": 163840,"
    " \"moe_intermediate_size\": 128, \"n_group\": 8,"
    " \"n_routed_experts\": 256, \"n_shared_experts\": 1,"
    " \"norm_topk_prob\": true, \"num_attention_heads\": 1,"
    " \"num_experts_per_tok\": 8, \"num_hidden_layers\": 61,"
    " \"num_nextn_predict_layers\": 1, \"q_lora_rank\": 128,"
    " \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64,"
    " \"rms_norm_eps\": 1e-06, \"rope_theta\": 10000,"
    " \"routed_scaling_factor\": 2.5, \"topk_group\": 4,"
    " \"v_head_dim\": 64, \"vocab_size\": 64,"
    " \"quantization_config\": { \"activation_scheme\": \"dynamic\","
    " \"fmt\": \"e4m3\", \"quant_method\": \"fp8\","
    " \"scale_fmt\": \"ue8m0\", \"weight_block_size\": [128, 128] } }";


static void
test_published_size(void **state)
{
    char           *index, name[64];
    big_t          *b;
    size_t          len;
    clock_t         start;
    uint32_t        i, j, n, each;
    dsa_err_t       err;
    dsa_weights_t  *w;

    b = malloc(100000 * sizeof(big_t));
    index = malloc(100000 * 192);
    assert_non_null(b);
    assert_non_null(index);

    n = big_names(b);
    assert_int_equal(n, 92425);

    len = (size_t) sprintf(index, "{\"weight_map\": {");
    each = (n + N_FILES - 1) / N_FILES;

    for (i = 0; i < N_FILES; i++) {
        (void) snprintf(name, sizeof(name),
                        "model-%05u-of-000163.safetensors", i + 1);

        for (j = i * each; j < n && j < (i + 1) * each; j++) {
            len += (size_t) sprintf(index + len, "%s\"%s\": \"%s\"",
                                    j != 0 ? ",\n" : "", b[j].name, name);
        }

        big_file(name, b + i * each,
                 n - i * each < each ? n - i * each : each);
    }

    len += (size_t) sprintf(index + len, "}}");

    write_file("model.safetensors.index.json", index, len);
    write_file("config.json", big_config, sizeof(big_config) - 1);

    start = clock();

    w = dsa_weights_open(dir, &err);
    if (w == NULL) {
        fail_msg("%s", err.text);
    }

    /* if it were quadratic in the names, it would take minutes */

    assert_true((clock() - start) / CLOCKS_PER_SEC < 20);

    assert_int_equal(w->layer[60].expert[255].down.rows, 128);
    assert_true(w->layer[60].expert[255].down.scale[0] == 1);

    dsa_weights_close(w);

    free(index);
    free(b);
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
        cmocka_unit_test_setup_teardown(test_mtp, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shards, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fingerprint, setup, teardown),
        cmocka_unit_test_setup_teardown(test_published_size, setup, teardown)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
