
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_CONF_H_INCLUDED_
#define _NGX_HTTP_DSA_CONF_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_thread_pool.h>


/*
 * The configuration.  It refers to structs of other parts by pointer and
 * includes none of their headers, so that every part can include this one.
 */

struct ngx_http_dsa_keys_s;
struct ngx_http_dsa_keys_sync_s;
struct ngx_http_dsa_page_s;
struct ngx_http_dsa_pool_s;
struct ngx_http_dsa_prices_s;
struct ngx_http_dsa_redis_s;
struct ngx_http_dsa_secret_s;


typedef struct {
    ngx_array_t                   pools;    /* ngx_http_dsa_pool_t * */
    ngx_array_t                  *aliases;  /* ngx_http_dsa_alias_t, of
                                               dsa_model_alias; NULL: none */
    struct ngx_http_dsa_redis_s  *redis;    /* dsa_redis; NULL: none */
    struct ngx_http_dsa_keys_s   *keys;     /* dsa_keys; NULL: everyone is
                                               served */
    struct ngx_http_dsa_keys_sync_s  *keys_sync;
    struct ngx_http_dsa_prices_s *prices;   /* dsa_price; NULL: none */
    ngx_str_t                     currency; /* of all prices */
    ngx_shm_zone_t               *metrics;
    ngx_shm_zone_t               *tenants;
    ngx_shm_zone_t               *series;   /* of pools of dsa_metrics; NULL:
                                               it names none */
    ngx_thread_pool_t            *threads;  /* for ngx_http_dsa_work() */
    ngx_int_t                     request_id;   /* index of $request_id */
    struct ngx_http_dsa_secret_s *secret;   /* dsa_secret, or a random key */
} ngx_http_dsa_main_conf_t;


typedef struct {
    struct ngx_http_dsa_pool_s   *pool;     /* dsa_pass */
    struct ngx_http_dsa_pool_s   *health;   /* dsa_health */
    struct ngx_http_dsa_pool_s   *metrics;  /* dsa_metrics; NULL: it names
                                               none */
    struct ngx_http_dsa_page_s   *console;  /* dsa_console */
    ngx_http_handler_pt           handler;  /* of one of these directives */
    ngx_str_t                     serves;   /* its name */
    ngx_http_complex_value_t     *tenant;   /* NULL: by key or certificate */
    ngx_msec_t                    keepalive;
    ngx_msec_t                    timeout;
    size_t                        output_limit;
    ngx_array_t                  *cors;     /* ngx_str_t: origins; empty: off */
    ngx_uint_t                    keepalive_json;       /* boolean */
    ngx_flag_t                    ignore_client_abort;
    ngx_uint_t                    context_strategy;     /* dsa_window_e */
    ngx_int_t                     context_threshold;    /* percent */
    ngx_uint_t                    retention;    /* ngx_http_dsa_retention_e */
    ngx_msec_t                    retention_ttl;
    size_t                        rollout;  /* bytes of rows; 0: off */
} ngx_http_dsa_loc_conf_t;


extern ngx_module_t  ngx_http_dsa_module;


#endif /* _NGX_HTTP_DSA_CONF_H_INCLUDED_ */
