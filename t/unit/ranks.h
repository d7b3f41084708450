
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
 * and can be split over 2 and 4 GPUs, and moonlight-wide with two times as many
 * for 2 GPUs (t/lib/DSA/Widen.pm).
 */
static char  wide[] = "/tmp/dsa-ranks-XXXXXX";
static char  wide_dense[] = "/tmp/dsa-ranks-XXXXXX";


static inline void
must(int rc, const dsa_err_t *err)
{
    if (rc != DSA_OK) {
        fail_msg("%s", err->text);
    }
}


static inline int
widen(char *to, const char *from, int n)
{
    char  command[256];

    if (mkdtemp(to) == NULL) {
        return -1;
    }

    (void) snprintf(command, sizeof(command),
                    "perl -It/lib -MDSA::Widen -e 'widen_all(@ARGV)' "
                    GOLDEN "%s %s %d", from, to, n);

    return system(command);
}


static inline int
widened_remove(const char *dir)
{
    char  path[256];

    (void) snprintf(path, sizeof(path), "%s/config.json", dir);
    (void) unlink(path);
    (void) snprintf(path, sizeof(path), "%s/model.safetensors", dir);
    (void) unlink(path);

    return rmdir(dir);
}


/* What a group of tests has before and after it: "wide". */

static inline int
wide_make(void **state)
{
    return widen(wide, "a-fp8", 4);
}


static inline int
wide_remove(void **state)
{
    return widened_remove(wide);
}


/* "wide" and "wide_dense" */

static inline int
both_make(void **state)
{
    return wide_make(state) == 0 ? widen(wide_dense, "moonlight-wide", 2) : -1;
}


static inline int
both_remove(void **state)
{
    return wide_remove(state) == 0 ? widened_remove(wide_dense) : -1;
}


#endif /* _DSA_T_RANKS_H_INCLUDED_ */
