
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "bench/replay_trace.h"


#define TRACE_ARENA         (64U << 20)     /* bytes for the JSON of a line */
#define TRACE_DEPTH         8
#define TRACE_TOKENS        (1 << 24)       /* most of a prompt or an answer */
#define TRACE_IDS           (1LL << 53)     /* most that JSON keeps exact */
#define TRACE_PARTED        UINT64_MAX      /* no number of a block */
#define TRACE_TIME          1e12            /* ms */


/* a line while it is read */

typedef struct {
    trace_t            *trace;
    const char         *file;
    uint32_t            line;
    const dsa_json_t   *object;
    dsa_err_t          *err;
} trace_reader_t;


/* the identity of a block in a cache */

typedef struct {
    uint64_t            id;
    uint64_t            tenant;
} trace_block_t;


static FILE *trace_open(const char *path, int *piped);
static int trace_lines(trace_reader_t *r, FILE *f, uint32_t limit);
static int trace_line(trace_reader_t *r, const char *text, size_t len);
static int trace_request(trace_reader_t *r);
static int trace_times(trace_reader_t *r, trace_request_t *request);
static int trace_ms(trace_reader_t *r, const char *name, double *out);
static int trace_integer(trace_reader_t *r, const char *name, int64_t max,
    uint32_t *out);
static int trace_ids(trace_reader_t *r, trace_request_t *request);
static int trace_names(trace_reader_t *r, trace_request_t *request);
static int trace_name(trace_reader_t *r, const char *name, dsa_str_t *out);
static int trace_tenant(trace_t *t, dsa_str_t name, uint32_t *number);
static int trace_conversation(trace_t *t, dsa_str_t name,
    trace_request_t *request);
static int trace_best(trace_t *t);
static int trace_parts(trace_t *t);
static int trace_fail(trace_reader_t *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));


int
trace_read(trace_t *t, const char *path, uint32_t limit, dsa_err_t *err)
{
    int              rc, piped, status;
    FILE            *f;
    trace_reader_t   r;

    memset(t, 0, sizeof(trace_t));
    memset(&r, 0, sizeof(r));
    r.trace = t;
    r.file = strcmp(path, "-") == 0 ? "stdin" : path;
    r.err = err;

    f = trace_open(path, &piped);

    if (f == NULL) {
        return dsa_error(err, "%s: cannot be read: %s", path, strerror(errno));
    }

    rc = trace_lines(&r, f, limit);

    if (!piped) {
        if (f != stdin) {
            (void) fclose(f);
        }

    } else {
        status = pclose(f);

        /* xz gets SIGPIPE when not all lines were read */

        if (rc == DSA_OK && status != 0 && t->n < limit) {
            return dsa_error(err, "%s: xz -dc failed", path);
        }
    }

    if (rc == DSA_OK && t->n == 0) {
        return dsa_error(err, "%s: has no request", path);
    }

    if (rc == DSA_OK
        && (trace_best(t) != DSA_OK || trace_parts(t) != DSA_OK))
    {
        return dsa_error(err, "out of memory");
    }

    return rc;
}


/* The path reaches the shell as a variable, so that it is not parsed. */

static FILE *
trace_open(const char *path, int *piped)
{
    FILE    *f;
    size_t   len;

    len = strlen(path);
    *piped = 0;

    if (strcmp(path, "-") == 0) {
        return stdin;
    }

    f = fopen(path, "r");

    if (f == NULL || len < 3 || strcmp(path + len - 3, ".xz") != 0) {
        return f;
    }

    (void) fclose(f);
    *piped = 1;

    return setenv("DSA_TRACE", path, 1) == 0
           ? popen("exec xz -dc -- \"$DSA_TRACE\"", "r") : NULL;
}


static int
trace_lines(trace_reader_t *r, FILE *f, uint32_t limit)
{
    int      rc;
    char    *line;
    size_t   size;
    ssize_t  len;

    rc = DSA_OK;
    line = NULL;
    size = 0;

    while (rc == DSA_OK && r->trace->n < limit) {
        len = getline(&line, &size, f);

        if (len == -1) {
            if (ferror(f)) {
                rc = dsa_error(r->err, "%s: cannot be read: %s", r->file,
                               strerror(errno));
            }

            break;
        }

        r->line++;
        rc = trace_line(r, line, (size_t) len);
    }

    free(line);

    return rc;
}


