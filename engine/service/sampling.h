
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SERVICE_SAMPLING_H_INCLUDED_
#define _DSA_SERVICE_SAMPLING_H_INCLUDED_


#include "base/error.h"
#include "base/sampling.h"


/*
 * Checks sampling parameters that a worker has written: the version, each
 * range, and that reserved words are 0.  DSA_ERROR: err has the parameter, its
 * value and the values that are accepted.
 */
int dsa_sampling_check(const dsa_sampling_t *s, dsa_err_t *err);


#endif /* _DSA_SERVICE_SAMPLING_H_INCLUDED_ */
