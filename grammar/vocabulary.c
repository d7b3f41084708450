
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>

#include "grammar/vocabulary.h"


typedef struct {
    dsa_str_t            bytes;
    uint32_t             id;
} dsa_vocabulary_entry_t;


static int dsa_vocabulary_store(dsa_vocabulary_t *v, uint32_t id,
    dsa_str_t bytes, int control);
static int dsa_vocabulary_compare(const void *a, const void *b);
static int dsa_vocabulary_trie(dsa_vocabulary_t *v,
    const dsa_vocabulary_entry_t *entry, uint32_t n);
static void dsa_vocabulary_nodes(dsa_vocabulary_t *v,
    const dsa_vocabulary_entry_t *entry, uint32_t n, uint32_t *path);
static size_t dsa_vocabulary_common(dsa_str_t a, dsa_str_t b);


dsa_vocabulary_t *
dsa_vocabulary_create(uint32_t size)
{
    dsa_vocabulary_t  *v;

    static uint64_t  serial;

    v = calloc(1, sizeof(dsa_vocabulary_t));

    if (v == NULL) {
        return NULL;
    }

    v->size = size;
    v->serial = __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED);
    v->bytes = calloc((size_t) size + 1, sizeof(dsa_str_t));
    v->control = calloc((size_t) size + 1, 1);
    v->end_mask = calloc((size_t) size / 32 + 1, sizeof(uint32_t));
    v->memory = calloc(1, sizeof(dsa_vocabulary_memory_t));

    if (v->bytes == NULL || v->control == NULL || v->end_mask == NULL
        || v->memory == NULL)
    {
        dsa_vocabulary_free(v);
        return NULL;
    }

    v->memory->most = DSA_VOCABULARY_MEMORY;

    return v;
}


int
dsa_vocabulary_add(dsa_vocabulary_t *v, uint32_t id, dsa_str_t bytes)
{
    return dsa_vocabulary_store(v, id, bytes, 0);
}


int
dsa_vocabulary_add_control(dsa_vocabulary_t *v, uint32_t id, dsa_str_t name)
{
    return dsa_vocabulary_store(v, id, name, 1);
}


int
dsa_vocabulary_end(dsa_vocabulary_t *v, const uint32_t *end, uint32_t n)
{
    uint32_t  i;

    free(v->end);

    memset(v->end_mask, 0, ((size_t) v->size / 32 + 1) * sizeof(uint32_t));

    v->n_end = 0;
    v->end = malloc(((size_t) n + 1) * sizeof(uint32_t));

    if (v->end == NULL) {
        return DSA_ERROR;
    }

    for (i = 0; i < n; i++) {
        if (end[i] < v->size) {
            v->end[v->n_end++] = end[i];
            v->end_mask[end[i] / 32] |= 1U << end[i] % 32;
        }
    }

    return DSA_OK;
}


void
dsa_vocabulary_limit(dsa_vocabulary_t *v, size_t bytes)
{
    v->memory->most = bytes;
}


size_t
dsa_vocabulary_used(const dsa_vocabulary_t *v)
{
    return atomic_load(&v->memory->used);
}


int
dsa_vocabulary_seal(dsa_vocabulary_t *v)
{
    int                      rc;
    uint32_t                 i, n;
    dsa_vocabulary_entry_t  *entry;

    entry = malloc(((size_t) v->size + 1) * sizeof(dsa_vocabulary_entry_t));

    if (entry == NULL) {
        return DSA_ERROR;
    }

    n = 0;

    for (i = 0; i < v->size; i++) {

        /* a token that ends the answer cannot be a part of it */

        if (v->bytes[i].len == 0 || v->control[i]
            || dsa_vocabulary_is_end(v, i))
        {
            continue;
        }

        entry[n].bytes = v->bytes[i];
        entry[n].id = i;
        n++;
    }

    qsort(entry, n, sizeof(dsa_vocabulary_entry_t), dsa_vocabulary_compare);

    rc = dsa_vocabulary_trie(v, entry, n);

    free(entry);

    return rc;
}


void
dsa_vocabulary_free(dsa_vocabulary_t *v)
{
    uint32_t  i;

    if (v == NULL) {
        return;
    }

    for (i = 0; v->bytes != NULL && i < v->size; i++) {
        free((char *) v->bytes[i].data);
    }

    free(v->bytes);
    free(v->control);
    free(v->end);
    free(v->end_mask);
    free(v->memory);
    free(v->byte);
    free(v->depth);
    free(v->skip);
    free(v->first);
    free(v->ids);
    free(v);
}


