
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "engine/checkpoint/config_parts.h"


#define dsa_nelts(a)    (sizeof(a) / sizeof((a)[0]))


/*
 * The published code of DeepSeek-V3.2 has 1e-6 in the norms of the latents,
 * whatever rms_norm_eps is.  For the others vLLM and SGLang use rms_norm_eps.
 */

#define DSA_DEEPSEEK_EPS    1e-6f


static const dsa_model_family_t  dsa_families[] = {
    { "deepseek_v32", 1, 0, 0, DSA_DEEPSEEK_EPS,
      { "deepseek", "</think>", "｜DSML｜" } },

    { "deepseek_v3", 0, 0, 0, 0,
      { "deepseek-v3", "</think>", "<｜tool▁calls▁begin｜>" } },

    { "joyai_llm_flash", 0, 0, 1, 0,
      { "joyai", "</think>", "<tool_call>" } },

    { "glm_moe_dsa", 1, 1, 0, 0, { "glm", "</think>", "<tool_call>" } },

    { "glm4_moe_lite", 0, 0, 0, 0, { "glm-4.7", "</think>", "<tool_call>" } }
};


const dsa_model_family_t *
dsa_config_family(const dsa_fields_t *top)
{
    size_t     i;
    dsa_buf_t  types;

    for (i = 0; i < dsa_nelts(dsa_families); i++) {
        if (dsa_field_is(top, "model_type", dsa_families[i].type)) {
            return &dsa_families[i];
        }
    }

    memset(&types, 0, sizeof(dsa_buf_t));

    for (i = 0; i < dsa_nelts(dsa_families); i++) {
        dsa_buf_printf(&types, "%s\"%s\"",
                       i == 0 ? ""
                       : i + 1 < dsa_nelts(dsa_families) ? ", " : " or ",
                       dsa_families[i].type);
    }

    dsa_buf_add(&types, "", 1);

    (void) dsa_field_reject(top, "model_type", dsa_field(top, "model_type"),
                            types.failed ? "another type" : types.data);

    dsa_buf_free(&types);

    return NULL;
}
