
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/threads.h"
#include "engine/backend.h"
#include "engine/pages/host.h"


#define DSA_HOST_MB         (1ULL << 20)
#define DSA_HOST_CHUNK      (64 * DSA_HOST_MB)  /* piece that a thread writes
                                                   at a time */
#define DSA_HOST_THREADS    8           /* for each slab, and at most one for
                                           each CPU */
#define DSA_HOST_LOG_MS     5000        /* between two reports of progress */
#define DSA_HOST_LINE       8192        /* most bytes of a line of /proc, with
                                           the zero at its end */


/*
 * The kinds of memory, in the order in which they are tried.  Reserved huge
 * pages are first, because nothing else can use them.
 */

typedef struct {
    uint64_t            page;           /* bytes; 0: normal memory */
    int                 flags;          /* of mmap() */
    const char         *name;
} dsa_host_kind_t;


static const dsa_host_kind_t  dsa_host_kinds[] = {
    { 1ULL << 30, MAP_HUGETLB | 30 << MAP_HUGE_SHIFT, "reserved 1 GB pages" },
    { 1ULL << 21, MAP_HUGETLB | 21 << MAP_HUGE_SHIFT, "reserved 2 MB pages" },
    { 0, 0, "normal memory" }
};

#define DSA_HOST_NORMAL     2           /* of dsa_host_kinds[] */


typedef struct {
    dsa_host_t         *host;
    int                 can_populate;   /* MADV_POPULATE_WRITE exists */
    uint32_t            kind[DSA_HOST_SLABS];
    int                 present[DSA_HOST_SLABS];
    atomic_int          failed[DSA_HOST_SLABS];     /* errno, 0: no failure */

    uint64_t            total;          /* bytes of all slabs */
    _Atomic uint64_t    written;        /* bytes */
    _Atomic uint64_t    log_at;         /* ms, of the next report */
} dsa_host_fill_t;


static void dsa_host_share(dsa_host_t *h, uint64_t pages, uint32_t most);
static uint32_t dsa_host_find_nodes(int32_t *node, uint32_t most);
static int dsa_host_map(dsa_host_fill_t *f, dsa_err_t *err);
static int dsa_host_map_huge(dsa_host_fill_t *f, uint32_t i);
static int dsa_host_map_normal(dsa_host_fill_t *f, dsa_err_t *err);
static void dsa_host_bind(const dsa_host_slab_t *s);
static int dsa_host_fill(dsa_host_fill_t *f, dsa_err_t *err);
static uint64_t dsa_host_chunk(const dsa_host_fill_t *f, uint32_t i);
static void dsa_host_write(void *ctx, uint32_t piece, uint32_t thread);
static void dsa_host_progress(dsa_host_fill_t *f, uint64_t bytes);
static int dsa_host_check(dsa_host_fill_t *f, int *again, dsa_err_t *err);
static void dsa_host_log(const dsa_host_fill_t *f, uint64_t ms);
static void dsa_host_unmap(dsa_host_slab_t *s);
static int dsa_host_can_populate(void);
static int dsa_host_available(uint64_t *bytes);
static int dsa_host_field(const char *path, const char *name,
    char value[DSA_HOST_LINE]);


int
dsa_host_open(dsa_host_t *h, uint64_t size, uint64_t page_bytes,
    dsa_err_t *err)
{
    return dsa_host_open_part(h, size, page_bytes, 1, err);
}


