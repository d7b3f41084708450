
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Reading whole checkpoints: what a sink receives, the full fingerprint beside
 * one that is computed from the files in one piece, and errors.
 */


#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
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
#include <openssl/sha.h>

#include "base/log.h"
#include "engine/checkpoint/direct.h"
#include "engine/checkpoint/safetensors_write.h"
#include "engine/checkpoint/scan.h"


#define LEAF    (8 << 20)
#define FILES   4


/* Sizes of one tensor; files then end within, at and behind a leaf's end. */

static const size_t  sizes[FILES] = { 2 * LEAF + 12345, 100, LEAF - 4096, 0 };

static char          dir[160], lines[65536];
static uint8_t      *pattern;


/* Replaces base/log.c: the lines since the last scan. */

_Atomic int  dsa_log_limit = DSA_LOG_INFO;


void
dsa_log_level(dsa_log_level_e level)
{
    dsa_log_limit = level;
}


void
dsa_log(dsa_log_level_e level, const char *fmt, ...)
{
    size_t   len;
    va_list  args;

    len = strlen(lines);

    va_start(args, fmt);
    (void) vsnprintf(lines + len, sizeof(lines) - len, fmt, args);
    va_end(args);
}


static int
remove_one(const char *path, const struct stat *st, int type,
    struct FTW *ftw)
{
    return remove(path);
}


static void
file_path(char *path, uint32_t i)
{
    (void) sprintf(path, "%s/model-%u.safetensors", dir, i);
}


static void
write_file(uint32_t i, size_t size)
{
    char             path[256];
    char             name[16];
    dsa_err_t        err;
    dsa_st_tensor_t  t;

    memset(&t, 0, sizeof(t));
    (void) sprintf(name, "t%u", i);

    t.name = dsa_strz(name);
    t.dtype = dsa_strz("U8");
    t.n_dims = 1;
    t.shape[0] = size;
    t.size = size;
    t.data = pattern + i;

    file_path(path, i);
    assert_int_equal(dsa_st_write(path, &t, 1, &err), DSA_OK);
}


static int
setup_in(const char *base)
{
    char      path[256];
    FILE     *f;
    size_t    i;
    uint32_t  n;

    (void) snprintf(dir, sizeof(dir), "%s/dsa-scan-XXXXXX", base);

    if (mkdtemp(dir) == NULL) {
        return -1;
    }

    pattern = malloc(3 * LEAF);
    assert_non_null(pattern);

    for (i = 0, n = 1; i < 3 * LEAF; i++) {
        n = n * 1664525 + 1013904223;
        pattern[i] = (uint8_t) (n >> 24);
    }

    (void) snprintf(path, sizeof(path), "%s/model.safetensors.index.json",
                    dir);
    f = fopen(path, "w");
    assert_non_null(f);
    (void) fprintf(f, "{\"weight_map\":{");

    /* the index has the files in another order than that of their names */

    for (n = FILES; n-- > 0; /* void */) {
        write_file(n, sizes[n]);
        (void) fprintf(f, "\"t%u\":\"model-%u.safetensors\"%s", n, n,
                       n != 0 ? "," : "}}");
    }

    assert_int_equal(fclose(f), 0);

    return 0;
}


static int
setup(void **state)
{
    const char  *tmp;

    tmp = getenv("TMPDIR");

    return setup_in(tmp != NULL ? tmp : "/tmp");
}


static int
setup_shm(void **state)
{
    return access("/dev/shm", W_OK) == 0 ? setup_in("/dev/shm")
                                         : setup(state);
}


static int
teardown(void **state)
{
    free(pattern);

    return nftw(dir, remove_one, 8, FTW_DEPTH|FTW_PHYS);
}


/* The files, and a config that hashes to 1, 2, ... */

