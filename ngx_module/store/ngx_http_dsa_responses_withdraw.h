
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_RESPONSES_WITHDRAW_H_INCLUDED_
#define _NGX_HTTP_DSA_RESPONSES_WITHDRAW_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_module/redis/ngx_http_dsa_redis.h"


/*
 * Withdraws responses that are reported as not stored, although Redis may have
 * stored them, or will when it executes a command that was sent long ago.  The
 * withdrawal is sent until Redis confirms it.
 */

typedef struct ngx_http_dsa_responses_withdrawal_s
    ngx_http_dsa_responses_withdrawal_t;


/*
 * Prepares a withdrawal of the response id, before it is stored, so that
 * nothing can fail afterwards.  tenant and id are copied.  The caller either
 * starts or frees it.  NULL: too many are pending, or out of memory; *why is
 * the reason, a static string.
 */
ngx_http_dsa_responses_withdrawal_t *ngx_http_dsa_responses_withdraw_create(
    ngx_http_dsa_redis_t *redis, const ngx_str_t *tenant, dsa_str_t id,
    const char **why);

/* Starts the withdrawal, which frees itself when Redis has confirmed it. */
void ngx_http_dsa_responses_withdraw_start(
    ngx_http_dsa_responses_withdrawal_t *w);

void ngx_http_dsa_responses_withdraw_free(
    ngx_http_dsa_responses_withdrawal_t *w);


#endif /* _NGX_HTTP_DSA_RESPONSES_WITHDRAW_H_INCLUDED_ */