int
dsa_host_open_part(dsa_host_t *h, uint64_t size, uint64_t page_bytes,
    uint32_t hosts, dsa_err_t *err)
{
    uint32_t         i, most;
    uint64_t         start;
    dsa_host_fill_t  f;

    assert(page_bytes >= 1 && page_bytes <= UINT64_MAX - DSA_HOST_ALIGN);
    assert(hosts >= 1 && hosts <= DSA_HOST_SLABS);

    memset(h, 0, sizeof(dsa_host_t));
    memset(&f, 0, sizeof(dsa_host_fill_t));

    h->page_bytes = (page_bytes + DSA_HOST_ALIGN - 1) / DSA_HOST_ALIGN
                    * DSA_HOST_ALIGN;

    if (size < h->page_bytes) {
        return dsa_error(err, "%llu bytes of host memory do not hold a page of "
                         "the KV cache; expected at least %llu bytes",
                         (unsigned long long) size,
                         (unsigned long long) h->page_bytes);
    }

    most = DSA_HOST_SLABS / hosts;
    most = most < DSA_HOST_NODES_USED ? most : DSA_HOST_NODES_USED;
    dsa_host_share(h, size / h->page_bytes, most);

    start = dsa_clock_ms();

    f.host = h;
    f.can_populate = dsa_host_can_populate();
    atomic_store(&f.log_at, start + DSA_HOST_LOG_MS);

    for (i = 0; i < h->slabs; i++) {
        f.total += h->slab[i].bytes;

        /*
         * Without MADV_POPULATE_WRITE, reserved pages are not tried, because
         * the first write to a page that a cpuset does not permit would be a
         * SIGBUS.
         */

        f.kind[i] = f.can_populate ? 0 : DSA_HOST_NORMAL;
    }

    if (dsa_host_map(&f, err) != DSA_OK) {
        dsa_host_close(h);
        return DSA_ERROR;
    }

    dsa_host_log(&f, dsa_clock_ms() - start);

    return DSA_OK;
}


void
dsa_host_close(dsa_host_t *h)
{
    uint32_t  i;

    for (i = 0; i < h->slabs; i++) {
        dsa_host_unmap(&h->slab[i]);
    }

    memset(h, 0, sizeof(dsa_host_t));
}


uint32_t
dsa_host_slab(const dsa_host_t *h, uint32_t host, int32_t node)
{
    uint32_t  i, first;

    first = h->slabs;

    for (i = 0; i < h->slabs; i++) {
        if (h->slab[i].host != host) {
            continue;
        }

        first = first == h->slabs ? i : first;

        if (node != -1 && h->slab[i].node == node) {
            return i;
        }
    }

    assert(first < h->slabs);

    return first;
}


void
dsa_host_nodes(const char *list, uint8_t set[DSA_HOST_NODES])
{
    char           *end;
    unsigned long   first, last;

    memset(set, 0, DSA_HOST_NODES);

    for ( ;; ) {
        first = strtoul(list, &end, 10);

        if (end == list) {
            return;
        }

        last = first;

        if (*end == '-') {
            list = end + 1;
            last = strtoul(list, &end, 10);
        }

        for (/* void */; first <= last && first < DSA_HOST_NODES; first++) {
            set[first] = 1;
        }

        if (*end != ',') {
            return;
        }

        list = end + 1;
    }
}


/* Sets at most so many slabs, their nodes and their sizes. */

static void
dsa_host_share(dsa_host_t *h, uint64_t pages, uint32_t most)
{
    int32_t           node[DSA_HOST_SLABS];
    uint32_t          i, n;
    uint64_t          share;
    dsa_host_slab_t  *s;

    n = dsa_host_find_nodes(node, most);

    h->slabs = pages < n ? (uint32_t) pages : n;

    for (i = 0; i < h->slabs; i++) {
        s = &h->slab[i];
        share = pages / h->slabs + (i < pages % h->slabs);

        s->node = n > 1 ? node[i] : -1;
        s->number = i;
        s->pages = share < DSA_PAGES_MAX ? (uint32_t) share : DSA_PAGES_MAX;
        s->bytes = s->pages * h->page_bytes;
    }
}


/*
 * Finds the nodes with memory that this process may use.  Returns their
 * number, 1 to most: memory of further nodes is not used.
 */

static uint32_t
dsa_host_find_nodes(int32_t *node, uint32_t most)
{
    char      text[DSA_HOST_LINE];
    uint8_t   memory[DSA_HOST_NODES], allowed[DSA_HOST_NODES];
    int32_t   i;
    uint32_t  n;

    memset(memory, 0, sizeof(memory));
    memset(allowed, 1, sizeof(allowed));

    if (dsa_host_field("/sys/devices/system/node/has_memory", "", text)
        == DSA_OK)
    {
        dsa_host_nodes(text, memory);
    }

    if (dsa_host_field("/proc/self/status", "Mems_allowed_list:", text)
        == DSA_OK)
    {
        dsa_host_nodes(text, allowed);
    }

    n = 0;

    for (i = 0; i < DSA_HOST_NODES && n < most; i++) {
        if (memory[i] && allowed[i]) {
            node[n++] = i;
        }
    }

    if (n == 0) {
        node[n++] = 0;
    }

    return n;
}


