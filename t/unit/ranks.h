
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What the tests of several ranks on the CPU share: models, and how they are
 * split.
 */


#ifndef _DSA_T_RANKS_H_INCLUDED_
#define _DSA_T_RANKS_H_INCLUDED_


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "engine/backend.h"


#define GOLDEN      "t/data/golden/"
#define DEMO        "demo/model"


typedef struct {
    uint32_t            gpus;
    dsa_attention_e     attention;
} split_t;


static const split_t  one = { 1, DSA_ATTENTION_DATA };
static const split_t  data2 = { 2, DSA_ATTENTION_DATA };
static const split_t  data4 = { 4, DSA_ATTENTION_DATA };
static const split_t  tensor2 = { 2, DSA_ATTENTION_TENSOR };
static const split_t  tensor4 = { 4, DSA_ATTENTION_TENSOR };

/*
 * a-fp8 with four times the heads and widths, which computes the same function
 * and can be split over 2 and 4 GPUs (t/lib/DSA/Widen.pm).
 */
static char  wide[] = "/tmp/dsa-ranks-XXXXXX";


static inline void
must(int rc, const dsa_err_t *err)
{
    if (rc != DSA_OK) {
        fail_msg("%s", err->text);
    }
}


static inline int
wide_make(void **state)
{
    char  command[256];

    if (mkdtemp(wide) == NULL) {
        return -1;
    }

    (void) snprintf(command, sizeof(command),
                    "perl -It/lib -MDSA::Widen -e 'widen_all(@ARGV)' "
                    GOLDEN "a-fp8 %s 4", wide);

    return system(command);
}


static inline int
wide_remove(void **state)
{
    char  path[256];

    (void) snprintf(path, sizeof(path), "%s/config.json", wide);
    (void) unlink(path);
    (void) snprintf(path, sizeof(path), "%s/model.safetensors", wide);
    (void) unlink(path);

    return rmdir(wide);
}


#endif /* _DSA_T_RANKS_H_INCLUDED_ */
