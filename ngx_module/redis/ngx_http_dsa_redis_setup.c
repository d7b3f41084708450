
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_redis_setup.h"


#define NGX_HTTP_DSA_REDIS_SETUP_WORDS  3       /* AUTH user password */


static ngx_http_dsa_redis_command_t *ngx_http_dsa_redis_setup_command(
    ngx_http_dsa_redis_commands_t *commands,
    const ngx_http_dsa_redis_conf_t *conf, uint32_t argc, dsa_str_t *argv);


/*
 * Each of these commands is added in front of all others, so they are added in
 * reverse order.
 */

ngx_int_t
ngx_http_dsa_redis_setup_commands(ngx_http_dsa_redis_commands_t *commands,
    const ngx_http_dsa_redis_conf_t *conf)
{
    size_t                         len;
    u_char                         text[NGX_INT_T_LEN];
    uint32_t                       n;
    dsa_str_t                      argv[NGX_HTTP_DSA_REDIS_SETUP_WORDS];
    ngx_http_dsa_redis_command_t  *command;

    /*
     * While Redis loads its data, it replies to ROLE, and to PING with an
     * error.
     */

    argv[0] = dsa_strz("PING");

    command = ngx_http_dsa_redis_setup_command(commands, conf, 1, argv);
    if (command == NULL) {
        return NGX_ERROR;
    }

    command->last = 1;

    argv[0] = dsa_strz("ROLE");

    command = ngx_http_dsa_redis_setup_command(commands, conf, 1, argv);
    if (command == NULL) {
        return NGX_ERROR;
    }

    command->role = 1;

    if (conf->db != 0) {
        len = ngx_sprintf(text, "%i", conf->db) - text;

        argv[0] = dsa_strz("SELECT");
        argv[1] = dsa_str(text, len);

        if (ngx_http_dsa_redis_setup_command(commands, conf, 2, argv) == NULL) {
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

    return ngx_http_dsa_redis_setup_command(commands, conf, n, argv) != NULL
           ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_dsa_redis_setup_cluster(ngx_http_dsa_redis_commands_t *commands,
    const ngx_http_dsa_redis_conf_t *conf)
{
    dsa_str_t                      argv;
    ngx_http_dsa_redis_command_t  *command;

    argv = dsa_strz("ASKING");

    command = ngx_http_dsa_redis_setup_command(commands, conf, 1, &argv);
    if (command == NULL) {
        return NGX_ERROR;
    }

    command->cluster = 1;
    command->last = 1;

    return NGX_OK;
}


ngx_int_t
ngx_http_dsa_redis_setup_sentinel(ngx_http_dsa_redis_commands_t *commands,
    const ngx_http_dsa_redis_conf_t *conf)
{
    dsa_str_t                      argv[NGX_HTTP_DSA_REDIS_SETUP_WORDS];
    ngx_http_dsa_redis_command_t  *command;

    argv[0] = dsa_strz("SENTINEL");
    argv[1] = dsa_strz("get-master-addr-by-name");
    argv[2] = dsa_str(conf->sentinel.data, conf->sentinel.len);

    command = ngx_http_dsa_redis_setup_command(commands, conf, 3, argv);
    if (command == NULL) {
        return NGX_ERROR;
    }

    command->last = 1;

    if (conf->sentinel_password.len == 0) {
        return NGX_OK;
    }

    argv[0] = dsa_strz("AUTH");
    argv[1] = dsa_str(conf->sentinel_password.data,
                      conf->sentinel_password.len);

    return ngx_http_dsa_redis_setup_command(commands, conf, 2, argv) != NULL
           ? NGX_OK : NGX_ERROR;
}


/* NULL: out of memory. */

static ngx_http_dsa_redis_command_t *
ngx_http_dsa_redis_setup_command(ngx_http_dsa_redis_commands_t *commands,
    const ngx_http_dsa_redis_conf_t *conf, uint32_t argc, dsa_str_t *argv)
{
    dsa_schema_command_t           cmd;
    ngx_http_dsa_redis_command_t  *command;

    cmd.argc = argc;
    cmd.argv = argv;

    command = ngx_http_dsa_redis_command_create(&cmd);
    if (command == NULL) {
        return NULL;
    }

    command->setup = 1;

    ngx_http_dsa_redis_commands_put(commands, command, conf->timeout);

    return command;
}
