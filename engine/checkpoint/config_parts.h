
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CONFIG_PARTS_H_INCLUDED_
#define _DSA_CONFIG_PARTS_H_INCLUDED_


#include "base/fields.h"
#include "engine/checkpoint/config.h"


/* Inside engine/checkpoint: the files that read config.json. */

/* What the value of model_type means and no other field of the file has. */

typedef struct {
    const char          *type;          /* model_type */
    uint32_t             indexed;       /* 1: layers have indexers; 0: they
                                           attend to all positions */
    uint32_t             interleaved;   /* indexer_rope_interleave, if that
                                           field is missing */
    uint32_t             dense_draft;   /* 1: the draft layer has a dense MLP;
                                           0: experts */
    float                latent_eps;    /* latent_norm_eps of the published
                                           code; 0: that is rms_norm_eps */
    dsa_prompt_family_t  prompt;
} dsa_model_family_t;


/*
 * Finds the family of a file by its model_type.  NULL with top->err: the field
 * is missing or has another value.
 */
const dsa_model_family_t *dsa_config_family(const dsa_fields_t *top);

/*
 * Sets layer and draft from the other members of config and from the fields
 * mlp_layer_types, moe_layer_freq, indexer_types, index_topk_pattern,
 * index_topk_freq and index_skip_topk_offset.
 */
int dsa_config_layers(dsa_model_config_t *config,
    const dsa_model_family_t *family, const dsa_fields_t *top);


#define DSA_CONFIG_REQUIRED      0
#define DSA_CONFIG_OPTIONAL      1

typedef struct {
    const char          *name;
    const char          *json;          /* the only value that is supported */
    uint32_t             optional;
} dsa_config_fixed_t;

/* DSA_ERROR with f->err: the field is missing or has another value. */
int dsa_config_fixed(const dsa_fields_t *f, const dsa_config_fixed_t *field);

/* Sets format, ue8m0 and expert_scales from quantization_config. */
int dsa_config_quantization(dsa_model_config_t *config,
    const dsa_fields_t *top);

/* DSA_ERROR with top->err: a group of INT4 columns would have a remainder. */
int dsa_config_check_int4(const dsa_model_config_t *config,
    const dsa_fields_t *top);


#endif /* _DSA_CONFIG_PARTS_H_INCLUDED_ */
