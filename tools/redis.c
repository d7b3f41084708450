
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "base/file.h"
#include "engine/pages/redis_cluster.h"
#include "redis_schema/resp.h"
#include "tools/redis.h"


#define DSA_CLIENT_TIMEOUT   5              /* seconds */
#define DSA_CLIENT_REDIRECTS 5              /* of one command */
#define DSA_CLIENT_PASSWORD  4096           /* bytes of the file */
#define DSA_CLIENT_DB_MAX    65535


_Static_assert(sizeof(((dsa_redis_address_t *) 0)->text) <= DSA_CLIENT_ADDRESS,
               "an address");


struct dsa_client_s {
    const dsa_client_conf_t  *conf;
    dsa_redis_address_t       address;
    redisContext             *redis;
};


static int dsa_client_connect(dsa_client_t *client, dsa_err_t *err);
static int dsa_client_auth(dsa_client_t *client, dsa_err_t *err);
static int dsa_client_password(dsa_buf_t *password, const char *path,
    dsa_err_t *err);
static int dsa_client_first(dsa_client_t *client, int argc, const char **argv,
    const size_t *len, dsa_err_t *err);
static redisReply *dsa_client_send(dsa_client_t *client, int argc,
    const char **argv, const size_t *len, dsa_err_t *err);
static int dsa_client_fail(dsa_client_t *client, dsa_err_t *err);


