
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOOLS_REDIS_H_INCLUDED_
#define _DSA_TOOLS_REDIS_H_INCLUDED_


#include <hiredis/hiredis.h>

#include "base/error.h"
#include "engine/pages/redis_tls.h"
#include "redis_schema/schema.h"
#include "tools/options.h"


/*
 * One connection to Redis, on which a command waits for its reply.  If a node
 * of a Redis Cluster does not have the key, its reply (MOVED, or ASK while the
 * key's slot is moved) has the address of the node that has it, and the client
 * connects to that node.  While the keys of a command are on two nodes
 * (TRYAGAIN), the command is repeated for at most 5 seconds.
 */

typedef struct {
    const char         *address;        /* HOST:PORT or unix:PATH */
    const char         *user;           /* NULL: the default user */
    const char         *password_file;  /* NULL: no password */
    uint32_t            db;
    dsa_redis_tls_conf_t  tls;          /* its strings are not owned */
} dsa_client_conf_t;


typedef struct dsa_client_s  dsa_client_t;

#define DSA_CLIENT_ADDRESS  288     /* bytes of an address with its NUL */


/*
 * Connects within 5 seconds, and authenticates.  The strings of conf outlive
 * the client.  NULL with err.
 */
dsa_client_t *dsa_client_open(const dsa_client_conf_t *conf, dsa_err_t *err);

void dsa_client_close(dsa_client_t *client);            /* NULL is allowed */

/* The address of the server, or of the node that had the key last. */
const char *dsa_client_address(const dsa_client_t *client);

/*
 * Sends a command and waits at most 5 seconds for each part of its reply.
 * Returns the reply, which the caller frees with freeReplyObject(); it may be
 * an error of Redis.  NULL with err: the connection failed.
 */
redisReply *dsa_client_call(dsa_client_t *client,
    const dsa_schema_command_t *cmd, dsa_err_t *err);

/*
 * The options of conf, for the table of a command and for its usage.
 * dsa_client_option() stores one of them: DSA_OK, DSA_AGAIN if opt is another
 * option, DSA_ERROR with err.
 */

enum {
    DSA_CLIENT_OPT_ADDRESS = 2 * DSA_OPTIONS_FIRST, /* a command's are lower */
    DSA_CLIENT_OPT_USER,
    DSA_CLIENT_OPT_PASSWORD,
    DSA_CLIENT_OPT_DB,
    DSA_CLIENT_OPT_TLS,
    DSA_CLIENT_OPT_TLS_CA,
    DSA_CLIENT_OPT_TLS_CERTIFICATE,
    DSA_CLIENT_OPT_TLS_KEY,
    DSA_CLIENT_OPT_TLS_NAME,
    DSA_CLIENT_OPT_TLS_VERIFY
};

#define DSA_CLIENT_OPTIONS                                                    \
    { "redis", required_argument, NULL, DSA_CLIENT_OPT_ADDRESS },             \
    { "user", required_argument, NULL, DSA_CLIENT_OPT_USER },                 \
    { "password-file", required_argument, NULL, DSA_CLIENT_OPT_PASSWORD },    \
    { "db", required_argument, NULL, DSA_CLIENT_OPT_DB },                     \
    { "tls", no_argument, NULL, DSA_CLIENT_OPT_TLS },                         \
    { "tls-ca", required_argument, NULL, DSA_CLIENT_OPT_TLS_CA },             \
    { "tls-certificate", required_argument, NULL,                             \
      DSA_CLIENT_OPT_TLS_CERTIFICATE },                                       \
    { "tls-key", required_argument, NULL, DSA_CLIENT_OPT_TLS_KEY },           \
    { "tls-name", required_argument, NULL, DSA_CLIENT_OPT_TLS_NAME },         \
    { "tls-verify", required_argument, NULL, DSA_CLIENT_OPT_TLS_VERIFY }

#define DSA_CLIENT_USAGE                                                      \
    "  --redis ADDRESS        HOST:PORT or unix:PATH, as in dsa_redis; the\n" \
    "                         environment variable DSA_REDIS by default\n"    \
    "  --user NAME            with --password-file\n"                         \
    "  --password-file PATH   a file with nothing but the password\n"         \
    "  --db N                 a number; 0 by default\n"                       \
    "  --tls                  with TLS, as tls in dsa_redis\n"                \
    "  --tls-ca PATH          CAs of the server; by default the system's\n"   \
    "  --tls-certificate PATH, with\n"                                        \
    "  --tls-key PATH         if the server requires a certificate\n"         \
    "  --tls-name NAME        of the server, if it is not its address\n"      \
    "  --tls-verify on|off    off: any certificate is accepted\n"

/* Without --redis, the address is the environment variable DSA_REDIS. */
void dsa_client_default(dsa_client_conf_t *conf);

int dsa_client_option(dsa_client_conf_t *conf, int opt, const char *value,
    dsa_err_t *err);


#endif /* _DSA_TOOLS_REDIS_H_INCLUDED_ */
