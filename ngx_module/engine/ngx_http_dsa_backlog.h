
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_BACKLOG_H_INCLUDED_
#define _NGX_HTTP_DSA_BACKLOG_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "engine/link.h"


/*
 * How long an engine needs for the requests that wait in its queue, from the
 * rate at which its requests have ended lately.  Each worker measures it for
 * itself, by the count that the engine writes for all of them.
 */

#define NGX_HTTP_DSA_BACKLOG_WINDOW  10000    /* ms */
#define NGX_HTTP_DSA_BACKLOG_MOST    60       /* seconds */


/*
 * The begins of the window before the present one, and of the present one.
 * The rate is that since the first of them: of 10 to 20 seconds, or less if the
 * session has begun later.
 */

typedef struct {
    uint64_t                  ended[2];
    ngx_msec_t                time[2];
} ngx_http_dsa_backlog_t;


/* Begins to measure; called when a session is ready. */
void ngx_http_dsa_backlog_start(ngx_http_dsa_backlog_t *backlog,
    const dsa_link_control_t *control);

/* Begins another window if it is time; called at least every second. */
void ngx_http_dsa_backlog_update(ngx_http_dsa_backlog_t *backlog,
    const dsa_link_control_t *control);

/*
 * Returns the seconds after which what waits now will have begun, 1 to
 * NGX_HTTP_DSA_BACKLOG_MOST:
 *
 *     waiting * time / requests that have ended in this time
 *
 * 1 if nothing waits.  If no request has ended, the time, because the queue
 * moves more slowly than one request in it.
 */
ngx_uint_t ngx_http_dsa_backlog_seconds(const ngx_http_dsa_backlog_t *backlog,
    const dsa_link_control_t *control);


#endif /* _NGX_HTTP_DSA_BACKLOG_H_INCLUDED_ */