dsa_client_t *
dsa_client_open(const dsa_client_conf_t *conf, dsa_err_t *err)
{
    dsa_client_t  *client;

    if (conf->user != NULL && conf->password_file == NULL) {
        (void) dsa_error(err, "--user is given without a password; expected "
                         "--password-file as well");
        return NULL;
    }

    client = calloc(1, sizeof(dsa_client_t));

    if (client == NULL) {
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    client->conf = conf;

    /* a server that closes its connection must not end the program */

    (void) signal(SIGPIPE, SIG_IGN);

    if (dsa_redis_address(&client->address, conf->address, err) != DSA_OK
        || dsa_client_connect(client, err) != DSA_OK)
    {
        dsa_client_close(client);
        return NULL;
    }

    return client;
}


void
dsa_client_close(dsa_client_t *client)
{
    if (client != NULL) {
        redisFree(client->redis);
        free(client);
    }
}


const char *
dsa_client_address(const dsa_client_t *client)
{
    return client->address.text;
}


static int
dsa_client_connect(dsa_client_t *client, dsa_err_t *err)
{
    int                   n;
    char                  db[16];
    size_t                len[2];
    const char           *argv[2];
    const struct timeval  timeout = { DSA_CLIENT_TIMEOUT, 0 };

    redisFree(client->redis);

    client->redis = client->address.port == 0
        ? redisConnectUnixWithTimeout(client->address.host, timeout)
        : redisConnectWithTimeout(client->address.host, client->address.port,
                                  timeout);

    if (client->redis == NULL || client->redis->err != 0) {
        return dsa_client_fail(client, err);
    }

    if (redisSetTimeout(client->redis, timeout) != REDIS_OK) {
        return dsa_client_fail(client, err);
    }

    if (client->conf->password_file != NULL
        && dsa_client_auth(client, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (client->conf->db == 0) {
        return DSA_OK;
    }

    n = snprintf(db, sizeof(db), "%u", client->conf->db);

    argv[0] = "SELECT";
    len[0] = strlen(argv[0]);
    argv[1] = db;
    len[1] = (size_t) n;

    return dsa_client_first(client, 2, argv, len, err);
}


static int
dsa_client_auth(dsa_client_t *client, dsa_err_t *err)
{
    int          n, rc;
    size_t       len[3];
    dsa_buf_t    password;
    const char  *argv[3];

    memset(&password, 0, sizeof(dsa_buf_t));

    rc = dsa_client_password(&password, client->conf->password_file, err);

    if (rc == DSA_OK) {
        n = 0;
        argv[n++] = "AUTH";

        if (client->conf->user != NULL) {
            argv[n++] = client->conf->user;
        }

        len[0] = strlen(argv[0]);
        len[1] = n == 2 ? strlen(argv[1]) : 0;

        argv[n] = password.data;
        len[n++] = password.len;

        rc = dsa_client_first(client, n, argv, len, err);
    }

    if (password.data != NULL) {
        explicit_bzero(password.data, password.size);
    }

    dsa_buf_free(&password);

    return rc;
}


/* The content of the file without line feeds at its end. */

static int
dsa_client_password(dsa_buf_t *password, const char *path, dsa_err_t *err)
{
    if (dsa_file_read(path, DSA_CLIENT_PASSWORD, password, err) != DSA_OK) {
        return DSA_ERROR;
    }

    while (password->len != 0
           && (password->data[password->len - 1] == '\n'
               || password->data[password->len - 1] == '\r'))
    {
        password->len--;
    }

    if (password->len == 0) {
        return dsa_error(err, "%s has no password; expected 1 to %d bytes",
                         path, DSA_CLIENT_PASSWORD);
    }

    return DSA_OK;
}


/* A command that begins a connection; its reply is OK. */

static int
dsa_client_first(dsa_client_t *client, int argc, const char **argv,
    const size_t *len, dsa_err_t *err)
{
    int          rc;
    char         text[DSA_RESP_TEXT];
    redisReply  *reply;

    reply = dsa_client_send(client, argc, argv, len, err);

    if (reply == NULL) {
        return DSA_ERROR;
    }

    rc = DSA_OK;

    if (reply->type != REDIS_REPLY_STATUS) {
        rc = dsa_error(err, "%s: the reply to %s is \"%s\"",
                       client->address.text, argv[0],
                       dsa_resp_text(text, reply->str != NULL ? reply->str
                                                              : "",
                                     reply->len));
    }

    freeReplyObject(reply);

    return rc;
}


redisReply *
dsa_client_call(dsa_client_t *client, const dsa_schema_command_t *cmd,
    dsa_err_t *err)
{
    int                   rc;
    size_t               *len;
    uint32_t              i, n;
    redisReply           *reply;
    const char          **argv;
    dsa_redis_address_t   to;

    argv = calloc(cmd->argc, sizeof(char *));
    len = calloc(cmd->argc, sizeof(size_t));
    reply = NULL;

    if (argv == NULL || len == NULL) {
        (void) dsa_error(err, "out of memory");
        goto done;
    }

    for (i = 0; i < cmd->argc; i++) {
        argv[i] = cmd->argv[i].data;
        len[i] = cmd->argv[i].len;
    }

    for (n = 0; ; n++) {
        reply = dsa_client_send(client, (int) cmd->argc, argv, len, err);

        if (reply == NULL || !dsa_resp_is_error(reply, "MOVED")
            || n == DSA_CLIENT_REDIRECTS)
        {
            break;
        }

        rc = dsa_cluster_redirect(&to, reply->str, &client->address, err);

        freeReplyObject(reply);
        reply = NULL;

        if (rc != DSA_OK) {
            break;
        }

        client->address = to;

        if (dsa_client_connect(client, err) != DSA_OK) {
            break;
        }
    }

done:

    free(argv);
    free(len);

    return reply;
}


static redisReply *
dsa_client_send(dsa_client_t *client, int argc, const char **argv,
    const size_t *len, dsa_err_t *err)
{
    redisReply  *reply;

    reply = redisCommandArgv(client->redis, argc, argv, len);

    if (reply == NULL) {
        (void) dsa_client_fail(client, err);
    }

    return reply;
}


static int
dsa_client_fail(dsa_client_t *client, dsa_err_t *err)
{
    char         text[DSA_RESP_TEXT];
    const char  *why;

    why = client->redis != NULL ? client->redis->errstr : "out of memory";

    /* the text of EAGAIN is about another cause than a timeout */

    if (client->redis != NULL && client->redis->err == REDIS_ERR_IO
        && (errno == EAGAIN || errno == EWOULDBLOCK))
    {
        return dsa_error(err, "%s: no reply within %d seconds",
                         client->address.text, DSA_CLIENT_TIMEOUT);
    }

    return dsa_error(err, "%s: %s", client->address.text,
                     dsa_resp_text(text, why, strlen(why)));
}


void
dsa_client_default(dsa_client_conf_t *conf)
{
    const char  *address;

    address = getenv("DSA_REDIS");

    if (conf->address == NULL && address != NULL && address[0] != '\0') {
        conf->address = address;
    }
}


int
dsa_client_option(dsa_client_conf_t *conf, int opt, const char *value,
    dsa_err_t *err)
{
    char           *end;
    unsigned long   n;

    switch (opt) {

    case DSA_CLIENT_OPT_ADDRESS:
        conf->address = value;
        return DSA_OK;

    case DSA_CLIENT_OPT_USER:
        conf->user = value;
        return DSA_OK;

    case DSA_CLIENT_OPT_PASSWORD:
        conf->password_file = value;
        return DSA_OK;

    case DSA_CLIENT_OPT_DB:
        n = strtoul(value, &end, 10);

        if (*value < '0' || *value > '9' || *end != '\0'
            || n > DSA_CLIENT_DB_MAX)
        {
            return dsa_error(err, "--db \"%s\" is not a number of a database; "
                             "expected 0 to %d", value, DSA_CLIENT_DB_MAX);
        }

        conf->db = (uint32_t) n;
        return DSA_OK;

    default:
        return DSA_AGAIN;
    }
}