/* Maps all slabs and makes them present. */

static int
dsa_host_map(dsa_host_fill_t *f, dsa_err_t *err)
{
    int       again;
    uint32_t  i;

    do {
        for (i = 0; i < f->host->slabs; i++) {
            while (!f->present[i] && f->kind[i] != DSA_HOST_NORMAL
                   && dsa_host_map_huge(f, i) != DSA_OK)
            {
                f->kind[i]++;
            }
        }

        if (dsa_host_map_normal(f, err) != DSA_OK
            || dsa_host_fill(f, err) != DSA_OK
            || dsa_host_check(f, &again, err) != DSA_OK)
        {
            return DSA_ERROR;
        }

    } while (again);

    return DSA_OK;
}


/*
 * Maps a slab in reserved pages.  DSA_ERROR: the system does not have enough
 * pages of this kind, or rounding up to whole pages would make a small slab
 * larger by more than 1/8.
 */

static int
dsa_host_map_huge(dsa_host_fill_t *f, uint32_t i)
{
    void                   *p;
    uint64_t                mapped;
    dsa_host_slab_t        *s;
    const dsa_host_kind_t  *kind;

    s = &f->host->slab[i];
    kind = &dsa_host_kinds[f->kind[i]];
    mapped = (s->bytes + kind->page - 1) / kind->page * kind->page;

    if (mapped - s->bytes > s->bytes / 8) {
        return DSA_ERROR;
    }

    p = mmap(NULL, mapped, PROT_READ|PROT_WRITE,
             MAP_PRIVATE|MAP_ANONYMOUS|kind->flags, -1, 0);

    if (p == MAP_FAILED) {
        return DSA_ERROR;
    }

    s->memory = p;
    s->mapped = mapped;
    dsa_host_bind(s);

    return DSA_OK;
}


/* Maps the slabs for which the system has no reserved pages. */

static int
dsa_host_map_normal(dsa_host_fill_t *f, dsa_err_t *err)
{
    void             *p;
    uint32_t          i;
    uint64_t          bytes, available;
    dsa_host_slab_t  *s;

    bytes = 0;

    for (i = 0; i < f->host->slabs; i++) {
        if (f->host->slab[i].memory == NULL) {
            bytes += f->host->slab[i].bytes;
        }
    }

    /*
     * Check this here, because the kernel permits mappings of any size, and
     * the OOM killer ends processes when memory runs out.
     */

    if (bytes != 0 && dsa_host_available(&available) == DSA_OK
        && bytes > available)
    {
        return dsa_error(err, "%llu MB of host memory for the KV cache are not "
                         "available; the system has %llu MB",
                         (unsigned long long) (bytes / DSA_HOST_MB),
                         (unsigned long long) (available / DSA_HOST_MB));
    }

    for (i = 0; i < f->host->slabs; i++) {
        s = &f->host->slab[i];

        if (s->memory != NULL) {
            continue;
        }

        p = mmap(NULL, s->bytes, PROT_READ|PROT_WRITE,
                 MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);

        if (p == MAP_FAILED) {
            return dsa_error(err, "mmap() of %llu MB of host memory for the KV "
                             "cache: %s",
                             (unsigned long long) (s->bytes / DSA_HOST_MB),
                             strerror(errno));
        }

        s->memory = p;
        s->mapped = s->bytes;

        /*
         * a kernel without transparent huge pages rejects it, which is no
         * error
         */

        (void) madvise(p, s->mapped, MADV_HUGEPAGE);

        dsa_host_bind(s);
    }

    return DSA_OK;
}


/*
 * Allocates the memory of a slab from its node, if the node has enough.  With
 * a strict binding the OOM killer would run when only this node is full.
 *
 * libnuma could replace only this function and the parser of two lists, so it
 * is not used.
 */