static int
trace_line(trace_reader_t *r, const char *text, size_t len)
{
    int           rc;
    dsa_err_t     why;
    dsa_arena_t  *arena;

    arena = dsa_arena_create(TRACE_ARENA);

    if (arena == NULL) {
        return trace_fail(r, "out of memory");
    }

    r->object = dsa_json_parse(arena, text, len, TRACE_DEPTH, &why);

    if (r->object == NULL) {
        rc = trace_fail(r, "%.300s", why.text);

    } else if (r->object->type != DSA_JSON_OBJECT) {
        rc = trace_fail(r, "expected a JSON object");

    } else {
        rc = trace_request(r);
    }

    dsa_arena_destroy(arena);

    return rc;
}


static int
trace_request(trace_reader_t *r)
{
    trace_t          *t;
    trace_request_t  *request;

    t = r->trace;

    if (t->n == t->size) {
        t->size = t->size != 0 ? 2 * t->size : 1024;
        request = realloc(t->request, t->size * sizeof(trace_request_t));

        if (request == NULL) {
            return trace_fail(r, "out of memory");
        }

        t->request = request;
    }

    request = &t->request[t->n];
    memset(request, 0, sizeof(trace_request_t));

    if (trace_times(r, request) != DSA_OK
        || trace_integer(r, "input_length", TRACE_TOKENS, &request->input)
           != DSA_OK
        || trace_integer(r, "output_length", TRACE_TOKENS, &request->output)
           != DSA_OK
        || trace_ids(r, request) != DSA_OK
        || trace_names(r, request) != DSA_OK)
    {
        return DSA_ERROR;
    }

    t->n_first += request->previous == TRACE_NONE;
    t->n++;

    return DSA_OK;
}


