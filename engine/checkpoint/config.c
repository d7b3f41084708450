
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <limits.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/file.h"
#include "engine/checkpoint/config.h"


#define DSA_MODEL_CONFIG_MAX_FILE      (1024 * 1024)
#define DSA_MODEL_CONFIG_MAX_MEMORY    (128 * 1024 * 1024)
#define DSA_MODEL_CONFIG_MAX_DEPTH     16

#define DSA_CONFIG_REQUIRED      0
#define DSA_CONFIG_OPTIONAL      1


typedef struct {
    const char     *name;
    size_t          offset;         /* of a uint32_t in dsa_model_config_t */
    uint32_t        min;
    uint32_t        max;
    uint32_t        optional;
    uint32_t        absent;         /* what an absent optional field means */
} dsa_config_integer_t;


typedef struct {
    const char     *name;
    size_t          offset;         /* of a double in dsa_model_config_t */
    double          min;
    double          max;
    uint32_t        optional;
    double          absent;
} dsa_config_number_t;


typedef struct {
    const char     *name;
    const char     *json;           /* the value that is accepted */
    uint32_t        optional;
} dsa_config_fixed_t;


/* Where a field is looked for and how it is called in an error. */

typedef struct {
    const char         *file;
    const char         *prefix;     /* "" or "rope_scaling." */
    const dsa_json_t   *object;
    dsa_err_t          *err;
} dsa_config_scope_t;


static int dsa_config_root(dsa_model_config_t *config, const char *name,
    const dsa_json_t *root, dsa_err_t *err);
static int dsa_config_consistent(const dsa_model_config_t *config,
    const char *name, dsa_err_t *err);
static int dsa_config_rope(dsa_model_config_t *config,
    const dsa_config_scope_t *top);
static int dsa_model_config_rope_keys(const dsa_config_scope_t *rope);
static int dsa_config_quantization(dsa_model_config_t *config,
    const dsa_config_scope_t  *top);
static int dsa_config_bool(const dsa_config_scope_t *scope, const char *field,
    uint32_t *out);
static int dsa_config_integer(const dsa_config_scope_t *scope,
    const dsa_config_integer_t  *f, void *config);
static int dsa_config_number(const dsa_config_scope_t *scope,
    const dsa_config_number_t  *f, double *out);
static int dsa_config_fixed(const dsa_config_scope_t *scope,
    const dsa_config_fixed_t  *f);
static int dsa_config_refuse(const dsa_config_scope_t *scope, const char *field,
    const dsa_json_t *v, const char *accepted);
static const dsa_json_t *dsa_config_get(const dsa_json_t *object,
    const char *field);


#define dsa_config_size(field, min, max)                                       \
    { #field, offsetof(dsa_model_config_t, field), min, max,                   \
      DSA_CONFIG_REQUIRED, 0 }

#define dsa_config_size_or(field, min, max, absent)                            \
    { #field, offsetof(dsa_model_config_t, field), min, max,                   \
      DSA_CONFIG_OPTIONAL, absent }


/*
 * The bounds keep every product of two sizes within 32 bits and every tensor
 * within 63; they lie far beyond any model there is.
 */

static const dsa_config_integer_t  dsa_config_integers[] = {
    dsa_config_size(vocab_size, 1, 1 << 24),
    dsa_config_size(hidden_size, 1, 1 << 17),
    dsa_config_size(num_hidden_layers, 1, 1024),
    dsa_config_size_or(num_nextn_predict_layers, 0, 16, 0),
    dsa_config_size(first_k_dense_replace, 0, 1024),
    dsa_config_size_or(moe_layer_freq, 1, 1024, 1),
    dsa_config_size(intermediate_size, 1, 1 << 20),
    dsa_config_size(moe_intermediate_size, 1, 1 << 20),
    dsa_config_size(num_attention_heads, 1, 4096),
    dsa_config_size(q_lora_rank, 1, 1 << 16),
    dsa_config_size(kv_lora_rank, 1, 1 << 16),
    dsa_config_size(qk_nope_head_dim, 1, 4096),
    dsa_config_size(qk_rope_head_dim, 2, 4096),
    dsa_config_size(v_head_dim, 1, 4096),
    dsa_config_size(n_routed_experts, 2, 8192),
    dsa_config_size(n_shared_experts, 1, 64),
    dsa_config_size(num_experts_per_tok, 1, 256),
    dsa_config_size(n_group, 1, 4096),
    dsa_config_size(topk_group, 1, 4096),
    dsa_config_size(index_n_heads, 1, 4096),
    dsa_config_size(index_head_dim, 2, 4096),
    dsa_config_size(index_topk, 1, 1 << 20),
    dsa_config_size(max_position_embeddings, 1, 1 << 24),
    dsa_config_size(bos_token_id, 0, (1 << 24) - 1),
    dsa_config_size(eos_token_id, 0, (1 << 24) - 1)
};


