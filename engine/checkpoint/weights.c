
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/file.h"
#include "base/map.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/weights.h"


#define DSA_WEIGHTS_BLOCK           128         /* weight_block_size */
#define DSA_WEIGHTS_MAX_CONFIG      (1024 * 1024)
#define DSA_WEIGHTS_MAX_INDEX       (256 * 1024 * 1024)
#define DSA_WEIGHTS_MAX_SHARDS      16384
#define DSA_WEIGHTS_SAMPLE          4096        /* bytes of a tensor */

#define DSA_WEIGHTS_INDEX           "model.safetensors.index.json"
#define DSA_WEIGHTS_SINGLE          "model.safetensors"


typedef enum {
    DSA_WEIGHTS_VECTOR = 0,         /* F32, BF16 */
    DSA_WEIGHTS_MATRIX,             /* F32, BF16 */
    DSA_WEIGHTS_LINEAR              /* F32, BF16, F8_E4M3 with its scale */
} dsa_weights_kind_e;


/* What dsa_weights_t is the face of. */

typedef struct {
    dsa_weights_t               weights;        /* first: they share the
                                                   address */
    dsa_st_t                  **shard;
    uint32_t                    n_shards;
    dsa_mlp_t                  *experts;        /* of all layers */
} dsa_checkpoint_t;


/* A tensor's place over all shards. */

typedef struct {
    const dsa_st_tensor_t      *tensor;
    uint32_t                    known;
} dsa_weights_entry_t;


typedef struct {
    dsa_checkpoint_t           *ck;
    const char                 *dir;
    dsa_err_t                  *err;
    dsa_map_t                   names;          /* into entry */
    dsa_weights_entry_t        *entry;
    uint32_t                    n;

    char                        prefix[128];    /* of the names being taken */
    uint32_t                    skip;           /* 1: mark as known only */

    char                        fault[384];     /* the first one */
    uint32_t                    faults;
} dsa_loader_t;


/* weight_map of the index: which shards there are, and what is said of them. */

typedef struct {
    dsa_arena_t                *arena;
    const dsa_json_t           *map;
    dsa_map_t                   shards;         /* file name to number */
    dsa_str_t                  *shard;          /* sorted */
    uint32_t                    n;
} dsa_index_t;


static int dsa_weights_load(dsa_loader_t *l);
static int dsa_weights_shards(dsa_loader_t *l);
static int dsa_weights_index(dsa_loader_t *l, const char *path,
    dsa_index_t *index);
static int dsa_weights_index_names(dsa_loader_t *l, dsa_index_t *index);
static int dsa_weights_index_open(dsa_loader_t *l, const dsa_index_t *index);
static int dsa_weights_index_match(dsa_loader_t *l, const dsa_index_t *index);
static int dsa_weights_compare(const void *one, const void *two);
static int dsa_weights_open_shard(dsa_loader_t *l, uint32_t i, dsa_str_t name,
    dsa_err_t *why);
static int dsa_weights_entries(dsa_loader_t *l);
static int dsa_weights_model(dsa_loader_t *l);
static void dsa_weights_layer(dsa_loader_t *l, dsa_layer_t *layer,
    uint32_t n, dsa_mlp_t *experts);
