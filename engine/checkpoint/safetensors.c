
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <yajl/yajl_parse.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/map.h"
#include "engine/checkpoint/safetensors.h"


/* the format is little-endian and tensors are used in place */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "a little-endian machine is needed");


#define DSA_ST_PREFIX           8               /* the header's length */
#define DSA_ST_MAX_HEADER       100000000       /* as the format's own reader */
#define DSA_ST_MAX_NAME         256
#define DSA_ST_ALIGN            8


struct dsa_st_s {
    void               *map;                    /* NULL: the caller's image */
    uint64_t            size;
    const uint8_t      *image;
    dsa_str_t           header;
    dsa_arena_t        *arena;                  /* the names */
    dsa_map_t           names;
    dsa_st_tensor_t    *tensor;
    uint32_t            n;
    uint32_t            alloc;
};


typedef struct {
    const char         *name;
    uint32_t            size;                   /* bytes of an element */
} dsa_st_dtype_t;


/* What may come next in the header. */

typedef enum {
    DSA_ST_START = 0,
    DSA_ST_NAME,
    DSA_ST_METADATA,
    DSA_ST_METADATA_KEY,
    DSA_ST_METADATA_VALUE,
    DSA_ST_TENSOR,
    DSA_ST_FIELD,
    DSA_ST_DTYPE,
    DSA_ST_SHAPE,
    DSA_ST_DIM,
    DSA_ST_OFFSETS,
    DSA_ST_OFFSET,
    DSA_ST_END
} dsa_st_state_e;


#define DSA_ST_HAS_DTYPE        1
#define DSA_ST_HAS_SHAPE        2
#define DSA_ST_HAS_OFFSETS      4
#define DSA_ST_HAS_ALL          7


typedef struct {
    dsa_st_t           *st;
    const char         *file;
    dsa_err_t          *err;
    dsa_st_state_e      state;
    uint32_t            has;
    uint32_t            n_offsets;
    uint32_t            element;
    uint64_t            offset[2];
    int                 refused;                /* err is set */
    int                 metadata;
    dsa_st_tensor_t    *tensor;                 /* the one being read */
} dsa_st_reader_t;


static int dsa_st_load(dsa_st_t *st, const char *name, dsa_err_t *err);
static int dsa_st_parse(dsa_st_t *st, const char *name, dsa_err_t *err);
static int dsa_st_layout(dsa_st_t *st, const char *name, dsa_err_t *err);
static int dsa_st_compare(const void *one, const void *two);
static int dsa_st_on_string(void *ctx, const unsigned char *text, size_t len);
static int dsa_st_on_number(void *ctx, const char *text, size_t len);
static int dsa_st_on_key(void *ctx, const unsigned char *text, size_t len);
static int dsa_st_on_start_map(void *ctx);
static int dsa_st_on_end_map(void *ctx);
static int dsa_st_on_start_array(void *ctx);
static int dsa_st_on_end_array(void *ctx);
static int dsa_st_on_null(void *ctx);
static int dsa_st_on_boolean(void *ctx, int value);
static int dsa_st_add(dsa_st_reader_t *r, const unsigned char *text,
    size_t len);
static int dsa_st_finish_tensor(dsa_st_reader_t *r);
static int dsa_st_unexpected(dsa_st_reader_t *r);
static int dsa_st_refuse(dsa_st_reader_t *r, const char *what);
static const dsa_st_dtype_t *dsa_st_dtype(dsa_str_t name);
static int dsa_st_bytes(const dsa_st_tensor_t *t, uint32_t element,
    uint64_t *bytes);
static int dsa_st_plan(const char *path, const dsa_st_tensor_t *t, uint32_t n,
    uint32_t *order, dsa_buf_t *header, dsa_err_t *err);
static int dsa_st_put(int fd, const void *data, uint64_t size);


/* Those of whole bytes; the format's packed four and six bit ones are not. */

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


static const yajl_callbacks  dsa_st_callbacks = {
    dsa_st_on_null,
    dsa_st_on_boolean,
    NULL,                       /* integer and double: by on_number */
    NULL,
    dsa_st_on_number,
    dsa_st_on_string,
    dsa_st_on_start_map,
    dsa_st_on_key,
    dsa_st_on_end_map,
    dsa_st_on_start_array,
    dsa_st_on_end_array
};


