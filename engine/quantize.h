
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_QUANTIZE_H_INCLUDED_
#define _DSA_QUANTIZE_H_INCLUDED_


#include "engine/checkpoint/weights.h"


/*
 * "weights fp8": the matrices of dsa_matrices_e in e4m3, with a float32 scale
 * for each block of 128 x 128, from a checkpoint that has them in BF16 or F32.
 * This changes the model.  All backends use the same codes and scales, because
 * they are made here, on the CPU.
 */

/*
 * Describes the model after that: its formats, and activations with scales that
 * are any numbers.  DSA_ERROR with err: some matrices are in FP8 already.
 */
int dsa_config_quantize(dsa_model_config_t *config, dsa_err_t *err);

/*
 * Quantizes the matrices of w into memory of its own, a byte for each element,
 * and changes w->config likewise.  Reads the tensors where they are mapped.
 * Logs what it does.  DSA_ERROR with err, and w is not usable: see above; or
 * there is too little memory; or the scale of a block is not finite.
 */
int dsa_weights_quantize(dsa_weights_t *w, dsa_err_t *err);


#endif /* _DSA_QUANTIZE_H_INCLUDED_ */
