
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_value.h"


#define NGX_HTTP_DSA_VALUE_NAMES  256   /* bytes of the names of an enum */


static char *ngx_http_dsa_value_pair(ngx_conf_t *cf,
    ngx_http_dsa_parameter_t *p, void *conf);
static char *ngx_http_dsa_value_invalid(ngx_conf_t *cf, char *rc,
    const char *expected);


char *
ngx_http_dsa_value_enum(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char  *field = conf;

    u_char           *p, *last;
    ngx_str_t        *value;
    ngx_uint_t       *number, i;
    ngx_conf_enum_t  *e;
    u_char            names[NGX_HTTP_DSA_VALUE_NAMES];

    number = (ngx_uint_t *) (field + cmd->offset);

    if (*number != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;
    e = cmd->post;
    p = names;
    last = names + sizeof(names);

    for (i = 0; e[i].name.len != 0; i++) {
        if (e[i].name.len == value[1].len
            && ngx_strcasecmp(e[i].name.data, value[1].data) == 0)
        {
            *number = e[i].value;
            return NGX_CONF_OK;
        }

        p = ngx_slprintf(p, last, "%s%V",
                         i == 0 ? "" : e[i + 1].name.len != 0 ? ", " : " or ",
                         &e[i].name);
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V\" of \"%V\"; expected %*s",
                       &value[1], &value[0], (size_t) (p - names), names);

    return NGX_CONF_ERROR;
}


char *
ngx_http_dsa_value_msec(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    return ngx_http_dsa_value_invalid(cf, ngx_conf_set_msec_slot(cf, cmd, conf),
                                      "a time, such as 500ms, 30s, 5m or 1h");
}


char *
ngx_http_dsa_value_size(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    return ngx_http_dsa_value_invalid(cf, ngx_conf_set_size_slot(cf, cmd, conf),
                                      "a size in bytes, such as 65536, 256k or "
                                      "1m");
}


char *
ngx_http_dsa_value_parameter(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char  *field = conf;

    char                      *rv;
    ngx_int_t                 *number;
    ngx_http_dsa_parameter_t  *p;

    p = cmd->post;

    rv = p->value.set(cf, &p->value, conf);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (cf->args->nelts > 2) {
        return ngx_http_dsa_value_pair(cf, p, conf);
    }

    number = (ngx_int_t *) (field + p->parameter.offset);
    *number = p->unset;

    return NGX_CONF_OK;
}


/* The parameter is set as a directive with its name would be. */

static char *
ngx_http_dsa_value_pair(ngx_conf_t *cf, ngx_http_dsa_parameter_t *p,
    void *conf)
{
    char         *rv;
    ngx_str_t    *value, *name, pair[2];
    ngx_array_t   args, *saved;

    value = cf->args->elts;
    name = &p->parameter.name;

    if (value[2].len < name->len
        || ngx_strncmp(value[2].data, name->data, name->len) != 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\" of \"%V\"; expected "
                           "\"%V\" and a value", &value[2], &value[0], name);
        return NGX_CONF_ERROR;
    }

    pair[0] = *name;
    pair[1].data = value[2].data + name->len;
    pair[1].len = value[2].len - name->len;

    args = *cf->args;
    args.elts = pair;
    args.nelts = 2;

    saved = cf->args;
    cf->args = &args;

    rv = p->parameter.set(cf, &p->parameter, conf);

    cf->args = saved;

    if (rv == NGX_CONF_OK || rv == NGX_CONF_ERROR) {
        return rv;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" of \"%V\" %s",
                       &value[2], &value[0], rv);

    return NGX_CONF_ERROR;
}


/* nginx's slots return this text, which its caller would log without more */

static char *
ngx_http_dsa_value_invalid(ngx_conf_t *cf, char *rc, const char *expected)
{
    ngx_str_t  *value;

    if (rc == NGX_CONF_OK || rc == NGX_CONF_ERROR
        || ngx_strcmp(rc, "invalid value") != 0)
    {
        return rc;
    }

    value = cf->args->elts;

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V\" of \"%V\"; expected %s",
                       &value[1], &value[0], expected);

    return NGX_CONF_ERROR;
}