static int
trace_times(trace_reader_t *r, trace_request_t *request)
{
    if (trace_ms(r, "timestamp", &request->arrival_ms) != DSA_OK
        || trace_ms(r, "pause_ms", &request->pause_ms) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (request->arrival_ms < 0) {
        return trace_fail(r, "\"timestamp\" is missing");
    }

    if (r->trace->n > 0 && request->arrival_ms < request[-1].arrival_ms) {
        return trace_fail(r, "\"timestamp\" is %.0f, less than %.0f in the "
                          "line before; expected the order of arrival",
                          request->arrival_ms, request[-1].arrival_ms);
    }

    return DSA_OK;
}


/* A member that is a time; -1 if it is absent. */

static int
trace_ms(trace_reader_t *r, const char *name, double *out)
{
    const dsa_json_t  *v;

    *out = -1;
    v = dsa_json_get(r->object, name);

    if (v == NULL) {
        return DSA_OK;
    }

    if (dsa_json_double(v, out) != DSA_OK
        || !(*out >= 0 && *out <= TRACE_TIME))
    {
        return trace_fail(r, "\"%s\" must be a number of ms from 0 to %.0f",
                          name, TRACE_TIME);
    }

    return DSA_OK;
}


/* A member that is an integer from 1 to max. */

static int
trace_integer(trace_reader_t *r, const char *name, int64_t max, uint32_t *out)
{
    int64_t            value;
    const dsa_json_t  *v;

    v = dsa_json_get(r->object, name);

    if (v == NULL) {
        return trace_fail(r, "\"%s\" is missing", name);
    }

    if (dsa_json_int(v, &value) != DSA_OK || value < 1 || value > max) {
        return trace_fail(r, "\"%s\" must be an integer from 1 to %lld", name,
                          (long long) max);
    }

    *out = (uint32_t) value;

    return DSA_OK;
}


static int
trace_ids(trace_reader_t *r, trace_request_t *request)
{
    size_t             size;
    int64_t            value;
    trace_t           *t;
    uint64_t          *id;
    const dsa_json_t  *v, *ids;

    t = r->trace;
    ids = dsa_json_get(r->object, "hash_ids");

    if (ids == NULL) {
        return trace_fail(r, "\"hash_ids\" is missing");
    }

    request->n_ids = (request->input + TRACE_BLOCK - 1) / TRACE_BLOCK;
    request->first_id = t->n_ids;

    if (ids->type != DSA_JSON_ARRAY || ids->n != request->n_ids) {
        return trace_fail(r, "\"hash_ids\" must be an array with %u numbers, "
                          "one for each %d tokens of \"input_length\"",
                          request->n_ids, TRACE_BLOCK);
    }

    if (t->n_ids + ids->n > t->id_size) {
        size = 2 * (t->n_ids + ids->n);
        id = realloc(t->id, size * sizeof(uint64_t));

        if (id == NULL) {
            return trace_fail(r, "out of memory");
        }

        t->id = id;
        t->id_size = size;
    }

    for (v = ids->first; v != NULL; v = v->next) {
        if (dsa_json_int(v, &value) != DSA_OK || value < 0
            || value > TRACE_IDS)
        {
            return trace_fail(r, "\"hash_ids\" must contain integers from 0 "
                              "to %lld", TRACE_IDS);
        }

        t->id[t->n_ids++] = (uint64_t) value;
    }

    return DSA_OK;
}


static int
trace_names(trace_reader_t *r, trace_request_t *request)
{
    dsa_str_t  name;

    request->tenant = TRACE_NONE;
    request->previous = TRACE_NONE;
    request->next = TRACE_NONE;

    if (trace_name(r, "tenant", &name) != DSA_OK) {
        return DSA_ERROR;
    }

    if (name.data != NULL
        && trace_tenant(r->trace, name, &request->tenant) != DSA_OK)
    {
        return trace_fail(r, "out of memory");
    }

    if (trace_name(r, "conversation", &name) != DSA_OK) {
        return DSA_ERROR;
    }

    if (name.data != NULL
        && trace_conversation(r->trace, name, request) != DSA_OK)
    {
        return trace_fail(r, "out of memory");
    }

    return DSA_OK;
}


/* A name is sent in a header, so it has printable characters only. */

static int
trace_name(trace_reader_t *r, const char *name, dsa_str_t *out)
{
    size_t             i;
    const dsa_json_t  *v;

    *out = dsa_str(NULL, 0);
    v = dsa_json_get(r->object, name);

    if (v == NULL) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_STRING || v->text.len == 0 || v->text.len > 64) {
        return trace_fail(r, "\"%s\" must be a string of 1 to 64 bytes",
                          name);
    }

    for (i = 0; i < v->text.len; i++) {
        if (v->text.data[i] <= ' ' || v->text.data[i] > '~') {
            return trace_fail(r, "\"%s\" must consist of printable ASCII "
                              "characters without blanks", name);
        }
    }

    *out = v->text;

    return DSA_OK;
}


static int
trace_tenant(trace_t *t, dsa_str_t name, uint32_t *number)
{
    char      **tenant;
    uint64_t   *found;

    found = dsa_map_find(&t->tenants, name);

    if (found != NULL) {
        *number = (uint32_t) *found;
        return DSA_OK;
    }

    tenant = realloc(t->tenant, (t->n_tenants + 1) * sizeof(char *));

    if (tenant == NULL) {
        return DSA_ERROR;
    }

    t->tenant = tenant;
    tenant[t->n_tenants] = strndup(name.data, name.len);

    if (tenant[t->n_tenants] == NULL) {
        return DSA_ERROR;
    }

    *number = t->n_tenants++;

    return dsa_map_add(&t->tenants, dsa_strz(tenant[*number]), *number);
}


/* The map keeps the copy of a name. */

