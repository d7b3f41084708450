
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_T_SPIN_H_INCLUDED_
#define _DSA_T_SPIN_H_INCLUDED_


#include "kernels/core/cuda.h"


/*
 * Occupies all processors of the current device, so that no other kernel of
 * this process runs there, until *end is not 0.  end: mapped host memory.
 */
#ifdef __cplusplus
extern "C"
#endif
int gpu_spin(const volatile int *end, dsa_stream_t stream);


#endif /* _DSA_T_SPIN_H_INCLUDED_ */
