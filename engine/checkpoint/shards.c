
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fields.h"
#include "base/file.h"
#include "base/map.h"
#include "engine/checkpoint/shards.h"


#define DSA_SHARDS_INDEX        "model.safetensors.index.json"
#define DSA_SHARDS_SINGLE       "model.safetensors"
#define DSA_SHARDS_INDEX_MAX    (256 * 1024 * 1024)     /* bytes */
#define DSA_SHARDS_MAX          16384                   /* files */
#define DSA_SHARDS_LAYERS       100000                  /* in names */


/* The contents of the index file: the name of a file for each tensor. */

typedef struct {
    dsa_fields_t        top;
    dsa_fields_t        weight_map;
    dsa_map_t           number;         /* of a file, by its name */
    dsa_str_t          *name;           /* [n] of the files, sorted */
    uint32_t            n;
    uint32_t            layers;         /* tensors of later ones are optional */
} dsa_index_t;


static int dsa_shards_open_single(dsa_shards_t *shards, const char *dir,
    dsa_err_t *err);
static int dsa_shards_open_index(dsa_shards_t *shards, const char *dir,
    const char *path, uint32_t layers, dsa_err_t *err);
static int dsa_shards_reserve(dsa_shards_t *shards, uint32_t n,
    const char *dir, dsa_err_t *err);
static int dsa_shards_open_file(dsa_shards_t *shards, const char *dir,
    dsa_str_t name, dsa_err_t *err);
static int dsa_index_read(dsa_index_t *index, const char *dir,
    const char *path, const dsa_buf_t *text, dsa_err_t *err);
static int dsa_index_names(dsa_index_t *index, const char *dir);
static int dsa_index_skip(const dsa_index_t *index, const char *dir,
    const dsa_json_t *v);
static int dsa_index_optional(const dsa_index_t *index, dsa_str_t tensor);
static int dsa_index_is_name(const dsa_json_t *v);
static int dsa_index_compare(const void *one, const void *two);
static int dsa_index_check_files(const dsa_index_t *index, const char *dir,
    dsa_err_t *err);
static int dsa_index_check_tensors(const dsa_index_t *index,
    const dsa_shards_t *shards, const char *dir, dsa_err_t *err);


