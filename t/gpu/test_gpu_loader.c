
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ftw.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "engine/checkpoint/safetensors_write.h"
#include "engine/checkpoint/scan.h"
#include "engine/cuda/weights.h"
#include "kernels/core/fp8.h"
#include "t/gpu/gpu.h"


/*
 * A checkpoint is written, loaded by 1 and 2 ranks on as many GPUs as there
 * are, and every weight compared with the mapped file.  Which part a rank has
 * is computed here from its number.
 *
 * The files are larger than a leaf, so that tensors of each kind cross the end
 * of one: a matrix cut by rows or columns, and a vector that is widened.
 */

#define HIDDEN      512
#define LAYERS      3
#define HEADS       4
#define Q_LORA      256
#define KV_LORA     512
#define IHEADS      4               /* padded to 8 on the GPU */
#define DENSE       1024
#define INTER       512
#define EXPERTS     16
#define VOCAB       8176
#define RANKS       2

#define FILES       3
#define MAX_TENSORS 512
#define LEAF        (8 << 20)
#define PATTERN     (32 << 20)


typedef struct {
    dsa_st_tensor_t     t[MAX_TENSORS];
    char                name[MAX_TENSORS][96];
    uint32_t            n;
} list_t;


/* What one rank has of the model, and its weights on the GPU. */

typedef struct {
    int                 device;
    uint32_t            part;           /* of heads, width, vocabulary */
    uint32_t            parts;
    uint32_t            expert;         /* the first one */
    uint32_t            experts;
    dsa_shard_t         shard;
    cudaStream_t        stream;
    dsa_cuda_weights_t  weights;
} rank_t;


/* A rectangle of a tensor. */

typedef struct {
    const dsa_tensor_t *t;
    uint32_t            row;
    uint32_t            rows;
    uint32_t            col;
    uint32_t            cols;
} part_t;


static char      dir[160];
static list_t    file[FILES];
static uint8_t  *codes;             /* e4m3 without NaNs */
static float    *factors;           /* scales, powers of two */
static uint32_t  seed = 1;


static uint32_t
number(void)
{
    seed = seed * 1664525 + 1013904223;

    return seed >> 8;
}


/* Adds a tensor with random contents; rows 0: a vector. */

static void
add(uint32_t i, const char *prefix, const char *name, const char *dtype,
    uint32_t rows, uint32_t cols)
{
    uint32_t          size;
    list_t           *l = &file[i];
    dsa_st_tensor_t  *t;

    assert_true(l->n < MAX_TENSORS);

    (void) snprintf(l->name[l->n], sizeof(l->name[0]), "%s%s", prefix, name);
    size = strcmp(dtype, "F32") == 0 ? 4 : strcmp(dtype, "BF16") == 0 ? 2 : 1;

    t = &l->t[l->n];
    t->name = dsa_strz(l->name[l->n]);
    t->dtype = dsa_strz(dtype);
    t->n_dims = rows != 0 ? 2 : 1;
    t->shape[0] = rows != 0 ? rows : cols;
    t->shape[1] = cols;
    t->size = (uint64_t) (rows != 0 ? rows : 1) * cols * size;
    t->data = codes + number() % (PATTERN - t->size) / 4 * 4;

    if (size == 4) {
        t->data = factors + number() % 1000;
    }

    l->n++;
}


static void
add_fp8(uint32_t i, const char *prefix, const char *name, uint32_t rows,
    uint32_t cols)
{
    char  full[64];

    (void) snprintf(full, sizeof(full), "%s.weight", name);
    add(i, prefix, full, "F8_E4M3", rows, cols);
    (void) snprintf(full, sizeof(full), "%s.weight_scale_inv", name);
    add(i, prefix, full, "F32", (rows + 127) / 128, (cols + 127) / 128);
}


/* Products by columns have a file of their own, and vectors have one. */

static void
add_mlp(const char *prefix, uint32_t inter)
{
    add_fp8(0, prefix, "gate_proj", inter, HIDDEN);
    add_fp8(0, prefix, "up_proj", inter, HIDDEN);
    add_fp8(1, prefix, "down_proj", HIDDEN, inter);
}


