
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Weights that are replaced while requests run: for serving.h.
 */


#ifndef _DSA_T_SERVING_RELOAD_H_INCLUDED_
#define _DSA_T_SERVING_RELOAD_H_INCLUDED_


#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"


static void
reload_copy(dsa_buf_t *buf, const char *path)
{
    char     part[65536];
    size_t   n;
    FILE    *f;

    f = fopen(path, "rb");
    assert_non_null(f);
    buf->len = 0;

    while ((n = fread(part, 1, sizeof(part), f)) != 0) {
        dsa_buf_add(buf, part, n);
    }

    (void) fclose(f);
    assert_false(buf->failed);
}


/* Moves the rows of lm_head by one, if the file has it. */

static void
reload_roll(dsa_buf_t *buf)
{
    char           *p, *data, first[65536];
    uint64_t        n;
    unsigned long   rows, cols, from, to, row;

    static const char  name[] = "\"lm_head.weight\"";

    memcpy(&n, buf->data, sizeof(n));
    p = memmem(buf->data + 8, n, name, strlen(name));

    if (p == NULL) {
        return;
    }

    p = memmem(p, n, "\"shape\"", 7);
    assert_int_equal(sscanf(strchr(p, '['), "[%lu,%lu]", &rows, &cols), 2);
    p = memmem(p, n, "\"data_offsets\"", 14);
    assert_int_equal(sscanf(strchr(p, '['), "[%lu,%lu]", &from, &to), 2);

    data = buf->data + 8 + n + from;
    row = (to - from) / rows;
    assert_true(row <= sizeof(first));

    memcpy(first, data, row);
    memmove(data, data + row, to - from - row);
    memcpy(data + to - from - row, first, row);
}


/* Makes a checkpoint of the same shape with other weights. */

static void
reload_make(const char *from, const char *to)
{
    char       path[512];
    FILE      *f;
    size_t     i;
    dsa_buf_t  buf;

    static const char  *files[] = { "config.json",
                                    "model.safetensors.index.json",
                                    "model-00001-of-00002.safetensors",
                                    "model-00002-of-00002.safetensors" };

    memset(&buf, 0, sizeof(buf));
    assert_int_equal(mkdir(to, 0700), 0);

    for (i = 0; i < 4; i++) {
        (void) snprintf(path, sizeof(path), "%s/%s", from, files[i]);
        reload_copy(&buf, path);

        if (i >= 2) {
            reload_roll(&buf);
        }

        (void) snprintf(path, sizeof(path), "%s/%s", to, files[i]);
        f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(buf.data, 1, buf.len, f), buf.len);
        assert_int_equal(fclose(f), 0);
    }

    dsa_buf_free(&buf);
}


static void
reload_link(const char *link, const char *to)
{
    (void) unlink(link);
    assert_int_equal(symlink(to, link), 0);
}


static void
reload_remove(const char *dir)
{
    char  command[512];

    (void) snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
}


/*
 * An answer that had n tokens of the old weights goes on as one that an engine
 * with the new weights resumes.  On a GPU the shapes of the steps differ, and
 * so may the last bits.
 */

static void
reload_goes_on(const client_t *c, uint32_t n)
{
    uint32_t  i;
    client_t  want;
    engine_t  e;

    memcpy(&want, c, sizeof(want));
    assert_true(n != 0 && want.n_prompt + n <= 256);

    for (i = 0; i < n; i++) {
        want.prompt[want.n_prompt++] = c->sample[i].token;
    }

    want.n_resume = n;
    start(&e, 64, 256);
    submit(&e, &want, 0);
    run(&e);
    finish(&e);

    same_from(&want, c, n);
}


static inline void
test_reload(void **state)
{
    char              dir[256], link[300], other[300], none[300];
    char             *first;
    uint32_t          i, n[CLIENTS];
    client_t          c[CLIENTS], before, want, got;
    engine_t          e;
    dsa_err_t         err;
    const char       *was, *tmp;

    tmp = getenv("TMPDIR");
    (void) snprintf(dir, sizeof(dir), "%s/reload.XXXXXX",
                    tmp != NULL ? tmp : "/tmp");
    assert_non_null(mkdtemp(dir));
    (void) snprintf(link, sizeof(link), "%s/model", dir);
    (void) snprintf(other, sizeof(other), "%s/other", dir);
    (void) snprintf(none, sizeof(none), "%s/none", dir);

    first = realpath(model, NULL);
    assert_non_null(first);
    reload_make(first, other);

    was = model;
    model = other;
    memcpy(&want, &alone[3], sizeof(want));
    start(&e, 64, 256);
    submit(&e, &want, 0);
    run(&e);
    finish(&e);

    model = link;
    reload_link(link, first);
    start(&e, 64, 256);

    memcpy(&before, &alone[3], sizeof(before));
    submit(&e, &before, 5);
    run(&e);
    same(&before, &alone[3]);

    /* some run and have tokens when the weights change */

    memcpy(c, alone, sizeof(c));

    for (i = 0; i < CLIENTS; i++) {
        submit(&e, &c[i], (uint8_t) i);
    }

    for (i = 0; i < 30; i++) {
        assert_int_equal(dsa_sched_step(e.sched, &err), DSA_OK);
    }

    for (i = 0; i < CLIENTS; i++) {
        n[i] = c[i].n;
    }

    assert_true(n[0] > 5);
    reload_link(link, other);
    assert_int_equal(dsa_sched_reload(e.sched, &err), DSA_OK);
    run(&e);

    for (i = 0; i < CLIENTS; i++) {
        assert_true(c[i].ended);
        assert_int_equal(c[i].n, ANSWER);

        if (SERVING_BACKEND == DSA_BACKEND_CPU) {
            reload_goes_on(&c[i], n[i]);
        }
    }

    /* the same bits as after a start, and no page of the old weights */

    memcpy(&got, &alone[3], sizeof(got));
    submit(&e, &got, 5);
    run(&e);
    assert_int_equal(got.usage.cached_tokens, 0);
    same(&got, &want);
    assert_memory_not_equal(got.sample, before.sample, sizeof(got.sample));

    /* what cannot be loaded changes nothing */

    reload_link(link, none);
    assert_int_equal(dsa_sched_reload(e.sched, &err), DSA_AGAIN);
    assert_non_null(strstr(err.text, link));
    submit(&e, &got, 5);
    run(&e);
    assert_int_equal(got.usage.cached_tokens, (got.n_prompt - 1) / 64 * 64);
    same(&got, &want);

    /* and back */

    reload_link(link, first);
    assert_int_equal(dsa_sched_reload(e.sched, &err), DSA_OK);
    submit(&e, &got, 6);
    run(&e);
    same(&got, &before);

    finish(&e);
    model = was;
    free(first);
    reload_remove(dir);
}


#endif /* _DSA_T_SERVING_RELOAD_H_INCLUDED_ */
