
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Copies of the checkpoints of t/data/golden, for the tests that open them.
 */


#ifndef _T_WEIGHTS_H_INCLUDED_
#define _T_WEIGHTS_H_INCLUDED_


#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/checkpoint/safetensors_write.h"
#include "engine/checkpoint/weights.h"


#define A_FP8       "t/data/golden/a-fp8"
#define B_BF16      "t/data/golden/b-bf16"

#define MAX_TENSORS 400


/* The tensors of a model; a test changes some and writes them to one file. */

typedef struct {
    dsa_st_t           *shard[2];
    dsa_st_tensor_t     t[MAX_TENSORS];
    uint32_t            n;
} model_t;


static char  dir[160];


static inline int
remove_one(const char *path, const struct stat *st, int type,
    struct FTW *ftw)
{
    return remove(path);
}


static inline int
setup(void **state)
{
    const char  *tmp;

    tmp = getenv("TMPDIR");

    (void) snprintf(dir, sizeof(dir), "%s/dsa-weights-XXXXXX",
                    tmp != NULL ? tmp : "/tmp");

    return mkdtemp(dir) != NULL ? 0 : -1;
}


static inline int
teardown(void **state)
{
    return nftw(dir, remove_one, 8, FTW_DEPTH|FTW_PHYS);
}


static inline char *
read_text(const char *from, const char *name)
{
    char     path[256], *text;
    FILE    *f;
    size_t   n;

    (void) snprintf(path, sizeof(path), "%s/%s", from, name);

    f = fopen(path, "r");
    assert_non_null(f);

    text = malloc(1 << 20);
    assert_non_null(text);

    n = fread(text, 1, (1 << 20) - 1, f);
    text[n] = '\0';

    assert_int_equal(fclose(f), 0);

    return text;
}


static inline void
write_file(const char *name, const void *data, size_t len)
{
    char   path[256];
    FILE  *f;

    (void) snprintf(path, sizeof(path), "%s/%s", dir, name);

    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}


/* Copies config.json of from, with find, unless it is NULL, replaced. */

static inline void
put_config(const char *from, const char *find, const char *replace)
{
    char  *text, *at, out[8192];
    int    n;

    text = read_text(from, "config.json");

    at = find != NULL ? strstr(text, find) : text;
    assert_non_null(at);

    n = snprintf(out, sizeof(out), "%.*s%s%s", (int) (at - text), text,
                 find != NULL ? replace : "",
                 at + (find != NULL ? strlen(find) : 0));
    assert_in_range(n, 1, sizeof(out) - 1);

    write_file("config.json", out, n);
    free(text);
}


static inline void
load(model_t *m, const char *from)
{
    char        path[256];
    uint32_t    i, j;
    dsa_err_t   err;

    m->n = 0;

    for (i = 0; i < 2; i++) {
        (void) snprintf(path, sizeof(path),
                        "%s/model-0000%u-of-00002.safetensors", from, i + 1);

        m->shard[i] = dsa_st_open(path, &err);
        assert_non_null(m->shard[i]);

        for (j = 0; j < dsa_st_count(m->shard[i]); j++) {
            assert_true(m->n < MAX_TENSORS);
            m->t[m->n++] = *dsa_st_at(m->shard[i], j);
        }
    }
}


static inline void
unload(model_t *m)
{
    dsa_st_close(m->shard[0]);
    dsa_st_close(m->shard[1]);
}


static inline void
put_single(const model_t *m)
{
    char       path[256];
    dsa_err_t  err;

    (void) snprintf(path, sizeof(path), "%s/model.safetensors", dir);
    assert_int_equal(dsa_st_write(path, m->t, m->n, &err), DSA_OK);
}


static inline dsa_st_tensor_t *
tensor(model_t *m, const char *name)
{
    uint32_t  i;

    for (i = 0; i < m->n; i++) {
        if (dsa_str_eqz(m->t[i].name, name)) {
            return &m->t[i];
        }
    }

    fail_msg("no tensor %s", name);

    return NULL;
}


/* Opening the directory fails with exactly this error after its name. */

static inline void
rejected(const char *error)
{
    dsa_err_t  err;

    memset(&err, 0, sizeof(dsa_err_t));

    assert_null(dsa_weights_open(dir, &err));
    assert_true(strncmp(err.text, dir, strlen(dir)) == 0);
    assert_string_equal(err.text + strlen(dir), error);
}


static inline void
accepted(char *fingerprint)
{
    dsa_err_t       err;
    dsa_weights_t  *w;

    w = dsa_weights_open(dir, &err);
    if (w == NULL) {
        fail_msg("%s", err.text);
    }

    if (fingerprint != NULL) {
        assert_int_equal(strlen(w->sampled_fingerprint), 32);
        (void) strcpy(fingerprint, w->sampled_fingerprint);
    }

    dsa_weights_close(w);
}


#endif /* _T_WEIGHTS_H_INCLUDED_ */
