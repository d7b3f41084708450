
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>

#include "base/file.h"
#include "engine/checkpoint/config_parts.h"
#include "engine/checkpoint/generation_config.h"


#define DSA_CONFIG_INDEX_EPS     1e-6f      /* of k_norm, in every published
                                               code */


typedef struct {
    const char     *name;
    size_t          offset;         /* of a uint32_t in dsa_model_config_t */
    uint32_t        min;
    uint32_t        max;
    uint32_t        optional;
    uint32_t        absent;         /* the value if the field is missing */
} dsa_config_integer_t;


typedef struct {
    const char     *name;
    size_t          offset;         /* of a double in dsa_model_config_t */
    double          min;
    double          max;
    uint32_t        optional;
    double          absent;
} dsa_config_number_t;


static int dsa_config_top(dsa_model_config_t *config,
    const dsa_fields_t *top);
static int dsa_config_norms(dsa_model_config_t *config,
    const dsa_model_family_t *family, const dsa_fields_t *top);
static int dsa_config_attention(dsa_model_config_t *config,
    const dsa_model_family_t *family, const dsa_fields_t *top);
static int dsa_config_integers_of(dsa_model_config_t *config,
    const dsa_fields_t *top, const dsa_config_integer_t *field, size_t n);
static int dsa_config_check_ends(const dsa_model_config_t *config,
    const dsa_fields_t *top);
static int dsa_config_check(const dsa_model_config_t *config,
    const dsa_fields_t *top);
static int dsa_config_check_experts(const dsa_model_config_t *config,
    const dsa_fields_t *top);
static int dsa_config_check_indexer(const dsa_model_config_t *config,
    const dsa_fields_t *top);
static int dsa_config_rope(dsa_model_config_t *config,
    const dsa_fields_t *top);
static int dsa_config_rope_theta(dsa_model_config_t *config,
    const dsa_fields_t *top, const dsa_fields_t *rope);
static int dsa_config_yarn(dsa_model_config_t *config,
    const dsa_fields_t *rope);
static float dsa_config_softmax(const dsa_model_config_t *config);
static int dsa_config_quantized(const dsa_model_config_t *config);
static int dsa_config_integer(const dsa_fields_t *f,
    const dsa_config_integer_t *field, dsa_model_config_t *config);
static int dsa_config_number(const dsa_fields_t *f,
    const dsa_config_number_t *field, dsa_model_config_t *config);
static int dsa_config_conflict(const dsa_fields_t *f, const char *field,
    uint32_t value, const char *expected, uint32_t bound);


#define dsa_config_size(field, min, max)                                       \
    { #field, offsetof(dsa_model_config_t, field), min, max,                   \
      DSA_CONFIG_REQUIRED, 0 }

#define dsa_config_size_or(field, min, max, absent)                            \
    { #field, offsetof(dsa_model_config_t, field), min, max,                   \
      DSA_CONFIG_OPTIONAL, absent }


/*
 * Within these bounds the product of two sizes fits 32 bits and the bytes of
 * a tensor fit 63; every published model is far below them.
 */

static const dsa_config_integer_t  dsa_config_integers[] = {
    dsa_config_size(vocab_size, 1, 1 << 24),
    dsa_config_size(hidden_size, 1, 1 << 17),
    dsa_config_size(num_hidden_layers, 1, DSA_MODEL_LAYERS),
    dsa_config_size_or(num_nextn_predict_layers, 0, 16, 0),
    dsa_config_size(first_k_dense_replace, 0, 1024),
    dsa_config_size(intermediate_size, 1, 1 << 20),
    dsa_config_size(moe_intermediate_size, 1, 1 << 20),
    dsa_config_size(num_attention_heads, 1, 4096),
    dsa_config_size(kv_lora_rank, 1, 1 << 16),
    dsa_config_size(qk_nope_head_dim, 1, 4096),
    dsa_config_size(qk_rope_head_dim, 2, 4096),
    dsa_config_size(v_head_dim, 1, 4096),
    dsa_config_size(n_routed_experts, 2, 8192),
    dsa_config_size(n_shared_experts, 1, 64),
    dsa_config_size(num_experts_per_tok, 1, 256),
    dsa_config_size(n_group, 1, 4096),
    dsa_config_size(topk_group, 1, 4096),
    dsa_config_size(max_position_embeddings, 1, 1 << 24),
    dsa_config_size_or(bos_token_id, 0, (1 << 24) - 1, DSA_MODEL_NO_TOKEN)
};