dsa_st_t *
dsa_st_open(const char *path, dsa_err_t *err)
{
    int           fd;
    dsa_st_t     *st;
    struct stat   info;

    /* O_NONBLOCK: a FIFO without a writer must not hold the caller up */

    fd = open(path, O_RDONLY|O_CLOEXEC|O_NONBLOCK);
    if (fd == -1) {
        (void) dsa_error(err, "%s: %s", path, strerror(errno));
        return NULL;
    }

    st = NULL;

    if (fstat(fd, &info) == -1) {
        (void) dsa_error(err, "%s: %s", path, strerror(errno));
        goto failed;
    }

    if (!S_ISREG(info.st_mode)) {
        (void) dsa_error(err, "%s: not a regular file", path);
        goto failed;
    }

    if (info.st_size < DSA_ST_PREFIX) {
        (void) dsa_error(err, "%s: truncated: the file has %lld bytes, at "
                         "least 8 are accepted", path,
                         (long long) info.st_size);
        goto failed;
    }

    st = calloc(1, sizeof(dsa_st_t));
    if (st == NULL) {
        (void) dsa_error(err, "%s: no memory to read it", path);
        goto failed;
    }

    st->size = (uint64_t) info.st_size;
    st->map = mmap(NULL, st->size, PROT_READ, MAP_SHARED, fd, 0);

    if (st->map == MAP_FAILED) {
        (void) dsa_error(err, "%s: mmap() of %llu bytes: %s", path,
                         (unsigned long long) st->size, strerror(errno));
        st->map = NULL;
        goto failed;
    }

    st->image = st->map;

    if (dsa_st_load(st, path, err) != DSA_OK) {
        goto failed;
    }

    (void) close(fd);

    return st;

failed:

    (void) close(fd);
    dsa_st_close(st);

    return NULL;
}