static void
add_heads(uint32_t n)
{
    char  p[64];

    (void) snprintf(p, sizeof(p), "model.layers.%u.self_attn.indexer.", n);
    add(2, p, "weights_proj.weight", "BF16", IHEADS, HIDDEN);
}


static void
add_layer(uint32_t n)
{
    char      p[64];
    uint32_t  i;

    (void) snprintf(p, sizeof(p), "model.layers.%u.", n);
    add(2, p, "input_layernorm.weight", "BF16", 0, HIDDEN);
    add(2, p, "post_attention_layernorm.weight", "BF16", 0, HIDDEN);

    (void) snprintf(p, sizeof(p), "model.layers.%u.self_attn.", n);
    add_fp8(0, p, "q_a_proj", Q_LORA, HIDDEN);
    add(2, p, "q_a_layernorm.weight", "BF16", 0, Q_LORA);
    add_fp8(0, p, "q_b_proj", HEADS * 192, Q_LORA);
    add_fp8(0, p, "kv_a_proj_with_mqa", KV_LORA + 64, HIDDEN);
    add(2, p, "kv_a_layernorm.weight", "BF16", 0, KV_LORA);
    add_fp8(0, p, "kv_b_proj", HEADS * 256, KV_LORA);
    add_fp8(1, p, "o_proj", HIDDEN, HEADS * 128);

    (void) snprintf(p, sizeof(p), "model.layers.%u.self_attn.indexer.", n);
    add_fp8(0, p, "wq_b", IHEADS * 128, Q_LORA);
    add_fp8(0, p, "wk", 128, HIDDEN);
    add(2, p, "k_norm.weight", "F32", 0, 128);
    add(2, p, "k_norm.bias", "BF16", 0, 128);

    (void) snprintf(p, sizeof(p), "model.layers.%u.mlp.", n);

    if (n == 0) {
        add_mlp(p, DENSE);
        return;
    }

    add(2, p, "gate.weight", "BF16", EXPERTS, HIDDEN);
    add(2, p, "gate.e_score_correction_bias", "F32", 0, EXPERTS);

    (void) snprintf(p, sizeof(p), "model.layers.%u.mlp.shared_experts.", n);
    add_mlp(p, INTER);

    for (i = 0; i < EXPERTS; i++) {
        (void) snprintf(p, sizeof(p), "model.layers.%u.mlp.experts.%u.", n, i);
        add_mlp(p, INTER);
    }
}


static const char  config[] =
    "{\"architectures\":[\"DeepseekV32ForCausalLM\"],"
    "\"model_type\":\"deepseek_v32\",\"attention_bias\":false,"
    "\"bos_token_id\":0,\"eos_token_id\":1,\"hidden_act\":\"silu\","
    "\"index_head_dim\":128,\"kv_lora_rank\":512,\"qk_nope_head_dim\":128,"
    "\"qk_rope_head_dim\":64,\"v_head_dim\":128,"
    "\"max_position_embeddings\":4096,\"moe_layer_freq\":1,"
    "\"n_shared_experts\":1,\"norm_topk_prob\":true,"
    "\"num_nextn_predict_layers\":0,\"rms_norm_eps\":1e-06,"
    "\"rope_theta\":10000,\"routed_scaling_factor\":2.5,"
    "\"scoring_func\":\"sigmoid\",\"tie_word_embeddings\":false,"
    "\"topk_method\":\"noaux_tc\",\"hidden_size\":%u,"
    "\"intermediate_size\":%u,\"num_hidden_layers\":%u,"
    "\"first_k_dense_replace\":1,\"num_attention_heads\":%u,"
    "\"num_key_value_heads\":%u,\"q_lora_rank\":%u,"
    "\"n_routed_experts\":%u,\"n_group\":4,\"topk_group\":2,"
    "\"num_experts_per_tok\":4,\"moe_intermediate_size\":%u,"
    "\"index_n_heads\":%u,\"index_topk\":64,\"vocab_size\":%u,"
    "\"quantization_config\":{\"activation_scheme\":\"dynamic\","
    "\"fmt\":\"e4m3\",\"quant_method\":\"fp8\",\"scale_fmt\":\"ue8m0\","
    "\"weight_block_size\":[128,128]}}";


