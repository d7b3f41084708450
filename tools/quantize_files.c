
/*
 * Copyright (C) The nginx-dsa authors
 *
 * dsa quantize: the files beside the shards.
 */


#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fields.h"
#include "base/file.h"
#include "base/json_write.h"
#include "tools/quantize.h"


/* In the directory until it is complete: from which checkpoint it is made. */
#define DSA_QUANTIZE_STATE      "dsa-quantize.state"

#define DSA_QUANTIZE_CONFIG     "config.json"
#define DSA_QUANTIZE_INDEX      "model.safetensors.index.json"
#define DSA_QUANTIZE_INDEX_MAX  (256 * 1024 * 1024)     /* bytes */
#define DSA_QUANTIZE_CHUNK      65536


static int dsa_quantize_take(dsa_quantize_t *q, const char *state);
static int dsa_quantize_empty(const dsa_quantize_t *q);
static int dsa_quantize_copy_all(dsa_quantize_t *q);
static int dsa_quantize_copy(const dsa_quantize_t *q, const char *name);
static int dsa_quantize_index(const dsa_quantize_t *q);
static int dsa_quantize_config(const dsa_quantize_t *q);
static int dsa_quantize_write(const dsa_quantize_t *q, const char *name,
    dsa_buf_t *text);


int
dsa_quantize_part(char part[PATH_MAX], const char *path, dsa_err_t *err)
{
    int  n;

    n = snprintf(part, PATH_MAX, "%s.part", path);

    return n < PATH_MAX ? DSA_OK
                        : dsa_error(err, "%s: the path is too long", path);
}


static int
dsa_quantize_sync(const char *path, int flags)
{
    int  fd, rc, failed;

    fd = open(path, flags|O_CLOEXEC);

    if (fd == -1) {
        return -1;
    }

    rc = fsync(fd);
    failed = errno;
    (void) close(fd);
    errno = failed;

    return rc;
}


int
dsa_quantize_name(const char *path, dsa_err_t *err)
{
    char  *slash, part[PATH_MAX], dir[PATH_MAX];

    if (dsa_quantize_part(part, path, err) != DSA_OK) {
        return DSA_ERROR;
    }

    (void) snprintf(dir, sizeof(dir), "%s", path);
    slash = strrchr(dir, '/');
    slash[1] = '\0';

    if (dsa_quantize_sync(part, O_RDONLY) == -1 || rename(part, path) == -1
        || dsa_quantize_sync(dir, O_RDONLY|O_DIRECTORY) == -1)
    {
        (void) dsa_error(err, "%s: %s", path, strerror(errno));
        (void) unlink(part);
        return DSA_ERROR;
    }

    return DSA_OK;
}