int
dsa_shards_open(dsa_shards_t *shards, const char *dir, uint32_t layers,
    dsa_err_t *err)
{
    char  path[PATH_MAX];

    memset(shards, 0, sizeof(dsa_shards_t));

    if (dsa_file_path(path, dir, dsa_strz(DSA_SHARDS_INDEX), err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (access(path, F_OK) == 0) {
        return dsa_shards_open_index(shards, dir, path, layers, err);
    }

    return dsa_shards_open_single(shards, dir, err);
}


void
dsa_shards_close(dsa_shards_t *shards)
{
    uint32_t  i;

    for (i = 0; i < shards->n; i++) {
        dsa_st_close(shards->file[i]);
        free(shards->path[i]);
    }

    free(shards->file);
    free(shards->path);
}


const char *
dsa_shards_name(const dsa_shards_t *shards, uint32_t i)
{
    const char  *slash;

    slash = strrchr(shards->path[i], '/');

    return slash != NULL ? slash + 1 : shards->path[i];
}


uint32_t
dsa_shards_find(const dsa_shards_t *shards, const void *byte,
    uint64_t *offset)
{
    uint32_t   i;
    uint64_t   size;
    uintptr_t  image;

    for (i = 0; i < shards->n; i++) {
        image = (uintptr_t) dsa_st_image(shards->file[i], &size);

        if ((uintptr_t) byte >= image && (uintptr_t) byte - image < size) {
            *offset = (uintptr_t) byte - image;
            break;
        }
    }

    assert(i < shards->n);

    return i;
}


static int
dsa_shards_open_single(dsa_shards_t *shards, const char *dir, dsa_err_t *err)
{
    char  path[PATH_MAX];

    static const dsa_str_t  single = dsa_string(DSA_SHARDS_SINGLE);

    if (dsa_file_path(path, dir, single, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (access(path, F_OK) != 0) {
        return dsa_error(err, "%s: no weights; expected %s or %s", dir,
                         DSA_SHARDS_INDEX, DSA_SHARDS_SINGLE);
    }

    if (dsa_shards_reserve(shards, 1, dir, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_shards_open_file(shards, dir, single, err);
}


static int
dsa_shards_open_index(dsa_shards_t *shards, const char *dir, const char *path,
    uint32_t layers, dsa_err_t *err)
{
    int          rc;
    uint32_t     i;
    dsa_buf_t    text;
    dsa_index_t  index;

    memset(&text, 0, sizeof(dsa_buf_t));
    memset(&index, 0, sizeof(dsa_index_t));

    index.layers = layers;

    rc = dsa_file_read(path, DSA_SHARDS_INDEX_MAX, &text, err);

    if (rc == DSA_OK) {
        rc = dsa_index_read(&index, dir, path, &text, err);
    }

    dsa_buf_free(&text);

    if (rc == DSA_OK) {
        rc = dsa_index_check_files(&index, dir, err);
    }

    if (rc == DSA_OK) {
        rc = dsa_shards_reserve(shards, index.n, dir, err);
    }

    for (i = 0; rc == DSA_OK && i < index.n; i++) {
        rc = dsa_shards_open_file(shards, dir, index.name[i], err);
    }

    if (rc == DSA_OK) {
        rc = dsa_index_check_tensors(&index, shards, dir, err);
    }

    dsa_map_free(&index.number);
    dsa_fields_close(&index.top);
    free(index.name);

    return rc;
}


static int
dsa_shards_reserve(dsa_shards_t *shards, uint32_t n, const char *dir,
    dsa_err_t *err)
{
    shards->file = calloc(n, sizeof(dsa_st_t *));
    shards->path = calloc(n, sizeof(char *));

    if (shards->file == NULL || shards->path == NULL) {
        return dsa_error(err, "%s: out of memory", dir);
    }

    return DSA_OK;
}


static int
dsa_shards_open_file(dsa_shards_t *shards, const char *dir, dsa_str_t name,
    dsa_err_t *err)
{
    char      *copy, path[PATH_MAX];
    dsa_st_t  *file;

    if (dsa_file_path(path, dir, name, err) != DSA_OK) {
        return DSA_ERROR;
    }

    file = dsa_st_open(path, err);

    if (file == NULL) {
        return DSA_ERROR;
    }

    copy = strdup(path);

    if (copy == NULL) {
        dsa_st_close(file);
        return dsa_error(err, "%s: out of memory", path);
    }

    shards->file[shards->n] = file;
    shards->path[shards->n] = copy;
    shards->n++;

    return DSA_OK;
}


static int
dsa_index_read(dsa_index_t *index, const char *dir, const char *path,
    const dsa_buf_t *text, dsa_err_t *err)
{
    uint32_t  i;

    if (dsa_fields_open(&index->top, path, dsa_str(text->data, text->len), err)
        != DSA_OK
        || dsa_fields_inner(&index->weight_map, &index->top, "weight_map",
                            "weight_map.")
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (index->weight_map.object == NULL || index->weight_map.object->n == 0) {
        return dsa_field_reject(&index->top, "weight_map",
                                index->weight_map.object, "an object of "
                                "tensor names and file names");
    }

    index->name = calloc(DSA_SHARDS_MAX, sizeof(dsa_str_t));

    if (index->name == NULL) {
        return dsa_error(err, "%s: out of memory", path);
    }

    if (dsa_index_names(index, dir) != DSA_OK) {
        return DSA_ERROR;
    }

    qsort(index->name, index->n, sizeof(dsa_str_t), dsa_index_compare);

    for (i = 0; i < index->n; i++) {
        *dsa_map_find(&index->number, index->name[i]) = i;
    }

    return DSA_OK;
}


/* Collects the names of the files without duplicates. */

static int
dsa_index_names(dsa_index_t *index, const char *dir)
{
    const dsa_json_t  *v;

    for (v = index->weight_map.object->first; v != NULL; v = v->next) {

        if (!dsa_index_is_name(v)) {
            return dsa_field_reject(&index->weight_map, v->key.data, v,
                                    "the name of a file in this directory");
        }

        if (dsa_index_skip(index, dir, v)) {
            continue;
        }

        switch (dsa_map_add(&index->number, v->text, 0)) {

        case DSA_OK:
            break;

        case DSA_AGAIN:
            continue;

        default:
            return dsa_error(index->top.err, "%s: out of memory",
                             index->top.file);
        }

        if (index->n == DSA_SHARDS_MAX) {
            return dsa_error(index->top.err, "%s: the index names more than "
                             "%d files", index->top.file, DSA_SHARDS_MAX);
        }

        index->name[index->n++] = v->text;
    }

    return DSA_OK;
}


/* Returns 1 if the file of a tensor is missing, and may be so. */

static int
dsa_index_skip(const dsa_index_t *index, const char *dir, const dsa_json_t *v)
{
    char  path[PATH_MAX];

    return dsa_index_optional(index, v->key)
           && dsa_map_find(&index->number, v->text) == NULL
           && dsa_file_path(path, dir, v->text, NULL) == DSA_OK
           && access(path, F_OK) != 0;
}


/* Returns 1 for the name of a tensor of a layer from index->layers on. */

static int
dsa_index_optional(const dsa_index_t *index, dsa_str_t tensor)
{
    size_t    i;
    uint32_t  layer;

    static const dsa_str_t  prefix = dsa_string("model.layers.");

    if (tensor.len <= prefix.len
        || memcmp(tensor.data, prefix.data, prefix.len) != 0)
    {
        return 0;
    }

    layer = 0;

    for (i = prefix.len; i < tensor.len; i++) {
        if (tensor.data[i] < '0' || tensor.data[i] > '9') {
            return tensor.data[i] == '.' && i > prefix.len
                   && layer >= index->layers;
        }

        /* larger numbers are not layers, and would overflow */

        if (layer > DSA_SHARDS_LAYERS) {
            return 0;
        }

        layer = 10 * layer + (uint32_t) (tensor.data[i] - '0');
    }

    return 0;
}


/*
 * Checks the name of a file.  It must not be a path, which could lead out of
 * the directory.
 */

static int
dsa_index_is_name(const dsa_json_t *v)
{
    size_t  i;

    if (v->type != DSA_JSON_STRING || v->text.len == 0
        || v->text.len > NAME_MAX || v->text.data[0] == '.')
    {
        return 0;
    }

    for (i = 0; i < v->text.len; i++) {
        if (v->text.data[i] == '/' || (uint8_t) v->text.data[i] < 0x20) {
            return 0;
        }
    }

    return 1;
}


static int
dsa_index_compare(const void *one, const void *two)
{
    int               rc;
    const dsa_str_t  *a, *b;

    a = one;
    b = two;

    rc = memcmp(a->data, b->data, a->len < b->len ? a->len : b->len);

    return rc != 0 ? rc : (a->len > b->len) - (a->len < b->len);
}


static int
dsa_index_check_files(const dsa_index_t *index, const char *dir,
    dsa_err_t *err)
{
    char              path[PATH_MAX], more[64];
    uint32_t          i, absent;
    const dsa_str_t  *first;

    absent = 0;
    first = NULL;

    for (i = 0; i < index->n; i++) {
        if (dsa_file_path(path, dir, index->name[i], err) != DSA_OK) {
            return DSA_ERROR;
        }

        if (access(path, F_OK) != 0 && absent++ == 0) {
            first = &index->name[i];
        }
    }

    if (absent == 0) {
        return DSA_OK;
    }

    (void) snprintf(more, sizeof(more), " (and %u more)", absent - 1);

    return dsa_error(err, "%s: file \"%.*s\" is missing, which %s names%s", dir,
                     (int) first->len, first->data, DSA_SHARDS_INDEX,
                     absent > 1 ? more : "");
}


static int
dsa_index_check_tensors(const dsa_index_t *index, const dsa_shards_t *shards,
    const char *dir, dsa_err_t *err)
{
    char               more[64];
    uint32_t           absent;
    uint64_t          *i;
    const dsa_json_t  *v, *first;

    absent = 0;
    first = NULL;

    for (v = index->weight_map.object->first; v != NULL; v = v->next) {
        i = dsa_map_find(&index->number, v->text);

        if (i != NULL && dsa_st_find(shards->file[*i], v->key) != NULL) {
            continue;
        }

        if (!dsa_index_optional(index, v->key) && absent++ == 0) {
            first = v;
        }
    }

    if (absent == 0) {
        return DSA_OK;
    }

    (void) snprintf(more, sizeof(more), " (and %u more such tensors)",
                    absent - 1);

    return dsa_error(err, "%s: tensor \"%.*s\" is not in file \"%.*s\", which "
                     "%s names for it%s", dir,
                     first->key.len < 200 ? (int) first->key.len : 200,
                     first->key.data, (int) first->text.len, first->text.data,
                     DSA_SHARDS_INDEX, absent > 1 ? more : "");
}