/* Of models with indexers, which use the latents of the queries. */

static const dsa_config_integer_t  dsa_config_indexer[] = {
    dsa_config_size(q_lora_rank, 1, 1 << 16),
    dsa_config_size(index_n_heads, 1, 4096),
    dsa_config_size(index_head_dim, 2, 4096),
    dsa_config_size(index_topk, 1, 1 << 20)
};

static const dsa_config_integer_t  dsa_config_dense[] = {
    dsa_config_size_or(q_lora_rank, 1, 1 << 16, 0)
};


/* The forward pass implements these values only. */

static const dsa_config_fixed_t  dsa_config_fixeds[] = {
    { "hidden_act", "\"silu\"", DSA_CONFIG_OPTIONAL },
    { "scoring_func", "\"sigmoid\"", DSA_CONFIG_OPTIONAL },
    { "topk_method", "\"noaux_tc\"", DSA_CONFIG_OPTIONAL },
    { "attention_bias", "false", DSA_CONFIG_OPTIONAL },
    { "mlp_bias", "false", DSA_CONFIG_OPTIONAL },
    { "tie_word_embeddings", "false", DSA_CONFIG_OPTIONAL },
    { "rope_interleave", "true", DSA_CONFIG_OPTIONAL }
};


/* The defaults of beta_fast and beta_slow are those of YaRN, section 3.2. */

