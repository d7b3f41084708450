
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "engine/pages/redis_cluster.h"
#include "engine/pages/redis_conn.h"
#include "redis_schema/resp.h"
#include "tools/redis.h"


#define DSA_CLIENT_TIMEOUT   5000           /* ms */
#define DSA_CLIENT_PAUSE     50             /* ms, before a command is repeated
                                               whose keys are being moved */
#define DSA_CLIENT_REDIRECTS 5              /* of one command */
#define DSA_CLIENT_PASSWORD  4096           /* bytes of the file */
#define DSA_CLIENT_DB_MAX    65535


_Static_assert(sizeof(((dsa_redis_address_t *) 0)->text) <= DSA_CLIENT_ADDRESS,
               "an address");


struct dsa_client_s {
    const dsa_client_conf_t  *conf;
    dsa_redis_address_t       address;
    dsa_redis_tls_t          *tls;          /* NULL: without TLS */
    dsa_redis_conn_t          conn;
};


static int dsa_client_tls(dsa_client_t *client, dsa_err_t *err);
static int dsa_client_connect(dsa_client_t *client, dsa_err_t *err);
static int dsa_client_login(dsa_client_t *client, dsa_err_t *err);
static int dsa_client_password(dsa_buf_t *password, const char *path,
    dsa_err_t *err);
static int dsa_client_first(dsa_client_t *client, int argc, const char **argv,
    const size_t *len, dsa_err_t *err);
static redisReply *dsa_client_routed(dsa_client_t *client, int argc,
    const char **argv, const size_t *len, dsa_err_t *err);
static int dsa_client_follow(dsa_client_t *client, redisReply *reply,
    dsa_err_t *err);
static redisReply *dsa_client_send(dsa_client_t *client, int argc,
    const char **argv, const size_t *len, dsa_err_t *err);
static int dsa_client_fail(dsa_client_t *client, const dsa_err_t *why,
    dsa_err_t *err);
static int dsa_client_option_tls(dsa_redis_tls_conf_t *tls, int opt,
    const char *value, dsa_err_t *err);


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
    client->conn.wire.fd = -1;
    client->conn.wire.off_fd = -1;
    client->conn.wire.stop_fd = -1;
    client->conn.wire.timeout_ms = DSA_CLIENT_TIMEOUT;

    /* a server that closes its connection must not end the program */

    (void) signal(SIGPIPE, SIG_IGN);

    if (dsa_redis_address(&client->address, conf->address, err) != DSA_OK
        || dsa_client_tls(client, err) != DSA_OK
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
        dsa_redis_conn_close(&client->conn);
        dsa_redis_tls_destroy(client->tls);
        free(client);
    }
}


const char *
dsa_client_address(const dsa_client_t *client)
{
    return client->address.text;
}


static int
dsa_client_tls(dsa_client_t *client, dsa_err_t *err)
{
    const dsa_redis_tls_conf_t  *tls;

    tls = &client->conf->tls;

    if (!tls->on) {
        return tls->ca == NULL && tls->certificate == NULL && tls->key == NULL
               && tls->name == NULL && !tls->insecure
               ? DSA_OK
               : dsa_error(err, "an option of TLS is given without --tls; "
                           "expected --tls as well");
    }

    if (client->address.port == 0) {
        return dsa_error(err, "--tls is given with %s, on which Redis has no "
                         "TLS; expected HOST:PORT", client->address.text);
    }

    client->tls = dsa_redis_tls_create(tls, err);
    client->conn.wire.tls = client->tls;

    return client->tls != NULL ? DSA_OK : DSA_ERROR;
}


