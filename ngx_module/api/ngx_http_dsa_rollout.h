
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_ROLLOUT_H_INCLUDED_
#define _NGX_HTTP_DSA_ROLLOUT_H_INCLUDED_


#include "base/json_write.h"

#include "ngx_http_dsa_api.h"


/*
 * Collects rows of a rollout, if the request has one.  NGX_OK; NGX_DECLINED:
 * more than limit bytes are not written yet; NGX_ERROR: out of memory.
 */
ngx_int_t ngx_http_dsa_rollout_add(ngx_http_dsa_api_answer_t *a,
    const dsa_str_t *rows, size_t limit);

/*
 * Writes the member "rollout" of a choice if rows were added since the last
 * call.
 */
void ngx_http_dsa_rollout_write(ngx_http_dsa_api_answer_t *a,
    dsa_json_writer_t *w);


#endif /* _NGX_HTTP_DSA_ROLLOUT_H_INCLUDED_ */