uint32_t
dsa_vocabulary_control(const dsa_vocabulary_t *v, dsa_str_t name)
{
    uint32_t  i;

    for (i = 0; i < v->size; i++) {
        if (v->control[i] && dsa_str_eq(v->bytes[i], name)) {
            return i;
        }
    }

    return DSA_VOCABULARY_NONE;
}


int
dsa_vocabulary_is_end(const dsa_vocabulary_t *v, uint32_t id)
{
    uint32_t  i;

    for (i = 0; i < v->n_end; i++) {
        if (v->end[i] == id) {
            return 1;
        }
    }

    return 0;
}


static int
dsa_vocabulary_store(dsa_vocabulary_t *v, uint32_t id, dsa_str_t bytes,
    int control)
{
    char  *copy;

    if (id >= v->size || v->bytes[id].data != NULL) {
        return DSA_ERROR;
    }

    copy = malloc(bytes.len + 1);

    if (copy == NULL) {
        return DSA_ERROR;
    }

    if (bytes.len != 0) {
        memcpy(copy, bytes.data, bytes.len);
    }

    v->bytes[id] = dsa_str(copy, bytes.len);
    v->control[id] = (uint8_t) control;

    return DSA_OK;
}


static int
dsa_vocabulary_compare(const void *a, const void *b)
{
    int                            rc;
    size_t                         n;
    const dsa_vocabulary_entry_t  *x, *y;

    x = a;
    y = b;
    n = x->bytes.len < y->bytes.len ? x->bytes.len : y->bytes.len;
    rc = memcmp(x->bytes.data, y->bytes.data, n);

    if (rc != 0) {
        return rc;
    }

    if (x->bytes.len != y->bytes.len) {
        return x->bytes.len < y->bytes.len ? -1 : 1;
    }

    return x->id < y->id ? -1 : x->id > y->id;
}


/* The entries are sorted, so that those with a common prefix are neighbours. */

static int
dsa_vocabulary_trie(dsa_vocabulary_t *v, const dsa_vocabulary_entry_t *entry,
    uint32_t n)
{
    size_t     total, max, common;
    uint32_t   i, *path;

    total = 0;
    max = 0;

    for (i = 0; i < n; i++) {
        common = i == 0 ? 0
                 : dsa_vocabulary_common(entry[i - 1].bytes, entry[i].bytes);
        total += entry[i].bytes.len - common;

        if (entry[i].bytes.len > max) {
            max = entry[i].bytes.len;
        }
    }

    if (total >= DSA_VOCABULARY_NONE) {
        return DSA_ERROR;
    }

    v->n_nodes = (uint32_t) total;
    v->max_depth = (uint32_t) max;

    v->byte = malloc(total + 1);
    v->depth = malloc((total + 1) * sizeof(uint32_t));
    v->skip = malloc((total + 1) * sizeof(uint32_t));
    v->first = malloc((total + 1) * sizeof(uint32_t));
    v->ids = malloc(((size_t) n + 1) * sizeof(uint32_t));
    path = malloc((max + 1) * sizeof(uint32_t));

    if (v->byte == NULL || v->depth == NULL || v->skip == NULL
        || v->first == NULL || v->ids == NULL || path == NULL)
    {
        free(path);
        return DSA_ERROR;
    }

    dsa_vocabulary_nodes(v, entry, n, path);

    free(path);

    return DSA_OK;
}


/* path: the node at each depth of the entry before. */

static void
dsa_vocabulary_nodes(dsa_vocabulary_t *v, const dsa_vocabulary_entry_t *entry,
    uint32_t n, uint32_t *path)
{
    size_t    d, common, before;
    uint32_t  i, node;

    node = 0;
    before = 0;

    for (i = 0; i < n; i++) {
        common = i == 0 ? 0
                 : dsa_vocabulary_common(entry[i - 1].bytes, entry[i].bytes);

        for (d = common; d < before; d++) {
            v->skip[path[d]] = node;
        }

        for (d = common; d < entry[i].bytes.len; d++) {
            v->byte[node] = (uint8_t) entry[i].bytes.data[d];
            v->depth[node] = (uint32_t) d + 1;
            v->first[node] = i;
            path[d] = node++;
        }

        v->ids[i] = entry[i].id;
        before = entry[i].bytes.len;
    }

    for (d = 0; d < before; d++) {
        v->skip[path[d]] = node;
    }

    v->first[node] = n;
}


static size_t
dsa_vocabulary_common(dsa_str_t a, dsa_str_t b)
{
    size_t  i, n;

    n = a.len < b.len ? a.len : b.len;

    for (i = 0; i < n && a.data[i] == b.data[i]; i++) {
        /* void */
    }

    return i;
}