/* What the forward pass takes for granted. */

static const dsa_config_fixed_t  dsa_config_fixeds[] = {
    { "hidden_act", "\"silu\"", DSA_CONFIG_OPTIONAL },
    { "scoring_func", "\"sigmoid\"", DSA_CONFIG_OPTIONAL },
    { "topk_method", "\"noaux_tc\"", DSA_CONFIG_OPTIONAL },
    { "attention_bias", "false", DSA_CONFIG_OPTIONAL },
    { "mlp_bias", "false", DSA_CONFIG_OPTIONAL },
    { "tie_word_embeddings", "false", DSA_CONFIG_OPTIONAL },
    { "indexer_rope_interleave", "false", DSA_CONFIG_OPTIONAL }
};


/* beta_fast and beta_slow default as in the YaRN paper, section 3.2. */

static const dsa_config_number_t  dsa_model_config_yarn[] = {
    { "factor", offsetof(dsa_model_config_t, yarn_factor),
      1, 1e6, DSA_CONFIG_REQUIRED, 0 },
    { "beta_fast", offsetof(dsa_model_config_t, yarn_beta_fast),
      1e-3, 1e6, DSA_CONFIG_OPTIONAL, 32 },
    { "beta_slow", offsetof(dsa_model_config_t, yarn_beta_slow),
      1e-3, 1e6, DSA_CONFIG_OPTIONAL, 1 },
    { "mscale", offsetof(dsa_model_config_t, yarn_mscale),
      1e-3, 1e3, DSA_CONFIG_REQUIRED, 0 },
    { "mscale_all_dim", offsetof(dsa_model_config_t, yarn_mscale_all_dim),
      1e-3, 1e3, DSA_CONFIG_REQUIRED, 0 }
};


static const dsa_config_fixed_t  dsa_config_fp8[] = {
    { "quant_method", "\"fp8\"", DSA_CONFIG_REQUIRED },
    { "fmt", "\"e4m3\"", DSA_CONFIG_OPTIONAL },
    { "weight_block_size", "[128, 128]", DSA_CONFIG_REQUIRED },
    { "activation_scheme", "\"dynamic\"", DSA_CONFIG_REQUIRED },
    { "scale_fmt", "\"ue8m0\"", DSA_CONFIG_OPTIONAL }
};


#define dsa_nelts(a)    (sizeof(a) / sizeof((a)[0]))


int
dsa_model_config_read(dsa_model_config_t *config, const char *dir,
    dsa_err_t *err)
{
    int        n, rc;
    char       path[PATH_MAX];
    dsa_buf_t  text;

    n = snprintf(path, sizeof(path), "%s/config.json", dir);

    if (n < 0 || (size_t) n >= sizeof(path)) {
        return dsa_error(err, "the model's directory has a name of %zu bytes, "
                         "a shorter one is accepted", strlen(dir));
    }

    memset(&text, 0, sizeof(dsa_buf_t));

    rc = dsa_file_read(path, DSA_MODEL_CONFIG_MAX_FILE, &text, err);

    if (rc == DSA_OK) {
        rc = dsa_model_config_parse(config, path, text.data, text.len, err);
    }

    dsa_buf_free(&text);

    return rc;
}


