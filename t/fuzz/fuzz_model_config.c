
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A config.json of any bytes either fails with an error, or makes a config with
 * values that do not contradict one another.
 */


#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/config.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dsa_err_t           err;
    dsa_model_config_t  s;

    err.text[0] = '\0';

    if (dsa_model_config_parse(&s, "file", data, size, &err) != DSA_OK) {
        if (strncmp(err.text, "file: ", 6) != 0) {
            abort();
        }

        return 0;
    }

    if (s.n_routed_experts % s.n_group != 0 || s.topk_group > s.n_group
        || s.num_experts_per_tok
           > s.n_routed_experts / s.n_group * s.topk_group
        || s.index_head_dim < s.qk_rope_head_dim || s.index_topk == 0
        || s.num_hidden_layers == 0 || s.bos_token_id >= s.vocab_size
        || s.eos_token_id >= s.vocab_size
        || !(s.rms_norm_eps > 0) || !(s.rope_theta > 1)
        || !(s.yarn_factor >= 1) || !(s.routed_scaling_factor > 0))
    {
        abort();
    }

    return 0;
}
