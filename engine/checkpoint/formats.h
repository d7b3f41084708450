
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_FORMATS_H_INCLUDED_
#define _DSA_FORMATS_H_INCLUDED_


#include "base/error.h"


/* The values of quantization_config.quant_method, as errors name them. */

#define DSA_FORMATS_METHODS     "\"fp8\" or \"w4afp8\""

/*
 * For a directory whose config.json has no quantization_config.  Some tools
 * describe a quantization in a file of its own instead; without this check,
 * the weights would be rejected one by one for names or dtypes that nothing
 * explains.  DSA_ERROR: dir has such a file, which err names.
 *
 *     hf_quant_config.json    NVIDIA's Model Optimizer and TensorRT-LLM.  A
 *                             quantization.quant_algo that is null or missing
 *                             means that weights are not quantized
 *     quant_config.json       AutoAWQ
 *     quantize_config.json    AutoGPTQ
 */
int dsa_formats_check(const char *dir, dsa_err_t *err);


#endif /* _DSA_FORMATS_H_INCLUDED_ */
