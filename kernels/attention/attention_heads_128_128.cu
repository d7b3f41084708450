
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "attention_heads_kernel.cuh"


extern const dsa_heads_kernels_t  dsa_heads_128_128 =
    dsa_heads_instance< dsa_heads_shape_t<128, 128, 128> >();
