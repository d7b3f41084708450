
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_keys_file.h"
#include "ngx_http_dsa_keys_update.h"


#define NGX_HTTP_DSA_KEYS_FILE_ARENA  (64 * 1024)       /* for one key entry */


/* An id or a hash of the file; each may be there only once. */

typedef struct {
    u_char                       digest[NGX_HTTP_DSA_KEYS_DIGEST];
    ngx_uint_t                   line;
} ngx_http_dsa_keys_name_t;


typedef struct {
    ngx_str_t                   *path;
    ngx_uint_t                   level;
    ngx_log_t                   *log;
    u_char                      *text;
    size_t                       size;
    ngx_uint_t                   entries;
    ngx_file_info_t              info;
} ngx_http_dsa_keys_text_t;


typedef void (*ngx_http_dsa_keys_record_pt)(void *data,
    const dsa_key_t *entry, ngx_uint_t line);


typedef struct {
    ngx_http_dsa_keys_t         *keys;
    uint64_t                     round;
} ngx_http_dsa_keys_round_t;


typedef struct {
    ngx_http_dsa_keys_name_t    *ids;
    ngx_http_dsa_keys_name_t    *hashes;
    ngx_uint_t                   n_ids;
    ngx_uint_t                   n_hashes;
} ngx_http_dsa_keys_names_t;


static ngx_int_t ngx_http_dsa_keys_file_read(ngx_http_dsa_keys_text_t *text);
static ngx_int_t ngx_http_dsa_keys_file_fill(ngx_http_dsa_keys_text_t *text,
    ngx_fd_t fd);
static ngx_int_t ngx_http_dsa_keys_file_check(ngx_http_dsa_keys_text_t *text);
static ngx_int_t ngx_http_dsa_keys_file_each(ngx_http_dsa_keys_text_t *text,
    ngx_http_dsa_keys_record_pt handler, void *data);
static void ngx_http_dsa_keys_file_note(void *data, const dsa_key_t *entry,
    ngx_uint_t line);
static void ngx_http_dsa_keys_file_put(void *data, const dsa_key_t *entry,
    ngx_uint_t line);
static ngx_int_t ngx_http_dsa_keys_file_unique(ngx_http_dsa_keys_text_t *text,
    const char *what, ngx_http_dsa_keys_name_t *names, ngx_uint_t n);
static int ngx_libc_cdecl ngx_http_dsa_keys_file_compare(const void *one,
    const void *two);
static ngx_uint_t ngx_http_dsa_keys_file_same(
    const ngx_http_dsa_keys_source_t *source, const ngx_file_info_t *info);
static int64_t ngx_http_dsa_keys_file_time(const ngx_file_info_t *info);


ngx_int_t
ngx_http_dsa_keys_file_load(ngx_http_dsa_keys_t *keys, ngx_str_t *path,
    ngx_uint_t put, ngx_uint_t level, ngx_log_t *log)
{
    ngx_int_t                    rc;
    ngx_http_dsa_keys_text_t     text;
    ngx_http_dsa_keys_round_t    round;
    ngx_http_dsa_keys_source_t  *source;

    ngx_memzero(&text, sizeof(ngx_http_dsa_keys_text_t));

    text.path = path;
    text.level = level;
    text.log = log;

    rc = ngx_http_dsa_keys_file_read(&text);

    if (rc == NGX_OK) {
        rc = ngx_http_dsa_keys_file_check(&text);
    }

    if (rc == NGX_OK && put && text.entries == 0
        && ngx_http_dsa_keys_any(keys))
    {
        /* as a full disk or a writer that was interrupted leaves it */

        ngx_log_error(level, log, 0,
                      "\"%V\" of \"dsa_keys\" has no keys any more; the last "
                      "keys remain; expected at least one key entry, and "
                      "revoked keys in place of removed ones", path);
        rc = NGX_ERROR;
    }

    if (rc == NGX_OK && put) {
        round.keys = keys;
        round.round = ngx_http_dsa_keys_begin(keys);

        rc = ngx_http_dsa_keys_file_each(&text, ngx_http_dsa_keys_file_put,
                                         &round);
        if (rc == NGX_OK) {
            ngx_http_dsa_keys_end(keys, round.round);
            ngx_http_dsa_keys_current(keys);
        }
    }

    if (put && (text.text != NULL
                || ngx_file_info(path->data, &text.info) != NGX_FILE_ERROR))
    {
        /* a file that is not accepted is not read again until it changes */

        source = &keys->zone->source;

        source->file = ngx_file_uniq(&text.info);
        source->changed = ngx_http_dsa_keys_file_time(&text.info);
        source->size = ngx_file_size(&text.info);
    }

    ngx_free(text.text);

    return rc;
}


