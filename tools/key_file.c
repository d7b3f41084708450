
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "tools/key_file.h"


#define DSA_KEY_FILE_MAX    (256 * 1024 * 1024)     /* bytes */
#define DSA_KEY_FILE_MODE   0640                    /* of a new file */


struct dsa_key_file_s {
    int              fd;            /* locked; -1: opened for reading */
    char             path[PATH_MAX];        /* without symbolic links */
    dsa_buf_t        text;
    dsa_key_list_t   list;          /* the texts are in text */
};


/* An id or a hash, which is in one key entry only. */

typedef struct {
    const dsa_key_entry_t  *entry;
    const void             *bytes;
    size_t                  len;
} dsa_key_name_t;


static int dsa_key_file_lock(dsa_key_file_t *file, const char *path,
    dsa_key_store_mode_e mode, dsa_err_t *err);
static int dsa_key_file_lock_once(dsa_key_file_t *file, const char *path,
    int flags, dsa_err_t *err);
static int dsa_key_file_read(dsa_key_file_t *file, dsa_err_t *err);
static int dsa_key_file_twice(const dsa_key_file_t *file, dsa_err_t *err);
static dsa_key_name_t dsa_key_name_of(const dsa_key_entry_t *entry,
    const void *bytes, size_t len);
static int dsa_key_name_compare(const void *one, const void *two);
static int dsa_key_file_text(const dsa_key_file_t *file, const dsa_key_t *key,
    dsa_buf_t *text, dsa_err_t *err);
static int dsa_key_file_replace(const dsa_key_file_t *file,
    const dsa_buf_t *text, dsa_err_t *err);
static int dsa_key_file_fill(const dsa_key_file_t *file, int fd,
    const dsa_buf_t *text);
static int dsa_key_file_sync(const char *path);