static void
write_shard(uint32_t i)
{
    char       path[256];
    dsa_err_t  err;

    (void) snprintf(path, sizeof(path), "%s/model-%u.safetensors", dir, i);

    if (dsa_st_write(path, file[i].t, file[i].n, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }
}


static void
write_config(void)
{
    char      path[256];
    FILE     *f;
    uint32_t  i, j;

    (void) snprintf(path, sizeof(path), "%s/config.json", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    (void) fprintf(f, config, HIDDEN, DENSE, LAYERS, HEADS, HEADS, Q_LORA,
                   EXPERTS, INTER, IHEADS, VOCAB);
    assert_int_equal(fclose(f), 0);

    (void) snprintf(path, sizeof(path), "%s/model.safetensors.index.json",
                    dir);
    f = fopen(path, "w");
    assert_non_null(f);
    (void) fprintf(f, "{\"weight_map\":");

    for (i = 0; i < FILES; i++) {
        for (j = 0; j < file[i].n; j++) {
            (void) fprintf(f, "%c\"%s\":\"model-%u.safetensors\"",
                           i + j == 0 ? '{' : ',', file[i].name[j], i);
        }
    }

    (void) fprintf(f, "}}");
    assert_int_equal(fclose(f), 0);
}


static int
make(void **state)
{
    uint32_t     i;
    const char  *tmp;

    tmp = getenv("TMPDIR");
    (void) snprintf(dir, sizeof(dir), "%s/dsa-loader-XXXXXX",
                    tmp != NULL ? tmp : "/tmp");

    if (mkdtemp(dir) == NULL) {
        return -1;
    }

    codes = malloc(PATTERN);
    factors = malloc(8192 * sizeof(float));

    if (codes == NULL || factors == NULL) {
        return -1;
    }

    for (i = 0; i < PATTERN; i++) {
        codes[i] = (uint8_t) number();
        codes[i] = (codes[i] & 0x7f) == 0x7f ? 1 : codes[i];
    }

    for (i = 0; i < 8192; i++) {
        factors[i] = 1.0f / (float) (1 << number() % 14);
    }

    /*
     * The order in a file is that of the list, 4-byte elements first.  The
     * first leaf of file 2 ends behind two of these matrices, in a vector.
     */

    add(2, "", "model.embed_tokens.weight", "BF16", VOCAB, HIDDEN);

    for (i = 0; i < LAYERS - 1; i++) {
        add_heads(i);
    }

    for (i = 0; i < LAYERS; i++) {
        add_layer(i);
    }

    add_heads(LAYERS - 1);
    add(2, "", "model.norm.weight", "BF16", 0, HIDDEN);
    add(2, "", "lm_head.weight", "BF16", VOCAB, HIDDEN);

    for (i = 0; i < FILES; i++) {
        write_shard(i);
    }

    write_config();

    return 0;
}


static int
remove_one(const char *path, const struct stat *st, int type,
    struct FTW *ftw)
{
    return remove(path);
}


static int
clean(void **state)
{
    free(codes);
    free(factors);

    return nftw(dir, remove_one, 8, FTW_DEPTH|FTW_PHYS);
}


static dsa_weights_t *
open_files(void)
{
    dsa_err_t       err;
    dsa_weights_t  *w;

    w = dsa_weights_open(dir, &err);

    if (w == NULL) {
        fail_msg("%s", err.text);
    }

    return w;
}


/* Tensors of this name's end that lie in two leaves. */

static uint32_t
crossing(const dsa_weights_t *w, const char *end)
{
    char             name[128];
    uint32_t         i, j, n;
    uint64_t         at, size;
    const uint8_t   *image;
    dsa_st_tensor_t  t;

    n = 0;

    for (i = 0; i < w->shards->n; i++) {
        image = dsa_st_image(w->shards->file[i], &size);

        for (j = 0; j < dsa_st_count(w->shards->file[i]); j++) {
            t = *dsa_st_at(w->shards->file[i], j);
            (void) snprintf(name, sizeof(name), "%.*s", (int) t.name.len,
                            t.name.data);
            at = (uint64_t) ((const uint8_t *) t.data - image);

            n += strstr(name, end) != NULL
                 && at / LEAF != (at + t.size - 1) / LEAF;
        }
    }

    return n;
}


/* The test is meaningful only if each kind of tensor crosses a leaf's end. */

static void
test_crossings(void **state)
{
    dsa_weights_t  *w;

    w = open_files();

    assert_true(crossing(w, "down_proj.weight") > 0);
    assert_true(crossing(w, "gate_proj.weight")
                + crossing(w, "up_proj.weight") > 0);
    assert_true(crossing(w, "norm.weight") > 0);
    assert_true(crossing(w, "lm_head.weight") > 0);

    dsa_weights_close(w);
}


static void *
download(const void *device, size_t size)
{
    void  *p;

    p = malloc(size);
    assert_non_null(p);
    gpu_download(p, device, size);

    return p;
}


static part_t
part_rows(const dsa_tensor_t *t, uint32_t part, uint32_t parts)
{
    part_t  p;

    p.t = t;
    p.rows = t->rows / parts;
    p.row = part * p.rows;
    p.col = 0;
    p.cols = t->cols;

    return p;
}


static part_t
part_cols(const dsa_tensor_t *t, uint32_t part, uint32_t parts)
{
    part_t  p;

    p.t = t;
    p.row = 0;
    p.rows = t->rows;
    p.cols = t->cols / parts;
    p.col = part * p.cols;

    return p;
}


/* Matrix i of w has these parts, each from a multiple of 128 rows on. */

static void
same_fp8(const dsa_fp8_weight_t *w, uint32_t i, const part_t *part,
    uint32_t parts)
{
    float           *scale;
    size_t           bytes, scales;
    uint8_t         *q, *seen;
    uint32_t         k, r, c, at, cols, wide;
    const uint8_t   *from;

    cols = w->cols;
    bytes = (size_t) w->rows * cols;
    scales = (size_t) (w->rows + 127) / 128 * (cols / 128);

    q = download((const uint8_t *) w->q + i * bytes, bytes);
    scale = download(w->scale + i * scales, scales * sizeof(float));
    seen = calloc(1, w->rows);
    assert_non_null(seen);

    for (k = 0, at = 0; k < parts; k++) {
        assert_int_equal(part[k].cols, cols);
        at = (at + 127) / 128 * 128;
        wide = (part[k].t->cols + 127) / 128;
        from = part[k].t->data;

        for (r = 0; r < part[k].rows; r++) {
            assert_memory_equal(q + (size_t) (at + r) * cols,
                                from + (size_t) (part[k].row + r)
                                       * part[k].t->cols + part[k].col, cols);
            seen[at + r] = 1;
        }

        for (r = 0; r < (part[k].rows + 127) / 128; r++) {
            for (c = 0; c < cols / 128; c++) {
                assert_true(scale[(at / 128 + r) * (cols / 128) + c]
                            == part[k].t->scale[(part[k].row / 128 + r) * wide
                                                + part[k].col / 128 + c]);
            }
        }

        at += part[k].rows;
    }

    for (r = 0; r < w->rows; r++) {
        for (c = 0; c < cols && !seen[r]; c++) {
            assert_int_equal(q[(size_t) r * cols + c], 0);
        }
    }

    free(q);
    free(scale);
    free(seen);
}


static void
same_bf16(const dsa_bf16_t *device, const part_t *part)
{
    size_t     size;
    uint16_t  *p;

    size = (size_t) part->rows * part->cols * 2;
    p = download(device, size);
    assert_memory_equal(p, (const uint8_t *) part->t->data
                           + (size_t) part->row * part->cols * 2, size);
    free(p);
}


static void
same_vector(const float *device, const dsa_tensor_t *t)
{
    float           *p;
    uint32_t         i, bits;
    const uint16_t  *narrow = t->data;

    p = download(device, t->cols * sizeof(float));

    for (i = 0; i < t->cols && t->dtype == DSA_BF16; i++) {
        bits = (uint32_t) narrow[i] << 16;
        assert_memory_equal(&p[i], &bits, sizeof(bits));
    }

    if (t->dtype == DSA_F32) {
        assert_memory_equal(p, t->data, t->cols * sizeof(float));
    }

    free(p);
}


/* The BF16 of an FP8 weight, which is computed from what was loaded. */

static void
same_decoded(const dsa_bf16_t *device, const part_t *part)
{
    float     *expected;
    size_t     i, n;
    uint16_t  *p;

    n = (size_t) part->rows * part->cols;
    p = download(device, n * 2);
    expected = malloc(n * sizeof(float));
    assert_non_null(expected);

    dsa_fp8_decode_weight(expected, part->t->data, part->t->scale, part->row,
                          part->rows, part->cols);

    for (i = 0; i < n; i++) {
        assert_true(dsa_bf16_decode(p[i]) == expected[i]);
    }

    free(p);
    free(expected);
}


static void
same_mlp(const dsa_fp8_weight_t *gate_up, const dsa_fp8_weight_t *down,
    uint32_t i, const dsa_mlp_t *mlp, const rank_t *r)
{
    part_t  p[2];

    p[0] = part_rows(&mlp->gate, r->part, r->parts);
    p[1] = part_rows(&mlp->up, r->part, r->parts);
    same_fp8(gate_up, i, p, 2);

    p[0] = part_cols(&mlp->down, r->part, r->parts);
    same_fp8(down, i, p, 1);
}


static void
same_layer(const dsa_cuda_layer_t *l, const dsa_layer_t *f, const rank_t *r)
{
    part_t    p[3];
    uint32_t  i;

    same_vector(l->input_norm, &f->input_layernorm);
    same_vector(l->post_norm, &f->post_attention_layernorm);
    same_vector(l->q_norm, &f->q_a_layernorm);
    same_vector(l->kv_norm, &f->kv_a_layernorm);
    same_vector(l->k_norm, &f->index_k_norm_weight);
    same_vector(l->k_bias, &f->index_k_norm_bias);

    p[0] = part_rows(&f->q_a_proj, 0, 1);
    p[1] = part_rows(&f->kv_a_proj_with_mqa, 0, 1);
    p[2] = part_rows(&f->index_wk, 0, 1);
    same_fp8(&l->qkv_a.fp8, 0, p, 3);

    p[0] = part_rows(&f->q_b_proj, r->part, r->parts);
    same_fp8(&l->q_b.fp8, 0, p, 1);
    p[0] = part_rows(&f->kv_b_proj, r->part, r->parts);
    same_fp8(&l->kv_b.fp8, 0, p, 1);
    same_decoded(l->kv_b_bf16, p);
    p[0] = part_cols(&f->o_proj, r->part, r->parts);
    same_fp8(&l->o.fp8, 0, p, 1);
    p[0] = part_rows(&f->index_wq_b, 0, 1);
    same_fp8(&l->index_q.fp8, 0, p, 1);
    p[0] = part_rows(&f->index_weights_proj, 0, 1);
    same_bf16(l->index_w, p);

    assert_int_equal(l->moe, f->moe);

    if (!l->moe) {
        same_mlp(&l->gate_up.fp8, &l->down.fp8, 0, &f->mlp, r);
        return;
    }

    same_mlp(&l->gate_up.fp8, &l->down.fp8, 0, &f->shared, r);
    same_vector(l->router_bias, &f->router_bias);
    p[0] = part_rows(&f->router, 0, 1);
    same_bf16(l->router, p);

    for (i = 0; i < r->experts; i++) {
        same_mlp(&l->expert_gate_up.fp8, &l->expert_down.fp8, i,
                 &f->expert[r->expert + i], r);
    }
}


/* Places the ranks' weights and reads the files; the result of reading. */

static int
load(rank_t *rank, uint32_t ranks, dsa_attention_e attention,
    char fingerprint[DSA_FULL_LEN + 1], dsa_err_t *err)
{
    int              rc, devices, device;
    rank_t          *r;
    uint32_t         i;
    dsa_weights_t   *w;
    dsa_read_list_t  list[RANKS];

    gpu_ok(cudaGetDeviceCount(&devices));
    w = dsa_weights_open_unread(dir, err);
    assert_non_null(w);
    memset(rank, 0, ranks * sizeof(rank_t));

    for (i = 0; i < ranks; i++) {
        r = &rank[i];

        r->device = (int) i % devices;
        r->parts = attention == DSA_ATTENTION_TENSOR ? ranks : 1;
        r->part = attention == DSA_ATTENTION_TENSOR ? i : 0;
        r->experts = attention == DSA_ATTENTION_TENSOR ? EXPERTS
                                                       : EXPERTS / ranks;
        r->expert = attention == DSA_ATTENTION_TENSOR ? 0 : i * r->experts;

        assert_int_equal(dsa_shard_init(&r->shard, &w->config, i, ranks,
                                        attention, err), DSA_OK);
        gpu_ok(cudaSetDevice(r->device));
        gpu_ok(cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking));

        if (dsa_cuda_weights_place(&r->weights, &w->config, &r->shard, 0, w,
                                   r->stream, &list[i], err) != DSA_OK)
        {
            fail_msg("%s", err->text);
        }
    }

    gpu_ok(cudaSetDevice(0));
    rc = dsa_cuda_read(w, list, ranks, fingerprint, err);

    gpu_ok(cudaGetDevice(&device));
    assert_int_equal(device, 0);

    for (i = 0; i < ranks; i++) {
        r = &rank[i];
        gpu_ok(cudaSetDevice(r->device));

        if (rc == DSA_OK) {
            assert_int_equal(dsa_cuda_weights_finish(&r->weights, &w->config,
                                                     r->stream, err), DSA_OK);
        }

        free(list[i].task);
    }

    dsa_weights_close(w);

    return rc;
}


static void
unload(rank_t *rank, uint32_t ranks)
{
    uint32_t  i;

    for (i = 0; i < ranks; i++) {
        gpu_ok(cudaSetDevice(rank[i].device));
        gpu_ok(cudaDeviceSynchronize());
        gpu_ok(cudaStreamDestroy(rank[i].stream));
        dsa_cuda_weights_free(&rank[i].weights);
    }

    gpu_ok(cudaSetDevice(0));
}


static void
check(uint32_t ranks, dsa_attention_e attention)
{
    char            fingerprint[DSA_FULL_LEN + 1], expected[DSA_FULL_LEN + 1];
    part_t          p;
    rank_t          rank[RANKS];
    uint32_t        i, j;
    dsa_err_t       err;
    dsa_weights_t  *w;

    if (load(rank, ranks, attention, fingerprint, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    w = open_files();

    for (i = 0; i < ranks; i++) {
        gpu_ok(cudaSetDevice(rank[i].device));

        same_vector(rank[i].weights.norm, &w->norm);
        p = part_rows(&w->embed, rank[i].part, rank[i].parts);
        same_bf16(rank[i].weights.embed, &p);
        p = part_rows(&w->head, rank[i].part, rank[i].parts);
        same_bf16(rank[i].weights.head, &p);

        for (j = 0; j < LAYERS; j++) {
            same_layer(&rank[i].weights.layer[j], &w->layer[j], &rank[i]);
        }
    }

    /* the same without a GPU */

    assert_int_equal(dsa_scan(w, NULL, 3, expected, &err), DSA_OK);
    assert_string_equal(fingerprint, expected);

    dsa_weights_close(w);
    unload(rank, ranks);
}


static void
test_one(void **state)
{
    check(1, DSA_ATTENTION_DATA);
}


static void
test_data(void **state)
{
    check(2, DSA_ATTENTION_DATA);
}


static void
test_tensor(void **state)
{
    check(2, DSA_ATTENTION_TENSOR);
}


static void
fails(const char *name, const char *text)
{
    char       fingerprint[DSA_FULL_LEN + 1];
    rank_t     rank[RANKS];
    dsa_err_t  err;

    assert_int_equal(load(rank, RANKS, DSA_ATTENTION_TENSOR, fingerprint,
                          &err), DSA_ERROR);
    assert_memory_equal(err.text, dir, strlen(dir));

    if (strstr(err.text, name) == NULL || strstr(err.text, text) == NULL) {
        fail_msg("\"%s\" does not contain \"%s\" and \"%s\"", err.text, name,
                 text);
    }

    unload(rank, RANKS);
}


/* Scales are checked where they are read: opening the files reads none. */

static void
test_scales(void **state)
{
    size_t            i;
    float             bad[(HIDDEN / 128) * (INTER / 128)];
    const void       *data;
    dsa_st_tensor_t  *t;

    static const float  value[] = { 0, -1, INFINITY, NAN };
    static const char   name[] =
        "model.layers.2.mlp.experts.7.down_proj.weight_scale_inv";

    for (i = 0; !dsa_str_eqz(file[1].t[i].name, name); i++) {
        assert_true(i + 1 < file[1].n);
    }

    t = &file[1].t[i];
    data = t->data;
    assert_int_equal(t->size, sizeof(bad));

    for (i = 0; i < sizeof(value) / sizeof(value[0]); i++) {
        memcpy(bad, data, sizeof(bad));
        bad[i * 5 % (sizeof(bad) / sizeof(bad[0]))] = value[i];
        t->data = bad;
        write_shard(1);
        fails("/model-1.safetensors: tensor", name);
    }

    t->data = data;
    write_shard(1);
    check(1, DSA_ATTENTION_DATA);
}


/* A file that is missing when it is read. */

static void
test_unreadable(void **state)
{
    char            path[256], saved[256], fingerprint[DSA_FULL_LEN + 1];
    dsa_err_t       err;
    dsa_weights_t  *w;

    (void) snprintf(path, sizeof(path), "%s/model-1.safetensors", dir);
    (void) snprintf(saved, sizeof(saved), "%s/saved", dir);

    w = dsa_weights_open_unread(dir, &err);
    assert_non_null(w);
    assert_int_equal(rename(path, saved), 0);

    assert_int_equal(dsa_cuda_read(w, NULL, 0, fingerprint, &err), DSA_ERROR);
    assert_memory_equal(err.text, path, strlen(path));
    assert_string_equal(err.text + strlen(path),
                        ": No such file or directory");

    assert_int_equal(rename(saved, path), 0);
    dsa_weights_close(w);
}


/* Without a checkpoint, ranks have random weights and nothing to read. */

static void
test_random(void **state)
{
    uint8_t            *q;
    dsa_err_t           err;
    dsa_shard_t         shard;
    cudaStream_t        stream;
    dsa_weights_t      *w;
    dsa_read_list_t     list;
    dsa_cuda_weights_t  weights;

    w = open_files();
    assert_int_equal(dsa_shard_init(&shard, &w->config, 1, 2,
                                    DSA_ATTENTION_DATA, &err), DSA_OK);
    gpu_ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    memset(&weights, 0, sizeof(weights));

    assert_int_equal(dsa_cuda_weights_place(&weights, &w->config, &shard, 0,
                                            NULL, stream, &list, &err),
                     DSA_OK);
    assert_int_equal(list.n, 0);
    assert_int_equal(dsa_cuda_weights_finish(&weights, &w->config, stream,
                                             &err), DSA_OK);

    q = download(weights.layer[2].expert_down.fp8.q, 64);
    assert_memory_not_equal(q, q + 32, 32);
    free(q);

    dsa_cuda_weights_free(&weights);
    dsa_weights_close(w);
    gpu_ok(cudaStreamDestroy(stream));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_crossings),
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_tensor),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_random)
    };

    return cmocka_run_group_tests(tests, make, clean);
}