static void
dsa_host_bind(const dsa_host_slab_t *s)
{
    unsigned long  mask[DSA_HOST_NODES / (8 * sizeof(unsigned long))];

    /* leave the texts of users, and so many bytes, out of core dumps */

    (void) madvise(s->memory, s->mapped, MADV_DONTDUMP);

    if (s->node == -1) {
        return;
    }

    memset(mask, 0, sizeof(mask));
    mask[s->node / (8 * sizeof(mask[0]))] |=
                                     1UL << s->node % (8 * sizeof(mask[0]));

    /* the kernel reads one bit less than the number that it is passed */

    if (syscall(SYS_mbind, s->memory, s->mapped, MPOL_PREFERRED, mask,
                DSA_HOST_NODES + 1, 0) != 0)
    {
        dsa_log(DSA_LOG_WARN, "host memory: mbind() to NUMA node %d: %s; "
                "copies of pages will be slower", s->node, strerror(errno));
    }
}


/*
 * Writes to all pages of the slabs that are not present, with several threads.
 */

static int
dsa_host_fill(dsa_host_fill_t *f, dsa_err_t *err)
{
    uint32_t        i, threads, cpus;
    uint64_t        n, chunks;
    dsa_threads_t  *pool;

    chunks = 0;

    for (i = 0; i < f->host->slabs; i++) {
        n = (f->host->slab[i].mapped - 1) / dsa_host_chunk(f, i) + 1;
        chunks = n > chunks ? n : chunks;
    }

    threads = DSA_HOST_THREADS * f->host->slabs;
    cpus = dsa_threads_cpus();

    pool = dsa_threads_create(threads < cpus ? threads : cpus, err);

    if (pool == NULL) {
        return DSA_ERROR;
    }

    dsa_threads_run(pool, (uint32_t) chunks * f->host->slabs, dsa_host_write,
                    f);
    dsa_threads_destroy(pool);

    return DSA_OK;
}


/* Returns the bytes of a piece: at least a page, which one thread writes. */

static uint64_t
dsa_host_chunk(const dsa_host_fill_t *f, uint32_t i)
{
    uint64_t  page;

    page = dsa_host_kinds[f->kind[i]].page;

    return page > DSA_HOST_CHUNK ? page : DSA_HOST_CHUNK;
}


/*
 * Writes a piece.  Pieces alternate between the slabs, so that the memory of
 * all nodes is written in parallel.
 */

static void
dsa_host_write(void *ctx, uint32_t piece, uint32_t thread)
{
    uint32_t           i;
    uint64_t           chunk, begin, end;
    dsa_host_slab_t   *s;
    dsa_host_fill_t   *f = ctx;
    volatile uint8_t  *byte;

    i = piece % f->host->slabs;
    s = &f->host->slab[i];

    chunk = dsa_host_chunk(f, i);
    begin = piece / f->host->slabs * chunk;

    if (begin >= s->mapped || f->present[i]
        || atomic_load(&f->failed[i]) != 0)
    {
        return;
    }

    end = s->mapped - begin > chunk ? begin + chunk : s->mapped;

    if (f->can_populate) {
        if (madvise(s->memory + begin, end - begin, MADV_POPULATE_WRITE) != 0) {
            atomic_store(&f->failed[i], errno);
            return;
        }

    } else {
        for (byte = s->memory + begin; byte < s->memory + end;
             byte += DSA_HOST_ALIGN)
        {
            *byte = 0;
        }
    }

    dsa_host_progress(f, end - begin);
}


static void
dsa_host_progress(dsa_host_fill_t *f, uint64_t bytes)
{
    uint64_t  written, now, at;

    written = atomic_fetch_add(&f->written, bytes) + bytes;
    now = dsa_clock_ms();
    at = atomic_load(&f->log_at);

    /* one of the threads logs the progress */

    if (now >= at
        && atomic_compare_exchange_strong(&f->log_at, &at,
                                          now + DSA_HOST_LOG_MS))
    {
        dsa_log(DSA_LOG_INFO, "host memory: %llu of %llu MB are present",
                (unsigned long long) (written / DSA_HOST_MB),
                (unsigned long long) (f->total / DSA_HOST_MB));
    }
}


/*
 * Called after dsa_host_fill().  Unmaps a slab of reserved pages that could
 * not be written, and sets *again to 1, so that the next kind of memory is
 * tried.
 */

