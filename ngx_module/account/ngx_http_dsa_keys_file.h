
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_KEYS_FILE_H_INCLUDED_
#define _NGX_HTTP_DSA_KEYS_FILE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_keys_zone.h"


/*
 * The keys of "dsa_keys file=": one key entry on each line.  Empty lines and
 * lines that begin with "#" are skipped.
 */

/* bytes, because one worker reads the file at once on its event loop */

#define NGX_HTTP_DSA_KEYS_FILE_MAX  (16 * 1024 * 1024)


/*
 * Reads the whole file, and puts its keys into the zone if every line is valid;
 * put 0: only checks it.  NGX_OK, or NGX_ERROR, which is logged at the level
 * with the line and the reason.
 */
ngx_int_t ngx_http_dsa_keys_file_load(ngx_http_dsa_keys_t *keys,
    ngx_str_t *path, ngx_uint_t put, ngx_uint_t level, ngx_log_t *log);

/*
 * Compares the file with the one that the zone has.  NGX_OK: it is another
 * file, which has not changed since the last call.  NGX_AGAIN: it is another
 * file, but it may still be written, so the caller waits a little and calls
 * again.  NGX_DECLINED: it is the same file, or there is no file.
 */
ngx_int_t ngx_http_dsa_keys_file_changed(ngx_http_dsa_keys_t *keys,
    ngx_str_t *path, ngx_log_t *log);


#endif /* _NGX_HTTP_DSA_KEYS_FILE_H_INCLUDED_ */