static int
dsa_client_connect(dsa_client_t *client, dsa_err_t *err)
{
    int          n;
    char         db[16];
    size_t       len[2];
    const char  *argv[2];

    dsa_redis_conn_close(&client->conn);

    if (dsa_client_login(client, err) != DSA_OK) {
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
dsa_client_login(dsa_client_t *client, dsa_err_t *err)
{
    int        rc;
    dsa_buf_t  password;
    dsa_err_t  why;

    memset(&password, 0, sizeof(dsa_buf_t));
    rc = DSA_OK;

    if (client->conf->password_file != NULL) {
        rc = dsa_client_password(&password, client->conf->password_file, err);
    }

    if (rc == DSA_OK) {
        dsa_redis_conn_begin(&client->conn, 0);

        rc = dsa_redis_conn_open(&client->conn, &client->address,
                                 client->conf->user, password.data, &why);

        if (rc != DSA_OK) {
            rc = dsa_client_fail(client, &why, err);
        }
    }

    if (password.data != NULL) {
        explicit_bzero(password.data, password.size);
    }

    dsa_buf_free(&password);

    return rc;
}


/* The content of the file without line feeds at its end, with a NUL. */

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

    if (password->len == 0
        || memchr(password->data, '\0', password->len) != NULL)
    {
        return dsa_error(err, "%s has no password; expected 1 to %d bytes, "
                         "none of them 0", path, DSA_CLIENT_PASSWORD);
    }

    dsa_buf_add(password, "", 1);

    return password->failed ? dsa_error(err, "out of memory") : DSA_OK;
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
    size_t       *len;
    uint32_t      i;
    redisReply   *reply;
    const char  **argv;

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

    reply = dsa_client_routed(client, (int) cmd->argc, argv, len, err);

done:

    free(argv);
    free(len);

    return reply;
}


/*
 * Sends a command to the node that its reply names.  A command that was
 * refused was not executed, so it can be sent again.
 */

static redisReply *
dsa_client_routed(dsa_client_t *client, int argc, const char **argv,
    const size_t *len, dsa_err_t *err)
{
    int               asking;
    uint32_t          n;
    uint64_t          until;
    redisReply       *reply;

    static const char             *ask[] = { "ASKING" };
    static const size_t            ask_len[] = { sizeof("ASKING") - 1 };
    static const struct timespec   pause = { 0, DSA_CLIENT_PAUSE * 1000000 };

    asking = 0;
    until = dsa_clock_ms() + DSA_CLIENT_TIMEOUT;

    for (n = 0; ; ) {
        if (asking && dsa_client_first(client, 1, ask, ask_len, err) != DSA_OK)
        {
            return NULL;
        }

        reply = dsa_client_send(client, argc, argv, len, err);

        if (reply == NULL) {
            return NULL;
        }

        if (dsa_resp_is_error(reply, "TRYAGAIN") && dsa_clock_ms() < until) {
            freeReplyObject(reply);
            (void) nanosleep(&pause, NULL);
            continue;
        }

        asking = dsa_resp_is_error(reply, "ASK");

        if ((!asking && !dsa_resp_is_error(reply, "MOVED"))
            || n++ == DSA_CLIENT_REDIRECTS)
        {
            return reply;
        }

        if (dsa_client_follow(client, reply, err) != DSA_OK) {
            return NULL;
        }
    }
}


/* Connects to the node that a redirect names; frees the reply. */

static int
dsa_client_follow(dsa_client_t *client, redisReply *reply, dsa_err_t *err)
{
    int                  rc;
    dsa_redis_address_t  to;

    rc = dsa_cluster_redirect(&to, reply->str, &client->address, err);

    freeReplyObject(reply);

    if (rc != DSA_OK) {
        return DSA_ERROR;
    }

    client->address = to;

    return dsa_client_connect(client, err);
}


static redisReply *
dsa_client_send(dsa_client_t *client, int argc, const char **argv,
    const size_t *len, dsa_err_t *err)
{
    dsa_err_t    why;
    redisReply  *reply;

    /* the deadline is for the least speed of the longest reply */

    dsa_redis_conn_begin(&client->conn, DSA_REDIS_REPLY);

    reply = dsa_redis_conn_call(&client->conn, argc, argv, len, &why);

    if (reply == NULL) {
        (void) dsa_client_fail(client, &why, err);
    }

    return reply;
}


static int
dsa_client_fail(dsa_client_t *client, const dsa_err_t *why, dsa_err_t *err)
{
    char  text[DSA_RESP_TEXT];

    return dsa_error(err, "%s: %s", client->address.text,
                     dsa_resp_text(text, why->text, strlen(why->text)));
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
        return dsa_client_option_tls(&conf->tls, opt, value, err);
    }
}


static int
dsa_client_option_tls(dsa_redis_tls_conf_t *tls, int opt, const char *value,
    dsa_err_t *err)
{
    switch (opt) {

    case DSA_CLIENT_OPT_TLS:
        tls->on = 1;
        return DSA_OK;

    case DSA_CLIENT_OPT_TLS_CA:
        tls->ca = (char *) value;
        return DSA_OK;

    case DSA_CLIENT_OPT_TLS_CERTIFICATE:
        tls->certificate = (char *) value;
        return DSA_OK;

    case DSA_CLIENT_OPT_TLS_KEY:
        tls->key = (char *) value;
        return DSA_OK;

    case DSA_CLIENT_OPT_TLS_NAME:
        tls->name = (char *) value;
        return DSA_OK;

    case DSA_CLIENT_OPT_TLS_VERIFY:
        if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0) {
            return dsa_error(err, "--tls-verify is \"%s\"; expected on or off",
                             value);
        }

        tls->insecure = (strcmp(value, "off") == 0);
        return DSA_OK;

    default:
        return DSA_AGAIN;
    }
}
