
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A config.json of any bytes either fails with an error, or makes a config with
 * values that do not contradict one another.  hf_quant_config.json and
 * quant_cfg.json of any bytes fail with an error, or are accepted.
 */


#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/config.h"
#include "engine/checkpoint/config_parts.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


/* A selection comes from an indexer, which must be below or the layer's own. */

static void
check_layer(const dsa_model_config_t *s, uint32_t i)
{
    const dsa_layer_config_t  *layer;

    layer = &s->layer[i];

    if (layer->selection == DSA_SELECTION_ALL) {
        if (s->index_topk != 0 || layer->from != i) {
            abort();
        }

        return;
    }

    if (s->index_topk == 0 || s->q_lora_rank == 0
        || s->index_head_dim < s->qk_rope_head_dim)
    {
        abort();
    }

    if (layer->selection == DSA_SELECTION_OWN
        ? layer->from != i
        : layer->from >= i
          || s->layer[layer->from].selection != DSA_SELECTION_OWN)
    {
        abort();
    }
}


static void
check_error(int rc, const dsa_err_t *err)
{
    if (rc != DSA_OK && strncmp(err->text, "file: ", 6) != 0) {
        abort();
    }
}


/* A model of two layers, of which the second has experts. */

static void
check_formats(dsa_str_t text)
{
    int        rc;
    uint32_t   mixed;
    dsa_err_t  err;

    static dsa_model_config_t  s;

    s.num_hidden_layers = 2;
    s.layer[1].moe = 1;

    err.text[0] = '\0';
    rc = dsa_config_mixed(&mixed, "file", text, &err);
    check_error(rc, &err);

    if (mixed > 1) {
        abort();
    }

    err.text[0] = '\0';
    rc = dsa_config_mixed_layers(&s, "file", text, &err);
    check_error(rc, &err);

    if (rc == DSA_OK
        && (memmem(text.data, text.len, "W4A8_AWQ", 8) == NULL
            || memmem(text.data, text.len, "MIXED_PRECISION", 15) == NULL)
        && memchr(text.data, '\\', text.len) == NULL)
    {
        abort();
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int                 rc;
    uint32_t            i;
    dsa_err_t           err;
    dsa_model_config_t  s;

    check_formats(dsa_str((const char *) data, size));

    err.text[0] = '\0';
    rc = dsa_model_config_parse(&s, "file", data, size, &err);
    check_error(rc, &err);

    if (rc != DSA_OK) {
        return 0;
    }

    if (s.n_routed_experts % s.n_group != 0 || s.topk_group > s.n_group
        || s.num_experts_per_tok
           > s.n_routed_experts / s.n_group * s.topk_group
        || s.num_hidden_layers == 0
        || s.num_hidden_layers > DSA_MODEL_LAYERS
        || (s.bos_token_id >= s.vocab_size
            && s.bos_token_id != DSA_MODEL_NO_TOKEN)
        || s.ends.n == 0 || s.ends.n > DSA_MODEL_ENDS
        || !(s.latent_norm_eps > 0) || !(s.softmax_scale > 0)
        || !(s.rms_norm_eps > 0) || !(s.rope_theta > 1)
        || !(s.yarn_factor >= 1) || !(s.routed_scaling_factor > 0))
    {
        abort();
    }

    for (i = 0; i < s.ends.n; i++) {
        if (s.ends.id[i] >= s.vocab_size) {
            abort();
        }
    }

    for (i = 0; i < s.num_hidden_layers; i++) {
        check_layer(&s, i);
    }

    return 0;
}
