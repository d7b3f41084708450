
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_KEYS_FILE_H_INCLUDED_
#define _NGX_HTTP_DSA_KEYS_FILE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_keys.h"


/*
 * The keys of "dsa_keys file=": one record on each line.  Empty lines and lines
 * that begin with "#" are skipped.
 */

/* what is read at once, on the event loop of one worker */

#define NGX_HTTP_DSA_KEYS_FILE_MAX  (16 * 1024 * 1024)


/*
 * Reads the whole file, and puts its keys into the zone only if every line is
 * right; put 0: only checks it.  NGX_OK, or NGX_ERROR, which is logged at the
 * level with the line and the reason.
 */
ngx_int_t ngx_http_dsa_keys_file_load(ngx_http_dsa_keys_t *keys,
    ngx_str_t *path, ngx_uint_t put, ngx_uint_t level, ngx_log_t *log);

/*
 * Whether the file is another one than the zone has: NGX_OK: it is, and it was
 * left alone since the last call; NGX_AGAIN: it is, but it may still be
 * written, so call again soon; NGX_DECLINED: it is not, or there is no file.
 */
ngx_int_t ngx_http_dsa_keys_file_changed(ngx_http_dsa_keys_t *keys,
    ngx_str_t *path, ngx_log_t *log);


#endif /* _NGX_HTTP_DSA_KEYS_FILE_H_INCLUDED_ */