static void dsa_weights_mtp_extras(dsa_loader_t *l);
static void dsa_weights_mlp(dsa_loader_t *l, dsa_mlp_t *mlp, uint32_t inter);
static void dsa_weights_prefix(dsa_loader_t *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void dsa_weights_vector(dsa_loader_t *l, dsa_tensor_t *t,
    const char *name, uint32_t cols);
static void dsa_weights_matrix(dsa_loader_t *l, dsa_tensor_t *t,
    const char *name, uint32_t rows, uint32_t cols);
static void dsa_weights_linear(dsa_loader_t *l, dsa_tensor_t *t,
    const char *name, uint32_t rows, uint32_t cols);
static void dsa_weights_take(dsa_loader_t *l, dsa_tensor_t *t,
    const char *name, dsa_weights_kind_e kind, uint32_t rows, uint32_t cols);
static void dsa_weights_scale(dsa_loader_t *l, dsa_tensor_t *t,
    const char *name, const dsa_st_tensor_t *scale);
static const dsa_st_tensor_t *dsa_weights_find(dsa_loader_t *l,
    const char *name);
static void dsa_weights_unknown(dsa_loader_t *l);
static void dsa_weights_fault(dsa_loader_t *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void dsa_weights_misshapen(dsa_loader_t *l, const dsa_st_tensor_t *s,
    const char *dtypes, uint32_t rows, uint32_t cols);
static int dsa_weights_path(const char *dir, dsa_str_t name, char *path,
    dsa_err_t *err);
static int dsa_weights_fingerprint(dsa_loader_t *l, const dsa_buf_t *config);


dsa_weights_t *
dsa_weights_open(const char *dir, dsa_err_t *err)
{
    int           rc;
    dsa_loader_t  l;

    memset(&l, 0, sizeof(dsa_loader_t));

    l.dir = dir;
    l.err = err;

    l.ck = calloc(1, sizeof(dsa_checkpoint_t));
    if (l.ck == NULL) {
        (void) dsa_error(err, "%s: no memory to load it", dir);
        return NULL;
    }

    rc = dsa_weights_load(&l);

    dsa_map_free(&l.names);
    free(l.entry);

    if (rc != DSA_OK) {
        dsa_weights_close(&l.ck->weights);
        return NULL;
    }

    return &l.ck->weights;
}


void
dsa_weights_close(dsa_weights_t *w)
{
    uint32_t           i;
    dsa_checkpoint_t  *ck;

    if (w == NULL) {
        return;
    }

    ck = (dsa_checkpoint_t *) w;

    for (i = 0; i < ck->n_shards; i++) {
        dsa_st_close(ck->shard[i]);
    }

    free(ck->shard);
    free(ck->experts);
    free(w->layer);
    free(ck);
}


static int
dsa_weights_load(dsa_loader_t *l)
{
    int        rc;
    char       path[PATH_MAX];
    dsa_buf_t  config;

    static const dsa_str_t  name = dsa_string("config.json");

    if (dsa_weights_path(l->dir, name, path, l->err) != DSA_OK) {
        return DSA_ERROR;
    }

    memset(&config, 0, sizeof(dsa_buf_t));

    rc = DSA_ERROR;

    if (dsa_file_read(path, DSA_WEIGHTS_MAX_CONFIG, &config, l->err) != DSA_OK
        || dsa_model_config_parse(&l->ck->weights.config, path, config.data,
                           config.len, l->err) != DSA_OK
        || dsa_weights_shards(l) != DSA_OK
        || dsa_weights_entries(l) != DSA_OK
        || dsa_weights_model(l) != DSA_OK)
    {
        goto done;
    }

    dsa_weights_unknown(l);

    if (l->faults > 1) {
        rc = dsa_error(l->err, "%s: %s (and %u more %s missing, misshapen or "
                       "unknown)", l->dir, l->fault, l->faults - 1,
                       l->faults == 2 ? "tensor is" : "tensors are");
        goto done;
    }

    if (l->faults == 1) {
        rc = dsa_error(l->err, "%s: %s", l->dir, l->fault);
        goto done;
    }

    rc = dsa_weights_fingerprint(l, &config);

done:

    dsa_buf_free(&config);

    return rc;
}


/* Opens the files: those that the index names, or the single one. */

static int
dsa_weights_shards(dsa_loader_t *l)
{
    int          rc;
    char         path[PATH_MAX];
    dsa_index_t  index;

    static const dsa_str_t  index_name = dsa_string(DSA_WEIGHTS_INDEX);
    static const dsa_str_t  single_name = dsa_string(DSA_WEIGHTS_SINGLE);

    if (dsa_weights_path(l->dir, index_name, path, l->err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (access(path, F_OK) == 0) {
        memset(&index, 0, sizeof(dsa_index_t));

        rc = dsa_weights_index(l, path, &index);

        dsa_map_free(&index.shards);
        free(index.shard);
        dsa_arena_destroy(index.arena);

        return rc;
    }

    if (dsa_weights_path(l->dir, single_name, path, l->err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (access(path, F_OK) != 0) {
        return dsa_error(l->err, "%s: no weights: neither %s nor %s is there",
                         l->dir, DSA_WEIGHTS_INDEX, DSA_WEIGHTS_SINGLE);
    }

    l->ck->shard = calloc(1, sizeof(dsa_st_t *));
    if (l->ck->shard == NULL) {
        return dsa_error(l->err, "%s: no memory to load it", l->dir);
    }

    return dsa_weights_open_shard(l, 0, single_name, l->err);
}


static int
dsa_weights_index(dsa_loader_t *l, const char *path, dsa_index_t *index)
{
    int          rc;
    dsa_err_t    why;
    dsa_buf_t    text;
    dsa_json_t  *root;

    memset(&text, 0, sizeof(dsa_buf_t));

    rc = dsa_file_read(path, DSA_WEIGHTS_MAX_INDEX, &text, l->err);
    if (rc != DSA_OK) {
        goto done;
    }

    rc = DSA_ERROR;

    /* an entry is some 100 bytes of text and two nodes' worth of tree */

    index->arena = dsa_arena_create(8 * text.len + 1024 * 1024);
    if (index->arena == NULL) {
        (void) dsa_error(l->err, "%s: no memory to read it", path);
        goto done;
    }

    root = dsa_json_parse(index->arena, text.data, text.len, 8, &why);
    if (root == NULL) {
        (void) dsa_error(l->err, "%s: %s", path, why.text);
        goto done;
    }

    index->map = dsa_json_get(root, "weight_map");

    if (index->map == NULL || index->map->type != DSA_JSON_OBJECT
        || index->map->n == 0)
    {
        (void) dsa_error(l->err, "%s: \"weight_map\" is missing or empty, an "
                         "object of tensor names and file names is accepted",
                         path);
        goto done;
    }

    if (dsa_weights_index_names(l, index) != DSA_OK
        || dsa_weights_index_open(l, index) != DSA_OK
        || dsa_weights_index_match(l, index) != DSA_OK)
    {
        goto done;
    }

    rc = DSA_OK;

done:

    dsa_buf_free(&text);

    return rc;
}


/* The files' names, each once, sorted, and their numbers. */

static int
dsa_weights_index_names(dsa_loader_t *l, dsa_index_t *index)
{
    size_t             j;
    uint32_t           i;
    dsa_map_t         *names;
    const dsa_json_t  *v;

    names = &index->shards;

    index->shard = calloc(DSA_WEIGHTS_MAX_SHARDS, sizeof(dsa_str_t));
    if (index->shard == NULL) {
        return dsa_error(l->err, "%s: no memory to load it", l->dir);
    }

    for (v = index->map->first; v != NULL; v = v->next) {

        if (v->type != DSA_JSON_STRING || v->text.len == 0
            || v->text.len > NAME_MAX || v->text.data[0] == '.')
        {
            goto invalid;
        }

        /* a file of this directory, and of no other */

        for (j = 0; j < v->text.len; j++) {
            if (v->text.data[j] == '/' || (uint8_t) v->text.data[j] < 0x20) {
                goto invalid;
            }
        }

        switch (dsa_map_add(names, v->text, index->n)) {

        case DSA_OK:
            if (index->n == DSA_WEIGHTS_MAX_SHARDS) {
                return dsa_error(l->err, "%s/%s: it names more files than %d",
                                 l->dir, DSA_WEIGHTS_INDEX,
                                 DSA_WEIGHTS_MAX_SHARDS);
            }

            index->shard[index->n++] = v->text;
            break;

        case DSA_AGAIN:
            break;

        default:
            return dsa_error(l->err, "%s: no memory to load it", l->dir);
        }
    }

    qsort(index->shard, index->n, sizeof(dsa_str_t), dsa_weights_compare);

    dsa_map_free(names);

    for (i = 0; i < index->n; i++) {
        if (dsa_map_add(names, index->shard[i], i) == DSA_ERROR) {
            return dsa_error(l->err, "%s: no memory to load it", l->dir);
        }
    }

    return DSA_OK;

invalid:

    return dsa_error(l->err, "%s/%s: tensor \"%.*s\" has no file name, the "
                     "name of a file in this directory is accepted", l->dir,
                     DSA_WEIGHTS_INDEX,
                     v->key.len < 200 ? (int) v->key.len : 200, v->key.data);
}


static int
dsa_weights_index_open(dsa_loader_t *l, const dsa_index_t *index)
{
    uint32_t   i, absent, first;
    char       path[PATH_MAX];
    dsa_err_t  why;

    absent = 0;
    first = 0;

    for (i = 0; i < index->n; i++) {
        if (dsa_weights_path(l->dir, index->shard[i], path, l->err) != DSA_OK)
        {
            return DSA_ERROR;
        }

        if (access(path, F_OK) != 0) {
            if (absent++ == 0) {
                first = i;
            }
        }
    }

    if (absent != 0) {
        (void) snprintf(why.text, sizeof(why.text), " (and %u more)",
                        absent - 1);

        return dsa_error(l->err, "%s: file \"%.*s\" is missing, which %s "
                         "names%s", l->dir, (int) index->shard[first].len,
                         index->shard[first].data, DSA_WEIGHTS_INDEX,
                         absent > 1 ? why.text : "");
    }

    l->ck->shard = calloc(index->n, sizeof(dsa_st_t *));
    if (l->ck->shard == NULL) {
        return dsa_error(l->err, "%s: no memory to load it", l->dir);
    }

    for (i = 0; i < index->n; i++) {
        if (dsa_weights_open_shard(l, i, index->shard[i], l->err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/* Each tensor is where the index says. */

static int
dsa_weights_index_match(dsa_loader_t *l, const dsa_index_t *index)
{
    uint32_t           faults;
    uint64_t          *shard;
    dsa_err_t          why;
    const dsa_json_t  *v, *first;

    faults = 0;
    first = NULL;

    for (v = index->map->first; v != NULL; v = v->next) {
        shard = dsa_map_find(&index->shards, v->text);

        if (dsa_st_find(l->ck->shard[*shard], v->key) == NULL) {
            if (faults++ == 0) {
                first = v;
            }
        }
    }

    if (faults == 0) {
        return DSA_OK;
    }

    (void) snprintf(why.text, sizeof(why.text), " (and %u more such tensors)",
                    faults - 1);

    return dsa_error(l->err, "%s: tensor \"%.*s\" is not in file \"%.*s\", "
                     "where %s has it%s", l->dir,
                     first->key.len < 200 ? (int) first->key.len : 200,
                     first->key.data, (int) first->text.len,
                     first->text.data, DSA_WEIGHTS_INDEX,
                     faults > 1 ? why.text : "");
}


static int
dsa_weights_compare(const void *one, const void *two)
{
    int               rc;
    const dsa_str_t  *a, *b;

    a = one;
    b = two;

    rc = memcmp(a->data, b->data, a->len < b->len ? a->len : b->len);

    return rc != 0 ? rc : (a->len > b->len) - (a->len < b->len);
}


static int
dsa_weights_open_shard(dsa_loader_t *l, uint32_t i, dsa_str_t name,
    dsa_err_t *err)
{
    char  path[PATH_MAX];

    if (dsa_weights_path(l->dir, name, path, err) != DSA_OK) {
        return DSA_ERROR;
    }

    l->ck->shard[i] = dsa_st_open(path, err);

    if (l->ck->shard[i] == NULL) {
        return DSA_ERROR;
    }

    l->ck->n_shards = i + 1;

    return DSA_OK;
}


static int
dsa_weights_entries(dsa_loader_t *l)
{
    uint32_t                 i, j, n;
    uint64_t                 total;
    const dsa_st_tensor_t   *t;

    total = 0;

    for (i = 0; i < l->ck->n_shards; i++) {
        total += dsa_st_count(l->ck->shard[i]);
    }

    if (total > INT32_MAX) {
        return dsa_error(l->err, "%s: too many tensors", l->dir);
    }

    l->entry = calloc((size_t) total + 1, sizeof(dsa_weights_entry_t));
    if (l->entry == NULL) {
        return dsa_error(l->err, "%s: no memory to load it", l->dir);
    }

    for (i = 0; i < l->ck->n_shards; i++) {
        n = dsa_st_count(l->ck->shard[i]);

        for (j = 0; j < n; j++) {
            t = dsa_st_at(l->ck->shard[i], j);

            switch (dsa_map_add(&l->names, t->name, l->n)) {

            case DSA_OK:
                l->entry[l->n++].tensor = t;
                break;

            case DSA_AGAIN:
                return dsa_error(l->err, "%s: tensor \"%.*s\" is in two files",
                                 l->dir, (int) t->name.len, t->name.data);

            default:
                return dsa_error(l->err, "%s: no memory to load it", l->dir);
            }
        }
    }

    return DSA_OK;
}


/* Walks the names that a model of this config has. */

static int
dsa_weights_model(dsa_loader_t *l)
{
    uint32_t             n, moe;
    dsa_mlp_t           *experts, *scratch;
    dsa_layer_t          ignored;
    dsa_model_config_t  *s;
    dsa_weights_t       *w;

    w = &l->ck->weights;
    s = &w->config;

    w->layer = calloc(s->num_hidden_layers, sizeof(dsa_layer_t));
    if (w->layer == NULL) {
        return dsa_error(l->err, "%s: no memory to load it", l->dir);
    }

    moe = 0;

    for (n = 0; n < s->num_hidden_layers; n++) {
        w->layer[n].moe = n >= s->first_k_dense_replace
                          && n % s->moe_layer_freq == 0;
        moe += w->layer[n].moe;
    }

    /* one layer's more, for those that are only known */

    l->ck->experts = calloc((size_t) (moe + 1) * s->n_routed_experts,
                            sizeof(dsa_mlp_t));
    if (l->ck->experts == NULL) {
        return dsa_error(l->err, "%s: no memory to load it", l->dir);
    }

    scratch = l->ck->experts;
    experts = scratch + s->n_routed_experts;

    dsa_weights_prefix(l, "model.");
    dsa_weights_matrix(l, &w->embed, "embed_tokens", s->vocab_size,
                       s->hidden_size);

    for (n = 0; n < s->num_hidden_layers; n++) {
        dsa_weights_layer(l, &w->layer[n], n, experts);

        if (w->layer[n].moe) {
            experts += s->n_routed_experts;
        }
    }

    dsa_weights_prefix(l, "model.");
    dsa_weights_vector(l, &w->norm, "norm.weight", s->hidden_size);

    dsa_weights_prefix(l, "%s", "");
    dsa_weights_matrix(l, &w->head, "lm_head", s->vocab_size, s->hidden_size);

    l->skip = 1;

    for (n = s->num_hidden_layers;
         n < s->num_hidden_layers + s->num_nextn_predict_layers;
         n++)
    {
        memset(&ignored, 0, sizeof(dsa_layer_t));
        ignored.moe = 1;

        dsa_weights_layer(l, &ignored, n, scratch);

        dsa_weights_prefix(l, "model.layers.%u.", n);
        dsa_weights_mtp_extras(l);
    }

    return DSA_OK;
}


static void
dsa_weights_layer(dsa_loader_t *l, dsa_layer_t *layer, uint32_t n,
    dsa_mlp_t *experts)
{
    uint32_t                   i;
    const dsa_model_config_t  *s;

    s = &l->ck->weights.config;

    dsa_weights_prefix(l, "model.layers.%u.", n);

    dsa_weights_vector(l, &layer->input_layernorm, "input_layernorm.weight",
                       s->hidden_size);
    dsa_weights_vector(l, &layer->post_attention_layernorm,
                       "post_attention_layernorm.weight", s->hidden_size);

    dsa_weights_prefix(l, "model.layers.%u.self_attn.", n);

    dsa_weights_linear(l, &layer->q_a_proj, "q_a_proj", s->q_lora_rank,
                       s->hidden_size);
    dsa_weights_vector(l, &layer->q_a_layernorm, "q_a_layernorm.weight",
                       s->q_lora_rank);
    dsa_weights_linear(l, &layer->q_b_proj, "q_b_proj",
                       s->num_attention_heads
                       * (s->qk_nope_head_dim + s->qk_rope_head_dim),
                       s->q_lora_rank);
    dsa_weights_linear(l, &layer->kv_a_proj_with_mqa, "kv_a_proj_with_mqa",
                       s->kv_lora_rank + s->qk_rope_head_dim, s->hidden_size);
    dsa_weights_vector(l, &layer->kv_a_layernorm, "kv_a_layernorm.weight",
                       s->kv_lora_rank);
    dsa_weights_linear(l, &layer->kv_b_proj, "kv_b_proj",
                       s->num_attention_heads
                       * (s->qk_nope_head_dim + s->v_head_dim),
                       s->kv_lora_rank);
    dsa_weights_linear(l, &layer->o_proj, "o_proj", s->hidden_size,
                       s->num_attention_heads * s->v_head_dim);

    dsa_weights_prefix(l, "model.layers.%u.self_attn.indexer.", n);

    dsa_weights_linear(l, &layer->index_wq_b, "wq_b",
                       s->index_n_heads * s->index_head_dim, s->q_lora_rank);
    dsa_weights_linear(l, &layer->index_wk, "wk", s->index_head_dim,
                       s->hidden_size);
    dsa_weights_vector(l, &layer->index_k_norm_weight, "k_norm.weight",
                       s->index_head_dim);
    dsa_weights_vector(l, &layer->index_k_norm_bias, "k_norm.bias",
                       s->index_head_dim);
    dsa_weights_matrix(l, &layer->index_weights_proj, "weights_proj",
                       s->index_n_heads, s->hidden_size);

    dsa_weights_prefix(l, "model.layers.%u.mlp.", n);

    if (!layer->moe) {
        dsa_weights_mlp(l, &layer->mlp, s->intermediate_size);
        return;
    }

    dsa_weights_matrix(l, &layer->router, "gate", s->n_routed_experts,
                       s->hidden_size);
    dsa_weights_vector(l, &layer->router_bias, "gate.e_score_correction_bias",
                       s->n_routed_experts);

    dsa_weights_prefix(l, "model.layers.%u.mlp.shared_experts.", n);
    dsa_weights_mlp(l, &layer->shared,
                    s->n_shared_experts * s->moe_intermediate_size);

    layer->expert = experts;

    for (i = 0; i < s->n_routed_experts; i++) {
        dsa_weights_prefix(l, "model.layers.%u.mlp.experts.%u.", n, i);
        dsa_weights_mlp(l, &experts[i], s->moe_intermediate_size);
    }
}


/* What a multi-token prediction layer has beside a decoder layer's tensors. */

static void
dsa_weights_mtp_extras(dsa_loader_t *l)
{
    uint32_t      i;
    dsa_tensor_t  ignored;

    static const char  *linears[] = {
        "embed_tokens", "eh_proj", "shared_head.head"
    };
    static const char  *vectors[] = {
        "enorm.weight", "hnorm.weight", "shared_head.norm.weight"
    };

    for (i = 0; i < 3; i++) {
        dsa_weights_linear(l, &ignored, linears[i], 1, 1);
        dsa_weights_vector(l, &ignored, vectors[i], 1);
    }
}


static void
dsa_weights_mlp(dsa_loader_t *l, dsa_mlp_t *mlp, uint32_t inter)
{
    uint32_t  hidden;

    hidden = l->ck->weights.config.hidden_size;

    dsa_weights_linear(l, &mlp->gate, "gate_proj", inter, hidden);
    dsa_weights_linear(l, &mlp->up, "up_proj", inter, hidden);
    dsa_weights_linear(l, &mlp->down, "down_proj", hidden, inter);
}


static void
dsa_weights_prefix(dsa_loader_t *l, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(l->prefix, sizeof(l->prefix), fmt, args);
    va_end(args);
}


static void
dsa_weights_vector(dsa_loader_t *l, dsa_tensor_t *t, const char *name,
    uint32_t cols)
{
    dsa_weights_take(l, t, name, DSA_WEIGHTS_VECTOR, 1, cols);
}


static void
dsa_weights_matrix(dsa_loader_t *l, dsa_tensor_t *t, const char *name,
    uint32_t rows, uint32_t cols)
{
    dsa_weights_take(l, t, name, DSA_WEIGHTS_MATRIX, rows, cols);
}


static void
dsa_weights_linear(dsa_loader_t *l, dsa_tensor_t *t, const char *name,
    uint32_t rows, uint32_t cols)
{
    dsa_weights_take(l, t, name, DSA_WEIGHTS_LINEAR, rows, cols);
}


/* A vector's name is whole, a matrix's is that of its module. */

static void
dsa_weights_take(dsa_loader_t *l, dsa_tensor_t *t, const char *name,
    dsa_weights_kind_e kind, uint32_t rows, uint32_t cols)
{
    int                     fits;
    char                    full[256], scale_name[256];
    const char             *dtypes;
    const dsa_st_tensor_t  *s, *scale;

    (void) snprintf(full, sizeof(full), "%s%s%s", l->prefix, name,
                    kind == DSA_WEIGHTS_VECTOR ? "" : ".weight");
    (void) snprintf(scale_name, sizeof(scale_name), "%s%s.weight_scale_inv",
                    l->prefix, name);

    s = dsa_weights_find(l, full);
    scale = kind != DSA_WEIGHTS_VECTOR ? dsa_weights_find(l, scale_name)
                                       : NULL;

    if (l->skip) {
        return;
    }

    if (s == NULL) {
        dsa_weights_fault(l, "tensor \"%s\" is missing", full);
        return;
    }

    dtypes = "F32 or BF16";
    fits = 1;

    if (dsa_str_eqz(s->dtype, "F32")) {
        t->dtype = DSA_F32;

    } else if (dsa_str_eqz(s->dtype, "BF16")) {
        t->dtype = DSA_BF16;

    } else if (dsa_str_eqz(s->dtype, "F8_E4M3") && kind == DSA_WEIGHTS_LINEAR)
    {
        if (!l->ck->weights.config.fp8) {
            dsa_weights_fault(l, "tensor \"%s\" is F8_E4M3, which is accepted "
                              "with a quantization_config in config.json",
                              full);
            return;
        }

        t->dtype = DSA_E4M3;

    } else {
        fits = 0;
    }

    if (kind == DSA_WEIGHTS_LINEAR && l->ck->weights.config.fp8) {
        dtypes = "F32, BF16 or F8_E4M3";
    }

    if (kind == DSA_WEIGHTS_VECTOR) {
        fits = fits && s->n_dims == 1 && s->shape[0] == cols;

    } else {
        fits = fits && s->n_dims == 2 && s->shape[0] == rows
               && s->shape[1] == cols;
    }

    if (!fits) {
        dsa_weights_misshapen(l, s, dtypes,
                              kind == DSA_WEIGHTS_VECTOR ? 0 : rows, cols);
        return;
    }

    t->rows = rows;
    t->cols = cols;
    t->data = s->data;

    if (t->dtype == DSA_E4M3) {
        dsa_weights_scale(l, t, scale_name, scale);

    } else if (scale != NULL) {
        dsa_weights_fault(l, "tensor \"%s\" is a scale, which is accepted "
                          "for a F8_E4M3 weight, not for %.*s", scale_name,
                          (int) s->dtype.len, s->dtype.data);
    }
}


/* Of weight_scale_inv, a multiplier for each block of 128x128. */

static void
dsa_weights_scale(dsa_loader_t *l, dsa_tensor_t *t, const char *name,
    const dsa_st_tensor_t *scale)
{
    uint32_t      rows, cols;
    uint64_t      i, n;
    const float  *value;

    if (scale == NULL) {
        dsa_weights_fault(l, "tensor \"%s\" is missing", name);
        return;
    }

    rows = (t->rows + DSA_WEIGHTS_BLOCK - 1) / DSA_WEIGHTS_BLOCK;
    cols = (t->cols + DSA_WEIGHTS_BLOCK - 1) / DSA_WEIGHTS_BLOCK;

    if (!dsa_str_eqz(scale->dtype, "F32") || scale->n_dims != 2
        || scale->shape[0] != rows || scale->shape[1] != cols)
    {
        dsa_weights_misshapen(l, scale, "F32", rows, cols);
        return;
    }

    value = scale->data;
    n = (uint64_t) rows * cols;

    for (i = 0; i < n; i++) {
        if (!(value[i] > 0) || isinf(value[i])) {
            dsa_weights_fault(l, "tensor \"%s\" has the scale %g at block "
                              "[%u, %u], finite numbers above 0 are accepted",
                              name, (double) value[i], (uint32_t) (i / cols),
                              (uint32_t) (i % cols));
            return;
        }
    }

    t->scale = value;
}


static const dsa_st_tensor_t *
dsa_weights_find(dsa_loader_t *l, const char *name)
{
    uint64_t  *i;

    i = dsa_map_find(&l->names, dsa_strz(name));

    if (i == NULL) {
        return NULL;
    }

    l->entry[*i].known = 1;

    return l->entry[*i].tensor;
}


static void
dsa_weights_unknown(dsa_loader_t *l)
{
    uint32_t          i;
    const dsa_str_t  *name;

    for (i = 0; i < l->n; i++) {
        if (!l->entry[i].known) {
            name = &l->entry[i].tensor->name;

            dsa_weights_fault(l, "tensor \"%.*s\" is unknown, those of a "
                              "deepseek_v32 model of this config.json are "
                              "accepted", (int) name->len, name->data);
        }
    }
}


static void
dsa_weights_fault(dsa_loader_t *l, const char *fmt, ...)
{
    va_list  args;

    if (l->faults++ != 0) {
        return;
    }

    va_start(args, fmt);
    (void) vsnprintf(l->fault, sizeof(l->fault), fmt, args);
    va_end(args);
}


/* rows 0: a vector is accepted. */

static void
dsa_weights_misshapen(dsa_loader_t *l, const dsa_st_tensor_t *s,
    const char *dtypes, uint32_t rows, uint32_t cols)
{
    int       n;
    char      shape[DSA_ST_MAX_DIMS * 24], want[32];
    uint32_t  i;

    n = 0;
    shape[0] = '\0';

    for (i = 0; i < s->n_dims; i++) {
        n += snprintf(shape + n, sizeof(shape) - n, "%s%llu",
                      i != 0 ? ", " : "", (unsigned long long) s->shape[i]);
    }

    if (rows != 0) {
        (void) snprintf(want, sizeof(want), "%u, %u", rows, cols);

    } else {
        (void) snprintf(want, sizeof(want), "%u", cols);
    }

    dsa_weights_fault(l, "tensor \"%.*s\" is %.*s [%s], %s [%s] is accepted",
                      (int) s->name.len, s->name.data, (int) s->dtype.len,
                      s->dtype.data, shape, dtypes, want);
}


/* path: of PATH_MAX bytes. */

static int
dsa_weights_path(const char *dir, dsa_str_t name, char *path, dsa_err_t *err)
{
    int  n;

    n = snprintf(path, PATH_MAX, "%s/%.*s", dir, (int) name.len, name.data);

    if (n < 0 || n >= PATH_MAX) {
        return dsa_error(err, "the model's directory has a name of %zu bytes, "
                         "a shorter one is accepted", strlen(dir));
    }

    return DSA_OK;
}


/*
 * Two checkpoints that differ have to have fingerprints that differ, since
 * cache pages of one are wrong for the other; reading all weights would take
 * minutes.  Beside config.json, headers and sizes the first bytes of every
 * F32 tensor (norms, biases, scales) and of every matrix outside the experts
 * are taken: training moves all of them.
 */

static int
dsa_weights_fingerprint(dsa_loader_t *l, const dsa_buf_t *config)
{
    int                       ok;
    char                     *out;
    dsa_str_t                 header;
    uint32_t                  i, length;
    uint64_t                  size;
    EVP_MD_CTX               *sha;
    unsigned char             digest[EVP_MAX_MD_SIZE];
    const dsa_st_tensor_t    *t;

    sha = EVP_MD_CTX_new();
    if (sha == NULL) {
        return dsa_error(l->err, "%s: no memory to load it", l->dir);
    }

    ok = EVP_DigestInit_ex(sha, EVP_sha256(), NULL);

    size = config->len;
    ok = ok && EVP_DigestUpdate(sha, &size, sizeof(size));
    ok = ok && EVP_DigestUpdate(sha, config->data, config->len);

    for (i = 0; i < l->ck->n_shards; i++) {
        header = dsa_st_header(l->ck->shard[i]);

        size = header.len;
        ok = ok && EVP_DigestUpdate(sha, &size, sizeof(size));
        ok = ok && EVP_DigestUpdate(sha, header.data, header.len);
    }

    for (i = 0; i < l->n; i++) {
        t = l->entry[i].tensor;

        if (!dsa_str_eqz(t->dtype, "F32")
            && memmem(t->name.data, t->name.len, ".experts.", 9) != NULL)
        {
            continue;
        }

        size = t->size < DSA_WEIGHTS_SAMPLE ? t->size : DSA_WEIGHTS_SAMPLE;
        ok = ok && EVP_DigestUpdate(sha, t->data, size);
    }

    length = 0;
    ok = ok && EVP_DigestFinal_ex(sha, digest, &length);

    EVP_MD_CTX_free(sha);

    if (!ok || length < 16) {
        return dsa_error(l->err, "%s: SHA-256 is not available", l->dir);
    }

    out = l->ck->weights.fingerprint;

    for (i = 0; i < 16; i++) {
        (void) snprintf(out + 2 * i, 3, "%02x", digest[i]);
    }

    return DSA_OK;
}