static int
dsa_host_check(dsa_host_fill_t *f, int *again, dsa_err_t *err)
{
    int               failed;
    uint32_t          i;
    dsa_host_slab_t  *s;

    *again = 0;

    for (i = 0; i < f->host->slabs; i++) {
        s = &f->host->slab[i];
        failed = atomic_exchange(&f->failed[i], 0);

        if (failed == 0) {
            f->present[i] = 1;
            continue;
        }

        if (f->kind[i] == DSA_HOST_NORMAL) {
            return dsa_error(err, "writing to %llu MB of host memory for the "
                             "KV cache: %s",
                             (unsigned long long) (s->bytes / DSA_HOST_MB),
                             strerror(failed));
        }

        dsa_host_unmap(s);
        f->kind[i]++;
        *again = 1;
    }

    return DSA_OK;
}


static void
dsa_host_log(const dsa_host_fill_t *f, uint64_t ms)
{
    char                    node[32], thp[DSA_HOST_LINE];
    uint32_t                i;
    const char             *name;
    const dsa_host_slab_t  *s;

    for (i = 0; i < f->host->slabs; i++) {
        s = &f->host->slab[i];
        name = dsa_host_kinds[f->kind[i]].name;

        if (f->kind[i] == DSA_HOST_NORMAL
            && dsa_host_field("/sys/kernel/mm/transparent_hugepage/enabled",
                              "", thp) == DSA_OK
            && strstr(thp, "[never]") == NULL)
        {
            name = "transparent huge pages";
        }

        node[0] = '\0';

        if (s->node != -1) {
            (void) snprintf(node, sizeof(node), " on NUMA node %d", s->node);
        }

        dsa_log(DSA_LOG_NOTICE, "host memory: %u host pages of %llu bytes, "
                "%llu MB of %s%s", s->pages,
                (unsigned long long) f->host->page_bytes,
                (unsigned long long) (s->mapped / DSA_HOST_MB), name, node);
    }

    dsa_log(DSA_LOG_NOTICE, "host memory: %llu MB on %u NUMA node%s are "
            "present after %llu.%02llu s",
            (unsigned long long) (f->total / DSA_HOST_MB), f->host->slabs,
            f->host->slabs == 1 ? "" : "s", (unsigned long long) ms / 1000,
            (unsigned long long) ms % 1000 / 10);
}


static void
dsa_host_unmap(dsa_host_slab_t *s)
{
    int  rc;

    if (s->memory == NULL) {
        return;
    }

    rc = munmap(s->memory, s->mapped);

    assert(rc == 0);

    s->memory = NULL;
    s->mapped = 0;
}


/* Returns 1 if the kernel has MADV_POPULATE_WRITE (Linux 5.14). */

static int
dsa_host_can_populate(void)
{
    int    rc;
    long   page;
    void  *p;

    page = sysconf(_SC_PAGESIZE);
    p = mmap(NULL, (size_t) page, PROT_READ|PROT_WRITE,
             MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        return 0;
    }

    rc = madvise(p, (size_t) page, MADV_POPULATE_WRITE);

    (void) munmap(p, (size_t) page);

    return rc == 0;
}


/* Reads the bytes that can be allocated without swapping. */

static int
dsa_host_available(uint64_t *bytes)
{
    char  text[DSA_HOST_LINE];

    if (dsa_host_field("/proc/meminfo", "MemAvailable:", text) != DSA_OK) {
        return DSA_ERROR;
    }

    *bytes = strtoull(text, NULL, 10) * 1024;

    return DSA_OK;
}


/*
 * Copies the rest of the first line that begins with name.  DSA_ERROR: the
 * system does not have the file or the line.
 */

static int
dsa_host_field(const char *path, const char *name, char value[DSA_HOST_LINE])
{
    int      rc;
    char     line[DSA_HOST_LINE];
    FILE    *file;
    size_t   n;

    file = fopen(path, "re");

    if (file == NULL) {
        return DSA_ERROR;
    }

    rc = DSA_ERROR;
    n = strlen(name);

    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, name, n) == 0) {
            memcpy(value, line + n, strlen(line + n) + 1);
            rc = DSA_OK;
            break;
        }
    }

    (void) fclose(file);

    return rc;
}
