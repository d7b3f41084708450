
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "attention_heads_kernel.cuh"


/*
 * A tile has 64 keys, because the sums take 128 registers of a thread, and the
 * queries and two tiles each of keys and values take 192 KB of shared memory.
 */

extern const dsa_heads_kernels_t  dsa_heads_192_256 =
    dsa_heads_instance< dsa_heads_shape_t<192, 256, 64> >();
