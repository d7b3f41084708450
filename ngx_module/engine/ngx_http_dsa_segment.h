
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_SEGMENT_H_INCLUDED_
#define _NGX_HTTP_DSA_SEGMENT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "engine/link.h"


/*
 * Checks and maps the segment in fd, which stays open, and sets link to its
 * parts.  Returns NULL, or the reason why the engine cannot be used, a static
 * string; then nothing is mapped.
 */
const char *ngx_http_dsa_segment_map(void **segment, dsa_link_t *link,
    ngx_fd_t fd, const dsa_link_hello_t *hello);

/* Unmaps a segment; does nothing if it is NULL. */
void ngx_http_dsa_segment_unmap(void *segment, const dsa_link_hello_t *hello);


#endif /* _NGX_HTTP_DSA_SEGMENT_H_INCLUDED_ */