int
dsa_model_config_parse(dsa_model_config_t *config, const char *name,
    const void *json, size_t len, dsa_err_t *err)
{
    int           rc;
    dsa_err_t     why;
    dsa_json_t   *root;
    dsa_arena_t  *arena;

    arena = dsa_arena_create(DSA_MODEL_CONFIG_MAX_MEMORY);
    if (arena == NULL) {
        return dsa_error(err, "%s: no memory to read it", name);
    }

    root = dsa_json_parse(arena, json, len, DSA_MODEL_CONFIG_MAX_DEPTH, &why);

    if (root == NULL) {
        rc = dsa_error(err, "%s: %s", name, why.text);

    } else if (root->type != DSA_JSON_OBJECT) {
        rc = dsa_error(err, "%s: the text is no object, a model's "
                       "configuration is accepted", name);

    } else {
        memset(config, 0, sizeof(dsa_model_config_t));
        rc = dsa_config_root(config, name, root, err);
    }

    dsa_arena_destroy(arena);

    return rc;
}


static int
dsa_config_root(dsa_model_config_t *config, const char *name,
    const dsa_json_t *root, dsa_err_t *err)
{
    double                    value;
    int64_t                   n;
    uint32_t                  i;
    const dsa_json_t         *heads;
    dsa_config_scope_t  top;

    static const dsa_config_fixed_t   type = {
        "model_type", "\"deepseek_v32\"", DSA_CONFIG_REQUIRED
    };
    static const dsa_config_number_t  eps = {
        "rms_norm_eps", 0, 1e-12, 0.1, DSA_CONFIG_REQUIRED, 0
    };
    static const dsa_config_number_t  factor = {
        "routed_scaling_factor", 0, 1e-6, 1e6, DSA_CONFIG_REQUIRED, 0
    };

    top.file = name;
    top.prefix = "";
    top.object = root;
    top.err = err;

    /* another kind of model lacks fields: its kind is the better answer */

    if (dsa_config_fixed(&top, &type) != DSA_OK) {
        return DSA_ERROR;
    }

    for (i = 0; i < dsa_nelts(dsa_config_integers); i++) {
        if (dsa_config_integer(&top, &dsa_config_integers[i],
                               config) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    heads = dsa_config_get(root, "num_key_value_heads");

    if (heads != NULL
        && (dsa_json_int(heads, &n) != DSA_OK
            || n != (int64_t) config->num_attention_heads))
    {
        return dsa_config_refuse(&top, "num_key_value_heads", heads,
                                "the number of num_attention_heads");
    }

    for (i = 0; i < dsa_nelts(dsa_config_fixeds); i++) {
        if (dsa_config_fixed(&top, &dsa_config_fixeds[i]) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    if (dsa_config_bool(&top, "norm_topk_prob", &config->norm_topk_prob)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (dsa_config_number(&top, &eps, &value) != DSA_OK) {
        return DSA_ERROR;
    }

    config->rms_norm_eps = (float) value;

    if (dsa_config_number(&top, &factor, &value) != DSA_OK) {
        return DSA_ERROR;
    }

    config->routed_scaling_factor = (float) value;

    if (dsa_config_rope(config, &top) != DSA_OK
        || dsa_config_quantization(config, &top) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return  dsa_config_consistent(config, name, err);
}


static int
dsa_config_consistent(const dsa_model_config_t *s, const char *name,
    dsa_err_t *err)
{
    uint32_t  group;

    if (s->first_k_dense_replace > s->num_hidden_layers) {
        return dsa_error(err, "%s: \"first_k_dense_replace\" is %u, at most "
                         "num_hidden_layers, %u, is accepted", name,
                         s->first_k_dense_replace, s->num_hidden_layers);
    }

    if (s->n_routed_experts % s->n_group != 0) {
        return dsa_error(err, "%s: \"n_group\" is %u, a divisor of "
                         "n_routed_experts, %u, is accepted", name,
                         s->n_group, s->n_routed_experts);
    }

    group = s->n_routed_experts / s->n_group;

    /* a group's score is the sum of its two best experts */

    if (group < 2) {
        return dsa_error(err, "%s: \"n_group\" is %u, at least two experts a "
                         "group (n_routed_experts is %u) are accepted", name,
                         s->n_group, s->n_routed_experts);
    }

    if (s->topk_group > s->n_group) {
        return dsa_error(err, "%s: \"topk_group\" is %u, at most n_group, %u, "
                         "is accepted", name, s->topk_group, s->n_group);
    }

    if (s->num_experts_per_tok > s->topk_group * group) {
        return dsa_error(err, "%s: \"num_experts_per_tok\" is %u, at most the "
                         "experts of topk_group groups, %u, are accepted",
                         name, s->num_experts_per_tok, s->topk_group * group);
    }

    if (s->qk_rope_head_dim % 2 != 0) {
        return dsa_error(err, "%s: \"qk_rope_head_dim\" is %u, an even number "
                         "is accepted", name, s->qk_rope_head_dim);
    }

    /* the Hadamard transform of the index vectors */

    if ((s->index_head_dim & (s->index_head_dim - 1)) != 0) {
        return dsa_error(err, "%s: \"index_head_dim\" is %u, a power of two "
                         "is accepted", name, s->index_head_dim);
    }

    if (s->index_head_dim < s->qk_rope_head_dim) {
        return dsa_error(err, "%s: \"index_head_dim\" is %u, at least "
                         "qk_rope_head_dim, %u, is accepted", name,
                         s->index_head_dim, s->qk_rope_head_dim);
    }

    if (s->bos_token_id >= s->vocab_size) {
        return dsa_error(err, "%s: \"bos_token_id\" is %u, less than "
                         "vocab_size, %u, is accepted", name,
                         s->bos_token_id, s->vocab_size);
    }

    if (s->eos_token_id >= s->vocab_size) {
        return dsa_error(err, "%s: \"eos_token_id\" is %u, less than "
                         "vocab_size, %u, is accepted", name,
                         s->eos_token_id, s->vocab_size);
    }

    return DSA_OK;
}


/*
 * Published checkpoints have rope_theta and rope_scaling, of "type" or
 * "rope_type" yarn; files written by transformers 5 have rope_parameters with
 * both in it.
 */

static int
dsa_config_rope(dsa_model_config_t *config, const dsa_config_scope_t *top)
{
    uint32_t                  i;
    const char               *field;
    const dsa_json_t         *scaling, *parameters, *type, *other;
    dsa_config_scope_t  rope;

    static const dsa_config_number_t   theta = {
        "rope_theta", 0, 1.001, 1e12, DSA_CONFIG_REQUIRED, 0
    };
    static const dsa_config_integer_t  original = {
        "original_max_position_embeddings",
        offsetof(dsa_model_config_t, yarn_original_max_position), 1, 1 << 24,
        DSA_CONFIG_REQUIRED, 0
    };

    scaling = dsa_config_get(top->object, "rope_scaling");
    parameters = dsa_config_get(top->object, "rope_parameters");

    if (scaling != NULL && parameters != NULL) {
        return dsa_error(top->err, "%s: \"rope_scaling\" and "
                         "\"rope_parameters\" are both there, one of them is "
                         "accepted", top->file);
    }

    rope = *top;

    if (parameters != NULL) {
        rope.prefix = "rope_parameters.";
        rope.object = parameters;
        field = "rope_parameters";

    } else {
        rope.prefix = "rope_scaling.";
        rope.object = scaling;
        field = "rope_scaling";
    }

    if (rope.object != NULL && rope.object->type != DSA_JSON_OBJECT) {
        return  dsa_config_refuse(top, field, rope.object, "an object or null");
    }

    if (dsa_config_get(rope.object, "rope_theta") != NULL) {
        if (dsa_config_get(top->object, "rope_theta") != NULL) {
            return dsa_error(top->err, "%s: \"rope_theta\" and "
                             "\"%srope_theta\" are both there, one of them is "
                             "accepted", top->file, rope.prefix);
        }

        if (dsa_config_number(&rope, &theta, &config->rope_theta) != DSA_OK) {
            return DSA_ERROR;
        }

    } else if (dsa_config_number(top, &theta, &config->rope_theta) != DSA_OK) {
        return DSA_ERROR;
    }

    config->yarn_factor = 1;
    config->yarn_beta_fast = 32;
    config->yarn_beta_slow = 1;
    config->yarn_mscale = 1;
    config->yarn_mscale_all_dim = 1;
    config->yarn_original_max_position = config->max_position_embeddings;

    if (rope.object == NULL) {
        return DSA_OK;
    }

    field = "rope_type";
    type = dsa_config_get(rope.object, "rope_type");
    other = dsa_config_get(rope.object, "type");

    if (type == NULL) {
        field = "type";
        type = other;
        other = NULL;
    }

    if (type == NULL || type->type != DSA_JSON_STRING
        || (!dsa_str_eqz(type->text, "yarn")
            && !dsa_str_eqz(type->text, "default")))
    {
        return dsa_config_refuse(&rope, field, type,
                                "\"yarn\" or \"default\"");
    }

    if (other != NULL && (other->type != DSA_JSON_STRING
                          || !dsa_str_eq(other->text, type->text)))
    {
        return dsa_config_refuse(&rope, "type", other, "that of rope_type");
    }

    if (dsa_str_eqz(type->text, "default")) {
        return dsa_model_config_rope_keys(&rope);
    }

    for (i = 0; i < dsa_nelts(dsa_model_config_yarn); i++) {
        if (dsa_config_number(&rope, &dsa_model_config_yarn[i],
                             (double *) ((char *) config
                                         + dsa_model_config_yarn[i].offset))
            != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    if (config->yarn_beta_fast <= config->yarn_beta_slow) {
        return dsa_error(top->err, "%s: \"%sbeta_fast\" is %g, more than "
                         "beta_slow, %g, is accepted", top->file, rope.prefix,
                         config->yarn_beta_fast, config->yarn_beta_slow);
    }

    if (dsa_config_integer(&rope, &original, config) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_model_config_rope_keys(&rope);
}


/* A key that is passed over here would silently change every angle. */

static int
dsa_model_config_rope_keys(const dsa_config_scope_t *rope)
{
    char                 key[64];
    uint32_t             i;
    const dsa_json_t    *child;

    static const char               *known[] = {
        "type", "rope_type", "rope_theta", "factor", "beta_fast", "beta_slow",
        "mscale", "mscale_all_dim", "original_max_position_embeddings"
    };

    for (child = rope->object->first; child != NULL; child = child->next) {

        if (child->type == DSA_JSON_NULL) {
            continue;
        }

        for (i = 0; i < dsa_nelts(known); i++) {
            if (dsa_str_eqz(child->key, known[i])) {
                break;
            }
        }

        if (i == dsa_nelts(known)) {
            (void) snprintf(key, sizeof(key), "%.*s",
                            child->key.len < 60 ? (int) child->key.len : 60,
                            child->key.data);

            return  dsa_config_refuse(rope, key, child,
                                    "YaRN without this field");
        }
    }

    return DSA_OK;
}


static int
dsa_config_quantization(dsa_model_config_t *config,
    const dsa_config_scope_t *top)
{
    uint32_t                  i;
    dsa_config_scope_t  scope;

    scope = *top;
    scope.prefix = "quantization_config.";
    scope.object = dsa_config_get(top->object, "quantization_config");

    if (scope.object == NULL) {
        return DSA_OK;
    }

    if (scope.object->type != DSA_JSON_OBJECT) {
        return  dsa_config_refuse(top, "quantization_config", scope.object,
                                "an object or null");
    }

    for (i = 0; i < dsa_nelts(dsa_config_fp8); i++) {
        if (dsa_config_fixed(&scope, &dsa_config_fp8[i]) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    config->fp8 = 1;
    config->ue8m0 = dsa_config_get(scope.object, "scale_fmt") != NULL;

    return DSA_OK;
}


static int
dsa_config_bool(const dsa_config_scope_t *scope, const char *field,
    uint32_t *out)
{
    const dsa_json_t  *v;

    v = dsa_config_get(scope->object, field);

    if (v == NULL
        || (v->type != DSA_JSON_TRUE && v->type != DSA_JSON_FALSE))
    {
        return  dsa_config_refuse(scope, field, v, "true or false");
    }

    *out = (v->type == DSA_JSON_TRUE);

    return DSA_OK;
}


static int
dsa_config_integer(const dsa_config_scope_t *scope,
    const dsa_config_integer_t *f, void *config)
{
    char               accepted[64];
    int64_t            n;
    uint32_t          *out;
    const dsa_json_t  *v;

    out = (uint32_t *) ((char *) config + f->offset);
    v = dsa_config_get(scope->object, f->name);

    if (v == NULL && f->optional) {
        *out = f->absent;
        return DSA_OK;
    }

    if (dsa_json_int(v, &n) != DSA_OK || n < (int64_t) f->min
        || n > (int64_t) f->max)
    {
        (void) snprintf(accepted, sizeof(accepted), "an integer from %u to %u",
                        f->min, f->max);

        return  dsa_config_refuse(scope, f->name, v, accepted);
    }

    *out = (uint32_t) n;

    return DSA_OK;
}


static int
dsa_config_number(const dsa_config_scope_t *scope, const dsa_config_number_t *f,
    double *out)
{
    char               accepted[64];
    double             d;
    const dsa_json_t  *v;

    v = dsa_config_get(scope->object, f->name);

    if (v == NULL && f->optional) {
        *out = f->absent;
        return DSA_OK;
    }

    if (dsa_json_double(v, &d) != DSA_OK || d < f->min || d > f->max) {
        (void) snprintf(accepted, sizeof(accepted), "a number from %g to %g",
                        f->min, f->max);

        return  dsa_config_refuse(scope, f->name, v, accepted);
    }

    *out = d;

    return DSA_OK;
}


static int
dsa_config_fixed(const dsa_config_scope_t *scope, const dsa_config_fixed_t *f)
{
    int                equal;
    dsa_buf_t          text;
    const dsa_json_t  *v;

    v = dsa_config_get(scope->object, f->name);

    if (v == NULL) {
        return f->optional ? DSA_OK
                           : dsa_config_refuse(scope, f->name, v, f->json);
    }

    memset(&text, 0, sizeof(dsa_buf_t));

    equal = dsa_json_dump(&text, v) == DSA_OK && !text.failed
            && dsa_str_eqz(dsa_str(text.data, text.len), f->json);

    dsa_buf_free(&text);

    return equal ? DSA_OK : dsa_config_refuse(scope, f->name, v, f->json);
}


/* v is NULL where the field is missing. */

static int
dsa_config_refuse(const dsa_config_scope_t *scope, const char *field,
    const dsa_json_t *v, const char *accepted)
{
    dsa_buf_t  text;

    if (v == NULL) {
        return dsa_error(scope->err, "%s: \"%s%s\" is missing, %s is accepted",
                         scope->file, scope->prefix, field, accepted);
    }

    memset(&text, 0, sizeof(dsa_buf_t));

    if (dsa_json_dump(&text, v) != DSA_OK || text.failed) {

        /* a number, or one in an array, that no double holds */

        dsa_buf_free(&text);
        memset(&text, 0, sizeof(dsa_buf_t));
        dsa_buf_add(&text, v->text.data, v->text.len);

        if (text.len == 0) {
            dsa_buf_addz(&text, "beyond the range of numbers");
        }
    }

    (void) dsa_error(scope->err, "%s: \"%s%s\" is %.*s%s, %s is accepted",
                     scope->file, scope->prefix, field,
                     text.len < 60 ? (int) text.len : 60,
                     text.data != NULL ? text.data : "",
                     text.len < 60 ? "" : "...", accepted);

    dsa_buf_free(&text);

    return DSA_ERROR;
}


/* null stands for a missing field, as in the files of transformers. */

static const dsa_json_t *
dsa_config_get(const dsa_json_t *object, const char *field)
{
    const dsa_json_t  *v;

    v = object != NULL ? dsa_json_get(object, field) : NULL;

    return v != NULL && v->type != DSA_JSON_NULL ? v : NULL;
}
