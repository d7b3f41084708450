
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "engine/pages/host.h"


#define MB          (1ULL << 20)


/* Bytes of address space that the process uses. */

static uint64_t
mapped_bytes(void)
{
    FILE           *statm;
    unsigned long   pages;

    statm = fopen("/proc/self/statm", "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%lu", &pages), 1);
    (void) fclose(statm);

    return (uint64_t) pages * (uint64_t) sysconf(_SC_PAGESIZE);
}


static void
expect_closed(const dsa_host_t *h)
{
    dsa_host_t  zero;

    memset(&zero, 0, sizeof(zero));
    assert_memory_equal(h, &zero, sizeof(zero));
}


/* Slots do not overlap, keep what is written, and begin with zeros. */

static void
test_pages(void **state)
{
    uint8_t    *p;
    uint32_t    i, j, pages;
    uint64_t    k;
    dsa_err_t   err;
    dsa_host_t  h;

    assert_int_equal(dsa_host_open(&h, 5 * MB, 100000, &err), DSA_OK);
    assert_int_equal(h.page_bytes, 102400);
    assert_in_range(h.slabs, 1, DSA_HOST_SLABS);

    pages = 0;

    for (i = 0; i < h.slabs; i++) {
        assert_int_equal(h.slab[i].bytes, h.slab[i].pages * h.page_bytes);
        assert_true(h.slab[i].mapped >= h.slab[i].bytes);
        assert_int_equal((uintptr_t) h.slab[i].memory % DSA_HOST_ALIGN, 0);
        pages += h.slab[i].pages;

        for (j = 0; j < h.slab[i].pages; j++) {
            p = dsa_host_page(&h, i, j);

            for (k = 0; k < h.page_bytes; k++) {
                assert_int_equal(p[k], 0);
            }

            memset(p, (int) (i * 100 + j), h.page_bytes);
        }
    }

    assert_int_equal(pages, 5 * MB / 102400);

    for (i = 0; i < h.slabs; i++) {
        for (j = 0; j < h.slab[i].pages; j++) {
            p = dsa_host_page(&h, i, j);
            assert_int_equal(p[0], (uint8_t) (i * 100 + j));
            assert_int_equal(p[h.page_bytes - 1], (uint8_t) (i * 100 + j));
        }
    }

    dsa_host_close(&h);
    expect_closed(&h);
    dsa_host_close(&h);
}


/*
 * All of the memory is present.  It is larger than what one thread writes at a
 * time, and not a multiple of that.
 */

static void
test_present(void **state)
{
    long            page;
    uint32_t        i;
    uint64_t        j, pages;
    dsa_err_t       err;
    dsa_host_t      h;
    unsigned char  *vec;

    page = sysconf(_SC_PAGESIZE);

    assert_int_equal(dsa_host_open(&h, 201 * MB, 3 * MB, &err), DSA_OK);

    for (i = 0; i < h.slabs; i++) {
        pages = (h.slab[i].bytes + page - 1) / page;
        vec = malloc(pages);
        assert_non_null(vec);
        assert_int_equal(mincore(h.slab[i].memory, h.slab[i].bytes, vec), 0);

        for (j = 0; j < pages; j++) {
            assert_int_equal(vec[j] & 1, 1);
        }

        free(vec);
    }

    dsa_host_close(&h);
}


/* Everything is unmapped, many times over. */

static void
test_unmapped(void **state)
{
    uint32_t    i;
    uint64_t    before;
    dsa_err_t   err;
    dsa_host_t  h;

    before = 0;

    for (i = 0; i < 20; i++) {
        assert_int_equal(dsa_host_open(&h, 100 * MB, 3 * MB, &err), DSA_OK);
        dsa_host_close(&h);

        /* the first call may leave stacks and the arenas of threads */

        if (i == 4) {
            before = mapped_bytes();
        }
    }

    assert_true(mapped_bytes() < before + 100 * MB);
}


static void
test_too_small(void **state)
{
    dsa_err_t   err;
    dsa_host_t  h;

    assert_int_equal(dsa_host_open(&h, 8191, 4097, &err), DSA_ERROR);
    assert_string_equal(err.text, "8191 bytes of host memory do not hold a "
                        "page of the KV cache; expected at least 8192 bytes");
    dsa_host_close(&h);
    expect_closed(&h);

    assert_int_equal(dsa_host_open(&h, 8192, 4097, &err), DSA_OK);
    assert_int_equal(h.slabs, 1);
    assert_int_equal(h.slab[0].pages, 1);
    dsa_host_close(&h);
}


/* The error has what was requested and what the system has. */

static void
test_too_large(void **state)
{
    char                 line[256];
    FILE                *meminfo;
    dsa_err_t            err;
    dsa_host_t           h;
    unsigned long long   requested, available, total;

    total = 0;
    meminfo = fopen("/proc/meminfo", "r");
    assert_non_null(meminfo);

    while (fgets(line, sizeof(line), meminfo) != NULL) {
        if (sscanf(line, "MemTotal: %llu", &total) == 1) {
            break;
        }
    }

    (void) fclose(meminfo);
    assert_true(total != 0);

    assert_int_equal(dsa_host_open(&h, 1024 * total + 64 * MB, MB, &err),
                     DSA_ERROR);
    assert_int_equal(sscanf(err.text, "%llu MB of host memory for the KV cache "
                            "are not available; the system has %llu MB",
                            &requested, &available), 2);
    assert_in_range(requested, total / 1024 + 60, total / 1024 + 64);
    assert_in_range(available, 1, total / 1024);
    expect_closed(&h);

    assert_int_equal(dsa_host_open(&h, UINT64_MAX, 3 * MB, &err), DSA_ERROR);
    expect_closed(&h);
}


