
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/dsa.h"


int
dsa_read_stdin(const char *command, dsa_buf_t *out)
{
    char    chunk[65536];
    size_t  n;

    do {
        n = fread(chunk, 1, sizeof(chunk), stdin);
        dsa_buf_add(out, chunk, n);
    } while (n != 0);

    if (ferror(stdin)) {
        (void) fprintf(stderr, "dsa %s: stdin: %s\n", command,
                       strerror(errno));
        return 1;
    }

    if (out->failed) {
        (void) fprintf(stderr, "dsa %s: out of memory\n", command);
        return 1;
    }

    return 0;
}
