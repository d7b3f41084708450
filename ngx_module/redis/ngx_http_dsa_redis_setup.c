
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_redis_setup.h"


#define NGX_HTTP_DSA_REDIS_SETUP_WORDS  3       /* AUTH user password */


static ngx_int_t ngx_http_dsa_redis_setup_command(
    ngx_http_dsa_redis_commands_t *commands,
    const ngx_http_dsa_redis_conf_t *conf, uint32_t argc, dsa_str_t *argv,
    ngx_uint_t role, ngx_uint_t last);


/*
 * Each of these commands is added in front of all others, so they are added in
 * reverse order.
 */

ngx_int_t
ngx_http_dsa_redis_setup_commands(ngx_http_dsa_redis_commands_t *commands,
    const ngx_http_dsa_redis_conf_t *conf)
{
    size_t     len;
    u_char     text[NGX_INT_T_LEN];
    uint32_t   n;
    dsa_str_t  argv[NGX_HTTP_DSA_REDIS_SETUP_WORDS];

    /*
     * While Redis loads its data, it replies to ROLE, and to PING with an
     * error.
     */

    argv[0] = dsa_strz("PING");

    if (ngx_http_dsa_redis_setup_command(commands, conf, 1, argv, 0, 1)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    argv[0] = dsa_strz("ROLE");

    if (ngx_http_dsa_redis_setup_command(commands, conf, 1, argv, 1, 0)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (conf->db != 0) {
        len = ngx_sprintf(text, "%i", conf->db) - text;

        argv[0] = dsa_strz("SELECT");
        argv[1] = dsa_str(text, len);

        if (ngx_http_dsa_redis_setup_command(commands, conf, 2, argv, 0, 0)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (conf->password.len == 0) {
        return NGX_OK;
    }

    n = 0;
    argv[n++] = dsa_strz("AUTH");

    if (conf->user.len != 0) {
        argv[n++] = dsa_str(conf->user.data, conf->user.len);
    }

    argv[n++] = dsa_str(conf->password.data, conf->password.len);

    return ngx_http_dsa_redis_setup_command(commands, conf, n, argv, 0, 0);
}


ngx_int_t
ngx_http_dsa_redis_setup_sentinel(ngx_http_dsa_redis_commands_t *commands,
    const ngx_http_dsa_redis_conf_t *conf)
{
    dsa_str_t  argv[NGX_HTTP_DSA_REDIS_SETUP_WORDS];

    argv[0] = dsa_strz("SENTINEL");
    argv[1] = dsa_strz("get-master-addr-by-name");
    argv[2] = dsa_str(conf->sentinel.data, conf->sentinel.len);

    if (ngx_http_dsa_redis_setup_command(commands, conf, 3, argv, 0, 1)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (conf->sentinel_password.len == 0) {
        return NGX_OK;
    }

    argv[0] = dsa_strz("AUTH");
    argv[1] = dsa_str(conf->sentinel_password.data,
                      conf->sentinel_password.len);

    return ngx_http_dsa_redis_setup_command(commands, conf, 2, argv, 0, 0);
}


static ngx_int_t
ngx_http_dsa_redis_setup_command(ngx_http_dsa_redis_commands_t *commands,
    const ngx_http_dsa_redis_conf_t *conf, uint32_t argc, dsa_str_t *argv,
    ngx_uint_t role, ngx_uint_t last)
{
    dsa_schema_command_t           cmd;
    ngx_http_dsa_redis_command_t  *command;

    cmd.argc = argc;
    cmd.argv = argv;

    command = ngx_http_dsa_redis_command_create(&cmd);
    if (command == NULL) {
        return NGX_ERROR;
    }

    command->setup = 1;
    command->role = role;
    command->last = last;

    ngx_http_dsa_redis_commands_put(commands, command, conf->timeout);

    return NGX_OK;
}
