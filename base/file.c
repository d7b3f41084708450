
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"


#define DSA_FILE_CHUNK  16384


int
dsa_file_open(const char *path, uint64_t *size, dsa_err_t *err)
{
    int          fd;
    struct stat  st;

    /* without O_NONBLOCK, open() of a FIFO waits for a writer */

    fd = open(path, O_RDONLY|O_CLOEXEC|O_NONBLOCK);

    if (fd == -1) {
        (void) dsa_error(err, "%s: %s", path, strerror(errno));
        return -1;
    }

    if (fstat(fd, &st) == -1) {
        (void) dsa_error(err, "%s: %s", path, strerror(errno));
        (void) close(fd);
        return -1;
    }

    if (!S_ISREG(st.st_mode)) {
        (void) dsa_error(err, "%s: not a regular file", path);
        (void) close(fd);
        return -1;
    }

    *size = (uint64_t) st.st_size;

    return fd;
}


int
dsa_file_read(const char *path, size_t limit, dsa_buf_t *out, dsa_err_t *err)
{
    int       fd, rc;
    char      chunk[DSA_FILE_CHUNK];
    size_t    left;
    ssize_t   n;
    uint64_t  size;

    fd = dsa_file_open(path, &size, err);
    if (fd == -1) {
        return DSA_ERROR;
    }

    rc = DSA_ERROR;

    /* the size is not used: the file may grow while it is read */

    left = limit;

    for ( ;; ) {
        n = read(fd, chunk, sizeof(chunk));

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

        dsa_buf_add(out, chunk, (size_t) n);
        left -= (size_t) n;
    }

    if (out->failed) {
        (void) dsa_error(err, "%s: out of memory", path);
        goto done;
    }

    rc = DSA_OK;

done:

    (void) close(fd);

    return rc;
}


const char *
dsa_file_foreign(dsa_str_t text)
{
    size_t  i;

    static const struct {
        dsa_str_t    begin;
        const char  *what;
    } foreign[] = {
        { dsa_string("version https://git-lfs.github.com/spec/"),
          "a pointer of Git LFS, not the contents; \"git lfs pull\" in its "
          "repository gets them" },
        { dsa_string("<!DOCTYPE html"),
          "a page of HTML, such as an error of a download; expected the file "
          "itself" },
        { dsa_string("<html"),
          "a page of HTML, such as an error of a download; expected the file "
          "itself" }
    };

    for (i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        if (text.len >= foreign[i].begin.len
            && strncasecmp(text.data, foreign[i].begin.data,
                           foreign[i].begin.len) == 0)
        {
            return foreign[i].what;
        }
    }

    return NULL;
}


int
dsa_file_path(char path[PATH_MAX], const char *dir, dsa_str_t name,
    dsa_err_t *err)
{
    int  n;

    n = snprintf(path, PATH_MAX, "%s/%.*s", dir, (int) name.len, name.data);

    if (n < 0 || n >= PATH_MAX) {
        return dsa_error(err, "%.60s...: the directory's name has %zu bytes; "
                         "a path has at most %d", dir, strlen(dir),
                         PATH_MAX - 1);
    }

    return DSA_OK;
}