dsa_key_file_t *
dsa_key_file_open(const char *path, dsa_key_store_mode_e mode, dsa_err_t *err)
{
    dsa_key_file_t  *file;

    file = calloc(1, sizeof(dsa_key_file_t));

    if (file == NULL) {
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    file->fd = -1;

    if (mode == DSA_KEY_STORE_READ) {

        if (strlen(path) >= PATH_MAX) {
            (void) dsa_error(err, "%.60s...: the path is too long", path);
            goto failed;
        }

        strcpy(file->path, path);

    } else if (dsa_key_file_lock(file, path, mode, err) != DSA_OK) {
        goto failed;
    }

    if (dsa_key_file_read(file, err) == DSA_OK) {
        return file;
    }

failed:

    dsa_key_file_close(file);

    return NULL;
}


void
dsa_key_file_close(dsa_key_file_t *file)
{
    if (file == NULL) {
        return;
    }

    if (file->fd != -1) {
        (void) close(file->fd);
    }

    dsa_key_list_free(&file->list);
    dsa_buf_free(&file->text);
    free(file);
}


const dsa_key_list_t *
dsa_key_file_list(const dsa_key_file_t *file)
{
    return &file->list;
}


/*
 * The previous writer may have replaced the file while this one waited
 * for the lock.  Then the lock is that of a file without a name, and the new
 * file has to be locked.
 */

static int
dsa_key_file_lock(dsa_key_file_t *file, const char *path,
    dsa_key_store_mode_e mode, dsa_err_t *err)
{
    int  rc, flags;

    flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

    if (mode == DSA_KEY_STORE_CREATE) {
        flags |= O_CREAT;
    }

    do {
        rc = dsa_key_file_lock_once(file, path, flags, err);
    } while (rc == DSA_AGAIN);

    if (rc == DSA_OK && realpath(path, file->path) == NULL) {
        return dsa_error(err, "%s: %s", path, strerror(errno));
    }

    return rc;
}


static int
dsa_key_file_lock_once(dsa_key_file_t *file, const char *path, int flags,
    dsa_err_t *err)
{
    int          rc;
    struct stat  st, now;

    file->fd = open(path, flags, DSA_KEY_FILE_MODE);

    if (file->fd == -1) {
        return dsa_error(err, "%s: %s", path, strerror(errno));
    }

    if (fstat(file->fd, &st) == -1 || !S_ISREG(st.st_mode)) {
        return dsa_error(err, "%s: not a regular file", path);
    }

    do {
        rc = flock(file->fd, LOCK_EX);
    } while (rc == -1 && errno == EINTR);

    if (rc == -1) {
        return dsa_error(err, "%s: cannot lock: %s", path, strerror(errno));
    }

    if (stat(path, &now) == 0 && now.st_dev == st.st_dev
        && now.st_ino == st.st_ino)
    {
        return DSA_OK;
    }

    (void) close(file->fd);
    file->fd = -1;

    return DSA_AGAIN;
}


static int
dsa_key_file_read(dsa_key_file_t *file, dsa_err_t *err)
{
    size_t       line;
    dsa_err_t    reason;
    dsa_str_t    text;
    const char  *p, *last, *end;

    if (dsa_file_read(file->path, DSA_KEY_FILE_MAX, &file->text, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    p = file->text.data;
    last = p + file->text.len;

    for (line = 1; p < last; line++) {
        end = memchr(p, '\n', (size_t) (last - p));
        end = end != NULL ? end : last;
        text = dsa_str_trim(dsa_str(p, (size_t) (end - p)));
        p = end + 1;

        if (text.len == 0 || text.data[0] == '#') {
            continue;
        }

        if (dsa_key_list_add(&file->list, text, &reason) != DSA_OK) {
            return dsa_error(err, "%s: line %zu: %s", file->path, line,
                             reason.text);
        }
    }

    return dsa_key_file_twice(file, err);
}


/* An error if two key entries have the same id or the same hash. */

static int
dsa_key_file_twice(const dsa_key_file_t *file, dsa_err_t *err)
{
    int                     rc;
    size_t                  i, n;
    dsa_key_name_t         *names;
    const dsa_key_entry_t  *e;

    if (file->list.n == 0) {
        return DSA_OK;
    }

    names = malloc(3 * file->list.n * sizeof(dsa_key_name_t));

    if (names == NULL) {
        return dsa_error(err, "%s: out of memory", file->path);
    }

    n = 0;

    for (i = 0; i < file->list.n; i++) {
        e = &file->list.entries[i];
        names[n++] = dsa_key_name_of(e, e->id, DSA_KEY_ID_LEN);
        names[n++] = dsa_key_name_of(e, e->hash, DSA_KEY_HASH_LEN);

        if (e->old) {
            names[n++] = dsa_key_name_of(e, e->old_hash, DSA_KEY_HASH_LEN);
        }
    }

    qsort(names, n, sizeof(dsa_key_name_t), dsa_key_name_compare);

    rc = DSA_OK;

    for (i = 1; i < n && rc == DSA_OK; i++) {
        if (dsa_key_name_compare(&names[i - 1], &names[i]) == 0) {
            rc = dsa_error(err, "%s: the key entries %.*s and %.*s have the "
                           "same %s; expected different ones", file->path,
                           DSA_KEY_ID_LEN, names[i - 1].entry->id,
                           DSA_KEY_ID_LEN, names[i].entry->id,
                           names[i].len == DSA_KEY_ID_LEN ? "id" : "hash");
        }
    }

    free(names);

    return rc;
}


static dsa_key_name_t
dsa_key_name_of(const dsa_key_entry_t *entry, const void *bytes, size_t len)
{
    dsa_key_name_t  name;

    name.entry = entry;
    name.bytes = bytes;
    name.len = len;

    return name;
}


static int
dsa_key_name_compare(const void *one, const void *two)
{
    const dsa_key_name_t  *a = one;
    const dsa_key_name_t  *b = two;

    if (a->len != b->len) {
        return a->len > b->len ? 1 : -1;
    }

    return memcmp(a->bytes, b->bytes, a->len);
}


int
dsa_key_file_put(dsa_key_file_t *file, const dsa_key_t *key, dsa_err_t *err)
{
    int        rc;
    dsa_buf_t  text;

    assert(file->fd != -1);

    memset(&text, 0, sizeof(dsa_buf_t));

    rc = dsa_key_file_text(file, key, &text, err);

    if (rc == DSA_OK) {
        rc = dsa_key_file_replace(file, &text, err);
    }

    dsa_buf_free(&text);

    return rc;
}


/* The text of the new file.  Everything but this key entry keeps its bytes. */

static int
dsa_key_file_text(const dsa_key_file_t *file, const dsa_key_t *key,
    dsa_buf_t *text, dsa_err_t *err)
{
    size_t                  i, before, after;
    const dsa_buf_t        *old;
    const dsa_key_entry_t  *e;

    old = &file->text;
    before = old->len;
    after = old->len;

    for (i = 0; i < file->list.n; i++) {
        e = &file->list.entries[i];

        if (memcmp(e->id, key->id.data, DSA_KEY_ID_LEN) == 0) {
            before = (size_t) (e->text.data - old->data);
            after = before + e->text.len;
        }
    }

    dsa_buf_add(text, old->data, before);

    if (before == old->len && before != 0 && old->data[before - 1] != '\n') {
        dsa_buf_addz(text, "\n");
    }

    dsa_key_write(text, key);

    if (after == old->len) {
        dsa_buf_addz(text, "\n");
    }

    dsa_buf_add(text, old->data + after, old->len - after);

    if (text->failed) {
        return dsa_error(err, "%s: out of memory", file->path);
    }

    return DSA_OK;
}


static int
dsa_key_file_replace(const dsa_key_file_t *file, const dsa_buf_t *text,
    dsa_err_t *err)
{
    int   fd;
    char  temporary[PATH_MAX + 8];

    (void) snprintf(temporary, sizeof(temporary), "%s.XXXXXX", file->path);

    fd = mkostemp(temporary, O_CLOEXEC);

    if (fd == -1) {
        return dsa_error(err, "%s: cannot create a file in its directory: %s",
                         file->path, strerror(errno));
    }

    if (dsa_key_file_fill(file, fd, text) != 0 || close(fd) != 0) {
        (void) dsa_error(err, "%s: %s", temporary, strerror(errno));
        (void) unlink(temporary);
        return DSA_ERROR;
    }

    if (rename(temporary, file->path) != 0) {
        (void) dsa_error(err, "%s: %s", file->path, strerror(errno));
        (void) unlink(temporary);
        return DSA_ERROR;
    }

    if (dsa_key_file_sync(file->path) != 0) {
        return dsa_error(err, "%s: it was replaced, but may not survive a "
                         "loss of power: %s", file->path, strerror(errno));
    }

    return DSA_OK;
}


/*
 * Writes the text, with the owner and the mode of the old file, which the
 * server must be able to read.  Returns 0, or -1 with errno; then fd is closed.
 */

static int
dsa_key_file_fill(const dsa_key_file_t *file, int fd, const dsa_buf_t *text)
{
    int          error;
    size_t       done;
    ssize_t      n;
    struct stat  old, now;

    if (fstat(file->fd, &old) == -1 || fstat(fd, &now) == -1) {
        goto failed;
    }

    if ((old.st_uid != now.st_uid || old.st_gid != now.st_gid)
        && fchown(fd, old.st_uid, old.st_gid) == -1)
    {
        goto failed;
    }

    if (fchmod(fd, old.st_mode & 07777) == -1) {
        goto failed;
    }

    for (done = 0; done < text->len; done += (size_t) n) {
        n = write(fd, text->data + done, text->len - done);

        if (n == -1 && errno == EINTR) {
            n = 0;

        } else if (n == -1) {
            goto failed;
        }
    }

    if (fsync(fd) == 0) {
        return 0;
    }

failed:

    error = errno;
    (void) close(fd);
    errno = error;

    return -1;
}


/* Makes a rename last: the name is in the directory. */

static int
dsa_key_file_sync(const char *path)
{
    int   fd, rc;
    char  copy[PATH_MAX];

    strcpy(copy, path);

    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd == -1) {
        return -1;
    }

    rc = fsync(fd);
    (void) close(fd);

    return rc;
}
