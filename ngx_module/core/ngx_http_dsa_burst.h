
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_BURST_H_INCLUDED_
#define _NGX_HTTP_DSA_BURST_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/*
 * While something is not available, each request would log the same error.  So
 * a worker logs the first one, counts those that follow, and logs their number
 * every 30 seconds, until none came for so long.
 */

/*
 * Returns the level for a line about an error with this text: NGX_LOG_ERR, or
 * NGX_LOG_INFO if it repeats one of a moment ago.  Texts that differ only in
 * a key of Redis, which is the rest of a text from "dsa1:" on, are the same.
 */
ngx_uint_t ngx_http_dsa_burst(const char *text);

/* In a worker that exits: logs what it has counted. */
void ngx_http_dsa_burst_exit(void);


#endif /* _NGX_HTTP_DSA_BURST_H_INCLUDED_ */