dsa_st_t *
dsa_st_read(const char *name, const void *image, uint64_t size,
    dsa_err_t *err)
{
    dsa_st_t  *st;

    st = calloc(1, sizeof(dsa_st_t));
    if (st == NULL) {
        (void) dsa_error(err, "%s: no memory to read it", name);
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

    if (st->map != NULL) {
        (void) munmap(st->map, st->size);
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


static int
dsa_st_load(dsa_st_t *st, const char *name, dsa_err_t *err)
{
    uint64_t  len;

    if (st->size < DSA_ST_PREFIX) {
        return dsa_error(err, "%s: truncated: the file has %llu bytes, at "
                         "least 8 are accepted", name,
                         (unsigned long long) st->size);
    }

    memcpy(&len, st->image, DSA_ST_PREFIX);

    if (len > DSA_ST_MAX_HEADER) {
        return dsa_error(err, "%s: the header has %llu bytes, at most %u are "
                         "accepted", name, (unsigned long long) len,
                         DSA_ST_MAX_HEADER);
    }

    if (len > st->size - DSA_ST_PREFIX) {
        return dsa_error(err, "%s: truncated: the header has %llu bytes, the "
                         "file %llu", name, (unsigned long long) len,
                         (unsigned long long) st->size);
    }

    st->header = dsa_str(st->image + DSA_ST_PREFIX, (size_t) len);

    /* names are no longer than the text they stand in; each is aligned */

    st->arena = dsa_arena_create(8 * (size_t) len + 64 * 1024);
    if (st->arena == NULL) {
        return dsa_error(err, "%s: no memory to read it", name);
    }

    if (dsa_st_parse(st, name, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_st_layout(st, name, err);
}


/*
 * yajl's events go straight into the table: a tree would take some thirty
 * times the header, and would hide names that stand twice.
 */

static int
dsa_st_parse(dsa_st_t *st, const char *name, dsa_err_t *err)
{
    size_t            n;
    yajl_handle       yajl;
    yajl_status       status;
    unsigned char    *why;
    dsa_st_reader_t   reader;

    memset(&reader, 0, sizeof(dsa_st_reader_t));
    reader.st = st;
    reader.file = name;
    reader.err = err;

    yajl = yajl_alloc(&dsa_st_callbacks, NULL, &reader);
    if (yajl == NULL) {
        return dsa_error(err, "%s: no memory to read it", name);
    }

    status = yajl_parse(yajl, (const unsigned char *) st->header.data,
                        st->header.len);

    if (status == yajl_status_ok) {
        status = yajl_complete_parse(yajl);
    }

    if (status != yajl_status_ok && !reader.refused) {
        why = yajl_get_error(yajl, 0, NULL, 0);
        n = why != NULL ? strcspn((char *) why, "\n") : 0;

        (void) dsa_error(err, "%s: the header is no JSON: %.*s at byte %zu",
                         name, n != 0 ? (int) n : 5,
                         n != 0 ? (char *) why : "fault",
                         yajl_get_bytes_consumed(yajl));

        if (why != NULL) {
            yajl_free_error(yajl, why);
        }
    }

    yajl_free(yajl);

    return status == yajl_status_ok ? DSA_OK : DSA_ERROR;
}


/*
 * The tensors fill the file from the header to its end, without overlap and,
 * as the format demands, without holes.
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
        return dsa_error(err, "%s: no memory to read it", name);
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
                             "the data, byte %llu, where \"%.*s\" ends, is "
                             "accepted", name, (int) t->name.len, t->name.data,
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
                         "tensor, none are accepted", name,
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

    /* an empty tensor before the one that starts at the same byte */

    return (a->size > b->size) - (a->size < b->size);
}


static int
dsa_st_on_key(void *ctx, const unsigned char *text, size_t len)
{
    dsa_str_t         key;
    dsa_st_reader_t  *r = ctx;

    key = dsa_str(text, len);

    if (r->state == DSA_ST_METADATA_KEY) {
        r->state = DSA_ST_METADATA_VALUE;
        return 1;
    }

    if (r->state == DSA_ST_NAME) {

        if (dsa_str_eqz(key, "__metadata__")) {
            if (r->metadata) {
                return dsa_st_refuse(r, "\"__metadata__\" stands twice");
            }

            r->metadata = 1;
            r->state = DSA_ST_METADATA;

            return 1;
        }

        return dsa_st_add(r, text, len);
    }

    if (dsa_str_eqz(key, "dtype") && !(r->has & DSA_ST_HAS_DTYPE)) {
        r->has |= DSA_ST_HAS_DTYPE;
        r->state = DSA_ST_DTYPE;

    } else if (dsa_str_eqz(key, "shape") && !(r->has & DSA_ST_HAS_SHAPE)) {
        r->has |= DSA_ST_HAS_SHAPE;
        r->state = DSA_ST_SHAPE;

    } else if (dsa_str_eqz(key, "data_offsets")
               && !(r->has & DSA_ST_HAS_OFFSETS))
    {
        r->has |= DSA_ST_HAS_OFFSETS;
        r->state = DSA_ST_OFFSETS;

    } else {
        return dsa_st_refuse(r, "a field is unknown or stands twice; dtype, "
                             "shape and data_offsets, once each, are "
                             "accepted");
    }

    return 1;
}


static int
dsa_st_on_string(void *ctx, const unsigned char *text, size_t len)
{
    dsa_st_reader_t       *r = ctx;
    const dsa_st_dtype_t  *dtype;

    if (r->state == DSA_ST_METADATA_VALUE) {
        r->state = DSA_ST_METADATA_KEY;
        return 1;
    }

    if (r->state != DSA_ST_DTYPE) {
        return dsa_st_unexpected(r);
    }

    dtype = dsa_st_dtype(dsa_str(text, len));

    if (dtype == NULL) {
        return dsa_st_refuse(r, "the dtype is unknown; F32, BF16, F8_E4M3, "
                             "I32 and the format's other dtypes of whole "
                             "bytes are accepted");
    }

    r->tensor->dtype = dsa_strz(dtype->name);
    r->element = dtype->size;
    r->state = DSA_ST_FIELD;

    return 1;
}


static int
dsa_st_on_number(void *ctx, const char *text, size_t len)
{
    size_t            i;
    uint64_t          n;
    dsa_st_reader_t  *r = ctx;

    if (r->state != DSA_ST_DIM && r->state != DSA_ST_OFFSET) {
        return dsa_st_unexpected(r);
    }

    n = 0;

    for (i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9'
            || n > (INT64_MAX - (uint64_t) (text[i] - '0')) / 10)
        {
            return dsa_st_refuse(r, "a number is negative, no integer or "
                                 "beyond 63 bits");
        }

        n = n * 10 + (uint64_t) (text[i] - '0');
    }

    if (r->state == DSA_ST_DIM) {
        if (r->tensor->n_dims == DSA_ST_MAX_DIMS) {
            return dsa_st_refuse(r, "the shape has more dimensions than four");
        }

        r->tensor->shape[r->tensor->n_dims++] = n;

        return 1;
    }

    if (r->n_offsets == 2) {
        return dsa_st_refuse(r, "data_offsets has more numbers than two");
    }

    r->offset[r->n_offsets++] = n;

    return 1;
}


static int
dsa_st_on_start_map(void *ctx)
{
    dsa_st_reader_t  *r = ctx;

    switch (r->state) {

    case DSA_ST_START:
        r->state = DSA_ST_NAME;
        return 1;

    case DSA_ST_METADATA:
        r->state = DSA_ST_METADATA_KEY;
        return 1;

    case DSA_ST_TENSOR:
        r->state = DSA_ST_FIELD;
        return 1;

    default:
        return dsa_st_unexpected(r);
    }
}


static int
dsa_st_on_end_map(void *ctx)
{
    dsa_st_reader_t  *r = ctx;

    switch (r->state) {

    case DSA_ST_NAME:
        r->state = DSA_ST_END;
        return 1;

    case DSA_ST_METADATA_KEY:
        r->state = DSA_ST_NAME;
        return 1;

    default:
        return dsa_st_finish_tensor(r);
    }
}


static int
dsa_st_on_start_array(void *ctx)
{
    dsa_st_reader_t  *r = ctx;

    if (r->state == DSA_ST_SHAPE) {
        r->state = DSA_ST_DIM;
        return 1;
    }

    if (r->state == DSA_ST_OFFSETS) {
        r->state = DSA_ST_OFFSET;
        return 1;
    }

    return dsa_st_unexpected(r);
}


static int
dsa_st_on_end_array(void *ctx)
{
    dsa_st_reader_t  *r = ctx;

    r->state = DSA_ST_FIELD;

    return 1;
}


static int
dsa_st_on_null(void *ctx)
{
    return dsa_st_unexpected(ctx);
}


static int
dsa_st_on_boolean(void *ctx, int value)
{
    return dsa_st_unexpected(ctx);
}


static int
dsa_st_add(dsa_st_reader_t *r, const unsigned char *text, size_t len)
{
    char             *name;
    size_t            i;
    uint32_t          alloc;
    dsa_st_t         *st;
    dsa_st_tensor_t  *t;

    st = r->st;

    r->tensor = NULL;

    if (len == 0 || len > DSA_ST_MAX_NAME) {
        return dsa_st_refuse(r, "a tensor's name is empty or longer than 256 "
                             "bytes");
    }

    for (i = 0; i < len; i++) {

        /* names stand in messages, which are one line */

        if (text[i] < 0x20 || text[i] == 0x7f) {
            return dsa_st_refuse(r, "a tensor's name has control characters");
        }
    }

    if (st->n == st->alloc) {
        alloc = st->alloc != 0 ? st->alloc * 2 : 64;

        t = realloc(st->tensor, (size_t) alloc * sizeof(dsa_st_tensor_t));
        if (t == NULL) {
            return dsa_st_refuse(r, "no memory to read it");
        }

        st->tensor = t;
        st->alloc = alloc;
    }

    name = dsa_arena_dup(st->arena, dsa_str(text, len));
    if (name == NULL) {
        return dsa_st_refuse(r, "no memory to read it");
    }

    t = &st->tensor[st->n];
    memset(t, 0, sizeof(dsa_st_tensor_t));
    t->name = dsa_str(name, len);

    r->tensor = t;

    switch (dsa_map_add(&st->names, t->name, st->n)) {

    case DSA_OK:
        break;

    case DSA_AGAIN:
        return dsa_st_refuse(r, "the name stands twice");

    default:
        return dsa_st_refuse(r, "no memory to read it");
    }

    st->n++;

    r->has = 0;
    r->n_offsets = 0;
    r->state = DSA_ST_TENSOR;

    return 1;
}


static int
dsa_st_finish_tensor(dsa_st_reader_t *r)
{
    uint64_t          size, room;
    dsa_st_t         *st;
    dsa_st_tensor_t  *t;

    st = r->st;
    t = r->tensor;

    if (r->has != DSA_ST_HAS_ALL || r->n_offsets != 2) {
        return dsa_st_refuse(r, "dtype, shape and two data_offsets are "
                             "accepted, one is missing");
    }

    if (dsa_st_bytes(t, r->element, &size) != DSA_OK) {
        return dsa_st_refuse(r, "the size is beyond 63 bits");
    }

    if (r->offset[0] > r->offset[1] || r->offset[1] - r->offset[0] != size) {
        r->refused = 1;

        (void) dsa_error(r->err, "%s: tensor \"%.*s\": data_offsets are %llu "
                         "and %llu, %llu bytes are accepted for its dtype and "
                         "shape", r->file, (int) t->name.len, t->name.data,
                         (unsigned long long) r->offset[0],
                         (unsigned long long) r->offset[1],
                         (unsigned long long) size);
        return 0;
    }

    room = st->size - DSA_ST_PREFIX - st->header.len;

    if (r->offset[1] > room) {
        r->refused = 1;

        (void) dsa_error(r->err, "%s: truncated: tensor \"%.*s\" ends at byte "
                         "%llu of the data, the file has %llu bytes of them",
                         r->file, (int) t->name.len, t->name.data,
                         (unsigned long long) r->offset[1],
                         (unsigned long long) room);
        return 0;
    }

    t->size = size;
    t->data = st->header.data + st->header.len + r->offset[0];

    if ((uintptr_t) t->data % r->element != 0) {
        return dsa_st_refuse(r, "its data is not aligned to its element; "
                             "files of safetensors 0.3 or newer are "
                             "accepted");
    }

    r->tensor = NULL;
    r->state = DSA_ST_NAME;

    return 1;
}


static int
dsa_st_unexpected(dsa_st_reader_t *r)
{
    return dsa_st_refuse(r, "the header is accepted as { name: { dtype: "
                         "string, shape: [ integers ], data_offsets: "
                         "[ two integers ] } }");
}


/* Ends the parse. */

static int
dsa_st_refuse(dsa_st_reader_t *r, const char *what)
{
    r->refused = 1;

    if (r->tensor != NULL) {
        (void) dsa_error(r->err, "%s: tensor \"%.*s\": %s", r->file,
                         (int) r->tensor->name.len, r->tensor->name.data,
                         what);

    } else {
        (void) dsa_error(r->err, "%s: %s", r->file, what);
    }

    return 0;
}


static const dsa_st_dtype_t *
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


static int
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
        return dsa_error(err, "%s: no memory to write it", path);
    }

    if (dsa_st_plan(path, t, n, order, &header, err) != DSA_OK) {
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


/* The header, and the order of the data: larger elements first. */

static int
dsa_st_plan(const char *path, const dsa_st_tensor_t *t, uint32_t n,
    uint32_t *order, dsa_buf_t *header, dsa_err_t *err)
{
    uint32_t               i, d, size, k;
    uint64_t               bytes, offset;
    const dsa_st_dtype_t  *dtype;

    k = 0;

    for (size = 8; size != 0; size /= 2) {
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

    offset = 0;

    dsa_buf_addz(header, "{");

    for (k = 0; k < n; k++) {
        i = order[k];

        dsa_buf_addz(header, k != 0 ? ",\"" : "\"");
        dsa_json_escape(header, t[i].name);
        dsa_buf_printf(header, "\":{\"dtype\":\"%.*s\",\"shape\":[",
                       (int) t[i].dtype.len, t[i].dtype.data);

        for (d = 0; d < t[i].n_dims; d++) {
            dsa_buf_printf(header, "%s%llu", d != 0 ? "," : "",
                           (unsigned long long) t[i].shape[d]);
        }

        dsa_buf_printf(header, "],\"data_offsets\":[%llu,%llu]}",
                       (unsigned long long) offset,
                       (unsigned long long) (offset + t[i].size));

        offset += t[i].size;
    }

    dsa_buf_addz(header, "}");

    while (header->len % DSA_ST_ALIGN != 0 && !header->failed) {
        dsa_buf_addz(header, " ");
    }

    if (header->failed) {
        return dsa_error(err, "%s: no memory to write it", path);
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
