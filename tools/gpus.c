
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend.h"
#include "tools/dsa.h"


int
dsa_gpus_option(uint32_t *gpus, const char *command, const char *text)
{
    char           *end;
    unsigned long   n;

    n = strtoul(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0' || n == 0
        || n > DSA_MAX_GPUS)
    {
        (void) fprintf(stderr, "dsa %s: --gpus \"%s\" is not a number of GPUs; "
                       "expected 1 to %d\n", command, text, DSA_MAX_GPUS);
        return DSA_ERROR;
    }

    *gpus = (uint32_t) n;

    return DSA_OK;
}


int
dsa_attention_option(dsa_attention_e *attention, const char *command,
    const char *text)
{
    if (strcmp(text, "data") == 0) {
        *attention = DSA_ATTENTION_DATA;

    } else if (strcmp(text, "tensor") == 0) {
        *attention = DSA_ATTENTION_TENSOR;

    } else {
        (void) fprintf(stderr, "dsa %s: --attention is \"%s\"; expected data "
                       "or tensor\n", command, text);
        return DSA_ERROR;
    }

    return DSA_OK;
}
