
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"


int
dsa_file_read(const char *path, size_t limit, dsa_buf_t *out, dsa_err_t *err)
{
    int          fd, rc;
    char         piece[16384];
    size_t       left;
    ssize_t      n;
    struct stat  st;

    /* O_NONBLOCK: a FIFO without a writer must not hold the caller up */

    fd = open(path, O_RDONLY|O_CLOEXEC|O_NONBLOCK);
    if (fd == -1) {
        return dsa_error(err, "%s: %s", path, strerror(errno));
    }

    rc = DSA_ERROR;

    if (fstat(fd, &st) == -1) {
        (void) dsa_error(err, "%s: %s", path, strerror(errno));
        goto done;
    }

    if (!S_ISREG(st.st_mode)) {
        (void) dsa_error(err, "%s: not a regular file", path);
        goto done;
    }

    left = limit;

    for ( ;; ) {
        n = read(fd, piece, sizeof(piece));

        if (n == -1 && errno == EINTR) {
            continue;
        }

        if (n == -1) {
            (void) dsa_error(err, "%s: %s", path, strerror(errno));
            goto done;
        }

        if (n == 0) {
            break;
        }

        if ((size_t) n > left) {
            (void) dsa_error(err, "%s: the file is larger than %zu bytes",
                             path, limit);
            goto done;
        }

        dsa_buf_add(out, piece, (size_t) n);
        left -= (size_t) n;
    }

    if (out->failed) {
        (void) dsa_error(err, "%s: no memory to read the file", path);
        goto done;
    }

    rc = DSA_OK;

done:

    (void) close(fd);

    return rc;
}