static int
trace_conversation(trace_t *t, dsa_str_t name, trace_request_t *request)
{
    char      *key;
    uint64_t  *last;

    last = dsa_map_find(&t->conversations, name);

    if (last != NULL) {
        request->previous = (uint32_t) *last;
        t->request[*last].next = t->n;
        *last = t->n;
        return DSA_OK;
    }

    key = strndup(name.data, name.len);

    if (key == NULL || dsa_map_add(&t->conversations, dsa_strz(key), t->n)
                       != DSA_OK)
    {
        free(key);
        return DSA_ERROR;
    }

    return DSA_OK;
}


/*
 * The leading blocks of each request that an earlier request of its tenant had.
 * A number stands for its prefix as well, so that a set of them is enough.
 */

static int
trace_best(trace_t *t)
{
    int                     rc;
    uint32_t                i, k;
    dsa_map_t               seen;
    dsa_str_t               key;
    trace_block_t          *block;
    trace_request_t        *r;

    memset(&seen, 0, sizeof(seen));
    block = calloc(t->n_ids, sizeof(trace_block_t));
    rc = block != NULL ? DSA_OK : DSA_ERROR;

    for (i = 0; i < t->n && rc == DSA_OK; i++) {
        r = &t->request[i];

        for (k = 0; k < r->n_ids; k++) {
            block[r->first_id + k].id = t->id[r->first_id + k];
            block[r->first_id + k].tenant = r->tenant;
        }

        for (k = 0; k < r->n_ids; k++) {
            key = dsa_str(&block[r->first_id + k], sizeof(trace_block_t));

            if (dsa_map_find(&seen, key) == NULL) {
                break;
            }
        }

        r->best = k < r->n_ids ? k * TRACE_BLOCK : r->input;

        for ( /* void */ ; k < r->n_ids && rc != DSA_ERROR; k++) {
            key = dsa_str(&block[r->first_id + k], sizeof(trace_block_t));
            rc = dsa_map_add(&seen, key, 0);
        }

        rc = rc == DSA_ERROR ? rc : DSA_OK;
    }

    dsa_map_free(&seen);
    free(block);

    return rc;
}


/*
 * Two blocks that follow the same block have different numbers.  A number
 * stands for its prefix, so what follows it does not depend on what precedes.
 */

static int
trace_parts(trace_t *t)
{
    int         rc;
    size_t      at;
    uint32_t    i, k;
    uint64_t   *next;
    dsa_map_t   follows;
    dsa_str_t   key;

    memset(&follows, 0, sizeof(follows));
    t->part = calloc(t->n_ids, 1);
    rc = t->part != NULL ? DSA_OK : DSA_ERROR;

    for (i = 0; i < t->n && rc == DSA_OK; i++) {
        for (k = 0; k + 1 < t->request[i].n_ids && rc == DSA_OK; k++) {
            at = t->request[i].first_id + k;
            key = dsa_str(&t->id[at], sizeof(uint64_t));
            next = dsa_map_find(&follows, key);

            if (next == NULL) {
                rc = dsa_map_add(&follows, key, t->id[at + 1]);

            } else if (*next != t->id[at + 1]) {
                *next = TRACE_PARTED;
            }
        }
    }

    for (at = 0; at < t->n_ids && rc == DSA_OK; at++) {
        next = dsa_map_find(&follows, dsa_str(&t->id[at], sizeof(uint64_t)));
        t->part[at] = next != NULL && *next == TRACE_PARTED;
    }

    dsa_map_free(&follows);

    return rc;
}


static int
trace_fail(trace_reader_t *r, const char *fmt, ...)
{
    char     text[sizeof(dsa_err_t)];
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    return dsa_error(r->err, "%s:%u: %s", r->file, r->line, text);
}


void
trace_free(trace_t *t)
{
    uint32_t  i;

    for (i = 0; i < t->conversations.size; i++) {
        free((char *) (uintptr_t) t->conversations.bucket[i].key);
    }

    for (i = 0; i < t->n_tenants; i++) {
        free(t->tenant[i]);
    }

    dsa_map_free(&t->tenants);
    dsa_map_free(&t->conversations);
    free(t->tenant);
    free(t->request);
    free(t->id);
    free(t->part);
    memset(t, 0, sizeof(trace_t));
}