static void
open_weights(dsa_weights_t *w, dsa_shards_t *shards)
{
    uint32_t   i;
    dsa_err_t  err;

    memset(w, 0, sizeof(dsa_weights_t));

    if (dsa_shards_open(shards, dir, DSA_SHARDS_ALL, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    w->shards = shards;

    for (i = 0; i < sizeof(w->config_hash); i++) {
        w->config_hash[i] = (uint8_t) (i + 1);
    }

    lines[0] = '\0';
}


static void
scan(char fingerprint[DSA_FULL_LEN + 1], uint32_t threads)
{
    dsa_err_t      err;
    dsa_shards_t   shards;
    dsa_weights_t  w;

    open_weights(&w, &shards);

    if (dsa_scan(&w, NULL, threads, fingerprint, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    assert_int_equal(strlen(fingerprint), 64);
    dsa_shards_close(&shards);
}


static uint8_t *
read_file(uint32_t i, size_t *size)
{
    char         path[256];
    FILE        *f;
    uint8_t     *p;
    struct stat  st;

    file_path(path, i);
    assert_int_equal(stat(path, &st), 0);
    *size = (size_t) st.st_size;
    p = malloc(*size);
    assert_non_null(p);

    f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fread(p, 1, *size, f), *size);
    assert_int_equal(fclose(f), 0);

    return p;
}


/* The documented text, put together in one buffer and hashed at once. */

static void
expect(char hex[65])
{
    char       name[64];
    uint8_t   *p, text[4096], digest[32];
    size_t     size, at, len;
    uint32_t   i;
    uint64_t   n;

    len = 0;

    for (i = 0; i < 32; i++) {
        text[len++] = (uint8_t) (i + 1);
    }

    n = FILES;
    memcpy(text + len, &n, 8);
    len += 8;

    for (i = 0; i < FILES; i++) {
        p = read_file(i, &size);

        n = (uint64_t) sprintf(name, "model-%u.safetensors", i);
        memcpy(text + len, &n, 8);
        memcpy(text + len + 8, name, n);
        len += 8 + n;

        n = size;
        memcpy(text + len, &n, 8);
        len += 8;

        for (at = 0; at < size; at += LEAF) {
            (void) SHA256(p + at, size - at < LEAF ? size - at : LEAF,
                          text + len);
            len += 32;
        }

        free(p);
    }

    (void) SHA256(text, len, digest);

    for (i = 0; i < 32; i++) {
        (void) sprintf(hex + 2 * i, "%02x", digest[i]);
    }
}


static void
test_fingerprint(void **state)
{
    char      fingerprint[DSA_FULL_LEN + 1], expected[65];
    uint32_t  i;

    static const uint32_t  threads[] = { 0, 1, 2, 5, 64 };

    expect(expected);

    for (i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
        scan(fingerprint, threads[i]);
        assert_string_equal(fingerprint, expected);
    }

    /* 3, 1, 1 and 1 leaves: more threads would have nothing to read */

    assert_non_null(strstr(lines, "6 threads have 50 MB of buffers"));
    assert_true(strstr(lines, "by direct I/O") != NULL
                || strstr(lines, "through the page cache") != NULL);
}


/* Every bit counts, wherever it is. */

static void
test_flipped(void **state)
{
    int       fd;
    char      before[DSA_FULL_LEN + 1], after[DSA_FULL_LEN + 1], path[256];
    uint8_t   byte;
    uint32_t  i;

    static const struct {
        uint32_t  file;
        off_t     at;
    } flip[] = {
        { 0, 1000 }, { 0, LEAF - 1 }, { 0, LEAF }, { 0, 2 * LEAF + 12345 },
        { 1, 100 }, { 2, LEAF - 4096 }
    };

    scan(before, 2);

    for (i = 0; i < sizeof(flip) / sizeof(flip[0]); i++) {
        file_path(path, flip[i].file);
        fd = open(path, O_RDWR);
        assert_true(fd != -1);

        assert_int_equal(pread(fd, &byte, 1, flip[i].at), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(fd, &byte, 1, flip[i].at), 1);

        scan(after, 2);
        assert_string_not_equal(before, after);

        byte ^= 0x10;
        assert_int_equal(pwrite(fd, &byte, 1, flip[i].at), 1);
        assert_int_equal(close(fd), 0);

        scan(after, 2);
        assert_string_equal(before, after);
    }
}


/* A sink that records what it receives, or fails. */

typedef struct {
    pthread_mutex_t     lock;
    pthread_cond_t      closing;
    uint8_t            *copy[FILES];
    uint32_t            blocks;
    uint32_t            opened;
    uint32_t            closed;
    uint32_t            waits;
    uint32_t            fail_open;      /* the number of the call; 0: never */
    uint32_t            fail_block;
    int                 hold;           /* 1: blocks that do not fail wait
                                           until a part is closed */
} record_t;


typedef struct {
    record_t           *record;
    uint8_t            *buffer;
} part_t;


static void *
record_open(void *data, uint8_t **buffer, dsa_err_t *err)
{
    part_t    *p;
    record_t  *r = data;
    uint32_t   n;

    (void) pthread_mutex_lock(&r->lock);
    n = ++r->opened;
    (void) pthread_mutex_unlock(&r->lock);

    if (n == r->fail_open) {
        (void) dsa_error(err, "the sink does not open");
        return NULL;
    }

    p = malloc(sizeof(part_t));
    assert_non_null(p);
    p->record = r;
    p->buffer = aligned_alloc(4096, LEAF);
    assert_non_null(p->buffer);
    *buffer = p->buffer;

    return p;
}


static int
record_block(void *part, const dsa_scan_block_t *block, dsa_err_t *err)
{
    part_t    *p = part;
    record_t  *r = p->record;
    uint32_t   n;

    (void) pthread_mutex_lock(&r->lock);
    n = ++r->blocks;
    (void) pthread_mutex_unlock(&r->lock);

    if (n == r->fail_block) {
        return dsa_error(err, "the sink rejects the block");
    }

    (void) pthread_mutex_lock(&r->lock);

    while (r->hold && r->closed == 0) {
        (void) pthread_cond_wait(&r->closing, &r->lock);
    }

    (void) pthread_mutex_unlock(&r->lock);

    if (r->copy[block->file] != NULL) {
        memcpy(r->copy[block->file] + block->offset, block->data,
               block->size);
    }

    return DSA_OK;
}


static int
record_wait(void *part, dsa_err_t *err)
{
    part_t  *p = part;

    (void) pthread_mutex_lock(&p->record->lock);
    p->record->waits++;
    (void) pthread_mutex_unlock(&p->record->lock);

    return DSA_OK;
}


static void
record_close(void *part)
{
    part_t  *p = part;

    (void) pthread_mutex_lock(&p->record->lock);
    p->record->closed++;
    (void) pthread_cond_broadcast(&p->record->closing);
    (void) pthread_mutex_unlock(&p->record->lock);

    free(p->buffer);
    free(p);
}


static int
scan_to(record_t *r, const dsa_weights_t *w, uint32_t threads, dsa_err_t *err)
{
    char             fingerprint[DSA_FULL_LEN + 1];
    dsa_scan_sink_t  sink;

    (void) pthread_mutex_init(&r->lock, NULL);
    (void) pthread_cond_init(&r->closing, NULL);

    sink.data = r;
    sink.open = record_open;
    sink.block = record_block;
    sink.wait = record_wait;
    sink.close = record_close;

    return dsa_scan(w, &sink, threads, fingerprint, err);
}


static void
test_sink(void **state)
{
    size_t         size[FILES];
    uint8_t       *expected[FILES];
    record_t       r;
    uint32_t       i, threads;
    dsa_err_t      err;
    dsa_shards_t   shards;
    dsa_weights_t  w;

    open_weights(&w, &shards);

    for (threads = 1; threads <= 4; threads++) {
        memset(&r, 0, sizeof(r));

        for (i = 0; i < FILES; i++) {
            expected[i] = read_file(i, &size[i]);
            r.copy[i] = calloc(1, size[i]);
            assert_non_null(r.copy[i]);
        }

        if (scan_to(&r, &w, threads, &err) != DSA_OK) {
            fail_msg("%s", err.text);
        }

        assert_int_equal(r.blocks, 6);
        assert_int_equal(r.opened, threads);
        assert_int_equal(r.closed, threads);

        /* before each block, and at the end of each thread */

        assert_int_equal(r.waits, 6 + threads);

        for (i = 0; i < FILES; i++) {
            assert_memory_equal(r.copy[i], expected[i], size[i]);
            free(r.copy[i]);
            free(expected[i]);
        }
    }

    dsa_shards_close(&shards);
}


static void
failed(const record_t *r, int rc, const dsa_err_t *err, const char *text)
{
    assert_int_equal(rc, DSA_ERROR);

    if (strstr(err->text, text) == NULL) {
        fail_msg("\"%s\" does not contain \"%s\"", err->text, text);
    }

    assert_null(strchr(err->text, '\n'));
    assert_int_equal(r->closed, r->opened - (r->fail_open != 0));
}


static void
test_sink_fails(void **state)
{
    int            rc;
    record_t       r;
    uint32_t       threads;
    dsa_err_t      err;
    dsa_shards_t   shards;
    dsa_weights_t  w;

    open_weights(&w, &shards);

    for (threads = 1; threads <= 4; threads++) {
        memset(&r, 0, sizeof(r));
        r.fail_open = threads;
        rc = scan_to(&r, &w, threads, &err);
        failed(&r, rc, &err, "the sink does not open");

        memset(&r, 0, sizeof(r));
        r.fail_block = threads;
        rc = scan_to(&r, &w, threads, &err);
        failed(&r, rc, &err, "the sink rejects the block");

        /* no thread begins another block after that */

        memset(&r, 0, sizeof(r));
        r.fail_block = 1;
        r.hold = 1;
        rc = scan_to(&r, &w, threads, &err);
        failed(&r, rc, &err, "the sink rejects the block");
        assert_in_range(r.blocks, 1, threads);
    }

    dsa_shards_close(&shards);
}


/* The file changes after it was opened; 0: it is removed. */

static void
changed(uint32_t file, off_t size, const char *error)
{
    int            rc;
    char           path[256], text[512];
    record_t       r;
    dsa_err_t      err;
    dsa_shards_t   shards;
    dsa_weights_t  w;

    write_file(file, sizes[file]);
    open_weights(&w, &shards);
    file_path(path, file);

    if (size != 0) {
        assert_int_equal(truncate(path, size), 0);

    } else {
        assert_int_equal(unlink(path), 0);
    }

    memset(&r, 0, sizeof(r));
    rc = scan_to(&r, &w, 3, &err);
    (void) snprintf(text, sizeof(text), "%s: %s", path, error);
    failed(&r, rc, &err, text);

    dsa_shards_close(&shards);
    write_file(file, sizes[file]);
}


static void
test_changed(void **state)
{
    changed(0, LEAF, "the file changed while it was read: it has 8388608 "
            "bytes; expected 16789");
    changed(1, 5000, "the file changed while it was read: it has 5000 bytes; "
            "expected ");
    changed(2, 0, "No such file or directory");
}


/* The file changes after the reader has opened it. */

static void
test_changed_later(void **state)
{
    char          path[256];
    uint8_t      *p;
    uint64_t      size;
    dsa_err_t     err;
    struct stat   st;
    dsa_direct_t  f;

    p = aligned_alloc(4096, LEAF);
    assert_non_null(p);

    file_path(path, 0);
    assert_int_equal(stat(path, &st), 0);
    size = (uint64_t) st.st_size;

    assert_int_equal(dsa_direct_open(&f, path, size, &err), DSA_OK);
    assert_int_equal(dsa_direct_read(&f, p, LEAF, LEAF, &err), DSA_OK);

    assert_int_equal(truncate(path, LEAF + 10), 0);
    assert_int_equal(dsa_direct_read(&f, p, LEAF, LEAF, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "/model-0.safetensors: the file changed "
                           "while it was read: it ends at byte 8388618; "
                           "expected 16789"));

    dsa_direct_close(&f);
    dsa_direct_close(&f);

    assert_int_equal(dsa_direct_open(&f, "/nonexistent", 1, &err), DSA_ERROR);
    assert_string_equal(err.text, "/nonexistent: No such file or directory");
    assert_int_equal(dsa_direct_open(&f, dir, 4096, &err), DSA_ERROR);

    free(p);
    write_file(0, sizes[0]);
}


/* An address within a mapping belongs to its file. */

static void
test_find(void **state)
{
    char                    name[48];
    uint32_t                i;
    uint64_t                offset, size;
    dsa_err_t               err;
    dsa_shards_t            shards;
    const uint8_t          *image;
    const dsa_st_tensor_t  *t;

    assert_int_equal(dsa_shards_open(&shards, dir, DSA_SHARDS_ALL, &err),
                     DSA_OK);
    assert_int_equal(shards.n, FILES);

    for (i = 0; i < FILES; i++) {
        (void) sprintf(name, "model-%u.safetensors", i);
        assert_string_equal(dsa_shards_name(&shards, i), name);

        (void) sprintf(name, "t%u", i);
        t = dsa_st_find(shards.file[i], dsa_strz(name));
        assert_non_null(t);

        image = dsa_st_image(shards.file[i], &size);
        assert_int_equal(dsa_shards_find(&shards, image, &offset), i);
        assert_int_equal(offset, 0);

        assert_int_equal(dsa_shards_find(&shards, image + size - 1, &offset),
                         i);
        assert_int_equal(offset, size - 1);

        if (sizes[i] != 0) {
            assert_int_equal(dsa_shards_find(&shards, t->data, &offset), i);
            assert_int_equal(offset, size - sizes[i]);
        }
    }

    dsa_shards_close(&shards);
}


int
main(void)
{
    int  failures;

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_fingerprint),
        cmocka_unit_test(test_flipped),
        cmocka_unit_test(test_sink),
        cmocka_unit_test(test_sink_fails),
        cmocka_unit_test(test_changed),
        cmocka_unit_test(test_changed_later),
        cmocka_unit_test(test_find)
    };

    failures = cmocka_run_group_tests(tests, setup, teardown);

    /* a file system in memory, which may refuse direct I/O */

    return failures + cmocka_run_group_tests(tests, setup_shm, teardown);
}