int
dsa_quantize_begin(dsa_quantize_t *q)
{
    char  from[PATH_MAX], to[PATH_MAX], state[PATH_MAX];

    if (mkdir(q->out, 0777) == -1 && errno != EEXIST) {
        return dsa_error(q->err, "%s: %s", q->out, strerror(errno));
    }

    if (realpath(q->in, from) == NULL || realpath(q->out, to) == NULL) {
        return dsa_error(q->err, "%s: %s", q->out, strerror(errno));
    }

    if (strcmp(from, to) == 0) {
        return dsa_error(q->err, "--in and --out are the same directory; "
                         "expected two");
    }

    /* two processes would write the same unnamed files */

    q->lock = open(q->out, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (q->lock == -1) {
        return dsa_error(q->err, "%s: %s", q->out, strerror(errno));
    }

    if (flock(q->lock, LOCK_EX|LOCK_NB) == -1) {
        return dsa_error(q->err, "%s: %s", q->out,
                         errno == EWOULDBLOCK
                         ? "another process works on this directory"
                         : strerror(errno));
    }

    if (dsa_file_path(state, q->out, dsa_strz(DSA_QUANTIZE_STATE), q->err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_quantize_take(q, state);
}


/* Compares the state of an earlier run, or writes the first one. */

static int
dsa_quantize_take(dsa_quantize_t *q, const char *state)
{
    int        rc;
    char       line[128];
    dsa_buf_t  text;

    (void) snprintf(line, sizeof(line), "experts int4 from %s\n",
                    q->weights->sampled_fingerprint);

    memset(&text, 0, sizeof(dsa_buf_t));

    if (access(state, F_OK) != 0) {
        if (dsa_quantize_empty(q) != DSA_OK) {
            return DSA_ERROR;
        }

        dsa_buf_addz(&text, line);
        rc = dsa_quantize_write(q, DSA_QUANTIZE_STATE, &text);
        dsa_buf_free(&text);

        return rc;
    }

    rc = dsa_file_read(state, sizeof(line), &text, q->err);

    if (rc == DSA_OK && !dsa_str_eqz(dsa_str(text.data, text.len), line)) {
        rc = dsa_error(q->err, "%s: an earlier run has begun this directory "
                       "from another checkpoint; expected an empty one, or "
                       "the same --in", q->out);
    }

    dsa_buf_free(&text);

    return rc;
}


static int
dsa_quantize_empty(const dsa_quantize_t *q)
{
    DIR            *dir;
    struct dirent  *e;

    dir = opendir(q->out);

    if (dir == NULL) {
        return dsa_error(q->err, "%s: %s", q->out, strerror(errno));
    }

    for ( ;; ) {
        e = readdir(dir);

        if (e == NULL
            || (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0
                && strcmp(e->d_name, DSA_QUANTIZE_STATE ".part") != 0))
        {
            break;
        }
    }

    if (e != NULL) {
        (void) dsa_error(q->err, "%s: has the file \"%s\"; expected an empty "
                         "directory, or one that this command has not "
                         "finished", q->out, e->d_name);
    }

    (void) closedir(dir);

    return e == NULL ? DSA_OK : DSA_ERROR;
}


int
dsa_quantize_end(dsa_quantize_t *q)
{
    char  state[PATH_MAX];

    if (dsa_quantize_copy_all(q) != DSA_OK
        || dsa_quantize_index(q) != DSA_OK
        || dsa_quantize_config(q) != DSA_OK
        || dsa_file_path(state, q->out, dsa_strz(DSA_QUANTIZE_STATE), q->err)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (unlink(state) == -1) {
        return dsa_error(q->err, "%s: %s", state, strerror(errno));
    }

    return DSA_OK;
}


/* Returns 1 if a file of the checkpoint is copied as it is. */

static int
dsa_quantize_copied(const char *name)
{
    size_t  len;

    static const char  end[] = ".safetensors";

    len = strlen(name);

    return name[0] != '.'
           && strcmp(name, DSA_QUANTIZE_CONFIG) != 0
           && strcmp(name, DSA_QUANTIZE_INDEX) != 0
           && (len < sizeof(end) - 1
               || strcmp(name + len - (sizeof(end) - 1), end) != 0);
}


static int
dsa_quantize_copy_all(dsa_quantize_t *q)
{
    int             rc;
    DIR            *dir;
    char            path[PATH_MAX];
    struct stat     st;
    struct dirent  *e;

    dir = opendir(q->in);

    if (dir == NULL) {
        return dsa_error(q->err, "%s: %s", q->in, strerror(errno));
    }

    rc = DSA_OK;

    while (rc == DSA_OK) {
        e = readdir(dir);

        if (e == NULL) {
            break;
        }

        if (!dsa_quantize_copied(e->d_name)) {
            continue;
        }

        rc = dsa_file_path(path, q->in, dsa_strz(e->d_name), q->err);

        if (rc == DSA_OK && stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
            rc = dsa_quantize_copy(q, e->d_name);
        }
    }

    (void) closedir(dir);

    return rc;
}


/* Returns 0, or an errno. */

static int
dsa_quantize_copy_bytes(int from, int to)
{
    char     chunk[DSA_QUANTIZE_CHUNK];
    ssize_t  n, w, at;

    for ( ;; ) {
        n = read(from, chunk, sizeof(chunk));

        if (n == 0) {
            return 0;
        }

        if (n == -1 && errno != EINTR) {
            return errno;
        }

        for (at = 0; at < n; at += w) {
            w = write(to, chunk + at, (size_t) (n - at));

            if (w == -1 && errno != EINTR) {
                return errno;
            }

            w = w == -1 ? 0 : w;
        }
    }
}


static int
dsa_quantize_copy(const dsa_quantize_t *q, const char *name)
{
    int       from, to, failed;
    char      source[PATH_MAX], path[PATH_MAX], part[PATH_MAX];
    uint64_t  size;

    if (dsa_file_path(source, q->in, dsa_strz(name), q->err) != DSA_OK
        || dsa_file_path(path, q->out, dsa_strz(name), q->err) != DSA_OK
        || dsa_quantize_part(part, path, q->err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    from = dsa_file_open(source, &size, q->err);

    if (from == -1) {
        return DSA_ERROR;
    }

    to = open(part, O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0666);
    failed = to == -1 ? errno : dsa_quantize_copy_bytes(from, to);

    (void) close(from);

    if (to != -1 && close(to) == -1 && failed == 0) {
        failed = errno;
    }

    if (failed != 0) {
        (void) unlink(part);
        return dsa_error(q->err, "%s: %s", path, strerror(failed));
    }

    return dsa_quantize_name(path, q->err);
}


/* Writes the index with the same names and the new number of bytes. */

static int
dsa_quantize_index(const dsa_quantize_t *q)
{
    int                rc;
    char               path[PATH_MAX];
    dsa_buf_t          text, out;
    dsa_fields_t       top;
    const dsa_json_t  *map;

    if (dsa_file_path(path, q->in, dsa_strz(DSA_QUANTIZE_INDEX), q->err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (access(path, F_OK) != 0) {

        /* a checkpoint of one file has none */

        return DSA_OK;
    }

    memset(&text, 0, sizeof(dsa_buf_t));
    memset(&out, 0, sizeof(dsa_buf_t));
    memset(&top, 0, sizeof(dsa_fields_t));

    rc = dsa_file_read(path, DSA_QUANTIZE_INDEX_MAX, &text, q->err);
    rc = rc != DSA_OK ? rc
                      : dsa_fields_open(&top, path,
                                        dsa_str(text.data, text.len), q->err);

    if (rc == DSA_OK) {
        map = dsa_field(&top, "weight_map");

        dsa_buf_printf(&out, "{\"metadata\": {\"total_size\": %llu}, "
                       "\"weight_map\": ", (unsigned long long) q->bytes);
        rc = map != NULL ? dsa_json_dump(&out, map)
                         : dsa_error(q->err, "%s: \"weight_map\" is missing",
                                     path);
        dsa_buf_addz(&out, "}\n");
    }

    rc = rc != DSA_OK ? rc : dsa_quantize_write(q, DSA_QUANTIZE_INDEX, &out);

    dsa_fields_close(&top);
    dsa_buf_free(&text);
    dsa_buf_free(&out);

    return rc;
}


/* Writes config.json with another quantization_config. */

static int
dsa_quantize_config(const dsa_quantize_t *q)
{
    int                rc;
    char               path[PATH_MAX];
    dsa_buf_t          text, out;
    dsa_fields_t       top;
    const dsa_json_t  *v;

    if (dsa_file_path(path, q->in, dsa_strz(DSA_QUANTIZE_CONFIG), q->err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    memset(&text, 0, sizeof(dsa_buf_t));
    memset(&out, 0, sizeof(dsa_buf_t));
    memset(&top, 0, sizeof(dsa_fields_t));

    rc = dsa_file_read(path, DSA_MODEL_CONFIG_MAX, &text, q->err);
    rc = rc != DSA_OK ? rc
                      : dsa_fields_open(&top, path,
                                        dsa_str(text.data, text.len), q->err);

    dsa_buf_addz(&out, "{\n");

    for (v = rc == DSA_OK ? top.object->first : NULL; v != NULL; v = v->next) {
        if (dsa_str_eqz(v->key, "quantization_config")) {
            continue;
        }

        dsa_buf_addz(&out, "  \"");
        dsa_json_escape(&out, v->key);
        dsa_buf_addz(&out, "\": ");

        if (dsa_json_dump(&out, v) != DSA_OK) {
            rc = dsa_error(q->err, "%s: a number exceeds the range of a "
                           "double", path);
            break;
        }

        dsa_buf_addz(&out, ",\n");
    }

    dsa_buf_printf(&out, "  \"quantization_config\": {\"quant_method\": "
                   "\"w4afp8\", \"fmt\": \"e4m3\", \"group_size\": %d, "
                   "\"weight_block_size\": [%d, %d], \"activation_scheme\": "
                   "\"dynamic\", \"moe_activation_scheme\": \"dynamic\"%s}\n"
                   "}\n", DSA_INT4_COLUMNS, DSA_FP8_BLOCK, DSA_FP8_BLOCK,
                   q->weights->config.ue8m0 ? ", \"scale_fmt\": \"ue8m0\""
                                            : "");

    rc = rc != DSA_OK ? rc : dsa_quantize_write(q, DSA_QUANTIZE_CONFIG, &out);

    dsa_fields_close(&top);
    dsa_buf_free(&text);
    dsa_buf_free(&out);

    return rc;
}


static int
dsa_quantize_write(const dsa_quantize_t *q, const char *name, dsa_buf_t *text)
{
    int     failed;
    char    path[PATH_MAX], part[PATH_MAX];
    FILE   *file;

    if (text->failed) {
        return dsa_error(q->err, "%s: no memory for %s", q->out, name);
    }

    if (dsa_file_path(path, q->out, dsa_strz(name), q->err) != DSA_OK
        || dsa_quantize_part(part, path, q->err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    file = fopen(part, "we");

    if (file == NULL) {
        return dsa_error(q->err, "%s: %s", path, strerror(errno));
    }

    failed = fwrite(text->data, 1, text->len, file) != text->len ? errno : 0;

    if (fclose(file) != 0 && failed == 0) {
        failed = errno;
    }

    if (failed != 0) {
        (void) unlink(part);
        return dsa_error(q->err, "%s: %s", path, strerror(failed));
    }

    return dsa_quantize_name(path, q->err);
}
