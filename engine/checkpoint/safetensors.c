
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/checkpoint/safetensors_parts.h"


/* the format is little-endian, and tensors are used in place */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "a little-endian machine is needed");


#define DSA_ST_MAX_HEADER       100000000       /* as the format's library */


static int dsa_st_load(dsa_st_t *st, const char *name, dsa_err_t *err);
static int dsa_st_layout(dsa_st_t *st, const char *name, dsa_err_t *err);
static int dsa_st_compare(const void *one, const void *two);
static int dsa_st_not_tensors(const dsa_st_t *st, const char *name,
    uint64_t len, dsa_err_t *err);
static int dsa_st_too_short(const char *name, uint64_t size, dsa_err_t *err);


/* The format's dtypes of whole bytes; the packed ones are not supported. */

static const dsa_st_dtype_t  dsa_st_dtypes[] = {
    { "F32", 4 },
    { "BF16", 2 },
    { "F8_E4M3", 1 },
    { "I32", 4 },
    { "F16", 2 },
    { "F64", 8 },
    { "F8_E5M2", 1 },
    { "F8_E8M0", 1 },
    { "BOOL", 1 },
    { "U8", 1 },
    { "I8", 1 },
    { "U16", 2 },
    { "I16", 2 },
    { "U32", 4 },
    { "U64", 8 },
    { "I64", 8 },
    { NULL, 0 }
};


dsa_st_t *
dsa_st_open(const char *path, dsa_err_t *err)
{
    int        fd;
    void      *mapping;
    dsa_st_t  *st;
    uint64_t   size;

    fd = dsa_file_open(path, &size, err);
    if (fd == -1) {
        return NULL;
    }

    if (size < DSA_ST_PREFIX) {
        (void) close(fd);
        (void) dsa_st_too_short(path, size, err);
        return NULL;
    }

    mapping = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

    if (mapping == MAP_FAILED) {
        (void) dsa_error(err, "%s: mmap() of %llu bytes: %s", path,
                         (unsigned long long) size, strerror(errno));
        (void) close(fd);
        return NULL;
    }

    (void) close(fd);

    st = dsa_st_read(path, mapping, size, err);

    if (st == NULL) {
        (void) munmap(mapping, size);
        return NULL;
    }

    st->mapping = mapping;

    return st;
}


dsa_st_t *
dsa_st_read(const char *name, const void *image, uint64_t size,
    dsa_err_t *err)
{
    dsa_st_t  *st;

    st = calloc(1, sizeof(dsa_st_t));
    if (st == NULL) {
        (void) dsa_error(err, "%s: out of memory", name);
        return NULL;
    }

    st->size = size;
    st->image = image;

    if (dsa_st_load(st, name, err) != DSA_OK) {
        dsa_st_close(st);
        return NULL;
    }

    return st;
}


void
dsa_st_close(dsa_st_t *st)
{
    if (st == NULL) {
        return;
    }

    if (st->mapping != NULL) {
        (void) munmap(st->mapping, st->size);
    }

    dsa_map_free(&st->names);
    dsa_arena_destroy(st->arena);
    free(st->tensor);
    free(st);
}


uint32_t
dsa_st_count(const dsa_st_t *st)
{
    return st->n;
}


const dsa_st_tensor_t *
dsa_st_at(const dsa_st_t *st, uint32_t i)
{
    return i < st->n ? &st->tensor[i] : NULL;
}


const dsa_st_tensor_t *
dsa_st_find(const dsa_st_t *st, dsa_str_t name)
{
    uint64_t  *i;

    i = dsa_map_find(&st->names, name);

    return i != NULL ? &st->tensor[*i] : NULL;
}


dsa_str_t
dsa_st_header(const dsa_st_t *st)
{
    return st->header;
}


const uint8_t *
dsa_st_image(const dsa_st_t *st, uint64_t *size)
{
    *size = st->size;

    return st->image;
}