static const dsa_config_number_t  dsa_config_yarns[] = {
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


/* A field of rope_scaling that is not read could change every angle. */

static const char  *const dsa_config_rope_names[] = {
    "type", "rope_type", "rope_theta", "factor", "beta_fast", "beta_slow",
    "mscale", "mscale_all_dim", "original_max_position_embeddings", NULL
};


#define dsa_nelts(a)    (sizeof(a) / sizeof((a)[0]))


int
dsa_model_config_read(dsa_model_config_t *config, const char *dir,
    dsa_err_t *err)
{
    int        rc;
    char       path[PATH_MAX];
    dsa_buf_t  text;

    if (dsa_file_path(path, dir, dsa_strz("config.json"), err) != DSA_OK) {
        return DSA_ERROR;
    }

    memset(&text, 0, sizeof(dsa_buf_t));

    rc = dsa_file_read(path, DSA_MODEL_CONFIG_MAX, &text, err);

    if (rc == DSA_OK) {
        rc = dsa_model_config_parse(config, path, text.data, text.len, err);
    }

    dsa_buf_free(&text);

    return rc == DSA_OK ? dsa_model_config_beside(config, dir, NULL, err)
                        : rc;
}


int
dsa_model_config_beside(dsa_model_config_t *config, const char *dir,
    dsa_buf_t *text, dsa_err_t *err)
{
    uint32_t                 i;
    dsa_generation_config_t  generation;

    if (!dsa_config_quantized(config)
        && dsa_config_formats(config, dir, text, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (dsa_generation_config_read(&generation, dir, err) != DSA_OK) {
        return DSA_ERROR;
    }

    for (i = 0; i < generation.ends.n; i++) {
        if (generation.ends.id[i] >= config->vocab_size) {
            return dsa_error(err, "%s/generation_config.json: "
                             "\"eos_token_id\" has %u; expected ids less than "
                             "vocab_size, which is %u", dir,
                             generation.ends.id[i], config->vocab_size);
        }

        if (dsa_ends_add(&config->ends, generation.ends.id[i]) != DSA_OK) {
            return dsa_error(err, "%s: \"eos_token_id\" of config.json and "
                             "generation_config.json have more than %d ids "
                             "together", dir, DSA_MODEL_ENDS);
        }
    }

    return DSA_OK;
}


void
dsa_model_config_resize(dsa_model_config_t *config, uint32_t n)
{
    uint32_t             i;
    dsa_layer_config_t  *layer;

    for (i = config->num_hidden_layers; i < n; i++) {
        layer = &config->layer[i];
        *layer = config->layer[config->num_hidden_layers - 1];

        if (layer->selection != DSA_SELECTION_SHARED) {
            layer->from = (uint16_t) i;
        }
    }

    config->num_hidden_layers = n;

    if (config->first_k_dense_replace > n) {
        config->first_k_dense_replace = n;
    }
}


int
dsa_model_config_parse(dsa_model_config_t *config, const char *name,
    const void *json, size_t len, dsa_err_t *err)
{
    int           rc;
    dsa_fields_t  top;

    memset(config, 0, sizeof(dsa_model_config_t));

    rc = dsa_fields_open(&top, name, dsa_str(json, len), err);

    if (rc == DSA_OK) {
        rc = dsa_config_top(config, &top);
    }

    dsa_fields_close(&top);

    return rc;
}


static int
dsa_config_top(dsa_model_config_t *config, const dsa_fields_t *top)
{
    int64_t                    n;
    uint32_t                   i;
    const dsa_json_t          *heads;
    const dsa_model_family_t  *family;

    /*
     * Check the kind of the model first, because a file of another kind also
     * lacks fields, and an error about a missing field would mislead.
     */

    family = dsa_config_family(top);

    if (family == NULL) {
        return DSA_ERROR;
    }

    config->prompt = family->prompt;

    if (dsa_config_integers_of(config, top, dsa_config_integers,
                               dsa_nelts(dsa_config_integers))
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    heads = dsa_field(top, "num_key_value_heads");

    if (heads != NULL
        && (dsa_json_int(heads, &n) != DSA_OK
            || n != (int64_t) config->num_attention_heads))
    {
        return dsa_field_reject(top, "num_key_value_heads", heads,
                                "the value of num_attention_heads");
    }

    for (i = 0; i < dsa_nelts(dsa_config_fixeds); i++) {
        if (dsa_config_fixed(top, &dsa_config_fixeds[i]) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    if (dsa_ends_read(&config->ends, top) != DSA_OK
        || dsa_config_norms(config, family, top) != DSA_OK
        || dsa_config_attention(config, family, top) != DSA_OK
        || dsa_config_quantization(config, top) != DSA_OK
        || dsa_field_flag(top, "index_share_for_mtp_iteration", 0,
                          &config->index_share_for_mtp_iteration)
           != DSA_OK
        || dsa_config_check(config, top) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_config_layers(config, family, top);
}


static int
dsa_config_norms(dsa_model_config_t *config, const dsa_model_family_t *family,
    const dsa_fields_t *top)
{
    double  value;

    if (dsa_field_bool(top, "norm_topk_prob", &config->norm_topk_prob)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (dsa_field_number(top, "rms_norm_eps", 1e-12, 0.1, &value) != DSA_OK) {
        return DSA_ERROR;
    }

    config->rms_norm_eps = (float) value;
    config->latent_norm_eps = family->latent_eps != 0 ? family->latent_eps
                                                      : config->rms_norm_eps;

    if (dsa_field_number(top, "routed_scaling_factor", 1e-6, 1e6, &value)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    config->routed_scaling_factor = (float) value;

    return DSA_OK;
}


static int
dsa_config_attention(dsa_model_config_t *config,
    const dsa_model_family_t *family, const dsa_fields_t *top)
{
    if (dsa_config_rope(config, top) != DSA_OK) {
        return DSA_ERROR;
    }

    config->softmax_scale = dsa_config_softmax(config);

    if (!family->indexed) {
        return dsa_config_integers_of(config, top, dsa_config_dense,
                                      dsa_nelts(dsa_config_dense));
    }

    config->index_norm_eps = DSA_CONFIG_INDEX_EPS;

    if (dsa_field_flag(top, "indexer_rope_interleave", family->interleaved,
                       &config->index_rope_interleaved)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_config_integers_of(config, top, dsa_config_indexer,
                                  dsa_nelts(dsa_config_indexer));
}


static int
dsa_config_integers_of(dsa_model_config_t *config, const dsa_fields_t *top,
    const dsa_config_integer_t *field, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (dsa_config_integer(top, &field[i], config) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/* Checks combinations of fields. */

static int
dsa_config_check(const dsa_model_config_t *c, const dsa_fields_t *top)
{
    if (c->first_k_dense_replace > c->num_hidden_layers) {
        return dsa_config_conflict(top, "first_k_dense_replace",
                                   c->first_k_dense_replace,
                                   "at most num_hidden_layers",
                                   c->num_hidden_layers);
    }

    if (dsa_config_check_experts(c, top) != DSA_OK
        || (c->format[DSA_MATRICES_EXPERTS] == DSA_FORMAT_INT4
            && dsa_config_check_int4(c, top->file, top->err) != DSA_OK))
    {
        return DSA_ERROR;
    }

    if (c->qk_rope_head_dim % 2 != 0) {
        return dsa_error(top->err, "%s: \"qk_rope_head_dim\" is %u; expected "
                         "an even number", top->file, c->qk_rope_head_dim);
    }

    if (c->index_head_dim != 0
        && dsa_config_check_indexer(c, top) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (c->bos_token_id != DSA_MODEL_NO_TOKEN
        && c->bos_token_id >= c->vocab_size)
    {
        return dsa_config_conflict(top, "bos_token_id", c->bos_token_id,
                                   "less than vocab_size", c->vocab_size);
    }

    return dsa_config_check_ends(c, top);
}


static int
dsa_config_check_indexer(const dsa_model_config_t *c, const dsa_fields_t *top)
{
    /* the Hadamard transform of index vectors needs a power of two */

    if ((c->index_head_dim & (c->index_head_dim - 1)) != 0) {
        return dsa_error(top->err, "%s: \"index_head_dim\" is %u; expected a "
                         "power of two", top->file, c->index_head_dim);
    }

    if (c->index_head_dim < c->qk_rope_head_dim) {
        return dsa_config_conflict(top, "index_head_dim", c->index_head_dim,
                                   "at least qk_rope_head_dim",
                                   c->qk_rope_head_dim);
    }

    return DSA_OK;
}


static int
dsa_config_check_ends(const dsa_model_config_t *c, const dsa_fields_t *top)
{
    uint32_t  i;

    for (i = 0; i < c->ends.n; i++) {
        if (c->ends.id[i] >= c->vocab_size) {
            return dsa_config_conflict(top, "eos_token_id", c->ends.id[i],
                                       "less than vocab_size", c->vocab_size);
        }
    }

    return DSA_OK;
}


static int
dsa_config_check_experts(const dsa_model_config_t *c, const dsa_fields_t *top)
{
    uint32_t  group;

    if (c->n_routed_experts % c->n_group != 0) {
        return dsa_config_conflict(top, "n_group", c->n_group,
                                   "a divisor of n_routed_experts",
                                   c->n_routed_experts);
    }

    group = c->n_routed_experts / c->n_group;

    /* the score of a group is the sum of its two best experts */

    if (group < 2) {
        return dsa_config_conflict(top, "n_group", c->n_group,
                                   "at most half of n_routed_experts",
                                   c->n_routed_experts);
    }

    if (c->topk_group > c->n_group) {
        return dsa_config_conflict(top, "topk_group", c->topk_group,
                                   "at most n_group", c->n_group);
    }

    if (c->num_experts_per_tok > c->topk_group * group) {
        return dsa_config_conflict(top, "num_experts_per_tok",
                                   c->num_experts_per_tok,
                                   "at most the experts of topk_group groups",
                                   c->topk_group * group);
    }

    return DSA_OK;
}


/*
 * Published checkpoints have rope_theta and rope_scaling, of "type" or
 * "rope_type" yarn; files written by transformers 5 have rope_parameters,
 * which contains rope_theta as well.
 */

static int
dsa_config_rope(dsa_model_config_t *config, const dsa_fields_t *top)
{
    const char        *field;
    dsa_fields_t       rope;
    const dsa_json_t  *type, *other;

    if (dsa_field(top, "rope_scaling") != NULL
        && dsa_field(top, "rope_parameters") != NULL)
    {
        return dsa_error(top->err, "%s: both \"rope_scaling\" and "
                         "\"rope_parameters\" are present; expected one of "
                         "them", top->file);
    }

    if (dsa_field(top, "rope_parameters") != NULL) {
        if (dsa_fields_inner(&rope, top, "rope_parameters",
                             "rope_parameters.")
            != DSA_OK)
        {
            return DSA_ERROR;
        }

    } else if (dsa_fields_inner(&rope, top, "rope_scaling", "rope_scaling.")
               != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (dsa_config_rope_theta(config, top, &rope) != DSA_OK) {
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
    type = dsa_field(&rope, "rope_type");
    other = dsa_field(&rope, "type");

    if (type == NULL) {
        field = "type";
        type = other;
        other = NULL;
    }

    if (!dsa_field_is(&rope, field, "yarn")
        && !dsa_field_is(&rope, field, "default"))
    {
        return dsa_field_reject(&rope, field, type,
                                "\"yarn\" or \"default\"");
    }

    if (other != NULL && (other->type != DSA_JSON_STRING
                          || !dsa_str_eq(other->text, type->text)))
    {
        return dsa_field_reject(&rope, "type", other,
                                "the value of rope_type");
    }

    if (dsa_field_is(&rope, field, "yarn")
        && dsa_config_yarn(config, &rope) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_fields_known(&rope, dsa_config_rope_names);
}


static int
dsa_config_rope_theta(dsa_model_config_t *config, const dsa_fields_t *top,
    const dsa_fields_t *rope)
{
    if (dsa_field(rope, "rope_theta") == NULL) {
        return dsa_field_number(top, "rope_theta", 1.001, 1e12,
                                &config->rope_theta);
    }

    if (dsa_field(top, "rope_theta") != NULL) {
        return dsa_error(top->err, "%s: both \"rope_theta\" and "
                         "\"%srope_theta\" are present; expected one of them",
                         top->file, rope->prefix);
    }

    return dsa_field_number(rope, "rope_theta", 1.001, 1e12,
                            &config->rope_theta);
}


static int
dsa_config_yarn(dsa_model_config_t *config, const dsa_fields_t *rope)
{
    uint32_t  i;

    for (i = 0; i < dsa_nelts(dsa_config_yarns); i++) {
        if (dsa_config_number(rope, &dsa_config_yarns[i], config) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    if (config->yarn_beta_fast <= config->yarn_beta_slow) {
        return dsa_error(rope->err, "%s: \"%sbeta_fast\" is %g; expected more "
                         "than beta_slow, which is %g", rope->file,
                         rope->prefix, config->yarn_beta_fast,
                         config->yarn_beta_slow);
    }

    return dsa_field_integer(rope, "original_max_position_embeddings", 1,
                             1 << 24, &config->yarn_original_max_position);
}


/*
 * The factor of attention scores: 1 / sqrt(nope + rope), with YaRN times
 * (0.1 mscale_all_dim ln(factor) + 1)^2, as in the code of DeepSeek-V2.
 */

static float
dsa_config_softmax(const dsa_model_config_t *config)
{
    double  m;

    m = config->yarn_factor > 1
        ? 0.1 * config->yarn_mscale_all_dim * log(config->yarn_factor) + 1 : 1;

    return (float) (m * m / sqrt(config->qk_nope_head_dim
                                 + config->qk_rope_head_dim));
}


/* Returns 1 if config.json has a quantization_config. */

static int
dsa_config_quantized(const dsa_model_config_t *config)
{
    uint32_t  i;

    for (i = 0; i < DSA_MATRICES; i++) {
        if (config->format[i] != DSA_FORMAT_FLOAT) {
            return 1;
        }
    }

    return 0;
}


static int
dsa_config_integer(const dsa_fields_t *f, const dsa_config_integer_t *field,
    dsa_model_config_t *config)
{
    uint32_t  *out;

    out = (uint32_t *) ((char *) config + field->offset);

    if (field->optional && dsa_field(f, field->name) == NULL) {
        *out = field->absent;
        return DSA_OK;
    }

    return dsa_field_integer(f, field->name, field->min, field->max, out);
}


static int
dsa_config_number(const dsa_fields_t *f, const dsa_config_number_t *field,
    dsa_model_config_t *config)
{
    double  *out;

    out = (double *) ((char *) config + field->offset);

    if (field->optional && dsa_field(f, field->name) == NULL) {
        *out = field->absent;
        return DSA_OK;
    }

    return dsa_field_number(f, field->name, field->min, field->max, out);
}


int
dsa_config_fixed(const dsa_fields_t *f, const dsa_config_fixed_t *field)
{
    if (field->optional && dsa_field(f, field->name) == NULL) {
        return DSA_OK;
    }

    return dsa_field_equals(f, field->name, field->json);
}


/*
 * Reports a field.  expected ends with the name of another field, whose value
 * is bound.
 */

static int
dsa_config_conflict(const dsa_fields_t *f, const char *field, uint32_t value,
    const char *expected, uint32_t bound)
{
    return dsa_error(f->err, "%s: \"%s\" is %u; expected %s, which is %u",
                     f->file, field, value, expected, bound);
}