/* mmap() fails, although the system has the memory. */

static void
test_no_address_space(void **state)
{
    int            rc;
    dsa_err_t      err;
    dsa_host_t     h;
    struct rlimit  before, limit;

    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);

    limit = before;
    limit.rlim_cur = (rlim_t) (mapped_bytes() + 32 * MB);
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);

    rc = dsa_host_open(&h, 256 * MB, 3 * MB, &err);

    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(rc, DSA_ERROR);
    assert_non_null(strstr(err.text, "mmap() of"));
    assert_non_null(strstr(err.text, "Cannot allocate memory"));
    expect_closed(&h);
}


/* The log has the sizes, the kind of memory and the time. */

static void
test_log(void **state)
{
    int            fd, saved, rc;
    char           text[4096], kind[32];
    ssize_t        n;
    uint32_t       pages;
    dsa_err_t      err;
    dsa_host_t     h;
    const char    *line;
    unsigned long  bytes, mb, seconds;

    fd = memfd_create("log", MFD_CLOEXEC);
    saved = dup(STDERR_FILENO);
    assert_true(fd != -1 && saved != -1);
    assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);

    dsa_log_level(DSA_LOG_NOTICE);
    rc = dsa_host_open(&h, 25 * MB, 3 * MB, &err);
    dsa_log_level(DSA_LOG_WARN);

    assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
    assert_int_equal(rc, DSA_OK);

    n = pread(fd, text, sizeof(text) - 1, 0);
    assert_true(n > 0);
    text[n] = '\0';

    line = strstr(text, "[notice]");
    assert_non_null(line);
    line = strstr(line, "host memory: ");
    assert_non_null(line);
    assert_int_equal(sscanf(line, "host memory: %u host pages of %lu bytes, "
                            "%lu MB of %31[a-z0-9MG ]", &pages, &bytes, &mb,
                            kind),
                     4);
    assert_int_equal(pages, h.slab[0].pages);
    assert_int_equal(bytes, 3 * MB);
    assert_int_equal(mb, h.slab[0].mapped / MB);

    line = strstr(text, "host memory: 24 MB on ");
    assert_non_null(line);
    line = strstr(line, "present after ");
    assert_non_null(line);
    assert_int_equal(sscanf(line, "present after %lu.%*u s", &seconds), 1);

    (void) close(fd);
    (void) close(saved);
    dsa_host_close(&h);
}


static void
expect_nodes(const char *list, const char *expected)
{
    char      text[64];
    size_t    n;
    uint8_t   set[DSA_HOST_NODES];
    uint32_t  i;

    memset(set, 7, sizeof(set));
    dsa_host_nodes(list, set);

    n = 0;
    text[0] = '\0';

    for (i = 0; i < DSA_HOST_NODES; i++) {
        assert_in_range(set[i], 0, 1);

        if (set[i]) {
            n += (size_t) snprintf(text + n, sizeof(text) - n, " %u", i);
        }
    }

    assert_string_equal(text, expected);
}


static void
test_nodes(void **state)
{
    expect_nodes("0\n", " 0");
    expect_nodes("\t0-1\n", " 0 1");
    expect_nodes("0-1,3,8-10", " 0 1 3 8 9 10");
    expect_nodes("1022-4095\n", " 1022 1023");
    expect_nodes("4000,2", " 2");
    expect_nodes("\n", "");
    expect_nodes("", "");
}


static void
test_slab(void **state)
{
    dsa_host_t  h;

    memset(&h, 0, sizeof(h));
    h.slabs = 3;
    h.slab[0].node = 0;
    h.slab[1].node = 2;
    h.slab[2].node = 5;

    assert_int_equal(dsa_host_slab(&h, 0, 0), 0);
    assert_int_equal(dsa_host_slab(&h, 0, 2), 1);
    assert_int_equal(dsa_host_slab(&h, 0, 5), 2);
    assert_int_equal(dsa_host_slab(&h, 0, 3), 0);
    assert_int_equal(dsa_host_slab(&h, 0, -1), 0);

    /* the slabs of another host are not those of this one */

    h.slab[1].host = 1;
    h.slab[2].host = 1;
    assert_int_equal(dsa_host_slab(&h, 0, 2), 0);
    assert_int_equal(dsa_host_slab(&h, 1, 2), 1);
    assert_int_equal(dsa_host_slab(&h, 1, 5), 2);
    assert_int_equal(dsa_host_slab(&h, 1, 0), 1);

    h.slabs = 1;
    h.slab[0].node = -1;
    assert_int_equal(dsa_host_slab(&h, 0, 2), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_present),
        cmocka_unit_test(test_unmapped),
        cmocka_unit_test(test_too_small),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_no_address_space),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_slab)
    };

    dsa_log_level(DSA_LOG_WARN);

    return cmocka_run_group_tests(tests, NULL, NULL);
}