static int
dsa_st_load(dsa_st_t *st, const char *name, dsa_err_t *err)
{
    uint64_t  len;

    if (st->size < DSA_ST_PREFIX) {
        return dsa_st_too_short(name, st->size, err);
    }

    memcpy(&len, st->image, DSA_ST_PREFIX);

    if (len > DSA_ST_MAX_HEADER) {
        return dsa_st_not_tensors(st, name, len, err);
    }

    if (len > st->size - DSA_ST_PREFIX) {
        return dsa_error(err, "%s: truncated: the header has %llu bytes, but "
                         "the file has %llu", name, (unsigned long long) len,
                         (unsigned long long) st->size);
    }

    st->header = dsa_str(st->image + DSA_ST_PREFIX, (size_t) len);

    /*
     * Room for the names: each is rounded up to 16 bytes, and is shorter than
     * its entry in the header.
     */

    st->arena = dsa_arena_create(8 * (size_t) len + 64 * 1024);
    if (st->arena == NULL) {
        return dsa_error(err, "%s: out of memory", name);
    }

    if (dsa_st_parse_header(st, name, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_st_layout(st, name, err);
}


/*
 * The format requires that the tensors fill the file from the header to its
 * end, without overlaps and without gaps.
 */

static int
dsa_st_layout(dsa_st_t *st, const char *name, dsa_err_t *err)
{
    int                       rc;
    uint32_t                  i;
    uint64_t                  room;
    const uint8_t            *data, *end;
    const dsa_st_tensor_t    *t, **order;

    data = (const uint8_t *) st->header.data + st->header.len;
    room = st->size - DSA_ST_PREFIX - st->header.len;

    order = malloc(((size_t) st->n + 1) * sizeof(dsa_st_tensor_t *));
    if (order == NULL) {
        return dsa_error(err, "%s: out of memory", name);
    }

    for (i = 0; i < st->n; i++) {
        order[i] = &st->tensor[i];
    }

    qsort(order, st->n, sizeof(dsa_st_tensor_t *), dsa_st_compare);

    rc = DSA_ERROR;
    end = data;

    for (i = 0; i < st->n; i++) {
        t = order[i];

        if ((const uint8_t *) t->data != end) {
            (void) dsa_error(err, "%s: tensor \"%.*s\" starts at byte %llu of "
                             "the data; expected byte %llu, where \"%.*s\" "
                             "ends", name, (int) t->name.len, t->name.data,
                             (unsigned long long)
                             ((const uint8_t *) t->data - data),
                             (unsigned long long) (end - data),
                             i != 0 ? (int) order[i - 1]->name.len : 10,
                             i != 0 ? order[i - 1]->name.data : "the header");
            goto done;
        }

        end += t->size;
    }

    if ((uint64_t) (end - data) != room) {
        (void) dsa_error(err, "%s: the file has %llu bytes after the last "
                         "tensor; expected none", name,
                         (unsigned long long) (room - (end - data)));
        goto done;
    }

    rc = DSA_OK;

done:

    free(order);

    return rc;
}


static int
dsa_st_compare(const void *one, const void *two)
{
    const dsa_st_tensor_t  *a, *b;

    a = *(const dsa_st_tensor_t *const *) one;
    b = *(const dsa_st_tensor_t *const *) two;

    if (a->data != b->data) {
        return (const uint8_t *) a->data < (const uint8_t *) b->data ? -1 : 1;
    }

    /* an empty tensor is in front of the one that starts at the same byte */

    return (a->size > b->size) - (a->size < b->size);
}


/* The file begins with something else than the length of a header. */

static int
dsa_st_not_tensors(const dsa_st_t *st, const char *name, uint64_t len,
    dsa_err_t *err)
{
    const char  *foreign;

    foreign = dsa_file_foreign(dsa_str((const char *) st->image, st->size));

    if (foreign != NULL) {
        return dsa_error(err, "%s: the file is %s", name, foreign);
    }

    return dsa_error(err, "%s: not a safetensors file: its first 8 bytes are "
                     "%llu; expected the length of a header, at most %u",
                     name, (unsigned long long) len, DSA_ST_MAX_HEADER);
}


static int
dsa_st_too_short(const char *name, uint64_t size, dsa_err_t *err)
{
    return dsa_error(err, "%s: truncated: the file has %llu bytes; expected at "
                     "least %d", name, (unsigned long long) size,
                     DSA_ST_PREFIX);
}


const dsa_st_dtype_t *
dsa_st_dtype(dsa_str_t name)
{
    const dsa_st_dtype_t  *d;

    for (d = dsa_st_dtypes; d->name != NULL; d++) {
        if (dsa_str_eqz(name, d->name)) {
            return d;
        }
    }

    return NULL;
}


int
dsa_st_bytes(const dsa_st_tensor_t *t, uint32_t element, uint64_t *bytes)
{
    uint32_t  i;
    uint64_t  n;

    n = element;

    for (i = 0; i < t->n_dims; i++) {
        if (__builtin_mul_overflow(n, t->shape[i], &n) || n > INT64_MAX) {
            return DSA_ERROR;
        }
    }

    *bytes = n;

    return DSA_OK;
}