static ngx_int_t
ngx_http_dsa_keys_file_read(ngx_http_dsa_keys_text_t *text)
{
    ngx_fd_t   fd;
    ngx_int_t  rc;
    ngx_err_t  err;

    fd = ngx_open_file(text->path->data, NGX_FILE_RDONLY|NGX_FILE_NONBLOCK,
                       NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        err = ngx_errno;

        ngx_log_error(text->level, text->log, err,
                      "file of \"dsa_keys\": " ngx_open_file_n
                      " \"%V\" failed", text->path);

        if (err == NGX_ENOENT) {
            ngx_log_error(text->level, text->log, 0,
                          "\"dsa key create --file %V --name NAME\" makes "
                          "this file with a first key", text->path);
        }

        return NGX_ERROR;
    }

    rc = ngx_http_dsa_keys_file_fill(text, fd);

    if (ngx_close_file(fd) == NGX_FILE_ERROR) {
        ngx_log_error(NGX_LOG_ALERT, text->log, ngx_errno,
                      ngx_close_file_n " \"%V\" failed", text->path);
    }

    return rc;
}


static ngx_int_t
ngx_http_dsa_keys_file_fill(ngx_http_dsa_keys_text_t *text, ngx_fd_t fd)
{
    ssize_t  n;

    if (ngx_fd_info(fd, &text->info) == NGX_FILE_ERROR) {
        ngx_log_error(text->level, text->log, ngx_errno,
                      ngx_fd_info_n " \"%V\" failed", text->path);
        return NGX_ERROR;
    }

    if (!ngx_is_file(&text->info)
        || ngx_file_size(&text->info) > NGX_HTTP_DSA_KEYS_FILE_MAX)
    {
        ngx_log_error(text->level, text->log, 0,
                      "\"%V\" of \"dsa_keys\" is not a file of at most %d "
                      "bytes; expected one, or the keys in Redis", text->path,
                      NGX_HTTP_DSA_KEYS_FILE_MAX);
        return NGX_ERROR;
    }

    text->size = ngx_file_size(&text->info);
    text->text = ngx_alloc(text->size + 1, text->log);

    if (text->text == NULL) {
        return NGX_ERROR;
    }

    /* the one byte more shows whether the file grows */

    n = ngx_read_fd(fd, text->text, text->size + 1);

    if (n == (ssize_t) text->size) {
        return NGX_OK;
    }

    ngx_log_error(text->level, text->log, n == -1 ? ngx_errno : 0,
                  "\"%V\" of \"dsa_keys\" cannot be read as a whole; expected "
                  "a file that is replaced by rename()", text->path);

    return NGX_ERROR;
}


static ngx_int_t
ngx_http_dsa_keys_file_check(ngx_http_dsa_keys_text_t *text)
{
    size_t                      i, lines;
    ngx_int_t                   rc;
    ngx_http_dsa_keys_names_t   names;

    lines = 1;

    for (i = 0; i < text->size; i++) {
        lines += (text->text[i] == LF);
    }

    ngx_memzero(&names, sizeof(ngx_http_dsa_keys_names_t));

    names.ids = ngx_alloc(lines * sizeof(ngx_http_dsa_keys_name_t),
                          text->log);
    names.hashes = ngx_alloc(2 * lines * sizeof(ngx_http_dsa_keys_name_t),
                             text->log);

    rc = NGX_ERROR;

    if (names.ids != NULL && names.hashes != NULL) {
        rc = ngx_http_dsa_keys_file_each(text, ngx_http_dsa_keys_file_note,
                                         &names);
        text->entries = names.n_ids;
    }

    if (rc == NGX_OK) {
        rc = ngx_http_dsa_keys_file_unique(text, "id", names.ids,
                                           names.n_ids);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_dsa_keys_file_unique(text, "hash", names.hashes,
                                           names.n_hashes);
    }

    ngx_free(names.ids);
    ngx_free(names.hashes);

    return rc;
}


/* Calls the handler for each key entry, until one is not valid. */

static ngx_int_t
ngx_http_dsa_keys_file_each(ngx_http_dsa_keys_text_t *text,
    ngx_http_dsa_keys_record_pt handler, void *data)
{
    u_char       *p, *end, *last;
    dsa_err_t     err;
    dsa_key_t     entry;
    dsa_str_t     json;
    ngx_uint_t    line;
    dsa_arena_t  *arena;

    line = 0;
    end = text->text + text->size;

    for (p = text->text; p < end; p = last + 1) {
        line++;

        last = ngx_strlchr(p, end, LF);

        if (last == NULL) {
            last = end;
        }

        json = dsa_str_trim(dsa_str(p, last - p));

        if (json.len == 0 || json.data[0] == '#') {
            continue;
        }

        arena = dsa_arena_create(NGX_HTTP_DSA_KEYS_FILE_ARENA);

        if (arena == NULL) {
            ngx_log_error(text->level, text->log, ngx_errno,
                          "\"%V\" of \"dsa_keys\" is not read: nginx is out "
                          "of memory", text->path);
            return NGX_ERROR;
        }

        if (dsa_key_read(&entry, arena, json, &err) != DSA_OK) {
            dsa_arena_destroy(arena);

            ngx_log_error(text->level, text->log, 0,
                          "\"%V\" of \"dsa_keys\", line %ui: %s", text->path,
                          line, err.text);
            return NGX_ERROR;
        }

        handler(data, &entry, line);

        dsa_arena_destroy(arena);
    }

    return NGX_OK;
}


