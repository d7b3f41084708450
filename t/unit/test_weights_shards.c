
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Opening checkpoints of several shards, their fingerprints, and one of the
 * published size.
 */


#include <time.h>

#include "t/unit/weights.h"


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


#define EXPERT  "model.layers.2.mlp.experts.5.down_proj."


/*
 * An INT4 model of the tensors of A_FP8, whose BF16 scales are groups [256] and
 * scale.  names outlives m.
 */

static void
load_int4(model_t *m, char names[MAX_TENSORS][80], const uint16_t *groups,
    const uint16_t *scale)
{
    uint32_t          i, n;
    dsa_st_tensor_t  *x, *input;

    load(m, A_FP8);
    n = m->n;

    for (i = 0; i < n; i++) {
        x = &m->t[i];

        if (memmem(x->name.data, x->name.len, ".experts.", 9) == NULL) {
            continue;
        }

        if (dsa_str_eqz(x->dtype, "F8_E4M3")) {
            x->dtype = dsa_strz("I8");
            x->shape[1] /= 2;
            x->size /= 2;
            continue;
        }

        x->dtype = dsa_strz("BF16");
        x->shape[0] *= 128;
        x->size = x->shape[0] * x->shape[1] * sizeof(uint16_t);
        x->data = groups;
        assert_in_range(x->size, 1, 256 * sizeof(uint16_t));

        assert_true(m->n < MAX_TENSORS);
        input = &m->t[m->n];

        (void) snprintf(names[m->n], sizeof(names[0]), "%.*sinput_scale",
                        (int) (x->name.len - strlen("weight_scale_inv")),
                        x->name.data);

        *input = *x;
        input->name = dsa_strz(names[m->n++]);
        input->n_dims = 1;
        input->shape[0] = 1;
        input->size = sizeof(uint16_t);
        input->data = scale;
    }
}


/* A scale that is stored is in no other place: an INT4 model with BF16 ones. */

static void
test_fingerprint_scales(void **state)
{
    char              one[64], two[64];
    static char       names[MAX_TENSORS][80];
    model_t           m;
    uint16_t          groups[256], others[256], scale, other;
    uint32_t          i;
    dsa_st_tensor_t  *x;

    scale = 0x3c00;
    other = 0x3c01;

    for (i = 0; i < 256; i++) {
        groups[i] = scale;
    }

    load_int4(&m, names, groups, &scale);

    put_config(A_FP8, "\"quant_method\": \"fp8\"",
               "\"quant_method\": \"w4afp8\"");
    put_single(&m);
    accepted(one);

    x = tensor(&m, EXPERT "input_scale");
    x->data = &other;
    put_single(&m);
    accepted(two);
    assert_string_not_equal(one, two);

    x->data = &scale;
    put_single(&m);
    accepted(two);
    assert_string_equal(one, two);

    memcpy(others, groups, sizeof(groups));
    others[7] = other;
    x = tensor(&m, EXPERT "weight_scale_inv");
    x->data = others;
    put_single(&m);
    accepted(two);
    assert_string_not_equal(one, two);

    unload(&m);
}


#define MIXED   "\"quant_algo\": \"MIXED_PRECISION\""
#define INT4    "{ \"quant_algo\": \"W4A8_AWQ\" }"
#define HF      "{ \"quantization\": { " MIXED " } }"
#define LAYERS  "{ " MIXED ", \"quantized_layers\": {"                         \
                "\"model.layers.1.mlp.experts\": " INT4 ","                    \
                "\"model.layers.2.mlp.experts\": " INT4 "} }"


/* Files beside config.json that set formats belong to both fingerprints. */

static void
test_fingerprint_mixed(void **state)
{
    char            one[64], two[64];
    static char     names[MAX_TENSORS][80];
    model_t         m;
    uint8_t         hash[32];
    uint16_t        groups[256], scale;
    uint32_t        i;
    dsa_err_t       err;
    dsa_weights_t  *w;

    scale = 0x3c00;

    for (i = 0; i < 256; i++) {
        groups[i] = scale;
    }

    load_int4(&m, names, groups, &scale);
    put_single(&m);
    unload(&m);

    put_config(A_FP8, "\"quantization_config\"", "\"was\"");
    write_file("hf_quant_config.json", HF, strlen(HF));
    write_file("quant_cfg.json", LAYERS, strlen(LAYERS));
    accepted(one);

    w = dsa_weights_open(dir, &err);
    assert_non_null(w);
    memcpy(hash, w->config_hash, sizeof(hash));
    dsa_weights_close(w);

    for (i = 0; i < 2; i++) {
        write_file("hf_quant_config.json", i == 0 ? HF " " : HF,
                   strlen(HF) + (i == 0));
        write_file("quant_cfg.json", i == 1 ? LAYERS " " : LAYERS,
                   strlen(LAYERS) + (i == 1));
        accepted(two);
        assert_string_not_equal(one, two);

        w = dsa_weights_open(dir, &err);
        assert_non_null(w);
        assert_memory_not_equal(hash, w->config_hash, sizeof(hash));
        dsa_weights_close(w);
    }

    /* with a quantization_config they are not read */

    put_config(A_FP8, "\"quant_method\": \"fp8\"",
               "\"quant_method\": \"w4afp8\"");
    accepted(one);
    write_file("quant_cfg.json", LAYERS, strlen(LAYERS));
    accepted(two);
    assert_string_equal(one, two);
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
        cmocka_unit_test_setup_teardown(test_shards, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fingerprint, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fingerprint_scales, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_fingerprint_mixed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_published_size, setup, teardown)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
