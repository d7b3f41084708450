
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/checkpoint/direct.h"


#define DSA_DIRECT_FLAGS    (O_RDONLY|O_CLOEXEC|O_NONBLOCK)


static void dsa_direct_buffered(dsa_direct_t *f);


int
dsa_direct_open(dsa_direct_t *f, const char *path, uint64_t size,
    dsa_err_t *err)
{
    struct stat  st;

    f->path = path;
    f->size = size;
    f->direct = 1;
    f->fd = open(path, DSA_DIRECT_FLAGS|O_DIRECT);

    if (f->fd == -1 && errno == EINVAL) {
        f->direct = 0;
        f->fd = open(path, DSA_DIRECT_FLAGS);
    }

    if (f->fd == -1) {
        return dsa_error(err, "%s: %s", path, strerror(errno));
    }

    if (fstat(f->fd, &st) == -1) {
        (void) dsa_error(err, "%s: %s", path, strerror(errno));
        dsa_direct_close(f);
        return DSA_ERROR;
    }

    if (!S_ISREG(st.st_mode) || (uint64_t) st.st_size != size) {
        (void) dsa_error(err, "%s: the file changed while it was read: it has "
                         "%llu bytes; expected %llu", path,
                         (unsigned long long) st.st_size,
                         (unsigned long long) size);
        dsa_direct_close(f);
        return DSA_ERROR;
    }

    return DSA_OK;
}


void
dsa_direct_close(dsa_direct_t *f)
{
    if (f->fd != -1) {
        (void) close(f->fd);
        f->fd = -1;
    }
}


int
dsa_direct_read(dsa_direct_t *f, uint8_t *to, uint64_t offset, size_t n,
    dsa_err_t *err)
{
    size_t   done, left;
    ssize_t  got;

    assert((uintptr_t) to % DSA_DIRECT_ALIGN == 0
           && offset % DSA_DIRECT_ALIGN == 0
           && (n % DSA_DIRECT_ALIGN == 0 || offset + n == f->size));

    for (done = 0; done < n; done += (size_t) got) {
        left = n - done;

        /* the last block of a file may be shorter than a direct read */

        if (f->direct) {
            left = (left + DSA_DIRECT_ALIGN - 1) / DSA_DIRECT_ALIGN
                   * DSA_DIRECT_ALIGN;
        }

        got = pread(f->fd, to + done, left, (off_t) (offset + done));

        if (got == -1 && errno == EINVAL && f->direct) {
            dsa_direct_buffered(f);
            got = 0;

        } else if (got == -1 && errno == EINTR) {
            got = 0;

        } else if (got == -1) {
            return dsa_error(err, "%s: reading %zu bytes at offset %llu: %s",
                             f->path, left,
                             (unsigned long long) (offset + done),
                             strerror(errno));

        } else if (got == 0 || (size_t) got > n - done) {
            return dsa_error(err, "%s: the file changed while it was read: it "
                             "%s byte %llu; expected %llu bytes", f->path,
                             got == 0 ? "ends at" : "continues after",
                             (unsigned long long) (got == 0 ? offset + done
                                                            : f->size),
                             (unsigned long long) f->size);
        }
    }

    if (!f->direct) {
        (void) posix_fadvise(f->fd, (off_t) offset, (off_t) n,
                             POSIX_FADV_DONTNEED);
    }

    return DSA_OK;
}


/*
 * Switches to reads through the page cache.  Some file systems accept O_DIRECT
 * in open() and then reject the reads.
 */

static void
dsa_direct_buffered(dsa_direct_t *f)
{
    int  flags;

    flags = fcntl(f->fd, F_GETFL);
    (void) fcntl(f->fd, F_SETFL, flags & ~O_DIRECT);
    f->direct = 0;
}