static void
ngx_http_dsa_keys_file_note(void *data, const dsa_key_t *entry,
    ngx_uint_t line)
{
    ngx_http_dsa_keys_names_t *names = data;

    ngx_http_dsa_keys_name_t  *name;

    name = &names->ids[names->n_ids++];
    name->line = line;
    ngx_memzero(name->digest, sizeof(name->digest));
    ngx_memcpy(name->digest, entry->id.data, DSA_KEY_ID_LEN);

    name = &names->hashes[names->n_hashes++];
    name->line = line;
    ngx_memcpy(name->digest, entry->hash, DSA_KEY_HASH_LEN);

    if (entry->old_until != 0) {
        name = &names->hashes[names->n_hashes++];
        name->line = line;
        ngx_memcpy(name->digest, entry->old_hash, DSA_KEY_HASH_LEN);
    }
}


static void
ngx_http_dsa_keys_file_put(void *data, const dsa_key_t *entry,
    ngx_uint_t line)
{
    ngx_http_dsa_keys_round_t *round = data;

    ngx_http_dsa_keys_put(round->keys, entry, round->round);
}


static ngx_int_t
ngx_http_dsa_keys_file_unique(ngx_http_dsa_keys_text_t *text,
    const char *what, ngx_http_dsa_keys_name_t *names, ngx_uint_t n)
{
    ngx_uint_t  i, one, two;

    ngx_qsort(names, n, sizeof(ngx_http_dsa_keys_name_t),
              ngx_http_dsa_keys_file_compare);

    for (i = 1; i < n; i++) {

        if (ngx_http_dsa_keys_file_compare(&names[i - 1], &names[i]) != 0) {
            continue;
        }

        one = ngx_min(names[i - 1].line, names[i].line);
        two = ngx_max(names[i - 1].line, names[i].line);

        ngx_log_error(text->level, text->log, 0,
                      "\"%V\" of \"dsa_keys\", line %ui: the %s is also in "
                      "line %ui; expected each once", text->path, two, what,
                      one);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static int ngx_libc_cdecl
ngx_http_dsa_keys_file_compare(const void *one, const void *two)
{
    const ngx_http_dsa_keys_name_t *a = one, *b = two;

    return ngx_memcmp(a->digest, b->digest, sizeof(a->digest));
}


ngx_int_t
ngx_http_dsa_keys_file_changed(ngx_http_dsa_keys_t *keys, ngx_str_t *path,
    ngx_log_t *log)
{
    ngx_file_info_t              info;
    ngx_http_dsa_keys_source_t  *source;

    static ngx_http_dsa_keys_source_t  seen;

    source = &keys->zone->source;

    if (ngx_file_info(path->data, &info) == NGX_FILE_ERROR) {

        if (source->size != -1) {
            ngx_log_error(NGX_LOG_ERR, log, ngx_errno,
                          "file of \"dsa_keys\": " ngx_file_info_n " \"%V\" "
                          "failed; the last keys remain", path);
            source->size = -1;
        }

        return NGX_DECLINED;
    }

    if (ngx_http_dsa_keys_file_same(source, &info)) {
        return NGX_DECLINED;
    }

    if (ngx_http_dsa_keys_file_same(&seen, &info)) {
        return NGX_OK;
    }

    seen.file = ngx_file_uniq(&info);
    seen.changed = ngx_http_dsa_keys_file_time(&info);
    seen.size = ngx_file_size(&info);

    return NGX_AGAIN;
}


static ngx_uint_t
ngx_http_dsa_keys_file_same(const ngx_http_dsa_keys_source_t *source,
    const ngx_file_info_t *info)
{
    return source->file == ngx_file_uniq(info)
           && source->changed == ngx_http_dsa_keys_file_time(info)
           && source->size == ngx_file_size(info);
}


/* Nanoseconds; chmod and rename change it as well as write. */

static int64_t
ngx_http_dsa_keys_file_time(const ngx_file_info_t *info)
{
    return (int64_t) info->st_ctim.tv_sec * 1000000000
           + info->st_ctim.tv_nsec;
}
