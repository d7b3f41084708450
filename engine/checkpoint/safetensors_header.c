
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>

#include <yajl/yajl_parse.h>

#include "engine/checkpoint/safetensors_parts.h"


/*
 * The header as a state machine over yajl's events, which fill the table of
 * tensors directly: a tree would take thirty times the memory of the header,
 * and some readers of JSON drop all but one of repeated names.
 */


#define DSA_ST_MAX_NAME         256

/* The states: what is expected next in the header. */

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
    int                 failed;                 /* err is set */
    int                 metadata;               /* it has been read */
    dsa_st_tensor_t    *tensor;                 /* the current one */
} dsa_st_reader_t;


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
static int dsa_st_reject(dsa_st_reader_t *r, const char *what);


static const yajl_callbacks  dsa_st_callbacks = {
    dsa_st_on_null,
    dsa_st_on_boolean,
    NULL,                       /* integers and doubles: on_number */
    NULL,
    dsa_st_on_number,
    dsa_st_on_string,
    dsa_st_on_start_map,
    dsa_st_on_key,
    dsa_st_on_end_map,
    dsa_st_on_start_array,
    dsa_st_on_end_array
};


int
dsa_st_parse_header(dsa_st_t *st, const char *file, dsa_err_t *err)
{
    size_t            n;
    yajl_handle       yajl;
    yajl_status       status;
    unsigned char    *why;
    dsa_st_reader_t   reader;

    memset(&reader, 0, sizeof(dsa_st_reader_t));
    reader.st = st;
    reader.file = file;
    reader.err = err;

    yajl = yajl_alloc(&dsa_st_callbacks, NULL, &reader);
    if (yajl == NULL) {
        return dsa_error(err, "%s: out of memory", file);
    }

    status = yajl_parse(yajl, (const unsigned char *) st->header.data,
                        st->header.len);

    if (status == yajl_status_ok) {
        status = yajl_complete_parse(yajl);
    }

    if (status != yajl_status_ok && !reader.failed) {
        why = yajl_get_error(yajl, 0, NULL, 0);
        n = why != NULL ? strcspn((char *) why, "\n") : 0;

        (void) dsa_error(err, "%s: the header is not JSON: %.*s at byte %zu",
                         file, n != 0 ? (int) n : 5,
                         n != 0 ? (char *) why : "fault",
                         yajl_get_bytes_consumed(yajl));

        if (why != NULL) {
            yajl_free_error(yajl, why);
        }
    }

    yajl_free(yajl);

    return status == yajl_status_ok ? DSA_OK : DSA_ERROR;
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
                return dsa_st_reject(r, "\"__metadata__\" is repeated");
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
        return dsa_st_reject(r, "a field is unknown or repeated; expected "
                             "dtype, shape and data_offsets, each once");
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
        return dsa_st_reject(r, "the dtype is not supported; expected F32, "
                             "BF16, F8_E4M3, I32 or another dtype of whole "
                             "bytes");
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
            return dsa_st_reject(r, "a number is negative, not an integer or "
                                 "beyond 63 bits");
        }

        n = n * 10 + (uint64_t) (text[i] - '0');
    }

    if (r->state == DSA_ST_DIM) {
        if (r->tensor->n_dims == DSA_ST_MAX_DIMS) {
            return dsa_st_reject(r, "the shape has more than four dimensions");
        }

        r->tensor->shape[r->tensor->n_dims++] = n;

        return 1;
    }

    if (r->n_offsets == 2) {
        return dsa_st_reject(r, "data_offsets has more than two numbers");
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
        return dsa_st_reject(r, "a tensor's name is empty or longer than 256 "
                             "bytes");
    }

    for (i = 0; i < len; i++) {

        /* errors quote names, and an error must be one line */

        if (text[i] < 0x20 || text[i] == 0x7f) {
            return dsa_st_reject(r, "a tensor's name has control characters");
        }
    }

    if (st->n == st->alloc) {
        alloc = st->alloc != 0 ? st->alloc * 2 : 64;

        t = realloc(st->tensor, (size_t) alloc * sizeof(dsa_st_tensor_t));
        if (t == NULL) {
            return dsa_st_reject(r, "out of memory");
        }

        st->tensor = t;
        st->alloc = alloc;
    }

    name = dsa_arena_dup(st->arena, dsa_str(text, len));
    if (name == NULL) {
        return dsa_st_reject(r, "out of memory");
    }

    t = &st->tensor[st->n];
    memset(t, 0, sizeof(dsa_st_tensor_t));
    t->name = dsa_str(name, len);

    r->tensor = t;

    switch (dsa_map_add(&st->names, t->name, st->n)) {

    case DSA_OK:
        break;

    case DSA_AGAIN:
        return dsa_st_reject(r, "the name is repeated");

    default:
        return dsa_st_reject(r, "out of memory");
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
        return dsa_st_reject(r, "a field is missing; expected dtype, shape "
                             "and two data_offsets");
    }

    if (dsa_st_bytes(t, r->element, &size) != DSA_OK) {
        return dsa_st_reject(r, "the size is beyond 63 bits");
    }

    if (r->offset[0] > r->offset[1] || r->offset[1] - r->offset[0] != size) {
        r->failed = 1;

        (void) dsa_error(r->err, "%s: tensor \"%.*s\": data_offsets are %llu "
                         "and %llu; expected %llu bytes, as dtype and shape "
                         "require", r->file, (int) t->name.len, t->name.data,
                         (unsigned long long) r->offset[0],
                         (unsigned long long) r->offset[1],
                         (unsigned long long) size);
        return 0;
    }

    room = st->size - DSA_ST_PREFIX - st->header.len;

    if (r->offset[1] > room) {
        r->failed = 1;

        (void) dsa_error(r->err, "%s: truncated: tensor \"%.*s\" ends at byte "
                         "%llu of the data, but the file has %llu bytes of it",
                         r->file, (int) t->name.len, t->name.data,
                         (unsigned long long) r->offset[1],
                         (unsigned long long) room);
        return 0;
    }

    t->size = size;
    t->data = st->header.data + st->header.len + r->offset[0];

    if ((uintptr_t) t->data % r->element != 0) {
        return dsa_st_reject(r, "the data is not aligned to its elements; "
                             "expected a file of safetensors 0.3 or newer");
    }

    r->tensor = NULL;
    r->state = DSA_ST_NAME;

    return 1;
}


static int
dsa_st_unexpected(dsa_st_reader_t *r)
{
    return dsa_st_reject(r, "the header has another form; expected "
                         "{ name: { \"dtype\": string, \"shape\": "
                         "[ integers ], \"data_offsets\": [ two integers ] "
                         "} }");
}


/* Sets err and stops the parser. */

static int
dsa_st_reject(dsa_st_reader_t *r, const char *what)
{
    r->failed = 1;

    if (r->tensor != NULL) {
        (void) dsa_error(r->err, "%s: tensor \"%.*s\": %s", r->file,
                         (int) r->tensor->name.len, r->tensor->name.data,
                         what);

    } else {
        (void) dsa_error(r->err, "%s: %s", r->file, what);
    }

    return 0;
}
