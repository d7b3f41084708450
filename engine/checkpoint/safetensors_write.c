
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json_write.h"
#include "engine/checkpoint/safetensors_parts.h"
#include "engine/checkpoint/safetensors_write.h"


#define DSA_ST_ALIGN            8

/* the header is padded so that the largest elements are aligned */

_Static_assert(DSA_ST_PREFIX % DSA_ST_ALIGN == 0,
               "a padded header does not align the data");


static int dsa_st_plan(const char *path, const dsa_st_tensor_t *t, uint32_t n,
    uint32_t *order, dsa_err_t *err);
static int dsa_st_header_text(const char *path, const dsa_st_tensor_t *t,
    uint32_t n, const uint32_t *order, dsa_buf_t *header, dsa_err_t *err);
static int dsa_st_put(int fd, const void *data, uint64_t size);


int
dsa_st_write(const char *path, const dsa_st_tensor_t *t, uint32_t n,
    dsa_err_t *err)
{
    int         fd, failed;
    uint32_t    i, *order;
    uint64_t    len;
    dsa_buf_t   header;

    memset(&header, 0, sizeof(dsa_buf_t));

    order = malloc(((size_t) n + 1) * sizeof(uint32_t));
    if (order == NULL) {
        return dsa_error(err, "%s: out of memory", path);
    }

    if (dsa_st_plan(path, t, n, order, err) != DSA_OK
        || dsa_st_header_text(path, t, n, order, &header, err) != DSA_OK)
    {
        goto failed;
    }

    fd = open(path, O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0666);
    if (fd == -1) {
        (void) dsa_error(err, "%s: %s", path, strerror(errno));
        goto failed;
    }

    len = header.len;
    failed = 0;

    if (dsa_st_put(fd, &len, DSA_ST_PREFIX) != DSA_OK
        || dsa_st_put(fd, header.data, len) != DSA_OK)
    {
        failed = errno;
    }

    for (i = 0; i < n && failed == 0; i++) {
        if (dsa_st_put(fd, t[order[i]].data, t[order[i]].size) != DSA_OK) {
            failed = errno;
        }
    }

    if (close(fd) == -1 && failed == 0) {
        failed = errno;
    }

    if (failed != 0) {
        (void) dsa_error(err, "%s: %s", path, strerror(failed));
        goto failed;
    }

    dsa_buf_free(&header);
    free(order);

    return DSA_OK;

failed:

    dsa_buf_free(&header);
    free(order);

    return DSA_ERROR;
}


/* Sorts the data by falling size of elements, so that all are aligned. */

static int
dsa_st_plan(const char *path, const dsa_st_tensor_t *t, uint32_t n,
    uint32_t *order, dsa_err_t *err)
{
    uint32_t               i, size, k;
    uint64_t               bytes;
    const dsa_st_dtype_t  *dtype;

    k = 0;

    for (size = DSA_ST_ALIGN; size != 0; size /= 2) {
        for (i = 0; i < n; i++) {
            dtype = dsa_st_dtype(t[i].dtype);

            if (dtype == NULL || t[i].n_dims > DSA_ST_MAX_DIMS
                || dsa_st_bytes(&t[i], dtype->size, &bytes) != DSA_OK
                || bytes != t[i].size)
            {
                return dsa_error(err, "%s: tensor \"%.*s\" cannot be written: "
                                 "its dtype is unknown or its size does not "
                                 "follow from dtype and shape", path,
                                 (int) t[i].name.len, t[i].name.data);
            }

            if (dtype->size == size) {
                order[k++] = i;
            }
        }
    }

    return DSA_OK;
}


static int
dsa_st_header_text(const char *path, const dsa_st_tensor_t *t, uint32_t n,
    const uint32_t *order, dsa_buf_t *header, dsa_err_t *err)
{
    uint32_t           i, d, k;
    uint64_t           offset;
    dsa_json_writer_t  w;

    offset = 0;

    dsa_buf_addz(header, "{");

    for (k = 0; k < n; k++) {
        i = order[k];

        dsa_buf_addz(header, k != 0 ? ",\"" : "\"");
        dsa_json_escape(header, t[i].name);
        dsa_buf_addz(header, "\":");

        dsa_json_writer(&w, header);
        dsa_json_object(&w);
        dsa_json_key(&w, "dtype");
        dsa_json_string(&w, t[i].dtype);
        dsa_json_key(&w, "shape");
        dsa_json_array(&w);

        for (d = 0; d < t[i].n_dims; d++) {
            dsa_json_uint(&w, t[i].shape[d]);
        }

        dsa_json_array_end(&w);
        dsa_json_key(&w, "data_offsets");
        dsa_json_array(&w);
        dsa_json_uint(&w, offset);
        dsa_json_uint(&w, offset + t[i].size);
        dsa_json_array_end(&w);
        dsa_json_object_end(&w);

        offset += t[i].size;
    }

    dsa_buf_addz(header, "}");

    while (header->len % DSA_ST_ALIGN != 0 && !header->failed) {
        dsa_buf_addz(header, " ");
    }

    if (header->failed) {
        return dsa_error(err, "%s: out of memory", path);
    }

    return DSA_OK;
}


static int
dsa_st_put(int fd, const void *data, uint64_t size)
{
    ssize_t      n;
    const char  *p;

    for (p = data; size != 0; p += n, size -= (uint64_t) n) {
        n = write(fd, p, size < (1U << 30) ? (size_t) size : 1U << 30);

        if (n == -1 && errno == EINTR) {
            n = 0;

        } else if (n == -1) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}
