
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOOLS_USAGE_PRINT_H_INCLUDED_
#define _DSA_TOOLS_USAGE_PRINT_H_INCLUDED_


#include "tools/usage_sum.h"


typedef enum {
    DSA_USAGE_TABLE = 0,
    DSA_USAGE_JSON,
    DSA_USAGE_CSV
} dsa_usage_format_e;


/*
 * Prints a sum to stdout.  DSA_ERROR with err: stdout failed, or a cost exceeds
 * 64 bits.
 */
int dsa_usage_print(const dsa_usage_sum_t *sum, const dsa_usage_range_t *range,
    dsa_usage_format_e format, dsa_err_t *err);


#endif /* _DSA_TOOLS_USAGE_PRINT_H_INCLUDED_ */
